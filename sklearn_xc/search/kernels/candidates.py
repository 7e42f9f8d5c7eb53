"""Candidates of a maximum inner product search: chosen by any scores, ranked by inner products."""

import numpy as np

from sklearn_xc._compile.emitters.dense_dot import dense_dot
from sklearn_xc._compile.emitters.int16_lanes import prefetch
from sklearn_xc._compile.jit import inlined, kernel
from sklearn_xc._weights.kernels.ranking import (
    select_first,
    sort_best_first,
    sort_space,
    worst_score,
)

_BLOCK = 128
#: Rows of W are asked for so many candidates ahead: they lie anywhere.
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
    dim, d = np.uint64(W.shape[1]), np.uint64(V.shape[1])
    for label in range(np.uint64(begin), np.uint64(end)):
        for i in range(np.uint64(scores.shape[0])):
            scores[i, label - np.uint64(begin)] = dense_dot(
                W, label * dim + np.uint64(column), V, (np.uint64(first) + i) * d, d
            )


def room_to_choose(k):
    """Return how many labels a buffer of ``choose_labels`` holds."""
    return 2 * k + _BLOCK


@kernel
def choose_labels(scores, first_label, k, sizes, floors, labels, best):
    """Collect the labels that may be among the k best of each row.

    Parameters
    ----------
    scores : ndarray of shape (n, n_new)
        Of the labels `first_label`, `first_label` + 1, ... NaN is never chosen.
    first_label : int
        Calls go through the labels in rising order.
    k : int
        At least 1.
    sizes : ndarray of int64 of shape (n,)
        How many labels are collected so far; 0 in the beginning.
    floors : ndarray of shape (n,)
        The k-th best score when last looked at; -inf in the beginning. Later labels need more.
    labels, best : ndarray of int32 and float of shape (n, room_to_choose(k))
        What is collected.
    """
    n_new = np.uint64(scores.shape[1])
    for i in range(scores.shape[0]):
        row, row_labels, row_best = scores[i], labels[i], best[i]
        size, floor = np.uint64(sizes[i]), floors[i]
        for begin in range(np.uint64(0), n_new, np.uint64(_BLOCK)):
            end = min(begin + np.uint64(_BLOCK), n_new)
            found = 0
            for at in range(begin, end):
                found += row[at] > floor
            if found == 0:
                continue
            for at in range(begin, end):
                row_labels[size], row_best[size] = np.uint64(first_label) + at, row[at]
                size += np.uint64(row[at] > floor)
            if size >= np.uint64(2 * k):
                select_first(row_best, row_labels, np.int64(size), k)
                floor, size = worst_score(row_best, k), np.uint64(k)
        sizes[i], floors[i] = size, floor


@kernel
def keep_best(k, sizes, labels, best):
    """Move the k best of what ``choose_labels`` collected to the front; at most k remain."""
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
        How many lead each row.
    labels, scores : ndarray of int32 and float of shape (m, k)
        Overwritten as far as there are labels.
    counts : ndarray of int64 of shape (m,)
        Overwritten with how many there are.
    """
    dim, d = np.uint64(W.shape[1]), np.uint64(V.shape[1])
    step = np.uint64(_CACHE_LINE // W.itemsize)
    inner, space = np.empty(chosen.shape[1], W.dtype), sort_space(chosen.shape[1])
    for i in range(np.uint64(chosen.shape[0])):
        own, n_own = chosen[i], np.uint64(n_chosen[i])
        for c in range(n_own):
            soon = np.uint64(own[min(c + _AHEAD, n_own - np.uint64(1))])
            begin = soon * dim + np.uint64(column)
            for line in range(begin, begin + d, step):
                prefetch(W, line)
            at = np.uint64(own[c]) * dim + np.uint64(column)
            inner[c] = dense_dot(W, at, V, (np.uint64(first) + i) * d, d)
            if offsets.shape[0] > 0:
                inner[c] += offsets[np.uint64(own[c])]
        counts[i] = write_best(inner, own, np.int64(n_own), labels[i], scores[i], space)


@inlined
def write_best(scores, labels, n, out_labels, out_scores, space):
    """Write the best of the leading n, best first, as many as there is room for; return how many.

    `scores` and `labels` are rearranged, `space` is a ``SortSpace`` for n.
    """
    k = min(n, out_labels.shape[0])
    if 2 * k < n:
        select_first(scores, labels, n, k)
        n = k
    sort_best_first(scores, labels, n, space)
    for c in range(np.uint64(k)):
        out_labels[c], out_scores[c] = labels[c], scores[c]
    return k
