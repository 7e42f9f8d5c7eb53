"""CSR rows times a block of column vectors, the product that one-vs-all training lives on.

One weight vector makes every load a gather: 0.5, 0.9 and 2 ns per non-zero for 10,000, 100,000 and
500,000 features (float32, one core of an EPYC). A row-major block of 32 vectors turns the inner
loop into unit-stride additions: 0.11, 0.19 and 0.5 ns per non-zero and vector. Four non-zeros are
taken at a time, so that the accumulators are loaded and stored a quarter as often; alternatives
are measured in ``asv_bench/benchmarks/kernels.py``.
"""

import numpy as np

from sklearn_xc.kernels._jit import inlined

_ONE = np.uint64(1)
_TWO = np.uint64(2)
_THREE = np.uint64(3)
_FOUR = np.uint64(4)


@inlined
def multiply_rows(indptr, indices, data, block, first, last, out):
    """Write rows `first` to `last` of ``[X, 1] @ block`` into the leading rows of `out`.

    Parameters
    ----------
    indptr, indices, data : ndarray of int64, int32 and float
        X of shape (n, d) in CSR form.
    block : ndarray of shape (d + 1, n_lanes), C-ordered
        The vectors, one per column; the last row multiplies the constant feature.
    first, last : int
        The range of rows of X.
    out : ndarray of shape (>= last - first, n_lanes), C-ordered
        Overwritten.
    """
    n_lanes = block.shape[1]
    bias = block[block.shape[0] - 1]
    for i in range(first, last):
        sums = out[i - first]
        for k in range(n_lanes):
            sums[k] = bias[k]
        t = np.uint64(indptr[i])
        stop = np.uint64(indptr[i + 1])
        while t + _FOUR <= stop:
            v0 = data[t]
            v1 = data[t + _ONE]
            v2 = data[t + _TWO]
            v3 = data[t + _THREE]
            b0 = block[np.uint32(indices[t])]
            b1 = block[np.uint32(indices[t + _ONE])]
            b2 = block[np.uint32(indices[t + _TWO])]
            b3 = block[np.uint32(indices[t + _THREE])]
            for k in range(n_lanes):
                sums[k] += (v0 * b0[k] + v1 * b1[k]) + (v2 * b2[k] + v3 * b3[k])
            t += _FOUR
        while t < stop:
            v0 = data[t]
            b0 = block[np.uint32(indices[t])]
            for k in range(n_lanes):
                sums[k] += v0 * b0[k]
            t += _ONE
