"""Tables with two further columns: names of labels, and their scores."""

import csv
import io
import json
from typing import Any

from sklearn_xc.command_line.cells import as_text, name_in_cell
from sklearn_xc.command_line.delimited import Row
from sklearn_xc.command_line.errors import CommandError

Tags = list[tuple[str, float]]


class DelimitedWriter:
    """Writes CSV or TSV.

    Parameters
    ----------
    stream : binary file
    columns : list of str
        Of the input.
    added : tuple of str
        Names of the columns for labels and scores.
    separator : str
        Stands between labels, and between scores.
    delimiter : str
        Stands between cells.
    """

    def __init__(
        self,
        stream: Any,
        columns: list[str],
        added: tuple[str, str],
        separator: str,
        delimiter: str,
    ) -> None:
        self._stream, self._columns, self._separator = stream, columns, separator
        self._known = set(columns)
        self._delimiter = delimiter
        self._write_rows([[*columns, *added]])

    def write(self, rows: list[Row], tags: list[Tags]) -> None:
        """Write some rows.

        Raises
        ------
        CommandError
            For a row with a key that the first rows had not, which has no column.
        """
        self._write_rows([self._cells(row, some) for row, some in zip(rows, tags, strict=True)])

    def _cells(self, row: Row, tags: Tags) -> list[str]:
        if len(row) > len(self._columns) or not self._known.issuperset(row):
            strange = next(key for key in row if key not in self._known)
            raise CommandError(
                f"a row has the key {strange!r}, which the first thousand rows have not: there is "
                "no column for it. Write JSON lines instead: --out NAME.jsonl."
            )
        names = self._separator.join(name_in_cell(name) for name, _ in tags)
        scores = self._separator.join(f"{score:.4g}" for _, score in tags)
        return [*(as_text(row.get(column)) for column in self._columns), names, scores]

    def _write_rows(self, rows: list[list[str]]) -> None:
        buffer = io.StringIO()
        form: Any = {"delimiter": self._delimiter, "lineterminator": "\n"}
        usual = csv.writer(buffer, **form)
        quoting = csv.writer(buffer, quoting=csv.QUOTE_ALL, **form)
        for cells in rows:
            # Before Python 3.13 a carriage return alone has a cell not quoted.
            has_return = any("\r" in cell for cell in cells)
            (quoting if has_return else usual).writerow(cells)
        self._stream.write(buffer.getvalue().encode())


class JsonLinesWriter:
    """Writes JSON lines, with lists of labels and scores.

    Parameters
    ----------
    stream : binary file
    added : tuple of str
        Keys of the labels and scores.
    """

    def __init__(self, stream: Any, added: tuple[str, str]) -> None:
        self._stream, self._added = stream, added

    def write(self, rows: list[Row], tags: list[Tags]) -> None:
        """Write some rows."""
        lines = [
            json.dumps(row | self._cells(some), ensure_ascii=False, default=str)
            for row, some in zip(rows, tags, strict=True)
        ]
        self._stream.write(("\n".join(lines) + "\n").encode())

    def _cells(self, tags: Tags) -> Row:
        names, scores = self._added
        return {
            names: [name for name, _ in tags],
            scores: [float(f"{score:.4g}") for _, score in tags],
        }


def free_names(columns: list[str], numbers: str) -> tuple[str, str]:
    """Return names for the columns of labels and numbers that no column of the input has.

    `numbers` is what these are, such as "scores".
    """
    count, end = 1, ""
    while f"predicted_labels{end}" in columns or f"predicted_{numbers}{end}" in columns:
        count += 1
        end = f"_{count}"
    return f"predicted_labels{end}", f"predicted_{numbers}{end}"
