"""Validation of X, y and weights, which become records of ``data``."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from sklearn_xc._input.arguments import check_numbers, is_missing, refuse_masks_and_dates, to_array
from sklearn_xc._input.data import CsrRows, DenseRows, Targets, as_csr_rows, check_sparse
from sklearn_xc._labels.name_lists import refuse_written_lists
from sklearn_xc._labels.names import column_names, names_of_columns, refuse_other_columns


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
    check_sparse(X, "X", type(estimator).__name__)
    if reset or not _is_as_fitted(estimator, X):
        X = _checked(estimator, X, reset)
    return as_csr_rows(X)


def check_training_instances(estimator: Any, X: Any) -> CsrRows | DenseRows:
    """Check the X of a fit as ``check_instances`` does; a dense X with few zeros stays dense."""
    check_sparse(X, "X", type(estimator).__name__)
    X = _checked(estimator, X, reset=True)
    return as_csr_rows(X) if sp.issparse(X) else DenseRows(X).as_trained()


def check_rows(estimator: Any, X: Any, *, reset: bool) -> CsrRows | DenseRows:
    """Check X as ``check_instances`` does; a sparse X stays sparse, a dense one dense."""
    if sp.issparse(X):
        return check_instances(estimator, X, reset=reset)
    X = _checked(estimator, X, reset)
    return as_csr_rows(X) if sp.issparse(X) else DenseRows(X)  # of a sparse pandas frame


def _checked(estimator: Any, X: Any, reset: bool) -> Any:
    name = type(estimator).__name__
    refuse_masks_and_dates(X, f"{name}: X")
    is_list = isinstance(X, list | tuple) or (not sp.issparse(X) and getattr(X, "ndim", 0) == 1)
    if is_list and isinstance(next(iter(X), None), str):
        raise ValueError(
            f"{name}: X must be a matrix of features. Got texts: put a vectorizer before the "
            f"classifier, make_pipeline(TfidfVectorizer(), {name}(...))."
        )
    dtypes = [np.float64, np.float32]
    try:
        X = validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype=dtypes, order="C")
    except (TypeError, ValueError) as error:
        if str(error).startswith(("X ", "Input X ")):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        expected = "X must be a matrix of real numbers, with the same columns in each call"
        raise kind(f"{name}: {expected}. {error}") from error
    n, d = X.shape
    if d >= 2**31 - 1 or n >= 2**31 - 1:
        raise ValueError(
            f"{name}: X must have at most 2**31 - 2 rows and columns. Got shape {X.shape}."
        )
    return X


def _is_as_fitted(estimator: Any, X: Any) -> bool:
    """Return whether X is a finite CSR of the right width and type, and fit saw no feature names.

    scikit-learn's check, which everything else goes through, takes longer than scoring one row.
    """
    return (
        isinstance(X, sp.csr_matrix | sp.csr_array)
        and X.ndim == 2
        and X.dtype in (np.float32, np.float64)
        and X.shape[0] > 0
        and X.shape[1] == getattr(estimator, "n_features_in_", None)
        and not hasattr(estimator, "feature_names_in_")
        and bool(np.isfinite(X.data).all())
    )


def check_targets(
    estimator: Any, y: Any, n_samples: int, classes: Any = None, kind: str | None = None
) -> Targets:
    """Check y and return it as binary problems.

    Parameters
    ----------
    estimator : estimator
        Named in messages.
    y : {array-like, sparse matrix}
        Class labels (n,), or a binary indicator (n, n_labels), dense or sparse.
    n_samples : int
        Rows of X.
    classes : array-like of shape (n_labels,), default=None
        All classes, if a 1-D y may lack some; for an indicator, its column numbers or names.
    kind : str, default=None
        ``Targets.kind`` of an earlier fit with `classes`: y must be 1-D, or an indicator, as then.

    Raises
    ------
    ValueError
        For another number of rows, values other than 0 and 1 in an indicator, a single class, a
        class that is not in `classes`, names of labels that do not fit.
    """
    name = type(estimator).__name__
    targets = _read_targets(y, n_samples, classes, kind, name)
    label_names = getattr(estimator, "label_names", None)
    if targets.kind == "classes":
        if label_names is not None:
            raise ValueError(
                f"{name}: label_names are the names of an indicator's columns. Got a 1-D y, which "
                "holds the names of its classes: leave label_names None."
            )
        return targets
    if classes is not None:
        distinct_classes(classes, name)
    n_labels = len(targets.classes)
    columns = column_names(y)
    if kind is not None and n_labels != len(classes):
        raise ValueError(f"{name}: y has {n_labels} label columns, before it had {len(classes)}.")
    return replace(targets, classes=names_of_columns(n_labels, label_names, columns, classes, name))


def _read_targets(y: Any, n_samples: int, classes: Any, kind: str | None, name: str) -> Targets:
    """Return y as binary problems; the labels of an indicator are numbers."""
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None")
    y = _as_array(y, name)
    if y.shape[0] != n_samples:
        raise ValueError(
            f"{name}: y has {y.shape[0]} rows and X has {n_samples}; "
            "Found input variables with inconsistent numbers of samples."
        )
    if y.ndim == 2 and y.shape[1] == 0:
        raise ValueError(f"{name}: y must have at least one label column. Got shape {y.shape}.")
    is_indicator = sp.issparse(y) or (y.ndim == 2 and y.shape[1] > 1)
    if kind is not None and is_indicator == (kind == "classes"):
        before, now = ("1-D", "an indicator") if is_indicator else ("an indicator", "1-D")
        raise ValueError(f"{name}: y was {before} in the first call, now it is {now}.")
    if is_indicator:
        return _indicator(y, name)
    return _class_labels(y, name, classes)


def _as_array(y: Any, name: str) -> Any:
    """Return a sparse y checked, any other as an array of one or two dimensions."""
    check_sparse(y, "y", name)
    if sp.issparse(y):
        return y
    if np.ma.isMaskedArray(y):  # dates may be classes
        refuse_masks_and_dates(y, f"{name}: y")
    try:
        y = to_array(y)
    except ValueError as error:  # rows of different lengths
        raise ValueError(
            f"{name}: y must be class labels (n,) or a binary indicator (n, n_labels). Got "
            "rows of different lengths. For lists of labels use "
            "sklearn.preprocessing.MultiLabelBinarizer(sparse_output=True)."
        ) from error
    if y.ndim == 0 or y.ndim > 2:
        raise ValueError(f"{name}: y must be 1-D or 2-D. Got an array of shape {y.shape}.")
    if y.dtype.kind == "c":
        raise ValueError(f"{name}: y must hold class labels. Complex data not supported.")
    if y.dtype.kind == "m":  # numbers to numpy
        raise ValueError(f"{name}: y must hold class labels, it holds times ({y.dtype}).")
    return y


def check_class_array(y: Any, name: str) -> np.ndarray:
    """Return one class for each row, from any container, as an array of shape (n,).

    Raises
    ------
    ValueError
        For missing classes, arrays as classes, and lists written as text; the message names `name`.
    """
    y = column_or_1d(to_array(y), warn=True)
    for i, label in enumerate(y.tolist() if y.dtype == object else ()):
        if getattr(label, "shape", ()) != ():
            raise ValueError(
                f"{name} must hold a class label for each instance. Got an array of shape "
                f"{label.shape} in row {i}: stack rows of an indicator (scipy.sparse.vstack)."
            )
    missing = np.flatnonzero(_are_missing(y))
    if missing.size:
        raise ValueError(
            f"{name} must have a class in each row. Got {missing.size} of {len(y)} rows whose "
            f"class is missing or infinite, row {missing[0]} first: drop these rows of X and y."
        )
    if y.dtype.kind in "OU":
        refuse_written_lists(y.tolist(), name)
    return y


def _class_labels(y: np.ndarray, name: str, known: Any) -> Targets:
    y = check_class_array(y, f"{name}: y")
    if y.dtype.kind == "S" or (y.dtype == object and any(isinstance(c, bytes) for c in y.tolist())):
        raise TypeError(f"{name}: y must hold texts or numbers. Got bytes: decode them.")
    with warnings.catch_warnings():
        # Many classes per instance are the normal case here.
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        try:
            check_classification_targets(y)
            classes, positions = np.unique(y, return_inverse=True)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}: y must be class labels of one kind: {error}") from error
    if known is not None:
        found, classes = classes, distinct_classes(known, name)
        strange = found[~np.isin(found, classes)]
        if strange.size:
            raise ValueError(f"{name}: y holds {strange.tolist()[0]!r}, which is not in classes.")
        positions = np.searchsorted(classes, found)[positions]
    if len(classes) < 2:
        raise ValueError(
            f"{name}: y holds one class, {classes.tolist()[0]!r}; at least two classes are needed."
        )
    n_problems = 1 if len(classes) == 2 else len(classes)
    order = np.argsort(positions, kind="stable").astype(np.int32)
    counts = np.bincount(positions, minlength=len(classes))
    if n_problems == 1:
        order, counts = order[counts[0] :], counts[1:]
    indptr = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return Targets(indptr, order, classes, "classes", y.dtype, None)


def distinct_classes(classes: Any, name: str) -> np.ndarray:
    """Return `classes` without repetitions, sorted.

    Raises
    ------
    TypeError
        For a masked array.
    ValueError
        For classes that are not 1-D, are missing, or cannot be sorted.
    """
    name = f"{name}: classes"
    if np.ma.isMaskedArray(classes):
        refuse_masks_and_dates(classes, name)
    try:
        array = to_array(classes)
    except ValueError as error:  # of different lengths
        raise ValueError(f"{name} must be a sequence of class labels: {error}") from error
    if sp.issparse(classes) or array.ndim != 1 or not array.size:
        raise ValueError(
            f"{name} must be a sequence of class labels. Got "
            f"{type(classes).__name__} of shape {np.shape(classes)}."
        )
    at = np.flatnonzero(_are_missing(array))
    if at.size:
        raise ValueError(f"{name} must not be missing, entry {at[0]} is {array[at[0]]}.")
    try:
        return np.unique(array)
    except TypeError as error:
        raise ValueError(f"{name} must be of one kind that can be sorted: {error}.") from error


def _are_missing(y: np.ndarray) -> np.ndarray:
    """Return which entries are None, NaN, NaT, pandas' NA or infinite."""
    if y.dtype == object:
        infinite = (np.inf, -np.inf)
        return np.array(
            [is_missing(one) or (isinstance(one, float) and one in infinite) for one in y.tolist()],
            bool,
        )
    return ~np.isfinite(y) if y.dtype.kind in "fcmM" else np.zeros(len(y), bool)


