"""The block product against other ways to multiply CSR rows with many vectors.

All benchmarks of a column of the table do the same work, ``[X, 1] @ block`` for the made X of
10,000 rows and 500,653 non-zeros: a time of 1.6 ms for 32 vectors is 0.1 ns per non-zero and
vector.
"""

import numba
import numpy as np
from numba.extending import register_jitable

from sklearn_xc.kernels._jit import FASTMATH
from sklearn_xc.kernels.block_product import multiply_rows

from ._common import N_FEATURES, made_data

# Not the package's `kernel`, whose cache on disk would not notice an edit of this file.
jit = numba.njit(nogil=True, fastmath=FASTMATH, error_model="numpy")


@jit
def multiply_block(indptr, indices, data, block, out):
    """Four non-zeros at a time, what the package does."""
    multiply_rows(indptr, indices, data, block, 0, out.shape[0], out)


@jit
def multiply_block_by_ones(indptr, indices, data, block, out):
    """One non-zero at a time."""
    bias = block[block.shape[0] - 1]
    for i in range(out.shape[0]):
        sums = out[i]
        for k in range(out.shape[1]):
            sums[k] = bias[k]
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            value = data[t]
            row = block[np.uint32(indices[t])]
            for k in range(out.shape[1]):
                sums[k] += value * row[k]


@register_jitable
def _multiply_vector(indptr, indices, data, vector, out):
    for i in range(out.shape[0]):
        total = vector[vector.shape[0] - 1]
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            total += data[t] * vector[np.uint32(indices[t])]
        out[i] = total


@jit
def multiply_vectors(indptr, indices, data, vectors, out):
    """One vector at a time; a vector and its result are contiguous."""
    for k in range(vectors.shape[0]):
        _multiply_vector(indptr, indices, data, vectors[k], out[k])


class BlockProduct:
    params = ([8, 16, 32, 64], ["float32", "float64"])
    param_names = ("n_vectors", "dtype")
    rounds, warmup_time = 1, 0.2

    def setup_cache(self):
        X, _ = made_data()
        self.setup(X, 8, "float64")
        expected = self.X @ self.block[:-1] + self.block[-1]
        for multiply in (multiply_block, multiply_block_by_ones):
            multiply(*self.csr, self.block, self.out)
            np.testing.assert_allclose(self.out, expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(self.out_by_vector.T, expected, rtol=1e-9, atol=1e-9)
        return X

    def setup(self, X, n_vectors, dtype):
        self.X = X.astype(dtype)
        self.csr = X.indptr.astype(np.int64), X.indices.astype(np.int32), self.X.data
        rng = np.random.default_rng(0)
        self.block = rng.standard_normal((N_FEATURES + 1, n_vectors)).astype(dtype)
        self.vectors = np.ascontiguousarray(self.block.T)
        self.out = np.empty((X.shape[0], n_vectors), dtype)
        self.out_by_vector = np.empty((n_vectors, X.shape[0]), dtype)
        multiply_block(*self.csr, self.block, self.out)
        multiply_block_by_ones(*self.csr, self.block, self.out)
        multiply_vectors(*self.csr, self.vectors, self.out_by_vector)

    def time_block(self, X, n_vectors, dtype):
        multiply_block(*self.csr, self.block, self.out)

    def time_block_one_nonzero_at_a_time(self, X, n_vectors, dtype):
        multiply_block_by_ones(*self.csr, self.block, self.out)

    def time_one_vector_at_a_time(self, X, n_vectors, dtype):
        multiply_vectors(*self.csr, self.vectors, self.out_by_vector)

    def time_scipy(self, X, n_vectors, dtype):
        """Without the constant feature, and with an array made for the result."""
        self.X @ self.block[:-1]
