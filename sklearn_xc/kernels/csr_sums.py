"""Sums over rows of a CSR matrix."""

import numpy as np

from sklearn_xc.kernels._jit import kernel

_ONE = np.uint32(1)


@kernel
def sum_csr_rows(indptr, indices, data, rows, weight, out):
    """Add the weighted sum of `rows`, and of a constant feature behind them, to `out`.

    Parameters
    ----------
    indptr, indices, data : ndarray
        CSR rows of X of shape (n, d).
    rows : ndarray of int32
        Row numbers.
    weight : ndarray of shape (n,)
        Weight of each row of X.
    out : ndarray of float64 of shape (d + 1,)
        Added to.
    """
    last = out.shape[0] - 1
    for r in range(rows.shape[0]):
        i = np.uint32(rows[r])
        w = np.float64(weight[i])
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + _ONE])):
            out[np.uint32(indices[t])] += w * data[t]
        out[last] += w