def _indicator(y: Any, name: str) -> Targets:
    """Return the positives of a sparse or dense indicator."""
    is_sparse = sp.issparse(y)
    kind = y.dtype.kind
    if kind not in "biuf":
        what = "sparse" if is_sparse else "2-D"
        raise ValueError(f"{name}: a {what} y must be a binary indicator. Got dtype {y.dtype}.")
    if not is_sparse and kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"{name}: Input y contains NaN or infinity.")
    # Sums are taken in a wide dtype: a duplicated int8 or bool entry must not wrap to 0 or 1.
    csc = sp.csc_array(y.astype(np.float64 if kind == "f" else np.int64) if is_sparse else y)
    # A new matrix has none of the flags of `y`, which may be out of date.
    csc = sp.csc_array((csc.data, csc.indices, csc.indptr), shape=csc.shape)
    csc.sum_duplicates()
    wrong = np.flatnonzero((csc.data != 0) & (csc.data != 1))
    if wrong.size:
        at = wrong[0]
        column = np.searchsorted(csc.indptr, at, side="right") - 1
        raise ValueError(
            f"{name}: y must be a binary indicator of 0 and 1 (Unknown label type: other values); "
            f"row {csc.indices[at]}, column {column} holds {csc.data[at]} (duplicate entries are "
            "summed)."
        )
    csc.eliminate_zeros()
    container = sp.csr_matrix if isinstance(y, sp.spmatrix) else sp.csr_array
    return Targets(
        csc.indptr.astype(np.int64),
        csc.indices.astype(np.int32),
        np.arange(csc.shape[1]),
        "sparse" if is_sparse else "dense",
        y.dtype,
        container if is_sparse else None,
    )


