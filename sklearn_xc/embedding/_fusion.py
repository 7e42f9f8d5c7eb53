"""One score of several: what all ways of fusing have in common."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._data import read_only
from sklearn_xc._declared_state import Array, Number, Record, declares


class Pairs(NamedTuple):
    """Pairs of a held-out instance and a label of its shortlist.

    Attributes
    ----------
    scores : ndarray of float of shape (n_pairs, n_scores)
    label : ndarray of int64 of shape (n_pairs,)
    is_own : ndarray of bool of shape (n_pairs,)
        Whether the instance has the label.
    weight : ndarray of float of shape (n_pairs,)
        The instance's.
    of : ndarray of int64 of shape (n_pairs,)
        Which instance, rising.
    """

    scores: np.ndarray
    label: np.ndarray
    is_own: np.ndarray
    weight: np.ndarray
    of: np.ndarray


@declares(
    root=Array("int32", None),
    feature=Array("int32", "nodes", least=-2, below="inputs"),
    threshold=Array("float64", "nodes"),
    left=Array("int32", "nodes"),
    right=Array("int32", "nodes"),
    value=Array("float64", "nodes"),
)
class Trees(NamedTuple):
    """Regression trees in plain arrays, as kernels walk them.

    Attributes
    ----------
    root : ndarray of int32 of shape (n_trees,)
    feature : ndarray of int32 of shape (n_nodes,)
        Of the scores, by number; what is read of the label frequency comes after them; -2 in a
        leaf.
    threshold : ndarray of float64 of shape (n_nodes,)
        Features of at most so much go to the left.
    left, right : ndarray of int32 of shape (n_nodes,)
        Numbers of nodes; -1 in a leaf.
    value : ndarray of float64 of shape (n_nodes,)
    """

    root: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray


@declares(
    n_scores_=Number("int", least=0),
    trees_=Record("Trees", inputs=lambda fusion: fusion.n_scores_ + 1),
)
class ScoreFusion(ABC):
    """Fused scores of pairs of an instance and a label, learned from held-out instances.

    On training instances the classifier scores are too good; so ``fit`` is told of instances that
    neither encoder nor classifiers were trained on.

    Attributes
    ----------
    trees_ : Trees
        Set by fit, or by the caller who has kept them.
    n_scores_ : int
        Of a pair; likewise.
    """

    #: Whether fused scores are probabilities.
    gives_chances = False
    trees_: Trees | None = None
    n_scores_: int = 0

    @abstractmethod
    def fit(self, pairs: Pairs, frequencies: np.ndarray) -> "ScoreFusion":
        """Learn from pairs.

        Parameters
        ----------
        pairs : Pairs
        frequencies : ndarray of float of shape (n_pairs,)
            Training instances of the label of each.

        Returns
        -------
        ScoreFusion
            Itself.

        Raises
        ------
        ValueError
            Without pairs, for arrays of different lengths, NaN or inf.
        """

    @abstractmethod
    def _fuse(
        self, trees: Any, scores: np.ndarray, frequencies: np.ndarray, out: np.ndarray
    ) -> None:
        """Write fused scores: arrays (n, n_scores), float64 of shape (n,), and (n,)."""

    def __call__(self, scores: Any, frequencies: Any) -> Any:
        """Return fused scores.

        Parameters
        ----------
        scores : array-like of float of shape (..., n_scores)
            Mostly (n, k, n_scores), for k labels of each instance. Where all of a pair are -inf, so
            is the fused score.
        frequencies : array-like
            Training instances of the labels; of a shape that broadcasts to (...).

        Returns
        -------
        ndarray of float
            Of the shape (...), float32 if the scores are.
        """
        name = type(self).__name__
        if self.trees_ is None:
            raise ValueError(f"{name}: there is no tree yet; call fit first.")
        scores = np.asarray(scores)
        if scores.shape[-1:] != (self.n_scores_,):
            raise ValueError(
                f"{name}: scores must have shape (..., {self.n_scores_}), as in fit. Got "
                f"{scores.shape}."
            )
        dtype = np.float32 if scores.dtype == np.float32 else np.float64
        shape = scores.shape[:-1]
        frequency = np.broadcast_to(np.asarray(frequencies, np.float64), shape)
        out = np.empty(frequency.size, dtype)
        self._fuse(
            tuple(map(read_only, self.trees_)),
            read_only(np.ascontiguousarray(scores, dtype).reshape(-1, scores.shape[-1])),
            np.ascontiguousarray(frequency).ravel(),
            out,
        )
        return out.reshape(shape)


def check_pairs(name: str, pairs: Pairs, frequencies: np.ndarray) -> None:
    """Raise an error for pairs that nothing can be learned from; `name` is in the message."""
    shape = np.shape(pairs.scores)
    if len(shape) != 2 or 0 in shape:
        raise ValueError(
            f"{name}: scores must be of at least one pair, shape (n_pairs, n_scores). Got "
            f"shape {shape}."
        )
    given = {**pairs._asdict(), "frequencies": frequencies}
    for argument, values in given.items():
        if argument != "scores" and np.shape(values) != shape[:1]:
            raise ValueError(
                f"{name}: {argument} must have shape {shape[:1]}, one for each pair. Got "
                f"{np.shape(values)}."
            )
        if not np.isfinite(values).all():
            raise ValueError(f"{name}: {argument} contains NaN or infinity.")
