"""Sparse weights of many labels, and the scores they give."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed

from sklearn_xc._input.data import CsrRows, read_only, shares_any
from sklearn_xc._parallel.memory import require_bytes
from sklearn_xc._parallel.threads import count_threads
from sklearn_xc._state.schema import Array, Record, declares
from sklearn_xc._weights.by_feature import ByFeature, arrange_by_feature, only_labels
from sklearn_xc._weights.compact import CompactWeights, compact
from sklearn_xc._weights.kernels.row_scores import score_pairs, score_rows, topk_rows

#: Rows of X scored by one task.
CHUNK_ROWS = 256
#: Dense scores that are held at a time for pairs.
_CHUNK_SCORES = 2**20
#: Cost of a weight of a pair, relative to a posting that is read for all labels.
_COST_OF_ENTRY = 2


@declares(
    by_feature=Record("WeightsByFeature", "CompactWeights"),
    intercept=Array("real", "labels"),
    prior=Array("real", "labels", optional=True),
    unseen=Array("int64", None, below="labels", ascending=True),
)
class LabelWeights:
    """One sparse weight vector and one intercept per label.

    Parameters
    ----------
    coef : csr_array of shape (n_labels, n_features)
        Weights, one row per label.
    intercept : ndarray of shape (n_labels,)
        Intercepts, of the same dtype.
    prior : ndarray of shape (n_labels,), default=None
        Scores of a row without weighted features, of the same dtype; None for `intercept`.
    unseen : ndarray of int64, default=()
        Labels that score -inf, so that they come last; none if they are all.
    """

    _coef: sp.csr_array | None = None
    _by_feature: ByFeature | None = None
    _scoring: "_Scoring | None" = None
    #: Labels that ``topk`` finds at most, if not all.
    _n_ranked: int | None = None

    def __init__(
        self,
        coef: sp.csr_array,
        intercept: np.ndarray,
        prior: np.ndarray | None = None,
        unseen: Any = (),
    ) -> None:
        self._coef = coef
        self.intercept = intercept
        self.prior = prior
        self.unseen = np.asarray(unseen, np.int64)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._schema}  # type: ignore[attr-defined]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._by_feature = state["by_feature"]
        self.intercept, self.prior = state["intercept"], state["prior"]
        self.unseen = state["unseen"]

    @property
    def coef(self) -> sp.csr_array:
        """The weights, one row per label; made when first needed."""
        if self._coef is None:
            self._coef = self.by_feature.by_label()
        return self._coef

    @property
    def by_feature(self) -> ByFeature:
        """The weights by feature, as scoring reads them; made when first needed."""
        if self._by_feature is None:
            self._by_feature = arrange_by_feature(self._coef)
        return self._by_feature

    @property
    def bases(self) -> np.ndarray:
        """Scores that the weights are added to, as ``topk_rows`` takes them; a new array."""
        return np.stack([self.intercept, self.intercept if self.prior is None else self.prior])

    @property
    def is_compact(self) -> bool:
        """Whether weights are rounded to a byte each."""
        return isinstance(self._by_feature, CompactWeights)

    def compact(self) -> "LabelWeights":
        """Return the same weights in a quarter of the memory, rounded."""
        if self.is_compact:
            return self
        return self._changed(_coef=None, _by_feature=compact(self.coef))

    def with_intercept(self, intercept: np.ndarray) -> "LabelWeights":
        """Return the same weights with other intercepts, and no label unseen."""
        _ = self.by_feature  # shared
        none = np.empty(0, np.int64)
        return self._changed(intercept=intercept, prior=None, unseen=none)

    def among(self, labels: np.ndarray) -> "LabelWeights":
        """Return the same weights; ``topk`` finds these labels only, -1 and -inf after."""
        scoring = self._for_scoring()
        bases = np.full_like(scoring.bases, -np.inf)
        bases[:, labels] = scoring.bases[:, labels]
        scoring = scoring._replace(bases=read_only(bases))
        return self._changed(_scoring=scoring, _n_ranked=len(labels))

    def _changed(self, **attributes: Any) -> "LabelWeights":
        other = object.__new__(LabelWeights)
        vars(other).update(vars(self) | {"_scoring": None} | attributes)
        return other

    def _for_scoring(self) -> "_Scoring":
        if self._scoring is None:
            self._scoring = _Scoring.of(self)
        return self._scoring

    def topk(
        self, X: CsrRows, k: int, n_jobs: int | None, caller: str = ""
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best labels of each row, exactly, and their scores.

        Parameters
        ----------
        X : CsrRows of shape (n, n_features)
            Instances.
        k : int
            May be 0; places beyond the number of labels hold -1 and -inf.
        n_jobs : int or None
            Threads, as joblib counts them.
        caller : str, default=""
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
        rows = self._readable(X, caller)
        scoring = self._for_scoring()
        known = min(k, len(self.intercept) if self._n_ranked is None else self._n_ranked)
        labels = np.full((X.shape[0], k), -1, np.int64)
        scores = np.full((X.shape[0], k), -np.inf, self.intercept.dtype)

        def task(first: int, last: int) -> None:
            best = labels[first:last], scores[first:last]
            topk_rows(rows.arrays, first, scoring.weights, scoring.bases, known, *best)

        if known:
            self._map_rows(task, X.shape[0], n_jobs)
        return labels, scores

    def scores(
        self, X: CsrRows, n_jobs: int | None, allowed: int | None = None, caller: str = ""
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
        caller : str, default=""
            Name of the estimator, for messages.

        Raises
        ------
        MemoryBudgetError
            If the dense array does not fit into memory.
        ValueError
            As in ``topk``.
        """
        n_labels = len(self.intercept)
        dtype = self.intercept.dtype
        require_bytes(
            X.shape[0] * n_labels * dtype.itemsize,
            allowed,
            f"the dense scores, {X.shape[0]} instances x {n_labels} labels",
            "Use predict_topk, which never makes it.",
            caller,
        )
        rows = self._readable(X, caller)
        scoring = self._for_scoring()
        out = np.empty((X.shape[0], n_labels), dtype)

        def task(first: int, last: int) -> None:
            score_rows(rows.arrays, first, scoring.weights, scoring.bases, out[first:last])

        self._map_rows(task, X.shape[0], n_jobs)
        return out

    def pair_scores(
        self, X: CsrRows, indptr: np.ndarray, labels: np.ndarray, caller: str = ""
    ) -> np.ndarray:
        """Return the scores of some labels of each row, in time proportional to their weights.

        Parameters
        ----------
        X : CsrRows of shape (n, n_features)
            Instances.
        indptr, labels : ndarray of int64
            The labels of each row, as in a CSR.
        caller : str, default=""
            Name of the estimator, for messages.

        Returns
        -------
        ndarray of the weights' dtype, of shape (n_pairs,)
            Those of ``scores``, up to rounding: where there are few they are summed in float64,
            in another order. The choice for a row depends on that row alone.

        Raises
        ------
        ValueError
            As in ``topk``.
        """
        rows = self._readable(X, caller)
        coef = self.coef
        work = self.by_feature.work
        out = np.empty(len(labels), self.intercept.dtype)
        is_blank = ~shares_any(rows, work > 0)
        # Rows with many labels: the scores of all are cheaper.
        n_entries = np.concatenate(([0], np.cumsum(np.diff(coef.indptr)[labels])))[indptr]
        postings = np.concatenate(([0.0], np.cumsum(work[rows.indices])))[rows.indptr]
        is_long = _COST_OF_ENTRY * np.diff(n_entries) > np.diff(postings) + coef.shape[0]
        ends = coef.indptr.astype(np.int64, copy=False)
        weights = tuple(map(read_only, (ends, coef.indices, coef.data)))
        pairs = read_only(indptr), read_only(labels)
        x = np.zeros(X.shape[1])
        score_pairs(rows.arrays, weights, *pairs, read_only(self.bases), is_blank, is_long, x, out)
        long = np.flatnonzero(is_long & ~is_blank)
        step = max(1, _CHUNK_SCORES // coef.shape[0])
        for first in range(0, len(long), step):
            some = long[first : first + step]
            for i, scores in zip(some, self.scores(X.take(some), 1, None, caller), strict=True):
                own = slice(indptr[i], indptr[i + 1])
                out[own] = scores[labels[own]]
        return out

    def scorer_of(
        self, labels: np.ndarray, n_jobs: int | None, allowed: int | None = None, caller: str = ""
    ) -> Callable[[CsrRows], np.ndarray]:
        """Return a function for the scores of some labels, bitwise those of ``scores``.

        Parameters
        ----------
        labels : ndarray of int64
            Distinct, and none of `unseen`.
        n_jobs, allowed, caller
            As of ``scores``.

        Returns
        -------
        callable
            From CsrRows to scores, (n, len(labels)), with the errors of ``scores``.
        """
        everything = self.by_feature
        scoring = self._for_scoring()
        some = LabelWeights(self.coef, self.intercept[labels])
        some._by_feature = only_labels(everything, self.coef, labels)
        some._scoring = _Scoring.of(some)._replace(largest_entry=scoring.largest_entry)
        prior = self.bases[1, labels]
        is_weighted = everything.work > 0

        def score(X: CsrRows) -> np.ndarray:
            scores = some.scores(X, n_jobs, allowed, caller)
            scores[~shares_any(X.without_zeros(), is_weighted)] = prior
            return scores

        return score

    def _readable(self, X: CsrRows, caller: str) -> CsrRows:
        """Return rows in the dtype of the weights, without stored zeros, small enough to score."""
        dtype, most = self.intercept.dtype, self._for_scoring().largest_entry
        with np.errstate(over="ignore"):
            rows = (X if X.dtype == dtype else X.astype(dtype)).without_zeros()
            norm2 = float(np.dot(rows.data, rows.data))
        # The norm bounds the largest magnitude, and is found faster.
        if not norm2 < most * most and np.abs(X.data).max() > most:
            raise ValueError(
                f"{caller}{': ' if caller else ''}X has entries up to {np.abs(X.data).max():.3g} "
                f"in magnitude; from {most:.3g} on scores may leave the range of {dtype}. Scale X "
                "as in fit."
            )
        return rows

    @staticmethod
    def _map_rows(task: Callable[[int, int], None], n: int, n_jobs: int | None) -> None:
        """Run `task` over ranges of rows, in threads: they share the output."""
        if n <= CHUNK_ROWS:  # counting threads takes 10 us, a third of the time of a row
            task(0, n)
            return
        Parallel(n_jobs=count_threads(n_jobs), require="sharedmem")(
            delayed(task)(first, min(first + CHUNK_ROWS, n)) for first in range(0, n, CHUNK_ROWS)
        )


class _Scoring(NamedTuple):
    """Arrays that scoring reads.

    Attributes
    ----------
    weights : tuple of ndarray
        Weights, as ``topk_rows`` takes them.
    bases : ndarray of shape (2, n_labels)
        Scores that the weights are added to, as ``topk_rows`` takes them.
    largest_entry : float
        With entries of X up to here no score leaves the range of its dtype.
    """

    weights: tuple[Any, ...]
    bases: np.ndarray
    largest_entry: float

    @classmethod
    def of(cls, model: LabelWeights) -> "_Scoring":
        """Return the arrays for a model."""
        weights: Any = model.by_feature
        bases = model.bases
        offset = float(np.abs(bases).max(where=np.isfinite(bases), initial=1.0))
        largest = float(np.finfo(bases.dtype).max) / 4.0 / max(weights.reach, offset)
        if len(model.unseen) < bases.shape[1]:
            bases[:, model.unseen] = -np.inf
        return cls(weights.arrays, read_only(bases), largest)
