"""Names of labels: of the columns of an indicator, the position of a name, and similar names."""

import difflib
import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from numbers import Integral
from typing import Any

import numpy as np

from sklearn_xc._input.arguments import frame_columns, refuse_masks_and_dates

#: Names that are compared, at some 10 us each, and characters of each.
_MOST_NAMES, _MOST_READ = 100_000, 200


def did_you_mean(name: Any, names: Iterable[Any]) -> str:
    """Return " Did you mean ...?" for the most similar of `names`, or nothing.

    Case and spaces at the ends make no difference. Only the first 100,000 names are compared, and
    only texts.

    Parameters
    ----------
    name : object
        The unknown name.
    names : iterable of object
        The known names.

    Returns
    -------
    str
        With a space before it, for the end of a message.

    Examples
    --------
    >>> did_you_mean("Fredrick", ["anna", "frederick", "mary"])
    " Did you mean 'frederick'?"
    """
    if isinstance(name, bool) or not isinstance(name, str | int):
        return ""
    known: dict[str, Any] = {}
    for other in islice(names, _MOST_NAMES):
        known.setdefault(_plain(other), other)
    if isinstance(name, str) and all(isinstance(one, str) for one in known.values()):
        near = difflib.get_close_matches(_plain(name), known, 1)
    else:
        near = [_plain(name)] if _plain(name) in known else []
    found = [known[one] for one in near if known[one] != name]
    return f" Did you mean {found[0]!r}?" if found else ""


def _plain(name: Any) -> str:
    return str(name)[:_MOST_READ].strip().lower()


def column_names(y: Any) -> list | None:
    """Return the names of the columns of a data frame or Arrow table, None without texts as names.

    Raises
    ------
    TypeError
        If only some names are texts.
    """
    names = frame_columns(y)
    are_texts = [isinstance(name, str) for name in names or ()]
    if names is None or not any(are_texts):
        return None
    if not all(are_texts):
        odd = names[are_texts.index(False)]
        raise TypeError(
            f"y must have columns whose names are all texts, or none. Got {odd!r} among them: "
            "y.columns = y.columns.astype(str) makes texts of all."
        )
    return names


def names_of_columns(
    n_labels: int, label_names: Any, columns: list | None, classes: Any, caller: str
) -> np.ndarray:
    """Return the names of an indicator's columns, or their numbers if they have no names.

    Parameters
    ----------
    n_labels : int
    label_names : array-like of shape (n_labels,) or None
        The parameter of the estimator.
    columns : list of str or None
        Columns of a data frame.
    classes : array-like of shape (n_labels,) or None
        Names of an earlier fit, or the numbers of the columns.
    caller : str
        The estimator, for messages.

    Raises
    ------
    ValueError
        For another number of names, names that are equal, missing or of different kinds, and for
        sources that differ.
    """
    numbers = np.arange(n_labels)
    if classes is not None and np.array_equal(classes, numbers):
        classes = None
    sources = {"label_names": label_names, "the columns of y": columns, "classes": classes}
    given = {
        source: check_label_names(names, n_labels, f"{caller}: {source}")
        for source, names in sources.items()
        if names is not None
    }
    found, *others = given.items() or [("", numbers)]
    for source, names in others:
        differ = np.flatnonzero(names != found[1])
        if differ.size:
            at = differ[0]
            raise ValueError(
                f"{caller}: {source} must be the same as {found[0]}. Got {names[at]!r} for label "
                f"{at}, which is {found[1][at]!r}."
            )
    return found[1]


def check_label_names(names: Any, n_labels: int | None, name: str) -> np.ndarray:
    """Return names of labels as an array of objects (texts) or of integers.

    Raises
    ------
    ValueError
        For another number of names, or names that are equal, missing or of different kinds.
    TypeError
        For a masked array, and what is no sequence.
    """
    refuse_masks_and_dates(names, name)
    wanted = f"{name} must be {'a name' if n_labels is None else f'{n_labels} names'}, texts or "
    wanted += "integers, one for each"
    if isinstance(names, str | bytes) or not hasattr(names, "__iter__"):
        raise TypeError(f"{wanted}. Got {names!r}.")
    values = list(names.tolist() if hasattr(names, "tolist") else names)
    if n_labels is not None and len(values) != n_labels:
        raise ValueError(f"{wanted}. Got {len(values)}.")
    kind = str if values and isinstance(values[0], str) else int
    for at, value in enumerate(values):
        if not isinstance(value, kind if kind is str else (int, np.integer)) or value is True:
            raise ValueError(f"{wanted}. Got {value!r} for label {at}.")
    if len(set(values)) < len(values):
        twice = Counter(values).most_common(1)[0][0]
        raise ValueError(f"{name} must be distinct. Got {twice!r} more than once.")
    return as_name_array(values)


def as_name_array(names: list) -> np.ndarray:
    """Return texts as an array of objects, which takes no more memory than they do, or integers."""
    if names and not isinstance(names[0], str):
        return np.array(names, np.int64)
    array = np.empty(len(names), object)
    array[:] = names
    return array


def as_name_of_kind(name: Any, are_texts: bool) -> Any:
    """Return an integer as text, or the text of an integer as integer, as other names are."""
    if are_texts:
        return str(int(name)) if isinstance(name, Integral) else name
    is_number = isinstance(name, str) and re.fullmatch(r"0|-?[1-9][0-9]{0,18}", name)
    return int(name) if is_number else name


def refuse_other_columns(y: Any, known: np.ndarray, caller: str) -> None:
    """Raise ValueError if the columns of a data frame have other names than in fit."""
    columns = column_names(y)
    if columns is None or columns == known.tolist() or known.dtype.kind in "iu":
        return
    if len(columns) != len(known):
        return  # the number of columns has a message of its own
    if set(columns) == set(known.tolist()):
        raise ValueError(
            f"{caller}: y has the label columns of fit in another order. Expected "
            f"{known[:3].tolist()} first: y[list(clf.classes_)] has them. Got {columns[:3]}."
        )
    odd = next(name for name in columns if name not in set(known.tolist()))
    raise ValueError(f"{caller}: y has a label column {odd!r}, which was not there in fit.")


def position_of(label: Any, classes: np.ndarray, caller: str) -> int:
    """Return the position of one label in ``classes_``.

    Raises
    ------
    ValueError
        If it is not one of them; the message suggests the most similar name.
    """
    is_bool = isinstance(label, bool | np.bool_) and classes.dtype.kind != "b"
    found = np.empty(0, np.intp)
    if not (is_bool or np.ndim(label)):
        found = np.flatnonzero(classes == label)
    if len(found) != 1:
        raise ValueError(
            f"{caller}: label must be one of the {len(classes)} in classes_, such as "
            f"{classes[:1].tolist()[0]!r}. Got {label!r}.{did_you_mean(label, classes.tolist())}"
        )
    return int(found[0])


def positions_of(names: np.ndarray, known: np.ndarray, *, are_columns: bool = False) -> np.ndarray:
    """Return the position of each name among known ones, int64; -1 for a new one.

    With `are_columns`, both are the columns of an indicator, which may have names on one side
    only: equally many are the same columns.
    """
    numbers = np.arange(len(names))
    if len(names) == len(known):
        has_numbers = are_columns and any(np.array_equal(one, numbers) for one in (names, known))
        if has_numbers or np.array_equal(names, known):
            return numbers
    position = {name: at for at, name in enumerate(known.tolist())}
    return np.array([position.get(name, -1) for name in names.tolist()], np.int64)
