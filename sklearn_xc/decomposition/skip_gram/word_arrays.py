"""Words and their vectors as validated arrays, and the positions of words among others."""

from itertools import repeat
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.arguments import refuse_disguised
from sklearn_xc._labels.near_names import did_you_mean

#: Unknown words that a message names.
_NAMED = 3


def as_words(words: Any, name: str) -> np.ndarray:
    """Return an array-like of str, of any shape, as an array of objects; `name` is for messages."""
    refuse_disguised(words, name)
    is_array = hasattr(words, "__len__") and not isinstance(words, str | bytes | set | dict)
    if sp.issparse(words) or not is_array:
        got = (
            f"the single word {words!r}" if isinstance(words, str | bytes) else type(words).__name__
        )
        raise TypeError(f"{name} must be an array of words. Got {got}.")
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
        if not word:
            raise ValueError(f"{name} must not be empty. Got an empty word at entry {at}.")
        first = places.setdefault(word, at)
        if first != at:
            raise ValueError(f"{name} must be distinct. Got {word!r} at entries {first} and {at}.")
    return array


def as_vectors(vectors: Any, n_words: int, name: str) -> np.ndarray:
    """Return vectors as a C-ordered float32 array of shape (n_words, dim), all finite."""
    refuse_disguised(vectors, name)
    expected = f"{name} must be an array of real numbers of shape ({n_words}, dim)"
    if sp.issparse(vectors):
        raise TypeError(f"{expected}. Got a sparse matrix.")
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


def known_rows(known: np.ndarray | dict[str, int], words: np.ndarray) -> np.ndarray:
    """Return the positions of words among the known ones, -1 for others, in the shape of `words`.

    `known` is an array of distinct words, or their ``positions``.
    """
    table = known if isinstance(known, dict) else positions(known)
    found = map(table.get, words.ravel().tolist(), repeat(-1))
    return np.fromiter(found, np.int64, words.size).reshape(words.shape)


def positions(known: np.ndarray) -> dict[str, int]:
    """Return the position of each word."""
    return {word: row for row, word in enumerate(known.tolist())}


def require_known(
    known: dict[str, int], words: np.ndarray, name: str, advice: str = ""
) -> np.ndarray:
    """Return the positions of words; ValueError, with similar known words, if one is unknown."""
    rows = known_rows(known, words)
    missing = np.flatnonzero(rows.ravel() < 0)
    if not missing.size:
        return rows
    unknown = list(dict.fromkeys(words.ravel()[missing].tolist()))
    got, hint = ", ".join(map(repr, unknown[:_NAMED])), did_you_mean(unknown[0], list(known))
    if len(unknown) > _NAMED:
        got += f" and {len(unknown) - _NAMED} more"
    raise ValueError(
        f"{name} must be among the {len(known):,} words of the model.{advice} Got {got}.{hint}"
    )
