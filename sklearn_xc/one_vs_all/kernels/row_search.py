"""The rows with the highest scores of a label.

``list_similar_rows`` finds first working sets by posting lists: a high score needs a feature of
large weight, and few rows have one. The others choose among the rows that a screen lists.

Sparse points are a tuple ``(indptr, features, weights)``, where the weights of point m, intercept
last, begin at ``indptr[m] + m``.
"""

import functools
from typing import Any

import numpy as np

from sklearn_xc._compile.jit import inlined, kernel
from sklearn_xc.one_vs_all.kernels.sparse_rows import ROWS_AHEAD, prefetch_row, row_dot_double

#: Points with larger or smaller numbers are not searched: sums are taken in float32.
SMALLEST, LARGEST = 1e-20, 1e20
#: Scores are clipped to this.
_MOST = np.float32(1e38)
#: Number of bins in a histogram of scores.
_PARTS = 256
_ONE = np.uint64(1)


@inlined
def level_of_highest(values, n_wanted, counts):
    """Return the level that about `n_wanted` of the values above 0 reach, at most.

    `counts` is work space of shape (_PARTS + 1,).
    """
    largest = np.float32(1e-30)
    for s in range(values.shape[0]):
        largest = max(largest, values[s])
    scale = np.float32(_PARTS - 0.1) / largest
    for level in range(counts.shape[0]):  # to assign a slice takes a second to compile
        counts[level] = 0
    for s in range(values.shape[0]):
        if values[s] > np.float32(0.0):
            counts[np.int64(values[s] * scale)] += 1
    level = _PARTS - 1
    total = counts[level]
    while level > 0 and total + counts[level - 1] <= n_wanted:
        level -= 1
        total += counts[level]
    return np.float32(level) / scale


@inlined
def with_room(array, n):
    """Return an array with room for n values that begins with the same values."""
    if n <= array.shape[0]:
        return array
    grown = np.empty(max(n, 2 * array.shape[0]), array.dtype)
    for s in range(array.shape[0]):  # to assign a slice takes a second to compile
        grown[s] = array[s]
    return grown


@inlined
def add_up_scores(by_feature, features, values, scores, met):
    """Add up the scores of rows by some features; return how many rows `met` lists."""
    indptr, rows, data = by_feature
    n_met = np.uint32(0)
    for s in range(features.shape[0]):
        j = np.uint32(features[s])
        v = values[s]
        for t in range(np.uint64(indptr[j]), np.uint64(indptr[j + _ONE])):
            i = np.uint32(rows[t])
            old = scores[i]
            score = old + v * np.float32(data[t])
            met[n_met] = np.int32(i)
            n_met += np.uint32(old == np.float32(0.0) and score != np.float32(0.0))
            scores[i] = score
    return np.int64(n_met)


@inlined
def write_point(points, m, dense):
    """Write a sparse point into a vector of 0."""
    indptr, features, weights = points
    for t in range(indptr[m], indptr[m + 1]):
        dense[np.uint32(features[t])] = weights[t + m]


@inlined
def erase_point(points, m, dense):
    """Write 0 again where ``write_point`` wrote."""
    indptr, features, _ = points
    for t in range(indptr[m], indptr[m + 1]):
        dense[np.uint32(features[t])] = 0


@inlined
def write_scores(rows, score, scores):
    """Write the same score for some rows."""
    for r in range(rows.shape[0]):
        scores[np.uint32(rows[r])] = score


@inlined
def append_similar(met, n_met, positives, n_wanted, counts, sums, scores, out, at):
    """Append the positives and the rows of the highest scores; return the end of the list."""
    write_scores(positives, np.float32(-1.0), scores)
    for r in range(positives.shape[0]):
        out[at + r] = positives[r]
    at += positives.shape[0]
    for s in range(n_met):
        i = np.uint32(met[s])
        sums[s] = min(scores[i], _MOST)
        scores[i] = np.float32(0.0)
    lowest = level_of_highest(sums[:n_met], n_wanted, counts)
    for s in range(n_met):
        if sums[s] > np.float32(0.0) and sums[s] >= lowest:
            out[at] = met[s]
            at += 1
    write_scores(positives, np.float32(0.0), scores)
    return at


