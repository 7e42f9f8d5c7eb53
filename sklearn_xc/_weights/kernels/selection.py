"""The k best of many scores, on a small heap, for small k; ties go to the smaller label.

Nearly all scores are too small for the heap, so a block of them is first compared with its worst
entry in a vectorised loop.
"""

import numpy as np

from sklearn_xc._compile.jit import inlined

_BLOCK = 128


@inlined
def select_best(scores, k, out_labels, out_scores):
    """Write the k best of `scores`, best first.

    Parameters
    ----------
    scores : ndarray of float of shape (n_labels,)
        Without NaN.
    k : int
        At most n_labels.
    out_labels, out_scores : ndarray of int64 and float, of shape (>= k,)
        The leading k entries are overwritten: a heap with the worst entry first, at the end sorted.
    """
    n_labels = scores.shape[0]
    for at in range(k):  # worse than any label
        out_scores[at], out_labels[at] = -np.inf, n_labels
    for first in range(0, n_labels, _BLOCK):
        block = scores[first : first + _BLOCK]
        worst = out_scores[0]
        found = False
        for at in range(block.shape[0]):
            found |= block[at] >= worst
        if found:
            for at in range(block.shape[0]):
                score = block[at]
                is_free = out_labels[0] == n_labels
                if score > out_scores[0] or (score == out_scores[0] and is_free):
                    sift_down(out_scores, out_labels, k, score, first + at)
    for size in range(k - 1, 0, -1):
        score, label = out_scores[size], out_labels[size]
        out_scores[size], out_labels[size] = out_scores[0], out_labels[0]
        sift_down(out_scores, out_labels, size, score, label)


@inlined
def sift_down(scores, labels, size, score, label):
    """Put an entry in the place of the root of a heap of `size` entries."""
    at = 0
    child = 1
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
