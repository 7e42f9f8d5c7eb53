"""Passes for the rows that a label has to do with: those of high scores, by posting lists.

A score is high by features whose weight matters, and few rows have one of these. What all others
can add is bounded by their norm; where too many rows would be read, a screen lists them instead.
"""

import math

import numpy as np

from sklearn_xc._compile.jit import inlined, kernel
from sklearn_xc._input.kernels.csr_rows import ROWS_AHEAD, prefetch_row, row_dot_double
from sklearn_xc.one_vs_all.kernels.screen import larger_when_pruned
from sklearn_xc.one_vs_all.kernels.working_set import add_positives, with_room

#: Points with larger or smaller numbers are left: sums are taken in float32.
_SMALL, _LARGE = 1e-20, 1e20
#: Larger scores count as this.
_MOST = np.float32(1e38)
#: Scores are told apart by so many parts of their range.
_PARTS = 256
_ONE = np.uint64(1)


@inlined
def level_of_highest(values, n_wanted, counts):
    """Return a level so that at most about so many of the values above 0 are not below it.

    `counts` is work space of shape (_PARTS + 1,).
    """
    largest = np.float32(1e-30)
    for s in range(values.shape[0]):
        largest = max(largest, values[s])
    scale = np.float32(_PARTS - 0.1) / largest
    counts[:] = 0
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
def rest_of(values, squares, n, level):
    """Return the norm of the weights that count at most so much for their frequency."""
    total = 0.0
    for s in range(n):
        total += values[s] * values[s] if squares[s] <= level else 0.0
    return math.sqrt(total)


@inlined
def leave_out(values, squares, n, highest, longest_row, most):
    """Return up to which level features may be left out, and what these can add to a score.

    As many are as can add `most` together, those that count least first; -1 if none may be.
    """
    level = highest
    rest = longest_row * rest_of(values, squares, n, level)
    if rest > most:
        low, high = highest * 1e-12, highest
        for _ in range(20):
            level = math.sqrt(low * high)
            rest = rest_of(values, squares, n, level)
            if longest_row * rest > most:
                high = level
            else:
                low = level
        level = low
        rest = longest_row * rest_of(values, squares, n, level)
        if rest > most:
            level = -1.0
            rest = 0.0
    return level, rest


@inlined
def postings_above(indptr, features, squares, n, level):
    """Return how many non-zeros those features have that count more than so much."""
    total = np.int64(0)
    for s in range(n):
        j = np.uint32(features[s])
        total += indptr[j + _ONE] - indptr[j] if squares[s] > level else 0
    return total


@inlined
def add_up_scores(by_feature, features, values, n, scores, met):
    """Add up the scores of rows by the first n features; return how many rows `met` lists."""
    indptr, rows, data = by_feature
    n_met = np.uint32(0)
    for s in range(n):
        j = np.uint32(features[s])
        v = np.float32(values[s])
        for t in range(np.uint64(indptr[j]), np.uint64(indptr[j + _ONE])):
            i = np.uint32(rows[t])
            old = scores[i]
            score = old + v * np.float32(data[t])
            met[n_met] = np.int32(i)
            n_met += np.uint32(old == np.float32(0.0) and score != np.float32(0.0))
            scores[i] = score
    return n_met


@inlined
def write_point(features, points, first, last, m, prune, dense):
    """Write what counts of a sparse point, intercept left out, into a vector of 0."""
    for t in range(first, last):
        dense[np.uint32(features[t])] = larger_when_pruned(points[t + m], prune)


@inlined
def erase_point(features, first, last, dense):
    """Write 0 again where ``write_point`` wrote."""
    for t in range(first, last):
        dense[np.uint32(features[t])] = 0


