"""A hash of each row of a CSR matrix."""

import numpy as np

from sklearn_xc._compile.arithmetic.sampling import mix
from sklearn_xc._compile.jit import kernel

_ONE = np.uint64(1)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_OTHER = np.uint64(0xD1B54A32D192ED03)


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
