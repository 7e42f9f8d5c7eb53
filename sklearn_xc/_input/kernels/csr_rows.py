"""Rows of a CSR matrix ``(indptr, indices, data)``: arranged, hashed, multiplied and added."""

import numpy as np

from sklearn_xc._compile.arithmetic.sampling import mix
from sklearn_xc._compile.jit import inlined, kernel

_ONE = np.uint64(1)
#: Constants of ``hash_rows``.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_OTHER = np.uint64(0xD1B54A32D192ED03)


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
    """Write rows by feature: a CSC matrix, the rows of each feature ascending.

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


@kernel
def hash_rows(indptr, indices, bits, out):
    """Write two hashes of 64 bits for each row, of its features that are not 0.

    Parameters
    ----------
    indptr, indices : ndarray of int64 and int32
        CSR rows.
    bits : ndarray of uint64
        The bits of each value; 0 for a zero of either sign.
    out : ndarray of uint64 of shape (n, 2)
        Overwritten.
    """
    for i in range(np.uint64(out.shape[0])):
        first, second = np.uint64(0), np.uint64(0)
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + _ONE])):
            if bits[t] != 0:
                key = (np.uint64(np.uint32(indices[t])) + _ONE) * _GOLDEN
                one = mix(key ^ mix(bits[t]))
                first += one
                second += mix(one ^ _OTHER)
        out[i, 0], out[i, 1] = first, second


@inlined
def row_dot(X, i, vector):
    """Return ``x_i . vector``, summed in the type of X."""
    indptr, indices, data = X
    total = data.dtype.type(0)
    for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + _ONE])):
        total += data[t] * vector[np.uint32(indices[t])]
    return total


@inlined
def row_dot_pair(X, i, one, two):
    """Return ``x_i . one`` and ``x_i . two``, loading both vectors at the same time."""
    indptr, indices, data = X
    first, second = data.dtype.type(0), data.dtype.type(0)
    for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + _ONE])):
        j = np.uint32(indices[t])
        x = data[t]
        first += x * one[j]
        second += x * two[j]
    return first, second


@inlined
def add_row(X, i, scale, out):
    """Add ``scale * x_i`` to `out`."""
    indptr, indices, data = X
    for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + _ONE])):
        out[np.uint32(indices[t])] += scale * data[t]


@inlined
def add_row_pair(X, i, scale_one, one, scale_two, two):
    """Add multiples of x_i to two vectors that do not overlap."""
    indptr, indices, data = X
    for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + _ONE])):
        j = np.uint32(indices[t])
        x = data[t]
        one[j] += scale_one * x
        two[j] += scale_two * x
