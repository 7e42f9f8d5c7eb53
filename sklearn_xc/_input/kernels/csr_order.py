"""CSR matrices with rows or features in another order."""

import numpy as np

from sklearn_xc._compile.jit import kernel

_ONE = np.uint64(1)


@kernel
def arrange_rows(indptr, indices, data, order, number, out_indptr, out_indices, out_data):
    """Write rows in another order, with renumbered features.

    Parameters
    ----------
    indptr, indices, data : ndarray of int64, int32 and float
        CSR rows.
    order : ndarray of int64 of shape (n,)
        Row of each place in the new order.
    number : ndarray of int32 of shape (d,)
        The new number of each feature.
    out_indptr : ndarray of int64 of shape (n + 1,)
        Row pointers of the new order.
    out_indices, out_data : ndarray
        Overwritten.
    """
    for r in range(order.shape[0]):
        i = np.uint64(order[r])
        start = np.uint64(indptr[i])
        at = np.uint64(out_indptr[r])
        for t in range(np.uint64(indptr[i + _ONE]) - start):
            out_indices[at + t] = number[np.uint32(indices[start + t])]
            out_data[at + t] = data[start + t]


@kernel
def transpose_rows(indptr, indices, data, places, out_rows, out_data):
    """Write rows by feature: a CSC matrix, the rows of each feature rising.

    Parameters
    ----------
    indptr, indices, data : ndarray of int64, int32 and float
        CSR rows.
    places : ndarray of int64 of shape (d,)
        Where each feature's entries begin. Changed: where they end.
    out_rows, out_data : ndarray of int32 and float
        Overwritten.
    """
    for i in range(indptr.shape[0] - 1):
        for t in range(indptr[i], indptr[i + 1]):
            j = indices[t]
            out_rows[places[j]] = i
            out_data[places[j]] = data[t]
            places[j] += 1


@kernel
def count_features(indices, counts):
    """Add the entries of each feature to `counts`, int64 (d,)."""
    for t in range(indices.shape[0]):
        counts[indices[t]] += 1


@kernel
def copy_rows(indptr, indices, data, rows, places, out_indptr, out_indices, out_data):
    """Copy row ``rows[k]`` to row ``places[k]`` of another CSR matrix, which has room for it."""
    for k in range(rows.shape[0]):
        start, stop = indptr[rows[k]], indptr[rows[k] + 1]
        at = out_indptr[places[k]] - start
        for t in range(np.uint64(start), np.uint64(stop)):
            out_indices[at + t] = indices[t]
            out_data[at + t] = data[t]
