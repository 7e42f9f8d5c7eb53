"""Instances and labels that are texts, for encoders that read texts."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._data import CsrRows

#: Of the embeddings of texts.
DTYPE = np.dtype(np.float32)


@dataclass(frozen=True)
class TextRows(CsrRows):
    """Texts, and for all that looks at rows of features: one feature, which a text has if any.

    Attributes
    ----------
    texts : ndarray of str objects of shape (n,)
        An empty one is a row without features.
    """

    texts: np.ndarray

    @classmethod
    def of(cls, texts: np.ndarray) -> "TextRows":
        """Return the rows of some texts."""
        has_text = texts != ""
        indptr = np.append(0, np.cumsum(has_text)).astype(np.int64)
        n_texts = int(indptr[-1])
        zeros, ones = np.zeros(n_texts, np.int32), np.ones(n_texts, DTYPE)
        return cls(indptr, zeros, ones, (len(texts), 1), texts)

    def take(self, rows: np.ndarray, empty: Callable[..., np.ndarray] = np.empty) -> "TextRows":
        """Return some of the rows."""
        return TextRows.of(self.texts[rows])

    def hashes(self) -> np.ndarray:
        """Return a hash of each text, uint64 of shape (n, 2): equal texts have equal ones."""
        out = np.empty((len(self.texts), 2), np.uint64)
        for i, text in enumerate(self.texts):
            digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
            out[i] = np.frombuffer(digest, "<u8")
        return out


def content_of(rows: CsrRows) -> tuple[np.ndarray, ...]:
    """Return the arrays that tell rows, of features or of texts, from others."""
    if isinstance(rows, TextRows):
        return (rows.texts,)
    return *rows.arrays, np.array(rows.shape)


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
    is_sequence = hasattr(X, "__len__") and hasattr(X, "__iter__")
    is_flat = is_sequence and not sp.issparse(X) and getattr(X, "ndim", 1) == 1
    if not is_flat or isinstance(X, str | bytes | dict | set):
        shape = f" of shape {tuple(X.shape)}" if hasattr(X, "shape") else ""
        raise ValueError(
            f"{name} must be a sequence of texts, which the encoder reads: pass texts, or "
            f"encoder='bag' for a matrix of features. Got {type(X).__name__}{shape}."
        )
    texts = list(X)
    if not texts:
        raise ValueError(f"{name} must have at least one text. Got 0 sample(s).")
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"{name} must be a sequence of texts. Got {text!r} at position {i}.")
    out = np.empty(len(texts), object)
    out[:] = [str(text) for text in texts]  # numpy's become Python's
    return TextRows.of(out)
