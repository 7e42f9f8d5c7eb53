"""A pass over (instance, class) pairs in mini-batches that share their sampled classes.

The weights of the sampled classes on the features of the batch are written side by side once, so
that all pairs of a batch meet all of its classes at a small part of the price of single steps.

Several threads may run one pass. Each step has three phases, and the threads meet after each:

1. Scores. A block of classes of one fixed width is one unit of work, and so is a group of targets
   that were not sampled. Unit k is done by the thread ``k % n_workers``.
2. The first thread solves the step in scores, and the last makes the next batch ready.
3. The step in weights, by the units of phase 1.

What a unit does depends on no thread, so that neither do the weights.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc.kernels.arithmetic.vector_math import vector_exp
from sklearn_xc.kernels.compiling.jit import inlined, kernel
from sklearn_xc.kernels.compiling.scratch import scratch
from sklearn_xc.kernels.emitters.float_lanes import add_column_products, write_row_products
from sklearn_xc.kernels.emitters.spin_barrier import wait_for_all
from sklearn_xc.kernels.prediction.class_scores import STREAMS, gather_block
from sklearn_xc.kernels.rows.csr_rows import add_row, row_dot
from sklearn_xc.kernels.softmax.batch_rows import (
    BatchRows,
    Preparation,
    aligned_blocks,
    lanes_of,
    prepare_batch,
)
from sklearn_xc.kernels.softmax.epoch import RULES, apply_scale
from sklearn_xc.kernels.softmax.implicit_batch import N_WORK, PRECISION, solve_batch

#: To which share of its terms a step is solved where the weights are in float32.
_SINGLE_PRECISION = 1e-7
#: Targets of a unit of work.
_TARGETS = 8


class BatchWork(NamedTuple):
    """What the threads of a pass share: room for at most n pairs and m classes.

    Attributes
    ----------
    batches : tuple of BatchRows
        Those of even and of odd steps.
    room : Preparation
        Where they are made ready.
    blocks : ndarray of shape (n_units, n_touched, width)
        Weights of the sampled classes side by side, ``width`` of them in a block.
    q, p : ndarray of float64 of shape (n * m,)
        Scores and steps of the sampled classes, at the head.
    solver : ndarray of float64 of shape (N_WORK * n * m,)
        Work space of ``solve_batch``.
    own, totals, old_u, new_u : ndarray of float64 of shape (n,)
        Of each pair.
    """

    batches: tuple[BatchRows, BatchRows]
    room: Preparation
    blocks: np.ndarray
    q: np.ndarray
    p: np.ndarray
    solver: np.ndarray
    own: np.ndarray
    totals: np.ndarray
    old_u: np.ndarray
    new_u: np.ndarray

    @classmethod
    def for_pass(
        cls, indptr: np.ndarray, rows: np.ndarray, order: np.ndarray, bounds: np.ndarray, m: int,
        V: np.ndarray,
    ) -> "BatchWork":  # fmt: skip
        """Return room for all steps of a pass, its arguments as of ``softmax_batch_kernels``."""
        n = int(np.diff(bounds).max(initial=0))
        lengths = np.diff(indptr)[rows[order[: bounds[-1]]]]
        ends = np.concatenate([[0], np.cumsum(lengths)])[bounds]
        nnz, d = int(np.diff(ends).max(initial=0)), V.shape[1]
        first, second = (BatchRows.with_room(n, m, nnz, d, V.dtype) for _ in range(2))
        shape = count_blocks(m, V.dtype), min(nnz, d), lanes_of(V.dtype)
        return cls(
            (first, second), Preparation.with_room(nnz, d, V.dtype),
            aligned_blocks(shape, V.dtype),
            *(scratch(size, np.float64) for size in (n * m, n * m, N_WORK * n * m, n, n, n, n)),
        )  # fmt: skip


def count_blocks(m: int, dtype: np.dtype) -> int:
    """Return how many blocks m classes take: more threads than that and one are of no use."""
    return -(-m // lanes_of(dtype))


@inlined
def _score_block(b, size, scale, V, intercept, batch, block, factors, products, q):
    """Write the weights of block b of the classes, and what shrinkage makes of their scores."""
    width = block.shape[1]
    at, m = b * width, q.shape[1]
    last = min(at + width, m)
    gather_block(V, batch.drawn[at:last], batch.touched, batch.sizes[1], block)
    for j in range(at, last):
        batch.b[j] = intercept[batch.drawn[j]]
    for i in range(size):
        start, stop = np.uint64(batch.indptr[i]), np.uint64(batch.indptr[i + 1])
        write_row_products(
            batch.indices, batch.data, start, stop, block, factors, products, np.uint64(0)
        )
        for j in range(at, last):
            q[i, j] = products[j - at] * scale[batch.drawn[j]] / batch.c[j] + batch.b[j]


@inlined
def _move_block(b, size, scale, V, intercept, intercept_rate, batch, block, moves, p, totals):
    """Add ``sum_i L_ij x_i`` to each class of block b, and shrink them; and to the intercepts."""
    width = block.shape[1]
    at, m = b * width, p.shape[1]
    last = min(at + width, m)
    for i in range(size):
        for j in range(at, last):
            move = totals[i] if batch.place[i] == j else -p[i, j]
            intercept[batch.drawn[j]] += intercept_rate * move / batch.c[j]
            moves[i, j - at] = move / scale[batch.drawn[j]]
    nnz = np.uint64(batch.indptr[size])
    add_column_products(batch.columns, batch.holders, batch.values, nnz, moves, block)
    _scatter_block(block, batch.drawn[at:last], batch.touched, batch.sizes[1], V)
    for j in range(at, last):
        scale[batch.drawn[j]] /= batch.c[j]
        apply_scale(V, scale, batch.drawn[j])


@inlined
def _scatter_block(block, classes, touched, n_touched, V):
    """Write ``V[classes[c], touched[f]] = block[f, c]``."""
    m = classes.shape[0]
    for first in range(0, m, STREAMS):
        last = min(first + STREAMS, m)
        for f in range(np.uint64(n_touched)):
            j = np.uint32(touched[f])
            for c in range(np.uint64(first), np.uint64(last)):
                V[np.uint64(classes[c]), j] = block[f, c]


@inlined
def _score_targets(first, last, X, scale, V, intercept, batch, own):
    """Write what shrinkage makes of the scores of targets that were not sampled."""
    for i in range(first, last):
        if batch.place[i] < 0:
            k = batch.y[i]
            linear = row_dot(X, np.uint64(batch.rows[i]), V[k]) * scale[k]
            batch.b_y[i] = intercept[k]
            own[i] = linear / batch.c_y[i] + batch.b_y[i]


@inlined
def _move_targets(first, last, size, X, scale, V, intercept, intercept_rate, batch, totals):
    """Move and shrink the targets that were not sampled and are first met in a range of pairs."""
    for i in range(first, last):
        if batch.place[i] < 0 and batch.group[i] == i:
            k = batch.y[i]
            for j in range(i, size):
                if batch.group[j] == i:
                    add_row(X, np.uint64(batch.rows[j]), V.dtype.type(totals[j] / scale[k]), V[k])
                    intercept[k] += intercept_rate * totals[j] / batch.c_y[i]
            scale[k] /= batch.c_y[i]
            apply_scale(V, scale, k)


@functools.cache
def softmax_batch_kernels(method: str) -> Any:
    """Return the compiled pass of a method, a key of ``softmax_epoch.RULES``."""
    rule = RULES[method]
    is_implicit = method == "implicit"

    @inlined
    def explicit_moves(scale, alpha, gram, place, q, c, b, own, c_y, b_y, u, p, totals, setting):
        """Follow a rule for each pair from the same weights."""
        n, m = q.shape
        factors, s_of = scratch(m, np.float64), scratch(m, np.float64)
        q_of, c_of = scratch(m, np.float64), scratch(m, np.float64)
        p_of = scratch(m, np.float64)
        for i in range(n):
            size = 0
            for k in range(m):
                if k != place[i]:
                    factors[size], q_of[size], c_of[size] = alpha[k], q[i, k], c[k]
                    s_of[size] = _unshrunk(q[i, k], c[k], b[k])
                    size += 1
            u[i], totals[i] = rule(
                scale[i], factors[:size], gram[i, i], _unshrunk(own[i], c_y[i], b_y[i]), own[i],
                c_y[i], s_of[:size], q_of[:size], c_of[:size], u[i], p_of[:size], setting,
            )  # fmt: skip
            size = 0
            for k in range(m):
                p[i, k] = 0.0
                if k != place[i]:
                    p[i, k] = p_of[size]
                    size += 1

    @kernel
    def run_batches(
        X, rows, classes, counts, n_pairs, weight, order, bounds, first, last, V, scale, intercept,
        u, rate, slowing, ridge, intercept_rate, setting, sampler, n_negatives, key, work, barrier,
        worker, n_workers,
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
        work : BatchWork
            Shared by
        barrier : ndarray of int64
            and where they meet,
        worker, n_workers : int
            the threads: each makes this call, with its own number. The objectives are returned to
            number 0, and 0 to the others. Nothing here may raise: the others would wait.
        """
        precision = _SINGLE_PRECISION if V.itemsize == 4 else PRECISION
        width = work.blocks.shape[2]
        factors, products = np.ones(width, V.dtype), np.empty(width, V.dtype)
        moves = np.zeros((work.own.shape[0], width), V.dtype)
        objective = 0.0
        for step in range(first - 1, last):
            batch, following = work.batches[step % 2], work.batches[(step + 1) % 2]
            pairs, m = order[:0], 0  # nothing is done before the first step but to prepare it
            if step >= first:
                pairs, m = order[bounds[step] : bounds[step + 1]], batch.sizes[0]
            size = pairs.shape[0]
            q = work.q[: size * m].reshape((size, m))
            p = work.p[: size * m].reshape((size, m))
            n_blocks, n_groups = -(-m // width), -(-size // _TARGETS)
            # 1. Scores of the batch, as the shrinkage of their class alone makes them.
            for unit in range(worker, n_blocks + n_groups, n_workers):
                if unit < n_blocks:
                    _score_block(
                        unit, size, scale, V, intercept, batch, work.blocks[unit], factors,
                        products, q,
                    )  # fmt: skip
                else:
                    at = (unit - n_blocks) * _TARGETS
                    _score_targets(
                        at, min(at + _TARGETS, size), X, scale, V, intercept, batch, work.own
                    )
            if not wait_for_all(barrier, n_workers):
                break
            # 2. The step in scores.
            if worker == 0 and size > 0:
                place, own, totals = batch.place[:size], work.own[:size], work.totals[:size]
                old_u, new_u = work.old_u[:size], work.new_u[:size]
                alpha, c, c_y = batch.alpha[:m], batch.c[:m], batch.c_y[:size]
                b, b_y = batch.b[:m], batch.b_y[:size]
                gram = batch.gram[: size * size].reshape((size, size))
                for i in range(size):
                    old_u[i] = new_u[i] = u[pairs[i]]
                    if place[i] >= 0:
                        own[i], b_y[i] = q[i, place[i]], b[place[i]]
                for i in range(size):
                    objective += weight[pairs[i]] * _batch_objective(
                        alpha, place[i], _unshrunk(own[i], c_y[i], b_y[i]), q[i], c, b, old_u[i]
                    )
                if is_implicit:
                    solver = work.solver[: N_WORK * size * m].reshape((N_WORK, size, m))
                    solve_batch(
                        batch.scale[:size], alpha, gram, place, batch.group[:size], q, c, own, c_y,
                        new_u, p, totals, solver, precision,
                    )  # fmt: skip
                else:
                    explicit_moves(
                        batch.scale[:size], alpha, gram, place, q, c, b, own, c_y, b_y, new_u, p,
                        totals, setting,
                    )  # fmt: skip
                for i in range(size):
                    u[pairs[i]] += new_u[i] - old_u[i]  # a pair may come twice
                    if is_implicit:
                        u[pairs[i]] = max(u[pairs[i]], 0.0)
            if worker == n_workers - 1 and step + 1 < last:
                now = rate / (1.0 + slowing * bounds[step + 1])
                prepare_batch(
                    X, rows, classes, counts, n_pairs, weight,
                    order[bounds[step + 1] : bounds[step + 2]], step + 1, now, ridge,
                    intercept_rate, sampler, n_negatives, key, work.room, following,
                )  # fmt: skip
            if not wait_for_all(barrier, n_workers):
                break
            # 3. The step in weights.
            for unit in range(worker, n_blocks + n_groups, n_workers):
                if unit < n_blocks:
                    _move_block(
                        unit, size, scale, V, intercept, intercept_rate, batch,
                        work.blocks[unit], moves, p, work.totals,
                    )  # fmt: skip
                else:
                    at = (unit - n_blocks) * _TARGETS
                    _move_targets(
                        at, min(at + _TARGETS, size), size, X, scale, V, intercept, intercept_rate,
                        batch, work.totals,
                    )  # fmt: skip
            if not wait_for_all(barrier, n_workers):
                break
        return objective

    return run_batches


@inlined
def _unshrunk(q, c, b):
    """Return the score that shrinkage by c, which leaves the intercept b, made q of."""
    return (q - b) * c + b


@inlined
def _batch_objective(alpha, place, s_y, q, c, b, u):
    """Return ``sampled_objective`` of the classes of a batch, but for the target itself."""
    total = u + math.exp(-u) - 1.0
    for k in range(q.shape[0]):
        if k != place:
            s = _unshrunk(q[k], c[k], b[k])
            total += alpha[k] * vector_exp(min(s - s_y - u, 700.0))
    return total
