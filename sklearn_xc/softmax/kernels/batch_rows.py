"""Rows, classes and Gram matrix of a mini-batch.

They do not depend on the weights, so one thread prepares them while another solves the step before.
"""

import math
from typing import NamedTuple

import numpy as np

from sklearn_xc._compile.arithmetic.sampling import class_share, draw_classes
from sklearn_xc._compile.emitters.float_lanes import ROW_BYTES, write_row_products
from sklearn_xc._compile.jit import inlined
from sklearn_xc._compile.scratch import aligned_zeros, scratch
from sklearn_xc._input.kernels.csr_rows import ROWS_AHEAD, prefetch_row
from sklearn_xc._weights.kernels.class_scores import mark_words, number_features

_ONE = np.uint64(1)


class BatchRows(NamedTuple):
    """A batch of at most n pairs and m classes.

    Attributes
    ----------
    sizes : ndarray of int64 of shape (2,)
        Number of classes, and of features that occur.
    scale, c_y : ndarray of float64 of shape (n,)
        ``A`` and shrinkage of ``implicit_batch.solve_batch``, of each pair.
    b_y : ndarray of float64 of shape (n,)
        Intercept of the class of each pair; not set by ``prepare_batch``, nor is b.
    y, rows : ndarray of int64 of shape (n,)
        Classes and rows of X.
    place, group : ndarray of int64 of shape (n,)
        Where each target is among the drawn classes, or -1, and its first mention in the batch.
    drawn : ndarray of int64 of shape (m,)
        The classes.
    alpha, c, b : ndarray of float64 of shape (m,)
        Their inverse probabilities, their shrinkage, and their intercepts.
    gram : ndarray of float64 of shape (n * n,)
        Inner products of the rows, at the head.
    indptr, indices, data : ndarray
        The rows, in features numbered from 0.
    touched : ndarray of int32
        The features of X by their new number.
    columns, holders, values : ndarray
        The same matrix by columns: the number and the row of each non-zero, as int32.
    """

    sizes: np.ndarray
    scale: np.ndarray
    c_y: np.ndarray
    b_y: np.ndarray
    y: np.ndarray
    rows: np.ndarray
    place: np.ndarray
    group: np.ndarray
    drawn: np.ndarray
    alpha: np.ndarray
    c: np.ndarray
    b: np.ndarray
    gram: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    touched: np.ndarray
    columns: np.ndarray
    holders: np.ndarray
    values: np.ndarray

    @classmethod
    def with_room(cls, n: int, m: int, nnz: int, d: int, dtype: np.dtype) -> "BatchRows":
        """Allocate for a batch of n rows with `nnz` non-zeros of d features."""
        i64, f64, i32 = np.int64, np.float64, np.int32
        return cls(
            sizes=np.zeros(2, i64),
            scale=scratch(n, f64),
            c_y=scratch(n, f64),
            b_y=scratch(n, f64),
            y=scratch(n, i64),
            rows=scratch(n, i64),
            place=scratch(n, i64),
            group=scratch(n, i64),
            drawn=scratch(m, i64),
            alpha=scratch(m, f64),
            c=scratch(m, f64),
            b=scratch(m, f64),
            gram=np.zeros(n * n),
            indptr=np.zeros(n + 1, i64),
            indices=np.empty(nnz, i32),
            data=scratch(nnz, dtype),
            touched=np.empty(min(nnz, d), i32),
            columns=np.empty(nnz, i32),
            holders=np.empty(nnz, i32),
            values=scratch(nnz, dtype),
        )


class Preparation(NamedTuple):
    """Work space for preparing a batch.

    Attributes
    ----------
    marks, position : ndarray
        Of ``number_features``.
    starts : ndarray of int64 of shape (n_touched + 1,)
        Where columns begin.
    block : ndarray of shape (n_touched, width)
        Rows of the batch side by side.
    factors, products : ndarray of shape (width,)
        Ones, and products with the block.
    """

    marks: np.ndarray
    position: np.ndarray
    starts: np.ndarray
    block: np.ndarray
    factors: np.ndarray
    products: np.ndarray

    @classmethod
    def with_room(cls, nnz: int, d: int, dtype: np.dtype) -> "Preparation":
        """Allocate for batches with `nnz` non-zeros of d features."""
        width = lanes_of(dtype)
        return cls(
            np.zeros(mark_words(d), np.uint64),
            np.empty(d, np.int32),
            np.empty(min(nnz, d) + 1, np.int64),
            aligned_zeros((min(nnz, d), width), dtype),
            np.ones(width, dtype),
            np.empty(width, dtype),
        )


def lanes_of(dtype: np.dtype) -> int:
    """Return how many columns a block has."""
    return ROW_BYTES // dtype.itemsize


