"""The index by which the labels with the best classifiers are found."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sklearn_xc.mips import Candidates, ExactIndex, MipsIndex, make_index


@dataclass(frozen=True)
class ShortlistIndex:
    """A search index of the classifiers of one model, which is never changed.

    Attributes
    ----------
    coef, unseen : ndarray
        Of the model that it was built for; another one needs another index.
    parameter : str or MipsIndex
        What it was made from, and
    settings : dict
        the attributes that this had then.
    labels : ndarray of int64
        The labels that it has, rising: all but the unseen ones.
    index : MipsIndex
        Built.
    """

    coef: np.ndarray
    unseen: np.ndarray
    parameter: Any
    settings: dict[str, Any]
    labels: np.ndarray
    index: MipsIndex

    @classmethod
    def built(
        cls, coef: np.ndarray, unseen: np.ndarray, parameter: Any, n_jobs: int | None, seed: int
    ) -> "ShortlistIndex":
        """Return an index of the labels that are not unseen."""
        labels = np.delete(np.arange(len(coef)), unseen)
        index = make_index(parameter, n_jobs, "NGAMEEmbeddingXC: index")
        index.build(np.ascontiguousarray(coef[labels] if unseen.size else coef), seed=seed)
        return cls(coef, unseen, parameter, _settings(parameter), labels, index)

    def is_of(self, coef: np.ndarray, unseen: np.ndarray, parameter: Any) -> bool:
        """Return whether this is the index of a model, made from a parameter."""
        is_same = self.coef is coef and self.unseen is unseen and self.parameter is parameter
        now = _settings(parameter)
        return is_same and all(now.get(name) is value for name, value in self.settings.items())

    def query(self, V: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels found for each embedding, at most `size` of them.

        Returns
        -------
        labels : ndarray of int64 of shape (n, size)
            Distinct, -1 where there are no more.
        counts : ndarray of int64 of shape (n,)
            How many there are.
        """
        found: Candidates = self.index.query(np.ascontiguousarray(V), size)
        return np.where(found.labels >= 0, self.labels[found.labels], -1), found.counts


def is_exact(parameter: Any) -> bool:
    """Tell whether an index scores all labels."""
    return isinstance(parameter, ExactIndex) or (
        isinstance(parameter, str) and parameter == "exact"
    )


def _settings(parameter: Any) -> dict[str, Any]:
    """Return the attributes of an index that was passed, which ``set_params`` may change."""
    return dict(getattr(parameter, "__dict__", {}))
