"""Tables of text with a delimiter between cells: CSV (RFC 4180) and TSV."""

import csv
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

from sklearn_xc.command_line.errors import CommandError
from sklearn_xc.command_line.sources import Source

#: What a delimiter may be where none is given; the comma where the header holds none of them.
_DELIMITERS = ",;\t|"
#: A cell with more characters is a quote that is never closed, rather than a text.
_LARGEST_CELL = 2**24

Row = dict[str, object]


def read_delimited(
    source: Source, delimiter: str | None, quotes: bool, encoding: str | None
) -> tuple[list[str], Iterator[Row]]:
    """Return the columns of a table, and its rows.

    Parameters
    ----------
    source : Source
    delimiter : str or None
        None looks for the likely one in the header.
    quotes : bool
        Whether a cell may stand between quotes, and then hold delimiters and ends of lines.
    encoding : str or None

    Returns
    -------
    columns : list of str
    rows : iterator of dict
        Blank lines are left out.

    Raises
    ------
    CommandError
        For an empty file, a column that is there twice, broken quotes and rows of another length.
    """
    lines = source.lines(encoding)
    first = next(lines, None)
    if first is None:
        raise CommandError(f"{source.name}: the table is empty.")
    delimiter = delimiter or _likely_delimiter(first)
    csv.field_size_limit(_LARGEST_CELL)
    records = _records(source, chain([first], lines), delimiter, quotes)
    header = next(records, None)
    if header is None:
        raise CommandError(f"{source.name}: the table is empty.")
    columns = [name.strip() for name in header[1]]
    twice = [name for name, n in Counter(columns).items() if n > 1]
    if twice:
        raise CommandError(
            f"{source.name}: the first line, taken for the header, names {len(columns)} columns, "
            f"and {twice[0]!r} more than once. Give each column a name of its own, or put a header "
            "first."
        )
    return columns, _rows(source, records, columns, delimiter)


def _records(
    source: Source, lines: Iterator[str], delimiter: str, quotes: bool
) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the line where each record begins, and its cells."""
    quoting: Any = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    reader = csv.reader(lines, delimiter=delimiter, strict=True, quoting=quoting)
    while True:
        began = source.line + 1 if reader.line_num else 1
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise source.error(_explain(str(error)), began) from None
        if record:
            yield began, record


def _rows(
    source: Source, records: Iterator[tuple[int, list[str]]], columns: list[str], delimiter: str
) -> Iterator[Row]:
    for began, record in records:
        if len(record) != len(columns):
            raise source.error(
                f"{len(record)} cells between {delimiter!r}, but the first line names "
                f"{len(columns)} columns. A cell that holds {delimiter!r} must stand between "
                "double quotes.",
                began,
            )
        yield dict(zip(columns, record, strict=True))


def _explain(error: str) -> str:
    if "unexpected end of data" in error or "larger than field limit" in error:
        return (
            "a double quote is opened in this row and never closed. Close it; write a quote inside "
            "a quoted cell twice. If the table does not quote its cells at all, add --no-quotes."
        )
    if "expected after" in error:
        return (
            "a double quote of this row is never closed, or there is text after a closing one. "
            "Write a quote inside a quoted cell twice. If the table does not quote its cells at "
            "all, add --no-quotes."
        )
    if "new-line character" in error:
        return "the lines end in a way that only old programs write. Save the table anew."
    return f"{error}."


def _likely_delimiter(header: str) -> str:
    outside = "".join(header.split('"')[::2])  # what stands in quotes is no delimiter
    counts = {one: outside.count(one) for one in _DELIMITERS}
    return max(counts, key=lambda one: counts[one])
