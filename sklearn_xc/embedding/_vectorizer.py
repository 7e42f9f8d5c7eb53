"""Rows of features that a vectorizer makes of texts, for what compares words without training."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer

from sklearn_xc._data import CsrRows, as_csr_rows
from sklearn_xc._sparse_input import check_sparse
from sklearn_xc.embedding._rows import readable_rows
from sklearn_xc.embedding._texts import DTYPE

#: What scikit-learn says of texts of which no word is left.
_NO_WORD = ("empty vocabulary", "no terms remain")


def fitted_vectorizer(parameter: Any, texts: np.ndarray, name: str) -> Any | None:
    """Return a vectorizer that has learned the words of texts.

    Parameters
    ----------
    parameter : {"tfidf"}, transformer or None
        A transformer is cloned.
    texts : ndarray of str objects of shape (n,)
        Each is shown once, in alphabetical order: so neither weights nor repeated or moved rows
        change what is learned.
    name : str
        The estimator's, for messages.

    Returns
    -------
    transformer or None
        None if none is wanted, and if no word of the texts is left, as of single letters.
    """
    if parameter is None:
        return None
    default = TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
    vectorizer = default if isinstance(parameter, str) else clone(parameter)
    distinct = np.array(sorted(set(texts)), object)
    try:
        vectorizer.fit(distinct.tolist(), None)
    except ValueError as error:
        if any(said in str(error) for said in _NO_WORD):
            return None
        raise
    has_none = vectorized_rows(vectorizer, distinct[:1], name).shape[1] == 0
    return None if has_none else vectorizer


def vectorized_rows(
    vectorizer: Any, texts: np.ndarray, name: str, n_features: int | None = None
) -> CsrRows:
    """Return the rows of features of texts.

    Parameters
    ----------
    vectorizer : transformer
        Fitted.
    texts : ndarray of str objects of shape (n,)
    name : str
        The estimator's, for messages.
    n_features : int or None
        How many features there must be; None for any number.

    Returns
    -------
    CsrRows of float32 of shape (n, n_features)

    Raises
    ------
    ValueError
        If the vectorizer makes a dense matrix, one of another shape, or values that are not finite,
        no real numbers, or out of range.
    """
    what = f"{name}: vectorizer {type(vectorizer).__name__}"
    made = vectorizer.transform(texts.tolist())
    if not sp.issparse(made):
        shape = f" of shape {tuple(made.shape)}" if hasattr(made, "shape") else ""
        raise ValueError(
            f"{what} must make a sparse matrix, with a row for each text. Got "
            f"{type(made).__name__}{shape}."
        )
    check_sparse(made, what)
    n, d = made.shape
    if n != len(texts) or d >= 2**31 - 1 or n_features not in (None, d):
        features = "less than 2**31 - 1" if n_features is None else f"{n_features}"
        raise ValueError(
            f"{what} must make {len(texts)} rows of {len(texts)} texts, of {features} features. "
            f"Got shape {tuple(made.shape)}."
        )
    if made.dtype.kind not in "biuf":
        raise ValueError(f"{what} must make real numbers. Got dtype {made.dtype}.")
    if made.dtype.kind != "f":
        made = made.astype(np.float64)
    rows = as_csr_rows(sp.csr_array(made))
    if not np.isfinite(rows.data).all():
        raise ValueError(f"{what} must make finite numbers. Got NaN or infinity.")
    return readable_rows(rows, what, is_training=False, dtype=DTYPE)


def is_vectorizer(vectorizer: Any, require: Callable[[str, int], bool]) -> bool:
    """Return whether this can be a vectorizer that makes the features of a model; see `Tested`."""
    words = getattr(vectorizer, "vocabulary_", None)
    has_words = not isinstance(words, dict) or require("features", len(words))
    return has_words and hasattr(vectorizer, "transform")
