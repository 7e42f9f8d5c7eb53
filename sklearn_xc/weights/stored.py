"""Weights by feature as they are in the folder of a model: in the order that scoring reads."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from sklearn_xc._declared_state import Holds, Number, Record, Shape, Tested, declares
from sklearn_xc.weights.by_feature import WeightsByFeature, arrange_by_feature, arrange_by_label
from sklearn_xc.weights.transposition import is_canonical, pieces


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
