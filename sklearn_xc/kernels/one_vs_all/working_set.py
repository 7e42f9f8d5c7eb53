"""The rows that a label has to do with, copied out of X; all others have no loss at its solution.

Kernels that make working sets (``solvers.working_sets`` has the method): which rows of a screen's
lists are new, a copy of the rows of each lane in features of its own, its point in these, and the
sparse points back as columns of a screen.
"""

import math

import numpy as np

from sklearn_xc.kernels.compiling.jit import inlined, kernel
from sklearn_xc.kernels.one_vs_all.screen import LEAST_STEP, LEVELS
from sklearn_xc.kernels.rows.csr_rows import ROWS_AHEAD, prefetch_row, row_dot_double

#: Points with larger or smaller numbers are left: sums are taken in float32.
_SMALL, _LARGE = 1e-20, 1e20
#: Larger scores count as this.
_MOST = np.float32(1e38)
_ONE = np.uint64(1)
#: Longer rows count as this long where rows are ordered by length.
_LENGTHS = 256


@inlined
def larger_when_pruned(w, prune):
    """Return the larger of a weight and what pruning leaves of it."""
    return max(w, w - w) if abs(w) < prune else w


@inlined
def with_room(array, n):
    """Return an array of at least n places that begins with the same values."""
    if n <= array.shape[0]:
        return array
    grown = np.empty(max(n, 2 * array.shape[0]), array.dtype)
    grown[: array.shape[0]] = array
    return grown


@inlined
def add_positives(X, weight, positives, work, touched):
    """Add up weighted rows in `work`, all 0; return their weight, and how many features it lists.

    `touched` lists the features of the sum.
    """
    indptr, indices, data = X
    total = 0.0
    n_touched = np.uint32(0)
    for r in range(positives.shape[0]):
        i = np.uint32(positives[r])
        cost = np.float64(weight[i])
        total += cost
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + _ONE])):
            j = np.uint32(indices[t])
            old = work[j]
            work[j] = old + cost * np.float64(data[t])
            if old == 0.0 and work[j] != 0.0:
                touched[n_touched] = j
                n_touched += np.uint32(1)
    return total, n_touched


@kernel
def describe_positives(X, weight, y_indptr, y_rows, labels, mean, work, touched, out):
    """Write the weight of each label's positives, and the products of their sum.

    Parameters
    ----------
    X : tuple of ndarray
        CSR rows.
    weight : ndarray of shape (n,)
        Of the rows.
    y_indptr, y_rows : ndarray of int64 and int32
        Positive rows of each label.
    labels : ndarray of int64 of shape (m,)
        Which labels.
    mean : ndarray of float64 of shape (d + 1,)
        Mean of the rows.
    work, touched : ndarray of float64 and int32 of shape (d,)
        `work` all 0, and left so.
    out : ndarray of float64 of shape (3, m)
        Overwritten: weight, and the products of the sum with itself and with `mean`, without the
        constant feature.
    """
    for m in range(labels.shape[0]):
        positives = y_rows[y_indptr[labels[m]] : y_indptr[labels[m] + 1]]
        total, n_touched = add_positives(X, weight, positives, work, touched)
        out[0, m] = total
        squares = 0.0
        with_mean = 0.0
        for s in range(n_touched):
            j = np.uint32(touched[s])
            squares += work[j] * work[j]
            with_mean += work[j] * mean[j]
            work[j] = 0.0
        out[1, m] = squares
        out[2, m] = with_mean


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


@kernel
def count_entries(X, row_indptr, rows, out):
    """Write how many non-zeros the rows of each lane have."""
    indptr = X[0]
    for c in range(out.shape[0]):
        total = np.int64(0)
        for r in range(row_indptr[c], row_indptr[c + 1]):
            if rows[r] >= 0:
                i = np.uint32(rows[r])
                total += indptr[i + _ONE] - indptr[i]
        out[c] = total