@kernel
def list_similar_rows(
    X,
    weight,
    by_feature,
    longest_row,
    Y,
    labels,
    starts,
    kink,
    share,
    n_wanted,
    limits,
    spaces,
    out_indptr,
    out,
):
    """List for each label its positives, -1, and other rows of high scores where it starts.

    Parameters
    ----------
    X, weight
        CSR rows and their weights.
    by_feature : tuple of ndarray
        ``(indptr, rows, values)``: X by feature.
    longest_row : float
        The largest norm of a row.
    Y : tuple of ndarray of int64 and int32
        ``(indptr, rows)``: positive rows of each label.
    labels : ndarray of int64 of shape (m,)
        Which labels.
    starts : tuple of ndarray of float64 of shape (m,), (m,) and (d + 1,)
        ``(of_positives, of_shared, shared)``, as for ``mix_points``; only what raises scores
        counts, of features of positives.
    kink : float
        The score from which a negative has a loss.
    share : float
        Of the distance between kink and intercept, what features may add that do not matter.
    n_wanted : ndarray of int64 of shape (m,)
        About how many rows.
    limits : tuple of int
        Features that count least for their frequency are left out beyond the first number of
        non-zeros. A label is left whose features that matter have more than the second.
    spaces : tuple of ndarray of float64, int32, float32 and int32
        Work space ``(work, touched, scores, met)`` of shape (d + 1,), (d + 1,), (n + 1,) and
        (n + 1,); `work` and `scores` are 0 and left so.
    out_indptr, out : ndarray of int64 of shape (m + 1,) and int32
        `out_indptr` is overwritten, `out` in place or by a larger one.

    Returns
    -------
    out : ndarray of int32
        The lists, one behind the other.
    is_left : ndarray of bool of shape (m,)
    """
    y_indptr, y_rows = Y
    of_positives, of_shared, shared = starts
    most_postings, largest = limits
    work, touched, scores, met = spaces
    indptr = by_feature[0]
    counts = np.empty(_PARTS + 1, np.int64)
    sums = np.empty(0, np.float32)
    squares = np.empty(0)
    values = np.empty(0)
    is_left = np.zeros(labels.shape[0], np.bool_)
    out_indptr[0] = 0
    for m in range(labels.shape[0]):
        first, last = y_indptr[labels[m]], y_indptr[labels[m] + 1]
        cost, n_features = add_positives(X, weight, y_rows[first:last], work, touched)
        values = with_room(values, np.int64(n_features))
        squares = with_room(squares, np.int64(n_features))
        highest = 0.0
        for s in range(n_features):
            j = np.uint32(touched[s])
            v = max(of_positives[m] * work[j] + of_shared[m] * shared[j], 0.0)
            work[j] = 0.0
            values[s] = v
            squares[s] = v * v / max(np.float64(indptr[j + _ONE] - indptr[j]), 1.0)
            highest = max(highest, squares[s])
        slack = kink - of_positives[m] * cost - of_shared[m] * shared[shared.shape[0] - 1]
        level, _ = leave_out(values, squares, n_features, highest, longest_row, share * slack)
        is_left[m] = postings_above(indptr, touched, squares, n_features, level) > largest
        level = 0.0
        if is_left[m]:
            n_features = np.uint32(0)
        elif postings_above(indptr, touched, squares, n_features, level) > most_postings:
            low, high = highest * 1e-12, highest
            for _ in range(25):
                level = math.sqrt(low * high)
                if postings_above(indptr, touched, squares, n_features, level) > most_postings:
                    low = level
                else:
                    high = level
            level = high
        n_used = np.uint32(0)
        for s in range(n_features):
            if squares[s] > level:
                touched[n_used] = touched[s]
                values[n_used] = values[s]
                n_used += np.uint32(1)
        n_met = add_up_scores(by_feature, touched, values, n_used, scores, met)
        at = out_indptr[m]
        out = with_room(out, at + (last - first) + 1 + np.int64(n_met))
        sums = with_room(sums, np.int64(n_met))
        for r in range(first, last):
            scores[np.uint32(y_rows[r])] = np.float32(-1.0)
            out[at] = y_rows[r]
            at += 1
        out[at] = -1
        at += 1
        for s in range(n_met):
            i = np.uint32(met[s])
            sums[s] = min(scores[i], _MOST)
            scores[i] = np.float32(0.0)
        lowest = level_of_highest(sums[:n_met], n_wanted[m], counts)
        for s in range(n_met):
            if sums[s] > np.float32(0.0) and sums[s] >= lowest:
                out[at] = met[s]
                at += 1
        for r in range(first, last):
            scores[np.uint32(y_rows[r])] = np.float32(0.0)
        out_indptr[m + 1] = at
    return out, is_left


