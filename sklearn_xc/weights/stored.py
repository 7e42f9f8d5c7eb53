"""Weights by feature in files, of which a part is checked before it is read."""

from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._declared_state import Lengths, check_record
from sklearn_xc.exceptions import SavedModelError
from sklearn_xc.storage.array_files import StoredArray
from sklearn_xc.weights.by_feature import WeightsByFeature, arrange_by_feature, arrange_by_label
from sklearn_xc.weights.transposition import is_canonical, pieces

#: What is long, and checked by part; the rest of `WeightsByFeature` has a number for each feature.
BY_PART = ("labels", "values", "columns")


class StoredWeights:
    """Weights in the arrangement that scoring reads, in files.

    Parameters
    ----------
    shape : tuple of int
        (n_labels, n_features).
    reach : float
        As of :func:`reach_of`.
    index_dtypes : list of str
        Of the indices and indptr of the weights by label.
    arrays : dict of str to ndarray or StoredArray
        Those of ``WeightsByFeature``; some by part.

    Raises
    ------
    SavedModelError
        If they do not fit each other.
    """

    def __init__(
        self, shape: tuple[int, int], reach: float, index_dtypes: list[str], arrays: dict[str, Any]
    ) -> None:
        self.shape, self.reach, self.index_dtypes = (shape[0], shape[1]), float(reach), index_dtypes
        self._parts: dict[str, StoredArray] = {name: arrays[name] for name in BY_PART}
        held = {name: part.unchecked for name, part in self._parts.items()}
        self.by_feature = WeightsByFeature(**{**arrays, **held})
        self._refuse_nonsense()
        self._parts["labels"].require(0, self.shape[0])
        largest = float(np.finfo(self.by_feature.values.dtype).max)
        for name in ("values", "columns"):
            self._parts[name].require(-largest, np.inf)
        self._is_checked = np.zeros(self.shape[1], bool)

    @property
    def dtype(self) -> np.dtype:
        """Of the weights."""
        return self.by_feature.values.dtype

    def _refuse_nonsense(self) -> None:
        """Raise an error unless the small arrays name places that the long ones have."""
        w, (n_labels, d), lengths = self.by_feature, self.shape, Lengths()
        check_record(w, lengths, "weights")
        if not (lengths.require("features", d) and w.columns.shape[1] >= n_labels):
            raise SavedModelError(f"the weights: their arrays do not fit the shape {self.shape}.")

    def check(self, features: np.ndarray) -> None:
        """Check what scores of rows with these features read, and was not checked yet.

        Raises
        ------
        SavedModelError
            If some of it is damaged.
        """
        new = features[~self._is_checked[features]]
        if not new.size:
            return
        w, features = self.by_feature, np.unique(new)
        slot = w.slot[features]
        lists, columns = features[slot < 0], np.unique(slot[slot >= 0]).astype(np.int64)
        for name in ("labels", "values"):
            self._parts[name].check(w.indptr[lists], w.indptr[lists + 1])
        width = w.columns.shape[1]
        self._parts["columns"].check(columns * width, (columns + 1) * width)
        self._is_checked[features] = True

    def by_label(self) -> sp.csr_array:
        """Return the weights, one row per label, in memory; all is checked."""
        for part in self._parts.values():
            part.checked()
        w = self.by_feature
        lists = w.indptr, w.labels, w.values
        return arrange_by_label(self.shape, lists, w.slot, w.columns, self.index_dtypes)


def as_stored(state: dict[str, Any]) -> dict[str, Any] | None:
    """Return the form in files of a plain state of `LabelWeights`, or None where there is none.

    Parameters
    ----------
    state : dict
        With ``coef``, a csr_array.

    Returns
    -------
    dict or None
        What ``StoredWeights`` takes. None for weights with explicit zeros, or in disorder: these
        would not come back as they are.
    """
    coef = state["coef"]
    if not isinstance(coef, sp.csr_array) or not is_canonical(coef) or not coef.data.all():
        return None
    by_feature = arrange_by_feature(coef)
    return {
        "shape": tuple(map(int, coef.shape)),
        "reach": reach_of(coef),
        "index_dtypes": [coef.indices.dtype.str, coef.indptr.dtype.str],
        "arrays": {field.name: getattr(by_feature, field.name) for field in fields(by_feature)},
    }


def reach_of(coef: sp.csr_array) -> float:
    """Return the largest sum of magnitudes of a label's weights."""
    sums = (abs(piece).sum(axis=1, dtype=np.float64) for piece in pieces(coef))
    return max((float(of_piece.max()) for of_piece in sums), default=0.0)
