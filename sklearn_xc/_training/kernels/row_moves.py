"""Steps of rows of a matrix, plain or by Adam, from gradients that are sums over a batch.

The gradient of row k is ``sum_i g_ik V_i`` over the instances with an entry for it. Entries of n
instances are in flat arrays, those of instance i from ``starts[i]`` on. A proxy y is a row
``(2 y, -||y||^2)``, whose inner product with ``(v, 1)`` is ``||v||^2 - ||v - y||^2``.
"""

import numpy as np

from sklearn_xc._compile.emitters.int16_lanes import prefetch
from sklearn_xc._compile.jit import inlined, kernel

#: Entries whose rows are prefetched: the hardware prefetches within a row, but not the next row.
_AHEAD = 8
_LINE_BYTES = 64
#: Rows that Adam prefetches before their turn: without it a step takes 1.7 times as long.
_ROWS_AHEAD = 4


@inlined
def prefetch_row(W, row):
    """Prefetch a row of a C-contiguous matrix; it need not exist."""
    dim = np.uint64(W.shape[1])
    first = np.uint64(row) * dim
    j = np.uint64(0)
    while j < dim:
        prefetch(W, first + j)
        j += np.uint64(_LINE_BYTES // W.itemsize)


@kernel
def group_entries(starts, counts, ids, slots, rows, bounds, order, owners):
    """Group entries by row, and return how many rows there are.

    Parameters
    ----------
    starts, counts : ndarray of int64 of shape (n,)
        Where the entries of each instance are.
    ids : ndarray of int32
        The row of each entry.
    slots : ndarray of int32 of shape (n_rows,)
        -1, and so again on return.
    rows : ndarray of int32 of shape (>= n_distinct,)
        Overwritten: the distinct rows, in the order in which they come.
    bounds : ndarray of int64 of shape (>= n_distinct + 1,)
        Overwritten: those of row r are ``order[bounds[r] : bounds[r + 1]]``, by instance.
    order, owners : ndarray of int64 of shape (>= n_entries,)
        Overwritten: the places of the entries, and the instance of each.
    """
    n_distinct = 0
    for i in range(starts.shape[0]):
        for t in range(starts[i], starts[i] + counts[i]):
            slot = slots[ids[t]]
            if slot < 0:
                slot = n_distinct
                slots[ids[t]], rows[slot], bounds[slot + 1] = slot, ids[t], 0
                n_distinct += 1
            bounds[slot + 1] += 1
    # Each bound is the end of the row before while entries are put in place, and its own beginning
    # before that: entries are counted one further on.
    bounds[0] = 0
    for r in range(1, n_distinct + 1):
        bounds[r] += bounds[r - 1]
    for r in range(n_distinct, 0, -1):
        bounds[r] = bounds[r - 1]
    for i in range(starts.shape[0]):
        for t in range(starts[i], starts[i] + counts[i]):
            slot = slots[ids[t]]
            order[bounds[slot + 1]], owners[bounds[slot + 1]] = t, i
            bounds[slot + 1] += 1
    for r in range(n_distinct):
        slots[rows[r]] = -1
    return n_distinct


@kernel
def move_rows(W, rows, bounds, order, owners, values, V, rate, last_rate, lengths):
    """Take a step from each row that has entries.

    Parameters
    ----------
    W : ndarray of float of shape (n_rows, dim) or (n_rows, dim + 1)
        Changed. The V of a further column is 1 for all instances.
    rows, bounds, order, owners
        As ``group_entries`` writes them.
    values : ndarray of float
        The g of each entry.
    V : ndarray of float of shape (n, dim)
    rate, last_rate : float
        Of the step, and of that of the further column.
    lengths : ndarray of float of shape (n_distinct,)
        Overwritten: how far each row has moved.
    """
    dim = V.shape[1]
    has_last = W.shape[1] > dim
    gradient = np.empty(dim, W.dtype)
    for r in range(lengths.shape[0]):
        for j in range(dim):
            gradient[j] = 0
        last = rate * 0
        for e in range(bounds[r], bounds[r + 1]):
            value, v = values[order[e]], V[owners[e]]
            for j in range(dim):
                gradient[j] += value * v[j]
            last += value
        w = W[rows[r]]
        total = rate * 0
        for j in range(dim):
            w[j] -= rate * gradient[j]
            total += gradient[j] * gradient[j]
        lengths[r] = rate * np.sqrt(total)
        if has_last:
            w[dim] -= last_rate * last
            lengths[r] = np.sqrt(lengths[r] * lengths[r] + last_rate * last * (last_rate * last))


@kernel
def add_rows(W, starts, counts, ids, values, out):
    """Write ``out[i] = sum_t values[t] W[ids[t]]`` over the entries of each instance.

    Parameters
    ----------
    W : ndarray of float of shape (n_rows, dim)
    starts, counts : ndarray of int64 of shape (n,)
    ids : ndarray of int32
    values : ndarray of float
    out : ndarray of float of shape (n, dim)
        Overwritten.
    """
    last = ids.shape[0] - 1
    for i in range(out.shape[0]):
        total = out[i]
        for j in range(total.shape[0]):
            total[j] = 0
        t = starts[i]
        end = starts[i] + counts[i]
        # Four at a time: the sums are read and written once for them.
        while t + 4 <= end:
            for soon in range(t + _AHEAD, t + _AHEAD + 4):
                prefetch_row(W, ids[min(soon, last)])
            w0, w1, w2, w3 = W[ids[t]], W[ids[t + 1]], W[ids[t + 2]], W[ids[t + 3]]
            g0, g1, g2, g3 = values[t], values[t + 1], values[t + 2], values[t + 3]
            for j in range(total.shape[0]):
                total[j] += (g0 * w0[j] + g1 * w1[j]) + (g2 * w2[j] + g3 * w3[j])
            t += 4
        while t < end:
            w, value = W[ids[t]], values[t]
            for j in range(total.shape[0]):
                total[j] += value * w[j]
            t += 1


@kernel
def squared_norms(starts, counts, values):
    """Return the sum of the squared entries of each instance, float64.

    Parameters
    ----------
    starts, counts : ndarray of int64 of shape (n,)
    values : ndarray of float
    """
    out = np.empty(starts.shape[0])
    for i in range(out.shape[0]):
        # Summed in a register: a sum in memory rounds by where the arrays are.
        total = 0.0
        for t in range(starts[i], starts[i] + counts[i]):
            total += np.float64(values[t]) * np.float64(values[t])
        out[i] = total
    return out


@kernel
def add_drift(rows, lengths, drift, limit, due):
    """Add moves to the drift of rows; return the number of rows whose drift exceeds a limit.

    Parameters
    ----------
    rows : ndarray of int32 of shape (m,)
        Distinct.
    lengths : ndarray of float of shape (m,)
        Of their moves.
    drift : ndarray of float32 of shape (n_rows,)
        Distance moved since the row was last reported; changed, reset to 0 for the rows in `due`.
    limit : float
    due : ndarray of int32 of shape (m,)
        Overwritten: the rows beyond the limit.
    """
    n = 0
    for r in range(rows.shape[0]):
        drifted = drift[rows[r]] + lengths[r]
        if drifted > limit:
            due[n] = rows[r]
            n += 1
            drifted = 0.0
        drift[rows[r]] = drifted
    return n


@kernel
def move_proxies(W, rows, bounds, order, owners, values, V, rate, lengths):
    """Take a step from each proxy that has entries, along the gradient by the proxy itself.

    With the gradients g_i by the score of a label, that by its proxy is ``sum_i g_i 2 (V_i - y)``.
    The rate is divided by ``1 + 2 rate sum_i |g_i|``: so no proxy moves farther than to the
    farthest instance that moves it, or as far away, however large the gradients are.

    Parameters
    ----------
    W : ndarray of float of shape (n_rows, dim + 1)
        Changed: rows ``2 y`` and ``-||y||^2``.
    rows, bounds, order, owners
        As ``group_entries`` writes them.
    values : ndarray of float
        The g of each entry.
    V : ndarray of float of shape (n, dim)
    rate : float
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
        w = W[rows[r]]
        for j in range(dim):
            gradient[j] = 2 * gradient[j] - total * w[j]
        # 2. The damped step, and the row of the proxy there.
        step = 2 * (rate / (1 + 2 * rate * size))
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


@kernel
def blend(mean, values, share):
    """Move a mean towards values by a share of the way.

    Parameters
    ----------
    mean : ndarray of float of shape (n_rows, dim)
        Changed.
    values : ndarray of float of shape (n_rows, >= dim)
        Further columns are ignored.
    share : float
        Between 0 and 1, of the dtype of the mean.
    """
    for i in range(mean.shape[0]):
        for j in range(mean.shape[1]):
            mean[i, j] += share * (values[i, j] - mean[i, j])


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
            v0, v1, v2, v3 = (V[owners[e]], V[owners[e + 1]], V[owners[e + 2]], V[owners[e + 3]])
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
