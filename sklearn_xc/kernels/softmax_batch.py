"""A pass over (instance, class) pairs in mini-batches that share their sampled classes.

The weights of the sampled classes on the features of the batch are written side by side once, so
that all pairs of a batch meet all of its classes at a small part of the price of single steps.
"""

import functools
import math
from typing import Any

import numpy as np

from sklearn_xc.kernels._jit import inlined, kernel
from sklearn_xc.kernels.class_scores import STREAMS, gather_block, multiply_rows
from sklearn_xc.kernels.csr_rows import add_row, compact, row_dot
from sklearn_xc.kernels.implicit_batch import N_WORK, PRECISION, solve_batch
from sklearn_xc.kernels.negatives import class_share, draw_classes
from sklearn_xc.kernels.softmax_epoch import RULES, apply_scale
from sklearn_xc.kernels.vector_math import vector_exp

#: To which share of its terms a step is solved where the weights are in float32.
_SINGLE_PRECISION = 1e-7


@inlined
def _touch_probability(n, n_class, size, chance):
    """Return the probability that a batch samples a class or holds one of its pairs.

    n pairs, n_class of them of the class, `size` in the batch; `chance` of sampling the class.
    """
    if n - n_class < size:
        return 1.0
    log_absent = (
        math.lgamma(n - n_class + 1.0) - math.lgamma(n - n_class - size + 1.0)
        - math.lgamma(n + 1.0) + math.lgamma(n - size + 1.0)
    )  # fmt: skip
    return 1.0 - math.exp(log_absent) * (1.0 - chance)


@inlined
def _sort_features(indices, n_touched, position, touched):
    """Sort the touched features, number them anew, and make `position` -1 again."""
    met = touched[:n_touched].copy()
    touched[:n_touched].sort()
    for f in range(np.uint64(n_touched)):
        position[np.uint32(touched[f])] = f
    for t in range(np.uint64(indices.shape[0])):
        indices[t] = position[np.uint32(met[np.uint32(indices[t])])]
    for f in range(np.uint64(n_touched)):
        position[np.uint32(touched[f])] = -1


@inlined
def _write_gram(local, size, n_touched, block, products, gram):
    """Write the inner products of the rows of a batch."""
    indptr, indices, data = local
    for f in range(np.uint64(n_touched)):
        for i in range(np.uint64(size)):
            block[f, i] = 0
    for i in range(np.uint64(size)):
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            block[np.uint32(indices[t]), i] = data[t]
    multiply_rows(local, size, block, size, products)
    for i in range(size):
        for j in range(size):
            gram[i, j] = products[i, j]


@inlined
def _add_to_classes(local, size, n_touched, moves, block, V, scale, classes, touched):
    """Add ``sum_i moves[i, c] x_i`` to each sampled class."""
    indptr, indices, data = local
    m = classes.shape[0]
    for c in range(m):
        over_scale = moves.dtype.type(1.0 / scale[classes[c]])
        for i in range(size):
            moves[i, c] *= over_scale
    for f in range(np.uint64(n_touched)):
        for c in range(m):
            block[f, c] = 0
    for i in range(np.uint64(size)):
        row = moves[i]
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            x, sums = data[t], block[np.uint32(indices[t])]
            for c in range(m):
                sums[c] += x * row[c]
    for first in range(0, m, STREAMS):
        last = min(first + STREAMS, m)
        for f in range(np.uint64(n_touched)):
            j = np.uint32(touched[f])
            for c in range(np.uint64(first), np.uint64(last)):
                V[np.uint64(classes[c]), j] += block[f, c]


@inlined
def _find_places(y, drawn, place, group):
    """Write where each target is among the sampled classes, and its first mention in the batch."""
    for i in range(y.shape[0]):
        place[i], group[i] = -1, i
        for c in range(drawn.shape[0]):
            if drawn[c] == y[i]:
                place[i] = c
        for j in range(i):
            if y[j] == y[i]:
                group[i] = j
                break


