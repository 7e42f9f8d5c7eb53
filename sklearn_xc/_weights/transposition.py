"""Weights of labels by feature: in memory, or from files to files, of any size."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.kernels.csr_order import copy_rows, count_features, transpose_rows
from sklearn_xc._parallel.spill import is_in_file, maker_beside

#: Weights are sorted so many at a time, and then merged so many at a time.
WEIGHTS_AT_A_TIME = 2**22
#: So many are copied at a time.
_COPIED_AT_A_TIME = 2**18


def transposed(coef: Any) -> Any:
    """Return weights by feature, the labels of each rising.

    Parameters
    ----------
    coef : sparse array of shape (n_labels, n_features)
        If it is in unnamed files, as where a fit's ``max_memory`` left no room, so is the result:
        nothing as large as the weights is ever in memory.

    Returns
    -------
    csc_array of shape (n_labels, n_features)
        In canonical format.
    """
    if isinstance(coef, sp.csr_array) and is_in_file(coef.data) and is_canonical(coef):
        return _from_file_to_file(coef)
    by_feature = sp.csc_array(coef)
    by_feature.sum_duplicates()
    return by_feature


def cut(indptr: np.ndarray, at_a_time: int) -> list[int]:
    """Return where pieces of rows begin, each of not much over so many entries.

    The last item is the number of rows.
    """
    at = np.searchsorted(indptr, np.arange(at_a_time, indptr[-1], at_a_time))
    return np.unique([0, *at, len(indptr) - 1]).tolist()


def pieces(coef: sp.csr_array) -> Iterator[sp.csr_array]:
    """Yield weights some labels at a time, without copies."""
    for first, stop in itertools.pairwise(cut(coef.indptr, _COPIED_AT_A_TIME)):
        piece = sp.csr_array((stop - first, coef.shape[1]), dtype=coef.dtype)
        begin, end = coef.indptr[first], coef.indptr[stop]
        piece.data, piece.indices = coef.data[begin:end], coef.indices[begin:end]
        piece.indptr = (coef.indptr[first : stop + 1] - begin).astype(coef.indices.dtype)
        yield piece


def is_canonical(coef: sp.csr_array) -> bool:
    """Tell whether the features of each label rise."""
    return all(piece.has_canonical_format for piece in pieces(coef))


def _from_file_to_file(coef: sp.csr_array) -> sp.csc_array:
    """Sort runs of labels by feature, each by itself, then merge the runs."""
    (n_labels, d), nnz, empty = coef.shape, len(coef.data), maker_beside(coef.data)
    edges = cut(coef.indptr, WEIGHTS_AT_A_TIME)
    runs = empty(nnz, np.int32), empty(nnz, coef.dtype)
    ends, sizes = empty((len(edges) - 1) * (d + 1), np.int64), np.zeros(d, np.int64)
    ends = ends.reshape(-1, d + 1)
    for end, (first, stop) in zip(ends, itertools.pairwise(edges), strict=True):
        _sort_run(coef, first, stop, end, *runs)
        sizes += np.diff(end)
    indptr = np.concatenate(([0], np.cumsum(sizes)))
    labels, values = empty(nnz, np.int32), empty(nnz, coef.dtype)
    for first, stop in itertools.pairwise(cut(indptr, WEIGHTS_AT_A_TIME)):
        features, places = np.arange(stop - first), indptr[first : stop + 1].copy()
        for end in ends:  # of the earlier labels first
            own = end[first : stop + 1]
            copy_rows(own, *runs, features, features, places, labels, values)
            places[:-1] += np.diff(own)
    found = sp.csc_array((n_labels, d), dtype=coef.dtype)
    # A constructor would make indices as wide as indptr.
    found.data, found.indices, found.indptr = values, labels, indptr
    return found


def _sort_run(
    coef: sp.csr_array, first: int, stop: int, ends: np.ndarray, labels: np.ndarray,
    values: np.ndarray,
) -> None:  # fmt: skip
    """Write the weights of some labels by feature, to where they are by label.

    `ends` becomes where each feature's begin, and the last ends.
    """
    indptr = coef.indptr[first : stop + 1].astype(np.int64)
    begin, end = indptr[0], indptr[-1]
    counts = np.zeros(len(ends) - 1, np.int64)
    count_features(coef.indices[begin:end], counts)
    ends[0], ends[1:] = begin, begin + np.cumsum(counts)
    transpose_rows(indptr, coef.indices, coef.data, ends[:-1].copy(), labels, values)
    labels[begin:end] += first