@inlined
def prepare_batch(step, visits, batches, rates, draws, room, batch):
    """Write the batch of a step.

    Parameters
    ----------
    step : int
        Its number.
    visits, batches, rates, draws
        As of the pass.
    room : Preparation
        Work space.
    batch : BatchRows
        Overwritten.
    """
    start = batches.bounds[step]
    pairs = visits.order[start : batches.bounds[step + 1]]
    now = rates.start / (1.0 + rates.slowing * start)
    ridge = now * rates.ridge
    size = pairs.shape[0]
    m = draw_classes(draws.sampler, draws.key, step, draws.n_negatives, batch.drawn, batch.alpha)
    for i in range(size):
        pair = pairs[i]
        k = np.int64(visits.classes[pair])
        batch.y[i], batch.rows[i] = k, visits.rows[pair]
        batch.scale[i] = now * visits.weight[pair] / size
        batch.c_y[i] = _shrinkage(k, size, batches, draws, ridge)
    for j in range(m):
        batch.c[j] = _shrinkage(batch.drawn[j], size, batches, draws, ridge)
    _find_places(batch.y[:size], batch.drawn[:m], batch.place, batch.group)
    nnz = _copy_rows(visits.X, batch.rows[:size], batch.indptr, batch.indices, batch.data)
    indices = batch.indices[:nnz]
    n_touched = number_features(indices, room.marks, room.position, batch.touched, indices)
    batch.sizes[0], batch.sizes[1] = m, n_touched
    _transpose(size, n_touched, room.starts, batch)
    _write_gram(size, n_touched, rates.intercept, room, batch)


@inlined
def _shrinkage(k, size, batches, draws, strength):
    """Return by how much a step divides class k: the ridge comes as rarely as the class."""
    if strength == 0.0:
        return 1.0
    chance = min(1.0, draws.n_negatives * class_share(draws.sampler, k))
    return 1.0 + strength / _touch_probability(batches.n, batches.counts[k], size, chance)


@inlined
def _touch_probability(n, n_class, size, chance):
    """Return the probability that a batch samples a class or holds one of its pairs.

    n pairs, n_class of them of the class, `size` in the batch; `chance` of sampling the class.
    """
    if n - n_class < size:
        return 1.0
    log_absent = (
        math.lgamma(n - n_class + 1.0)
        - math.lgamma(n - n_class - size + 1.0)
        - math.lgamma(n + 1.0)
        + math.lgamma(n - size + 1.0)
    )
    return 1.0 - math.exp(log_absent) * (1.0 - chance)


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


@inlined
def _copy_rows(X, rows, out_indptr, out_indices, out_data):
    """Copy rows of X, and return how many non-zeros they have."""
    indptr, indices, data = X
    end = np.uint64(0)
    out_indptr[0] = 0
    for r in range(rows.shape[0]):
        prefetch_row(X, np.uint64(rows[min(r + ROWS_AHEAD, rows.shape[0] - 1)]))
        i = np.uint64(rows[r])
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + _ONE])):
            out_indices[end], out_data[end] = indices[t], data[t]
            end += _ONE
        out_indptr[r + 1] = end
    return np.int64(end)


@inlined
def _transpose(size, n_touched, starts, batch):
    """Write the rows of a batch by columns."""
    indptr, indices = batch.indptr, batch.indices
    starts[: n_touched + 1] = 0
    for t in range(np.uint64(indptr[size])):
        starts[np.uint64(indices[t]) + _ONE] += 1
    for f in range(np.uint64(n_touched)):
        starts[f + _ONE] += starts[f]
    for i in range(np.uint64(size)):
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + _ONE])):
            column = np.uint32(indices[t])
            at = np.uint64(starts[column])
            batch.columns[at], batch.holders[at], batch.values[at] = column, i, batch.data[t]
            starts[column] += 1


@inlined
def _write_gram(size, n_touched, constant, room, batch):
    """Write the inner products of the rows of a batch, and add a constant.

    It takes as many columns at a time as a block has.
    """
    indptr, indices, data = batch.indptr, batch.indices, batch.data
    block, products = room.block, room.products
    gram = batch.gram[: size * size].reshape((size, size))
    width = block.shape[1]
    for at in range(0, size, width):
        last = min(at + width, size)
        block[:n_touched] = 0
        for i in range(at, last):
            for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                block[np.uint32(indices[t]), np.uint64(i - at)] = data[t]
        for i in range(at, size):
            start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
            write_row_products(
                indices, data, start, stop, block, room.factors, products, np.uint64(0)
            )
            for j in range(at, min(i + 1, last)):
                gram[i, j] = gram[j, i] = products[j - at] + constant
