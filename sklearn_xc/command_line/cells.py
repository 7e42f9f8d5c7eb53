"""Texts and names of labels in the cells of a row."""

import json
from typing import Any

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
    """
    if _is_nothing(cell):
        return []
    if isinstance(cell, list | tuple):
        parts = [as_text(one) for one in cell if not _is_nothing(one)]
    else:
        text = as_text(cell)
        parts = [text] if separator is None else text.split(separator)
    return list(dict.fromkeys(name for part in parts if (name := part.strip())))


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
