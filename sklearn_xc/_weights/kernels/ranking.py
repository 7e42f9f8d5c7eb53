"""The k best of labels and scores side by side, and their order, for any k.

The heap of ``selection`` costs log(k) branches that cannot be foreseen for each label that it
takes; a few passes of quickselect over labels collected in a buffer cost much less where k is
thousands. Better is a higher score, or an equal one of a smaller label.
"""

from typing import NamedTuple

import numpy as np

from sklearn_xc._compile.jit import inlined

#: Fewer are sorted by insertion, and so many by the bytes of their scores.
_SHORT, _MANY = 16, 128
_BYTE = np.uint64(255)


@inlined
def _better(score_a, label_a, score_b, label_b):
    return score_a > score_b or (score_a == score_b and label_a < label_b)


@inlined
def _swap(scores, labels, a, b):
    scores[a], scores[b] = scores[b], scores[a]
    labels[a], labels[b] = labels[b], labels[a]


@inlined
def _partition(scores, labels, low, high):
    """Move the better to the front; return `end`, low <= end < high: none up to it is worse."""
    middle = low + (high - low) // 2
    # The median of three is the pivot, so that sorted labels take no longer than others.
    if _better(scores[middle], labels[middle], scores[low], labels[low]):
        _swap(scores, labels, middle, low)
    if _better(scores[high], labels[high], scores[low], labels[low]):
        _swap(scores, labels, high, low)
    if _better(scores[high], labels[high], scores[middle], labels[middle]):
        _swap(scores, labels, high, middle)
    score, label = scores[middle], labels[middle]
    a, b = low - 1, high + 1
    while True:
        a, b = a + 1, b - 1
        while _better(scores[a], labels[a], score, label):
            a += 1
        while _better(score, label, scores[b], labels[b]):
            b -= 1
        if a >= b:
            return b
        _swap(scores, labels, a, b)


@inlined
def select_first(scores, labels, n, k):
    """Move the k best of the leading n to the front, in any order."""
    low, high = 0, n - 1
    while low < high:
        end = _partition(scores, labels, low, high)
        if k <= end + 1:
            high = end
        if k >= end + 1:
            low = end + 1


class SortSpace(NamedTuple):
    """Work space to sort labels.

    Attributes
    ----------
    stack : ndarray of int64 of shape (128,)
        Ranges that wait: two numbers for each halving of 2**64 labels.
    starts : ndarray of int64 of shape (8, 256)
        Where the numbers with a byte begin.
    keys, labels : ndarray of uint64 and int32 of shape (2, n)
    """

    stack: np.ndarray
    starts: np.ndarray
    keys: np.ndarray
    labels: np.ndarray


@inlined
def sort_space(n):
    """Return work space for n labels."""
    return SortSpace(
        np.empty(128, np.int64),
        np.empty((8, 256), np.int64),
        np.empty((2, n), np.uint64),
        np.empty((2, n), np.int32),
    )


@inlined
def sort_best_first(scores, labels, n, space):
    """Sort the leading n in place.

    Parameters
    ----------
    scores, labels : ndarray of float and int32 of shape (>= n,)
        Contiguous.
    n : int
    space : SortSpace
        For n labels or more.
    """
    if n < _MANY:
        _sort_range(scores, labels, 0, n - 1, space.stack)
        return
    # By bytes of the scores, the last first: no branch depends on a score.
    keys, moved, starts = space.keys, space.labels, space.starts
    _write_keys(scores, n, keys[0])
    n_bytes = scores.itemsize
    starts[:] = 0
    for at in range(np.uint64(n)):
        moved[0, at] = labels[at]
        key = keys[0, at]
        for byte in range(np.uint64(n_bytes)):
            starts[byte, (key >> (np.uint64(8) * byte)) & _BYTE] += 1
    now = 0
    for byte in range(n_bytes):
        start, shift = starts[byte], np.uint64(8 * byte)
        if start[(keys[now, 0] >> shift) & _BYTE] == n:  # all have the same byte
            continue
        total = np.int64(0)
        for value in range(256):
            count = start[value]
            start[value] = total
            total += count
        one, other = keys[now], keys[1 - now]
        one_labels, other_labels = moved[now], moved[1 - now]
        for at in range(np.uint64(n)):
            value = (one[at] >> shift) & _BYTE
            to = np.uint64(start[value])
            start[value] += 1
            other[to], other_labels[to] = one[at], one_labels[at]
        now = 1 - now
    for at in range(np.uint64(n)):
        labels[at] = moved[now, at]
    _read_keys(keys[now], n, scores)
    # Equal scores are in the order in which they came.
    first = 0
    for at in range(1, n + 1):
        if at == n or scores[at] != scores[first]:
            if at - first > 1:
                _sort_range(scores, labels, first, at - 1, space.stack)
            first = at


@inlined
def _write_keys(scores, n, keys):
    """Write numbers that rise as the scores fall: the bits of floats rise away from 0."""
    if scores.itemsize == 4:
        bits32 = scores.view(np.uint32)
        for at in range(np.uint64(n)):
            keys[at] = _turned(np.uint64(bits32[at]), np.uint64(0x80000000))
    else:
        bits64 = scores.view(np.uint64)
        for at in range(np.uint64(n)):
            keys[at] = _turned(bits64[at], np.uint64(0x8000000000000000))


@inlined
def _read_keys(keys, n, scores):
    """Write the scores of keys."""
    if scores.itemsize == 4:
        bits32 = scores.view(np.uint32)
        for at in range(np.uint64(n)):
            bits32[at] = np.uint32(_turned(keys[at], np.uint64(0x80000000)))
    else:
        bits64 = scores.view(np.uint64)
        for at in range(np.uint64(n)):
            bits64[at] = _turned(keys[at], np.uint64(0x8000000000000000))


@inlined
def _turned(bits, sign):
    """Return bits with all but the sign turned, if that is not set; -0 becomes 0."""
    below = sign - np.uint64(1)
    if bits == sign:
        return below
    return bits if bits & sign else below - bits


@inlined
def _sort_range(scores, labels, low, high, stack):
    """Sort the places `low` to `high`, that one included, by quicksort."""
    depth = 0
    while True:
        while high - low >= _SHORT:
            end = _partition(scores, labels, low, high)
            if end - low < high - end:  # the longer part waits
                stack[depth], stack[depth + 1] = end + 1, high
                high = end
            else:
                stack[depth], stack[depth + 1] = low, end
                low = end + 1
            depth += 2
        for at in range(low + 1, high + 1):
            score, label, to = scores[at], labels[at], at
            while to > low and _better(score, label, scores[to - 1], labels[to - 1]):
                scores[to], labels[to] = scores[to - 1], labels[to - 1]
                to -= 1
            scores[to], labels[to] = score, label
        if depth == 0:
            return
        depth -= 2
        low, high = stack[depth], stack[depth + 1]


@inlined
def worst_score(scores, n):
    """Return the smallest of the leading n scores, n at least 1."""
    worst = scores[0]
    for at in range(np.uint64(n)):
        worst = min(worst, scores[at])
    return worst