@kernel
def order_by_length(X, n_positives, row_indptr, rows):
    """Order the rows of each lane by length, in place, but for its positives and -1, which lead.

    Loops over rows of like lengths end where the processor expects them to.

    Parameters
    ----------
    X : tuple of ndarray
        CSR rows.
    n_positives : ndarray of int64 of shape (m,)
    row_indptr, rows : ndarray of int64 and int32
        The rows of each lane, one behind the other.
    """
    indptr = X[0]
    before = np.empty(0, np.int32)
    starts = np.empty(_LENGTHS + 1, np.int64)
    for c in range(n_positives.shape[0]):
        first, last = row_indptr[c] + n_positives[c] + 1, row_indptr[c + 1]
        before = with_room(before, last - first)
        starts[:] = 0
        for r in range(first, last):
            i = np.uint32(rows[r])
            before[r - first] = rows[r]
            starts[min(indptr[i + _ONE] - indptr[i], _LENGTHS - 1) + 1] += 1
        for k in range(_LENGTHS):
            starts[k + 1] += starts[k]
        for r in range(last - first):
            i = np.uint32(before[r])
            k = min(indptr[i + _ONE] - indptr[i], _LENGTHS - 1)
            rows[first + starts[k]] = before[r]
            starts[k] += 1


@kernel
def copy_rows_of_lanes(
    X, weight, crowd_weight, row_indptr, rows, position, indptr_out, indices_out, data_out,
    weight_out, first_entry, feature_indptr, features,
):  # fmt: skip
    """Copy the rows of each lane, with its features numbered in the order met.

    Parameters
    ----------
    X, weight
        CSR rows and their weights.
    crowd_weight : float
        Weight of a row without features, which the number -1 stands for.
    row_indptr, rows : ndarray of int64 and int32
        The rows of each lane, one behind the other.
    position : ndarray of int32 of shape (d,)
        All -1, and left so.
    indptr_out, indices_out, data_out, weight_out, first_entry : ndarray
        Overwritten: as in ``WorkingSets``.
    feature_indptr, features : ndarray of int64 and int32
        Overwritten: X's number of each lane's features, one behind the other; room for one each
        non-zero.
    """
    indptr, indices, data = X
    end = np.uint64(0)
    n_features = np.uint64(0)
    feature_indptr[0] = 0
    for c in range(row_indptr.shape[0] - 1):
        base = n_features
        first = end
        first_entry[c] = first
        row = row_indptr[c]
        indptr_out[row + c] = 0
        for r in range(row, row_indptr[c + 1]):
            if rows[r] < 0:
                weight_out[r] = crowd_weight
                indptr_out[r + c + 1] = np.int64(end - first)
                continue
            i = np.uint32(rows[r])
            ahead = rows[min(r + ROWS_AHEAD, rows.shape[0] - 1)]
            if ahead >= 0:
                prefetch_row(X, np.uint32(ahead))
            weight_out[r] = weight[i]
            for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + _ONE])):
                j = np.uint32(indices[t])
                p = position[j]
                is_new = np.uint64(p < 0)
                p = np.int32(n_features - base) if p < 0 else p
                position[j] = p
                features[n_features] = np.int32(j)
                n_features += is_new
                indices_out[end] = p
                data_out[end] = data[t]
                end += _ONE
            indptr_out[r + c + 1] = np.int64(end - first)
        for s in range(base, n_features):
            position[np.uint32(features[s])] = -1
        feature_indptr[c + 1] = n_features


