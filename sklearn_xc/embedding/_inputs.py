"""Instances and labels as the rows that encoders read, and calls of encoders.

Rows are features, or texts, perhaps with features.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import check_array

from sklearn_xc._input.arguments import is_sequence
from sklearn_xc._input.data import CsrRows, as_csr_rows, check_sparse, read_only
from sklearn_xc._input.equal_rows import hash_instances, hash_texts
from sklearn_xc._input.parts import default_vectorizer
from sklearn_xc._input.texts_with_features import TextsWithFeatures, as_texts
from sklearn_xc._labels.features import LabelFeatures, check_features
from sklearn_xc._state.schema import Record, declares
from sklearn_xc.embedding.encoders.protocol import Encoder
from sklearn_xc.embedding.kernels.steps import copy_entries

#: Dtype of the embeddings of texts, and of the features given with them.
DTYPE = np.dtype(np.float32)
#: Smaller values become zeros, larger ones are refused: squares, sums of them, and products with
#: weights stay in the range of the dtype.
RANGES = {np.dtype(np.float32): (1e-15, 1e15), np.dtype(np.float64): (1e-100, 1e100)}
#: Tolerance on the norms of unit vectors; those of float16 need it.
_ROUNDING = 1e-3
#: How scikit-learn's vectorizers report that no word of the texts is left.
_NO_WORD = ("empty vocabulary", "no terms remain")


@declares(features=Record("CsrRows", optional=True, rows="rows"))
@dataclass(frozen=True)
class TextRows(CsrRows):
    """Texts as rows of a single feature, which blank texts lack.

    Attributes
    ----------
    texts : ndarray of str objects of shape (n,)
        One that is empty, or all white space, is a row without features.
    features : CsrRows of float32 of shape (n, n_features), or None
        Features given with the texts, if there are any.
    """

    texts: np.ndarray
    features: CsrRows | None = None

    @classmethod
    def of(cls, texts: np.ndarray, features: CsrRows | None = None) -> "TextRows":
        """Return the rows of some texts."""
        has_text = np.array([bool(text) and not text.isspace() for text in texts], bool)
        indptr = np.append(0, np.cumsum(has_text)).astype(np.int64)
        n_texts = int(indptr[-1])
        zeros = np.zeros(n_texts, np.int32)
        ones = np.ones(n_texts, DTYPE)
        return cls(indptr, zeros, ones, (len(texts), 1), texts, features)

    def take(self, rows: np.ndarray, empty: Callable[..., np.ndarray] = np.empty) -> "TextRows":
        """Return some of the rows."""
        features = None if self.features is None else self.features.take(rows, empty)
        return TextRows.of(self.texts[rows], features)

    def hashes(self) -> np.ndarray:
        """Return a hash of each row and its features, uint64 of shape (n, 2) or (n, 4)."""
        out = hash_texts(self.texts)
        if self.features is None:
            return out
        # The last column orders first: features that follow from texts change no order.
        return np.column_stack([hash_instances(self.features), out])


def sparse_features(rows: CsrRows) -> CsrRows | None:
    """Return the features of rows, or those given with texts; None if texts come alone."""
    return rows.features if isinstance(rows, TextRows) else rows


def is_described(rows: CsrRows) -> np.ndarray:
    """Return which rows have a text or a feature, bool of shape (n,)."""
    features = sparse_features(rows)
    has_text = np.diff(rows.indptr) > 0
    return has_text if features is None else has_text | (np.diff(features.indptr) > 0)


def contents(rows: CsrRows) -> tuple[np.ndarray, ...]:
    """Return the arrays that identify rows in a checkpoint."""
    if not isinstance(rows, TextRows):
        return *rows.arrays, np.array(rows.shape)
    return rows.texts, *(() if rows.features is None else contents(rows.features))


# Instances


def looks_like_texts(X: Any) -> bool:
    """Return whether X is a sequence that begins with a str."""
    if sp.issparse(X) or getattr(X, "ndim", 1) != 1 or not hasattr(X, "__len__"):
        return False
    return len(X) > 0 and isinstance(next(iter(X)), str)


def text_rows(X: Any, name: str) -> TextRows:
    """Return a sequence of texts as rows; `name` is the argument's in messages."""
    if not is_sequence(X):
        shape = f" of shape {tuple(X.shape)}" if hasattr(X, "shape") else ""
        raise ValueError(
            f"{name} must be a sequence of texts, which the encoder reads: pass texts, or "
            f"encoder='bag' for a matrix of features. Got {type(X).__name__}{shape}."
        )
    texts = as_texts(X, name)
    if not len(texts):
        raise ValueError(f"{name} must have at least one text. Got 0 sample(s).")
    return TextRows.of(texts)


