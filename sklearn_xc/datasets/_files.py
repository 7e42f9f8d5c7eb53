"""Reading data files line by line, with decompression, and the checks that all readers share."""

import gzip
import lzma
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from sklearn_xc.exceptions import DataFormatError, MemoryBudgetError

#: Longer lines are refused: no row of five million features, or of five novels, is longer.
MAX_LINE_BYTES = 1 << 26
#: The largest number of rows and columns that files and generators support.
MAX_SIZE = 2**31 - 1


class Source:
    """An open data file.

    Attributes
    ----------
    path : str
        For error messages.
    stream : binary file
        The decompressed bytes.
    line : int
        Number of the last line that ``lines`` has returned.
    """

    def __init__(self, path: str, stream: Any) -> None:
        self.path, self.stream, self.line = path, stream, 0

    def lines(self) -> Iterator[bytes]:
        """Yield the lines, with their newlines."""
        while line := self.stream.readline(MAX_LINE_BYTES + 1):
            self.line += 1
            if len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
                raise self.error(line, f"the line is longer than {MAX_LINE_BYTES:,} bytes.")
            yield line

    def error(self, token: bytes | str, message: str, line: int | None = None) -> DataFormatError:
        """Return an error that names the file, the line (the last one) and the offending token."""
        if len(token) > 60:
            middle: Any = b"..." if isinstance(token, bytes) else "..."
            token = token[:40] + middle + token[-15:]
        shown = repr(token).removeprefix("b")
        number = self.line if line is None else line
        return DataFormatError(f"{self.path}, line {number}: {shown}: {message}")


@contextmanager
def open_source(path: str | os.PathLike[str]) -> Iterator[Source]:
    """Open a plain, gzip or xz file, recognised by its first bytes.

    Raises
    ------
    DataFormatError
        If the compressed data are damaged or cut off.
    MemoryBudgetError
        If memory runs out.
    """
    with open(path, "rb") as raw:
        magic = raw.read(6)
        raw.seek(0)
        stream: Any = raw
        if magic.startswith(b"\x1f\x8b"):
            stream = gzip.GzipFile(fileobj=raw)
        elif magic == b"\xfd7zXZ\x00":
            stream = lzma.LZMAFile(raw)  # noqa: SIM115 (closes with raw)
        source = Source(os.fsdecode(path), stream)
        try:
            yield source
        except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
            raise DataFormatError(
                f"{source.path}, after line {source.line}: the compressed data are damaged or cut "
                f"off ({error}). Fetch or copy the file again."
            ) from error
        except MemoryError as error:
            raise MemoryBudgetError(
                f"{source.path}, after line {source.line}: the memory is used up. Read the file on "
                "a machine with more, or cut it."
            ) from error


def check_float_dtype(dtype: Any, name: str) -> np.dtype:
    """Return float32 or float64 as a dtype; ValueError for anything else."""
    try:
        found = None if dtype is None else np.dtype(dtype)
    except TypeError:
        found = None
    if found not in (np.float32, np.float64):
        raise ValueError(f"{name} must be float32 or float64. Got {found or repr(dtype)}.")
    return found
