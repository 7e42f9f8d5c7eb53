"""JSON lines: one object for each row."""

import json
from collections.abc import Iterator
from itertools import chain, islice

from sklearn_xc.command_line.delimited import Row
from sklearn_xc.command_line.errors import CommandError
from sklearn_xc.command_line.sources import Source

#: Rows that are looked at to know the columns.
_FIRST_ROWS = 1000


def read_json_lines(source: Source, encoding: str | None) -> tuple[list[str], Iterator[Row]]:
    """Return the keys of the first thousand rows, and all rows.

    Parameters
    ----------
    source : Source
    encoding : str or None

    Returns
    -------
    columns : list of str
    rows : iterator of dict
        A row need not have all columns; blank lines are left out.

    Raises
    ------
    CommandError
        For an empty file, and a line that is no JSON object.
    """
    rows = _rows(source, encoding)
    first = list(islice(rows, _FIRST_ROWS))
    if not first:
        raise CommandError(f"{source.name}: the table is empty.")
    return list(dict.fromkeys(key for row in first for key in row)), chain(first, rows)


def _rows(source: Source, encoding: str | None) -> Iterator[Row]:
    for line in source.lines(encoding):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise source.error(
                f"no JSON at character {error.colno} ({error.msg}). Each line must be an object of "
                'its own, such as {"text": "...", "labels": ["a", "b"]}.'
            ) from None
        except RecursionError:
            raise source.error("the JSON is nested too deeply.") from None
        if not isinstance(row, dict):
            raise source.error(
                'each line must be an object of its own, such as {"text": "...", "labels": ["a"]}.'
                f" Got {line.strip()[:40]!r}."
            )
        yield row