@kernel
def mix_points(
    sets, feature_indptr, features, of_positives, of_shared, shared, dense, points, norm2
):  # fmt: skip
    """Write start vectors: a multiple of the sum of the positives, and one of a shared vector.

    Parameters
    ----------
    sets : WorkingSets
    feature_indptr, features : ndarray of int64 and int32
        X's number of each lane's features.
    of_positives, of_shared : ndarray of float64 of shape (n_lanes,)
        The multiples.
    shared : ndarray of float64 of shape (d + 1,)
        Intercept last.
    dense : ndarray of float64 of shape (d + 1,)
        Work space of 0, left so.
    points, norm2 : ndarray of float and float64
        Overwritten as by ``move_points``.
    """
    for c in range(norm2.shape[0]):
        width = feature_indptr[c + 1] - feature_indptr[c] + 1
        first = 2 * (feature_indptr[c] + c)
        row, entry = sets.first_row[c], sets.first_entry[c]
        bias = 0.0
        for r in range(sets.y_indptr[c + 1] - sets.y_indptr[c]):
            cost = np.float64(sets.weight[row + r])
            for t in range(sets.indptr[row + c + r], sets.indptr[row + c + r + 1]):
                j = np.uint32(sets.indices[entry + t])
                dense[j] += cost * np.float64(sets.data[entry + t])
            bias += cost
        total = 0.0
        for p in range(width - 1):
            i = features[feature_indptr[c] + p]
            points[first + p] = of_positives[c] * dense[p] + of_shared[c] * shared[i]
            total += np.float64(points[first + p]) ** 2
            dense[p] = 0.0
        points[first + width - 1] = (
            of_positives[c] * bias + of_shared[c] * shared[shared.shape[0] - 1]
        )
        norm2[c] = total


@kernel
def keep_near_rows(sets, lanes, prune, kinks, kept):
    """Write which rows of each lane have a score above a number, or come first, as positives do.

    The score is the larger one of before smaller weights become 0 and after.
    """
    for c in range(kinks.shape[0]):
        row, entry = sets.first_row[c], sets.first_entry[c]
        first = lanes.first[c] + lanes.current[c] * lanes.width[c]
        bias = np.float64(lanes.points[first + lanes.width[c] - 1])
        n_first = sets.y_indptr[c + 1] - sets.y_indptr[c] + 1
        for r in range(sets.n_rows[c]):
            start, stop = sets.indptr[row + c + r], sets.indptr[row + c + r + 1]
            score = bias
            for t in range(np.uint64(entry + start), np.uint64(entry + stop)):
                w = lanes.points[first + np.int64(sets.indices[t])]
                score += np.float64(sets.data[t]) * np.float64(larger_when_pruned(w, prune))
            kept[row + r] = r < n_first or not score <= kinks[c]


@kernel
def move_points(
    old_indptr, old_features, old_points, feature_indptr, features, dense, points, norm2
):  # fmt: skip
    """Write points as trial points in the features of other working sets.

    Parameters
    ----------
    old_indptr, old_features : ndarray of int64 and int32
        Features of each lane's old point, one behind the other.
    old_points : ndarray of float
        The point of lane c from ``old_indptr[c] + c`` on, intercept last.
    feature_indptr, features : ndarray of int64 and int32
        Features of each lane's new one.
    dense : ndarray of float of shape (d,)
        Work space of 0, left so.
    points : ndarray of float
        Overwritten: that of lane c from ``2 * (feature_indptr[c] + c)`` on.
    norm2 : ndarray of float64 of shape (n_lanes,)
        Overwritten by the squared norms, without intercepts.
    """
    for c in range(norm2.shape[0]):
        shift = c
        for t in range(old_indptr[c], old_indptr[c + 1]):
            dense[np.uint32(old_features[t])] = old_points[t + shift]
        at = 2 * (feature_indptr[c] + c)
        total = 0.0
        for s in range(feature_indptr[c], feature_indptr[c + 1]):
            w = dense[np.uint32(features[s])]
            points[at] = w
            total += np.float64(w) * np.float64(w)
            at += 1
        points[at] = old_points[old_indptr[c + 1] + c]
        norm2[c] = total
        for t in range(old_indptr[c], old_indptr[c + 1]):
            dense[np.uint32(old_features[t])] = 0


