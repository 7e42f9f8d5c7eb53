"""Texts and names of labels in the cells of a row."""

import json
import re
from typing import Any

from sklearn_xc._name_lists import names_in
from sklearn_xc.command_line.errors import CommandError

#: A name that spreadsheets would run as a formula, and the apostrophes that keep them from it.
_FORMULA = re.compile(r"'*(=|[+\-@][^(|!]*[(|!])")
#: Parquet has missing numbers, which are no text.
_NOTHING = ("", None)


def text_of(row: dict[str, Any], columns: list[str]) -> str:
    """Return the texts of some columns, joined by blanks; empty cells are left out."""
    if len(columns) == 1 and isinstance(text := row.get(columns[0]), str):
        return text
    return " ".join(
        as_text(row[name]) for name in columns if name in row and not _is_nothing(row[name])
    )


def names_of(cell: Any, separator: str | None) -> list[str]:
    """Return the names of labels in a cell, each once.

    Parameters
    ----------
    cell : object
        A text with `separator` between names, or with one name; a list of names; or nothing.
    separator : str or None

    Raises
    ------
    CommandError
        For an object or a list among the names.
    """
    if _is_nothing(cell):
        return []
    parts = [one for one in cell if not _is_nothing(one)] if isinstance(cell, list) else [cell]
    odd = next((one for one in parts if isinstance(one, list | dict)), None)
    if odd is not None:
        raise CommandError(f"labels must be names, or a list of names. Got {as_text(odd)}.")
    if isinstance(cell, list):
        names = [as_text(part).strip() for part in parts]
    else:
        names = [_formula_as_name(name) for name in names_in(as_text(cell), separator)]
    return list(dict.fromkeys(filter(None, names)))


def name_in_cell(name: Any) -> str:
    """Return a name as a CSV or TSV table holds it: no formula for a spreadsheet.

    An apostrophe is put before what would be one; ``names_of`` takes it away.
    """
    text = as_text(name)
    return f"'{text}" if _FORMULA.match(text) else text


def _formula_as_name(text: str) -> str:
    return text[1:] if text[:1] == "'" and _FORMULA.match(text) else text


def as_text(cell: Any) -> str:
    """Return a cell as it is written into a table of text."""
    if isinstance(cell, str):
        return cell
    if cell is None:
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, list | dict):
        return json.dumps(cell, ensure_ascii=False, default=str)
    return str(cell)


def _is_nothing(cell: Any) -> bool:
    return cell in _NOTHING if cell is None or isinstance(cell, str) else cell != cell
