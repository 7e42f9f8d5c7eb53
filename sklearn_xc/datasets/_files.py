"""Opening data files: decompression when reading, all or nothing when writing."""

import gzip
import lzma
import os
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from sklearn_xc.exceptions import DataFormatError


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
    """
    name = os.fspath(path)
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


@contextmanager
def open_atomic(path: str | os.PathLike[str]) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """Open a file for writing that appears under its name only when it is complete.

    The bytes go to a temporary file in the same folder, which replaces `path` at the end. After an
    error or an interruption an older file is as it was and the temporary one is gone. A name that
    ends in ``.gz`` or ``.xz`` compresses; equal content gives equal bytes.
    """
    target = Path(os.path.realpath(path))
    scratch = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    raw = open(scratch, "xb")  # noqa: SIM115 (closed before it is renamed)
    try:
        with raw:
            if target.suffix == ".gz":
                with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as stream:
                    yield stream
            elif target.suffix == ".xz":
                with lzma.LZMAFile(raw, "wb") as stream:
                    yield stream
            else:
                yield raw
            raw.flush()
            os.fsync(raw.fileno())
        os.replace(scratch, target)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
