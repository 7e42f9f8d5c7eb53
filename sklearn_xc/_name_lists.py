"""Targets as people write them: a list of names for each instance, or names in one text."""

from collections.abc import Container, Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._arguments import refuse_disguised

#: What people put between names, and rarely into them.
_LIKELY_SEPARATORS = (";", "|")
#: What they put between names and into them: likely only where another one was expected.
_POSSIBLE_SEPARATORS = ("\t", ",")


def check_separator(separator: Any, who: str) -> str | None:
    """Return a separator, a text that is not empty, or None.

    Raises
    ------
    ValueError
        For anything else.
    """
    if separator is not None and (not isinstance(separator, str) or not separator):
        raise ValueError(
            f"{who}: separator must be a text such as ';', or None. Got {separator!r}."
        )
    return separator


def are_name_lists(y: Any) -> bool:
    """Return whether y holds lists of names, not classes or an indicator.

    A row that is a list, tuple or set says so; of a 2-D array, texts do.
    """
    if sp.issparse(y) or hasattr(y, "columns") or isinstance(y, str | bytes):
        return False
    if isinstance(y, np.ndarray) and y.ndim == 2:
        return y.dtype.kind in "US" or (y.size > 0 and isinstance(y.flat[0], str))
    if getattr(y, "ndim", 1) != 1 or not isinstance(y, Iterable):
        return False
    for row in y:
        if isinstance(row, str) or not isinstance(row, Iterable):
            if row is None or row != row:  # missing: another row tells
                continue
            return False
        if isinstance(row, set | frozenset):
            return True
        first = next(iter(row), None)
        if first is not None:
            return isinstance(first, str)
    return not isinstance(y, np.ndarray) or y.dtype == object


def read_name_lists(y: Any, separator: str | None, who: str) -> list[list]:
    """Return the names of each instance, each once, in their order.

    Parameters
    ----------
    y : iterable of n rows
        Each a list of names, or one text of names with `separator` between them; None and NaN are
        rows without names.
    separator : str or None
        With None a text is one name.
    who : str
        For messages.

    Returns
    -------
    list of list of str, or of list of int

    Raises
    ------
    TypeError
        For what is no iterable of rows, and rows that hold anything but names.
    ValueError
        For names of which some are texts and some are numbers.
    """
    refuse_disguised(y, f"{who}: y")
    if sp.issparse(y) or (hasattr(y, "columns") and not _is_series(y)):
        raise TypeError(
            f"{who}: y must be a list of names for each row. Got {type(y).__name__} of shape "
            f"{y.shape}, which looks like an indicator: a classifier takes it as it is."
        )
    if isinstance(y, str | bytes | dict) or not isinstance(y, Iterable):
        raise TypeError(f"{who}: y must be a list of names for each row. Got {y!r}.")
    rows: list[list] = []
    kinds: set[type] = set()
    for number, row in enumerate(y):
        names = list(dict.fromkeys(_names_of(row, separator, number, who)))
        kinds.update(map(type, names))
        rows.append(names)
    if len(kinds) > 1:
        raise ValueError(
            f"{who}: y must have names of one kind, all texts or all integers. Got "
            f"{' and '.join(sorted(kind.__name__ for kind in kinds))}."
        )
    return rows


def likely_separator(rows: list[list], given: str | None = None) -> str | None:
    """Return what seems to stand between names of rows that have one name each, or None.

    Parameters
    ----------
    rows : list of list
        The names of each row.
    given : str or None
        A separator by which they were read, to no effect.
    """
    texts = [row[0] for row in rows if len(row) == 1 and isinstance(row[0], str)]
    if not texts or any(len(row) > 1 for row in rows):
        return None
    likely = _LIKELY_SEPARATORS if given is None else _LIKELY_SEPARATORS + _POSSIBLE_SEPARATORS
    for one in likely:
        if sum(one in text for text in texts) > len(texts) / 10:
            return one
    return None


def is_missing(row: Any) -> bool:
    """Return whether a row has no names because nothing is known of it."""
    return row is None or (isinstance(row, float) and row != row) or type(row).__name__ == "NAType"


def names_in(text: str, separator: str | None) -> list[str]:
    """Return the names in a text, which is one name without a separator."""
    parts = [text] if separator is None else text.split(separator)
    return [part.strip() for part in parts if part.strip()]


def separator_within(text: Any, known: Container) -> str | None:
    """Return what seems to stand between names in a text that is no name itself, or None.

    Parameters
    ----------
    text : object
        Only a str holds several names.
    known : container of str
        Names.
    """
    if not isinstance(text, str):
        return None
    for one in _LIKELY_SEPARATORS + _POSSIBLE_SEPARATORS:
        parts = names_in(text, one)
        if len(parts) > 1 and (one in _LIKELY_SEPARATORS or any(part in known for part in parts)):
            return one
    return None


def _names_of(row: Any, separator: str | None, number: int, who: str) -> list:
    if is_missing(row):
        return []
    if isinstance(row, str):
        return names_in(row, separator)
    if isinstance(row, bytes | dict) or not isinstance(row, Iterable):
        raise TypeError(
            f"{who}: y must be a list of names for each row, or one text of names with a "
            f"separator. Got {row!r} in row {number}."
        )
    names = row.tolist() if isinstance(row, np.ndarray) else list(row)
    for name in names:
        if isinstance(name, str | int | np.integer) and not isinstance(name, bool):
            continue
        raise TypeError(
            f"{who}: y must be a list of names for each row. Got {name!r} among the names of row "
            f"{number}."
        )
    return [name if isinstance(name, str) else int(name) for name in names if name != ""]


def _is_series(y: Any) -> bool:
    return getattr(y, "ndim", 1) == 1
