"""Scores of sparse rows against the dense weights of many classes.

A row times one weight vector waits for every weight it reads. So a block of classes is written
side by side, for the features of some rows only, and a row reads all classes of a feature at once.
The more rows share a block, the less writing it costs: where they are short and the classes many,
that is nearly all of the work.

Scores of all classes come from ``write_row_products``, whose blocks have one width.
``multiply_rows`` is for blocks of any width.
"""

import math

import numpy as np

from sklearn_xc.kernels._jit import inlined, kernel
from sklearn_xc.kernels.float_lanes import ROW_BYTES, write_row_products
from sklearn_xc.kernels.int16_lanes import prefetch
from sklearn_xc.kernels.selection import N_LANES, select_best
from sklearn_xc.kernels.vector_math import vector_exp

#: Classes whose weights are read together while a block is written: each is one stream of memory.
STREAMS = 8
#: Weights are asked for so many features ahead, unless more than one feature in _NEAR is read: then
#: the processor does so by itself.
_AHEAD, _NEAR = np.uint64(8), 4
#: Of the parabola near 2**f: 1 + f (_LINEAR + f _SQUARE).
_SQUARE = 2.0 * (1.0 + 2.0 - 2.0 * 2.0**0.5)
_LINEAR = 1.0 - _SQUARE
_LOG2_E = 1.4426950408889634
_ONE, _TWO, _THREE, _FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


@inlined
def gather_block(V, classes, touched, n_touched, block):
    """Write weights side by side: ``block[f, c] = V[classes[c], touched[f]]``.

    Parameters
    ----------
    V : ndarray of shape (n_classes, n_features)
        Weights, C-ordered.
    classes : ndarray of int64 of shape (m,)
        The classes.
    touched : ndarray of int32
        The features; the leading `n_touched` count.
    n_touched : int
        Their number.
    block : ndarray of shape (>= n_touched, >= m)
        Overwritten.
    """
    m, d = classes.shape[0], V.shape[1]
    is_spread = n_touched * _NEAR < d
    for first in range(0, m, STREAMS):
        last = min(first + STREAMS, m)
        for f in range(np.uint64(n_touched)):
            j = np.uint32(touched[f])
            if is_spread:
                soon = np.uint64(touched[min(f + _AHEAD, np.uint64(n_touched - 1))])
                for c in range(np.uint64(first), np.uint64(last)):
                    prefetch(V, np.uint64(classes[c]) * np.uint64(d) + soon)
            for c in range(np.uint64(first), np.uint64(last)):
                block[f, c] = V[np.uint64(classes[c]), j]


@inlined
def multiply_rows(rows, n_rows, block, width, out):
    """Write ``out[i, :width] = sum_f x_if block[f, :width]`` for the leading CSR rows."""
    indptr, indices, data = rows
    for i in range(np.uint64(n_rows)):
        sums = out[i]
        for c in range(width):
            sums[c] = 0
        t, stop = np.uint64(indptr[i]), np.uint64(indptr[i + _ONE])
        # Four non-zeros at a time: the sums are kept in memory and are read a quarter as often.
        while t + _FOUR <= stop:
            x0, x1, x2, x3 = data[t], data[t + _ONE], data[t + _TWO], data[t + _THREE]
            w0, w1 = block[np.uint32(indices[t])], block[np.uint32(indices[t + _ONE])]
            w2, w3 = block[np.uint32(indices[t + _TWO])], block[np.uint32(indices[t + _THREE])]
            for c in range(width):
                sums[c] += x0 * w0[c] + x1 * w1[c] + x2 * w2[c] + x3 * w3[c]
            t += _FOUR
        while t < stop:
            x, w = data[t], block[np.uint32(indices[t])]
            for c in range(width):
                sums[c] += x * w[c]
            t += _ONE


@inlined
def _number_features(indices, d):
    """Return which features occur, rising, and the indices among these alone."""
    number = np.full(d, -1, np.int32)
    for t in range(np.uint64(indices.shape[0])):
        number[np.uint32(indices[t])] = 0
    touched = np.empty(d, np.int32)
    n_touched = 0
    for j in range(d):
        if number[j] == 0:
            number[j], touched[n_touched] = n_touched, j
            n_touched += 1
    local = np.empty(indices.shape[0], np.int32)
    for t in range(np.uint64(indices.shape[0])):
        local[t] = number[np.uint32(indices[t])]
    return touched[:n_touched], local


