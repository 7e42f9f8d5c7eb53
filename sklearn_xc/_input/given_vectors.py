"""Vectors of features that the user has, such as those of words, where training starts from."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.arguments import refuse_disguised

#: Words and features that a message names.
_NAMED = 3
#: What a message says of how to get an array.
_AS_ARRAY = (
    "vectors.transform(vectorizer.get_feature_names_out()), with handle_unknown='zero', makes the "
    "array"
)


@dataclass(frozen=True)
class GivenVectors:
    """Vectors of features, or of words that features may be.

    Attributes
    ----------
    who : str
        How messages name the argument, such as "DecompMIPSClassifier: embedding_init".
    words : list of str or None
        None if there is a vector for each feature.
    values : ndarray of shape (n_features, dim) or (n_words, dim)
        Finite numbers, as they were given.
    """

    who: str
    words: list[str] | None
    values: np.ndarray

    @classmethod
    def read(cls, given: Any, who: str) -> "GivenVectors":
        """Return what was given.

        Parameters
        ----------
        given : array-like of shape (n_features, dim), fitted word vectors, or tuple
            Word vectors have ``words_`` and ``vectors_``; a tuple has words and vectors.
        who : str

        Raises
        ------
        TypeError, ValueError
            For anything else, and what is not finite.
        """
        words = None
        if isinstance(given, tuple) and len(given) == 2:
            words, values = given
        elif hasattr(given, "words_") and hasattr(given, "vectors_"):
            words, values = given.words_, given.vectors_
        elif hasattr(given, "fit") or hasattr(given, "get_params"):
            raise ValueError(
                f"{who} must be fitted word vectors, with words_ and vectors_. Got "
                f"{type(given).__name__} without: fit it, and as clones are not fitted, pass "
                "(model.words_, model.vectors_)."
            )
        else:
            values = given
        values = _checked(values, who)
        if words is not None:
            words = _texts(words, who)
            if len(words) != len(values):
                raise ValueError(
                    f"{who} must have a vector for each word. Got {len(words)} words and "
                    f"{len(values)} vectors."
                )
        return cls(who, words, values)

    @property
    def dim(self) -> int:
        """Return the dimension of the vectors."""
        return int(self.values.shape[1])

    def replace(self, vectors: np.ndarray, names: Any, norm: float) -> np.ndarray:
        """Put the given vectors in place of those of their features.

        Parameters
        ----------
        vectors : ndarray of float of shape (n_features, dim)
            Changed in place.
        names : array-like of str of shape (n_features,) or None
            What features are called, if that is known.
        norm : float
            What given vectors are scaled to have as root mean square of their norms.

        Returns
        -------
        ndarray of bool of shape (n_features,)
            Which features have one, none of zeros.

        Raises
        ------
        ValueError
            As ``of_features``, and for another dimension.
        """
        n_features, dim = vectors.shape
        if self.dim != dim:
            raise ValueError(
                f"{self.who} must have vectors of the dimension of the embedding, {dim}. Got "
                f"{self.dim}: set embedding_dim={self.dim}."
            )
        found = self.of_features(n_features, names, vectors.dtype)
        has_vector = np.asarray(found.any(axis=1))
        largest = np.abs(found).max()  # squares of large numbers overflow
        found /= largest
        squares = np.einsum("ij,ij->i", found, found)[has_vector].mean(dtype=np.float64)
        found *= vectors.dtype.type(norm / np.sqrt(squares))
        vectors[has_vector] = found[has_vector]
        return has_vector

    def of_features(self, n_features: int, names: Any, dtype: Any) -> np.ndarray:
        """Return a vector for each feature, zeros for features without one.

        Parameters
        ----------
        n_features : int
        names : array-like of str of shape (n_features,) or None
        dtype : dtype
            Of the answer.

        Returns
        -------
        ndarray of `dtype` of shape (n_features, dim)

        Raises
        ------
        ValueError
            For another number of features, words of features without names, if no feature has a
            vector, and for numbers beyond the dtype.
        """
        who, words = self.who, self.words
        if words is None:
            if len(self.values) != n_features:
                raise ValueError(
                    f"{who} must have a row for each of {n_features} features. Got an array of "
                    f"shape {self.values.shape}."
                )
            with np.errstate(over="ignore"):
                found = self.values.astype(dtype)
        else:
            found = self._of_names(n_features, names, words, dtype)
        if not np.isfinite(found).all():
            raise ValueError(
                f"{who} must be finite in {np.dtype(dtype).name}, the dtype of X. Got "
                f"{np.abs(self.values).max():g}."
            )
        if not found.any():
            raise ValueError(f"{who} must have vectors that are not 0. Got zeros alone.")
        return found

    def _of_names(self, n_features: int, names: Any, words: list[str], dtype: Any) -> np.ndarray:
        if names is None:
            raise ValueError(
                f"{self.who} has vectors of words, and X does not say what its features are "
                "called. Pass X as a data frame with names, or an array of shape "
                f"({n_features}, {self.dim}): {_AS_ARRAY}."
            )
        places = {word: at for at, word in enumerate(words)}
        rows = np.array([places.get(name, -1) for name in np.asarray(names).tolist()], np.int64)
        if not (rows >= 0).any():
            some, of_features = (", ".join(map(repr, list(all_)[:_NAMED]))
                                 for all_ in (words, np.asarray(names).tolist()))  # fmt: skip
            raise ValueError(
                f"{self.who} must have words that are names of features. Got none: words are "
                f"{some} ..., features {of_features} ..."
            )
        found = np.zeros((n_features, self.dim), dtype)
        with np.errstate(over="ignore"):
            found[rows >= 0] = self.values[rows[rows >= 0]]
        return found


def _checked(values: Any, who: str) -> np.ndarray:
    refuse_disguised(values, who)
    expected = (
        "an array of shape (n_features, dim), fitted word vectors, or a tuple of words and their "
        "vectors"
    )
    if sp.issparse(values) or isinstance(values, str | bytes):
        got = repr(values) if isinstance(values, str | bytes) else type(values).__name__
        raise TypeError(f"{who} must be {expected}. Got {got}.")
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:  # rows of different lengths
        raise ValueError(f"{who} must be {expected}. Got rows of different lengths.") from error
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{who} must be {expected}. Got {type(values).__name__} of {array.dtype}.")
    if array.ndim != 2 or array.shape[1] == 0:
        got = f"an array of shape {array.shape}" if array.ndim else repr(values)
        raise ValueError(f"{who} must be {expected}. Got {got}.")
    is_finite = np.isfinite(array).all(axis=1)
    if not is_finite.all():
        raise ValueError(f"{who} must be finite. Got NaN or infinity in row {is_finite.argmin()}.")
    return array


def _texts(words: Any, who: str) -> list[str]:
    texts = words if isinstance(words, str | bytes) else np.asarray(words, object)
    if isinstance(texts, str | bytes) or texts.ndim != 1:
        raise TypeError(f"{who} must have a list of words beside the vectors. Got {words!r}.")
    found = texts.tolist()
    for at, word in enumerate(found):
        if not isinstance(word, str):
            raise TypeError(f"{who} must have words that are texts. Got {word!r} at entry {at}.")
    return found
