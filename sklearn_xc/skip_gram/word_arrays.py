"""Words and their vectors as arrays, checked; and where a word stands among others."""

import weakref
from itertools import repeat
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._arguments import refuse_disguised
from sklearn_xc._near_names import did_you_mean

#: Values that are looked at together.
_PIECE = 2**20
#: Unknown words that a message names.
_NAMED = 3
#: The look-up table of each array of words that is alive.
_tables: dict[int, tuple[Any, dict[str, int]]] = {}


def as_words(words: Any, name: str) -> np.ndarray:
    """Return words as an array of objects, all of them texts.

    Parameters
    ----------
    words : array-like of str, of any shape
        A list, an array, a Series or a data frame.
    name : str
        The argument's name for the message.

    Raises
    ------
    TypeError
        For a single word, what is no array, and entries that are no texts.
    """
    if isinstance(words, str | bytes):
        raise TypeError(f"{name} must be an array of words. Got the single word {words!r}.")
    refuse_disguised(words, name)
    if sp.issparse(words) or not hasattr(words, "__len__") or isinstance(words, set | dict):
        raise TypeError(f"{name} must be an array of words. Got {type(words).__name__}.")
    array = np.asarray(words, dtype=object)
    for at, word in enumerate(array.ravel().tolist()):
        if not isinstance(word, str):
            raise TypeError(f"{name} must hold texts only. Got {word!r} at entry {at}.")
    return array


def as_distinct_words(words: Any, name: str) -> np.ndarray:
    """Return distinct words, none of them empty, as an array of objects of shape (n_words,).

    Raises
    ------
    TypeError
        As ``as_words``.
    ValueError
        For another number of dimensions, an empty word, and one that is there twice.
    """
    array = as_words(words, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension. Got shape {array.shape}.")
    places: dict[str, int] = {}
    for at, word in enumerate(array.tolist()):
        if not word:
            raise ValueError(f"{name} must not be empty. Got an empty word at entry {at}.")
        first = places.setdefault(word, at)
        if first != at:
            raise ValueError(f"{name} must be distinct. Got {word!r} at entries {first} and {at}.")
    return array


def as_vectors(vectors: Any, n_words: int, name: str) -> np.ndarray:
    """Return finite vectors as a C-ordered float32 array of shape (n_words, dim).

    Raises
    ------
    TypeError
        For what is no dense array of real numbers.
    ValueError
        For other shapes, no dimension, and values that are not finite in float32.
    """
    refuse_disguised(vectors, name)
    expected = f"{name} must be an array of real numbers of shape ({n_words}, dim)"
    if sp.issparse(vectors):
        raise TypeError(f"{expected}. Got a sparse matrix.")
    try:
        array = np.asarray(vectors)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"{expected}. Got rows of different lengths.") from error
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{expected}. Got dtype {array.dtype}.")
    if array.ndim != 2 or len(array) != n_words or array.shape[1] < 1:
        raise ValueError(f"{expected}. Got shape {array.shape}.")
    with np.errstate(over="ignore"):
        result = np.ascontiguousarray(array, dtype=np.float32)
    at = first_not_finite(result)
    if at is not None:
        raise ValueError(
            f"{name} must be finite in float32. Got {array[at]} in row {at[0]}, column {at[1]}."
        )
    return result


def first_not_finite(vectors: np.ndarray) -> tuple[int, int] | None:
    """Return row and column of the first value that is not finite, or None if all are."""
    step = max(1, _PIECE // max(1, vectors.shape[1]))
    for first in range(0, len(vectors), step):
        finite = np.isfinite(vectors[first : first + step])
        if not finite.all():
            row, column = divmod(int(np.argmin(finite)), vectors.shape[1])
            return first + row, column
    return None


def known_rows(known: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Return where each word stands among the known ones, -1 where it is none of them.

    Parameters
    ----------
    known : ndarray of str of shape (n_words,)
        Distinct, and not changed while the array lives: a table of them is kept as long.
    words : ndarray of object, of any shape

    Returns
    -------
    ndarray of int64 of the shape of `words`
    """
    table = _table_of(known)
    found = map(table.get, words.ravel().tolist(), repeat(-1))
    return np.fromiter(found, np.int64, words.size).reshape(words.shape)


def require_known(known: np.ndarray, words: np.ndarray, name: str, advice: str = "") -> np.ndarray:
    """Return where each word stands among the known ones.

    Parameters
    ----------
    known, words
        As in ``known_rows``.
    name : str
        The argument's name for the message.
    advice : str
        A sentence with a space before it, for the message.

    Raises
    ------
    ValueError
        If one is none of them; the message names the first few, and what they may have meant.
    """
    rows = known_rows(known, words)
    missing = np.flatnonzero(rows.ravel() < 0)
    if not missing.size:
        return rows
    unknown = list(dict.fromkeys(words.ravel()[missing].tolist()))
    named, names = unknown[:_NAMED], known.tolist()
    got = ", ".join(map(repr, named))
    if len(unknown) > len(named):
        got += f" and {len(unknown) - len(named)} more"
    hints = [did_you_mean(word, names) for word in named]
    near = [hint.removeprefix(" Did you mean ").removesuffix("?") for hint in hints if hint]
    hint = f" Did you mean {', '.join(dict.fromkeys(near))}?" if near else ""
    raise ValueError(
        f"{name} must be among the {len(known):,} words of the model.{advice} Got {got}.{hint}"
    )


def _table_of(known: np.ndarray) -> dict[str, int]:
    """Return the number of each word; made once for each array."""
    key = id(known)
    found = _tables.get(key)
    if found is not None and found[0]() is known:
        return found[1]
    table = {word: row for row, word in enumerate(known.tolist())}

    def forget(reference: Any) -> None:
        if _tables.get(key, (None,))[0] is reference:
            _tables.pop(key, None)

    _tables[key] = weakref.ref(known, forget), table
    return table
