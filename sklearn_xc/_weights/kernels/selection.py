"""The k best of many scores, on a small heap, for small k; ties go to the smaller label.

Nearly all scores are too small for the heap, so a block of them is first compared with its worst
entry in a vectorised loop. For the heap to be good from the start, a bound on the k-th best score
comes first: among the maxima of the labels that are congruent modulo 256, k are from k different
labels, so that the k-th of these maxima is never above the k-th score.
"""

import numpy as np

from sklearn_xc._compile.jit import inlined

#: Length of the work space for the bound.
N_LANES = 256
_BLOCK = 128
_HALVINGS = 12


@inlined
def select_best(scores, k, out_labels, out_scores, lanes):
    """Write the k best of `scores`, best first.

    Parameters
    ----------
    scores : ndarray of float of shape (n_labels,)
        Without NaN.
    k : int
        At most n_labels.
    out_labels, out_scores : ndarray of int64 and float, of shape (>= k,)
        The leading k entries are overwritten.
    lanes : ndarray of float of shape (N_LANES,)
        Work space.
    """
    n_labels = scores.shape[0]
    floor = scores.dtype.type(-np.inf)
    if k <= lanes.shape[0] and n_labels >= 4 * lanes.shape[0]:
        floor = _bound_kth(scores, k, lanes)
    size = 0
    for first in range(0, n_labels, _BLOCK):
        block = scores[first : first + _BLOCK]
        found = False
        if size < k:
            for at in range(block.shape[0]):
                found |= block[at] >= floor
        else:
            worst = out_scores[0]
            for at in range(block.shape[0]):
                found |= block[at] > worst
        if found:
            size = _offer(block, first, floor, size, k, out_labels, out_scores)
    sort_heap(k, out_labels, out_scores)


@inlined
def _bound_kth(scores, k, lanes):
    """Return a lower bound on the k-th best score, near it."""
    n_lanes = lanes.shape[0]
    for at in range(n_lanes):
        lanes[at] = scores[at]
    for first in range(n_lanes, scores.shape[0] - n_lanes + 1, n_lanes):
        block = scores[first : first + n_lanes]
        for at in range(n_lanes):
            lanes[at] = block[at] if block[at] > lanes[at] else lanes[at]
    low, high = lanes[0], lanes[0]
    for at in range(n_lanes):
        low, high = min(low, lanes[at]), max(high, lanes[at])
    # At any time k maxima are at or above `low`.
    for _ in range(_HALVINGS):
        middle = low + (high - low) * scores.dtype.type(0.5)
        count = 0
        for at in range(n_lanes):
            count += lanes[at] >= middle
        if count >= k:
            low = middle
        else:
            high = middle
    return low


@inlined
def _worse(score_a, label_a, score_b, label_b):
    return score_a < score_b or (score_a == score_b and label_a > label_b)


@inlined
def _offer(block, first, floor, size, k, out_labels, out_scores):
    """Put the labels of a block on the heap, or in place of its worst; return the heap's size."""
    for at in range(block.shape[0]):
        score = block[at]
        if score < floor:
            continue
        if size < k:
            _sift_up(out_scores, out_labels, size, score, first + at)
            size += 1
        elif score > out_scores[0]:
            out_scores[0] = score
            out_labels[0] = first + at
            _sift_down(out_scores, out_labels, k)
    return size


@inlined
def _sift_up(scores, labels, at, score, label):
    """Add an entry to a heap of `at` entries."""
    while at > 0:
        parent = (at - 1) // 2
        if not _worse(score, label, scores[parent], labels[parent]):
            break
        scores[at], labels[at] = scores[parent], labels[parent]
        at = parent
    scores[at], labels[at] = score, label


@inlined
def sort_heap(k, out_labels, out_scores):
    """Sort a heap of k entries, best first."""
    for size in range(k - 1, 0, -1):
        out_scores[0], out_scores[size] = out_scores[size], out_scores[0]
        out_labels[0], out_labels[size] = out_labels[size], out_labels[0]
        _sift_down(out_scores, out_labels, size)


@inlined
def _sift_down(scores, labels, size):
    """Restore a heap whose root was replaced."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        other = child + 1
        if other < size and _worse(scores[other], labels[other], scores[child], labels[child]):
            child = other
        if not _worse(scores[child], labels[child], scores[at], labels[at]):
            return
        scores[at], scores[child] = scores[child], scores[at]
        labels[at], labels[child] = labels[child], labels[at]
        at = child
