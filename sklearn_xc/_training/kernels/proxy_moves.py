"""Steps of proxies: rows ``(2 y, -||y||^2)``, whose inner products with ``(v, 1)`` are distances.

That inner product is ``||v||^2 - ||v - y||^2``.
"""

import numpy as np

from sklearn_xc._compile.jit import kernel


@kernel
def write_squares(W):
    """Write the last column, ``-||y||^2``, of rows whose other columns are ``2 y``.

    Parameters
    ----------
    W : ndarray of float of shape (n_rows, dim + 1)
        Changed in its last column.
    """
    dim = W.shape[1] - 1
    for k in range(W.shape[0]):
        w, total = W[k], 0.0
        for j in range(dim):
            total += np.float64(w[j]) * np.float64(w[j])
        w[dim] = -0.25 * total


@kernel
def move_proxies(W, rows, bounds, order, owners, values, V, rate, scale, lengths):
    """Take a step from each proxy that has entries, along the gradient by the proxy itself.

    With the gradients g_i by the score of a label, that by its proxy is ``sum_i g_i 2 (V_i - y)``.
    The rate is divided by ``1 + 2 rate sum_i |g_i|``: so no proxy moves farther than to the
    farthest instance that moves it, or as far away, however large the gradients are; and small
    steps are as they were.

    Parameters
    ----------
    W : ndarray of float of shape (n_rows, dim + 1)
        Changed: ``2 y / scale`` and ``-||y / scale||^2``.
    rows, bounds, order, owners
        As ``group_entries`` writes them.
    values : ndarray of float
        The g of each entry.
    V : ndarray of float of shape (n, dim)
    rate, scale : float
    lengths : ndarray of float of shape (n_distinct,)
        Overwritten: how far each row has moved.
    """
    dim = V.shape[1]
    gradient = np.empty(dim, W.dtype)
    for r in range(lengths.shape[0]):
        # 1. The gradient by y.
        for j in range(dim):
            gradient[j] = 0
        total, size = rate * 0, rate * 0
        for e in range(bounds[r], bounds[r + 1]):
            value, v = values[order[e]], V[owners[e]]
            for j in range(dim):
                gradient[j] += value * v[j]
            total += value
            size += abs(value)
        w, pull = W[rows[r]], total * scale
        for j in range(dim):
            gradient[j] = 2 * gradient[j] - pull * w[j]
        # 2. The damped step, and the row of the proxy there.
        step = 2 * (rate / (1 + 2 * rate * size)) / scale
        moved, square_norm = 0.0, 0.0
        for j in range(dim):
            by = step * gradient[j]
            w[j] -= by
            moved += np.float64(by) * np.float64(by)
            square_norm += np.float64(w[j]) * np.float64(w[j])
        last = w[dim]
        w[dim] = -0.25 * square_norm
        risen = np.float64(w[dim]) - np.float64(last)
        lengths[r] = np.sqrt(moved + risen * risen)
