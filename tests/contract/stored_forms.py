"""The same values stored in other ways, and index arrays that point outside the shape."""

from functools import partial

import numpy as np
import scipy.sparse as sp

#: All that scipy stores two dimensions in, but for diagonals.
CONTAINERS = (
    sp.csr_matrix,
    sp.csr_array,
    sp.csc_matrix,
    sp.csc_array,
    sp.coo_matrix,
    sp.coo_array,
    sp.lil_matrix,
    sp.lil_array,
    sp.dok_array,
    sp.bsr_matrix,
)


def with_zeros(matrix, values, rng):
    """Return a CSR in which some zeros are stored, rows in any order."""
    free = np.argwhere(matrix.toarray() == 0)
    at = free[rng.random(len(free)) < 0.3]
    held = sp.coo_array(matrix)
    row, column = np.r_[held.row, at[:, 0]], np.r_[held.col, at[:, 1]]
    data = np.r_[held.data, rng.choice(values, len(at))].astype(matrix.dtype)
    return in_any_order(row, column, data, matrix.shape, rng)


def halved(matrix, rng):
    """Return a CSR in which each entry is stored as two halves, somewhere in its row."""
    held = sp.coo_array(matrix)
    row, column, data = (np.tile(part, 2) for part in (held.row, held.col, held.data / 2))
    return in_any_order(row, column, data.astype(matrix.dtype), matrix.shape, rng)


def in_any_order(row, column, data, shape, rng):
    """Return a CSR of entries, those of a row in a random order."""
    order = np.lexsort((rng.random(len(row)), row))
    indptr = np.searchsorted(row[order], np.arange(shape[0] + 1))
    return sp.csr_array((data[order], column[order], indptr), shape=shape)


def shuffled(matrix, rng):
    """Return a CSR with the entries of each row in a random order."""
    held = sp.coo_array(matrix)
    return in_any_order(held.row, held.col, held.data, held.shape, rng)


def in_format(name, matrix, rng):
    """Return a matrix in another format of scipy."""
    return matrix.asformat(name)


def wide(matrix):
    """Return a copy whose indices are int64."""
    matrix = sp.csr_array(matrix, copy=True)
    matrix.indices = matrix.indices.astype(np.int64)
    matrix.indptr = matrix.indptr.astype(np.int64)
    return matrix


def cancelling(matrix, rng):
    """Return a COO with a pair of entries that sum to zero, where nothing was."""
    held, (i, j) = sp.coo_array(matrix), np.argwhere(matrix.toarray() == 0)[5]
    data = np.r_[held.data, 1.0, -1.0].astype(matrix.dtype)
    return sp.coo_array((data, (np.r_[held.row, i, i], np.r_[held.col, j, j])), shape=matrix.shape)


#: The same values in another form, of a CSR and random numbers.
FORMS = {
    "zeros": lambda M, rng: with_zeros(M, [0.0], rng),
    "zeros of both signs": lambda M, rng: with_zeros(M, [0.0, -0.0], rng),
    "zeros, int64": lambda M, rng: wide(with_zeros(M, [0.0], rng)),
    "zeros and halves": lambda M, rng: halved(with_zeros(M, [0.0], rng), rng),
    "halves": halved,
    "cancelling": cancelling,
    "unsorted": shuffled,
    "int64": lambda M, rng: wide(M),
    **{f: partial(in_format, f) for f in ("csc", "coo", "lil", "dok", "bsr", "dia")},
}
#: What has no meaning for an indicator: entries of -0.0 or 0.5, and those that cancel.
NO_INDICATORS = ("zeros of both signs", "halves", "zeros and halves", "cancelling")
OF_DENSE = {
    "dense": lambda M, rng: M.toarray(),
    "Fortran": lambda M, rng: np.asfortranarray(M.toarray()),
    "negative zeros": lambda M, rng: np.where(M.toarray() == 0, -0.0, M.toarray()),
}


def read_only(matrix):
    """Return a copy of a CSR, CSC or array whose memory cannot be written."""
    matrix = matrix.copy()
    arrays = (matrix.data, matrix.indices, matrix.indptr) if sp.issparse(matrix) else (matrix,)
    for array in arrays:
        array.flags.writeable = False
    return matrix


def beyond(matrix):
    """Return a CSR whose last entry is in the column after the last.

    Who does not look writes one entry behind an array. The number of entries is a multiple of 16,
    so that this falls into the padding of the allocation, and the process most likely lives on.
    """
    matrix = sp.csr_array(matrix, copy=True)
    kept = matrix.nnz // 16 * 16
    indptr = np.minimum(matrix.indptr, kept)
    indices = matrix.indices[:kept].copy()
    indices[-1] = matrix.shape[1]
    made = sp.csr_array(matrix.shape, dtype=matrix.dtype)
    made.data, made.indices, made.indptr = matrix.data[:kept].copy(), indices, indptr
    return made
