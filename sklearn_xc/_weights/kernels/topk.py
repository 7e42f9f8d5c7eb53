"""Exact top-k scores, and all scores, of sparse rows against sparse label weights.

Every row is scored against every label. Skipping labels whose upper bound is too small was tried
and lost: even if the k-th score were known in advance, 55 to 90% of the blocks of 256 labels have a
bound above it (library titles, 25,404 labels, blocks by intercept or as they come), and MaxScore
would read 57% of the postings before 300 candidates are left.
"""

import numpy as np

from sklearn_xc._compile.jit import kernel
from sklearn_xc._weights.kernels.row_scores import (
    N_TIERS,
    add_features,
    is_blank,
    longest_row,
    order_row,
)
from sklearn_xc._weights.kernels.selection import N_LANES, select_best


@kernel
def topk_rows(X, first, weights, bases, k, labels, best):
    """Write the k best labels of some rows and their scores, best first.

    Parameters
    ----------
    X : tuple of ndarray
        ``(indptr, indices, data)``: CSR rows.
    first : int
        The row of X that the first row of `labels` stands for.
    weights : tuple
        ``(w_indptr, w_labels, w_values, slot, columns, tier, packing)``: posting lists of each
        feature without a column, the column of a feature or -1, columns (n_columns, n_padded) of
        all labels, the order of features, and, if weights are compact, `packing` as of
        ``add_features``, else None.
    bases : ndarray of shape (2, n_labels)
        What the scores of a row are added to: intercepts, and below them the scores of a row that
        has no feature with a weight.
    k : int
        At most n_labels.
    labels, best : ndarray of int64 and float, of shape (n_rows, >= k)
        The leading k columns are overwritten.
    """
    indptr, indices, data = X
    w_indptr, w_labels, w_values, slot, columns, tier, packing = weights
    n_labels = bases.shape[1]
    longest = longest_row(indptr, first, labels.shape[0])
    order, ends = np.empty(longest, np.int64), np.empty(2 * N_TIERS + 1, np.int64)
    scores, lanes = np.zeros(columns.shape[1], best.dtype), np.empty(N_LANES, best.dtype)
    for r in range(labels.shape[0]):
        i = first + r
        n_lists = order_row(indptr, indices, i, tier, order, ends)
        base = bases[np.int64(is_blank(indptr, indices, i, w_indptr, slot))]
        for label in range(n_labels):
            scores[label] = base[label]
        add_features(
            indices,
            data,
            order,
            0,
            indptr[i + 1] - indptr[i],
            n_lists,
            w_indptr,
            w_labels,
            w_values,
            slot,
            columns,
            packing,
            scores,
        )
        select_best(scores[:n_labels], k, labels[r], best[r], lanes)


@kernel
def score_rows(X, first, weights, bases, out):
    """Write the scores of all labels for some rows to `out`; else as ``topk_rows``."""
    indptr, indices, data = X
    w_indptr, w_labels, w_values, slot, columns, tier, packing = weights
    n_labels = bases.shape[1]
    longest = longest_row(indptr, first, out.shape[0])
    order, ends = np.empty(longest, np.int64), np.empty(2 * N_TIERS + 1, np.int64)
    scores = np.zeros(columns.shape[1], out.dtype)
    for r in range(out.shape[0]):
        i = first + r
        n_lists = order_row(indptr, indices, i, tier, order, ends)
        base = bases[np.int64(is_blank(indptr, indices, i, w_indptr, slot))]
        for label in range(n_labels):
            scores[label] = base[label]
        add_features(
            indices,
            data,
            order,
            0,
            indptr[i + 1] - indptr[i],
            n_lists,
            w_indptr,
            w_labels,
            w_values,
            slot,
            columns,
            packing,
            scores,
        )
        for label in range(n_labels):
            out[r, label] = scores[label]
