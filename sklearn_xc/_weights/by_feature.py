"""Label weights by feature, in the layout that scoring reads and that is saved."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.data import read_only
from sklearn_xc._input.kernels.csr_rows import copy_rows, count_features, transpose_rows
from sklearn_xc._parallel.memory import allocator_like, is_in_file
from sklearn_xc._state.schema import Array, Holds, Number, Shape, declares

#: A feature with weights on at least this share of the labels is stored as a dense column. A column
#: costs about as much as a posting list on an eighth of the labels; up to a quarter the zeros would
#: take more memory than they save time.
COLUMN_SHARE = 0.25
#: Work for one label of a column, in postings of a list.
COLUMN_WORK = 0.125
#: With fewer labels there are no columns: they would be mostly padding.
COLUMN_MIN_LABELS = 256
#: Columns are padded to a multiple of this, at least what a vectorised loop takes at once.
_PADDING = 64
#: Number of weights that are sorted, and then merged, at a time.
CHUNK_WEIGHTS = 2**22
#: Number of weights that are copied at a time.
_CHUNK_COPIED = 2**18


@declares(
    shape=Shape("labels", "features"),
    reach=Number(least=0),
    slot=Array("int32", "features", least=-1, below=lambda w: len(w.columns)),
)
@dataclass(frozen=True, eq=False)
class ByFeature:
    """Weights by feature: posting lists of labels, or dense columns for frequent features.

    A subclass has ``counts``, the postings of each feature, ``lists`` and ``columns_of``.

    Attributes
    ----------
    shape : tuple of int
        (n_labels, n_features).
    reach : float
        Largest sum of magnitudes of a label's weights, a bound on scores.
    slot : ndarray of int32 of shape (n_features,)
        Column of each feature, or -1 for a posting list.
    columns : ndarray of shape (n_columns, n_padded), C-ordered
        Weights of all labels; n_padded is n_labels rounded up to a multiple of 64.
    """

    shape: tuple[int, int]
    reach: float
    slot: np.ndarray
    columns: np.ndarray

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def work(self) -> np.ndarray:
        """Work of each feature in scoring, in postings."""
        return np.where(self.slot < 0, self.counts, COLUMN_WORK * self.shape[0])

    @property
    def _columns_fit(self) -> bool:
        return self.columns.shape[1] >= self.shape[0]

    def by_label(self) -> sp.csr_array:
        """Return the weights, one row per label, in memory."""
        indptr, labels, values = self.lists()
        if len(labels) <= np.iinfo(np.int32).max:
            indptr = indptr.astype(np.int32)
        coef = sp.csc_array((values, labels, indptr), shape=self.shape).tocsr()
        own = np.flatnonzero(self.slot >= 0)
        if len(own):
            dense = sp.csr_array(self.columns_of(slice(self.shape[0]))[self.slot[own]].T)
            arrays = dense.data, own[dense.indices], dense.indptr
            coef = coef + sp.csr_array(arrays, shape=self.shape)
        return coef


@declares(
    indptr=Array("int64", lambda w: len(w.slot) + 1, least=0),
    labels=Array("int32", "postings", below="labels"),
    values=Array("real", "postings"),
    columns=Array("real", None, None),
    _columns_fit=Holds("a column as long as the number of labels"),
    _lists_fit=Holds("as many postings as the features have"),
)
@dataclass(frozen=True, eq=False)
class WeightsByFeature(ByFeature):
    """Weights by feature in floating point.

    Attributes
    ----------
    indptr : ndarray of int64 of shape (n_features + 1,)
    labels : ndarray of int32
        Labels of each posting list, ascending.
    values : ndarray of float
        Their weights.
    """

    indptr: np.ndarray
    labels: np.ndarray
    values: np.ndarray

    @property
    def dtype(self) -> np.dtype:
        """Data type of the weights."""
        return self.values.dtype

    @property
    def counts(self) -> np.ndarray:
        """Postings of each feature."""
        return np.diff(self.indptr)

    @property
    def _lists_fit(self) -> bool:
        ends = self.indptr
        is_whole = int(ends[0]) == 0 and int(ends[-1]) == len(self.labels)
        return is_whole and bool((ends[1:] >= ends[:-1]).all())

    @cached_property
    def arrays(self) -> tuple[Any, ...]:
        """Weights as the scoring kernels take them."""
        arrays = self.indptr, self.labels, self.values, self.slot, self.columns
        return *map(read_only, arrays), None

    def lists(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the posting lists: ``indptr``, ``labels`` and ``values``."""
        return self.indptr, self.labels, self.values

    def columns_of(self, labels: np.ndarray | slice) -> np.ndarray:
        """Return the weights of some labels in the columns, (n_columns, len(labels))."""
        return self.columns[:, labels]


def arrange_by_feature(coef: Any) -> WeightsByFeature:
    """Return label weights by feature.

    Parameters
    ----------
    coef : csr_array of shape (n_labels, n_features)
        Weights, one row per label.

    Returns
    -------
    WeightsByFeature
        In time O(nnz + n_features); in unnamed files if `coef` is.
    """
    shape = int(coef.shape[0]), int(coef.shape[1])
    return WeightsByFeature(shape, reach_of(coef), *split_columns(transposed(coef)))


