"""What pruning does to the scores of some instances, as their labels are solved one by one.

Pruning costs a user something where other labels come first, or other ones score above 0. For a
sample of instances the best few negatives are kept, by their scores before pruning and after it,
and the scores of all positives. Only instances are looked at whose score may be above the kink:
there is nothing to gain or lose for a label further down.
"""

import functools
import math
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from sklearn_xc.kernels.compiling.jit import inlined, kernel


@inlined
def keep_best(best, score):
    """Put a score into a falling list of the best ones, if it belongs there."""
    at = best.shape[0]
    while at > 0 and best[at - 1] < score:
        if at < best.shape[0]:
            best[at] = best[at - 1]
        at -= 1
    if at < best.shape[0]:
        best[at] = score


@functools.cache
def pruning_kernel(loss: Any, rows_of: ModuleType) -> Any:
    """Return ``score_sample`` and ``score_sets`` for a loss and ``csr_rows`` or ``dense_rows``."""
    row_dot_double = rows_of.row_dot_double
    screened = math.isfinite(loss.active_below)
    kink = -float(loss.active_below)

    @inlined
    def score_rows(X, rows, place, before, after, scores, scored, n_scored):
        """Write the scores of those rows that are in the sample and have none yet; list them."""
        d = before.shape[0] - 1
        for r in range(rows.shape[0]):
            at = place[np.uint32(rows[r])]
            if at >= 0 and scores[0, at] == -np.inf:
                i = np.uint32(rows[r])
                scores[0, at] = row_dot_double(X, i, before) + np.float64(before[d])
                scores[1, at] = row_dot_double(X, i, after) + np.float64(after[d])
                scored[n_scored] = at
                n_scored += 1
        return n_scored

    @inlined
    def take_up(
        X, candidates, active, positives, sample, place, before, after, scores, scored, best,
        n_above, of_positives, n_positive_scores,
    ):  # fmt: skip
        """Take up the scores of one label; return how many scores of positives were written.

        Parameters
        ----------
        X : tuple of ndarray
            The instances.
        candidates, active : ndarray of int32
            Rows that may have a loss after pruning, and before. Not read where every row has one.
        positives : ndarray of int32
            Positive rows of the label.
        sample : ndarray of int32 of shape (n_sampled,)
            Rows of the sample.
        place : ndarray of int32 of shape (n,)
            Place of each row in the sample, or -1.
        before, after : ndarray of shape (d + 1,)
            The label's weights, intercept last, before and after pruning.
        scores : ndarray of float64 of shape (2, n_sampled)
            Work space of -inf, left so.
        scored : ndarray of int32 of shape (n_sampled,)
            Work space.
        best : ndarray of float64 of shape (2, n_sampled, k)
            The best scores of negatives, falling, before and after; added to.
        n_above : ndarray of float64 of shape (2,)
            Scores of negatives above 0, before and after; added to.
        of_positives : ndarray of float64 of shape (3, >= n_positives of the sample)
            Rows: place in the sample, score before, score after, -inf for those that are not above
            the kink. Written from the next column on.
        n_positive_scores : int
            The columns that are written already.
        """
        m = 0
        if screened:
            m = score_rows(X, candidates, place, before, after, scores, scored, m)
            m = score_rows(X, active, place, before, after, scores, scored, m)
            m = score_rows(X, positives, place, before, after, scores, scored, m)
        else:
            m = score_rows(X, sample, place, before, after, scores, scored, m)
        n = n_positive_scores
        for r in range(positives.shape[0]):
            at = place[np.uint32(positives[r])]
            if at >= 0:
                of_positives[0, n] = at
                for side in range(2):
                    score = scores[side, at]
                    of_positives[1 + side, n] = score if score > kink else -np.inf
                    scores[side, at] = -np.inf
                n += 1
        for s in range(m):
            at = scored[s]
            for side in range(2):
                if scores[side, at] > kink:
                    keep_best(best[side, at], scores[side, at])
                    n_above[side] += scores[side, at] > 0.0
                scores[side, at] = -np.inf
        return n

    @kernel
    def score_sample(
        X, candidates, active, positives, sample, place, before, after, scores, scored, best,
        n_above, of_positives, n_positive_scores,
    ):  # fmt: skip
        """Take up one label: see ``take_up``."""
        return take_up(
            X, candidates, active, positives, sample, place, before, after, scores, scored, best,
            n_above, of_positives, n_positive_scores,
        )  # fmt: skip

    @kernel
    def score_sets(
        X, y_indptr, y_rows, labels, row_indptr, rows, indptr, features, stand, prune, sample,
        place, vectors, in_sample, scores, scored, best, n_above, of_positives, n_positive_scores,
    ):  # fmt: skip
        """Take up labels that were solved on working sets.

        Parameters
        ----------
        X, y_indptr, y_rows : tuple and ndarray
            Instances, and the positive rows of each label.
        labels : ndarray of int64 of shape (m,)
            Which labels.
        row_indptr, rows : ndarray of int64 and int32
            Their working sets; negative numbers are no rows.
        indptr, features, stand : ndarray of int64, int32 and float
            Sparse points before pruning: that of c from ``indptr[c] + c`` on, intercept last.
        prune : float
            Smaller weights become 0.
        sample, place, scores, scored, best, n_above, of_positives, n_positive_scores
            As for ``take_up``.
        vectors : ndarray of shape (2, d + 1)
            Work space of 0, left so but for intercepts.
        in_sample : ndarray of int32
            Work space for as many rows as the largest set has.
        """
        before, after = vectors[0], vectors[1]
        n = n_positive_scores
        for c in range(labels.shape[0]):
            m = np.uint32(0)
            for r in range(row_indptr[c], row_indptr[c + 1]):
                i = rows[r]
                in_sample[m] = i
                m += np.uint32(i >= 0 and place[np.uint32(max(i, 0))] >= 0)
            if m == 0:
                continue
            for t in range(indptr[c], indptr[c + 1]):
                j = np.uint32(features[t])
                before[j] = stand[t + c]
                after[j] = stand[t + c] if abs(stand[t + c]) >= prune else 0
            before[before.shape[0] - 1] = stand[indptr[c + 1] + c]
            after[after.shape[0] - 1] = stand[indptr[c + 1] + c]
            positives = y_rows[y_indptr[labels[c]] : y_indptr[labels[c] + 1]]
            n = take_up(
                X, in_sample[:m], in_sample[:0], positives, sample, place, before, after, scores,
                scored, best, n_above, of_positives, n,
            )  # fmt: skip
            for t in range(indptr[c], indptr[c + 1]):
                j = np.uint32(features[t])
                before[j] = 0
                after[j] = 0
        return n

    return SimpleNamespace(score_sample=score_sample, score_sets=score_sets)