@kernel
def list_rows_above(
    X,
    by_feature,
    longest_row,
    sparse_points,
    prune,
    kinks,
    share,
    most_postings,
    known_rows,
    spaces,
    out_indptr,
    out,
):
    """List for each point the rows whose score is above a number, and that are not known.

    Only rows are looked at that have a feature whose weight matters: what all others together can
    add is bounded by their norm. X has no negative entries.

    Parameters
    ----------
    X : tuple of ndarray
        CSR rows.
    by_feature : tuple of ndarray
        ``(indptr, rows, values)``: X by feature.
    longest_row : float
        The largest norm of a row.
    sparse_points : tuple of ndarray of int64, int32 and float
        ``(indptr, features, points)``, that of m from ``indptr[m] + m`` on, intercept last.
    prune : float
        Scores count before smaller weights become 0 and after.
    kinks : ndarray of float64 of shape (m,)
        The numbers to pass.
    share : float
        Of the distance between kink and intercept, what features may add that are left out.
    most_postings : int
        A point that needs more non-zeros is left.
    known_rows : tuple of ndarray of int64 and int32
        ``(indptr, rows)`` that are not listed.
    spaces : tuple of ndarray of float, float32 and int32
        Work space ``(dense, scores, met)`` of shape (d,), (n + 1,) and (n + 1,); the first two
        are 0 and left so.
    out_indptr, out : ndarray of int64 of shape (m + 1,) and int32
        `out_indptr` is overwritten, `out` in place or by a larger one.

    Returns
    -------
    out : ndarray of int32
        The lists, one behind the other.
    is_left : ndarray of bool of shape (m,)
    """
    point_indptr, features, points = sparse_points
    known_indptr, known = known_rows
    dense, scores, met = spaces
    indptr = by_feature[0]
    n_points = kinks.shape[0]
    is_left = np.zeros(n_points, np.bool_)
    raising = np.empty(64, np.int32)
    values = np.empty(64)
    squares = np.empty(64)
    out_indptr[0] = 0
    for m in range(n_points):
        first, last = point_indptr[m], point_indptr[m + 1]
        out_indptr[m + 1] = out_indptr[m]
        bias = np.float64(points[last + m])
        slack = kinks[m] - bias
        if not slack > 0.0:
            is_left[m] = True
            continue
        # Features of positive weight, and by how much each counts for its frequency.
        raising = with_room(raising, last - first)
        values = with_room(values, last - first)
        squares = with_room(squares, last - first)
        n = np.uint32(0)
        highest = 0.0
        largest = 0.0
        for t in range(first, last):
            v = np.float64(points[t + m])
            largest = max(largest, v)
            is_left[m] |= not v < np.inf
            if v > 0.0:
                j = np.uint32(features[t])
                raising[n] = features[t]
                values[n] = v
                squares[n] = v * v / max(np.float64(indptr[j + _ONE] - indptr[j]), 1.0)
                highest = max(highest, squares[n])
                n += np.uint32(1)
        if largest > 0.0:  # sums are taken in float32
            is_left[m] |= not (_SMALL < largest < _LARGE and _SMALL < slack < _LARGE)
        if is_left[m]:
            continue
        level, rest = leave_out(values, squares, n, highest, longest_row, share * slack)
        n_needed = np.int64(0)
        n_used = np.uint32(0)
        for s in range(n):
            j = np.uint32(raising[s])
            if squares[s] > level:
                raising[n_used] = raising[s]
                values[n_used] = values[s]
                n_used += np.uint32(1)
                n_needed += indptr[j + _ONE] - indptr[j]
        if n_needed > most_postings:
            is_left[m] = True
            continue
        write_point(features, points, first, last, m, prune, dense)
        n_met = add_up_scores(by_feature, raising, values, n_used, scores, met)
        for r in range(known_indptr[m], known_indptr[m + 1]):
            if known[r] >= 0:
                scores[np.uint32(known[r])] = np.float32(-1.0)
        limit = np.float32((slack - rest) * (1.0 - 2e-7 * (n_used + 8.0)) - 1e-30)
        at = out_indptr[m]
        out = with_room(out, at + np.int64(n_met))
        for s in range(n_met):
            i = np.uint32(met[s])
            score = scores[i]
            scores[i] = np.float32(0.0)
            if score > limit and not row_dot_double(X, i, dense) + bias <= kinks[m]:
                out[at] = np.int32(i)
                at += 1
        for r in range(known_indptr[m], known_indptr[m + 1]):
            if known[r] >= 0:
                scores[np.uint32(known[r])] = np.float32(0.0)
        erase_point(features, first, last, dense)
        out_indptr[m + 1] = at
    return out, is_left


@kernel
def list_new_rows(lists, counts, known_indptr, known, seen, out_indptr):
    """Keep those rows of each list that are not known; write how many, summed up.

    Parameters
    ----------
    lists, counts : ndarray of int32 and int64
        Lists from a screen, and their lengths. Changed in place.
    known_indptr, known : ndarray of int64 and int32
        The known rows of each list, one behind the other.
    seen : ndarray of uint8 of shape (n,)
        All 0, and left so.
    out_indptr : ndarray of int64 of shape (n_lists + 1,)
        Overwritten.
    """
    out_indptr[0] = 0
    for c in range(out_indptr.shape[0] - 1):
        for r in range(known_indptr[c], known_indptr[c + 1]):
            if known[r] >= 0:
                seen[np.uint32(known[r])] = 1
        n = np.uint32(0)
        for r in range(counts[c]):
            i = lists[c, r]
            lists[c, n] = i
            n += np.uint32(seen[np.uint32(i)] == 0)
        for r in range(known_indptr[c], known_indptr[c + 1]):
            if known[r] >= 0:
                seen[np.uint32(known[r])] = 0
        out_indptr[c + 1] = out_indptr[c] + np.int64(n)


