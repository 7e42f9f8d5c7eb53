"""Label weights by feature in a quarter of the memory: a byte each, in packed posting lists.

``kernels/packed_lists`` describes the codes and how lists are packed.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.data import read_only
from sklearn_xc._state.schema import Array, Dtype, Holds, declares
from sklearn_xc._weights.by_feature import ByFeature, split_columns
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

#: Scales are normal numbers, so that multiplying by them is exact.
_LEAST_EXPONENT = {"f4": -126, "f8": -1022}
_CODES = np.arange(256, dtype=np.uint8).view(np.int8)


@declares(
    columns=Array("int8", None, None),
    dtype=Dtype(),
    packed=Array("uint8", None),
    counts=Array("int32", "features", least=0),
    widths=Array("uint8", "features", below=MOST_BITS + 1),
    exponents=Array("int16", "features"),
    _columns_fit=Holds("a column as long as the number of labels"),
    _lists_fit=Holds("packed lists of these labels"),
)
@dataclass(frozen=True, eq=False)
class CompactWeights(ByFeature):
    """Weights by feature in bytes; columns hold codes.

    Attributes
    ----------
    dtype : dtype
        Of the weights that the codes represent.
    packed : ndarray of uint8
        Posting lists, one after the other.
    counts : ndarray of int32 of shape (n_features,)
        Postings of each list.
    widths : ndarray of uint8 of shape (n_features,)
        Bits of a distance.
    exponents : ndarray of int16 of shape (n_features,)
        Scales are two to the power of these.
    """

    dtype: np.dtype
    packed: np.ndarray
    counts: np.ndarray
    widths: np.ndarray
    exponents: np.ndarray

    @cached_property
    def _begins(self) -> np.ndarray:
        return read_only(_begins(self.counts, self.widths))

    @cached_property
    def _scale(self) -> np.ndarray:
        return read_only(np.ldexp(np.ones(len(self.slot), self.dtype), self.exponents))

    @cached_property
    def _weight_of_code(self) -> np.ndarray:
        codes = _CODES.astype(self.dtype)
        return read_only(codes * np.abs(codes))

    @property
    def _lists_fit(self) -> bool:
        if self.counts[self.slot >= 0].any() or len(self.packed) != self._begins[-1] + PADDING:
            return False
        features = np.flatnonzero(self.slot < 0)
        lists = self._begins, self.counts, self.widths, self.packed
        return not lead_outside(features, *map(read_only, lists), self.shape[0])

    @cached_property
    def arrays(self) -> tuple[Any, ...]:
        """Weights as the scoring kernels take them."""
        packing = read_only(self.widths), self._scale, self._weight_of_code
        arrays = self._begins, self.counts, self.packed, self.slot, self.columns
        return *map(read_only, arrays), packing

    def columns_of(self, labels: np.ndarray | slice) -> np.ndarray:
        """Return the weights of some labels in the columns, (n_columns, len(labels))."""
        scale = self._scale[self.slot >= 0]
        return self._weight_of_code[self.columns[:, labels].view(np.uint8)] * scale[:, None]

    def lists(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the posting lists: ``indptr``, ``labels`` and ``values``."""
        n = int(self.counts.sum())
        indptr = np.empty(len(self.counts) + 1, np.int64)
        labels, codes = np.empty(n, np.int32), np.empty(n, np.int8)
        lists = self._begins, self.counts, self.widths, self.packed
        unpack_lists(*map(read_only, lists), indptr, labels, codes)
        labels, codes = labels[: indptr[-1]], codes[: indptr[-1]]
        scale = np.repeat(self._scale, np.diff(indptr))
        return indptr, labels, self._weight_of_code[codes.view(np.uint8)] * scale


def compact(coef: sp.csr_array) -> CompactWeights:
    """Return weights in compact form.

    Parameters
    ----------
    coef : csr_array of shape (n_labels, n_features)
        Weights, one row per label.

    Returns
    -------
    CompactWeights
        Each weight w of a feature whose largest is m, in magnitude, becomes the nearest of 255
        values: at most ``0.0112 sqrt(|w| m) + 0.00007 m`` from it. Weights that become 0 are left
        out. Time O(nnz), and memory for two further copies of the indices.
    """
    if not coef.has_canonical_format:
        coef = coef.copy()
        coef.sum_duplicates()
    exponents = _exponents(abs(coef).max(axis=0).toarray().ravel().astype(np.float64), coef.dtype)
    codes = np.empty(coef.nnz, np.int8)
    of_labels = coef.indptr, coef.indices, coef.data
    reach = quantise_weights(*of_labels, np.ldexp(1.0, exponents), codes)
    by_feature = sp.csc_array(sp.csr_array((codes, *of_labels[1::-1]), shape=coef.shape))
    by_feature.eliminate_zeros()
    slot, columns, indptr, labels, values = split_columns(by_feature)
    counts, widths = np.empty(coef.shape[1], np.int32), np.empty(coef.shape[1], np.uint8)
    choose_widths(indptr, labels, counts, widths)
    begins = _begins(counts, widths)
    packed = np.zeros(begins[-1] + PADDING, np.uint8)
    pack_lists(indptr, labels, values, begins, counts, widths, packed)
    shape = int(coef.shape[0]), int(coef.shape[1])
    lists = packed, counts, widths, exponents.astype(np.int16)
    return CompactWeights(shape, float(reach), slot, columns, coef.dtype, *lists)


def _begins(counts: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Return where packed lists begin, and the last ends."""
    n = counts.astype(np.int64)
    width = widths.astype(np.int64)
    return np.concatenate(([0], np.cumsum(n + (n * width + 7) // 8)))


def _exponents(magnitude: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return for each feature the least exponent whose scale reaches its largest magnitude."""
    mantissa, exponent = np.frexp(magnitude / LARGEST_CODE**2)
    least = np.where(mantissa > 0.5, exponent, exponent - 1)  # of a power of two it is less by one
    return np.maximum(least, _LEAST_EXPONENT[dtype.str[1:]])
