"""Vectors of words that a caller names, and all of them in gensim."""

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._input.arguments import refuse_masks_and_dates
from sklearn_xc._labels.names import did_you_mean, positions_of

#: Unknown words that a message names.
_NAMED = 3


class WordVectors(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Mixin of transformers of words into vectors.

    The estimator has a parameter ``handle_unknown``, and when fitted the two attributes below.

    Attributes
    ----------
    words_ : ndarray of str of shape (n_words,)
        Distinct.
    vectors_ : ndarray of float32 of shape (n_words, dim)
        Finite, C-ordered.
    """

    words_: np.ndarray
    vectors_: np.ndarray
    handle_unknown: str

    @property
    def _n_features_out(self) -> int:
        return int(self.vectors_.shape[1])

    def transform(self, words: Any) -> np.ndarray:
        """Return the vectors of words.

        Parameters
        ----------
        words : array-like of str of shape (n,) or (n, 1)
            A list, an array, a Series, or one column of a data frame.

        Returns
        -------
        ndarray of float32 of shape (n, dim)
            With ``handle_unknown="zero"``, zeros for words that are not in ``words_``.

        Raises
        ------
        ValueError
            For another shape and, with ``handle_unknown="error"``, for unknown words; the message
            names the first few, and similar known words.
        TypeError
            For a single word, and entries that are not strings.
        NotFittedError
            Before ``fit``.

        Examples
        --------
        >>> from sklearn_xc import DecompMIPSSkipGram
        >>> sentences = [["red", "apple"], ["red", "cherry"], ["grey", "cat"], ["grey", "dog"]] * 50
        >>> model = DecompMIPSSkipGram(4, subsample=None, vectors="input", random_state=0)
        >>> model = model.fit(sentences)
        >>> model.transform(["apple", "cat"]).shape
        (2, 4)
        """
        check_is_fitted(self, "vectors_")
        name = f"{type(self).__name__}.transform: words"
        array = _as_words(words, name)
        rows = positions_of(array, self.words_)
        unknown = list(dict.fromkeys(array[rows < 0].tolist()))
        if unknown and self.handle_unknown != "zero":
            got = ", ".join(map(repr, unknown[:_NAMED]))
            if len(unknown) > _NAMED:
                got += f" and {len(unknown) - _NAMED} more"
            raise ValueError(
                f"{name} must be among the {len(self.words_):,} words of the model. "
                f'handle_unknown="zero" gives other ones zeros. Got {got}.'
                f"{did_you_mean(unknown[0], self.words_.tolist())}"
            )
        return np.where(rows[:, None] >= 0, self.vectors_[rows], np.float32(0))

    def to_keyed_vectors(self) -> Any:
        """Return the words and their vectors as ``KeyedVectors`` of gensim.

        These answer which words are similar, complete analogies, and write and read the files of
        word2vec.

        Returns
        -------
        gensim.models.KeyedVectors
            With a copy of ``vectors_``.

        Raises
        ------
        ImportError
            Without gensim: ``pip install gensim``.
        NotFittedError
            Before ``fit``.

        Examples
        --------
        >>> from sklearn_xc import DecompMIPSSkipGram
        >>> sentences = [["red", "apple"], ["red", "cherry"], ["grey", "cat"], ["grey", "dog"]] * 50
        >>> model = DecompMIPSSkipGram(4, subsample=None, vectors="input", random_state=0)
        >>> keyed = model.fit(sentences).to_keyed_vectors()
        >>> keyed.most_similar("apple", topn=1)[0][0]
        'cherry'
        """
        check_is_fitted(self, "vectors_")
        from gensim.models import KeyedVectors

        keyed = KeyedVectors(self._n_features_out)
        keyed.add_vectors(self.words_.tolist(), self.vectors_)
        return keyed


def _as_words(words: Any, name: str) -> np.ndarray:
    """Return an array-like of str as an array of objects of shape (n,); `name` is for messages."""
    refuse_masks_and_dates(words, name)
    if isinstance(words, str):
        raise TypeError(f"{name} must be an array of words. Got the single word {words!r}.")
    array = np.asarray(words, dtype=object)
    for at, word in enumerate(array.ravel().tolist()):
        if not isinstance(word, str):
            raise TypeError(f"{name} must hold texts only. Got {word!r} at entry {at}.")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} must have shape (n,) or (n, 1). Got shape {array.shape}.")
    return array
