"""Rows of a dense matrix, as the Newton kernels read them: ``X = (values,)``.

The functions are those of ``sparse_rows``. Dense rows are contiguous, so a compact copy gains
nothing.
"""

import numpy as np

from sklearn_xc._compile.emitters.int16_lanes import prefetch
from sklearn_xc._compile.jit import inlined


@inlined
def prefetch_row(X, i):
    """Prefetch the beginning of row i."""
    values = X[0]
    prefetch(values, np.uint64(i) * np.uint64(values.shape[1]))


@inlined
def row_dot(X, i, vector):
    """Return ``x_i . vector``, summed in the type of X."""
    row = X[0][i]
    total = row.dtype.type(0)
    for j in range(row.shape[0]):
        total += row[j] * vector[j]
    return total


@inlined
def row_dot_double(X, i, vector):
    """Return ``x_i . vector``, summed in float64."""
    row = X[0][i]
    total = np.float64(0.0)
    for j in range(row.shape[0]):
        total += np.float64(row[j]) * np.float64(vector[j])
    return total


@inlined
def add_row(X, i, scale, out):
    """Add ``scale * x_i`` to `out`."""
    row = X[0][i]
    for j in range(row.shape[0]):
        out[j] += scale * row[j]


@inlined
def add_row_and_squares(X, i, scale, weight, out, squares):
    """Add ``scale * x_i`` to `out` and ``weight * x_i**2`` to `squares`, both float64."""
    row = X[0][i]
    for j in range(row.shape[0]):
        value = np.float64(row[j])
        out[j] += scale * value
        squares[j] += weight * value * value


@inlined
def rows_of_lane(X, lane):
    """Return X: dense rows have no working sets."""
    return X


@inlined
def is_compactable(X, rows, room):
    """Return False: dense rows are never copied."""
    return False


@inlined
def compact(X, rows, position, touched, out):
    """Return 0: dense rows are never copied."""
    return 0
