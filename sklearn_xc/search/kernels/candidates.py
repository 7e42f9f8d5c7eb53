"""Candidates of a maximum inner product search: chosen by any scores, ranked by inner products."""

import numpy as np

from sklearn_xc._compile.arithmetic.vectors import dot_of_rows
from sklearn_xc._compile.emitters.int16_lanes import prefetch
from sklearn_xc._compile.jit import kernel
from sklearn_xc._weights.kernels.ranking import choose_labels, select_first, sort_stack, write_best

#: Rows of W are prefetched this many candidates ahead: they are scattered.
_AHEAD = np.uint64(8)
_CACHE_LINE = 64


@kernel
def score_labels(W, begin, end, column, V, first, scores):
    """Write ``scores[i, l] = W[begin + l, column : column + d] . V[first + i]``.

    Parameters
    ----------
    W : ndarray of shape (n_labels, dim)
        C-contiguous.
    begin, end : int
        The labels.
    column : int
        Where the columns begin.
    V : ndarray of shape (n, d)
        Queries, C-contiguous, of the type of W.
    first : int
        The query of the first row of scores.
    scores : ndarray of shape (m, end - begin)
        Overwritten.
    """
    for label in range(np.uint64(begin), np.uint64(end)):
        for i in range(np.uint64(scores.shape[0])):
            scores[i, label - np.uint64(begin)] = dot_of_rows(
                W, label, V, np.uint64(first) + i, np.uint64(column)
            )


@kernel
def choose_of_rows(scores, first_label, k, sizes, floors, labels, best):
    """Collect the labels that may be among the k best of each row, as ``choose_labels`` does.

    Parameters
    ----------
    scores : ndarray of float of shape (n, n_new)
    first_label, k : int
    sizes, floors : ndarray of int64 and float of shape (n,)
        0 and -inf in the beginning.
    labels, best : ndarray of int32 and float of shape (n, room_to_choose(k))
    """
    for i in range(scores.shape[0]):
        sizes[i], floors[i] = choose_labels(
            scores[i], 0, first_label, k, np.uint64(sizes[i]), floors[i], labels[i], best[i]
        )


@kernel
def keep_best(k, sizes, labels, best):
    """Move the k best of what ``choose_of_rows`` collected to the front; at most k remain."""
    for i in range(labels.shape[0]):
        if sizes[i] > k:
            select_first(best[i], labels[i], sizes[i], k)
            sizes[i] = k


@kernel
def rank_labels(W, column, V, first, offsets, chosen, n_chosen, labels, scores, counts):
    """Write the best of some chosen labels by their inner products and offsets, best first.

    Ties go to the smaller label.

    Parameters
    ----------
    W : ndarray of shape (n_labels, dim)
        C-contiguous.
    column : int
        Where the columns begin.
    V : ndarray of shape (n, d)
        Queries, C-contiguous, of the type of W.
    first : int
        The query of the first row of `chosen`.
    offsets : ndarray of shape (n_labels,) or (0,)
        Added to the inner products; an empty one is for none.
    chosen : ndarray of int32 of shape (m, >= n_chosen)
        Distinct labels of each query; overwritten.
    n_chosen : ndarray of int64 of shape (m,)
        Number of labels at the head of each row.
    labels, scores : ndarray of int32 and float of shape (m, k)
        Overwritten as far as there are labels.
    counts : ndarray of int64 of shape (m,)
        Overwritten with their number.
    """
    dim, d = np.uint64(W.shape[1]), np.uint64(V.shape[1])
    step = np.uint64(_CACHE_LINE // W.itemsize)
    inner = np.empty(chosen.shape[1], W.dtype)
    space = sort_stack()
    for i in range(np.uint64(chosen.shape[0])):
        own = chosen[i]
        n_own = np.uint64(n_chosen[i])
        for c in range(n_own):
            soon = np.uint64(own[min(c + _AHEAD, n_own - np.uint64(1))])
            begin = soon * dim + np.uint64(column)
            for line in range(begin, begin + d, step):
                prefetch(W, line)
            label = np.uint64(own[c])
            inner[c] = dot_of_rows(W, label, V, np.uint64(first) + i, np.uint64(column))
            if offsets.shape[0] > 0:
                inner[c] += offsets[label]
        counts[i] = write_best(inner, own, np.int64(n_own), labels[i], scores[i], space)