@functools.cache
def softmax_batch_kernels(method: str) -> Any:
    """Return the compiled pass of a method, a key of ``softmax_epoch.RULES``."""
    rule = RULES[method]
    is_implicit = method == "implicit"

    @inlined
    def explicit_moves(scale, alpha, gram, place, q, c, own, c_y, u, p, totals, setting):
        """Follow a rule for each pair from the same weights."""
        n, m = q.shape
        factors, q_of, c_of, p_of = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
        for i in range(n):
            size = 0
            for k in range(m):
                if k != place[i]:
                    factors[size], q_of[size], c_of[size] = alpha[k], q[i, k], c[k]
                    size += 1
            u[i], totals[i] = rule(
                scale[i], factors[:size], gram[i, i], own[i], c_y[i], q_of[:size], c_of[:size],
                u[i], p_of[:size], setting,
            )  # fmt: skip
            size = 0
            for k in range(m):
                p[i, k] = 0.0
                if k != place[i]:
                    p[i, k] = p_of[size]
                    size += 1

    @kernel
    def run_batches(
        X, rows, classes, counts, n_pairs, weight, order, bounds, first, last, V, scale, u,
        rate, slowing, ridge, setting, sampler, n_negatives, key,
    ):  # fmt: skip
        """Make the steps ``first`` to ``last`` of an epoch; return the sum of their objectives.

        Parameters as of ``softmax_epoch.softmax_kernels``, but:

        counts : ndarray of int64 of shape (n_classes,)
            Visits to pairs of each class, and
        n_pairs : int
            of all classes, in an epoch over the likelihood.
        sampler : ClassSampler
            Shares of the classes, and
        n_negatives : int
            how many are drawn at each step, at most.
        bounds : ndarray of int64 of shape (n_steps + 1,)
            Where each step's pairs begin in `order`.
        """
        d = V.shape[1]
        precision = _SINGLE_PRECISION if V.itemsize == 4 else PRECISION
        largest, room = 0, 0
        for step in range(first, last):
            largest = max(largest, bounds[step + 1] - bounds[step])
            total = 0
            for at in range(bounds[step], bounds[step + 1]):
                i = rows[order[at]]
                total += X[0][i + 1] - X[0][i]
            room = max(room, total)
        position, touched = np.full(d, -1, np.int32), np.empty(d + 1, np.int32)
        local = np.empty(largest + 1, np.int64), np.empty(room, np.int32), np.empty(room, V.dtype)
        width = min(room, d)
        block = np.empty((width, max(n_negatives, largest)), V.dtype)
        products = np.empty((largest, max(n_negatives, largest)), V.dtype)
        work_of = np.empty(N_WORK * largest * n_negatives)
        all_drawn, all_alpha = np.empty(n_negatives, np.int64), np.empty(n_negatives)
        objective = 0.0
        for step in range(first, last):
            pairs = order[bounds[step] : bounds[step + 1]]
            size = pairs.shape[0]
            y, batch_rows = np.empty(size, np.int64), np.empty(size, np.int32)
            own, c_y, a = np.empty(size), np.empty(size), np.empty(size)
            place, group = np.empty(size, np.int64), np.empty(size, np.int64)
            totals, old_u, new_u = np.empty(size), np.empty(size), np.empty(size)
            m = draw_classes(sampler, key, step, n_negatives, all_drawn, all_alpha)
            drawn, alpha, c = all_drawn[:m], all_alpha[:m], np.empty(m)
            q, p, gram = np.empty((size, m)), np.empty((size, m)), np.zeros((size, size))
            now = rate / (1.0 + slowing * bounds[step])
            # 1. Scores of the batch, divided by the shrinkage of their class.
            for i in range(size):
                pair = pairs[i]
                y[i], batch_rows[i] = classes[pair], rows[pair]
                a[i], old_u[i] = now * weight[pair] / size, u[pair]
                k = y[i]
                chance = min(1.0, n_negatives * class_share(sampler, k))
                c_y[i] = 1.0 + now * ridge / _touch_probability(n_pairs, counts[k], size, chance)
                own[i] = row_dot(X, np.uint64(batch_rows[i]), V[k]) * scale[k] / c_y[i]
                new_u[i] = old_u[i]
            _find_places(y, drawn, place, group)
            n_touched = compact(X, batch_rows, position, touched, local)
            _sort_features(local[1][: local[0][size]], n_touched, position, touched)
            gather_block(V, drawn, touched, n_touched, block)
            multiply_rows(local, size, block, m, products)
            for j in range(m):
                k = drawn[j]
                chance = min(1.0, n_negatives * class_share(sampler, k))
                c[j] = 1.0 + now * ridge / _touch_probability(n_pairs, counts[k], size, chance)
                for i in range(size):
                    q[i, j] = products[i, j] * scale[k] / c[j]
            # 2. The step in scores.
            for i in range(size):
                objective += weight[pairs[i]] * _batch_objective(
                    alpha, place[i], own[i] * c_y[i], q[i], c, old_u[i]
                )
            if is_implicit:
                _write_gram(local, size, n_touched, block, products, gram)
                work = work_of[: N_WORK * size * m].reshape((N_WORK, size, m))
                solve_batch(
                    a, alpha, gram, place, group, q, c, own, c_y, new_u, p, totals, work, precision
                )
            else:
                explicit_moves(a, alpha, gram, place, q, c, own, c_y, new_u, p, totals, setting)
            # 3. The step in weights.
            moves = products
            for i in range(size):
                u[pairs[i]] += new_u[i] - old_u[i]  # a pair may come twice
                if is_implicit:
                    u[pairs[i]] = max(u[pairs[i]], 0.0)
                for j in range(m):
                    moves[i, j] = -p[i, j]
                if place[i] >= 0:
                    moves[i, place[i]] += totals[i]
            _add_to_classes(local, size, n_touched, moves, block, V, scale, drawn, touched)
            for i in range(size):
                if place[i] < 0:
                    k = y[i]
                    add_row(X, np.uint64(batch_rows[i]), V.dtype.type(totals[i] / scale[k]), V[k])
            for j in range(m):
                scale[drawn[j]] /= c[j]
                apply_scale(V, scale, drawn[j])
            for i in range(size):
                if place[i] < 0 and group[i] == i:
                    scale[y[i]] /= c_y[i]
                    apply_scale(V, scale, y[i])
        return objective

    return run_batches


@inlined
def _batch_objective(alpha, place, s_y, q, c, u):
    """Return ``sampled_objective`` of the classes of a batch, but for the target itself."""
    total = u + math.exp(-u) - 1.0
    for k in range(q.shape[0]):
        if k != place:
            total += alpha[k] * vector_exp(min(q[k] * c[k] - s_y - u, 700.0))
    return total