@kernel
def list_similar_rows(by_feature, lists, points, n_wanted, spaces, out_indptr, out):
    """List for each label its positives, and other rows of high scores.

    Parameters
    ----------
    by_feature : tuple
        ``(indptr, rows, values)``: X by feature.
    lists : tuple of ndarray of int64 and int32
        ``(indptr, rows)``: positive rows of each label.
    points : tuple of ndarray of int64, int32 and float32
        ``(indptr, features, values)``: for each label, features and how much they raise scores.
    n_wanted : ndarray of int64 of shape (m,)
        About how many rows to list.
    spaces : tuple of ndarray of float32 and int32 of shape (n + 1,)
        Work space ``(scores, met)``; `scores` is 0 between calls.
    out_indptr, out : ndarray of int64 of shape (m + 1,) and int32
        `out_indptr` is overwritten, `out` in place or by a larger one.

    Returns
    -------
    ndarray of int32
        The lists, one after the other.
    """
    scores, met = spaces
    counts, sums = np.empty(_PARTS + 1, np.int64), np.empty(0, np.float32)
    out_indptr[0] = 0
    for m in range(n_wanted.shape[0]):
        positives = lists[1][lists[0][m] : lists[0][m + 1]]
        first, last = points[0][m], points[0][m + 1]
        n_met = add_up_scores(by_feature, points[1][first:last], points[2][first:last], scores, met)
        at = out_indptr[m]
        out = with_room(out, at + positives.shape[0] + n_met)
        sums = with_room(sums, n_met)
        out_indptr[m + 1] = append_similar(
            met, n_met, positives, n_wanted[m], counts, sums, scores, out, at
        )
    return out


@kernel
def list_new_rows(lists, counts, known, is_known, out_indptr):
    """Keep the rows of each list that are not known; write their cumulative numbers.

    Parameters
    ----------
    lists, counts : ndarray of int32 and int64
        Lists from a screen, and their lengths. Changed in place.
    known : tuple of ndarray of int64 and int32
        ``(indptr, rows)``: the known rows of each list.
    is_known : ndarray of uint8 of shape (n,)
        Work space, 0 between calls.
    out_indptr : ndarray of int64 of shape (n_lists + 1,)
        Overwritten.
    """
    known_indptr, known_rows = known
    out_indptr[0] = 0
    for c in range(out_indptr.shape[0] - 1):
        rows = known_rows[known_indptr[c] : known_indptr[c + 1]]
        write_scores(rows, np.uint8(1), is_known)
        n = np.uint32(0)
        for r in range(counts[c]):
            i = lists[c, r]
            lists[c, n] = i
            n += np.uint32(is_known[np.uint32(i)] == 0)
        write_scores(rows, np.uint8(0), is_known)
        out_indptr[c + 1] = out_indptr[c] + np.int64(n)


@functools.cache
def measure_rows_kernel(loss: Any) -> Any:
    """Return ``measure_rows`` for a ``CompiledLoss`` with a kink."""
    value, kink = loss.value, -float(loss.active_below)

    @kernel
    def measure_rows(X, weight, minus, points, lists, dense, scores, losses):
        """Write the scores of rows at sparse points, and their losses as negatives.

        Parameters
        ----------
        X, weight
            CSR rows and their weights.
        minus : ndarray of float64 of shape (m,)
            Weight of the loss of a negative of each label.
        points : tuple
            See the module.
        lists : tuple of ndarray of int64 and int32
            ``(indptr, rows)``: the rows of each label.
        dense : ndarray of float of shape (d,)
            Work space, 0 between calls.
        scores, losses : ndarray of float64 of the length of the lists
            Overwritten.
        """
        indptr, rows = lists
        for m in range(minus.shape[0]):
            first, last = indptr[m], indptr[m + 1]
            if first == last:
                continue
            write_point(points, m, dense)
            bias = np.float64(points[2][points[0][m + 1] + m])
            for r in range(first, last):
                prefetch_row(X, np.uint32(rows[min(r + ROWS_AHEAD, last - 1)]))
                i = np.uint32(rows[r])
                score = bias + row_dot_double(X, i, dense)
                scores[r] = score
                cost = minus[m] * np.float64(weight[i])
                losses[r] = cost * value(-score) if score > kink else 0.0
            erase_point(points, m, dense)

    return measure_rows