@kernel
def round_sparse_points(lanes_of, point_indptr, features, points, prune, kinks, block, to_pass):
    """Round sparse points to int16 columns, and write the score that each has to pass, in steps.

    Parameters
    ----------
    lanes_of : ndarray of int64 of shape (n_points,)
        Which points.
    point_indptr, features, points : ndarray of int64, int32 and float
        Sparse points, that of m from ``point_indptr[m] + m`` on, intercept last.
    prune : float
        Scores count before smaller weights become 0 and after.
    kinks : ndarray of float64
        The score that each has to pass.
    block : ndarray of int16 of shape (d, width)
        All 0; written in its first n_points columns.
    to_pass : ndarray of float64 of shape (width,)
        Overwritten; inf for the columns that stand empty.
    """
    for c in range(block.shape[1]):
        to_pass[c] = np.inf
    for c in range(lanes_of.shape[0]):
        m = lanes_of[c]
        first, last = point_indptr[m], point_indptr[m + 1]
        norm2 = 0.0
        for t in range(first, last):
            norm2 += np.float64(points[t + m]) ** 2
        if not norm2 < np.inf:
            to_pass[c] = -np.inf
            continue
        step = max(np.sqrt(norm2) / LEVELS, LEAST_STEP)
        to_pass[c] = (kinks[m] - np.float64(points[last + m])) / step
        inverse = points.dtype.type(1.0 / step)
        for t in range(first, last):
            number = larger_when_pruned(points[t + m], prune) * inverse
            block[np.uint32(features[t]), c] = np.int16(np.int32(np.rint(number)))


@kernel
def clear_points(lanes_of, point_indptr, features, block):
    """Write 0 again where ``round_sparse_points`` wrote."""
    for c in range(lanes_of.shape[0]):
        m = lanes_of[c]
        for t in range(point_indptr[m], point_indptr[m + 1]):
            block[np.uint32(features[t]), c] = 0


@kernel
def take_lists(indptr, which, shift, values, out_indptr, out):
    """Copy some of several lists that lie one behind the other, each `shift` longer than said."""
    for c in range(which.shape[0]):
        start = indptr[which[c]] + shift * which[c]
        at = out_indptr[c] + shift * c
        for t in range(np.uint64(out_indptr[c + 1] - out_indptr[c] + shift)):
            out[np.uint64(at) + t] = values[np.uint64(start) + t]


@inlined
def level_of_highest(values, n_wanted, counts):
    """Return a level so that at most about so many of the values above 0 are not below it.

    `counts` is work space of shape (257,).
    """
    largest = np.float32(1e-30)
    for s in range(values.shape[0]):
        largest = max(largest, values[s])
    scale = np.float32(255.9) / largest
    counts[:] = 0
    for s in range(values.shape[0]):
        if values[s] > np.float32(0.0):
            counts[np.int64(values[s] * scale)] += 1
    level = 255
    total = counts[255]
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


@kernel
def list_similar_rows(
    X, weight, by_feature, longest_row, y_indptr, y_rows, labels, of_positives, of_shared, shared,
    kink, share, n_wanted, most_postings, largest, work, touched, scores, met, out_indptr, out,
):  # fmt: skip
    """List for each label its positives, -1, and other rows of high scores where it starts.

    Parameters
    ----------
    X, weight
        CSR rows and their weights.
    by_feature : tuple of ndarray
        ``(indptr, rows, values)``: X by feature.
    longest_row : float
        The largest norm of a row.
    y_indptr, y_rows : ndarray of int64 and int32
        Positive rows of each label.
    labels : ndarray of int64 of shape (m,)
        Which labels.
    of_positives, of_shared, shared : ndarray of float64 of shape (m,), (m,) and (d + 1,)
        Starts, as for ``mix_points``; only what raises scores counts, of features of positives.
    kink : float
        The score from which a negative has a loss.
    share : float
        Of the distance between kink and intercept, what features may add that do not matter.
    n_wanted : ndarray of int64 of shape (m,)
        About how many rows.
    most_postings : int
        Features that count least for their frequency are left out beyond so many non-zeros.
    largest : int
        A label is left whose features that matter have more non-zeros.
    work, touched : ndarray of float64 and int32 of shape (d + 1,)
        `work` all 0, and left so.
    scores, met : ndarray of float32 and int32 of shape (n + 1,)
        `scores` all 0, and left so.
    out_indptr, out : ndarray of int64 of shape (m + 1,) and int32
        `out_indptr` is overwritten, `out` in place or by a larger one.

    Returns
    -------
    out : ndarray of int32
        The lists, one behind the other.
    is_left : ndarray of bool of shape (m,)
    """
    indptr, rows, data = by_feature
    counts = np.empty(257, np.int64)
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
        n_met = np.uint32(0)
        for s in range(n_features):
            j = np.uint32(touched[s])
            start, stop = indptr[j], indptr[j + _ONE]
            if squares[s] > level:
                v = np.float32(values[s])
                for t in range(np.uint64(start), np.uint64(stop)):
                    i = np.uint32(rows[t])
                    old = scores[i]
                    score = old + v * np.float32(data[t])
                    met[n_met] = np.int32(i)
                    n_met += np.uint32(old == np.float32(0.0) and score != np.float32(0.0))
                    scores[i] = score
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


