"""Dense rows through a residual block and onto the unit sphere, and gradients back.

BLAS rounds the product of a row differently for another number of rows, or another place among
them. Here the bits of each row depend on that row and the weights alone.
"""

import numpy as np

from sklearn_xc._compile.emitters.dense_dot import dense_dot
from sklearn_xc._compile.emitters.float_lanes import write_row_products
from sklearn_xc._compile.jit import inlined, kernel
from sklearn_xc._weights.kernels.class_scores import aligned_block

#: Rows that go through all blocks of columns before the next: they stay in the nearest cache.
_TOGETHER = 32


@inlined
def _blocks_of_columns(M):
    """Return the columns of M, block by block, each as ``write_row_products`` reads it."""
    dim, n_columns = M.shape
    width = aligned_block(0, M).shape[1]
    n_blocks = (n_columns + width - 1) // width
    blocks = aligned_block(n_blocks * dim, M)
    for b in range(n_blocks):
        first = b * width
        for k in range(dim):
            for c in range(width):
                inside = first + c < n_columns
                blocks[b * dim + k, c] = M[k, first + c] if inside else 0
    return blocks


@kernel
def multiply_rows(U, M, out):
    """Write ``out = U M``; the bits of a row of `out` depend on its row of U and on M only.

    Parameters
    ----------
    U : ndarray of float of shape (n, dim)
    M : ndarray of shape (dim, n_columns)
    out : ndarray of shape (n, n_columns)
        Overwritten. All are C-contiguous and of one type.
    """
    n, dim = U.shape
    n_columns = M.shape[1]
    blocks = _blocks_of_columns(M)
    width = blocks.shape[1]
    columns = np.arange(dim).astype(np.int32)
    factors, products = np.ones(width, M.dtype), np.zeros(width, M.dtype)
    start, stop = np.uint64(0), np.uint64(dim)
    for begin in range(0, n, _TOGETHER):
        end = min(begin + _TOGETHER, n)
        for first in range(0, n_columns, width):
            at = first // width * dim
            block = blocks[at : at + dim]
            m = min(width, n_columns - first)
            for i in range(begin, end):
                if m == width:
                    write_row_products(
                        columns, U[i], start, stop, block, factors, out[i], np.uint64(first)
                    )
                else:
                    write_row_products(
                        columns, U[i], start, stop, block, factors, products, np.uint64(0)
                    )
                    for c in range(m):
                        out[i, first + c] = products[c]


@kernel
def rectify_rows(H, bias):
    """Replace each row h of H, (n, dim), by ``max(h + bias, 0)``."""
    for i in range(H.shape[0]):
        h = H[i]
        for j in range(bias.shape[0]):
            total = h[j] + bias[j]
            h[j] = total if total > 0 else total * 0


@kernel
def normalise_rows(U, Y, is_added, V, inverse_norms):
    """Write unit rows: those of U, or of Y + U.

    Parameters
    ----------
    U, Y : ndarray of float of shape (n, dim)
        Where a row of U is 0, V and the inverse norm are: nothing goes in there. Where a square
        overflows, they are NaN.
    is_added : bool
        Whether Y counts; otherwise it is not read, and may be empty.
    V : ndarray of float of shape (n, dim)
        Overwritten; may be Y.
    inverse_norms : ndarray of float of shape (n,)
        Overwritten.
    """
    n = np.uint64(V.shape[0])
    dim = np.uint64(V.shape[1])
    for i in range(n):
        square = dense_dot(U, i * dim, U, i * dim, dim)
        u, v = U[i], V[i]
        if square > 0 and is_added:
            y = Y[i]
            for j in range(dim):
                v[j] = u[j] + y[j]
            square = dense_dot(V, i * dim, V, i * dim, dim)
        else:
            for j in range(dim):
                v[j] = u[j]
        # 0 and NaN stay what they are, infinity becomes NaN: with 0 it would pass for nothing.
        inverse = 1 / np.sqrt(square) if 0 < square < np.inf else square * 0
        for j in range(dim):
            v[j] *= inverse
        inverse_norms[i] = inverse


@kernel
def gradient_before_norms(G, V, inverse_norms, out):
    """Write the gradient by rows y from that by ``v = y / |y|``: ``(g - (g.v) v) / |y|``.

    Parameters
    ----------
    G, V : ndarray of float of shape (n, dim)
        Gradients by v, and v.
    inverse_norms : ndarray of float of shape (n,)
        1 / |y|; 0 is for rows that have no gradient.
    out : ndarray of float of shape (n, dim)
        Overwritten.
    """
    n = np.uint64(V.shape[0])
    dim = np.uint64(V.shape[1])
    for i in range(n):
        along = dense_dot(G, i * dim, V, i * dim, dim)
        inverse = inverse_norms[i]
        g, v, y = G[i], V[i], out[i]
        for j in range(dim):
            y[j] = inverse * (g[j] - along * v[j])


@kernel
def gradient_before_rectifier(G, H):
    """Set entries of G to 0 where those of H, (n, dim), are: there the rectifier is flat."""
    for i in range(H.shape[0]):
        g, h = G[i], H[i]
        for j in range(h.shape[0]):
            g[j] = g[j] if h[j] > 0 else g[j] * 0
