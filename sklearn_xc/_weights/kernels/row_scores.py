"""The scores of all labels for one sparse row, from weights that are kept by feature.

Most features have weights on few labels: a posting list of labels and values each. A few are on so
many labels that a whole column of values is read faster, zeros included: 0.1 ns per label, as the
additions are contiguous, against 0.6 to 1 ns per posting (float32, AVX-512).

A row's features are taken in one order, whoever asks, so that a score has the same bits everywhere:
posting lists before columns, and within each kind those first that move scores most for their work.
To sort by value as well would take a tenth of the time of a row of 250 non-zeros; tiers do not.
Columns are padded: the remainder of a vectorised loop may round otherwise than its body, and labels
with the same weights would no longer tie.
"""

import numpy as np

from sklearn_xc._compile.jit import inlined
from sklearn_xc._weights.kernels.packed_lists import add_packed_list, weight_of_column

_ONE = np.uint32(1)


#: Features are put into so many tiers with posting lists, and as many behind them with columns.
N_TIERS = 16


@inlined
def order_row(indptr, indices, i, tier, order, ends):
    """Write in which order the non-zeros of a row are taken, and return the number of lists.

    Parameters
    ----------
    indptr, indices : ndarray of int64 and int32
        Rows of X in CSR form.
    i : int
        The row.
    tier : ndarray of uint8 of shape (n_features,)
        From N_TIERS on the feature has a column. Rising tiers are taken one after the other, and
        a row's order is kept within a tier.
    order : ndarray of int64 of shape (>= n_nonzeros,)
        Positions of the row's entries in X, overwritten.
    ends : ndarray of int64 of shape (2 * N_TIERS + 1,)
        Work space.
    """
    for place in range(ends.shape[0]):
        ends[place] = 0
    for t in range(indptr[i], indptr[i + 1]):
        ends[np.uint32(tier[np.uint32(indices[t])]) + _ONE] += 1
    for place in range(1, ends.shape[0]):
        ends[place] += ends[place - 1]
    n_lists = ends[N_TIERS]
    for t in range(indptr[i], indptr[i + 1]):
        own_tier = np.uint32(tier[np.uint32(indices[t])])
        order[ends[own_tier]] = t
        ends[own_tier] += 1
    return n_lists


@inlined
def add_features(
    indices, data, order, first, last, n_lists, w_indptr, w_labels, w_values, slot, columns,
    packing, scores,
):  # fmt: skip
    """Add features `first` to `last` of a row's order to `scores`, columns four at a time.

    Parameters
    ----------
    indices, data : ndarray of int32 and float
        Of X in CSR form.
    order : ndarray of int64
        As ``order_row`` writes it.
    first, last : int
        The range. Among columns it starts a whole number of fours behind the first, and ends so or
        with the row: other cuts would round otherwise.
    n_lists : int
        How many of the row's features have posting lists.
    w_indptr, w_labels, w_values : ndarray of int64, int32 and float
        Posting lists.
    slot : ndarray of int32 of shape (n_features,)
        The column of a feature, or -1.
    columns : ndarray of shape (n_columns, n_padded), C-ordered
        Weights of all labels on one feature, padded with zeros.
    packing : None, or tuple of ndarray of uint8, float and float
        If weights are compact, of each list the bits of a distance, of each feature its scale, and
        the weight of each code. Then `w_indptr` says where lists begin in `w_values`, which holds
        them packed, `w_labels` how many postings each has, and columns are codes.
    scores : ndarray of shape (n_padded,)
        Added to.
    """
    if packing is None:
        _add_floats(
            indices, data, order, first, last, n_lists, w_indptr, w_labels, w_values, slot, columns,
            scores,
        )  # fmt: skip
    else:
        _add_codes(
            indices, data, order, first, last, n_lists, w_indptr, w_labels, w_values, slot, columns,
            packing, scores,
        )  # fmt: skip


@inlined
def _add_floats(
    indices, data, order, first, last, n_lists, w_indptr, w_labels, w_values, slot, columns, scores
):
    for q in range(first, min(last, n_lists)):
        t = np.uint64(order[q])
        value = data[t]
        j = np.uint32(indices[t])
        for p in range(np.uint64(w_indptr[j]), np.uint64(w_indptr[j + _ONE])):
            scores[np.uint32(w_labels[p])] += value * w_values[p]
    q = max(first, n_lists)
    while q + 4 <= last:
        t0, t1, t2, t3 = order[q], order[q + 1], order[q + 2], order[q + 3]
        v0, v1, v2, v3 = data[t0], data[t1], data[t2], data[t3]
        c0 = columns[slot[indices[t0]]]
        c1 = columns[slot[indices[t1]]]
        c2 = columns[slot[indices[t2]]]
        c3 = columns[slot[indices[t3]]]
        for label in range(scores.shape[0]):
            scores[label] += (v0 * c0[label] + v1 * c1[label]) + (v2 * c2[label] + v3 * c3[label])
        q += 4
    while q < last:
        t0 = order[q]
        v0 = data[t0]
        c0 = columns[slot[indices[t0]]]
        for label in range(scores.shape[0]):
            scores[label] += v0 * c0[label]
        q += 1


@inlined
def _add_codes(
    indices, data, order, first, last, n_lists, begins, counts, packed, slot, columns, packing,
    scores,
):  # fmt: skip
    """Add features as ``_add_floats`` does with the weights that the codes stand for."""
    widths, scale, weight_of_code = packing
    for q in range(first, min(last, n_lists)):
        t = np.uint64(order[q])
        j = np.uint32(indices[t])
        add_packed_list(
            data[t] * scale[j], np.uint64(begins[j]), np.uint64(counts[j]), np.uint64(widths[j]),
            weight_of_code, packed, scores,
        )  # fmt: skip
    q = max(first, n_lists)
    while q + 4 <= last:
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
    while q < last:
        t0 = order[q]
        j0 = indices[t0]
        v0, c0 = data[t0] * scale[j0], columns[slot[j0]]
        for label in range(scores.shape[0]):
            scores[label] += v0 * weight_of_column(c0[label], scores)
        q += 1


@inlined
def is_blank(indptr, indices, i, w_indptr, slot):
    """Tell whether no label has a weight on any feature of row i: nothing is known of it."""
    for t in range(indptr[i], indptr[i + 1]):
        j = np.uint32(indices[t])
        if slot[j] >= 0 or w_indptr[j + _ONE] > w_indptr[j]:
            return False
    return True


@inlined
def longest_row(indptr, first, n_rows):
    """Return the most non-zeros that one of some rows has."""
    longest = 0
    for i in range(first, first + n_rows):
        longest = max(longest, indptr[i + 1] - indptr[i])
    return longest
