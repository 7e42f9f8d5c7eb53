"""A pass over (instance, class) pairs in mini-batches that share their sampled classes.

The weights of the sampled classes on the features of the batch are written side by side once, so
that scoring a pair with a class costs a small part of what it costs in single steps.

Several threads may run one pass. Each step has three phases, with a barrier after each:

1. Scores. A block of classes of one fixed width is one unit of work, and so is a group of targets
   that were not sampled. Unit k is done by the thread ``k % n_workers``.
2. The first thread solves the step in scores, and the last prepares the next batch.
3. The step in weights, by the units of phase 1.

The result of a unit does not depend on threads, so neither do the weights.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._compile.arithmetic.vector_math import vector_exp
from sklearn_xc._compile.emitters.float_lanes import add_column_products, write_row_products
from sklearn_xc._compile.emitters.spin_barrier import wait_for_all
from sklearn_xc._compile.jit import inlined, kernel
from sklearn_xc._compile.scratch import aligned_zeros, scratch
from sklearn_xc._input.kernels.csr_rows import add_row, row_dot
from sklearn_xc._weights.kernels.class_scores import STREAMS, gather_block
from sklearn_xc.softmax.kernels.batch_rows import (
    BatchRows,
    Preparation,
    lanes_of,
    prepare_batch,
)
from sklearn_xc.softmax.kernels.epoch import apply_scale
from sklearn_xc.softmax.kernels.implicit_batch import N_WORK, PRECISION, solve_batch
from sklearn_xc.softmax.kernels.passes import Batches, Visits
from sklearn_xc.softmax.kernels.rules import Sampled, Target

#: To which share of its terms a step is solved where the weights are in float32.
_SINGLE_PRECISION = 1e-7
#: Targets of a unit of work.
_TARGETS = 8


class ScoreWork(NamedTuple):
    """Scores of a batch of at most n pairs and m classes, and where its step is solved.

    Attributes
    ----------
    q, p : ndarray of float64 of shape (n * m,)
        Scores and steps of the sampled classes, at the head.
    solver : ndarray of float64 of shape (N_WORK * n * m,)
        Work space of ``solve_batch``.
    own, totals, old_u, new_u : ndarray of float64 of shape (n,)
        Of each pair.
    """

    q: np.ndarray
    p: np.ndarray
    solver: np.ndarray
    own: np.ndarray
    totals: np.ndarray
    old_u: np.ndarray
    new_u: np.ndarray


class BatchWork(NamedTuple):
    """Work space shared by the threads of a pass.

    Attributes
    ----------
    batches : tuple of BatchRows
        Those of even and of odd steps.
    room : Preparation
        Work space for preparing them.
    blocks : ndarray of shape (n_units, n_touched, width)
        Weights of the sampled classes side by side, ``width`` of them in a block.
    scores : ScoreWork
        Written by the first thread, except for `q` and `own`.
    """

    batches: tuple[BatchRows, BatchRows]
    room: Preparation
    blocks: np.ndarray
    scores: ScoreWork

    @classmethod
    def for_pass(cls, visits: Visits, batches: Batches, m: int, V: np.ndarray) -> "BatchWork":
        """Allocate for all steps of a pass that draw m classes each, for weights like V."""
        bounds = batches.bounds
        n = int(np.diff(bounds).max(initial=0))
        lengths = np.diff(visits.X[0])[visits.rows[visits.order[: bounds[-1]]]]
        ends = np.concatenate([[0], np.cumsum(lengths)])[bounds]
        nnz, d = int(np.diff(ends).max(initial=0)), V.shape[1]
        even, odd = (BatchRows.with_room(n, m, nnz, d, V.dtype) for _ in range(2))
        shape = count_blocks(m, V.dtype), min(nnz, d), lanes_of(V.dtype)
        sizes = n * m, n * m, N_WORK * n * m, n, n, n, n
        return cls(
            (even, odd),
            Preparation.with_room(nnz, d, V.dtype),
            aligned_zeros(shape, V.dtype),
            ScoreWork(*(scratch(size, np.float64) for size in sizes)),
        )


class ThreadWork(NamedTuple):
    """Work space of one thread.

    Attributes
    ----------
    factors, products : ndarray of shape (width,)
        Ones, and products with a block.
    moves : ndarray of shape (n, width)
        How far each pair moves the classes of a block.
    """

    factors: np.ndarray
    products: np.ndarray
    moves: np.ndarray


def count_blocks(m: int, dtype: np.dtype) -> int:
    """Return how many blocks m classes take; one thread more than that can be of use."""
    return -(-m // lanes_of(dtype))


@inlined
def _score_units(size, q, X, model, blocks, batch, own, mine, thread):
    """Write what shrinkage makes of the scores of a batch: the units of this thread."""
    n_blocks, n_groups = _count_units(size, q, blocks)
    for unit in range(thread.worker, n_blocks + n_groups, thread.n_workers):
        if unit < n_blocks:
            _score_block(unit, size, model, batch, blocks[unit], mine, q)
        else:
            at = (unit - n_blocks) * _TARGETS
            _score_targets(at, min(at + _TARGETS, size), X, model, batch, own)


@inlined
def _move_units(size, p, X, model, intercept_rate, blocks, batch, totals, mine, thread):
    """Make the step in weights: the units of this thread."""
    n_blocks, n_groups = _count_units(size, p, blocks)
    for unit in range(thread.worker, n_blocks + n_groups, thread.n_workers):
        if unit < n_blocks:
            _move_block(
                unit, size, model, intercept_rate, batch, blocks[unit], mine.moves, p, totals
            )
        else:
            at = (unit - n_blocks) * _TARGETS
            _move_targets(
                at, min(at + _TARGETS, size), size, X, model, intercept_rate, batch, totals
            )


@inlined
def _count_units(size, q, blocks):
    """Return how many blocks of classes and how many groups of targets a step has."""
    return -(-q.shape[1] // blocks.shape[2]), -(-size // _TARGETS)


@inlined
def _score_block(b, size, model, batch, block, mine, q):
    """Write the weights of block b of the classes, and what shrinkage makes of their scores."""
    width = block.shape[1]
    at, m = b * width, q.shape[1]
    last = min(at + width, m)
    gather_block(model.V, batch.drawn[at:last], batch.touched, batch.sizes[1], block)
    for j in range(at, last):
        batch.b[j] = model.intercept[batch.drawn[j]]
    for i in range(size):
        start, stop = np.uint64(batch.indptr[i]), np.uint64(batch.indptr[i + 1])
        write_row_products(
            batch.indices, batch.data, start, stop, block, mine.factors, mine.products, np.uint64(0)
        )
        for j in range(at, last):
            scale = model.scale[batch.drawn[j]]
            q[i, j] = mine.products[j - at] * scale / batch.c[j] + batch.b[j]


@inlined
def _move_block(b, size, model, intercept_rate, batch, block, moves, p, totals):
    """Add ``sum_i L_ij x_i`` to each class of block b, and shrink them; and to the intercepts."""
    V, scale = model.V, model.scale
    width = block.shape[1]
    at, m = b * width, p.shape[1]
    last = min(at + width, m)
    for i in range(size):
        for j in range(at, last):
            move = totals[i] if batch.place[i] == j else -p[i, j]
            model.intercept[batch.drawn[j]] += intercept_rate * move / batch.c[j]
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
def _score_targets(first, last, X, model, batch, own):
    """Write what shrinkage makes of the scores of targets that were not sampled."""
    for i in range(first, last):
        if batch.place[i] < 0:
            k = batch.y[i]
            linear = row_dot(X, np.uint64(batch.rows[i]), model.V[k]) * model.scale[k]
            batch.b_y[i] = model.intercept[k]
            own[i] = linear / batch.c_y[i] + batch.b_y[i]


@inlined
def _move_targets(first, last, size, X, model, intercept_rate, batch, totals):
    """Move and shrink the targets that were not sampled and are first met in a range of pairs."""
    V, scale = model.V, model.scale
    for i in range(first, last):
        if batch.place[i] < 0 and batch.group[i] == i:
            k = batch.y[i]
            for j in range(i, size):
                if batch.group[j] == i:
                    add_row(X, np.uint64(batch.rows[j]), V.dtype.type(totals[j] / scale[k]), V[k])
                    model.intercept[k] += intercept_rate * totals[j] / batch.c_y[i]
            scale[k] /= batch.c_y[i]
            apply_scale(V, scale, k)


@functools.cache
def softmax_batch_kernels(take_step: Callable[..., Any], is_implicit: bool) -> Any:
    """Return the compiled pass of a rule, by its ``step`` and whether it ``is_implicit``."""

    @inlined
    def explicit_moves(batch, size, own, q, u, p, totals, settings):
        """Follow the rule for each pair from the same weights."""
        m = q.shape[1]
        factors, s_of = scratch(m, np.float64), scratch(m, np.float64)
        q_of, c_of = scratch(m, np.float64), scratch(m, np.float64)
        p_of = scratch(m, np.float64)
        gram = batch.gram[: size * size].reshape((size, size))
        for i in range(size):
            place, c_y, n = batch.place[i], batch.c_y[i], 0
            for k in range(m):
                if k != place:
                    factors[n], q_of[n], c_of[n] = batch.alpha[k], q[i, k], batch.c[k]
                    s_of[n] = _unshrunk(q[i, k], batch.c[k], batch.b[k])
                    n += 1
            target = Target(_unshrunk(own[i], c_y, batch.b_y[i]), own[i], c_y)
            sampled = Sampled(factors[:n], s_of[:n], q_of[:n], c_of[:n])
            u[i], totals[i] = take_step(
                batch.scale[i], gram[i, i], target, sampled, u[i], p_of[:n], settings
            )
            n = 0
            for k in range(m):
                p[i, k] = 0.0
                if k != place:
                    p[i, k] = p_of[n]
                    n += 1

    @inlined
    def solve_scores(pairs, q, p, weight, u, batch, scores, settings, precision, objective):
        """Make the step in scores: write p, totals and u; add to the objective and return it."""
        size, m = q.shape
        place, own, totals = batch.place[:size], scores.own[:size], scores.totals[:size]
        old_u, new_u = scores.old_u[:size], scores.new_u[:size]
        alpha, c, c_y = batch.alpha[:m], batch.c[:m], batch.c_y[:size]
        b, b_y = batch.b[:m], batch.b_y[:size]
        for i in range(size):
            old_u[i] = new_u[i] = u[pairs[i]]
            if place[i] >= 0:
                own[i], b_y[i] = q[i, place[i]], b[place[i]]
        for i in range(size):
            objective += weight[pairs[i]] * _batch_objective(
                alpha, place[i], _unshrunk(own[i], c_y[i], b_y[i]), q[i], c, b, old_u[i]
            )
        if is_implicit:
            gram = batch.gram[: size * size].reshape((size, size))
            solver = scores.solver[: N_WORK * size * m].reshape((N_WORK, size, m))
            solve_batch(
                batch.scale[:size],
                alpha,
                gram,
                place,
                batch.group[:size],
                q,
                c,
                own,
                c_y,
                new_u,
                p,
                totals,
                solver,
                precision,
            )
        else:
            explicit_moves(batch, size, own, q, new_u, p, totals, settings)
        for i in range(size):
            u[pairs[i]] += new_u[i] - old_u[i]  # a pair may come twice
            if is_implicit:
                u[pairs[i]] = max(u[pairs[i]], 0.0)
        return objective

    @kernel
    def run_batches(visits, batches, first, last, model, rates, draws, settings, work, thread):
        """Make the steps ``first`` to ``last`` of an epoch; return the sum of their objectives.

        Each thread makes this call. Thread 0 gets the objectives, the others 0. Nothing here may
        raise: the other threads would wait.

        Parameters
        ----------
        visits : Visits
            All of the epoch.
        batches : Batches
            Those of each step.
        first, last : int
            Steps.
        model : Model
            Moves.
        rates : Rates
            Learning rates.
        draws : Draws
            Of the classes that the pairs of a step share.
        settings : tuple of float
            Of the rule.
        work : BatchWork
            Shared by all threads.
        thread : Thread
            This thread.
        """
        precision = _SINGLE_PRECISION if model.V.itemsize == 4 else PRECISION
        X, blocks, scores = visits.X, work.blocks, work.scores
        width = blocks.shape[2]
        mine = ThreadWork(
            np.ones(width, model.V.dtype),
            np.empty(width, model.V.dtype),
            np.zeros((scores.own.shape[0], width), model.V.dtype),
        )
        objective = 0.0
        for step in range(first - 1, last):
            batch, following = work.batches[step % 2], work.batches[(step + 1) % 2]
            pairs, m = visits.order[:0], 0  # before the first step it is only prepared
            if step >= first:
                pairs = visits.order[batches.bounds[step] : batches.bounds[step + 1]]
                m = batch.sizes[0]
            size = pairs.shape[0]
            q = scores.q[: size * m].reshape((size, m))
            p = scores.p[: size * m].reshape((size, m))
            # 1. Scores of the batch, as the shrinkage of their class alone makes them.
            _score_units(size, q, X, model, blocks, batch, scores.own, mine, thread)
            if not wait_for_all(thread.barrier, thread.n_workers):
                break
            # 2. The step in scores.
            if thread.worker == 0 and size > 0:
                objective = solve_scores(
                    pairs,
                    q,
                    p,
                    visits.weight,
                    model.u,
                    batch,
                    scores,
                    settings,
                    precision,
                    objective,
                )
            if thread.worker == thread.n_workers - 1 and step + 1 < last:
                prepare_batch(step + 1, visits, batches, rates, draws, work.room, following)
            if not wait_for_all(thread.barrier, thread.n_workers):
                break
            # 3. The step in weights.
            _move_units(
                size, p, X, model, rates.intercept, blocks, batch, scores.totals, mine, thread
            )
            if not wait_for_all(thread.barrier, thread.n_workers):
                break
        return objective

    return run_batches


@inlined
def _unshrunk(q, c, b):
    """Return the score that shrinkage by c, which leaves the intercept b, made q of."""
    return (q - b) * c + b


@inlined
def _batch_objective(alpha, place, s_y, q, c, b, u):
    """Return ``sampled_objective`` of the classes of a batch, without the target itself."""
    total = u + math.exp(-u) - 1.0
    for k in range(q.shape[0]):
        if k != place:
            s = _unshrunk(q[k], c[k], b[k])
            total += alpha[k] * vector_exp(min(s - s_y - u, 700.0))
    return total