def check_classes(estimator: Any, y: Any, n_samples: int) -> np.ndarray:
    """Check the true classes of a score, after a 1-D fit, and return them as an array (n,).

    Raises
    ------
    ValueError
        For another shape, NaN, or numbers where ``classes_`` has texts and the reverse. Unknown
        classes pass.
    """
    name, known = type(estimator).__name__, estimator.classes_
    if y is None:
        raise ValueError(f"{name}: y is None, one class for each row of X was expected.")
    y = _as_array(y, name)
    if sp.issparse(y) or (y.ndim == 2 and y.shape[1] != 1):
        what = "a sparse matrix" if sp.issparse(y) else "an array"
        raise ValueError(f"{name}: y was 1-D in fit. Got {what} of shape {y.shape}.")
    y = check_class_array(y, f"{name}: y")
    if len(y) != n_samples:
        raise ValueError(f"{name}: y has {len(y)} rows and X has {n_samples}.")
    is_text = all(isinstance(label, str) for label in known[:1].tolist())
    is_number = known.dtype.kind in "biuf"
    if (is_text and not all(isinstance(label, str) for label in y.tolist())) or (
        is_number and y.dtype.kind not in "biuf"
    ):
        raise ValueError(
            f"{name}: y holds {y.tolist()[0]!r} (dtype {y.dtype}), which is not of the kind of "
            f"classes_ (dtype {known.dtype})."
        )
    return y


