"""Steps of training: entries of a mini-batch, the residual block, the triplet loss.

BLAS rounds the product of a row differently for another number of rows, or another place among
them. In the residual block, the bits of each row depend on that row and the weights alone.
"""

import numpy as np

from sklearn_xc._compile.arithmetic.vectors import dot_of_rows
from sklearn_xc._compile.emitters.float_lanes import write_row_products
from sklearn_xc._compile.jit import inlined, kernel
from sklearn_xc._weights.kernels.class_scores import aligned_block

#: Rows that go through all blocks of columns before the next: they stay in the nearest cache.
_CHUNK_ROWS = 32


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
    factors = np.ones(width, M.dtype)
    products = np.zeros(width, M.dtype)
    start, stop = np.uint64(0), np.uint64(dim)
    for begin in range(0, n, _CHUNK_ROWS):
        end = min(begin + _CHUNK_ROWS, n)
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
def normalise_rows(U, Y, V, inverse_norms):
    """Write unit rows: those of Y + U.

    Parameters
    ----------
    U, Y : ndarray of float of shape (n, dim)
        Where a row of U is 0, V and the inverse norm are: nothing goes in there. Where a square
        overflows, they are NaN.
    V : ndarray of float of shape (n, dim)
        Overwritten; may be Y.
    inverse_norms : ndarray of float of shape (n,)
        Overwritten.
    """
    n = np.uint64(V.shape[0])
    dim = np.uint64(V.shape[1])
    for i in range(n):
        square = dot_of_rows(U, i, U, i, np.uint64(0))
        u, v = U[i], V[i]
        if square > 0:
            y = Y[i]
            for j in range(dim):
                v[j] = u[j] + y[j]
            square = dot_of_rows(V, i, V, i, np.uint64(0))
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
        along = dot_of_rows(G, i, V, i, np.uint64(0))
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


@kernel
def copy_entries(starts, counts, ids, values, at, out_ids, out_values):
    """Write the entries of rows one after another, and return where they end.

    Parameters
    ----------
    starts, counts : ndarray of int64 of shape (n,)
        Where the entries of each row are.
    ids : ndarray of int32
    values : ndarray of float
    at : int
        Where the first entry goes.
    out_ids, out_values : ndarray
        Of the same types; overwritten there.
    """
    for i in range(starts.shape[0]):
        for t in range(starts[i], starts[i] + counts[i]):
            out_ids[at], out_values[at] = ids[t], values[t]
            at += 1
    return at


@kernel
def triplet_gradient(
    scores, own, indptr, positives, columns, weight, margin, begin, end, losses, n_violations
):
    """Overwrite scores with the gradient of the triplet loss by them, for some of the instances.

    The loss of an instance is ``sum_k [z_k - z_own + margin]_+`` over the labels k of the pool that
    are not its own.

    Parameters
    ----------
    scores : ndarray of float of shape (n, m)
        Of the instances with the labels of the pool. Overwritten in rows `begin` to `end`.
    own : ndarray of int64 of shape (n,)
        The column of a positive of each instance.
    indptr : ndarray of int64 of shape (n + 1,)
        Bounds of the labels of each instance in `positives`.
    positives : ndarray of int32
        All labels of each instance; they are no negatives.
    columns : ndarray of int32 of shape (n_labels,)
        The column of each label in the pool, or -1.
    weight : ndarray of float of shape (n,)
        Of the instances: gradient and loss are multiplied by it.
    margin : float
    begin, end : int
        Range of instances.
    losses : ndarray of float64 of shape (n,)
        Overwritten from `begin` to `end`.
    n_violations : ndarray of int64 of shape (n,)
        Overwritten from `begin` to `end`: the negatives within the margin, which have a gradient.
    """
    zero = scores.dtype.type(0)
    lowest = scores.dtype.type(-np.inf)
    for i in range(begin, end):
        row = scores[i]
        at = own[i]
        limit = row[at] - scores.dtype.type(margin)
        for t in range(indptr[i], indptr[i + 1]):
            if columns[positives[t]] >= 0:
                row[columns[positives[t]]] = lowest
        one = scores.dtype.type(weight[i])
        total = np.float64(0.0)
        n = 0
        for k in range(np.uint64(row.shape[0])):
            is_violation = row[k] > limit
            n += is_violation
            total += np.float64(row[k] - limit) if is_violation else 0.0
            row[k] = one if is_violation else zero
        row[at] = -scores.dtype.type(n) * one
        losses[i] = np.float64(weight[i]) * total
        n_violations[i] = n
