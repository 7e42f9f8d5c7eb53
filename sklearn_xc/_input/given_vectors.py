"""User-supplied vectors of features, such as word vectors, that training starts from."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sklearn_xc._input.arguments import refuse_masks_and_dates

#: Number of words and features in a message.
_NAMED = 3


@dataclass(frozen=True)
class GivenVectors:
    """Vectors of features, or of words that features may be.

    Attributes
    ----------
    caller : str
        The argument in messages, such as "DecompMIPSClassifier: embedding_init".
    words : list of str or None
        None if there is a vector for each feature.
    values : ndarray of shape (n_features, dim) or (n_words, dim)
        Finite numbers.
    """

    caller: str
    words: list[str] | None
    values: np.ndarray

    @classmethod
    def read(cls, given: Any, caller: str) -> "GivenVectors":
        """Parse user-supplied vectors.

        Parameters
        ----------
        given : array-like of shape (n_features, dim), fitted word vectors, or tuple
            Word vectors have ``words_`` and ``vectors_``; a tuple has words and vectors.
        caller : str

        Raises
        ------
        TypeError, ValueError
            For anything else, and vectors that are not finite.
        """
        words, values = None, given
        if isinstance(given, tuple) and len(given) == 2:
            words, values = given
        elif hasattr(given, "words_") and hasattr(given, "vectors_"):
            words, values = given.words_, given.vectors_
        expected = (
            f"{caller} must be an array of shape (n_features, dim) of finite numbers, fitted word "
            "vectors, or a tuple of words and their vectors"
        )
        refuse_masks_and_dates(values, caller)
        if hasattr(given, "get_params") and words is None:
            raise ValueError(
                f"{caller} must be fitted word vectors, with words_ and vectors_. Got "
                f"{type(given).__name__} without: fit it, and as clones are not fitted, pass "
                "(model.words_, model.vectors_)."
            )
        try:
            array = np.asarray(values)
        except ValueError as error:
            raise ValueError(f"{expected}. Got rows of different lengths.") from error
        if array.dtype.kind not in "iuf":
            got = repr(values) if isinstance(values, str) else type(values).__name__
            raise TypeError(f"{expected}. Got {got} of {array.dtype}.")
        if array.ndim != 2 or array.shape[1] == 0:
            got = f"an array of shape {array.shape}" if array.ndim else repr(values)
            raise ValueError(f"{expected}. Got {got}.")
        if not np.isfinite(array).all():
            row = np.isfinite(array).all(axis=1).argmin()
            raise ValueError(f"{caller} must be finite. Got NaN or infinity in row {row}.")
        if words is None:
            return cls(caller, None, array)
        if isinstance(words, str) or not all(isinstance(word, str) for word in words):
            raise TypeError(f"{caller} must have a list of texts with the vectors. Got {words!r}.")
        if len(words) != len(array):
            raise ValueError(
                f"{caller} must have a vector for each word. Got {len(words)} words and "
                f"{len(array)} vectors."
            )
        return cls(caller, list(words), array)

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
            Feature names, if known.
        norm : float
            The given vectors are scaled to this root mean square of their norms.

        Returns
        -------
        ndarray of bool of shape (n_features,)
            Which features have a vector other than 0.

        Raises
        ------
        ValueError
            As ``of_features``, and for another dimension.
        """
        n_features, dim = vectors.shape
        if self.dim != dim:
            raise ValueError(
                f"{self.caller} must have vectors of the dimension of the embedding, {dim}. Got "
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
        if self.words is None and len(self.values) != n_features:
            raise ValueError(
                f"{self.caller} must have a row for each of {n_features} features. Got an array of "
                f"shape {self.values.shape}."
            )
        rows = np.arange(n_features) if self.words is None else self._rows_of(names, n_features)
        found = np.zeros((n_features, self.dim), dtype)
        with np.errstate(over="ignore"):
            found[rows >= 0] = self.values[rows[rows >= 0]]
        if not np.isfinite(found).all():
            raise ValueError(
                f"{self.caller} must be finite in {np.dtype(dtype).name}, the dtype of X. Got "
                f"{np.abs(self.values).max():g}."
            )
        if not found.any():
            raise ValueError(f"{self.caller} must have vectors that are not 0. Got zeros alone.")
        return found

    def _rows_of(self, names: Any, n_features: int) -> np.ndarray:
        """Return the row of each feature's vector, -1 for none."""
        if names is None:
            raise ValueError(
                f"{self.caller} has vectors of words, and X does not say what its features are "
                "called. Pass X as a data frame with names, or an array of shape "
                f"({n_features}, {self.dim}), such as vectors.transform(names) with "
                "handle_unknown='zero'."
            )
        names, places = np.asarray(names).tolist(), {w: at for at, w in enumerate(self.words or ())}
        rows = np.array([places.get(name, -1) for name in names], np.int64)
        if not (rows >= 0).any():
            some, of_features = (", ".join(map(repr, own[:_NAMED])) for own in ([*places], names))
            raise ValueError(
                f"{self.caller} must have words that are names of features. Got none: words are "
                f"{some} ..., features {of_features} ..."
            )
        return rows
