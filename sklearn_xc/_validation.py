"""The one door for X, y and weights: behind it, arrays are trusted.

Instances become canonical CSR (sorted, without duplicates, int64 ``indptr``, int32 ``indices``,
float32 or float64 ``data``), targets the positive rows of each binary problem. What the caller
passed is never changed in place: behind the door, arrays are read-only.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d, validate_data


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a read-only view of `array`.

    A kernel is compiled anew for each combination of arguments that may and may not be written, not
    always to the same roundings. All inputs go through here, so that it makes no difference whether
    the caller's arrays, or those that joblib gives to its workers, are read-only maps of files.
    """
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True)
class CsrRows:
    """Instances in canonical CSR form.

    Attributes
    ----------
    indptr : ndarray of int64 of shape (n + 1,)
    indices : ndarray of int32
        Sorted within a row, without duplicates.
    data : ndarray of float32 or float64
    shape : tuple of int
        (n, n_features).
    was_sparse : bool
        Whether the caller's X was sparse.
    """

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    shape: tuple[int, int]
    was_sparse: bool

    def __post_init__(self) -> None:
        for name in ("indptr", "indices", "data"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def take(self, rows: np.ndarray) -> "CsrRows":
        """Return some of the rows."""
        lengths = np.diff(self.indptr)[rows]
        indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        at = np.arange(indptr[-1]) + np.repeat(self.indptr[rows] - indptr[:-1], lengths)
        shape = (len(rows), self.shape[1])
        return CsrRows(indptr, self.indices[at], self.data[at], shape, self.was_sparse)


@dataclass(frozen=True)
class Targets:
    """Targets as binary problems, and what is needed to answer in the caller's terms.

    Attributes
    ----------
    indptr : ndarray of int64 of shape (n_problems + 1,)
    rows : ndarray of int32
        Positive rows of each binary problem, sorted.
    classes : ndarray of shape (n_labels,)
        Class labels after a 1-D y, else ``arange(n_labels)``. A 1-D y of two classes makes one
        problem, whose positives are the second class.
    kind : {"classes", "dense", "sparse"}
        The container of y.
    dtype : dtype
        Of y.
    container : type or None
        The class of a sparse y.
    """

    indptr: np.ndarray
    rows: np.ndarray
    classes: np.ndarray
    kind: str
    dtype: np.dtype
    container: type | None

    @property
    def n_problems(self) -> int:
        """Number of binary problems."""
        return len(self.indptr) - 1

    def take(self, kept: np.ndarray) -> "Targets":
        """Return the targets of the rows where the mask `kept` is True, renumbered."""
        renumbered = np.cumsum(kept) - 1
        chosen = kept[self.rows]
        counts = np.concatenate(([0], np.cumsum(chosen)))[self.indptr]
        rows = renumbered[self.rows[chosen]].astype(np.int32)
        return Targets(
            counts.astype(np.int64), rows, self.classes, self.kind, self.dtype, self.container
        )


def check_instances(estimator: Any, X: Any, *, reset: bool) -> CsrRows:
    """Check X and return it in canonical CSR form.

    Parameters
    ----------
    estimator : estimator
        Its ``n_features_in_`` is set (`reset`) or compared.
    X : {array-like, sparse matrix} of shape (n, n_features)
        Never changed.
    reset : bool
        True in fit.

    Raises
    ------
    ValueError
        For NaN, inf, a wrong number of features, no rows, no columns.
    """
    X = validate_data(
        estimator, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], order="C"
    )
    n, d = X.shape
    if d >= 2**31 - 1 or n >= 2**31 - 1:
        raise ValueError(
            f"X has shape {X.shape}; at most 2**31 - 2 rows and columns are supported."
        )
    was_sparse = sp.issparse(X)
    if was_sparse:
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    else:
        X = sp.csr_array(X)
    return CsrRows(
        np.ascontiguousarray(X.indptr, np.int64),
        np.ascontiguousarray(X.indices, np.int32),
        np.ascontiguousarray(X.data),
        (n, d),
        was_sparse,
    )


def check_targets(estimator: Any, y: Any, n_samples: int) -> Targets:
    """Check y and return the binary problems that it stands for.

    Parameters
    ----------
    estimator : estimator
        Named in messages.
    y : {array-like, sparse matrix}
        Class labels (n,), or a binary indicator (n, n_labels), dense or sparse.
    n_samples : int
        Rows of X.

    Raises
    ------
    ValueError
        For another number of rows, values other than 0 and 1 in an indicator, a single class.
    """
    name = type(estimator).__name__
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None")
    if not sp.issparse(y):
        y = _as_array(y, name)
    if y.shape[0] != n_samples:
        raise ValueError(
            f"{name}: y has {y.shape[0]} rows and X has {n_samples}; "
            "Found input variables with inconsistent numbers of samples."
        )
    if (y.ndim == 2 and y.shape[1] == 0) or (sp.issparse(y) and y.ndim != 2):
        raise ValueError(f"{name}: y must have at least one label column, shape {y.shape} came.")
    if sp.issparse(y):
        return _sparse_indicator(y, name)
    if y.ndim == 2 and y.shape[1] > 1:
        return _dense_indicator(y, name)
    return _class_labels(y, name)


