"""Steps of Adam: running means of gradients and of their squares, and moves by their ratio."""

import numpy as np

from sklearn_xc._compile.jit import kernel
from sklearn_xc._training.kernels.row_moves import prefetch_row

#: Rows that are asked for before their turn: without it a step takes 1.7 times as long.
_ROWS_AHEAD = 4


@kernel
def adam_step(values, first, second, gradient, shares, step, epsilon):
    """Take a step: ``values -= step * first / (sqrt(second) + epsilon)``.

    Parameters
    ----------
    values : ndarray of float of shape (n,)
        Changed.
    first, second : ndarray of float of shape (n,)
        Means of gradients and of their squares; changed, before the step.
    gradient : ndarray of float of shape (n,)
    shares : tuple of float
        Of the gradient in `first`, and of its square in `second`.
    step, epsilon : float
    """
    for j in range(values.shape[0]):
        g = gradient[j]
        first[j] += shares[0] * (g - first[j])
        second[j] += shares[1] * (g * g - second[j])
        values[j] -= step * first[j] / (np.sqrt(second[j]) + epsilon)


@kernel
def adam_rows(W, first, second, groups, begin, end, values, V, shares, step, epsilon):
    """Take ``adam_step`` with some rows of a matrix, with ``sum_i g_ik V_i`` as gradient of row k.

    The gradient of a row is held while that row takes its step, never that of the matrix.

    Parameters
    ----------
    W, first, second : ndarray of float of shape (n_rows, dim)
        Changed in the rows that have entries.
    groups : tuple of ndarray
        ``rows, bounds, order, owners`` as ``group_entries`` writes them.
    begin, end : int
        Which of those rows. Threads share them out: none depends on another.
    values : ndarray of float
        The g of each entry.
    V : ndarray of float of shape (n, dim)
    shares : tuple of float
    step, epsilon : float
        See ``adam_step``.
    """
    rows, bounds, order, owners = groups
    dim = W.shape[1]
    gradient = np.empty(dim, W.dtype)
    for r in range(begin, end):
        soon = rows[min(r + _ROWS_AHEAD, end - 1)]
        prefetch_row(W, soon)
        prefetch_row(first, soon)
        prefetch_row(second, soon)
        for j in range(dim):
            gradient[j] = 0
        # 1. Four instances at a time: the sums are read and written once for them.
        e, last = bounds[r], bounds[r + 1]
        while e + 4 <= last:
            g0, g1, g2, g3 = (
                values[order[e]],
                values[order[e + 1]],
                values[order[e + 2]],
                values[order[e + 3]],
            )
            v0, v1, v2, v3 = (
                V[owners[e]],
                V[owners[e + 1]],
                V[owners[e + 2]],
                V[owners[e + 3]],
            )
            for j in range(dim):
                gradient[j] += (g0 * v0[j] + g1 * v1[j]) + (g2 * v2[j] + g3 * v3[j])
            e += 4
        # 2. The rest.
        while e < last:
            value, v = values[order[e]], V[owners[e]]
            for j in range(dim):
                gradient[j] += value * v[j]
            e += 1
        # 3. The step.
        k = np.uint32(rows[r])
        w, m, s = W[k], first[k], second[k]
        for j in range(dim):
            g = gradient[j]
            m[j] += shares[0] * (g - m[j])
            s[j] += shares[1] * (g * g - s[j])
            w[j] -= step * m[j] / (np.sqrt(s[j]) + epsilon)
