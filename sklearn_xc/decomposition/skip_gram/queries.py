"""Queries of word vectors: vectors, similarities, similar words, analogies."""

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._input.arguments import check_count
from sklearn_xc.decomposition.skip_gram.nearest import nearest_rows, pair_cosines
from sklearn_xc.decomposition.skip_gram.word_arrays import (
    as_words,
    known_rows,
    positions,
    require_known,
)

_HANDLE_UNKNOWN = ("error", "zero")


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
        name = f"{self._ask('transform')}: words"
        handle_unknown = getattr(self, "handle_unknown", "error")
        if handle_unknown not in _HANDLE_UNKNOWN:
            raise ValueError(
                f"{type(self).__name__}: handle_unknown must be one of {_HANDLE_UNKNOWN}. "
                f"Got {handle_unknown!r}."
            )
        array = as_words(words, name)
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim != 1:
            raise ValueError(f"{name} must have shape (n,) or (n, 1). Got shape {array.shape}.")
        if handle_unknown == "error":
            advice = ' handle_unknown="zero" gives other ones zeros.'
            return self.vectors_[require_known(self._places(), array, name, advice)]
        rows = known_rows(self._places(), array)
        vectors = np.zeros((len(rows), self.vectors_.shape[1]), self.vectors_.dtype)
        vectors[rows >= 0] = self.vectors_[rows[rows >= 0]]
        return vectors

    def similarity(self, a: Any, b: Any) -> Any:
        """Return the cosine of the vectors of two words, or of each pair of them.

        Parameters
        ----------
        a, b : str or array-like of str of shape (n,)
            Known words. If one of the two is a single word, it is compared with each of the
            others.

        Returns
        -------
        float, or ndarray of float64 of shape (n,)
            In [-1, 1]; 0 if a vector is zero.

        Raises
        ------
        ValueError
            For unknown words, whatever ``handle_unknown`` is, and for different lengths.
        TypeError
            For entries that are not strings.
        NotFittedError
            Before ``fit``.

        Examples
        --------
        >>> from sklearn_xc import DecompMIPSSkipGram
        >>> sentences = [["red", "apple"], ["red", "cherry"], ["grey", "cat"], ["grey", "dog"]] * 50
        >>> model = DecompMIPSSkipGram(4, subsample=None, vectors="input", random_state=0)
        >>> model = model.fit(sentences)
        >>> model.similarity("apple", ["cherry", "cat"]) > 0.9
        array([ True, False])
        """
        rows, is_single = self._rows_of("similarity", a=a, b=b)
        cosines = pair_cosines(self.vectors_, rows[:, 0], rows[:, 1])
        return float(cosines[0]) if is_single else cosines

    def most_similar(
        self, words: Any = None, k: int = 10, *, positive: Any = None, negative: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the words whose vectors have the largest cosines with those of given words.

        Cosines are taken either with each of `words`, or with one sum: the unit vectors of the
        `positive` words minus those of the `negative` ones. The given words are not among the
        answers.

        Parameters
        ----------
        words : str or array-like of str of shape (n,), default=None
            Known words.
        k : int, default=10
            Number of similar words; fewer are returned if there are no more.
        positive, negative : str or array-like of str of shape (n_terms,), default=None
            Known words to add and to subtract, instead of `words`.

        Returns
        -------
        similar : ndarray of str of shape (k,) or (n, k)
            Most similar first; ties go to the word that comes first in ``words_``. One row for each
            of several `words`.
        cosines : ndarray of float64 of shape (k,) or (n, k)
            In [-1, 1]; 0 if a vector is zero.

        Raises
        ------
        ValueError
            For unknown words, whatever ``handle_unknown`` is, if `k` is not a positive integer,
            and if neither or both of `words` and terms are given.
        TypeError
            For entries that are not strings.
        NotFittedError
            Before ``fit``.

        Examples
        --------
        >>> from sklearn_xc import DecompMIPSSkipGram
        >>> sentences = [["red", "apple"], ["red", "cherry"], ["grey", "cat"], ["grey", "dog"]] * 50
        >>> model = DecompMIPSSkipGram(4, subsample=None, vectors="input", random_state=0)
        >>> model = model.fit(sentences)
        >>> words, cosines = model.most_similar(["apple", "dog"], k=1)
        >>> words.tolist()
        [['cherry'], ['cat']]
        >>> model.most_similar(positive="cat", negative="red", k=1)[0].tolist()
        ['dog']
        """
        who = self._ask("most_similar")
        k = check_count(k, f"{who}: k")
        if (words is None) == (positive is None and negative is None):
            raise ValueError(
                f"{who}: either words or positive and negative must be given. Got "
                f"{'neither' if words is None else 'both'}."
            )
        if words is not None:
            rows, is_single = self._rows_of("most_similar", words=words)
            return self._nearest(rows, np.ones(1), k, is_single)
        signs, parts = [], []
        for name, sign, given in (("positive", 1.0, positive), ("negative", -1.0, negative)):
            if given is not None:
                parts.append(self._rows_of("most_similar", **{name: given})[0][:, 0])
                signs += [sign] * len(parts[-1])
        if not signs:
            raise ValueError(f"{who}: positive and negative must name a word. Got none.")
        return self._nearest(np.concatenate(parts)[None], np.array(signs), k, is_single=True)

    def analogy(self, a: Any, b: Any, c: Any, k: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Return the words that are to `c` as `b` is to `a`.

        These are the words w, other than these three, with the largest cos(w, b) - cos(w, a) +
        cos(w, c), which is called 3CosAdd.

        Parameters
        ----------
        a, b, c : str or array-like of str of shape (n,)
            Known words. A single word is used with each of several others.
        k : int, default=1
            Number of words; fewer are returned if there are no more.

        Returns
        -------
        answers : ndarray of str of shape (k,) or (n, k)
            Best first; ties go to the word that comes first in ``words_``.
        cosines : ndarray of float64 of shape (k,) or (n, k)
            With b - a + c, all three as unit vectors. In [-1, 1]; 0 if a vector is zero.

        Raises
        ------
        ValueError
            For unknown words, whatever ``handle_unknown`` is, for different lengths, and if `k` is
            not a positive integer.
        TypeError
            For entries that are not strings.
        NotFittedError
            Before ``fit``.

        Notes
        -----
        Source: [1]_, where the words of the question are left out in the same way.

        References
        ----------
        .. [1] O. Levy and Y. Goldberg, "Linguistic Regularities in Sparse and Explicit Word
           Representations", CoNLL 2014.

        Examples
        --------
        Words seen beside he, she, crown and street:

        >>> import numpy as np
        >>> from sklearn_xc import DecompMIPSSkipGram
        >>> words = ["man", "boy", "woman", "girl", "king", "queen"]
        >>> counts = np.array([[6, 0, 0, 4], [0, 6, 0, 4]])[[0, 0, 1, 1, 0, 1]]
        >>> counts[4:, 2:] = [4, 0]
        >>> model = DecompMIPSSkipGram(3, vectors="input", random_state=0)
        >>> model = model.fit(counts, words=words, contexts=["he", "she", "crown", "street"])
        >>> model.analogy("man", "woman", "king")[0].tolist()
        ['queen']
        """
        k = check_count(k, f"{self._ask('analogy')}: k")
        rows, is_single = self._rows_of("analogy", a=a, b=b, c=c)
        return self._nearest(rows, np.array([-1.0, 1.0, 1.0]), k, is_single)

    def _places(self) -> dict[str, int]:
        """Return the position of each word, made once for ``words_``."""
        found = self.__dict__.get("_positions")
        if found is None or found[0] is not self.words_:
            self.__dict__["_positions"] = found = self.words_, positions(self.words_)
        return found[1]

    def _ask(self, method: str) -> str:
        """Return the beginning of messages; NotFittedError before ``fit``."""
        check_is_fitted(self, "vectors_")
        return f"{type(self).__name__}.{method}"

    def _rows_of(self, method: str, **given: Any) -> tuple[np.ndarray, bool]:
        """Return the rows of words, (n, number of arguments), and whether each was a single one."""
        who = self._ask(method)
        columns = []
        for name, words in given.items():
            is_word = isinstance(words, str)
            array = np.array([words], object) if is_word else as_words(words, f"{who}: {name}")
            if array.ndim != 1:
                raise ValueError(
                    f"{who}: {name} must be a word or have one dimension. Got shape {array.shape}."
                )
            columns.append(require_known(self._places(), array, f"{who}: {name}"))
        is_single = all(isinstance(words, str) for words in given.values())
        lengths = {
            len(rows)
            for rows, words in zip(columns, given.values(), strict=True)
            if not isinstance(words, str)
        }
        if len(lengths) > 1:
            got = ", ".join(str(len(rows)) for rows in columns)
            raise ValueError(f"{who}: {', '.join(given)} must have equal lengths. Got {got}.")
        n = lengths.pop() if lengths else 1
        return np.stack([np.broadcast_to(rows, n) for rows in columns], axis=1), is_single

    def _nearest(
        self, rows: np.ndarray, signs: np.ndarray, k: int, is_single: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        found, cosines = nearest_rows(self.vectors_, rows, signs, k)
        words = self.words_[found]
        return (words[0], cosines[0]) if is_single else (words, cosines)
