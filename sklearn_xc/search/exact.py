"""Search that scores every row."""

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_xc._input.data import read_only
from sklearn_xc._parallel.threads import for_row_ranges
from sklearn_xc._weights.kernels.ranking import room_to_choose
from sklearn_xc.search.kernels.candidates import (
    choose_of_rows,
    keep_best,
    rank_labels,
    score_labels,
)
from sklearn_xc.search.protocol import Candidates

#: Queries and labels whose scores are held at a time: 4 MiB of float32 in each thread.
_CHUNK_QUERIES, _CHUNK_LABELS = 256, 4096
#: Labels chosen at a time by a thread, over all its queries.
_CHOSEN = 2**21
#: With so few queries BLAS would spend its time on copying W, and the dot kernel is faster.
_FEW_QUERIES = 10
#: Labels chosen beyond n_candidates, and the share of n_candidates that adds to them.
_SPARE, _SPARE_SHARE = 8, 64


class ExactIndex(BaseEstimator):
    """The rows of W with the largest inner products, found by scoring all rows.

    W is read in place, in blocks of labels against blocks of queries. Labels are chosen by the
    scores of BLAS, a few more than requested, and the chosen labels are scored again by a kernel
    that always adds in the same order. So scores, and the order of candidates, depend only on W
    and the query, and ties go to the smaller label. BLAS rounds differently for different numbers
    of queries: at the border of the selection, labels whose scores differ only by this rounding
    may replace one another if there are more of them than the few spare ones.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Number of threads, as joblib counts them. Each takes 256 queries at a time. Results do not
        depend on `n_jobs`.
    offsets : ndarray of shape (n_labels,) or None, default=None
        Added to the inner products; of the dtype of W. Labels with an offset of -inf are never
        found.

    Attributes
    ----------
    has_exact_scores : bool
        True.
    row_copies : float
        0.0; see `MipsIndex`.

    Notes
    -----
    A query takes O(n_labels d) time. Besides the result, a call holds 4 MiB of float32 scores, or
    8 MiB of float64, and about 256 n_candidates labels and scores in each thread.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_xc.search import ExactIndex
    >>> W = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    >>> index = ExactIndex()
    >>> index.build(W)
    >>> queries = np.array([[1.0, 0.0]])
    >>> index.query(queries, n_candidates=2).labels
    array([[0, 2]], dtype=int32)

    Change a row, and register the change:

    >>> W[1] = [2.0, 0.0]
    >>> index.update(np.array([1], np.int32))
    >>> index.query(queries, n_candidates=2).labels
    array([[1, 0]], dtype=int32)
    """

    has_exact_scores = True
    row_copies = 0.0

    def __init__(self, n_jobs: int | None = None, offsets: np.ndarray | None = None) -> None:
        self.n_jobs = n_jobs
        self.offsets = offsets

    def build(self, W: np.ndarray, first: int = 0, last: int | None = None, seed: int = 0) -> None:
        """Remember W and the columns; see `MipsIndex.build`."""
        self._W = read_only(W)
        self._first = first
        self._last = W.shape[1] if last is None else last

    def update(self, rows: np.ndarray) -> None:
        """Do nothing: W is read when it is searched."""

    def following(self, W: np.ndarray) -> "ExactIndex":
        """Return an index of W; see `MipsIndex.following`."""
        other = ExactIndex(self.n_jobs, self.offsets)
        other.build(W, self._first, self._last)
        return other

    def query(self, V: np.ndarray, n_candidates: int) -> Candidates:
        """Return the `n_candidates` best rows of each query; see `MipsIndex.query`."""
        W, V, first = self._W, read_only(V), self._first
        has_offsets = self.offsets is not None
        offsets = read_only(np.empty(0, W.dtype) if self.offsets is None else self.offsets)
        columns = W[:, first : self._last]
        n_labels = len(W)
        n_chosen = min(n_labels, n_candidates + n_candidates // _SPARE_SHARE + _SPARE)
        found = Candidates.empty(len(V), n_candidates, W.dtype)

        @np.errstate(over="ignore", invalid="ignore")  # of scores that overflow few are found
        def search(begin: int, end: int) -> None:
            m = end - begin
            sizes = np.zeros(m, np.int64)
            floors = np.full(m, -np.inf, W.dtype)
            labels = np.empty((m, room_to_choose(n_chosen)), np.int32)
            best = np.empty(labels.shape, W.dtype)
            buffer = np.empty(m * min(n_labels, _CHUNK_LABELS), W.dtype)
            for label in range(0, n_labels, _CHUNK_LABELS):
                stop = min(label + _CHUNK_LABELS, n_labels)
                scores = buffer[: m * (stop - label)].reshape(m, stop - label)
                if m <= _FEW_QUERIES:
                    score_labels(W, label, stop, first, V, begin, scores)
                else:
                    np.matmul(V[begin:end], columns[label:stop].T, out=scores)
                if has_offsets:
                    scores += offsets[label:stop]
                choose_of_rows(scores, label, n_chosen, sizes, floors, labels, best)
            keep_best(n_chosen, sizes, labels, best)
            rank_labels(W, first, V, begin, offsets, labels, sizes, *found.part(begin, end))

        n_together = max(1, min(_CHUNK_QUERIES, _CHOSEN // n_chosen))
        for_row_ranges(search, len(V), n_together, self.n_jobs)
        return found