def check_indicator(estimator: Any, y: Any, n_samples: int, n_labels: int) -> sp.csr_array:
    """Check the true labels of a score, after an indicator fit, and return them as a CSR.

    Raises
    ------
    ValueError
        For another shape, or values other than 0 and 1.
    """
    name = type(estimator).__name__
    if y is None:
        raise ValueError(f"{name}: y is None, an indicator of shape (n, n_labels) was expected.")
    refuse_other_columns(y, estimator.classes_, name)
    y = _as_array(y, name)
    if y.shape != (n_samples, n_labels):
        raise ValueError(
            f"{name}: y has shape {y.shape}, an indicator of shape ({n_samples}, {n_labels}) was "
            "expected: a row for each row of X, a column for each label of fit."
        )
    indptr, labels = _indicator(y, name).by_instance(n_samples)
    ones = np.ones(len(labels), np.int8)
    return sp.csr_array((ones, labels, indptr), shape=(n_samples, n_labels))


def require_labels(estimator: Any, targets: Targets, rows: np.ndarray, least: int = 2) -> None:
    """Raise ValueError unless y has two labels, or `least`, and some row has one.

    Parameters
    ----------
    estimator : estimator
        Named in messages.
    targets : Targets
        Checked targets.
    rows : ndarray of int
        Rows of X that have a label and take part; one may come several times.
    least : int, default=2
        How many labels the estimator needs.
    """
    name = type(estimator).__name__
    if len(targets.classes) < least:
        raise ValueError(f"{name}: y needs at least two label columns. Got 1.")
    if not len(rows):
        raise ValueError(f"{name}: no row of y has a label.")


def check_weights(estimator: Any, sample_weight: Any, n_samples: int) -> np.ndarray | None:
    """Check `sample_weight` and return it as float64, or None.

    Raises
    ------
    ValueError
        For negative weights, NaN, a wrong length, or weights that are all zero.
    """
    if sample_weight is None:
        return None
    name = f"{type(estimator).__name__}: sample_weight"
    weight = check_numbers(sample_weight, name, n_samples, "row of X")
    at = int(np.argmin(weight))
    if weight[at] < 0:
        raise ValueError(f"{name} must not be negative, row {at} holds {weight[at]}.")
    if not weight.any():
        raise ValueError(f"{name}: all entries of sample_weight are zero, no row is left.")
    return weight


def with_pair_weight(estimator: Any, targets: Targets, pair_weight: Any, n_samples: int) -> Targets:
    """Check `pair_weight` and return the targets with it.

    Parameters
    ----------
    estimator : estimator
        Named in messages.
    targets : Targets
        y, checked.
    pair_weight : {array-like, sparse matrix} of shape (n_samples, n_labels), or None
        Zeros that are stored count as missing.
    n_samples : int
        Rows of X.

    Raises
    ------
    ValueError
        For a 1-D y, another shape or dtype, and unless there is a positive finite number for each
        positive entry of y and for no other one.
    """
    if pair_weight is None:
        return targets
    caller = type(estimator).__name__
    name = f"{caller}: pair_weight"
    if targets.kind == "classes":
        raise ValueError(f"{name} needs an indicator y of shape (n, n_labels). Got a 1-D y.")
    check_sparse(pair_weight, "pair_weight", caller)
    refuse_masks_and_dates(pair_weight, name)
    given = pair_weight if sp.issparse(pair_weight) else to_array(pair_weight)
    shape = n_samples, targets.n_problems
    if given.shape != shape or given.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must hold numbers, in the shape {shape} of y. Got shape {given.shape} and "
            f"dtype {given.dtype}."
        )
    given = sp.csc_array(given, dtype=np.float64)
    # A new matrix has none of the flags of the argument, which may be out of date.
    given = sp.csc_array((given.data, given.indices, given.indptr), shape=shape, copy=True)
    given.sum_duplicates()
    given.eliminate_zeros()
    lists = (given.indptr, given.indices), (targets.indptr, targets.rows)
    keys = [np.repeat(np.arange(shape[1]) * n_samples, np.diff(a)) + b for a, b in lists]
    is_wrong = ~((given.data > 0) & (given.data < np.inf))
    wrong = np.append(np.setxor1d(*keys, assume_unique=True), keys[0][is_wrong])
    if wrong.size:
        column, row = divmod(int(wrong[0]), n_samples)
        raise ValueError(
            f"{name} must hold a positive finite number for each 1 in y, and nothing else. Got "
            f"{given[row, column]} in row {row}, column {column}, where y holds "
            f"{int(wrong[0] in keys[1])}."
        )
    return replace(targets, pair_weight=given.data)
