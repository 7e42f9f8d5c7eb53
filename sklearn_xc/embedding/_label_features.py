"""What the encoder reads of the labels: their own features, or the mean of their instances."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_array, check_is_fitted

from sklearn_xc._data import CsrRows, as_csr_rows
from sklearn_xc._label_features import LabelFeatures, check_features
from sklearn_xc._texts_with_features import TextsWithFeatures
from sklearn_xc.embedding._rows import readable_rows
from sklearn_xc.embedding._texts import DTYPE, TextRows, text_rows


def label_rows(
    estimator_name: str,
    label_features: Any,
    label_vectorizer: Any,
    n_labels: int,
    n_features: int,
    dtype: Any,
) -> CsrRows | None:
    """Return the features of the labels in the form in which instances are trained on.

    One encoder reads instances and labels, so that both must have the same features. The rows are
    not scaled.

    Parameters
    ----------
    estimator_name : str
        Named in messages.
    label_features : LabelFeatures, {array-like, sparse matrix} of shape (n_labels, n_features), \
            array-like of str of shape (n_labels,), or None
        Never changed.
    label_vectorizer : object with ``transform``, or None
        Turns what `label_features` holds into a matrix; needed for texts. It must be fitted.
    n_labels, n_features : int
        What the training data have.
    dtype : {numpy.float32, numpy.float64}
        Of the instances.

    Returns
    -------
    CsrRows of shape (n_labels, n_features), or None
        None without `label_features`; `label_vectorizer` is not looked at then.

    Raises
    ------
    NotFittedError
        If `label_vectorizer` is not fitted.
    TypeError
        If `label_features` are no matrix and no texts, or masked, or `label_vectorizer` has no
        ``transform``.
    ValueError
        For another number of labels or features, NaN, inf, malformed matrices, values out of range,
        texts without `label_vectorizer`, or texts with features.
    """
    if label_features is None:
        return None
    name = f"{estimator_name}: label_features"
    held = _held_for(estimator_name, label_features, n_labels)
    features = held.features
    if isinstance(features, TextsWithFeatures):
        raise ValueError(
            f"{name} must be features or texts, the encoder reads features. Got TextsWithFeatures: "
            "pass its features, or an encoder that reads texts."
        )
    if label_vectorizer is not None:
        features = _vectorized(estimator_name, features, label_vectorizer)
        name = f"{estimator_name}: label_vectorizer"
    elif held.is_text:
        raise ValueError(
            f"{estimator_name}: label_features are texts, label_vectorizer is None; pass the "
            "fitted vectorizer that made X as label_vectorizer."
        )
    if getattr(getattr(features, "dtype", None), "kind", "") == "c":
        raise ValueError(f"{name}: Complex data not supported. Got dtype {features.dtype}.")
    try:
        matrix = check_array(
            features, accept_sparse="csr", dtype=dtype, input_name="label_features"
        )
    except (ValueError, TypeError) as error:
        raise type(error)(f"{name}: {error}") from error
    whose = "label_features have" if label_vectorizer is None else "label_vectorizer made"
    if matrix.shape[0] != n_labels:
        raise ValueError(f"{estimator_name}: {whose} {matrix.shape[0]} rows of {n_labels} labels.")
    if matrix.shape[1] != n_features:
        raise ValueError(
            f"{estimator_name}: {whose} {matrix.shape[1]} features, X has {n_features}: both "
            "must have the same. Vectorize label texts with the vectorizer that made X, or pass "
            "the texts, and that vectorizer as label_vectorizer."
        )
    return readable_rows(as_csr_rows(matrix), name, is_training=True)


def label_texts(
    estimator_name: str,
    label_features: Any,
    label_vectorizer: Any,
    n_labels: int,
    n_features: int | None = None,
) -> TextRows:
    """Return the texts of the labels, for an encoder that reads texts, and features beside them.

    Parameters
    ----------
    estimator_name : str
        Named in messages.
    label_features : LabelFeatures, TextsWithFeatures of shape (n_labels, n_features), or \
            array-like of str of shape (n_labels,)
    label_vectorizer : object with ``transform``, or None
        Makes the features of texts that come alone, where X has features beside its texts; else
        None.
    n_labels : int
        What the training data have.
    n_features : int or None
        What X has beside its texts; None if it is texts alone.

    Returns
    -------
    TextRows of n_labels rows
        With features if X has some.

    Raises
    ------
    NotFittedError
        If `label_vectorizer` is needed, and not fitted.
    TypeError
        If `label_features` are masked, or neither a matrix nor texts.
    ValueError
        Without texts, for a matrix, another number of texts, and a `label_vectorizer`, or features,
        where X has none. Where it has some, for features that ``label_rows`` refuses, or that are
        missing.
    """
    name = f"{estimator_name}: label_features"
    if label_vectorizer is not None and n_features is None:
        raise ValueError(
            f"{estimator_name}: label_vectorizer must be None, the encoder reads texts. Got "
            f"{type(label_vectorizer).__name__}."
        )
    needed = f"{name} must be a text for each label, which the encoder reads."
    if label_features is None:
        raise ValueError(f"{needed} Got None.")
    held = _held_for(estimator_name, label_features, n_labels)
    given = held.features
    if isinstance(given, TextsWithFeatures):
        return _labels_with_features(estimator_name, given, n_labels, n_features)
    if not held.is_text:
        raise ValueError(f"{needed} Got a matrix: encoder='bag' reads features.")
    texts = text_rows(given, name)
    if n_features is None:
        return texts
    if label_vectorizer is None:
        raise ValueError(
            f"{name} must have features, as X has beside its texts. Got texts alone: pass "
            "TextsWithFeatures(label_texts, label_rows), or as label_vectorizer the fitted "
            "vectorizer that made the features of X."
        )
    rows = label_rows(estimator_name, given, label_vectorizer, n_labels, n_features, DTYPE)
    return TextRows.of(texts.texts, rows)


def _labels_with_features(
    estimator_name: str, given: TextsWithFeatures, n_labels: int, n_features: int | None
) -> TextRows:
    """Return texts of labels and their features, which X must have too."""
    name = f"{estimator_name}: label_features"
    if n_features is None:
        raise ValueError(
            f"{name} must be texts alone, as X is. Got TextsWithFeatures: pass X as "
            "TextsWithFeatures, too, or the texts of the labels alone."
        )
    texts = text_rows(given.texts, name).texts
    rows = label_rows(estimator_name, given.features, None, n_labels, n_features, DTYPE)
    return TextRows.of(texts, rows)


def held_features(label_features: Any, name: str) -> LabelFeatures:
    """Return label features that are held, checked once more: they may have changed since."""
    is_held = isinstance(label_features, LabelFeatures)
    check_features(label_features.features if is_held else label_features, name)
    return label_features if is_held else LabelFeatures(label_features)


def mean_rows(
    X: CsrRows, indptr: np.ndarray, labels: np.ndarray, n_labels: int, weight: Any = None
) -> CsrRows:
    """Return the mean of each label's instances, scaled to Euclidean norm 1.

    It stands for a label of which nothing else is known.

    Parameters
    ----------
    X : CsrRows of shape (n, n_features)
        Instances.
    indptr, labels : ndarray of int of shape (n + 1,) and (n_pairs,)
        Labels of each instance, in CSR form.
    n_labels : int
    weight : ndarray of float of shape (n,), default=None
        Weights of the instances in the mean.

    Returns
    -------
    CsrRows of shape (n_labels, n_features)
        Of the dtype of X. A label without instances has an empty row.

    Notes
    -----
    Summed in float64 by a sparse product. Time and memory grow with the number of pairs times the
    non-zeros of an instance.
    """
    n = X.shape[0]
    weights = np.ones(n) if weight is None else np.asarray(weight, np.float64)
    per_pair = np.repeat(weights, np.diff(indptr))
    Y = sp.csr_array((per_pair, labels, indptr), shape=(n, n_labels))
    rows = sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
    sums = sp.csr_array(Y.T @ rows)
    sums.eliminate_zeros()
    sums.sort_indices()
    means = normalize(sums, copy=False).astype(X.dtype, copy=False)
    return as_csr_rows(means).without_zeros()


def joined_rows(one: CsrRows, other: CsrRows) -> CsrRows:
    """Return the rows of both, one after the other."""
    parts = [sp.csr_array((r.data, r.indices, r.indptr), shape=r.shape) for r in (one, other)]
    return as_csr_rows(sp.vstack(parts, format="csr"))


def _vectorized(estimator_name: str, features: Any, vectorizer: Any) -> Any:
    """Return the matrix that a fitted vectorizer makes."""
    kind = type(vectorizer).__name__
    if not hasattr(vectorizer, "transform"):
        raise TypeError(
            f"{estimator_name}: label_vectorizer must have a method transform, {kind} has none."
        )
    if hasattr(vectorizer, "fit"):
        try:
            check_is_fitted(vectorizer)
        except NotFittedError as error:
            raise NotFittedError(
                f"{estimator_name}: label_vectorizer is a {kind} that is not fitted. Pass the "
                "fitted vectorizer that made X; searches and cross-validation clone it, which "
                "leaves sklearn.frozen.FrozenEstimator(vectorizer) fitted."
            ) from error
    made = vectorizer.transform(features)
    name, shape = f"{estimator_name}: label_vectorizer", np.shape(made)
    if len(shape) != 2:
        raise ValueError(
            f"{name} must make a matrix with a row for each label. Got {type(made).__name__} of "
            f"shape {shape}."
        )
    check_features(made, f"{name}: what it made")
    return made


def _held_for(estimator_name: str, label_features: Any, n_labels: int) -> LabelFeatures:
    """Return label features that are held, of as many labels as there are."""
    held = held_features(label_features, f"{estimator_name}: label_features")
    if held.n_labels != n_labels:
        is_bare = not isinstance(label_features, LabelFeatures)
        raise ValueError(_wrong_rows(estimator_name, held.n_labels, n_labels, is_bare))
    return held


def _wrong_rows(estimator_name: str, given: int, n_labels: int, is_bare: bool) -> str:
    message = (
        f"{estimator_name}: label_features must have a row for each of the {n_labels} labels of y. "
        f"Got {given} rows."
    )
    if not is_bare:
        return (
            f"{message} If y is a part in which classes are missing, pass "
            "LabelFeatures(features, classes=...), which says whose each row is."
        )
    return (
        f"{message} Cross-validation slices a bare matrix or list with as many rows as X: if that "
        "happened here, pass sklearn_xc.LabelFeatures(label_features), which it leaves whole."
    )
