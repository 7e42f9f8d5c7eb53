"""Instances and labels that are texts, for encoders that read texts, and features beside them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._data import CsrRows
from sklearn_xc._declared_state import Record, declares
from sklearn_xc._distinct import hash_instances, hash_texts
from sklearn_xc._texts_with_features import as_texts, is_sequence

#: Of the embeddings of texts.
DTYPE = np.dtype(np.float32)


@declares(features=Record("CsrRows", optional=True, rows="rows"))
@dataclass(frozen=True)
class TextRows(CsrRows):
    """Texts, and for all that asks if a row is empty: one feature, which a text has if any.

    Attributes
    ----------
    texts : ndarray of str objects of shape (n,)
        One that is empty, or all white space, is a row without features.
    features : CsrRows of float32 of shape (n, n_features), or None
        Features that stand beside them; None where there are none, or none yet.
    """

    texts: np.ndarray
    features: CsrRows | None = None

    @classmethod
    def of(cls, texts: np.ndarray, features: CsrRows | None = None) -> "TextRows":
        """Return the rows of some texts, and of features beside them."""
        has_text = np.array([bool(text) and not text.isspace() for text in texts], bool)
        indptr = np.append(0, np.cumsum(has_text)).astype(np.int64)
        n_texts = int(indptr[-1])
        zeros, ones = np.zeros(n_texts, np.int32), np.ones(n_texts, DTYPE)
        return cls(indptr, zeros, ones, (len(texts), 1), texts, features)

    def take(self, rows: np.ndarray, empty: Callable[..., np.ndarray] = np.empty) -> "TextRows":
        """Return some of the rows."""
        features = None if self.features is None else self.features.take(rows, empty)
        return TextRows.of(self.texts[rows], features)

    def hashes(self) -> np.ndarray:
        """Return a hash of each row: equal texts with equal features have equal ones.

        Returns
        -------
        ndarray of uint64 of shape (n, 2), or (n, 4) with features
        """
        out = hash_texts(self.texts)
        if self.features is None:
            return out
        # The last column orders first: features that follow from texts change no order.
        return np.column_stack([hash_instances(self.features), out])


def features_beside(rows: CsrRows) -> CsrRows | None:
    """Return the features of rows: themselves, or what stands beside texts, or None."""
    return rows.features if isinstance(rows, TextRows) else rows


def n_values(rows: CsrRows) -> int:
    """Return how many values rows hold, those of features beside texts included."""
    beside = rows.features if isinstance(rows, TextRows) else None
    return len(rows.data) + (0 if beside is None else len(beside.data))


def is_described(rows: CsrRows) -> np.ndarray:
    """Return which rows have a feature or a text, bool of shape (n,)."""
    features = features_beside(rows)
    has_text = np.diff(rows.indptr) > 0
    return has_text if features is None else has_text | (np.diff(features.indptr) > 0)


def content_of(rows: CsrRows) -> tuple[np.ndarray, ...]:
    """Return the arrays that tell rows, of features or of texts, from others."""
    if not isinstance(rows, TextRows):
        return *rows.arrays, np.array(rows.shape)
    return rows.texts, *(() if rows.features is None else content_of(rows.features))


def looks_like_texts(X: Any) -> bool:
    """Return whether this is a sequence of texts, and no matrix, as far as its start tells."""
    if sp.issparse(X) or getattr(X, "ndim", 1) != 1 or not hasattr(X, "__len__"):
        return False
    return len(X) > 0 and isinstance(next(iter(X)), str)


def text_rows(X: Any, name: str) -> TextRows:
    """Return a sequence of texts as rows.

    Parameters
    ----------
    X : array-like of str of shape (n,)
        A list, a tuple, an array or a pandas Series.
    name : str
        The argument's name for messages, with the estimator's before it.

    Raises
    ------
    ValueError
        For what is no sequence of texts, or has none.
    """
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
