"""Working sets: copies of the rows that may have a loss at a label's solution.

``solver.working_sets`` has the method, ``row_search`` finds the rows. The kernels here copy the
rows of each lane over features numbered from 0, and write points over these features.

Lists are a tuple ``(indptr, rows)`` or ``(indptr, features)``. Sparse points are a tuple ``(indptr,
features, weights)``, where the weights of point c, intercept last, begin at ``indptr[c] + c``.
"""

import numpy as np

from sklearn_xc._compile.jit import kernel
from sklearn_xc.one_vs_all.kernels.row_search import erase_point, write_point
from sklearn_xc.one_vs_all.kernels.sparse_rows import compact


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
def write_trial_points(old_points, of_shared, shared, lists, dense, points, lanes):
    """Write sparse points, plus multiples of a shared vector, over the features of working sets.

    Parameters
    ----------
    old_points : tuple of ndarray
        Sparse points, one for each lane.
    of_shared, shared : ndarray of float64 of shape (n_lanes,) and (d + 1,)
        The multiples, and the vector, intercept last.
    lists : tuple of ndarray of int64 and int32
        ``(indptr, features)``: X's numbers of each lane's features.
    dense : ndarray of float of shape (d,)
        Work space, 0 between calls.
    points : ndarray of float
        Overwritten: the trial point of lane c begins at ``2 * (indptr[c] + c)``.
    lanes : structured ndarray
        `state` of ``Lanes``. Changed in place: squared norms of the trial points.
    """
    old_indptr, _, old_weights = old_points
    feature_indptr, features = lists
    for c in range(lanes.shape[0]):
        write_point(old_points, c, dense)
        at = 2 * (feature_indptr[c] + c)
        total = 0.0
        for s in range(feature_indptr[c], feature_indptr[c + 1]):
            j = np.uint32(features[s])
            w = dense.dtype.type(np.float64(dense[j]) + of_shared[c] * shared[j])
            points[at] = w
            total += np.float64(w) * np.float64(w)
            at += 1
        points[at] = old_weights[old_indptr[c + 1] + c] + of_shared[c] * shared[-1]
        lanes[c].trial_norm2 = total
        erase_point(old_points, c, dense)