@inlined
def _aligned_block(n, like):
    """Return a block of n rows of ``ROW_BYTES`` that begin with a cache line, of the type of V."""
    width = ROW_BYTES // like.itemsize
    room = np.empty((n + 1) * width, like.dtype)
    skipped = (ROW_BYTES - np.int64(room.ctypes.data) % ROW_BYTES) % ROW_BYTES // like.itemsize
    return room[skipped : skipped + n * width].reshape((n, width))


@kernel
def score_classes(X, first, last, V, scale, scores):
    """Write ``scores[i - first, k] = scale[k] * x_i . V[k]`` for the rows `first` to `last`.

    The bits of a score depend on its row and class only.

    Parameters
    ----------
    X : tuple of ndarray
        CSR rows, with values of the type of V.
    first, last : int
        Which.
    V : ndarray of shape (n_classes, n_features)
        Weights.
    scale : ndarray of shape (n_classes,)
        Factors on them, of the same type.
    scores : ndarray of shape (last - first, n_classes)
        Overwritten; C-ordered.
    """
    indptr, indices, data = X
    n_classes = V.shape[0]
    begin, end = indptr[first], indptr[last]
    touched, local = _number_features(indices[begin:end], V.shape[1])
    n_touched, values = touched.shape[0], data[begin:end]
    block = _aligned_block(n_touched, V)
    width = block.shape[1]
    factors, products = np.ones(width, V.dtype), np.empty(width, V.dtype)
    for at in range(0, n_classes, width):
        m = min(width, n_classes - at)
        gather_block(V, np.arange(at, at + m), touched, n_touched, block)
        for c in range(m):
            factors[c] = scale[at + c]
        for i in range(last - first):
            start = np.uint64(indptr[first + i] - begin)
            stop = np.uint64(indptr[first + i + 1] - begin)
            if m == width:
                write_row_products(
                    local, values, start, stop, block, factors, scores[i], np.uint64(at)
                )
            else:  # the columns behind the last class hold anything
                write_row_products(
                    local, values, start, stop, block, factors, products, np.uint64(0)
                )
                for c in range(m):
                    scores[i, at + c] = products[c]


@inlined
def _largest(row):
    """Return the largest score of a row."""
    largest = row[0]
    for k in range(row.shape[0]):
        largest = max(largest, row[k])
    return largest


@kernel
def log_normalisers(scores, out):
    """Write the logarithm of the softmax normaliser of each row of scores, in float64."""
    for i in range(scores.shape[0]):
        row = scores[i]
        largest = np.float64(_largest(row))
        total = 0.0
        for k in range(row.shape[0]):
            x = np.float64(row[k]) - largest
            total += vector_exp(x) if x == x else x  # NaN stays NaN
        out[i] = largest + math.log(total)


@kernel
def rough_log_normalisers(scores, out):
    """Write ``log_normalisers`` to within 0.003, several times as fast.

    2**y is made of its exponent, written as the bits of a float, and a parabola through its values
    at both ends and the middle.
    """
    n_classes = scores.shape[1]
    exponents = np.empty(n_classes, np.int32)
    powers = exponents.view(np.float32)
    mantissas = np.empty(n_classes, np.float32)
    for i in range(scores.shape[0]):
        row = scores[i]
        largest = _largest(row)
        for k in range(n_classes):
            y = np.float32(row[k] - largest) * np.float32(_LOG2_E)
            y = np.float32(-120.0) if y < np.float32(-120.0) else y
            whole = np.floor(y)
            f = y - whole
            mantissas[k] = np.float32(1.0) + f * (np.float32(_LINEAR) + f * np.float32(_SQUARE))
            exponents[k] = (np.int32(whole) + np.int32(127)) << np.int32(23)
        total = np.float32(0.0)
        for k in range(n_classes):
            total += powers[k] * mantissas[k]
        out[i] = np.float64(largest) + math.log(np.float64(total))


@kernel
def topk_scores(scores, k, labels, best):
    """Write the k best classes of each row of scores and their scores, best first.

    `labels` and `best` have shape (n_rows, >= k); ties go to the smaller class.
    """
    lanes = np.empty(N_LANES, best.dtype)
    for i in range(scores.shape[0]):
        select_best(scores[i], k, labels[i], best[i], lanes)
