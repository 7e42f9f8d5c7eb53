"""Queries of word vectors: vectors, similarities, similar words, analogies."""

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._input.arguments import check_count, refuse_masks_and_dates
from sklearn_xc._labels.names import did_you_mean
from sklearn_xc.search import ExactIndex

#: Unknown words that a message names.
_NAMED = 3
#: Unit vectors that cancel leave a rest below this, per vector.
_CANCELLED = 1e-15


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
        name = f"{self._ask('transform')}: words"
        array = as_words(words, name)
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim != 1:
            raise ValueError(f"{name} must have shape (n,) or (n, 1). Got shape {array.shape}.")
        if self.handle_unknown != "zero":
            advice = ' handle_unknown="zero" gives other ones zeros.'
            return self.vectors_[require_known(self._places(), array, name, advice)]
        rows = known_rows(self._places(), array)
        return np.where(rows[:, None] >= 0, self.vectors_[rows], np.float32(0))

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
        a, b = (_units(self.vectors_[column]) for column in rows.T)
        cosines = (a * b).sum(axis=1).clip(-1.0, 1.0)
        return float(cosines[0]) if is_single else cosines

    def most_similar(self, words: Any, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
        """Return the words whose vectors have the largest cosines with those of given words.

        Parameters
        ----------
        words : str or array-like of str of shape (n,)
            Known words; a word is not among its own answers.
        k : int, default=10
            Number of similar words; fewer are returned if there are no more.

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
            For unknown words, whatever ``handle_unknown`` is, and if `k` is not a positive
            integer.
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
        """
        k = check_count(k, f"{self._ask('most_similar')}: k")
        rows, is_single = self._rows_of("most_similar", words=words)
        return self._nearest(rows, np.ones(1), k, is_single)

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
        Words seen near he, she, crown and street:

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
        found = self.__dict__.get("_search_index")  # left out of saved state
        if found is None or found[0] is not self.words_:
            table = {word: row for row, word in enumerate(self.words_.tolist())}
            self.__dict__["_search_index"] = found = self.words_, table
        return found[1]

    def _ask(self, method: str) -> str:
        """Return the beginning of messages; NotFittedError before ``fit``."""
        check_is_fitted(self, "vectors_")
        return f"{type(self).__name__}.{method}"

    def _rows_of(self, method: str, **given: Any) -> tuple[np.ndarray, bool]:
        """Return the rows of words, (n, number of arguments), and whether each was a single one."""
        caller = self._ask(method)
        columns = []
        for name, words in given.items():
            array = as_words([words] if isinstance(words, str) else words, f"{caller}: {name}")
            if array.ndim != 1:
                raise ValueError(
                    f"{caller}: {name} must be a word or have one dimension. Got shape "
                    f"{array.shape}."
                )
            columns.append(require_known(self._places(), array, f"{caller}: {name}"))
        if len({len(column) for column in columns} - {1}) > 1:
            got = ", ".join(str(len(column)) for column in columns)
            raise ValueError(f"{caller}: {', '.join(given)} must have equal lengths. Got {got}.")
        rows = np.stack(np.broadcast_arrays(*columns), axis=1)
        return rows, all(isinstance(words, str) for words in given.values())

    def _nearest(
        self, rows: np.ndarray, signs: np.ndarray, k: int, is_single: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the words nearest to sums of unit vectors, and their cosines, largest first.

        `rows`, (n, n_terms), are the terms of each sum, which are not among its answers; `signs`
        are 1 to add a term, -1 to subtract it. Ties go to the smaller row.
        """
        units = _units(self.vectors_)
        n_terms = rows.shape[1]
        sums = np.einsum("t,itj->ij", signs, units[rows])
        sums[np.abs(sums).max(axis=1, initial=0.0) < _CANCELLED * n_terms] = 0.0
        index = ExactIndex()
        index.build(units)
        found = index.query(_units(sums), min(len(units), k + n_terms))
        is_term = (found.labels[:, :, None] == rows[:, None]).any(axis=2)
        width = max(0, min(k, found.labels.shape[1] - int(is_term.sum(axis=1).max(initial=0))))
        kept = np.argsort(is_term, axis=1, kind="stable")[:, :width]
        nearest, cosines = (np.take_along_axis(one, kept, axis=1) for one in found[:2])
        words, cosines = self.words_[nearest], cosines.clip(-1.0, 1.0)
        return (words[0], cosines[0]) if is_single else (words, cosines)


def _units(vectors: np.ndarray) -> np.ndarray:
    """Return rows of norm 1 in float64; zeros stay zeros."""
    rows = vectors.astype(np.float64)
    norms = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    rows /= np.where(norms > 0, norms, 1.0)
    return rows


# Words and vectors that a caller passes


def as_words(words: Any, name: str) -> np.ndarray:
    """Return an array-like of str, of any shape, as an array of objects; `name` is for messages."""
    refuse_masks_and_dates(words, name)
    if isinstance(words, str):
        raise TypeError(f"{name} must be an array of words. Got the single word {words!r}.")
    array = np.asarray(words, dtype=object)
    for at, word in enumerate(array.ravel().tolist()):
        if not isinstance(word, str):
            raise TypeError(f"{name} must hold texts only. Got {word!r} at entry {at}.")
    return array


def as_distinct_words(words: Any, name: str) -> np.ndarray:
    """Return words, distinct and not empty, as an array of objects of shape (n_words,)."""
    array = as_words(words, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension. Got shape {array.shape}.")
    places: dict[str, int] = {}
    for at, word in enumerate(array.tolist()):
        if not word or places.setdefault(word, at) != at:
            raise ValueError(f"{name} must be distinct, none empty. Got {word!r} at entry {at}.")
    return array


def as_vectors(vectors: Any, n_words: int, name: str) -> np.ndarray:
    """Return vectors as a C-ordered float32 array of shape (n_words, dim), all finite."""
    refuse_masks_and_dates(vectors, name)
    expected = f"{name} must be an array of real numbers of shape ({n_words}, dim)"
    try:
        array = np.asarray(vectors)
    except ValueError as error:
        raise ValueError(f"{expected}. Got rows of different lengths.") from error
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{expected}. Got dtype {array.dtype}.")
    if array.ndim != 2 or len(array) != n_words or array.shape[1] < 1:
        raise ValueError(f"{expected}. Got shape {array.shape}.")
    with np.errstate(over="ignore"):
        result = np.ascontiguousarray(array, dtype=np.float32)
    wrong = np.flatnonzero(~np.isfinite(result).all(axis=1))
    if wrong.size:
        raise ValueError(
            f"{name} must be finite in float32. Got {array[wrong[0]]} in row {wrong[0]}."
        )
    return result


def known_rows(known: dict[str, int], words: np.ndarray) -> np.ndarray:
    """Return the positions of words, -1 for those that are not known."""
    return np.array([known.get(word, -1) for word in words.tolist()], np.int64)


def require_known(
    known: dict[str, int], words: np.ndarray, name: str, advice: str = ""
) -> np.ndarray:
    """Return the positions of words; ValueError, with similar known words, if one is unknown."""
    rows = known_rows(known, words)
    missing = np.flatnonzero(rows < 0)
    if not missing.size:
        return rows
    unknown = list(dict.fromkeys(words[missing].tolist()))
    got = ", ".join(map(repr, unknown[:_NAMED]))
    hint = did_you_mean(unknown[0], list(known))
    if len(unknown) > _NAMED:
        got += f" and {len(unknown) - _NAMED} more"
    raise ValueError(
        f"{name} must be among the {len(known):,} words of the model.{advice} Got {got}.{hint}"
    )
