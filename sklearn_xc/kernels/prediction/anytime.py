"""Top-k of one row in slices of bounded work, and a bound on what an early stop may have missed.

``start_row``, then ``advance_row`` until the row is done or the time is up, then ``finish_row``. A
row that is done went through the same additions as in ``topk_rows``.

Scores stopped early are partial. The features that were not reached can still raise any score by at
most the sum of their largest contributions, the upper bound of MaxScore [1]_: what is selected by
partial score is then evaluated to the end, and what is not selected is bounded.

.. [1] H. Turtle and J. Flood, "Query evaluation: strategies and optimizations", Information
   Processing and Management 31, 1995.
"""

import numpy as np

from sklearn_xc.kernels.compiling.jit import kernel
from sklearn_xc.kernels.prediction.row_scores import add_features, order_row
from sklearn_xc.kernels.prediction.selection import select_best


@kernel
def start_row(indptr, indices, i, tier, intercept, order, ends, scores):
    """Write the row's order and the intercepts, and return the number of its posting lists."""
    for label in range(intercept.shape[0]):
        scores[label] = intercept[label]
    for label in range(intercept.shape[0], scores.shape[0]):
        scores[label] = 0
    return order_row(indptr, indices, i, tier, order, ends)


@kernel
def advance_row(
    indices, data, order, done, n_nonzeros, n_lists, w_indptr, w_labels, w_values, slot, columns,
    packing, work_of, work, scores,
):  # fmt: skip
    """Add features to `scores` while there is work left, at least one; return how many are done.

    Parameters
    ----------
    indices, data, order, n_lists, w_indptr, w_labels, w_values, slot, columns, packing, scores
        As in ``add_features``.
    done, n_nonzeros : int
        How many features of the row's order were added before, and how many there are.
    work_of : ndarray of float64 of shape (n_features,)
        Work of each feature, in postings.
    work : float
        Postings that may be read. The last posting list, or the last four columns, may exceed it.
    """
    while done < n_nonzeros and work > 0.0:
        last = done + 1
        if done >= n_lists and done + 4 <= n_nonzeros:
            last = done + 4
        add_features(
            indices, data, order, done, last, n_lists,
            w_indptr, w_labels, w_values, slot, columns, packing, scores,
        )  # fmt: skip
        for q in range(done, last):
            work -= work_of[np.uint32(indices[np.uint64(order[q])])]
        done = last
    return done


@kernel
def finish_row(
    indices, data, order, done, n_nonzeros, l_indptr, l_features, l_values, intercept,
    highest, lowest, largest_intercept, rounding, k, n_ranked, scores, row, candidates, partial,
    lanes, labels, best,
):  # fmt: skip
    """Write the k best labels that are known; return whether they are the best, and a bound.

    Parameters
    ----------
    indices, data, order, done, n_nonzeros
        As in ``advance_row``.
    l_indptr, l_features, l_values : ndarray of int64 or int32, int32 and float
        Weights by label: the CSR form of a matrix of shape (n_labels, n_features).
    intercept : ndarray of shape (n_labels,)
        Intercepts.
    highest, lowest : ndarray of shape (n_features,)
        Largest and smallest weight of each feature, zeros included.
    largest_intercept : float
        Largest magnitude of an intercept above -inf.
    rounding : float
        Spacing of 1.0 in the type of `scores`.
    k : int
        At most n_ranked.
    n_ranked : int
        Labels with an intercept above -inf; the others are never returned.
    scores : ndarray of shape (>= n_labels,)
        Scores so far.
    row : ndarray of shape (n_features,)
        Work space of zeros, left so.
    candidates, partial : ndarray of int64 and float of shape (n_candidates,)
        Work space, ``k <= n_candidates <= n_ranked``.
    lanes : ndarray of shape (N_LANES,)
        Work space.
    labels, best : ndarray of int64 and float of shape (>= k,)
        The leading k entries are overwritten, best first.

    Returns
    -------
    exact : bool
        Whether labels and their order are those of all features.
    bound : float
        No other label of those that are ranked scores more.
    """
    n_labels, n_candidates = intercept.shape[0], candidates.shape[0]
    if done == n_nonzeros:
        select_best(scores[:n_labels], k, labels, best, lanes)
        return True, np.float64(best[k - 1]) if k < n_ranked else -np.inf
    # 1. By how much a score can still rise, and how far rounding can move one.
    rise = 0.0
    magnitude = np.float64(largest_intercept)
    for q in range(n_nonzeros):
        t = np.uint64(order[q])
        j = np.uint32(indices[t])
        row[j] = data[t]
        a, b = np.float64(data[t]) * highest[j], np.float64(data[t]) * lowest[j]
        magnitude += max(abs(a), abs(b))
        if q >= done:
            rise += max(a, b)
    slack = 2.0 * (n_nonzeros + 2) * rounding * magnitude
    # 2. Candidates by partial score; the last one bounds all that are none.
    select_best(scores[:n_labels], n_candidates, candidates, partial, lanes)
    missed = -np.inf
    if n_candidates < n_ranked:
        missed = np.float64(partial[n_candidates - 1]) + rise + slack
    # 3. Their scores from all features, sorted.
    for c in range(n_candidates):
        label = candidates[c]
        score = intercept[label]
        for p in range(np.uint64(l_indptr[label]), np.uint64(l_indptr[label + 1])):
            score += l_values[p] * row[np.uint32(l_features[p])]
        at = c
        while at > 0 and (
            partial[at - 1] < score or (partial[at - 1] == score and candidates[at - 1] > label)
        ):
            partial[at], candidates[at] = partial[at - 1], candidates[at - 1]
            at -= 1
        partial[at], candidates[at] = score, label
    for q in range(n_nonzeros):
        row[np.uint32(indices[np.uint64(order[q])])] = 0
    # 4. Exact if no bound and no rounding can change a place.
    exact = True
    for c in range(k):
        labels[c], best[c] = candidates[c], partial[c]
        if c > 0:
            exact &= np.float64(partial[c - 1]) - np.float64(partial[c]) > 2.0 * slack
    if k < n_candidates:
        missed = max(missed, np.float64(partial[k]) + slack)
    exact &= np.float64(partial[k - 1]) - slack > missed
    return exact, missed