@inlined
def add_up_scores(by_feature, raising, n_used, features, points, m, scores, met):
    """Add up the scores of rows by some features; return how many rows `met` lists."""
    indptr, rows, data = by_feature
    n_met = np.uint32(0)
    for u in range(n_used):
        t = raising[u]
        j = np.uint32(features[t])
        v32 = np.float32(points[t + m])
        for s in range(np.uint64(indptr[j]), np.uint64(indptr[j + _ONE])):
            i = np.uint32(rows[s])
            old = scores[i]
            score = old + v32 * np.float32(data[s])
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
def list_rows_above(
    X, by_feature, longest_row, point_indptr, features, points, prune, kinks, share,
    most_postings, known_indptr, known, dense, scores, met, out_indptr, out,
):  # fmt: skip
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
    point_indptr, features, points : ndarray of int64, int32 and float
        Sparse points, that of m from ``point_indptr[m] + m`` on, intercept last.
    prune : float
        Scores count before smaller weights become 0 and after.
    kinks : ndarray of float64 of shape (m,)
        The numbers to pass.
    share : float
        Of the distance between kink and intercept, what features may add that are left out.
    most_postings : int
        A point that needs more non-zeros is left.
    known_indptr, known : ndarray of int64 and int32
        Rows that are not listed.
    dense : ndarray of float of shape (d,)
        Work space of 0, left so.
    scores, met : ndarray of float32 and int32 of shape (n + 1,)
        Work space, `scores` 0 and left so.
    out_indptr, out : ndarray of int64 of shape (m + 1,) and int32
        `out_indptr` is overwritten, `out` in place or by a larger one.

    Returns
    -------
    out : ndarray of int32
        The lists, one behind the other.
    is_left : ndarray of bool of shape (m,)
    """
    indptr = by_feature[0]
    n_points = kinks.shape[0]
    is_left = np.zeros(n_points, np.bool_)
    raising = np.empty(64, np.int64)
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
                raising[n] = t
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
            t = raising[s]
            j = np.uint32(features[t])
            raising[n_used] = t
            if squares[s] > level:
                n_used += np.uint32(1)
                n_needed += indptr[j + _ONE] - indptr[j]
        if n_needed > most_postings:
            is_left[m] = True
            continue
        write_point(features, points, first, last, m, prune, dense)
        n_met = add_up_scores(by_feature, raising, n_used, features, points, m, scores, met)
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
def keep_highest(
    X, point_indptr, features, points, prune, levels, n_wanted, indptr, rows, dense
):  # fmt: skip
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
    counts = np.empty(257, np.int64)
    for m in range(levels.shape[0]):
        stop = indptr[m + 1]
        begun = end
        n = stop - start
        is_cut[m] = n > n_wanted[m]
        if is_cut[m]:
            first, last = point_indptr[m], point_indptr[m + 1]
            write_point(features, points, first, last, m, prune, dense)
            scores = with_room(scores, n)
            lowest = np.float32(0.0)
            for r in range(start, stop):
                prefetch_row(X, np.uint32(rows[min(r + ROWS_AHEAD, stop - 1)]))
                score = row_dot_double(X, np.uint32(rows[r]), dense)
                scores[r - start] = np.float32(min(max(score, -_MOST), _MOST))
                lowest = min(lowest, scores[r - start])
            erase_point(features, first, last, dense)
            for r in range(n):
                scores[r] -= lowest
            bound = levels[m] - np.float64(points[last + m]) - np.float64(lowest)
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
    counts = np.empty(257, np.int64)
    for m in range(levels.shape[0]):
        levels[m] = -np.inf
        if n_wanted[m] >= sample.shape[0]:
            continue
        first, last = point_indptr[m], point_indptr[m + 1]
        write_point(features, points, first, last, m, prune, dense)
        lowest = np.float32(0.0)
        for r in range(sample.shape[0]):
            score = row_dot_double(X, np.uint32(sample[r]), dense)
            scores[r] = np.float32(min(max(score, -_MOST), _MOST))
            lowest = min(lowest, scores[r])
        erase_point(features, first, last, dense)
        for r in range(sample.shape[0]):
            scores[r] -= lowest
        level = level_of_highest(scores, n_wanted[m], counts)
        levels[m] = np.float64(level) + np.float64(lowest) + np.float64(points[last + m])


@kernel
def prune_points(
    lanes, prune, feature_indptr, features, seen_indptr, seen_features, seen, dense, stand, rises
):  # fmt: skip
    """Write where lanes stand, and how far from where they were seen last.

    Parameters
    ----------
    lanes : Lanes
        Their trial points become the pruned ones.
    prune : float
        Smaller weights become 0.
    feature_indptr, features : ndarray of int64 and int32
        X's number of each lane's features.
    seen_indptr, seen_features, seen : ndarray of int64, int32 and float
        Where they stood another time, with the features of that time, as `stand`.
    dense : ndarray of float of shape (d,)
        Work space of 0, left so.
    stand : ndarray of float
        Overwritten: the point of lane c from ``feature_indptr[c] + c`` on, intercept last.
    rises : ndarray of float64 of shape (n_lanes,)
        Overwritten: the most by which the score of a row of norm 1, intercept left out, is higher
        than where it was seen, of both before pruning and after the larger one.
    """
    for c in range(rises.shape[0]):
        width = lanes.width[c]
        at = lanes.first[c] + lanes.current[c] * width
        trial = lanes.first[c] + (1 - lanes.current[c]) * width
        base = feature_indptr[c] + c
        for t in range(seen_indptr[c], seen_indptr[c + 1]):
            dense[np.uint32(seen_features[t])] = larger_when_pruned(seen[t + c], prune)
        squares = 0.0
        norm2 = 0.0
        for j in range(width - 1):
            w = lanes.points[at + j]
            v = w if abs(w) >= prune else w - w
            stand[base + j] = w
            lanes.points[trial + j] = v
            norm2 += np.float64(v) * np.float64(v)
            i = np.uint32(features[feature_indptr[c] + j])
            squares += max(np.float64(max(w, v)) - np.float64(dense[i]), 0.0) ** 2
            dense[i] = 0
        b = lanes.points[at + width - 1]
        lanes.points[trial + width - 1] = b
        stand[base + width - 1] = b
        lanes.trial_norm2[c] = norm2
        # Features that the set has no more: their weights are 0 now.
        for t in range(seen_indptr[c], seen_indptr[c + 1]):
            i = np.uint32(seen_features[t])
            squares += max(-np.float64(dense[i]), 0.0) ** 2
            dense[i] = 0
        rises[c] = math.sqrt(squares)


@kernel
def list_pruned(point_indptr, features, points, prune, out_indptr, out_features, out_values):
    """Write the weights of sparse points that are not zero."""
    at = np.int64(0)
    out_indptr[0] = 0
    for c in range(out_indptr.shape[0] - 1):
        for t in range(point_indptr[c], point_indptr[c + 1]):
            v = points[t + c]
            if v != 0 and abs(v) >= prune:
                out_features[at] = features[t]
                out_values[at] = v
                at += 1
        out_indptr[c + 1] = at
