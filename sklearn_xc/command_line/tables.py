"""A table by its kind: columns, and rows one after the other."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sklearn_xc.command_line.cells import text_of
from sklearn_xc.command_line.delimited import Row, read_delimited
from sklearn_xc.command_line.errors import CommandError, listed, nearest
from sklearn_xc.command_line.json_lines import read_json_lines
from sklearn_xc.command_line.parquet import read_parquet
from sklearn_xc.command_line.sources import Source, open_source

COMPRESSED = (".gz", ".xz", ".bz2")
#: Characters of a column's name that a message shows.
_MOST_SHOWN = 60
_KINDS = {
    ".csv": "csv", ".txt": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl",
    ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip


@dataclass
class Table:
    """An open table.

    Attributes
    ----------
    name : str
        For messages.
    kind : {"csv", "tsv", "jsonl", "parquet"}
    columns : list of str
    rows : iterator of dict
    source : Source or None
        None for Parquet.
    n_rows : int or None
        Where it is known beforehand.
    """

    name: str
    kind: str
    columns: list[str]
    rows: Iterator[Row]
    source: Source | None
    n_rows: int | None = None

    def share_read(self, n_done: int) -> float | None:
        """Return the share of the table that is behind, after `n_done` rows, where it is known."""
        if self.source is None:
            return n_done / max(1, self.n_rows or 0)
        return self.source.share_read()

    def check_columns(self, names: list[str], option: str) -> None:
        """Raise an error for a column that is not there.

        Parameters
        ----------
        names : list of str
        option : str
            That names columns.

        Raises
        ------
        CommandError
            That says where columns were looked for, lists them, and says which one may be meant.
        """
        for name in names:
            if name not in self.columns:
                raise CommandError(
                    f"{self.name}: there is no column {name!r} ({option})."
                    f"{nearest(name, self.columns)} {self._columns_found(option)}"
                )

    def _columns_found(self, option: str) -> str:
        found = listed(map(_shown, self.columns))
        take = f"Take one of these ({option} COLUMN)"
        if self.kind == "jsonl":
            return f"The first rows have the keys: {found}. {take}."
        if self.kind == "parquet":
            return f"Columns: {found}. {take}."
        return (
            f"The first line, taken for the header, names: {found}. {take}, or put a header first."
        )


def _shown(column: str) -> str:
    """Return the beginning of a name, which is a whole text where there is no header."""
    if len(column) <= _MOST_SHOWN:
        return column
    return column[:_MOST_SHOWN].rstrip() + "..."


def kind_of_name(path: str) -> str | None:
    """Return the kind of table that a file's name tells, ".gz" and the like left aside."""
    stem, suffix = os.path.splitext(path)
    if suffix.lower() in COMPRESSED:
        suffix = os.path.splitext(stem)[1]
    return _KINDS.get(suffix.lower())


@contextmanager
def open_table(path: str, options: Any) -> Iterator[Table]:
    """Open a table.

    Parameters
    ----------
    path : str
        A file, or "-" for standard input.
    options : argparse.Namespace
        With ``format``, ``delimiter``, ``quotes`` and ``encoding``.

    Raises
    ------
    CommandError
        For what is no table.
    """
    kind = options.format or kind_of_name(path)
    if kind == "parquet":
        columns, rows, n_rows = read_parquet(path)
        yield Table(path, kind, columns, rows, None, n_rows)
        return
    with open_source(path) as source:
        if kind is None:
            begin = source.stream.peek(4)[:4]
            if begin == b"PAR1":
                raise CommandError(f"{source.name}: Parquet must be named by --format parquet.")
            kind = "jsonl" if begin.lstrip(b"\xef\xbb\xbf").startswith(b"{") else "csv"
        if kind == "jsonl":
            columns, rows = read_json_lines(source, options.encoding)
        else:
            delimiter = options.delimiter or ("\t" if kind == "tsv" else None)
            columns, rows = read_delimited(source, delimiter, options.quotes, options.encoding)
        yield Table(source.name, kind, columns, rows, source)


def in_chunks(
    table: Table, text_columns: list[str], n_rows: int = 8192, n_characters: int = 2**23
) -> Iterator[tuple[list[Row], list[str]]]:
    """Yield rows and their texts, so many at a time that neither they nor their features are many.

    Parameters
    ----------
    table : Table
    text_columns : list of str
    n_rows, n_characters : int
        A chunk ends when it has so many of either.
    """
    rows: list[Row] = []
    texts: list[str] = []
    size = 0
    for row in table.rows:
        rows.append(row)
        texts.append(text_of(row, text_columns))
        size += len(texts[-1])
        if len(rows) == n_rows or size >= n_characters:
            yield rows, texts
            rows, texts, size = [], [], 0
    if rows:
        yield rows, texts
