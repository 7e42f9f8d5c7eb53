"""Working sets: copies of the rows that may have a loss at a label's solution.

``solver.working_sets`` has the method, ``row_search`` finds the rows. The kernels here copy the
rows of each lane over features numbered from 0, and write points over these features.

Lists are a tuple ``(indptr, rows)`` or ``(indptr, features)``. Sparse points are a tuple ``(indptr,
features, weights)``, where the weights of point c, intercept last, begin at ``indptr[c] + c``.
"""

import numpy as np

from sklearn_xc._compile.jit import inlined, kernel
from sklearn_xc.one_vs_all.kernels.sparse_rows import compact

_ONE = np.uint64(1)


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
def add_positives(X, weight, positives, work, touched):
    """Add up weighted rows in `work`, which is 0; return their weight and number of features.

    The features are listed in `touched`.
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
def describe_positives(X, weight, Y, labels, mean, work, touched, out):
    """Write the weight of each label's positives, and inner products of their sum.

    Parameters
    ----------
    X : tuple of ndarray
        CSR rows.
    weight : ndarray of shape (n,)
        Row weights.
    Y : tuple of ndarray of int64 and int32
        ``(indptr, rows)``: positive rows of each label.
    labels : ndarray of int64 of shape (m,)
    mean : ndarray of float64 of shape (d + 1,)
        Mean of the rows.
    work, touched : ndarray of float64 and int32 of shape (d,)
        Work space; `work` is 0 between calls.
    out : ndarray of float64 of shape (3, m)
        Overwritten: weight, and the inner products of the sum with itself and with `mean`, without
        the constant feature.
    """
    y_indptr, y_rows = Y
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
def copy_rows_of_lanes(
    X, weight, negatives_weight, lists, position, sets, feature_indptr, features
):
    """Copy the rows of each lane, with its features numbered in the order of appearance.

    Parameters
    ----------
    X, weight
        CSR rows and their weights.
    negatives_weight : float
        Weight of a row without features, the last one of each lane.
    lists : tuple of ndarray of int64 and int32
        ``(indptr, rows)`` of each lane.
    position : ndarray of int32 of shape (d,)
        Work space, -1 between calls.
    sets : tuple of ndarray
        ``(indptr, indices, data, weight, first_entry)``, overwritten: rows of all lanes, with row
        pointers of their own from position ``row_indptr[c] + 2 c`` on, and where entries begin.
    feature_indptr, features : ndarray of int64 and int32
        Overwritten: X's numbers of each lane's features; room for one more than the non-zeros.
    """
    row_indptr, rows = lists
    indptr_out, indices_out, data_out, weight_out, first_entry = sets
    end = np.int64(0)
    feature_indptr[0] = 0
    for c in range(row_indptr.shape[0] - 1):
        own = rows[row_indptr[c] : row_indptr[c + 1]]
        n, at = own.shape[0], row_indptr[c] + c
        pointers, touched = indptr_out[at + c :], features[feature_indptr[c] :]
        out = pointers, indices_out[end:], data_out[end:]
        n_features = compact(X, own, position, touched, out)
        for s in range(n_features):
            position[np.uint32(touched[s])] = -1
        for r in range(n):
            weight_out[at + r] = weight[np.uint32(own[r])]
        pointers[n + 1] = pointers[n]
        weight_out[at + n] = negatives_weight
        feature_indptr[c + 1] = feature_indptr[c] + n_features
        first_entry[c] = end
        end += pointers[n]


@kernel
def mix_points(X, weight, lanes, lists, mixtures, dense, points):
    """Write start vectors: a multiple of the sum of the positives plus one of a shared vector.

    Parameters
    ----------
    X, weight
        Rows of the working sets, and their weights.
    lanes : structured ndarray
        `state` of ``Lanes``. Changed in place: squared norms of the trial points.
    lists : tuple of ndarray of int64 and int32
        ``(indptr, features)``: X's numbers of each lane's features.
    mixtures : tuple of ndarray of float64 of shape (n_lanes,), (n_lanes,) and (d + 1,)
        ``(of_positives, of_shared, shared)``: both multiples, and the vector, intercept last.
    dense : ndarray of float64 of shape (d + 1,)
        Work space, 0 between calls.
    points : ndarray of float
        Overwritten as by ``move_points``.
    """
    indptr, indices, data = X
    feature_indptr, features = lists
    of_positives, of_shared, shared = mixtures
    for c in range(lanes.shape[0]):
        width = feature_indptr[c + 1] - feature_indptr[c] + 1
        first = 2 * (feature_indptr[c] + c)
        row, pointer, entry = lanes[c].first_row, lanes[c].first_pointer, lanes[c].first_entry
        bias = 0.0
        for r in range(lanes[c].n_positives):
            cost = np.float64(weight[row + r])
            for t in range(indptr[pointer + r], indptr[pointer + r + 1]):
                j = np.uint32(indices[entry + t])
                dense[j] += cost * np.float64(data[entry + t])
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
        lanes[c].trial_norm2 = total


@kernel
def move_points(old_points, lists, dense, points, lanes):
    """Write points as trial points over the features of other working sets.

    Parameters
    ----------
    old_points : tuple of ndarray
        Sparse points, one for each lane.
    lists : tuple of ndarray of int64 and int32
        ``(indptr, features)``: X's numbers of each lane's new features.
    dense : ndarray of float of shape (d,)
        Work space, 0 between calls.
    points : ndarray of float
        Overwritten: the trial point of lane c begins at ``2 * (indptr[c] + c)``.
    lanes : structured ndarray
        `state` of ``Lanes``. Changed in place: squared norms of the trial points.
    """
    old_indptr, old_features, old_weights = old_points
    feature_indptr, features = lists
    for c in range(lanes.shape[0]):
        shift = c
        for t in range(old_indptr[c], old_indptr[c + 1]):
            dense[np.uint32(old_features[t])] = old_weights[t + shift]
        at = 2 * (feature_indptr[c] + c)
        total = 0.0
        for s in range(feature_indptr[c], feature_indptr[c + 1]):
            w = dense[np.uint32(features[s])]
            points[at] = w
            total += np.float64(w) * np.float64(w)
            at += 1
        points[at] = old_weights[old_indptr[c + 1] + c]
        lanes[c].trial_norm2 = total
        for t in range(old_indptr[c], old_indptr[c + 1]):
            dense[np.uint32(old_features[t])] = 0
