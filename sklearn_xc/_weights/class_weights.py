"""Dense weights of many classes, and the scores and normalisers they give."""

from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from sklearn_xc._input.data import CsrRows, read_only
from sklearn_xc._parallel.memory import require_bytes
from sklearn_xc._parallel.threads import count_threads
from sklearn_xc._weights.kernels.class_scores import (
    all_finite,
    log_normalisers,
    rough_log_normalisers,
    score_classes,
    topk_scores,
)

#: Most scores and most rows of a task: the weights are read once for each. Tasks have fewer rows
#: where threads would be idle, but not fewer than the least.
_CHUNK_SCORES = 2**25
_CHUNK_ROWS = 2048
_LEAST_ROWS = 512
#: Cost of the score of a pair, relative to one of the scores of all classes.
_COST_OF_PAIR = 64


class ClassWeights:
    """One dense weight vector per class.

    Parameters
    ----------
    coef : ndarray of shape (n_classes, n_features)
        Weights, one row per class.
    scale : ndarray of float64 of shape (n_classes,), default=None
        Factors on the rows of `coef`; None is 1.
    intercept : ndarray of float of shape (n_classes,), default=None
        Added to the scores of each class; None is 0.
    prior : ndarray of float of shape (n_classes,), default=None
        Scores of a row without a feature that has a weight; None is `intercept`.
    unseen : ndarray of int, default=None
        Classes without a training instance: they come last in a top-k, and have no probability.

    Notes
    -----
    Scores that are not finite, because X or the weights are too large for their dtype, raise
    FloatingPointError: no order, no top-k and no normaliser can be made of them.
    """

    def __init__(
        self,
        coef: np.ndarray,
        scale: np.ndarray | None = None,
        intercept: np.ndarray | None = None,
        prior: np.ndarray | None = None,
        unseen: np.ndarray | None = None,
    ) -> None:
        self.coef = read_only(coef)
        self.unseen = np.empty(0, np.int64) if unseen is None else unseen
        factors = np.ones(len(coef)) if scale is None else scale
        added = np.zeros(len(coef)) if intercept is None else intercept
        blank = added if prior is None else prior
        with np.errstate(over="ignore"):  # found by all_finite
            self.scale = read_only(factors.astype(coef.dtype))
            self.intercept = read_only(added.astype(coef.dtype))
            self.prior = read_only(blank.astype(coef.dtype))

    def topk(self, X: CsrRows, k: int, n_jobs: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best classes of each row, exactly, and their scores.

        Parameters
        ----------
        X : CsrRows of shape (n, n_features)
            Instances.
        k : int
            Places beyond the number of classes hold -1 and -inf.
        n_jobs : int or None
            Threads, as joblib counts them.

        Returns
        -------
        labels, scores : ndarray of int64 and of the weights' dtype, of shape (n, k)
            Best first; ties go to the smaller class.
        """
        labels = np.full((X.shape[0], k), -1, np.int64)
        best = np.full((X.shape[0], k), -np.inf, self.coef.dtype)
        kept = min(k, len(self.coef))

        def task(begin: int, end: int, scores: np.ndarray) -> None:
            if self.unseen.size:
                lowest = scores.min(axis=1, keepdims=True)
                lower = np.minimum(lowest - 1, np.nextafter(lowest, -np.inf))
                scores[:, self.unseen] = lower.astype(scores.dtype)
            topk_scores(scores, kept, labels[begin:end], best[begin:end])

        self.map_scores(task, X, n_jobs)
        return labels, best

    def scores(
        self, X: CsrRows, n_jobs: int | None, allowed: int | None = None, caller: str = ""
    ) -> np.ndarray:
        """Return the scores of every class, dense, of shape (n, n_classes).

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
        """
        n_classes = len(self.coef)
        dtype = self.coef.dtype
        require_bytes(
            X.shape[0] * n_classes * dtype.itemsize,
            allowed,
            f"the dense scores, {X.shape[0]} instances x {n_classes} classes",
            "Use predict_topk, which never makes it.",
            caller,
        )
        out = np.empty((X.shape[0], n_classes), dtype)

        def task(first: int, last: int, scores: np.ndarray) -> None:
            out[first:last] = scores

        self.map_scores(task, X, n_jobs)
        return out

    def scorer_of(
        self, classes: np.ndarray, n_jobs: int | None, allowed: int | None = None, caller: str = ""
    ) -> Callable[[CsrRows], np.ndarray]:
        """Return a function for the scores of some classes, bitwise those of ``scores``.

        Parameters
        ----------
        classes : ndarray of int64
            Distinct.
        n_jobs, allowed, caller
            As of ``scores``.

        Returns
        -------
        callable
            From CsrRows to scores, (n, len(classes)), with the errors of ``scores``.

        Raises
        ------
        MemoryBudgetError
            If a copy of their weights does not fit into memory.
        """
        n = len(classes)
        d = self.coef.shape[1]
        require_bytes(
            n * d * self.coef.itemsize,
            allowed,
            f"the weights of {n} classes x {d} features",
            "Ask for fewer candidates.",
            caller,
        )
        coef = self.coef[classes]
        scale = self.scale[classes].astype(np.float64)
        # A row that these classes have no weight for may have one of another class.
        mark = np.finfo(coef.dtype).max
        some = ClassWeights(coef, scale, self.intercept[classes], np.full(n, mark))

        def score(X: CsrRows) -> np.ndarray:
            scores = some.scores(X, n_jobs, allowed, caller)
            silent = np.flatnonzero((scores == mark).all(axis=1))
            is_blank = self._are_blank(X, silent, n_jobs)
            scores[silent[is_blank]] = self.prior[classes]
            scores[silent[~is_blank]] = self.intercept[classes]
            return scores

        return score

    def pair_scores(
        self, X: CsrRows, indptr: np.ndarray, classes: np.ndarray, n_jobs: int | None
    ) -> np.ndarray:
        """Return the scores of some classes of each row, in the time that these take.

        Parameters
        ----------
        X : CsrRows of shape (n, n_features)
            Instances.
        indptr, classes : ndarray of int64
            The classes of each row, as in a CSR.
        n_jobs : int or None
            Threads.

        Returns
        -------
        ndarray of the weights' dtype, of shape (n_pairs,)
            Those of ``scores``, but for rounding: where there are few they are summed in float64,
            in another order. Which way a row goes depends on it alone.
        """
        out = np.empty(len(classes))
        is_silent = np.zeros(X.shape[0], bool)
        is_long = _COST_OF_PAIR * np.diff(indptr) > len(self.coef)
        step = max(1, min(_LEAST_ROWS, _CHUNK_SCORES // len(self.coef)))
        long = np.flatnonzero(is_long)
        for first in range(0, len(long), step):
            some = long[first : first + step]
            for i, of_all in zip(some, self.scores(X.take(some), n_jobs), strict=True):
                out[indptr[i] : indptr[i + 1]] = of_all[classes[indptr[i] : indptr[i + 1]]]
        for i in np.flatnonzero(~is_long):
            own, entries = slice(indptr[i], indptr[i + 1]), slice(X.indptr[i], X.indptr[i + 1])
            values = X.data[entries].astype(np.float64)
            weights = self.coef[classes[own, None], X.indices[entries]]
            products = (weights * values).sum(axis=1) * self.scale[classes[own]]
            is_silent[i] = not products.any()
            out[own] = products + self.intercept[classes[own]]
        silent = np.flatnonzero(is_silent)
        for i in silent[self._are_blank(X, silent, n_jobs)]:
            own = slice(indptr[i], indptr[i + 1])
            out[own] = self.prior[classes[own]]
        scores = out.astype(self.coef.dtype)
        if not np.isfinite(scores).all():
            raise FloatingPointError(f"scores are beyond the range of {scores.dtype}")
        return scores

    def _are_blank(self, X: CsrRows, rows: np.ndarray, n_jobs: int | None) -> np.ndarray:
        """Return which of some rows no class has a weight for, bool (len(rows),)."""
        has_features = X.indptr[rows + 1] > X.indptr[rows]
        is_blank = np.ones(len(rows), bool)
        if has_features.any():
            mark = np.finfo(self.coef.dtype).max
            scale = self.scale.astype(np.float64)
            marks = np.full(len(self.coef), mark)
            everything = ClassWeights(self.coef, scale, None, marks)
            best = everything.topk(X.take(rows[has_features]), 1, n_jobs)[1][:, 0]
            is_blank[has_features] = best == mark
        return is_blank

    def log_normalisers(self, X: CsrRows, n_jobs: int | None) -> np.ndarray:
        """Return ``log(sum_k exp(x.w_k))`` of each row, float64 of shape (n,)."""
        out = np.empty(X.shape[0])

        def task(first: int, last: int, scores: np.ndarray) -> None:
            scores[:, self.unseen] = -np.inf
            log_normalisers(scores, out[first:last])

        self.map_scores(task, X, n_jobs)
        return out

    def log_losses(
        self, X: CsrRows, rows: np.ndarray, classes: np.ndarray, n_jobs: int | None
    ) -> np.ndarray:
        """Return ``-log p(class | row)`` of pairs, float64, from the exact normaliser.

        Parameters
        ----------
        X : CsrRows of shape (n, n_features)
            Instances; those that no pair names are not scored.
        rows, classes : ndarray of int of shape (n_pairs,)
            The pairs.
        n_jobs : int or None
            Threads.
        """
        out = np.empty(len(rows))

        def task(pairs: np.ndarray, at: np.ndarray, scores: np.ndarray) -> None:
            normalisers = np.empty(len(scores))
            log_normalisers(scores, normalisers)
            out[pairs] = normalisers[at] - scores[at, classes[pairs]]

        self._map_pairs(task, X, rows, n_jobs)
        return out

    def hardest(
        self, X: CsrRows, rows: np.ndarray, classes: np.ndarray, n_hard: int, n_jobs: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the best-scored other classes of pairs, and their log-losses to within 0.003.

        Parameters
        ----------
        X : CsrRows of shape (n, n_features)
            Instances; those that no pair names are not scored.
        rows, classes : ndarray of int of shape (n_pairs,)
            The pairs.
        n_hard : int
            How many classes; at most all others.
        n_jobs : int or None
            Threads.

        Returns
        -------
        hard : ndarray of int32 of shape (n_pairs, n_hard)
            Classes other than the pair's own, best first.
        log_losses : ndarray of float64 of shape (n_pairs,)
            ``-log p(class | row)``, nearly.
        """
        hard, losses = np.empty((len(rows), n_hard), np.int32), np.empty(len(rows))

        def task(pairs: np.ndarray, at: np.ndarray, scores: np.ndarray) -> None:
            best = np.empty((len(scores), n_hard + 1), np.int64)
            topk_scores(scores, n_hard + 1, best, np.empty(best.shape, scores.dtype))
            normalisers = np.empty(len(scores))
            rough_log_normalisers(scores, normalisers)
            losses[pairs] = normalisers[at] - scores[at, classes[pairs]]
            is_own = best[at] == classes[pairs, None]
            others = np.argsort(is_own, axis=1, kind="stable")[:, :n_hard]
            hard[pairs] = np.take_along_axis(best[at], others, axis=1)

        self._map_pairs(task, X, rows, n_jobs)
        return hard, np.maximum(losses, 0.0)

    def _map_pairs(
        self,
        task: Callable[[np.ndarray, np.ndarray, np.ndarray], Any],
        X: CsrRows,
        rows: np.ndarray,
        n_jobs: int | None,
    ) -> None:
        """Run `task` on pairs, where the row of each is in the scores, and the scores."""
        named, place = np.unique(rows, return_inverse=True)
        order = np.argsort(place, kind="stable")
        bounds = np.searchsorted(place[order], np.arange(len(named) + 1))

        def of_rows(first: int, last: int, scores: np.ndarray) -> None:
            pairs = order[bounds[first] : bounds[last]]
            task(pairs, place[pairs] - first, scores)

        self.map_scores(of_rows, X if len(named) == X.shape[0] else X.take(named), n_jobs)

    def map_scores(
        self, task: Callable[[int, int, np.ndarray], Any], X: CsrRows, n_jobs: int | None
    ) -> None:
        """Run ``task(first, last, scores)`` on ranges of rows and their scores, in threads."""
        dtype = self.coef.dtype
        with np.errstate(over="ignore"):  # found by all_finite
            values = X.data.astype(dtype, copy=False)
        arrays = X.indptr, X.indices, read_only(values)
        n = X.shape[0]
        n_classes = len(self.coef)
        n_threads = count_threads(n_jobs)
        rows = _rows_per_task(n, n_classes, n_threads)

        def scored(first: int) -> None:
            last = min(first + rows, n)
            scores = np.empty((last - first, n_classes), dtype)
            score_classes(
                arrays, first, last, self.coef, self.scale, self.intercept, self.prior, scores
            )
            if not all_finite(scores):
                raise FloatingPointError(f"scores are beyond the range of {dtype}")
            task(first, last, scores)

        if n <= rows:  # starting threads would take longer
            scored(0)
        else:
            Parallel(n_jobs=n_threads, require="sharedmem")(
                delayed(scored)(first) for first in range(0, n, rows)
            )


def _rows_per_task(n: int, n_classes: int, n_threads: int) -> int:
    for_each_thread = -(-n // n_threads)
    rows = min(_CHUNK_ROWS, max(_LEAST_ROWS, for_each_thread))
    return min(n, rows, max(1, _CHUNK_SCORES // n_classes))


def scores_bytes(n: int, n_classes: int, itemsize: int, n_jobs: int | None) -> int:
    """Return the bytes of the scores of n rows that threads hold at a time."""
    n_threads = count_threads(n_jobs)
    return n_threads * _rows_per_task(n, n_classes, n_threads) * n_classes * itemsize
