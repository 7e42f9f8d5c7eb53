"""Sparse weights of many labels, and the scores they give."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed

from sklearn_xc._validation import CsrRows, read_only
from sklearn_xc.model.anytime import AnytimeTopK, Budget, topk_anytime
from sklearn_xc.model.by_feature import WeightsByFeature, arrange_by_feature
from sklearn_xc.parallel.memory import require_bytes

#: Rows of X scored by one task.
ROWS_PER_TASK = 256


class LabelWeights:
    """One sparse weight vector and one intercept per label.

    Parameters
    ----------
    coef : csr_array of shape (n_labels, n_features)
        Weights, one row per label.
    intercept : ndarray of shape (n_labels,)
        Intercepts, of the same dtype.
    """

    def __init__(self, coef: sp.csr_array, intercept: np.ndarray) -> None:
        self.coef = coef
        self.intercept = intercept
        self._by_feature: WeightsByFeature | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_by_feature": None}

    def with_intercept(self, intercept: np.ndarray) -> "LabelWeights":
        """Return the same weights with other intercepts; their arrangement is shared."""
        other = LabelWeights(self.coef, intercept)
        other._by_feature = self.by_feature
        return other

    @property
    def by_feature(self) -> WeightsByFeature:
        """The weights by feature: the order that scoring reads; made when first needed."""
        if self._by_feature is None:
            self._by_feature = arrange_by_feature(self.coef)
        return self._by_feature

    def topk(self, X: CsrRows, k: int, n_jobs: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best labels of each row, exactly, and their scores.

        Parameters
        ----------
        X : CsrRows of shape (n, n_features)
            Instances.
        k : int
            How many; places beyond the number of labels hold -1 and -inf.
        n_jobs : int or None
            Threads, as joblib counts them.

        Returns
        -------
        labels, scores : ndarray of int64 and of the weights' dtype, of shape (n, k)
            Best first; ties go to the smaller label. O(n_labels) memory for each thread.
        """
        from sklearn_xc.kernels.topk import topk_rows

        data, weights = self._common_dtype(X), self.by_feature
        intercept, n_labels = read_only(self.intercept), len(self.intercept)

        def task(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
            labels = np.full((last - first, k), -1, np.int64)
            scores = np.full((last - first, k), -np.inf, self.intercept.dtype)
            topk_rows(
                X.indptr, X.indices, data, first,
                *weights.arrays, intercept, min(k, n_labels), labels, scores,
            )  # fmt: skip
            return labels, scores

        parts = self._map_rows(task, X.shape[0], n_jobs)
        labels = np.concatenate([part[0] for part in parts])
        return labels, np.concatenate([part[1] for part in parts])

    def topk_anytime(self, X: CsrRows, k: int, budget: Budget) -> AnytimeTopK:
        """Return the k best labels of each row that a budget per row allows to find.

        Parameters
        ----------
        X : CsrRows of shape (n, n_features)
            Instances.
        k : int
            How many; places beyond the number of labels hold -1 and -inf.
        budget : Budget
            Time or postings per row.

        Returns
        -------
        AnytimeTopK
        """
        rows = CsrRows(X.indptr, X.indices, self._common_dtype(X), X.shape, X.was_sparse)
        intercept = read_only(self.intercept)
        return topk_anytime(rows, k, self.coef, self.by_feature, intercept, budget)

    def scores(self, X: CsrRows, n_jobs: int | None) -> np.ndarray:
        """Return the scores of every label, dense, of shape (n, n_labels).

        Raises
        ------
        MemoryBudgetError
            If the dense array does not fit into memory.
        """
        from sklearn_xc.kernels.topk import score_rows

        data, weights = self._common_dtype(X), self.by_feature
        intercept = read_only(self.intercept)
        n_labels, dtype = len(intercept), intercept.dtype
        require_bytes(
            X.shape[0] * n_labels * dtype.itemsize,
            None,
            f"the dense scores, {X.shape[0]} instances x {n_labels} labels",
            "Use predict_topk, which never makes it.",
        )
        out = np.empty((X.shape[0], n_labels), dtype)

        def task(first: int, last: int) -> None:
            score_rows(
                X.indptr, X.indices, data, first, *weights.arrays, intercept, out[first:last],
            )  # fmt: skip

        self._map_rows(task, X.shape[0], n_jobs)
        return out

    def _common_dtype(self, X: CsrRows) -> np.ndarray:
        return read_only(X.data.astype(self.intercept.dtype, copy=False))

    @staticmethod
    def _map_rows(task: Any, n: int, n_jobs: int | None) -> list[Any]:
        """Run `task` over ranges of rows, in threads: they share the output."""
        ranges = [
            (first, min(first + ROWS_PER_TASK, n)) for first in range(0, max(n, 1), ROWS_PER_TASK)
        ]
        if len(ranges) == 1:  # starting threads would take longer than a few rows do
            return [task(*ranges[0])]
        return Parallel(n_jobs=n_jobs, require="sharedmem")(
            delayed(task)(first, last) for first, last in ranges
        )
