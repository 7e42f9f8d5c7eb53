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
    scores, lanes = np.empty(weights[4].shape[1], best.dtype), np.empty(N_LANES, best.dtype)
    for r in range(labels.shape[0]):
        _score_row(X, first + r, weights, bases, scores)
        select_best(scores[: bases.shape[1]], k, labels[r], best[r], lanes)


@kernel
def score_rows(X, first, weights, bases, out):
    """Write the scores of all labels for some rows to `out`; else as ``topk_rows``."""
    scores = np.empty(weights[4].shape[1], out.dtype)
    for r in range(out.shape[0]):
        _score_row(X, first + r, weights, bases, scores)
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
def _score_row(X, i, weights, bases, scores):
    """Write the scores of all labels for row i."""
    indptr, indices, data = X
    w_indptr, w_labels, w_values, slot, columns, packing = weights
    base = bases[1]  # no label has a weight on any feature of the row
    for t in range(indptr[i], indptr[i + 1]):
        j = np.uint32(indices[t])
        if slot[j] >= 0 or w_indptr[j + _ONE] > w_indptr[j]:
            base = bases[0]
            break
    for label in range(base.shape[0]):
        scores[label] = base[label]
    for label in range(base.shape[0], scores.shape[0]):
        scores[label] = 0
    places, m = np.empty(indptr[i + 1] - indptr[i], np.int64), 0  # of entries with columns
    for t in range(indptr[i], indptr[i + 1]):
        j = np.uint32(indices[t])
        if slot[j] >= 0:
            places[m] = t
            m += 1
        else:
            _add_list(j, data[t], w_indptr, w_labels, w_values, packing, scores)
    _add_columns(indices, data, places[:m], slot, columns, packing, scores)


@inlined
def _add_list(j, value, begins, w_labels, w_values, packing, scores):
    """Add `value` times the posting list of feature j to `scores`."""
    if packing is None:  # numba compiles one of the branches
        for p in range(np.uint64(begins[j]), np.uint64(begins[j + _ONE])):
            scores[np.uint32(w_labels[p])] += value * w_values[p]
    else:  # packed: `w_labels` has the number of postings
        widths, scales, weight_of_code = packing
        begin, n, width = np.uint64(begins[j]), np.uint64(w_labels[j]), np.uint64(widths[j])
        add_packed_list(value * scales[j], begin, n, width, weight_of_code, w_values, scores)


@inlined
def _add_columns(indices, data, places, slot, columns, packing, scores):
    """Add the entries of a row at some places, which have columns, to `scores`, four at a time."""
    q = 0
    while q + 4 <= places.shape[0]:
        t0, t1, t2, t3 = places[q], places[q + 1], places[q + 2], places[q + 3]
        j0, j1, j2, j3 = indices[t0], indices[t1], indices[t2], indices[t3]
        v0, v1 = _scaled(data[t0], j0, packing), _scaled(data[t1], j1, packing)
        v2, v3 = _scaled(data[t2], j2, packing), _scaled(data[t3], j3, packing)
        c0, c1, c2, c3 = columns[slot[j0]], columns[slot[j1]], columns[slot[j2]], columns[slot[j3]]
        for label in range(scores.shape[0]):
            w0, w1 = _weight(c0[label], packing, scores), _weight(c1[label], packing, scores)
            w2, w3 = _weight(c2[label], packing, scores), _weight(c3[label], packing, scores)
            scores[label] += (v0 * w0 + v1 * w1) + (v2 * w2 + v3 * w3)
        q += 4
    while q < places.shape[0]:
        j0 = indices[places[q]]
        v0 = _scaled(data[places[q]], j0, packing)
        c0 = columns[slot[j0]]
        for label in range(scores.shape[0]):
            scores[label] += v0 * _weight(c0[label], packing, scores)
        q += 1


@inlined
def _scaled(value, j, packing):
    """Return a value of X, times the scale of its feature where weights are codes."""
    if packing is None:  # numba compiles one of the branches
        return value
    return value * packing[1][j]


@inlined
def _weight(entry, packing, scores):
    """Return the weight that an entry of a column is, or represents."""
    if packing is None:
        return entry
    return weight_of_column(entry, scores)
