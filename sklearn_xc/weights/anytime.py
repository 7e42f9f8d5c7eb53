"""Top-k prediction that stops when its budget is spent, and says what it may have missed."""

from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np

from sklearn_xc._data import CsrRows, read_only
from sklearn_xc.kernels.prediction.anytime import advance_row, finish_row, start_row
from sklearn_xc.kernels.prediction.row_scores import N_TIERS
from sklearn_xc.kernels.prediction.selection import N_LANES


class AnytimeTopK(NamedTuple):
    """Answer of ``predict_topk_anytime``.

    Attributes
    ----------
    indices : ndarray of int64 of shape (n, k)
        Positions in ``classes_``, padded with -1.
    scores : ndarray of float of shape (n, k)
        Their scores from all features, padded with -inf.
    exact : ndarray of bool of shape (n,)
        Whether a row's labels and their order are those of ``predict_topk``.
    bound_on_missed_score : ndarray of float64 of shape (n,)
        No label that is not returned scores more; -inf where all are returned.
    """

    indices: np.ndarray
    scores: np.ndarray
    exact: np.ndarray
    bound_on_missed_score: np.ndarray


class Budget(Protocol):
    """What one row may cost."""

    def start(self) -> None:
        """Begin a row."""

    def next_slice(self) -> float:
        """Return how many postings may be read next; 0 to stop."""


class TimeBudget:
    """A time per row, in slices of half of what is left at the speed of the slices before.

    Parameters
    ----------
    seconds : float
        Time per row.
    clock : callable, default=time.perf_counter
        Returns seconds.
    """

    #: Postings per second before anything was measured: about half of what a core does.
    FIRST_SPEED = 5e8
    #: Least work of a slice: below, the call would take longer than the work.
    LEAST_SLICE = 4096.0

    def __init__(self, seconds: float, clock: Callable[[], float] = perf_counter) -> None:
        self._seconds = seconds
        self._clock = clock
        self._speed = self.FIRST_SPEED

    def start(self) -> None:
        """Begin a row."""
        self._began = self._last = self._clock()
        self._slice = 0.0

    def next_slice(self) -> float:
        """Return the postings of the next slice.

        A row's first slice is given whenever its budget is not 0, so that a bad guess of the speed
        is always corrected. Later ones are not, if even the least would take too long.
        """
        now = self._clock()
        left = self._seconds - (now - self._began)
        if self._slice and now > self._last:
            self._speed = self._slice / (now - self._last)
            if self._speed * left < self.LEAST_SLICE:
                return 0.0
        self._last = now
        self._slice = max(self._speed * left / 2, self.LEAST_SLICE) if left > 0 else 0.0
        return self._slice


def topk_anytime(
    X: CsrRows,
    k: int,
    coef: Any,
    weights: Any,
    bases: np.ndarray,
    n_ranked: int,
    budget: Budget,
) -> AnytimeTopK:
    """Return the k best labels of each row that a budget allows to find.

    Parameters
    ----------
    X : CsrRows of shape (n, n_features)
        Instances, in the dtype of the weights.
    k : int
        How many labels.
    coef : csr_array of shape (n_labels, n_features)
        Weights.
    weights : WeightsByFeature or CompactWeights
        The same weights.
    bases : ndarray of shape (2, n_labels)
        Intercepts, and the scores of a row of which no feature has a weight; -inf for labels that
        come last.
    n_ranked : int
        The number of the others, at least 1.
    budget : Budget
        Asked before every slice of work. What comes after the last slice, O(n_labels) and the
        evaluation of a few candidates, is not counted.

    Returns
    -------
    AnytimeTopK
        A row for which the budget lasted has the same bits as in ``LabelWeights.topk``. Bounds are
        on labels that do not come last.
    """
    n, dtype = X.shape[0], bases.dtype
    w, lengths, known = weights, np.diff(X.indptr).tolist(), min(k, n_ranked)
    *lists, tier, packing = w.arrays
    order, ends = np.empty(max(lengths), np.int64), np.empty(2 * N_TIERS + 1, np.int64)
    by_label = read_only(coef.indptr), read_only(coef.indices), read_only(coef.data)
    scores, lanes = np.zeros(w.columns.shape[1], dtype), np.empty(N_LANES, dtype)
    row = np.zeros(X.shape[1], dtype)
    n_candidates = min(_n_candidates(k), n_ranked)
    candidates, partial = np.empty(n_candidates, np.int64), np.empty(n_candidates, dtype)
    largest = float(np.abs(bases).max(where=bases > -np.inf, initial=0.0))
    bounds = w.highest, w.lowest, largest, float(np.finfo(dtype).eps)
    last = np.flatnonzero(bases[0] == -np.inf)[: k - known]
    answer = AnytimeTopK(
        np.full((n, k), -1, np.int64), np.full((n, k), -np.inf, dtype), np.zeros(n, bool),
        np.empty(n),
    )  # fmt: skip
    for i in range(n):
        budget.start()
        base = bases[int(not w.work[X.indices[X.indptr[i] : X.indptr[i + 1]]].any())]
        n_lists = start_row(X.indptr, X.indices, i, tier, base, order, ends, scores)
        done, work = 0, budget.next_slice()
        while done < lengths[i] and work > 0:
            done = advance_row(
                X.indices, X.data, order, done, lengths[i], n_lists, *lists, packing, w.work, work,
                scores,
            )  # fmt: skip
            work = budget.next_slice()
        answer.exact[i], answer.bound_on_missed_score[i] = finish_row(
            X.indices, X.data, order, done, lengths[i], *by_label, base, *bounds, known,
            n_ranked, scores, row, candidates, partial, lanes, answer.indices[i], answer.scores[i],
        )  # fmt: skip
    answer.indices[:, known : known + len(last)] = last
    return answer


def _n_candidates(k: int) -> int:
    """Return how many labels are evaluated to the end where the budget did not last."""
    return k + max(k // 2, 16)
