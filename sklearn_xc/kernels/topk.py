"""Exact top-k scores of sparse rows against sparse label weights.

The weights are walked feature by feature: each non-zero of a row adds its column of weights to a
score per label; the k best of those are kept on a small heap. Ties go to the smaller label.
"""

import numpy as np

from sklearn_xc.kernels._jit import inlined, kernel

_ONE = np.uint32(1)


@inlined
def _score_row(indptr, indices, data, i, w_indptr, w_labels, w_values, intercept, scores):
    for label in range(scores.shape[0]):
        scores[label] = intercept[label]
    for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
        value = data[t]
        j = np.uint32(indices[t])
        for p in range(np.uint64(w_indptr[j]), np.uint64(w_indptr[j + _ONE])):
            scores[np.uint32(w_labels[p])] += value * w_values[p]


@inlined
def _worse(score_a, label_a, score_b, label_b):
    return score_a < score_b or (score_a == score_b and label_a > label_b)


@inlined
def _sift_down(scores, labels, size):
    """Restore a heap whose root, the worst of the best, was replaced."""
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


@inlined
def _select(scores, k, out_labels, out_scores):
    """Write the k best of `scores`, best first; `k` is at most their number."""
    for label in range(k):
        # Build: sift the new entry up.
        at = label
        out_scores[at] = scores[label]
        out_labels[at] = label
        while at > 0:
            parent = (at - 1) // 2
            if not _worse(out_scores[at], out_labels[at], out_scores[parent], out_labels[parent]):
                break
            out_scores[at], out_scores[parent] = out_scores[parent], out_scores[at]
            out_labels[at], out_labels[parent] = out_labels[parent], out_labels[at]
            at = parent
    for label in range(k, scores.shape[0]):
        if scores[label] > out_scores[0]:
            out_scores[0] = scores[label]
            out_labels[0] = label
            _sift_down(out_scores, out_labels, k)
    for size in range(k - 1, 0, -1):
        out_scores[0], out_scores[size] = out_scores[size], out_scores[0]
        out_labels[0], out_labels[size] = out_labels[size], out_labels[0]
        _sift_down(out_scores, out_labels, size)


@kernel
def topk_rows(
    indptr, indices, data, first, w_indptr, w_labels, w_values, intercept, k, labels, scores
):
    """Write the k best labels of some rows and their scores, best first.

    Parameters
    ----------
    indptr, indices, data : ndarray of int64, int32 and float
        Rows of X in CSR form.
    first : int
        The row of X that the first row of `labels` stands for.
    w_indptr, w_labels, w_values : ndarray of int64, int32 and float
        Weights by feature: the CSC form of a matrix of shape (n_labels, n_features).
    intercept : ndarray of shape (n_labels,)
        Added to every score.
    k : int
        At most n_labels.
    labels, scores : ndarray of int64 and float, of shape (n_rows, >= k)
        The leading k columns are overwritten.
    """
    all_scores = np.empty(intercept.shape[0], scores.dtype)
    for r in range(labels.shape[0]):
        _score_row(
            indptr, indices, data, first + r, w_indptr, w_labels, w_values, intercept, all_scores
        )
        _select(all_scores, k, labels[r], scores[r])


@kernel
def score_rows(indptr, indices, data, first, w_indptr, w_labels, w_values, intercept, scores):
    """Write the scores of all labels for some rows; arguments as in ``topk_rows``."""
    for r in range(scores.shape[0]):
        _score_row(
            indptr, indices, data, first + r, w_indptr, w_labels, w_values, intercept, scores[r]
        )
