"""Targets as people write them: a list of names for each instance, or names in one text."""

import re
import warnings
from collections.abc import Container, Iterable
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.arguments import refuse_disguised
from sklearn_xc._input.containers import as_sequence, frame_columns, is_missing
from sklearn_xc._labels.near_names import did_you_mean
from sklearn_xc.exceptions import UnknownLabelWarning

#: What people put between names, and rarely into them.
_LIKELY_SEPARATORS = (";", "|")
#: What they put between names and into them: likely only where another one was expected.
_POSSIBLE_SEPARATORS = ("\t", ",")
#: Texts that say nothing about the form of the others.
_NOTHING = ("", "[]", "{}", "()", "set()")
#: What to do about lists that were written as text.
_READ_BACK = "In pandas, y.map(ast.literal_eval, na_action='ignore') makes lists of them"


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
    """Return whether y holds lists of names, rather than classes or an indicator.

    Lists of integers are names, unless all have one length and hold only 0 and 1.
    """
    y = as_sequence(y)
    if isinstance(y, np.ndarray) and y.ndim == 2:
        return y.dtype.kind in "US" or (y.size > 0 and isinstance(y.flat[0], str))
    if not isinstance(y, Iterable) or isinstance(y, str | bytes) or sp.issparse(y):
        return False
    if getattr(y, "ndim", 1) != 1 or frame_columns(y) is not None:
        return False
    first = next((row for row in y if not is_missing(row)), None)
    if first is None:
        return not isinstance(y, np.ndarray) or y.dtype == object
    if not is_list(first):
        return False
    name = next((name for row in y if is_list(row) for name in row), None)
    if name is None or isinstance(name, str):
        return True
    rows = [row for row in y if is_list(row)]
    if isinstance(first, set | frozenset) or len(set(map(len, rows))) > 1:
        return True
    return isinstance(name, Integral) and any(name not in (0, 1) for row in rows for name in row)


def read_name_lists(y: Any, separator: str | None, who: str) -> list[list]:
    """Return the names of each instance, each once, in their order.

    Parameters
    ----------
    y : iterable of n rows
        Each a list of names, or one text of names with `separator` between them; None, NaN and NA
        are rows without names. A data frame of one such column will do.
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
        For both texts and integers, and for lists written as text.
    """
    refuse_disguised(y, f"{who}: y")
    y = as_sequence(y)
    if sp.issparse(y) or frame_columns(y) is not None:
        raise TypeError(
            f"{who}: y must be a list of names for each row. Got {type(y).__name__} of shape "
            f"{y.shape}, which looks like an indicator: a classifier takes it as it is."
        )
    if isinstance(y, str | bytes | dict) or not isinstance(y, Iterable):
        raise TypeError(f"{who}: y must be a list of names for each row. Got {y!r}.")
    rows: list[list] = []
    refuse_written_lists(y, f"{who}: y")
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


def warn_of_separator(y: Any, who: str, stacklevel: int) -> None:
    """Warn if a 1-D y of classes looks like several names in each row."""
    likely = likely_separator([[one] for one in y if isinstance(one, str)])
    if likely is not None:
        warnings.warn(
            f"{who}: each row of y is taken for one class, but many hold {likely!r}. If these are "
            f"several names, pass separator={likely!r}.",
            UserWarning,
            stacklevel=stacklevel + 1,
        )


def is_written_list(text: Any) -> bool:
    """Return whether a text is a list as Python or JSON writes it, such as "['a', 'b']"."""
    if not isinstance(text, str):
        return False
    text = text.strip()
    if text[:1] + text[-1:] not in ("[]", "{}", "()"):
        return False
    inner = text[1:-1].strip(", ")
    if inner[:1] in ("'", '"'):
        return len(inner) > 1 and inner[-1] in "'\""
    numbers = inner.replace(",", " ").split()
    return text[0] == "[" and bool(numbers) and all(one.isdecimal() for one in numbers)


def refuse_written_lists(rows: Iterable, name: str, remedy: str | None = None) -> None:
    """Raise ValueError if most texts are lists that were written as text, as in a CSV file.

    Parameters
    ----------
    rows : iterable
        What is no text passes.
    name : str
        For the message.
    remedy : str or None
        What to do; None for Python.
    """
    texts = [row for row in rows if isinstance(row, str) and row.strip() not in _NOTHING]
    written = [text for text in texts if is_written_list(text)]
    if len(written) <= len(texts) / 2:
        return
    if re.search(r"""['"]\s+['"]""", written[0]):  # literal_eval would make one name of these
        remedy = "These were NumPy arrays: write lists, or names with a separator, instead"
    raise ValueError(
        f"{name} must hold names. Got lists that were written as text, such as {written[0]!r}. "
        f"{remedy or _READ_BACK}."
    )


def of_kind(name: Any, are_texts: bool) -> Any:
    """Return an integer as text, or the text of an integer as integer, as other names are."""
    if are_texts:
        return str(int(name)) if isinstance(name, Integral) else name
    is_number = isinstance(name, str) and re.fullmatch(r"0|-?[1-9][0-9]{0,18}", name)
    return int(name) if is_number else name


def warn_of_unknown(names: Iterable, known: Iterable, name: str) -> None:
    """Warn that none of some names is known."""
    names = list(dict.fromkeys(names))
    warnings.warn(
        f"{name}: none of the {len(names)} names is known: {names[0]!r}"
        f"{', ...' if len(names) > 1 else '.'}{did_you_mean(names[0], known)}",
        UnknownLabelWarning,
        stacklevel=4,
    )


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
        if type(name) is bool or not isinstance(name, str | int | np.integer):
            raise TypeError(
                f"{who}: y must be a list of names for each row. Got {name!r} among the names of "
                f"row {number}."
            )
    # Of a subclass of str, such as NumPy's, the text.
    return [str.__str__(one) if isinstance(one, str) else int(one) for one in names if one != ""]


def is_list(row: Any) -> bool:
    """Return whether a row may be a list of names, by its type."""
    is_other = isinstance(row, str | bytes) or sp.issparse(row)
    is_number = getattr(row, "ndim", 1) == 0  # an entry of a tensor
    return isinstance(row, Iterable) and not is_other and not is_number