def rows_in_range(rows: CsrRows, name: str, dtype: np.dtype | None = None) -> CsrRows:
    """Return rows in `dtype`, without zeros and values that are too small to be squared.

    Raises ValueError for values that are too large.
    """
    rows, dtype = rows.without_zeros(), rows.dtype if dtype is None else dtype
    smallest, largest = RANGES[dtype]
    sizes = np.abs(rows.data)
    if sizes.max(initial=0) > largest:
        at = int(sizes.argmax())
        row = int(np.searchsorted(rows.indptr, at, side="right")) - 1
        raise ValueError(
            f"{name} must have values up to {largest:g} in {dtype}. Got {rows.data[at]:g} in "
            f"row {row}. Scale all of them (sklearn.preprocessing.MaxAbsScaler)."
        )
    if sizes.min(initial=largest) < smallest:
        data = np.where(sizes >= smallest, rows.data, 0).astype(rows.dtype)
        rows = CsrRows(rows.indptr, rows.indices, data, rows.shape).without_zeros()
    return rows.astype(dtype)


# Labels


def label_rows(
    label_features: Any, n_labels: int, n_features: int, dtype: Any, estimator: str
) -> CsrRows | None:
    """Return the features of labels for an encoder that reads features; None if there are none.

    Raises TypeError or ValueError for anything but finite features of the number that X has.
    """
    if label_features is None:
        return None
    name = f"{estimator}: label_features"
    given = _of_all_labels(label_features, n_labels, name)
    features = given.features
    if given.is_text or isinstance(features, TextsWithFeatures):
        raise ValueError(
            f"{name} must be features, as the encoder reads features. Got texts: pass "
            "vectorizer.transform(texts), by the vectorizer that made X, or an encoder that reads "
            "texts."
        )
    if getattr(getattr(features, "dtype", None), "kind", "") == "c":
        raise ValueError(f"{name}: Complex data not supported. Got dtype {features.dtype}.")
    try:
        matrix = check_array(
            features, accept_sparse="csr", dtype=dtype, input_name="label_features"
        )
    except (ValueError, TypeError) as error:
        raise type(error)(f"{name}: {error}") from error
    if matrix.shape[1] != n_features:
        raise ValueError(
            f"{name} must have the {n_features} features of X. Got {matrix.shape[1]}: vectorize "
            "label texts with the vectorizer that made X."
        )
    return rows_in_range(as_csr_rows(matrix), name)


def label_texts(
    label_features: Any, n_labels: int, n_features: int | None, estimator: str
) -> TextRows:
    """Return the texts of labels, with features if X has `n_features` with its texts.

    Raises TypeError or ValueError for anything but texts in the form of X.
    """
    name = f"{estimator}: label_features"
    if label_features is None:
        raise ValueError(f"{name} must be texts, which the encoder reads. Got None.")
    given = _of_all_labels(label_features, n_labels, name)
    features = given.features
    has_both = isinstance(features, TextsWithFeatures)
    if has_both != (n_features is not None) or not (has_both or given.is_text):
        wanted = "texts alone" if n_features is None else "TextsWithFeatures(texts, rows)"
        got = "texts alone" if given.is_text else type(features).__name__
        raise ValueError(f"{name} must be {wanted}, as X is. Got {got}.")
    if not has_both:
        return text_rows(features, name)
    rows = label_rows(features.features, n_labels, n_features, DTYPE, estimator)
    return TextRows.of(text_rows(features.texts, name).texts, rows)


def as_label_features(label_features: Any, name: str) -> LabelFeatures:
    """Return label features in their holder, checked again: they may have changed since."""
    is_holder = isinstance(label_features, LabelFeatures)
    check_features(label_features.features if is_holder else label_features, name)
    return label_features if is_holder else LabelFeatures(label_features)


def _of_all_labels(label_features: Any, n_labels: int, name: str) -> LabelFeatures:
    """Return label features, which must be of as many labels as y."""
    given = as_label_features(label_features, name)
    if given.n_labels == n_labels:
        return given
    advice = (
        "If y is a part in which classes are missing, pass LabelFeatures(features, classes=...), "
        "which names the class of each row."
        if isinstance(label_features, LabelFeatures)
        else "Cross-validation slices a bare matrix or list with as many rows as X: if that "
        "happened here, pass sklearn_xc.LabelFeatures(label_features), which it leaves whole."
    )
    raise ValueError(
        f"{name} must have a row for each of the {n_labels} labels of y. Got {given.n_labels} "
        f"rows. {advice}"
    )


# Features that a vectorizer makes of texts


def fitted_vectorizer(parameter: Any, texts: np.ndarray, estimator: str) -> Any | None:
    """Return a clone of the vectorizer fitted to texts; None if no word of them is left.

    Each distinct text counts once, in alphabetical order: weights, repeated and moved rows change
    nothing.
    """
    if parameter is None:
        return None
    vectorizer = default_vectorizer() if isinstance(parameter, str) else clone(parameter)
    distinct = np.array(sorted(set(texts)), object)
    try:
        vectorizer.fit(distinct.tolist(), None)
    except ValueError as error:
        if any(message in str(error) for message in _NO_WORD):
            return None
        raise
    has_none = vectorized_rows(vectorizer, distinct[:1], estimator).shape[1] == 0
    return None if has_none else vectorizer


