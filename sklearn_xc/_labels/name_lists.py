"""Targets as lists of names: a list for each instance, or one text with a separator."""

import re
from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.arguments import (
    as_sequence,
    frame_columns,
    is_missing,
    refuse_masks_and_dates,
)
from sklearn_xc._labels.names import did_you_mean
from sklearn_xc._warnings import warn
from sklearn_xc.exceptions import UnknownLabelWarning

#: Likely separators, which names rarely contain.
_LIKELY_SEPARATORS = (";", "|")
#: A list that was written as text, such as "['a', 'b']" or "[5, 6]".
_WRITTEN_LIST = re.compile(r"""\s*[\[({]\s*(['"].*['"]|\d[\d,\s]*)[\s,]*[\])}]\s*""", re.DOTALL)
#: What to do about lists that were written as text.
_READ_BACK = "In pandas, y.map(ast.literal_eval, na_action='ignore') makes lists of them"


def check_separator(separator: Any, caller: str) -> str | None:
    """Return a separator, a text that is not empty, or None.

    Raises
    ------
    ValueError
        For anything else.
    """
    if separator is not None and (not isinstance(separator, str) or not separator):
        raise ValueError(
            f"{caller}: separator must be a text such as ';', or None. Got {separator!r}."
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


def read_name_lists(y: Any, separator: str | None, caller: str) -> list[list]:
    """Return the names of each instance, each once, in their order.

    Parameters
    ----------
    y : iterable of n rows
        Each a list of names, or one text of names with `separator` between them; None, NaN and NA
        are rows without names. A data frame of one such column will do.
    separator : str or None
        With None a text is one name.
    caller : str
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
    refuse_masks_and_dates(y, f"{caller}: y")
    y = as_sequence(y)
    if sp.issparse(y) or frame_columns(y) is not None:
        raise TypeError(
            f"{caller}: y must be a list of names for each row. Got {type(y).__name__} of shape "
            f"{y.shape}, which looks like an indicator: a classifier takes it as it is."
        )
    if isinstance(y, str | bytes | dict) or not isinstance(y, Iterable):
        raise TypeError(f"{caller}: y must be a list of names for each row. Got {y!r}.")
    rows: list[list] = []
    refuse_written_lists(y, f"{caller}: y")
    kinds: set[type] = set()
    for number, row in enumerate(y):
        names = list(dict.fromkeys(_names_of(row, separator, number, caller)))
        kinds.update(map(type, names))
        rows.append(names)
    if len(kinds) > 1:
        raise ValueError(
            f"{caller}: y must have names of one kind, all texts or all integers. Got "
            f"{' and '.join(sorted(kind.__name__ for kind in kinds))}."
        )
    return rows


def warn_of_separator(texts: list[str], caller: str) -> None:
    """Warn if more than a tenth of texts, each read as one name, seem to hold several."""
    for one in _LIKELY_SEPARATORS:
        several = [text for text in texts if one in text]
        if len(several) > len(texts) / 10:
            warn(
                f"{caller}: each text of y is taken for one name, but many hold {one!r}, such as "
                f"{several[0]!r}. If these are several names, pass separator={one!r}.",
            )
            return


def refuse_written_lists(rows: Iterable, name: str, remedy: str = _READ_BACK) -> None:
    """Raise ValueError if most texts are lists that were written as text, as in a CSV file.

    Entries that are not texts pass; `name` and `remedy` are for the message.
    """
    texts = [row for row in rows if isinstance(row, str) and row.strip("[](){} ")]
    written = [text for text in texts if _WRITTEN_LIST.fullmatch(text)]
    if len(written) > len(texts) / 2:
        raise ValueError(
            f"{name} must hold names. Got lists that were written as text, such as "
            f"{written[0]!r}. {remedy}."
        )


def warn_of_missing(y: Iterable, caller: str) -> None:
    """Warn that rows without an entry are trained as rows without labels."""
    missing = [row for row, names in enumerate(y) if is_missing(names)]
    if missing:
        warn(
            f"{caller}: the labels of {len(missing)} rows of y are missing (row {missing[0]} "
            "first): these rows are trained as rows without labels. If their labels are unknown, "
            "drop them.",
        )


def warn_of_unknown(names: Iterable, known: Iterable, name: str) -> None:
    """Warn that none of some names is known."""
    names = list(dict.fromkeys(names))
    warn(
        f"{name}: none of the {len(names)} names is known: {names[0]!r}"
        f"{', ...' if len(names) > 1 else '.'}{did_you_mean(names[0], known)}",
        UnknownLabelWarning,
    )


def names_in(text: str, separator: str | None) -> list[str]:
    """Return the names in a text, which is one name without a separator."""
    parts = [text] if separator is None else text.split(separator)
    return [part.strip() for part in parts if part.strip()]


def _names_of(row: Any, separator: str | None, number: int, caller: str) -> list:
    if is_missing(row):
        return []
    if isinstance(row, str):
        return names_in(row, separator)
    if isinstance(row, bytes | dict) or not isinstance(row, Iterable):
        raise TypeError(
            f"{caller}: y must be a list of names for each row, or one text of names with a "
            f"separator. Got {row!r} in row {number}."
        )
    names = row.tolist() if isinstance(row, np.ndarray) else list(row)
    for name in names:
        if type(name) is bool or not isinstance(name, str | int | np.integer):
            raise TypeError(
                f"{caller}: y must be a list of names for each row. Got {name!r} among the names "
                f"of row {number}."
            )
    # Of a subclass of str, such as NumPy's, the text.
    return [str.__str__(one) if isinstance(one, str) else int(one) for one in names if one != ""]


def is_list(row: Any) -> bool:
    """Return whether a row may be a list of names, by its type."""
    is_other = isinstance(row, str | bytes) or sp.issparse(row)
    is_number = getattr(row, "ndim", 1) == 0  # an entry of a tensor
    return isinstance(row, Iterable) and not is_other and not is_number