@inlined
def score_from_lowest(X, rows, dense, out):
    """Write the scores of rows above the lowest, which is at most 0; return that one."""
    lowest = np.float32(0.0)
    for r in range(rows.shape[0]):
        prefetch_row(X, np.uint32(rows[min(r + ROWS_AHEAD, rows.shape[0] - 1)]))
        score = row_dot_double(X, np.uint32(rows[r]), dense)
        out[r] = np.float32(min(max(score, -_MOST), _MOST))
        lowest = min(lowest, out[r])
    for r in range(rows.shape[0]):
        out[r] -= lowest
    return np.float64(lowest)


@kernel
def keep_highest(X, point_indptr, features, points, prune, levels, n_wanted, indptr, rows, dense):
    """Keep of long lists of rows those with the highest scores.

    Parameters
    ----------
    X : tuple of ndarray
        CSR rows.
    point_indptr, features, points, prune
        As for ``list_rows_above``.
    levels : ndarray of float64 of shape (m,)
        Rows with scores above are kept.
    n_wanted : ndarray of int64 of shape (m,)
        About so many of the highest are kept if fewer are above the level, and all of lists that
        are not longer.
    indptr, rows : ndarray of int64 of shape (m + 1,) and int32
        The lists, one behind the other. Changed in place.
    dense : ndarray of float of shape (d,)
        Work space of 0, left so.

    Returns
    -------
    ndarray of bool of shape (m,)
        Where some rows were dropped.
    """
    is_cut = np.zeros(levels.shape[0], np.bool_)
    start, end = np.int64(0), np.int64(0)
    scores = np.empty(0, np.float32)
    counts = np.empty(_PARTS + 1, np.int64)
    for m in range(levels.shape[0]):
        stop = indptr[m + 1]
        begun = end
        n = stop - start
        is_cut[m] = n > n_wanted[m]
        if is_cut[m]:
            first, last = point_indptr[m], point_indptr[m + 1]
            write_point(features, points, first, last, m, prune, dense)
            scores = with_room(scores, n)
            lowest = score_from_lowest(X, rows[start:stop], dense, scores)
            erase_point(features, first, last, dense)
            bound = levels[m] - np.float64(points[last + m]) - lowest
            level = level_of_highest(scores[:n], n_wanted[m], counts)
            level = min(level, np.float32(min(bound, np.float64(_MOST))))
            for r in range(n):
                if scores[r] > level:
                    rows[end] = rows[start + r]  # those overwritten are dropped
                    end += 1
            is_cut[m] = begun < end < begun + n
        if end == begun:
            for r in range(start, stop):
                rows[end] = rows[r]
                end += 1
        start = stop
        indptr[m + 1] = end
    return is_cut


@kernel
def find_high_levels(X, sample, point_indptr, features, points, prune, n_wanted, levels, dense):
    """Write for sparse points a score that more rows than are wanted are above, most likely.

    Parameters
    ----------
    X : tuple of ndarray
        CSR rows.
    sample : ndarray of int32
        Some of them, by which is judged.
    point_indptr, features, points, prune
        As for ``list_rows_above``.
    n_wanted : ndarray of int64 of shape (m,)
        Rows of the sample that are to be above, at least 1.
    levels : ndarray of float64 of shape (m,)
        Overwritten; -inf where there are not so many.
    dense : ndarray of float of shape (d,)
        Work space of 0, left so.
    """
    scores = np.empty(sample.shape[0], np.float32)
    counts = np.empty(_PARTS + 1, np.int64)
    for m in range(levels.shape[0]):
        levels[m] = -np.inf
        if n_wanted[m] >= sample.shape[0]:
            continue
        first, last = point_indptr[m], point_indptr[m + 1]
        write_point(features, points, first, last, m, prune, dense)
        lowest = score_from_lowest(X, sample, dense, scores)
        erase_point(features, first, last, dense)
        level = level_of_highest(scores, n_wanted[m], counts)
        levels[m] = np.float64(level) + lowest + np.float64(points[last + m])
