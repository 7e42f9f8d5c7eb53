"""Rows of a CSR matrix, as the Newton kernels read them: ``X = (indptr, indices, data)``.

``dense_rows`` has the same functions for a dense matrix. A kernel takes one of the two modules.
"""

import numpy as np

from sklearn_xc._compile.emitters.int16_lanes import prefetch
from sklearn_xc._compile.jit import inlined
from sklearn_xc._input.kernels.csr_rows import add_row, row_dot  # noqa: F401 - as the others

#: Number of rows to prefetch ahead, if rows are not read in order.
ROWS_AHEAD = 8
#: Cache lines to prefetch of each row, 16 non-zeros each; the processor prefetches the rest.
_LINES = 2
_ONE = np.uint64(1)


@inlined
def prefetch_row(X, i):
    """Prefetch the beginning of row i."""
    indptr, indices, data = X
    start = np.uint64(indptr[i])
    for line in range(_LINES):
        prefetch(indices, start + np.uint64(16 * line))
        prefetch(data, start + np.uint64(16 * line))


@inlined
def row_dot_double(X, i, vector):
    """Return ``x_i . vector``, summed in float64."""
    indptr, indices, data = X
    total = np.float64(0.0)
    for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + _ONE])):
        total += np.float64(data[t]) * np.float64(vector[np.uint32(indices[t])])
    return total


@inlined
def add_row_and_squares(X, i, scale, weight, out, squares):
    """Add ``scale * x_i`` to `out` and ``weight * x_i**2`` to `squares`, both float64."""
    indptr, indices, data = X
    for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + _ONE])):
        j = np.uint32(indices[t])
        value = np.float64(data[t])
        out[j] += scale * value
        squares[j] += weight * value * value


@inlined
def rows_of_lane(X, lane):
    """Return the rows of a lane: some of X, with row pointers of their own, or all."""
    indptr, indices, data = X
    first = lane.first_pointer
    own = indptr[first : first + lane.n_rows + 1]
    start = lane.first_entry
    stop = start + own[lane.n_rows]
    return own, indices[start:stop], data[start:stop]


@inlined
def is_compactable(X, rows, room):
    """Return whether `rows` have at most `room` non-zeros."""
    indptr = X[0]
    total = np.int64(0)
    for r in range(rows.shape[0]):
        i = np.uint32(rows[r])
        total += indptr[i + _ONE] - indptr[i]
    return total <= room


@inlined
def compact(X, rows, position, touched, out):
    """Copy `rows`, number their features from 0 in the order met, and return how many there are.

    Parameters
    ----------
    X, out : tuple of ndarray
        CSR rows; `out` has room for the copy and is overwritten.
    rows : ndarray of int32
        The rows to copy.
    position : ndarray of int32 of shape (d,)
        All -1; on return the new number of each touched feature.
    touched : ndarray of int32 of shape (d + 1,)
        On return its head lists the touched features by their new number.
    """
    indptr, indices, data = X
    out_indptr, out_indices, out_data = out
    n_local = np.uint32(0)
    end = np.uint64(0)
    out_indptr[0] = 0
    for r in range(rows.shape[0]):
        prefetch_row(X, np.uint32(rows[min(r + ROWS_AHEAD, rows.shape[0] - 1)]))
        i = np.uint32(rows[r])
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + _ONE])):
            j = np.uint32(indices[t])
            # No branch on new features: it cannot be predicted, and a misprediction costs more.
            p = position[j]
            is_new = np.uint32(p < 0)
            p = np.int32(n_local) if p < 0 else p
            position[j] = p
            touched[n_local] = np.int32(j)
            n_local += is_new
            out_indices[end] = p
            out_data[end] = data[t]
            end += _ONE
        out_indptr[r + 1] = end
    return np.int64(n_local)
