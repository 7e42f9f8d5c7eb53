"""Label weights in the layout that scoring reads: by feature, in two kinds."""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.data import read_only
from sklearn_xc._parallel.spill import maker_beside
from sklearn_xc._state.schema import Array, Holds, Number, Record, Shape, Tested, declares
from sklearn_xc._weights.kernels.row_scores import N_TIERS
from sklearn_xc._weights.transposition import is_canonical, pieces, transposed

#: A feature with weights on at least this share of the labels is kept as a whole column. A column
#: costs about as much as a posting list on an eighth of the labels; up to a quarter the zeros would
#: take more memory than they save time.
COLUMN_SHARE = 0.25
#: Work of one label of a column, in postings of a list.
COLUMN_WORK = 0.125
#: With fewer labels there are no columns: they would be mostly padding.
COLUMN_MIN_LABELS = 256
#: Columns are padded to a multiple of this, at least what a vectorised loop takes at once.
_PADDING = 64


@declares(
    indptr=Array("int64", lambda w: len(w.slot) + 1, least=0),
    labels=Array("int32", "postings", below="n_labels"),
    values=Array("real", "postings"),
    slot=Array("int32", "features", least=-1, below=lambda w: len(w.columns)),
    columns=Array("real", None, None),
    tier=Array("uint8", "features", below=2 * N_TIERS),
    work=Array("float64", "features", least=0),
    highest=Array("real", "features"),
    lowest=Array("real", "features"),
    _postings_fit=Holds("as many postings as the features have"),
    _tiers_fit=Holds("a column for the features of those tiers"),
)
@dataclass(frozen=True)
class WeightsByFeature:
    """Weights by feature: posting lists of labels, or whole columns where they are on many labels.

    Attributes
    ----------
    indptr : ndarray of int64 of shape (n_features + 1,)
    labels : ndarray of int32
        Labels of each posting list, rising.
    values : ndarray of float
        Their weights.
    slot : ndarray of int32 of shape (n_features,)
        The column of a feature, or -1 for a posting list.
    columns : ndarray of float of shape (n_columns, n_padded), C-ordered
        Weights of all labels; n_padded is n_labels rounded up to a multiple of 64. At most five
        values for each weight that is not zero.
    tier : ndarray of uint8 of shape (n_features,)
        The smaller, the earlier in a row's order: posting lists from 0, columns from 16, within
        each kind by falling distance between the largest and the smallest weight per unit of work.
    work : ndarray of float64 of shape (n_features,)
        Postings; what a column costs, in postings.
    highest, lowest : ndarray of float of shape (n_features,)
        Largest and smallest weight over all labels, zeros included.
    """

    indptr: np.ndarray
    labels: np.ndarray
    values: np.ndarray
    slot: np.ndarray
    columns: np.ndarray
    tier: np.ndarray
    work: np.ndarray
    highest: np.ndarray
    lowest: np.ndarray

    def __post_init__(self) -> None:
        for name, array in vars(self).items():
            object.__setattr__(self, name, read_only(array))

    @property
    def _postings_fit(self) -> bool:
        ends = self.indptr
        return (
            int(ends[0]) == 0
            and int(ends[-1]) == len(self.labels)
            and bool((ends[1:] >= ends[:-1]).all())
        )

    @property
    def _tiers_fit(self) -> bool:
        return bool(((self.tier >= N_TIERS) == (self.slot >= 0)).all())

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arguments that the scoring kernels share."""
        return self.indptr, self.labels, self.values, self.slot, self.columns, self.tier, None

    def columns_of(self, labels: np.ndarray) -> np.ndarray:
        """Return the weights of some labels in the columns, (n_columns, len(labels))."""
        return self.columns[:, labels]


@dataclass(frozen=True)
class Split:
    """Values by feature, in posting lists and columns as ``WeightsByFeature`` has them.

    Attributes
    ----------
    indptr, labels, values, slot, columns, highest, lowest : ndarray
        As of ``WeightsByFeature``, but for the dtype of values, any number's.
    counts : ndarray of int64 of shape (n_features,)
        Postings of each list.
    """

    indptr: np.ndarray
    labels: np.ndarray
    values: np.ndarray
    slot: np.ndarray
    columns: np.ndarray
    highest: np.ndarray
    lowest: np.ndarray
    counts: np.ndarray


def split_by_feature(by_feature: Any) -> Split:
    """Return values in posting lists, and in columns where a feature has many.

    Parameters
    ----------
    by_feature : csc_array of shape (n_labels, n_features)
        In canonical format.
    """
    n_labels, n_features = by_feature.shape
    counts = np.diff(by_feature.indptr)
    enough = COLUMN_SHARE * n_labels if n_labels >= COLUMN_MIN_LABELS else np.inf
    chosen = np.flatnonzero(counts >= enough)
    slot = np.full(n_features, -1, np.int32)
    slot[chosen] = np.arange(len(chosen))
    empty, width = maker_beside(by_feature.data), -(-n_labels // _PADDING) * _PADDING
    columns = empty(len(chosen) * width, by_feature.dtype).reshape(len(chosen), width)
    columns[...] = 0
    for row, j in enumerate(chosen):
        kept = slice(by_feature.indptr[j], by_feature.indptr[j + 1])
        columns[row, by_feature.indices[kept]] = by_feature.data[kept]
    lengths = np.where(slot < 0, counts, 0)
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    labels, values = by_feature.indices.astype(np.int32, copy=False), by_feature.data
    if len(chosen):  # else, as of many labels, they are taken as they are, without a copy
        labels, values = empty(indptr[-1], np.int32), empty(indptr[-1], values.dtype)
        for first, stop in itertools.pairwise([-1, *chosen, n_features]):
            kept = slice(by_feature.indptr[first + 1], by_feature.indptr[stop])
            place = slice(indptr[first + 1], indptr[stop])
            labels[place], values[place] = by_feature.indices[kept], by_feature.data[kept]
    highest, lowest = (_bounds(by_feature, counts, of) for of in (np.maximum, np.minimum))
    return Split(
        indptr=indptr, labels=labels, values=values, slot=slot, columns=columns,
        highest=highest, lowest=lowest, counts=lengths,
    )  # fmt: skip


def _bounds(by_feature: Any, counts: np.ndarray, larger: np.ufunc) -> np.ndarray:
    """Return the largest weight of each feature, or the smallest, zeros included."""
    found = np.zeros(len(counts), by_feature.dtype)
    own = np.flatnonzero(counts)
    if len(own):
        found[own] = larger.reduceat(by_feature.data, by_feature.indptr[own])
    has_zeros = counts < by_feature.shape[0]
    found[has_zeros] = larger(found[has_zeros], 0)
    return found


def work_of(counts: np.ndarray, slot: np.ndarray, n_labels: int) -> np.ndarray:
    """Return the work of each feature, in postings."""
    return np.where(slot < 0, counts, COLUMN_WORK * n_labels)


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
    split = split_by_feature(transposed(coef))
    work = work_of(split.counts, split.slot, coef.shape[0])
    return WeightsByFeature(
        indptr=split.indptr,
        labels=split.labels,
        values=split.values,
        slot=split.slot,
        columns=split.columns,
        tier=assign_tiers(split.highest, split.lowest, work, split.slot >= 0),
        work=work,
        highest=split.highest,
        lowest=split.lowest,
    )


def arrange_by_label(
    shape: tuple[int, int],
    lists: tuple[np.ndarray, np.ndarray, np.ndarray],
    slot: np.ndarray,
    columns: np.ndarray,
    index_dtypes: list[str],
) -> sp.csr_array:
    """Return weights by feature as ``arrange_by_feature`` took them.

    Parameters
    ----------
    shape : tuple of int
        (n_labels, n_features).
    lists : tuple of ndarray
        ``indptr``, ``labels`` and ``values`` of ``WeightsByFeature``.
    slot, columns : ndarray
        As of ``WeightsByFeature``.
    index_dtypes : list of str
        Of the indices and indptr of the result.
    """
    indptr, labels, values = lists
    if len(labels) <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    found = sp.csc_array((values, labels, indptr), shape=shape).tocsr()
    own = np.flatnonzero(slot >= 0)
    if len(own):
        dense = sp.csr_array(columns[slot[own], : shape[0]].T)
        arrays = dense.data, own[dense.indices], dense.indptr
        found = found + sp.csr_array(arrays, shape=shape)
    coef = sp.csr_array(shape, dtype=values.dtype)
    of_indices, of_indptr = index_dtypes
    coef.data = found.data
    coef.indices = found.indices.astype(of_indices, copy=False)
    coef.indptr = found.indptr.astype(of_indptr, copy=False)
    return coef


def only_labels(weights: Any, coef: Any, labels: np.ndarray) -> WeightsByFeature:
    """Return the weights of some labels, arranged so that their scores keep their bits.

    Parameters
    ----------
    weights : WeightsByFeature or CompactWeights
        Of all labels.
    coef : csr_array of shape (n_labels, n_features)
        The same weights.
    labels : ndarray of int64
        Distinct; the labels of the result, in this order.

    Returns
    -------
    WeightsByFeature
        Features have columns, and are taken in the order, that they have among all labels. In time
        O(n_features) and that of the weights of these labels.
    """
    own = sp.csc_array(coef[labels])
    own.sum_duplicates()
    counts = np.diff(own.indptr)
    in_lists = np.repeat(weights.slot < 0, counts)
    lengths = np.where(weights.slot < 0, counts, 0)
    columns = np.zeros((len(weights.columns), -(-len(labels) // _PADDING) * _PADDING), coef.dtype)
    columns[:, : len(labels)] = weights.columns_of(labels)
    return WeightsByFeature(
        indptr=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        labels=own.indices[in_lists].astype(np.int32),
        values=own.data[in_lists],
        slot=weights.slot,
        columns=columns,
        tier=weights.tier,
        work=work_of(lengths, weights.slot, len(labels)),
        highest=weights.highest,
        lowest=weights.lowest,
    )


def assign_tiers(
    highest: np.ndarray, lowest: np.ndarray, work: np.ndarray, has_column: np.ndarray
) -> np.ndarray:
    """Return tiers by falling impact, of equal work within posting lists and within columns."""
    impact = (highest - lowest) / np.maximum(work, 1)
    tier = np.zeros(len(impact), np.uint8)
    for first_tier, mask in ((0, ~has_column), (N_TIERS, has_column)):
        kind = np.flatnonzero(mask)
        kind = kind[np.argsort(-impact[kind], kind="stable")]
        before = np.cumsum(work[kind]) - work[kind]
        share = before / max(work[kind].sum(), 1)
        tier[kind] = first_tier + np.minimum(N_TIERS * share, N_TIERS - 1).astype(np.uint8)
    return tier


@declares(
    shape=Shape("n_labels", "n_features"),
    reach=Number(least=0),
    index_dtypes=Tested(
        "two dtypes", lambda names, require: {*names} <= {"<i4", "<i8"} and len(names) == 2
    ),
    by_feature=Record("WeightsByFeature", features="n_features", n_labels="n_labels"),
    _columns_fit=Holds("a column as long as the labels are many"),
)
@dataclass
class StoredWeights:
    """Weights by feature, usually memory-mapped, from which those by label can be made.

    Attributes
    ----------
    shape : tuple of int
        (n_labels, n_features).
    reach : float
        As of :func:`reach_of`.
    index_dtypes : list of str
        Of the indices and indptr of the weights by label.
    by_feature : WeightsByFeature
    """

    shape: tuple[int, int]
    reach: float
    index_dtypes: list[str]
    by_feature: WeightsByFeature

    @property
    def _columns_fit(self) -> bool:
        return self.by_feature.columns.shape[1] >= self.shape[0]

    @property
    def dtype(self) -> np.dtype:
        """Of the weights."""
        return self.by_feature.values.dtype

    def by_label(self) -> sp.csr_array:
        """Return the weights, one row per label, in memory."""
        w = self.by_feature
        lists = w.indptr, w.labels, w.values
        return arrange_by_label(self.shape, lists, w.slot, w.columns, self.index_dtypes)


def as_stored(coef: sp.csr_array) -> StoredWeights | None:
    """Return the form in files of weights by label.

    None for weights with explicit zeros or in disorder, which would not come back unchanged.
    """
    if not isinstance(coef, sp.csr_array) or not is_canonical(coef) or not coef.data.all():
        return None
    shape, dtypes = (
        (int(coef.shape[0]), int(coef.shape[1])),
        (coef.indices.dtype, coef.indptr.dtype),
    )
    return StoredWeights(
        shape, reach_of(coef), [one.str for one in dtypes], arrange_by_feature(coef)
    )


def reach_of(coef: sp.csr_array) -> float:
    """Return the largest sum of magnitudes of a label's weights."""
    sums = (abs(piece).sum(axis=1, dtype=np.float64) for piece in pieces(coef))
    return max((float(of_piece.max()) for of_piece in sums), default=0.0)
