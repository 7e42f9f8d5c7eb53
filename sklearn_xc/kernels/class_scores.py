"""Scores of sparse rows against the dense weights of many classes.

A row times one weight vector waits for every weight it reads. So a block of classes is written
side by side, for the features of some rows only, and a row reads all classes of a feature at once.
"""

import math

import numpy as np

from sklearn_xc.kernels._jit import inlined, kernel
from sklearn_xc.kernels.csr_rows import compact
from sklearn_xc.kernels.selection import N_LANES, select_best

#: Classes that are written side by side.
BLOCK_CLASSES = 64
#: Classes whose weights are read together while a block is written: each is one stream of memory.
STREAMS = 8
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
        Weights.
    classes : ndarray of int64 of shape (m,)
        The classes.
    touched : ndarray of int32
        The features; the leading `n_touched` count.
    n_touched : int
        Their number.
    block : ndarray of shape (>= n_touched, >= m)
        Overwritten.
    """
    m = classes.shape[0]
    for first in range(0, m, STREAMS):
        last = min(first + STREAMS, m)
        for f in range(np.uint64(n_touched)):
            j = np.uint32(touched[f])
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
def _for_each_block(X, first, last, V, scale, scores):
    """Write the scores of the rows `first` to `last`, (last - first, n_classes)."""
    n_classes, d = V.shape
    n_rows = last - first
    room = X[0][last] - X[0][first]
    rows = np.arange(first, last).astype(np.int32)
    position, touched = np.full(d, -1, np.int32), np.empty(d + 1, np.int32)
    local = np.empty(n_rows + 1, np.int64), np.empty(room, np.int32), np.empty(room, V.dtype)
    n_touched = compact(X, rows, position, touched, local)
    block = np.empty((n_touched, BLOCK_CLASSES), V.dtype)
    sums = np.empty((n_rows, BLOCK_CLASSES), V.dtype)
    for at in range(0, n_classes, BLOCK_CLASSES):
        classes = np.arange(at, min(at + BLOCK_CLASSES, n_classes))
        gather_block(V, classes, touched, n_touched, block)
        multiply_rows(local, n_rows, block, classes.shape[0], sums)
        for i in range(n_rows):
            for c in range(np.uint64(classes.shape[0])):
                scores[i, at + c] = sums[i, c] * scale[at + c]


@kernel
def score_classes(X, first, last, V, scale, scores):
    """Write ``scores[i - first, k] = scale[k] * x_i . V[k]`` for the rows `first` to `last`.

    Parameters
    ----------
    X : tuple of ndarray
        CSR rows.
    first, last : int
        Which.
    V : ndarray of shape (n_classes, n_features)
        Weights.
    scale : ndarray of shape (n_classes,)
        Factors on them, of the same type.
    scores : ndarray of shape (last - first, n_classes)
        Overwritten.
    """
    _for_each_block(X, first, last, V, scale, scores)


@inlined
def log_sum_exp(scores):
    """Return ``log(sum(exp(scores)))`` in float64."""
    largest = np.float64(scores[0])
    for k in range(scores.shape[0]):
        largest = max(largest, np.float64(scores[k]))
    total = 0.0
    for k in range(scores.shape[0]):
        total += math.exp(np.float64(scores[k]) - largest)
    return largest + math.log(total)


@kernel
def log_normalisers(scores, out):
    """Write the logarithm of the softmax normaliser of each row of scores, in float64."""
    for i in range(scores.shape[0]):
        out[i] = log_sum_exp(scores[i])


@kernel
def rough_log_normalisers(scores, out):
    """Write ``log_normalisers`` to within 0.003, several times as fast, for scores in float32.

    2**y is made of its exponent, written as the bits of a float, and a parabola through its values
    at both ends and the middle.
    """
    n_classes = scores.shape[1]
    exponents = np.empty(n_classes, np.int32)
    powers = exponents.view(np.float32)
    mantissas = np.empty(n_classes, np.float32)
    for i in range(scores.shape[0]):
        row = scores[i]
        largest = row[0]
        for k in range(n_classes):
            largest = max(largest, row[k])
        for k in range(n_classes):
            y = max((row[k] - largest) * np.float32(_LOG2_E), np.float32(-120.0))
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
