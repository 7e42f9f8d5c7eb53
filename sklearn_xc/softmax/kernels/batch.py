"""A pass over (instance, class) pairs in mini-batches that share their sampled classes.

The weights of the sampled classes on the features of the batch are written side by side once, so
that scoring a pair with a class costs a small part of what it costs in single steps.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._compile.arithmetic.sampling import class_share, draw_classes
from sklearn_xc._compile.arithmetic.vector_math import vector_exp
from sklearn_xc._compile.jit import inlined, kernel, scratch
from sklearn_xc._input.kernels.csr_rows import add_row, row_dot
from sklearn_xc._weights.kernels.class_scores import (
    STREAMS,
    gather_block,
    mark_words,
    number_features,
)
from sklearn_xc.softmax.kernels.epoch import apply_scale
from sklearn_xc.softmax.kernels.implicit_batch import N_WORK, PRECISION
from sklearn_xc.softmax.kernels.passes import Batches, Visits

#: Share of its terms to which a step is solved if the weights are in float32.
_SINGLE_PRECISION = 1e-7
_ONE = np.uint64(1)


class BatchWork(NamedTuple):
    """Work space of a pass whose batches have at most n pairs, m classes and nnz non-zeros.

    Attributes
    ----------
    y, rows : ndarray of int64 of shape (n,)
        Classes and rows of X of the pairs.
    place, group : ndarray of int64 of shape (n,)
        Where each target is among the drawn classes, or -1, and its first mention in the batch.
    scale, c_y, b_y, own, totals, old_u, u : ndarray of float64 of shape (n,)
        Of each pair: ``A``, shrinkage and intercept of its class, and the score, P and u of
        ``implicit_batch``, before the step and after.
    drawn : ndarray of int64 of shape (m,)
        The classes.
    alpha, c, b : ndarray of float64 of shape (m,)
        Their inverse probabilities, shrinkage and intercepts.
    gram, q, p, solver : ndarray of float64
        Of ``implicit_batch``, at the head.
    indptr, indices, data : ndarray
        The rows, in features numbered from 0.
    touched : ndarray of int32
        The features of X by their new number.
    marks, position : ndarray
        Of ``number_features``.
    block : ndarray of shape (n_touched, m)
        Weights of the drawn classes side by side.
    line, products : ndarray of shape (n_touched,) and (m,)
        A row, dense; scores or moves of one pair.
    """

    y: np.ndarray
    rows: np.ndarray
    place: np.ndarray
    group: np.ndarray
    scale: np.ndarray
    c_y: np.ndarray
    b_y: np.ndarray
    own: np.ndarray
    totals: np.ndarray
    old_u: np.ndarray
    u: np.ndarray
    drawn: np.ndarray
    alpha: np.ndarray
    c: np.ndarray
    b: np.ndarray
    gram: np.ndarray
    q: np.ndarray
    p: np.ndarray
    solver: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    touched: np.ndarray
    marks: np.ndarray
    position: np.ndarray
    block: np.ndarray
    line: np.ndarray
    products: np.ndarray

    @classmethod
    def for_pass(cls, visits: Visits, batches: Batches, m: int, V: np.ndarray) -> "BatchWork":
        """Allocate for all steps of a pass that draw m classes each, for weights like V."""
        bounds = batches.bounds
        d = V.shape[1]
        n = int(np.diff(bounds).max(initial=0))
        lengths = np.diff(visits.X[0])[visits.rows[visits.order[: bounds[-1]]]]
        ends = np.concatenate([[0], np.cumsum(lengths)])[bounds]
        nnz = int(np.diff(ends).max(initial=0))
        most = min(nnz, d)
        sizes = n * n, n * m, n * m, N_WORK * n * m
        return cls(
            *(scratch(n, np.int64) for _ in range(4)),
            *(scratch(n, np.float64) for _ in range(7)),
            scratch(m, np.int64),
            *(scratch(m, np.float64) for _ in range(3)),
            *(scratch(size, np.float64) for size in sizes),
            np.zeros(n + 1, np.int64),
            np.empty(nnz, np.int32),
            scratch(nnz, V.dtype),
            np.empty(most, np.int32),
            np.zeros(mark_words(d), np.uint64),
            np.empty(d, np.int32),
            np.empty((most, m), V.dtype),
            np.zeros(most, V.dtype),
            scratch(m, V.dtype),
        )


@functools.cache
def softmax_batch_kernels(take_batch_step: Callable[..., Any]) -> Any:
    """Return the compiled pass of a rule, by its ``batch_step``."""

    @kernel
    def run_batches(visits, batches, first, last, model, rates, draws, work):
        """Make the steps ``first`` to ``last`` of an epoch; return the sum of their objectives.

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
        work : BatchWork
            Overwritten.
        """
        precision = _SINGLE_PRECISION if model.V.itemsize == 4 else PRECISION
        objective = 0.0
        for step in range(first, last):
            pairs = visits.order[batches.bounds[step] : batches.bounds[step + 1]]
            size = pairs.shape[0]
            m = _prepare(step, pairs, visits, batches, rates, draws, work)
            n_touched = _number_rows(size, visits.X, rates.intercept, work)
            q = work.q[: size * m].reshape((size, m))
            p = work.p[: size * m].reshape((size, m))
            # 1. Scores of the batch, as the shrinkage of their class alone makes them.
            _score(q, n_touched, visits.X, model, work)
            # 2. The step in scores.
            for i in range(size):
                work.old_u[i] = work.u[i] = model.u[pairs[i]]
                objective += visits.weight[pairs[i]] * _objective(i, q, work)
            take_batch_step(work, q, p, precision)
            for i in range(size):
                u = model.u[pairs[i]] + (work.u[i] - work.old_u[i])  # a pair may come twice
                model.u[pairs[i]] = max(u, 0.0)
            # 3. The step in weights.
            _move(p, n_touched, visits.X, model, rates.intercept, work)
        return objective

    return run_batches


@inlined
def _prepare(step, pairs, visits, batches, rates, draws, work):
    """Draw the classes of a step, and write pairs, rates and shrinkage; return their number."""
    start, size = batches.bounds[step], pairs.shape[0]
    now = rates.start / (1.0 + rates.slowing * start)
    ridge = now * rates.ridge
    m = draw_classes(draws.sampler, draws.key, step, draws.n_negatives, work.drawn, work.alpha)
    for j in range(m):
        work.c[j] = _shrinkage(work.drawn[j], size, batches, draws, ridge)
    for i in range(size):
        k = np.int64(visits.classes[pairs[i]])
        work.y[i], work.rows[i] = k, visits.rows[pairs[i]]
        work.scale[i] = now * visits.weight[pairs[i]] / size
        work.c_y[i] = _shrinkage(k, size, batches, draws, ridge)
        work.place[i], work.group[i] = -1, i
        for j in range(m):
            if work.drawn[j] == k:
                work.place[i] = j
        for j in range(i):
            if work.y[j] == k:
                work.group[i] = j
                break
    return m


@inlined
def _shrinkage(k, size, batches, draws, strength):
    """Return by how much a step divides class k: the ridge comes as rarely as the class."""
    if strength == 0.0:
        return 1.0
    probability = min(1.0, draws.n_negatives * class_share(draws.sampler, k))
    return 1.0 + strength / _touch_probability(batches.n, batches.counts[k], size, probability)


@inlined
def _touch_probability(n, n_class, size, probability):
    """Return the probability that a batch samples a class or holds one of its pairs.

    n pairs, n_class of them of the class, `size` in the batch; sampled with `probability`.
    """
    if n - n_class < size:
        return 1.0
    log_absent = (
        math.lgamma(n - n_class + 1.0)
        - math.lgamma(n - n_class - size + 1.0)
        - math.lgamma(n + 1.0)
        + math.lgamma(n - size + 1.0)
    )
    return 1.0 - math.exp(log_absent) * (1.0 - probability)


@inlined
def _number_rows(size, X, constant, work):
    """Copy the rows of a batch with features numbered from 0, and write their Gram matrix.

    Returns the number of features; `constant` is added to all inner products.
    """
    indptr, indices, data = X
    end = np.uint64(0)
    for r in range(size):
        i = np.uint64(work.rows[r])
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + _ONE])):
            work.indices[end], work.data[end] = indices[t], data[t]
            end += _ONE
        work.indptr[r + 1] = end
    local = work.indices[:end]
    n_touched = number_features(local, work.marks, work.position, work.touched, local)
    line = work.line
    for i in range(size):
        own = range(np.uint64(work.indptr[i]), np.uint64(work.indptr[i + 1]))
        for t in own:
            line[np.uint32(local[t])] = work.data[t]
        for j in range(i + 1):
            product = line.dtype.type(0.0)
            for t in range(np.uint64(work.indptr[j]), np.uint64(work.indptr[j + 1])):
                product += work.data[t] * line[np.uint32(local[t])]
            work.gram[i * size + j] = work.gram[j * size + i] = product + constant
        for t in own:
            line[np.uint32(local[t])] = 0.0
    return n_touched


@inlined
def _score(q, n_touched, X, model, work):
    """Write the weights of the drawn classes, and what shrinkage makes of the scores."""
    size, m = q.shape
    block, products = work.block, work.products
    gather_block(model.V, work.drawn[:m], work.touched, n_touched, block)
    for j in range(m):
        work.b[j] = model.intercept[work.drawn[j]]
    for i in range(size):
        for j in range(np.uint64(m)):
            products[j] = 0.0
        for t in range(np.uint64(work.indptr[i]), np.uint64(work.indptr[i + 1])):
            value, weights = work.data[t], block[np.uint32(work.indices[t])]
            for j in range(np.uint64(m)):
                products[j] += value * weights[j]
        for j in range(m):
            q[i, j] = products[j] * model.scale[work.drawn[j]] / work.c[j] + work.b[j]
        place, k = work.place[i], work.y[i]
        if place >= 0:
            work.own[i], work.b_y[i] = q[i, place], work.b[place]
        else:
            linear = row_dot(X, np.uint64(work.rows[i]), model.V[k]) * model.scale[k]
            work.b_y[i] = model.intercept[k]
            work.own[i] = linear / work.c_y[i] + work.b_y[i]


@inlined
def _move(p, n_touched, X, model, intercept_rate, work):
    """Move and shrink the drawn classes, and then the targets that were not drawn."""
    size, m = p.shape
    V, scale, block, moves = model.V, model.scale, work.block, work.products
    for i in range(size):
        for j in range(m):
            move = work.totals[i] if work.place[i] == j else -p[i, j]
            model.intercept[work.drawn[j]] += intercept_rate * move / work.c[j]
            moves[j] = move / scale[work.drawn[j]]
        for t in range(np.uint64(work.indptr[i]), np.uint64(work.indptr[i + 1])):
            value, weights = work.data[t], block[np.uint32(work.indices[t])]
            for j in range(np.uint64(m)):
                weights[j] += value * moves[j]
    _scatter_block(block, work.drawn[:m], work.touched, n_touched, V)
    for j in range(m):
        scale[work.drawn[j]] /= work.c[j]
        apply_scale(V, scale, work.drawn[j])
    for i in range(size):
        if work.place[i] < 0:
            k, total = work.y[i], work.totals[i]
            add_row(X, np.uint64(work.rows[i]), V.dtype.type(total / scale[k]), V[k])
            model.intercept[k] += intercept_rate * total / work.c_y[i]
    for i in range(size):
        if work.place[i] < 0 and work.group[i] == i:
            scale[work.y[i]] /= work.c_y[i]
            apply_scale(V, scale, work.y[i])


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
def unshrunk(q, c, b):
    """Return the score that shrinkage by c, which leaves the intercept b, made q of."""
    return (q - b) * c + b


@inlined
def _objective(i, q, work):
    """Return ``sampled_objective`` of pair i and the classes of the batch."""
    u = work.old_u[i]
    s_y = unshrunk(work.own[i], work.c_y[i], work.b_y[i])
    total = u + math.exp(-u) - 1.0
    for k in range(q.shape[1]):
        if k != work.place[i]:
            s = unshrunk(q[i, k], work.c[k], work.b[k])
            total += work.alpha[k] * vector_exp(min(s - s_y - u, 700.0))
    return total
