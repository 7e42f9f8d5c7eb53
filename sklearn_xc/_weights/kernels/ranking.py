"""The k best of many scores, and their order, for any k; ties go to the smaller label.

Nearly all scores are too small: a block of them is first compared with the k-th best so far in a
vectorised loop. Those that pass are collected in a buffer, which quickselect cuts to the k best.
"""

import numpy as np

from sklearn_xc._compile.jit import inlined

#: Fewer are sorted by insertion.
_SHORT = 16
_BLOCK = 128


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
    low = 0
    high = n - 1
    while low < high:
        end = _partition(scores, labels, low, high)
        if k <= end + 1:
            high = end
        if k >= end + 1:
            low = end + 1


@inlined
def sort_stack():
    """Return work space for ``sort_best_first``: two numbers for each halving of 2**64 labels."""
    return np.empty(128, np.int64)


@inlined
def sort_best_first(scores, labels, n, stack):
    """Sort the leading n in place, by quicksort.

    Parameters
    ----------
    scores, labels : ndarray of float and int of shape (>= n,)
    n : int
    stack : ndarray
        From ``sort_stack``.
    """
    low = 0
    high = n - 1
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
            score = scores[at]
            label = labels[at]
            to = at
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


@inlined
def room_to_choose(k):
    """Return the length of a buffer for ``choose_labels``."""
    return 2 * k + _BLOCK


@inlined
def choose_labels(scores, begin, first_label, k, size, floor, labels, best):
    """Collect the labels that may be among the k best of a row.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores of the labels `first_label`, `first_label` + 1, ... NaN is never chosen.
    begin : int
        Position of the first score to take.
    first_label : int
        Calls go through the labels in ascending order.
    k : int
        At least 1.
    size : uint64
        Number of labels collected so far.
    floor : float
        Lower bound on the k-th best score; later labels need more.
    labels, best : ndarray of int and float of shape (room_to_choose(k),)
        Labels and scores collected.

    Returns
    -------
    size, floor
    """
    n = np.uint64(scores.shape[0])
    for start in range(np.uint64(begin), n, np.uint64(_BLOCK)):
        end = min(start + np.uint64(_BLOCK), n)
        found = 0
        for at in range(start, end):
            found += scores[at] > floor
        if found == 0:
            continue
        for at in range(start, end):
            labels[size], best[size] = np.uint64(first_label) + at, scores[at]
            size += np.uint64(scores[at] > floor)
        if size >= np.uint64(2 * k):
            select_first(best, labels, np.int64(size), k)
            floor = worst_score(best, k)
            size = np.uint64(k)
    return size, floor


@inlined
def write_best(scores, labels, n, out_labels, out_scores, stack):
    """Write the best of the leading n, best first, as many as there is room for; return how many.

    `scores` and `labels` are rearranged.
    """
    k = min(n, out_labels.shape[0])
    if 2 * k < n:
        select_first(scores, labels, n, k)
        n = k
    sort_best_first(scores, labels, n, stack)
    for c in range(np.uint64(k)):
        out_labels[c], out_scores[c] = labels[c], scores[c]
    return k
