"""The instances as training reads them fastest: in another order, and rounded to int16."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sklearn_xc._data import CsrRows, DenseRows, read_only
from sklearn_xc._row_pieces import row_pieces
from sklearn_xc.kernels.one_vs_all.screen import round_rows
from sklearn_xc.kernels.rows.csr_order import arrange_rows, count_features, transpose_rows

#: Makes an array of a length and a dtype, in memory or elsewhere.
Empty = Callable[..., np.ndarray]


class Arrangement(NamedTuple):
    """Instances in another order.

    Attributes
    ----------
    instances : CsrRows or DenseRows of shape (n, n_features)
        In the new order.
    order : ndarray of int64 of shape (n,)
        The old number of each instance.
    features : ndarray of int32 of shape (n_features,)
        The old number of each feature.
    """

    instances: CsrRows | DenseRows
    order: np.ndarray
    features: np.ndarray


def arranged(instances: CsrRows | DenseRows, empty: Empty = np.empty) -> Arrangement:
    """Return the same instances in the order in which training reads them fastest.

    Features by falling frequency, so that what is read most lies close together; instances by
    rising number of non-zeros, so that a processor foresees the end of each. Dense ones stay as
    they are: no order is faster. `empty` makes the arrays with a number for each entry.
    """
    n, d = instances.shape
    if isinstance(instances, DenseRows):
        return Arrangement(instances, np.arange(n), np.arange(d, dtype=np.int32))
    counts = _feature_counts(instances)
    features = np.argsort(-counts, kind="stable").astype(np.int32)
    number = np.empty_like(features)
    number[features] = np.arange(len(features), dtype=np.int32)
    lengths = np.diff(instances.indptr)
    order = np.argsort(lengths, kind="stable")
    indptr = np.concatenate(([0], np.cumsum(lengths[order]))).astype(np.int64)
    nnz = len(instances.data)
    indices, data = empty(nnz, np.int32), empty(nnz, instances.dtype)
    arrange_rows(*instances.arrays, order, read_only(number), read_only(indptr), indices, data)
    rows = CsrRows(indptr, indices, data, instances.shape)
    return Arrangement(rows, order, read_only(features))


def rounded(instances: CsrRows, empty: Empty = np.empty) -> tuple[np.ndarray, ...]:
    """Return the rows in int16, as ``screen_rows`` reads them; 2 bytes for each non-zero."""
    n = instances.shape[0]
    values, exponents = empty(len(instances.data), np.int16), np.empty(n, np.int16)
    reach = np.empty(n, np.int32)
    round_rows(instances.indptr, instances.data, values, exponents, reach)
    found = read_only(values), read_only(exponents), read_only(reach)
    return instances.indptr, instances.indices, *found


def postings(
    instances: CsrRows, empty: Empty = np.empty
) -> tuple[tuple[np.ndarray, ...], float] | None:
    """Return X by feature, ``(indptr, rows, values)``, and the largest norm of a row.

    None where X has negative entries: what a feature adds to a score has no bound then.
    """
    indptr, indices, data = instances.arrays
    if len(data) and data.min() < 0:
        return None
    by_feature = np.concatenate(([0], np.cumsum(_feature_counts(instances))))
    rows, values = empty(len(data), np.int32), empty(len(data), data.dtype)
    transpose_rows(indptr, indices, data, by_feature[:-1].copy(), rows, values)
    largest = 0.0
    for first, last in row_pieces(indptr):
        start = indptr[first]
        squares = np.square(data[start : indptr[last]], dtype=np.float64)
        sums = np.concatenate(([0.0], np.cumsum(squares)))
        of_row = np.diff(sums[indptr[first : last + 1] - start]) * (1.0 + 1e-9) + 1e-12 * sums[-1]
        largest = max(largest, float(of_row.max(initial=0.0)))
    return (read_only(by_feature), read_only(rows), read_only(values)), float(np.sqrt(largest))


def _feature_counts(instances: CsrRows) -> np.ndarray:
    """Return the entries of each feature, int64 (d,)."""
    counts = np.zeros(instances.shape[1], np.int64)
    count_features(instances.indices, counts)
    return counts
