"""The index of the labels of a fitted model, which is built on first use."""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._input.data import read_only
from sklearn_xc._input.parts import same_part
from sklearn_xc.search.protocol import MipsIndex
from sklearn_xc.search.registry import copy_index, index_bytes, make_index


class LabelIndex(NamedTuple):
    """A built index of the seen labels, with the parameter and the arrays that it was built from.

    Attributes
    ----------
    parameter : str or MipsIndex
        A copy.
    sources : tuple of (ndarray or None)
    labels : ndarray of int32
        The labels of the rows of the index.
    index : MipsIndex
    """

    parameter: str | MipsIndex
    sources: tuple[np.ndarray | None, ...]
    labels: np.ndarray
    index: MipsIndex

    def is_of(self, parameter: str | MipsIndex, sources: tuple[np.ndarray | None, ...]) -> bool:
        """Return whether the index has equal parameters, and was built from the same arrays."""
        pairs = zip(sources, self.sources, strict=True)
        return all(one is other for one, other in pairs) and same_part(self.parameter, parameter)

    def query(self, V: np.ndarray, k: int, n_jobs: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Return at most k distinct labels of each row, int32, padded with -1, and their number."""
        index: Any = self.index
        if isinstance(self.parameter, str):  # an instance keeps its own number of threads
            index = copy.copy(index)
            index.n_jobs = n_jobs
        found = index.query(read_only(np.ascontiguousarray(V)), min(k, len(self.labels)))
        return np.where(found.labels >= 0, self.labels[found.labels], -1), found.counts


def label_index(
    model: Any,
    parameter: str | MipsIndex,
    intercept: np.ndarray | None,
    require: Callable[[int], None],
) -> LabelIndex:
    """Return the index of a model's labels; the last one is kept while nothing has changed.

    Parameters
    ----------
    model : estimator
        Fitted, with ``coef_``. Its attributes are replaced, never changed in place.
    parameter : str or MipsIndex
    intercept : ndarray of shape (n_labels,) or None
    require : callable
        ``require(n_bytes)`` raises MemoryBudgetError unless there is room for so many bytes.
    """
    coef, unseen = model.coef_, model._unseen_labels
    sources = coef, unseen, intercept
    found: LabelIndex | None = vars(model).get("_search_index")
    if found is None or not found.is_of(parameter, sources):
        index = make_index(parameter, model.n_jobs, f"{type(model).__name__}: index")
        is_copied = intercept is not None or unseen.size > 0
        require(index_bytes(parameter, coef.shape, coef.itemsize) + is_copied * coef.nbytes)
        labels = np.delete(np.arange(len(coef), dtype=np.int32), unseen)
        W = coef[labels] if unseen.size else coef
        if intercept is not None:
            W = np.column_stack([W, intercept[labels]])
        index.build(np.ascontiguousarray(W))
        found = LabelIndex(copy_index(parameter), sources, labels, index)
        vars(model)["_search_index"] = found
    return found
