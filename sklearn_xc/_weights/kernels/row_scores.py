"""Exact top-k scores, and all scores, of sparse rows against sparse label weights.

Every row is scored against every label: a posting list of a feature, or a column of the weights of
all labels, is added to the scores. Skipping labels by upper bounds was tried and lost: even if the
k-th score were known in advance, 55 to 90% of the blocks of 256 labels have a bound above it.
"""

import numpy as np

from sklearn_xc._compile.jit import inlined, kernel
from sklearn_xc._weights.kernels.packed_lists import add_packed_list, weight_of_column
from sklearn_xc._weights.kernels.selection import N_LANES, select_best

_ONE = np.uint32(1)


@kernel
def topk_rows(X, first, weights, bases, k, labels, best):
    """Write the k best labels of some rows and their scores, best first.

    Parameters
    ----------
    X : tuple of ndarray
        ``(indptr, indices, data)``: CSR rows.
    first : int
        The row of X for the first row of `labels`.
    weights : tuple
        ``(w_indptr, w_labels, w_values, slot, columns, packing)``: posting lists of each feature
        without a column, the column of a feature or -1, and columns (n_columns, n_padded) of all
        labels, padded with zeros. `packing` is None for floats. For compact weights it is, as
        arrays of uint8, float and float, the bits of a distance for each list, the scale of each
        feature, and the weight of each code; then `w_indptr` says where lists begin in `w_values`,
        which holds them packed, `w_labels` is their number of postings, and columns are codes.
    bases : ndarray of shape (2, n_labels)
        What the scores of a row are added to: intercepts, and below them the scores of a row that
        has no feature with a weight.
    k : int
        At most n_labels.
    labels, best : ndarray of int64 and float, of shape (n_rows, >= k)
        The leading k columns are overwritten.
    """
    order = np.empty(_longest_row(X[0], first, labels.shape[0]), np.int64)
    scores = np.zeros(weights[4].shape[1], best.dtype)
    lanes = np.empty(N_LANES, best.dtype)
    for r in range(labels.shape[0]):
        _score_row(X, first + r, weights, bases, order, scores)
        select_best(scores[: bases.shape[1]], k, labels[r], best[r], lanes)


@kernel
def score_rows(X, first, weights, bases, out):
    """Write the scores of all labels for some rows to `out`; else as ``topk_rows``."""
    order = np.empty(_longest_row(X[0], first, out.shape[0]), np.int64)
    scores = np.zeros(weights[4].shape[1], out.dtype)
    for r in range(out.shape[0]):
        _score_row(X, first + r, weights, bases, order, scores)
        for label in range(out.shape[1]):
            out[r, label] = scores[label]


@kernel
def score_pairs(X, weights, indptr, labels, bases, is_blank, is_left_out, x, out):
    """Write the scores of some labels of each row, summed in float64.

    Parameters
    ----------
    X, weights : tuple of ndarray
        CSR rows; weights by label, in CSR form.
    indptr, labels : ndarray of int64
        The labels of each row, as in a CSR.
    bases : ndarray of shape (2, n_labels)
        As of ``topk_rows``.
    is_blank, is_left_out : ndarray of bool of shape (n,)
        Rows without a feature that has a weight; other rows to leave out.
    x : ndarray of float64 of shape (n_features,)
        Zeros, also on return.
    out : ndarray of shape (n_pairs,)
        Overwritten.
    """
    x_indptr, indices, data = X
    w_indptr, features, values = weights
    for i in range(is_blank.shape[0]):
        if is_blank[i]:
            for p in range(indptr[i], indptr[i + 1]):
                out[p] = bases[1, labels[p]]
        elif not is_left_out[i]:
            for t in range(x_indptr[i], x_indptr[i + 1]):
                x[np.uint32(indices[t])] = data[t]
            for p in range(indptr[i], indptr[i + 1]):
                total = np.float64(bases[0, labels[p]])
                for t in range(w_indptr[labels[p]], w_indptr[labels[p] + 1]):
                    total += x[np.uint32(features[t])] * np.float64(values[t])
                out[p] = total
            for t in range(x_indptr[i], x_indptr[i + 1]):
                x[np.uint32(indices[t])] = 0.0


@inlined
def _score_row(X, i, weights, bases, order, scores):
    """Write the scores of all labels for row i."""
    indptr, indices, data = X
    w_indptr, w_labels, w_values, slot, columns, packing = weights
    n = indptr[i + 1] - indptr[i]
    n_lists = _order_row(indptr, indices, i, slot, order)
    base = bases[np.int64(_is_blank(indptr, indices, i, w_indptr, slot))]
    for label in range(base.shape[0]):
        scores[label] = base[label]
    row, lists = (indices, data, order, n, n_lists), (w_indptr, w_labels, w_values)
    _add_features(row, lists, slot, columns, packing, scores)


