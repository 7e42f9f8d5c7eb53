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
        The leading k entries are overwritten: a heap with the worst entry first, at the end sorted.
    lanes : ndarray of float of shape (N_LANES,)
        Work space.
    """
    n_labels = scores.shape[0]
    floor = scores.dtype.type(-np.inf)
    if k <= lanes.shape[0] and n_labels >= 4 * lanes.shape[0]:
        floor = bound_kth(scores, k, lanes)
    size = 0
    for first in range(0, n_labels, _BLOCK):
        block = scores[first : first + _BLOCK]
        least = floor if size < k else out_scores[0]
        found = False
        for at in range(block.shape[0]):
            found |= block[at] >= least
        if not found:
            continue
        for at in range(block.shape[0]):
            score = block[at]
            if size == k and score > out_scores[0]:
                sift_down(out_scores, out_labels, 0, k, score, first + at)
            elif size < k and score >= floor:
                out_scores[size], out_labels[size] = score, first + at
                size += 1
                if size == k:
                    for place in range(k // 2 - 1, -1, -1):
                        entry, label = out_scores[place], out_labels[place]
                        sift_down(out_scores, out_labels, place, k, entry, label)
    for size in range(k - 1, 0, -1):
        score, label = out_scores[size], out_labels[size]
        out_scores[size], out_labels[size] = out_scores[0], out_labels[0]
        sift_down(out_scores, out_labels, 0, size, score, label)


@inlined
def bound_kth(scores, k, lanes):
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
def sift_down(scores, labels, at, size, score, label):
    """Put an entry in a place of a heap of `size` entries whose parts below that are heaps."""
    child = 2 * at + 1
    while child < size:
        other = child + 1
        if other < size and (
            scores[other] < scores[child]
            or (scores[other] == scores[child] and labels[other] > labels[child])
        ):
            child = other
        if score < scores[child] or (score == scores[child] and label > labels[child]):
            break
        scores[at], labels[at] = scores[child], labels[child]
        at = child
        child = 2 * at + 1
    scores[at], labels[at] = score, label
