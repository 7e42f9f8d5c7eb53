"""Label weights by feature in a quarter of the memory: a byte each, in packed posting lists.

``kernels/prediction/packed_lists`` says what a code means, and how lists are packed.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.data import read_only
from sklearn_xc._state.schema import declares
from sklearn_xc._weights.by_feature import (
    arrange_by_label,
    assign_tiers,
    split_by_feature,
    work_of,
)
from sklearn_xc._weights.kernels.packed_lists import (
    LARGEST_CODE,
    MOST_BITS,
    PADDING,
    choose_widths,
    lead_outside,
    pack_lists,
    quantise_weights,
    unpack_lists,
)
from sklearn_xc._weights.kernels.row_scores import N_TIERS
from sklearn_xc.exceptions import SavedModelError

#: Scales are normal numbers, so that to multiply by them is exact.
_LEAST_EXPONENT = {"f4": -126, "f8": -1022}


@dataclass(frozen=True)
class CompactArrays:
    """Compact weights as they are kept in files and pickles.

    Attributes
    ----------
    packed : ndarray of uint8
        Posting lists, one after the other.
    columns : ndarray of int8 of shape (n_columns, n_padded), C-ordered
        Codes of all labels, in the order of the features that have a column.
    counts : ndarray of int32 of shape (n_features,)
        Postings of each list.
    widths : ndarray of uint8 of shape (n_features,)
        Bits of a distance.
    exponents : ndarray of int16 of shape (n_features,)
        Scales are two to the power of these.
    tier : ndarray of uint8 of shape (n_features,)
        As of ``WeightsByFeature``.
    highest, lowest : ndarray of int8 of shape (n_features,)
        Codes of the largest and the smallest weight over all labels, zeros included.
    """

    packed: Any
    columns: Any
    counts: np.ndarray
    widths: np.ndarray
    exponents: np.ndarray
    tier: np.ndarray
    highest: np.ndarray
    lowest: np.ndarray


class CompactWeights:
    """Compact weights, as scoring reads them.

    Parameters
    ----------
    arrays : CompactArrays
        Of ndarray.
    n_labels : int
        Labels.
    dtype : dtype
        Of the weights that the codes stand for.

    Attributes
    ----------
    slot, tier, work, highest, lowest : ndarray
        As of ``WeightsByFeature``.
    columns : ndarray of int8 of shape (n_columns, n_padded)
        Codes.
    begins : ndarray of int64 of shape (n_features + 1,)
        Where lists begin.
    """

    def __init__(self, arrays: CompactArrays, n_labels: int, dtype: np.dtype) -> None:
        self._held = CompactArrays(
            **{field.name: read_only(getattr(arrays, field.name)) for field in fields(arrays)}
        )
        a = self._held
        self.tier, self.columns = a.tier, a.columns
        has_column = a.tier >= N_TIERS
        slot = np.where(has_column, np.cumsum(has_column) - 1, -1).astype(np.int32)
        n, width = a.counts.astype(np.int64), a.widths.astype(np.int64)
        self.begins = read_only(np.concatenate(([0], np.cumsum(n + (n * width + 7) // 8))))
        self.slot, self.work = read_only(slot), read_only(work_of(a.counts, slot, n_labels))
        self._scale = read_only(np.ldexp(np.ones(len(slot), dtype), a.exponents))
        codes = np.arange(256, dtype=np.uint8).view(np.int8).astype(dtype)
        self._weight_of_code = read_only(codes * np.abs(codes))
        self.highest, self.lowest = (
            read_only(self._weight_of_code[bound.view(np.uint8)] * self._scale)
            for bound in (a.highest, a.lowest)
        )

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arguments that the scoring kernels share."""
        packing = self._held.widths, self._scale, self._weight_of_code
        lists = self.begins, self._held.counts, self._held.packed
        return *lists, self.slot, self.columns, self.tier, packing

    def columns_of(self, labels: np.ndarray | slice) -> np.ndarray:
        """Return the weights of some labels in the columns, (n_columns, len(labels))."""
        scale = self._scale[self.slot >= 0]
        return self._weight_of_code[self.columns[:, labels].view(np.uint8)] * scale[:, None]

    def lists(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return ``indptr``, ``labels`` and ``values`` of ``WeightsByFeature``."""
        a, n = self._held, int(self._held.counts.sum())
        indptr = np.empty(len(a.counts) + 1, np.int64)
        labels, codes = np.empty(n, np.int32), np.empty(n, np.int8)
        unpack_lists(self.begins, a.counts, a.widths, a.packed, indptr, labels, codes)
        labels, codes = labels[: indptr[-1]], codes[: indptr[-1]]
        scale = np.repeat(self._scale, np.diff(indptr))
        return indptr, labels, self._weight_of_code[codes.view(np.uint8)] * scale

    def lead_outside(self, features: np.ndarray, n_labels: int) -> bool:
        """Tell whether lists of some features have labels that there are not."""
        a = self._held
        return bool(lead_outside(features, self.begins, a.counts, a.widths, a.packed, n_labels))


@declares()
class HeldCompact:
    """Compact weights in memory or in files.

    Parameters
    ----------
    shape : tuple of int
        (n_labels, n_features).
    dtype : str
        Of the weights that the codes stand for.
    reach : float
        As of :func:`reach_of`.
    index_dtypes : list of str
        Of the indices and indptr of the weights by label.
    arrays : dict of str to ndarray
        Those of ``CompactArrays``.

    Raises
    ------
    SavedModelError
        If they do not fit each other.
    """

    def __init__(
        self, shape: tuple[int, int], dtype: str, reach: float, index_dtypes: list[str],
        arrays: dict[str, Any],
    ) -> None:  # fmt: skip
        self.shape, self.dtype, self.reach = (shape[0], shape[1]), dtype, float(reach)
        self.index_dtypes, self.arrays = index_dtypes, arrays
        found = CompactArrays(**arrays)
        self._refuse_nonsense(found)
        self.by_feature = CompactWeights(found, self.shape[0], np.dtype(dtype))
        if len(found.packed) != self.by_feature.begins[-1] + PADDING:
            raise SavedModelError("the weights: their arrays do not fit each other.")
        if self.by_feature.lead_outside(np.flatnonzero(self.by_feature.slot < 0), self.shape[0]):
            raise SavedModelError(
                f"the weights: packed lists have labels that are not from 0 to {self.shape[0] - 1}."
            )

    def _refuse_nonsense(self, a: CompactArrays) -> None:
        """Raise an error unless the small arrays name places that the long ones have."""
        n_labels, d = self.shape
        dtypes = {
            "packed": "u1", "columns": "i1", "counts": "i4", "widths": "u1", "exponents": "i2",
            "tier": "u1", "highest": "i1", "lowest": "i1",
        }  # fmt: skip
        fits = (
            all(getattr(a, name).dtype == dtype for name, dtype in dtypes.items())
            and all(getattr(a, name).shape == (d,) for name in [*dtypes][2:])
            and np.dtype(self.dtype).str[1:] in _LEAST_EXPONENT
            and bool((a.counts >= 0).all())
            and bool((a.widths <= MOST_BITS).all())
            and bool((a.tier < 2 * N_TIERS).all())
            and not a.counts[a.tier >= N_TIERS].any()
            and a.packed.ndim == 1
            and a.columns.ndim == 2
            and a.columns.flags.c_contiguous
            and len(a.columns) == (a.tier >= N_TIERS).sum()
            and a.columns.shape[1] >= n_labels
        )
        if not fits:
            raise SavedModelError("the weights: their arrays do not fit each other.")

    def by_label(self) -> sp.csr_array:
        """Return the weights, one row per label, in memory."""
        w = self.by_feature
        columns = w.columns_of(slice(None))
        return arrange_by_label(self.shape, w.lists(), w.slot, columns, self.index_dtypes)

    def state(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        names = ("shape", "dtype", "reach", "index_dtypes", "arrays")
        return {name: getattr(self, name) for name in names}


def compact(coef: sp.csr_array) -> HeldCompact:
    """Return weights in compact form.

    Parameters
    ----------
    coef : csr_array of shape (n_labels, n_features)
        Weights, one row per label.

    Returns
    -------
    HeldCompact
        Each weight w of a feature whose largest is m, in magnitude, becomes the nearest of 255
        values: at most ``0.0112 sqrt(|w| m) + 0.00007 m`` from it. Weights that become 0 are left
        out. Time O(nnz), and memory for two further copies of the indices.
    """
    if not coef.has_canonical_format:
        coef = coef.copy()
        coef.sum_duplicates()
    dtype, n_labels = coef.dtype, coef.shape[0]
    magnitude = np.maximum(*(_dense(bound) for bound in (coef.max(axis=0), -coef.min(axis=0))))
    exponents = _exponents(magnitude, dtype)
    scale, codes = np.ldexp(1.0, exponents), np.empty(coef.nnz, np.int8)
    reach = quantise_weights(coef.indptr, coef.indices, coef.data, scale, codes)
    by_feature = sp.csc_array(sp.csr_array((codes, coef.indices, coef.indptr), shape=coef.shape))
    by_feature.eliminate_zeros()
    split = split_by_feature(by_feature)
    counts, widths = np.empty(coef.shape[1], np.int32), np.empty(coef.shape[1], np.uint8)
    choose_widths(split.indptr, split.labels, counts, widths)
    highest, lowest = (
        (bound.astype(dtype) * np.abs(bound.astype(dtype)) * scale).astype(dtype)
        for bound in (split.highest, split.lowest)
    )
    work = work_of(split.counts, split.slot, n_labels)
    n, width = counts.astype(np.int64), widths.astype(np.int64)
    begins = np.concatenate(([0], np.cumsum(n + (n * width + 7) // 8)))
    packed = np.zeros(begins[-1] + PADDING, np.uint8)
    pack_lists(split.indptr, split.labels, split.values, begins, counts, widths, packed)
    arrays = CompactArrays(
        packed, split.columns, counts, widths, exponents.astype(np.int16),
        assign_tiers(highest, lowest, work, split.slot >= 0), split.highest, split.lowest,
    )  # fmt: skip
    index_dtypes = [coef.indices.dtype.str, coef.indptr.dtype.str]
    return HeldCompact(coef.shape, dtype.str, float(reach), index_dtypes, vars(arrays))


def _dense(bound: Any) -> np.ndarray:
    return np.asarray(bound.toarray(), np.float64).ravel()


def _exponents(magnitude: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return of each feature the least exponent whose scale reaches its largest magnitude."""
    mantissa, exponent = np.frexp(magnitude / LARGEST_CODE**2)
    least = np.where(mantissa > 0.5, exponent, exponent - 1)  # of a power of two it is less by one
    return np.maximum(least, _LEAST_EXPONENT[dtype.str[1:]])