@inlined
def _add_features(row, lists, slot, columns, packing, scores):
    """Add the weights of the features of a row to `scores`, columns four at a time."""
    if packing is None:  # an argument of its own, so that numba compiles one branch alone
        _add_floats(row, lists, slot, columns, scores)
    else:
        _add_codes(row, lists, slot, columns, packing, scores)


@inlined
def _order_row(indptr, indices, i, slot, order):
    """Write the positions of the entries of a row, those with posting lists first.

    Returns
    -------
    int
        Number of entries with posting lists.
    """
    n_lists = 0
    for t in range(indptr[i], indptr[i + 1]):
        order[n_lists] = t
        n_lists += slot[np.uint32(indices[t])] < 0
    at = n_lists
    for t in range(indptr[i], indptr[i + 1]):
        if slot[np.uint32(indices[t])] >= 0:
            order[at] = t
            at += 1
    return n_lists


@inlined
def _add_floats(row, lists, slot, columns, scores):
    indices, data, order, n, n_lists = row
    w_indptr, w_labels, w_values = lists
    for q in range(n_lists):
        t = np.uint64(order[q])
        value = data[t]
        j = np.uint32(indices[t])
        for p in range(np.uint64(w_indptr[j]), np.uint64(w_indptr[j + _ONE])):
            scores[np.uint32(w_labels[p])] += value * w_values[p]
    q = n_lists
    while q + 4 <= n:
        t0, t1, t2, t3 = order[q], order[q + 1], order[q + 2], order[q + 3]
        v0, v1, v2, v3 = data[t0], data[t1], data[t2], data[t3]
        c0 = columns[slot[indices[t0]]]
        c1 = columns[slot[indices[t1]]]
        c2 = columns[slot[indices[t2]]]
        c3 = columns[slot[indices[t3]]]
        for label in range(scores.shape[0]):
            scores[label] += (v0 * c0[label] + v1 * c1[label]) + (v2 * c2[label] + v3 * c3[label])
        q += 4
    while q < n:
        t0 = order[q]
        v0 = data[t0]
        c0 = columns[slot[indices[t0]]]
        for label in range(scores.shape[0]):
            scores[label] += v0 * c0[label]
        q += 1


@inlined
def _add_codes(row, lists, slot, columns, packing, scores):
    """Add features as ``_add_floats`` does with the weights that the codes represent."""
    indices, data, order, n, n_lists = row
    begins, counts, packed = lists
    widths, scale, weight_of_code = packing
    for q in range(n_lists):
        t = np.uint64(order[q])
        j = np.uint32(indices[t])
        begin, count, width = np.uint64(begins[j]), np.uint64(counts[j]), np.uint64(widths[j])
        add_packed_list(data[t] * scale[j], begin, count, width, weight_of_code, packed, scores)
    q = n_lists
    while q + 4 <= n:
        t0, t1, t2, t3 = order[q], order[q + 1], order[q + 2], order[q + 3]
        j0, j1, j2, j3 = indices[t0], indices[t1], indices[t2], indices[t3]
        v0, v1 = data[t0] * scale[j0], data[t1] * scale[j1]
        v2, v3 = data[t2] * scale[j2], data[t3] * scale[j3]
        c0, c1, c2, c3 = columns[slot[j0]], columns[slot[j1]], columns[slot[j2]], columns[slot[j3]]
        for label in range(scores.shape[0]):
            w0, w1 = weight_of_column(c0[label], scores), weight_of_column(c1[label], scores)
            w2, w3 = weight_of_column(c2[label], scores), weight_of_column(c3[label], scores)
            scores[label] += (v0 * w0 + v1 * w1) + (v2 * w2 + v3 * w3)
        q += 4
    while q < n:
        t0 = order[q]
        j0 = indices[t0]
        v0 = data[t0] * scale[j0]
        c0 = columns[slot[j0]]
        for label in range(scores.shape[0]):
            scores[label] += v0 * weight_of_column(c0[label], scores)
        q += 1


@inlined
def _is_blank(indptr, indices, i, w_indptr, slot):
    """Return whether no label has a weight on any feature of row i."""
    for t in range(indptr[i], indptr[i + 1]):
        j = np.uint32(indices[t])
        if slot[j] >= 0 or w_indptr[j + _ONE] > w_indptr[j]:
            return False
    return True


@inlined
def _longest_row(indptr, first, n_rows):
    """Return the largest number of non-zeros in some rows."""
    longest = 0
    for i in range(first, first + n_rows):
        longest = max(longest, indptr[i + 1] - indptr[i])
    return longest
