"""Scores of sparse rows against the dense weights of many classes.

A row times one weight vector waits for every weight it reads. So a block of classes is written
side by side, for the features of some rows only, and a row reads all classes of a feature at once.
The more rows share a block, the less writing it costs: where they are short and the classes many,
that is nearly all of the work.
"""

import math

import numpy as np

from sklearn_xc._compile.arithmetic.vector_math import vector_exp
from sklearn_xc._compile.emitters.float_lanes import ROW_BYTES, write_row_products
from sklearn_xc._compile.emitters.int16_lanes import lowest_bit, prefetch
from sklearn_xc._compile.jit import inlined, kernel
from sklearn_xc._weights.kernels.selection import N_LANES, select_best

#: Classes whose weights are read together while a block is written: each is one stream of memory.
STREAMS = 8
#: Weights are prefetched this many features ahead, unless more than one feature in _NEAR is read:
#: then the processor does so by itself.
_AHEAD = np.uint64(8)
_NEAR = 4
#: Of the parabola near 2**f: 1 + f (_LINEAR + f _SQUARE).
_SQUARE = 2.0 * (1.0 + 2.0 - 2.0 * 2.0**0.5)
_LINEAR = 1.0 - _SQUARE
_LOG2_E = 1.4426950408889634
_ONE = np.uint64(1)
#: A feature j is bit ``j & _IN_WORD`` of word ``j >> _WORD``.
_WORD, _IN_WORD = np.uint64(6), np.uint64(63)


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
def mark_words(d):
    """Return how many words of ``number_features`` mark d features."""
    return d // 64 + 1


@inlined
def number_features(indices, marks, position, touched, local):
    """Write the features that occur to `touched`, ascending, and return how many they are.

    Parameters
    ----------
    indices : ndarray of int32 of shape (nnz,)
        Features.
    marks : ndarray of uint64 of shape (> d / 64,)
        All 0, also on return.
    position : ndarray of int32 of shape (d,)
        Work space.
    touched : ndarray of int32
        The head is overwritten; it has room for d features, or for nnz.
    local : ndarray of int32 of shape (>= nnz,)
        Overwritten with the place of each feature in `touched`; may be `indices`.
    """
    for t in range(np.uint64(indices.shape[0])):
        j = np.uint64(np.uint32(indices[t]))
        marks[j >> _WORD] |= _ONE << (j & _IN_WORD)
    n_touched = np.uint64(0)
    for w in range(np.uint64(marks.shape[0])):
        word = marks[w]
        marks[w] = 0
        while word != 0:
            j = (np.uint64(w) << _WORD) + lowest_bit(word)
            position[j], touched[n_touched] = n_touched, j
            n_touched += _ONE
            word &= word - _ONE
    for t in range(np.uint64(indices.shape[0])):
        local[t] = position[np.uint32(indices[t])]
    return np.int64(n_touched)


@inlined
def aligned_block(n, like):
    """Return a block of n rows of ``ROW_BYTES`` that begin with a cache line, of the type of V."""
    width = ROW_BYTES // like.itemsize
    room = np.empty((n + 1) * width, like.dtype)
    skipped = (ROW_BYTES - np.int64(room.ctypes.data) % ROW_BYTES) % ROW_BYTES // like.itemsize
    return room[skipped : skipped + n * width].reshape((n, width))


@kernel
def score_classes(X, first, last, V, scale, intercept, blank, scores):
    """Write ``scores[i - first, k] = scale[k] * x_i . V[k] + intercept[k]`` of some rows.

    A row without a feature that has a weight gets ``blank[k]``.

    The bits of a score depend on its row and class only.

    Parameters
    ----------
    X : tuple of ndarray
        CSR rows, with values of the type of V.
    first, last : int
        From which to which.
    V : ndarray of shape (n_classes, n_features)
        Weights.
    scale, intercept, blank : ndarray of shape (n_classes,)
        Of the same type.
    scores : ndarray of shape (last - first, n_classes)
        Overwritten; C-ordered.
    """
    indptr, indices, data = X
    n_classes = V.shape[0]
    begin, end = indptr[first], indptr[last]
    d, values = V.shape[1], data[begin:end]
    local, touched = np.empty(end - begin, np.int32), np.empty(d, np.int32)
    marks = np.zeros(mark_words(d), np.uint64)
    n_touched = number_features(indices[begin:end], marks, np.empty(d, np.int32), touched, local)
    block = aligned_block(n_touched, V)
    width = block.shape[1]
    factors = np.ones(width, V.dtype)
    products = np.empty(width, V.dtype)
    is_blank = np.ones(last - first, np.bool_)
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
            begin_of, end_of = np.uint64(at), np.uint64(at + m)
            if is_blank[i]:
                for c in range(begin_of, end_of):
                    is_blank[i] &= scores[i, c] == 0
            for c in range(begin_of, end_of):
                scores[i, c] += intercept[c]
    for i in range(last - first):
        if is_blank[i]:
            scores[i] = blank


@kernel
def all_finite(scores):
    """Return whether all scores are finite."""
    for i in range(scores.shape[0]):
        row = scores[i]
        found = False
        for k in range(row.shape[0]):
            found |= not abs(row[k]) < np.inf
        if found:
            return False
    return True


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
