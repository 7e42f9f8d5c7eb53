"""Opening data files for reading, with decompression."""

import gzip
import lzma
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from sklearn_xc.exceptions import DataFormatError, MemoryBudgetError

#: Longer lines are refused: no row of five million features, or of five novels, is longer.
MAX_LINE_BYTES = 1 << 26


class Source:
    """An open data file: decompressed bytes, and how far the reading has come.

    Attributes
    ----------
    path : str
        For error messages.
    stream : binary file
        The decompressed bytes.
    line : int
        Number of the last line that was read completely; the reader keeps it up to date.
    """

    def __init__(self, path: str, raw: Any, stream: Any) -> None:
        self.path = path
        self.stream = stream
        self.line = 0
        self._raw = raw
        self._raw_bytes = os.fstat(raw.fileno()).st_size

    def share_read(self) -> float:
        """Return the share of the file on disk that has been read, above 0 and at most 1."""
        return min(1.0, max(1, self._raw.tell()) / max(1, self._raw_bytes))

    def lines(self) -> Iterator[bytes]:
        """Yield the lines, with their newlines; `line` is then the number of the last one."""
        most = MAX_LINE_BYTES
        for number, line in enumerate(iter(partial(self.stream.readline, most + 1), b""), 1):
            if len(line) > most:
                self._refuse_longer(line)
            self.line = number
            yield line

    def chunks_of_lines(self, n_bytes: int) -> Iterator[bytes]:
        """Yield pieces of about `n_bytes`, of whole lines; the last gets a newline it may lack."""
        pending = b""
        while True:
            # Twice as much each time, so that a long line is not copied again and again.
            room = MAX_LINE_BYTES + 1 - len(pending)
            new = self.stream.read(min(max(n_bytes, len(pending)), room))
            if not new:
                break
            pending += new
            size = pending.rfind(b"\n") + 1
            if size:
                yield pending[:size]
                pending = pending[size:]
            self._refuse_longer(pending)
        if pending:
            yield pending + b"\n"

    def _refuse_longer(self, line: bytes) -> None:
        if len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
            raise self.error(
                self.line + 1, line, f"the line is longer than {MAX_LINE_BYTES:,} bytes."
            )

    def error(self, line: int, token: object, message: str) -> DataFormatError:
        """Return the error to raise: file, line, the offending token, what was expected."""
        return DataFormatError(f"{self.path}, line {line}: {show(token)}: {message}")


def show(token: object) -> str:
    """Return `token` quoted for a message, the middle of a long one left out."""
    if isinstance(token, bytes):
        short = token if len(token) <= 60 else token[:40] + b"..." + token[-15:]
        return repr(short).removeprefix("b")
    text = str(token)
    return repr(text if len(text) <= 60 else f"{text[:40]}...{text[-15:]}")


@contextmanager
def open_source(path: str | os.PathLike[str]) -> Iterator[Source]:
    """Open a plain, gzip or xz file; its first bytes decide, not its name.

    Raises
    ------
    DataFormatError
        If the compressed data are damaged or cut off.
    MemoryBudgetError
        If the memory is used up.
    """
    name = os.fsdecode(path)
    with open(path, "rb") as raw:
        magic = raw.read(6)
        raw.seek(0)
        stream: Any = raw
        if magic.startswith(b"\x1f\x8b"):
            stream = gzip.GzipFile(fileobj=raw)
        elif magic == b"\xfd7zXZ\x00":
            stream = lzma.LZMAFile(raw)  # noqa: SIM115 (closes with raw)
        source = Source(name, raw, stream)
        try:
            yield source
        except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
            raise DataFormatError(
                f"{name}, after line {source.line}: the compressed data are damaged or cut off "
                f"({error}). Fetch or copy the file again."
            ) from error
        except MemoryBudgetError:
            raise
        except MemoryError as error:
            raise MemoryBudgetError(
                f"{name}, after line {source.line}: the memory is used up. Read the file on a "
                "machine with more, or cut it."
            ) from error
