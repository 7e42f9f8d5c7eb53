"""Parquet, through pyarrow or polars, whichever is installed."""

import importlib
from collections.abc import Iterator
from typing import Any

from sklearn_xc.command_line.delimited import Row
from sklearn_xc.command_line.errors import CommandError

_ROWS_AT_A_TIME = 8192


def read_parquet(path: str) -> tuple[list[str], Iterator[Row], int]:
    """Return the columns of a Parquet file, its rows, and how many there are.

    Parameters
    ----------
    path : str

    Returns
    -------
    columns : list of str
    rows : iterator of dict
    n_rows : int

    Raises
    ------
    CommandError
        If no package that reads Parquet is installed, or the file is damaged.
    """
    if path == "-":
        raise CommandError("standard input: Parquet can only be read from a file.")
    with open(path, "rb"):  # has the system say what is wrong with the name
        pass
    readers = {"pyarrow.parquet": _through_pyarrow, "polars": _through_polars}
    for name, read in readers.items():
        try:
            module: Any = importlib.import_module(name)
        except ImportError:
            continue
        try:
            return read(module, path)
        except Exception as error:  # each package has errors of its own
            raise CommandError(f"{path}: this Parquet file cannot be read ({error}).") from None
    raise CommandError(
        f"{path}: a further package must be installed to read Parquet: pip install polars (or "
        "pyarrow). Or save the table as CSV."
    )


def _through_pyarrow(parquet: Any, path: str) -> tuple[list[str], Iterator[Row], int]:
    file = parquet.ParquetFile(path)

    def rows() -> Iterator[Row]:
        for batch in file.iter_batches(_ROWS_AT_A_TIME):
            yield from batch.to_pylist()

    return list(file.schema_arrow.names), rows(), file.metadata.num_rows


def _through_polars(polars: Any, path: str) -> tuple[list[str], Iterator[Row], int]:
    table = polars.scan_parquet(path, glob=False)
    columns = table.collect_schema().names()
    n_rows = table.select(polars.len()).collect().item()

    def rows() -> Iterator[Row]:
        for first in range(0, n_rows, _ROWS_AT_A_TIME):
            yield from table.slice(first, _ROWS_AT_A_TIME).collect().iter_rows(named=True)

    return columns, rows(), n_rows
