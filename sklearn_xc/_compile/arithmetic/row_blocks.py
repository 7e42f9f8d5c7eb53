"""One CSR row times a block of columns.

What happens in a column does not depend on the others, so that loops over columns become vector
code. Four non-zeros are taken together: the sums are read and written once for all of them.
"""

import numpy as np

from sklearn_xc._compile.jit import inlined

#: Bytes of a block's row: two cache lines, so that the weights of 8,000 features fit into 1 MB.
ROW_BYTES = 128
_ONE, _TWO, _THREE, _FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


@inlined
def add_row_products(indices, values, start, stop, block, out):
    """Add ``sum_t values[t] block[indices[t], c]`` to ``out[c]``, in the type of `out`.

    Parameters
    ----------
    indices, values : ndarray of int32 and float
        CSR rows.
    start, stop : uint64
        The row's non-zeros.
    block : ndarray of shape (n_features, width)
        C-ordered.
    out : ndarray of shape (width,)
        Changed in place.
    """
    number, t = out.dtype.type, start
    while t + _FOUR <= stop:
        v0, v1 = number(values[t]), number(values[t + _ONE])
        v2, v3 = number(values[t + _TWO]), number(values[t + _THREE])
        b0, b1 = block[np.uint32(indices[t])], block[np.uint32(indices[t + _ONE])]
        b2, b3 = block[np.uint32(indices[t + _TWO])], block[np.uint32(indices[t + _THREE])]
        for c in range(out.shape[0]):
            out[c] += (v0 * b0[c] + v1 * b1[c]) + (v2 * b2[c] + v3 * b3[c])
        t += _FOUR
    while t < stop:
        v0, b0 = number(values[t]), block[np.uint32(indices[t])]
        for c in range(out.shape[0]):
            out[c] += v0 * b0[c]
        t += _ONE


@inlined
def write_row_products(indices, values, start, stop, block, factors, out, at):
    """Write ``out[at + c] = factors[c] * sum_t values[t] block[indices[t], c]``.

    Parameters
    ----------
    indices, values, start, stop, block
        As of ``add_row_products``.
    factors : ndarray of shape (width,)
    out : ndarray of shape (>= at + width,)
        Overwritten there.
    at : uint64
    """
    own = out[at : at + np.uint64(block.shape[1])]
    for c in range(block.shape[1]):
        own[c] = 0
    add_row_products(indices, values, start, stop, block, own)
    for c in range(block.shape[1]):
        own[c] *= factors[c]