def _as_array(y: Any, name: str) -> np.ndarray:
    try:
        y = np.asarray(y)
    except ValueError as error:  # rows of different lengths
        raise ValueError(
            f"{name}: y must be class labels (n,) or a binary indicator (n, n_labels); rows of "
            "different lengths came. For lists of labels use "
            "sklearn.preprocessing.MultiLabelBinarizer(sparse_output=True)."
        ) from error
    if y.ndim == 0 or y.ndim > 2:
        raise ValueError(f"{name}: y must be 1-D or 2-D, an array of shape {y.shape} came.")
    return y


def _class_labels(y: np.ndarray, name: str) -> Targets:
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"{name}: Input y contains NaN or infinity.")
    with warnings.catch_warnings():
        # Many classes per instance are the normal case here.
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        check_classification_targets(y)
    classes, positions = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"{name}: y holds one class, {classes[0]!r}; at least two classes are needed."
        )
    n_problems = 1 if len(classes) == 2 else len(classes)
    order = np.argsort(positions, kind="stable").astype(np.int32)
    counts = np.bincount(positions, minlength=len(classes))
    if n_problems == 1:
        order, counts = order[counts[0] :], counts[1:]
    indptr = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return Targets(indptr, order, classes, "classes", y.dtype, None)


def _dense_indicator(y: np.ndarray, name: str) -> Targets:
    if y.dtype.kind not in "biuf":
        raise ValueError(f"{name}: a 2-D y must be a binary indicator, dtype {y.dtype} came.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"{name}: Input y contains NaN or infinity.")
    wrong = (y != 0) & (y != 1)
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise ValueError(_not_binary(name, i, j, y[i, j]))
    indicator = sp.csc_array(y != 0)
    return _from_csc(indicator, "dense", y.dtype, None)


def _sparse_indicator(y: Any, name: str) -> Targets:
    kind = y.dtype.kind
    if kind not in "biuf":
        raise ValueError(f"{name}: a sparse y must be a binary indicator, dtype {y.dtype} came.")
    container, dtype = type(y), y.dtype
    # Sums are taken in a wide dtype: a duplicated int8 or bool entry must not wrap to 0 or 1.
    csc = sp.csc_array(y.astype(np.float64 if kind == "f" else np.int64))
    csc.sum_duplicates()
    wrong = np.flatnonzero((csc.data != 0) & (csc.data != 1))
    if wrong.size:
        at = wrong[0]
        j = np.searchsorted(csc.indptr, at, side="right") - 1
        raise ValueError(_not_binary(name, csc.indices[at], j, csc.data[at]))
    csc.eliminate_zeros()
    csc.sort_indices()
    return _from_csc(csc, "sparse", dtype, container)


def _not_binary(name: str, row: int, column: int, value: Any) -> str:
    return (
        f"{name}: y must be a binary indicator of 0 and 1 (Unknown label type: other values); "
        f"row {row}, column {column} holds {value} (duplicate entries are summed)."
    )


def _from_csc(csc: Any, kind: str, dtype: np.dtype, container: type | None) -> Targets:
    return Targets(
        csc.indptr.astype(np.int64),
        csc.indices.astype(np.int32),
        np.arange(csc.shape[1]),
        kind,
        dtype,
        container,
    )


def check_weights(estimator: Any, sample_weight: Any, n_samples: int) -> np.ndarray | None:
    """Check `sample_weight` and return it as float64, or None.

    Raises
    ------
    ValueError
        For negative weights, NaN, a wrong length, or weights that are all zero.
    """
    if sample_weight is None:
        return None
    name = type(estimator).__name__
    weight = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weight.shape != (n_samples,):
        raise ValueError(
            f"{name}: sample_weight has shape {weight.shape}, expected ({n_samples},): one weight "
            "for each row of X."
        )
    if (weight < 0).any():
        at = int(np.argmin(weight))
        raise ValueError(
            f"{name}: sample_weight must not be negative, row {at} holds {weight[at]}."
        )
    if not weight.any():
        raise ValueError(f"{name}: all entries of sample_weight are zero, no row is left to fit.")
    return weight