def split_columns(by_feature: Any) -> tuple[np.ndarray, ...]:
    """Return numbers in dense columns where a feature has many, else in posting lists.

    Parameters
    ----------
    by_feature : csc_array of shape (n_labels, n_features)
        In canonical format.

    Returns
    -------
    slot, columns, indptr, labels, values : ndarray
        As of ``WeightsByFeature``, of the dtype of `by_feature`.
    """
    n_labels, n_features = by_feature.shape
    counts = np.diff(by_feature.indptr)
    enough = COLUMN_SHARE * n_labels if n_labels >= COLUMN_MIN_LABELS else np.inf
    chosen = np.flatnonzero(counts >= enough)
    slot = np.full(n_features, -1, np.int32)
    slot[chosen] = np.arange(len(chosen))
    empty = allocator_like(by_feature.data)
    width = -(-n_labels // _PADDING) * _PADDING
    columns = empty(len(chosen) * width, by_feature.dtype).reshape(len(chosen), width)
    columns[...] = 0
    for row, j in enumerate(chosen):
        own = slice(by_feature.indptr[j], by_feature.indptr[j + 1])
        columns[row, by_feature.indices[own]] = by_feature.data[own]
    indptr = np.concatenate(([0], np.cumsum(np.where(slot < 0, counts, 0)))).astype(np.int64)
    labels = by_feature.indices.astype(np.int32, copy=False)
    values = by_feature.data
    if len(chosen):  # else no copy
        labels, values = empty(indptr[-1], np.int32), empty(indptr[-1], values.dtype)
        for first, stop in itertools.pairwise([-1, *chosen, n_features]):
            own = slice(by_feature.indptr[first + 1], by_feature.indptr[stop])
            place = slice(indptr[first + 1], indptr[stop])
            labels[place], values[place] = by_feature.indices[own], by_feature.data[own]
    return slot, columns, indptr, labels, values


def only_labels(weights: ByFeature, coef: Any, labels: np.ndarray) -> WeightsByFeature:
    """Return the weights of some labels, arranged so that their scores are bitwise the same.

    Parameters
    ----------
    weights : ByFeature
        Of all labels.
    coef : csr_array of shape (n_labels, n_features)
        The same weights.
    labels : ndarray of int64
        Distinct; the labels of the result, in this order.

    Returns
    -------
    WeightsByFeature
        The features that have columns among all labels have columns here. Takes O(n_features) time
        and that of the weights of these labels.
    """
    own = sp.csc_array(coef[labels])
    own.sum_duplicates()
    counts = np.diff(own.indptr)
    in_lists = np.repeat(weights.slot < 0, counts)
    lengths = np.where(weights.slot < 0, counts, 0)
    columns = np.zeros((len(weights.columns), -(-len(labels) // _PADDING) * _PADDING), coef.dtype)
    columns[:, : len(labels)] = weights.columns_of(labels)
    return WeightsByFeature(
        (len(labels), weights.shape[1]),
        weights.reach,
        weights.slot,
        columns,
        np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        own.indices[in_lists].astype(np.int32),
        own.data[in_lists],
    )


def reach_of(coef: sp.csr_array) -> float:
    """Return the largest sum of magnitudes of a label's weights."""
    sums = (abs(piece).sum(axis=1, dtype=np.float64) for piece in pieces(coef))
    return max((float(of_piece.max()) for of_piece in sums), default=0.0)


def transposed(coef: Any) -> Any:
    """Return weights by feature, the labels of each ascending.

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
    """Return where pieces of rows begin, each of not much over `at_a_time` entries.

    The last item is the number of rows.
    """
    at = np.searchsorted(indptr, np.arange(at_a_time, indptr[-1], at_a_time))
    return np.unique([0, *at, len(indptr) - 1]).tolist()


def pieces(coef: sp.csr_array) -> Iterator[sp.csr_array]:
    """Yield weights some labels at a time, without copies."""
    for first, stop in itertools.pairwise(cut(coef.indptr, _CHUNK_COPIED)):
        piece = sp.csr_array((stop - first, coef.shape[1]), dtype=coef.dtype)
        begin, end = coef.indptr[first], coef.indptr[stop]
        piece.data, piece.indices = coef.data[begin:end], coef.indices[begin:end]
        piece.indptr = (coef.indptr[first : stop + 1] - begin).astype(coef.indices.dtype)
        yield piece


def is_canonical(coef: sp.csr_array) -> bool:
    """Return whether the features of each label are sorted."""
    return all(piece.has_canonical_format for piece in pieces(coef))


def _from_file_to_file(coef: sp.csr_array) -> sp.csc_array:
    """Sort runs of labels by feature, each by itself, then merge the runs."""
    (n_labels, d), nnz, empty = coef.shape, len(coef.data), allocator_like(coef.data)
    edges = cut(coef.indptr, CHUNK_WEIGHTS)
    runs = empty(nnz, np.int32), empty(nnz, coef.dtype)
    ends = empty((len(edges) - 1) * (d + 1), np.int64)
    sizes = np.zeros(d, np.int64)
    ends = ends.reshape(-1, d + 1)
    for end, (first, stop) in zip(ends, itertools.pairwise(edges), strict=True):
        _sort_run(coef, first, stop, end, *runs)
        sizes += np.diff(end)
    indptr = np.concatenate(([0], np.cumsum(sizes)))
    labels, values = empty(nnz, np.int32), empty(nnz, coef.dtype)
    for first, stop in itertools.pairwise(cut(indptr, CHUNK_WEIGHTS)):
        features = np.arange(stop - first)
        places = indptr[first : stop + 1].copy()
        for end in ends:  # of the earlier labels first
            own = end[first : stop + 1]
            copy_rows(own, *runs, features, features, places, labels, values)
            places[:-1] += np.diff(own)
    found = sp.csc_array((n_labels, d), dtype=coef.dtype)
    # A constructor would make indices as wide as indptr.
    found.data, found.indices, found.indptr = values, labels, indptr
    return found


def _sort_run(
    coef: sp.csr_array,
    first: int,
    stop: int,
    ends: np.ndarray,
    labels: np.ndarray,
    values: np.ndarray,
) -> None:
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
