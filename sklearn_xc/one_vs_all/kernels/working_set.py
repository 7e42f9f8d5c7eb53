"""The rows that a label has to do with, copied out of X; all others have no loss at its solution.

Kernels that make working sets (``solvers.working_sets`` has the method): a copy of the rows of each
lane in features of its own, its point in these, and which rows and weights are kept.
``row_search`` finds the rows.
"""

import math

import numpy as np

from sklearn_xc._compile.jit import inlined, kernel
from sklearn_xc._input.kernels.csr_rows import ROWS_AHEAD, prefetch_row
from sklearn_xc.one_vs_all.kernels.screen import larger_when_pruned

_ONE = np.uint64(1)
#: Longer rows count as this long where rows are ordered by length.
_LENGTHS = 256


@inlined
def with_room(array, n):
    """Return an array of at least n places that begins with the same values."""
    if n <= array.shape[0]:
        return array
    grown = np.empty(max(n, 2 * array.shape[0]), array.dtype)
    for s in range(array.shape[0]):  # to assign a slice takes a second to compile
        grown[s] = array[s]
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
    X,
    weight,
    negatives_weight,
    row_indptr,
    rows,
    position,
    indptr_out,
    indices_out,
    data_out,
    weight_out,
    first_entry,
    feature_indptr,
    features,
):
    """Copy the rows of each lane, with its features numbered in the order met.

    Parameters
    ----------
    X, weight
        CSR rows and their weights.
    negatives_weight : float
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
                weight_out[r] = negatives_weight
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
):
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
):
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
def take_lists(indptr, which, shift, values, out_indptr, out):
    """Copy some of several lists that lie one behind the other, each `shift` longer than said."""
    for c in range(which.shape[0]):
        start = indptr[which[c]] + shift * which[c]
        at = out_indptr[c] + shift * c
        for t in range(np.uint64(out_indptr[c + 1] - out_indptr[c] + shift)):
            out[np.uint64(at) + t] = values[np.uint64(start) + t]


@kernel
def prune_points(
    lanes, prune, feature_indptr, features, seen_indptr, seen_features, seen, dense, stand, rises
):
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