def vectorized_rows(
    vectorizer: Any, texts: np.ndarray, estimator: str, n_features: int | None = None
) -> CsrRows:
    """Return the features that a fitted vectorizer makes of texts, float32.

    Raises ValueError unless they are a sparse matrix of finite real numbers of the right shape.
    """
    name = f"{estimator}: vectorizer {type(vectorizer).__name__}"
    made = vectorizer.transform(texts.tolist())
    if sp.issparse(made):
        check_sparse(made, name)
    is_right = sp.issparse(made) and made.dtype.kind in "biuf" and made.shape[0] == len(texts)
    if not is_right or made.shape[1] >= 2**31 - 1 or n_features not in (None, made.shape[1]):
        wanted = "less than 2**31 - 1" if n_features is None else n_features
        raise ValueError(
            f"{name} must make a sparse matrix of real numbers, of {len(texts)} rows, one for each "
            f"text, and {wanted} features. Got {type(made).__name__} of shape {np.shape(made)}, "
            f"dtype {getattr(made, 'dtype', None)}."
        )
    rows = as_csr_rows(sp.csr_array(made if made.dtype.kind == "f" else made.astype(np.float64)))
    if not np.isfinite(rows.data).all():
        raise ValueError(f"{name} must make finite numbers. Got NaN or infinity.")
    return rows_in_range(rows, name, DTYPE)


# Encoders


def as_csr_matrix(rows: CsrRows) -> sp.csr_array:
    """Return rows as a matrix of scipy, without a copy."""
    return sp.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape)


def encoder_input(rows: CsrRows) -> Any:
    """Return rows as encoders read them: a csr_array, or an array of texts."""
    return rows.texts if isinstance(rows, TextRows) else as_csr_matrix(rows)


def joined_input(parts: Sequence[tuple[CsrRows, np.ndarray]]) -> Any:
    """Return chosen rows of several matrices, or texts of several arrays, as one input."""
    if all(isinstance(rows, TextRows) for rows, _ in parts):
        return np.concatenate([rows.texts[at] for rows, at in parts])  # type: ignore[attr-defined]
    starts = [rows.indptr[at] for rows, at in parts]
    counts = [rows.indptr[at + 1] - first for (rows, at), first in zip(parts, starts, strict=True)]
    indptr = np.append(0, np.cumsum(np.concatenate(counts)))
    first = parts[0][0]
    indices, data = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], first.dtype)
    end = 0
    for (rows, _), own_starts, own_counts in zip(parts, starts, counts, strict=True):
        entries = own_starts, own_counts, rows.indices, rows.data
        end = copy_entries(*map(read_only, entries), end, indices, data)
    return sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1, first.shape[1]))


def encoded(
    encoder: Encoder, rows: CsrRows, dim: int, dtype: Any, n_jobs: int | None, estimator: str
) -> np.ndarray:
    """Return the embeddings of all rows, (n, dim), checked; blank texts are not encoded."""
    name = f"{estimator}: encode of encoder {type(encoder).__name__}"
    n = rows.shape[0]
    at = np.flatnonzero(np.diff(rows.indptr))
    if len(at) == n or not isinstance(rows, TextRows):
        return checked(encoder.encode(encoder_input(rows), n_jobs=n_jobs), name, (n, dim), dtype)
    out = np.zeros((n, dim), dtype)
    if len(at):
        V = encoder.encode(rows.texts[at], n_jobs=n_jobs)
        out[at] = checked(V, name, (len(at), dim), dtype)
    return out


def checked(V: Any, name: str, shape: tuple[int, int], dtype: Any) -> np.ndarray:
    """Return embeddings as an array that kernels read; rows must have norm 1 or 0."""
    if not isinstance(V, np.ndarray) or V.dtype.kind != "f" or V.shape != shape:
        kind = f" {V.dtype}" if isinstance(V, np.ndarray) else ""
        raise ValueError(
            f"{name} must return an array of floats of shape {shape}. Got "
            f"{type(V).__name__}{kind} of shape {np.shape(V)}."
        )
    V = np.ascontiguousarray(V, dtype)
    norms = np.sqrt(np.einsum("ij,ij->i", V, V))
    is_wrong = (norms != 0) & ~(np.abs(norms - 1) <= _ROUNDING)
    if is_wrong.any():
        row = int(is_wrong.argmax())
        advice = "divide rows by their norms."
        if not np.isfinite(norms[row]):
            advice = "values are too large, or training diverged: lower learning_rate."
        raise ValueError(
            f"{name} must return rows of norm 1, or 0 for inputs without features. Got norm "
            f"{norms[row]:g} in row {row}: {advice}"
        )
    return V
