"""Sparse weights of many labels, and the scores they give."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed

from sklearn_xc._data import CsrRows, read_only
from sklearn_xc.kernels.prediction.topk import score_rows, topk_rows
from sklearn_xc.parallel.memory import require_bytes
from sklearn_xc.parallel.threads import count_threads
from sklearn_xc.weights.anytime import AnytimeTopK, Budget, topk_anytime
from sklearn_xc.weights.by_feature import WeightsByFeature, arrange_by_feature

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
    prior : ndarray of shape (n_labels,), default=None
        Scores of a row of which no feature has a weight, of the same dtype; None for `intercept`.
    unseen : ndarray of int64, default=()
        Labels that score -inf, so that they come last; none if they are all.
    """

    def __init__(
        self,
        coef: sp.csr_array,
        intercept: np.ndarray,
        prior: np.ndarray | None = None,
        unseen: Any = (),
    ) -> None:
        self.coef = coef
        self.intercept = intercept
        self.prior = prior
        self.unseen = unseen
        self._scoring: _Scoring | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in _DERIVED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({name: value for name, value in state.items() if name not in _DERIVED})
        self._scoring = None

    def with_intercept(self, intercept: np.ndarray) -> "LabelWeights":
        """Return the same weights with other intercepts; their arrangement is shared."""
        other = LabelWeights(self.coef, intercept)
        other._scoring = _Scoring.of(other, self._for_scoring())
        return other

    @property
    def by_feature(self) -> WeightsByFeature:
        """The weights by feature: the order that scoring reads; made when first needed."""
        return self._for_scoring().weights

    def _for_scoring(self) -> "_Scoring":
        if self._scoring is None:
            self._scoring = _Scoring.of(self)
        return self._scoring

    def topk(
        self, X: CsrRows, k: int, n_jobs: int | None, who: str = ""
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best labels of each row, exactly, and their scores.

        Parameters
        ----------
        X : CsrRows of shape (n, n_features)
            Instances.
        k : int
            How many, 0 among them; places beyond the number of labels hold -1 and -inf.
        n_jobs : int or None
            Threads, as joblib counts them.
        who : str, default=""
            Name of the estimator, for messages.

        Returns
        -------
        labels, scores : ndarray of int64 and of the weights' dtype, of shape (n, k)
            Best first; ties go to the smaller label. O(n_labels) memory for each thread.

        Raises
        ------
        ValueError
            If X has entries so large that scores could leave the range of their dtype.
        """
        rows, scoring = self._readable(X, who), self._for_scoring()
        known = min(k, len(self.intercept))

        def task(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
            labels = np.full((last - first, k), -1, np.int64)
            scores = np.full((last - first, k), -np.inf, self.intercept.dtype)
            if known:
                topk_rows(
                    *rows.arrays, first, *scoring.weights.arrays, scoring.bases, known, labels,
                    scores,
                )  # fmt: skip
            return labels, scores

        parts = self._map_rows(task, X.shape[0], n_jobs)
        labels = np.concatenate([part[0] for part in parts])
        return labels, np.concatenate([part[1] for part in parts])

    def topk_anytime(self, X: CsrRows, k: int, budget: Budget, who: str = "") -> AnytimeTopK:
        """Return the k best labels of each row that a budget per row allows to find.

        Parameters
        ----------
        X : CsrRows of shape (n, n_features)
            Instances.
        k : int
            How many; places beyond the number of labels hold -1 and -inf.
        budget : Budget
            Time or postings per row.
        who : str, default=""
            Name of the estimator, for messages.

        Returns
        -------
        AnytimeTopK

        Raises
        ------
        ValueError
            As in ``topk``.
        """
        scoring = self._for_scoring()
        n_ranked = len(self.intercept) - scoring.n_last
        return topk_anytime(
            self._readable(X, who), k, self.coef, scoring.weights, scoring.bases, n_ranked, budget
        )

    def scores(
        self, X: CsrRows, n_jobs: int | None, allowed: int | None = None, who: str = ""
    ) -> np.ndarray:
        """Return the scores of every label, dense, of shape (n, n_labels).

        Parameters
        ----------
        X : CsrRows of shape (n, n_features)
            Instances.
        n_jobs : int or None
            Threads, as joblib counts them.
        allowed : int or None, default=None
            Bytes that the array may take; None for what the machine has.
        who : str, default=""
            Name of the estimator, for messages.

        Raises
        ------
        MemoryBudgetError
            If the dense array does not fit into memory.
        ValueError
            As in ``topk``.
        """
        n_labels, dtype = len(self.intercept), self.intercept.dtype
        require_bytes(
            X.shape[0] * n_labels * dtype.itemsize,
            allowed,
            f"the dense scores, {X.shape[0]} instances x {n_labels} labels",
            "Use predict_topk, which never makes it.",
            who,
        )
        rows, scoring = self._readable(X, who), self._for_scoring()
        out = np.empty((X.shape[0], n_labels), dtype)

        def task(first: int, last: int) -> None:
            score_rows(*rows.arrays, first, *scoring.weights.arrays, scoring.bases, out[first:last])

        self._map_rows(task, X.shape[0], n_jobs)
        return out

    def _readable(self, X: CsrRows, who: str) -> CsrRows:
        """Return rows in the dtype of the weights, without stored zeros, small enough to score."""
        dtype, most = self.intercept.dtype, self._for_scoring().largest_entry
        with np.errstate(over="ignore"):
            rows = (X if X.dtype == dtype else X.astype(dtype)).without_zeros()
            norm2 = float(np.dot(rows.data, rows.data))
        # The norm bounds the largest magnitude, and is found faster.
        if not norm2 < most * most and np.abs(X.data).max() > most:
            raise ValueError(
                f"{who}{': ' if who else ''}X has entries up to {np.abs(X.data).max():.3g} in "
                f"magnitude; from {most:.3g} on scores may leave the range of {dtype}. Scale X as "
                "in fit."
            )
        return rows

    @staticmethod
    def _map_rows(task: Any, n: int, n_jobs: int | None) -> list[Any]:
        """Run `task` over ranges of rows, in threads: they share the output."""
        # To count threads takes 10 us, a third of the time of a row.
        n_threads = 1 if n_jobs is None and n <= ROWS_PER_TASK else count_threads(n_jobs)
        ranges = [
            (first, min(first + ROWS_PER_TASK, n)) for first in range(0, max(n, 1), ROWS_PER_TASK)
        ]
        if len(ranges) == 1:  # starting threads would take longer than a few rows do
            return [task(*ranges[0])]
        return Parallel(n_jobs=n_threads, require="sharedmem")(
            delayed(task)(first, last) for first, last in ranges
        )


#: What `LabelWeights` makes anew after it was pickled.
_DERIVED = ("_scoring",)


class _Scoring(NamedTuple):
    """What scoring reads.

    Attributes
    ----------
    weights : WeightsByFeature
        The weights.
    reach : float
        The largest sum of magnitudes of a label's weights.
    bases : ndarray of shape (2, n_labels)
        What scores are added to, as ``topk_rows`` takes it.
    n_last : int
        Labels that score -inf because they are unseen.
    largest_entry : float
        With entries of X up to here no score leaves the range of its dtype.
    """

    weights: WeightsByFeature
    reach: float
    bases: np.ndarray
    n_last: int
    largest_entry: float

    @classmethod
    def of(cls, model: LabelWeights, known: "_Scoring | None" = None) -> "_Scoring":
        """Return what scoring with a model reads, given that of one of the same weights."""
        if known is None:
            coef = model.coef
            sizes = sp.csr_array((np.abs(coef.data), coef.indices, coef.indptr), shape=coef.shape)
            reach = float(sizes.sum(axis=1, dtype=np.float64).max())
            weights = arrange_by_feature(coef)
        else:
            weights, reach = known.weights, known.reach
        bases = np.stack([model.intercept, model.intercept if model.prior is None else model.prior])
        offset = float(np.abs(bases).max(where=np.isfinite(bases), initial=1.0))
        largest = float(np.finfo(bases.dtype).max) / 4.0 / max(reach, offset)
        n_last = len(model.unseen) if len(model.unseen) < bases.shape[1] else 0
        if n_last:
            bases[:, model.unseen] = -np.inf
        return cls(weights, reach, read_only(bases), n_last, largest)
