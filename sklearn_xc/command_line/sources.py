"""Files and standard input as lines of text: decompressed, decoded, numbered."""

import bz2
import codecs
import gzip
import io
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn_xc.command_line.errors import CommandError

#: First bytes of a file, and what opens it.
_OPENERS: dict[bytes, Any] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
    b"\xfd7zXZ\x00": lzma.LZMAFile,
    b"BZh": bz2.BZ2File,
}
_MOST_MAGIC = 6
#: Encodings that announce themselves by their first bytes, as Excel's "Unicode text" does.
_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


class Source:
    """An open table.

    Attributes
    ----------
    name : str
        For messages.
    stream : io.BufferedReader
        The decompressed bytes.
    line : int
        Number of the line that was read last.
    """

    def __init__(self, name: str, raw: Any, stream: io.BufferedReader) -> None:
        self.name = name
        self.stream = stream
        self.line = 0
        self._raw = raw
        self._bytes = _size_of(raw)

    def share_read(self) -> float | None:
        """Return the share of the file that has been read, None where its size is not known."""
        return min(1.0, self._raw.tell() / self._bytes) if self._bytes else None

    def error(self, text: str, line: int | None = None) -> CommandError:
        """Return the error to raise, which names file and line."""
        return CommandError(f"{self.name}, line {self.line if line is None else line}: {text}")

    def lines(self, encoding: str | None) -> Iterator[str]:
        """Yield the lines, with their ends; a mark at the beginning of the file is left out.

        Parameters
        ----------
        encoding : str or None
            None is UTF-8, or UTF-16 where the file begins with its mark.
        """
        if encoding is None:
            encoding = _MARKS.get(self.stream.peek(2)[:2], "utf-8-sig")
        encoding = codecs.lookup(encoding).name
        if encoding == "utf-8":
            encoding = "utf-8-sig"  # which reads UTF-8 with and without a mark
        if encoding.startswith(("utf-16", "utf-32")):  # lines cannot be cut before decoding
            yield from self._wide_lines(encoding)
            return
        for line in self.stream:
            self.line += 1
            try:
                text = line.decode(encoding)
            except UnicodeDecodeError as error:
                raise self.error(
                    f"byte {error.start + 1} of the line (0x{line[error.start]:02x}) is no "
                    f"{encoding.removesuffix('-sig').upper()}. Which encoding was the table saved "
                    "with? From Excel or an older program it is often --encoding cp1252."
                ) from None
            if self.line == 1:
                encoding = encoding.removesuffix("-sig")
            yield text

    def _wide_lines(self, encoding: str) -> Iterator[str]:
        decoded = io.TextIOWrapper(self.stream, encoding, newline="")
        try:
            for text in decoded:
                self.line += 1
                yield text
        except UnicodeError as error:
            raise self.error(f"the table is no {encoding.upper()} ({error}).") from None
        finally:
            if not self.stream.closed:  # which is not for `decoded` to close
                decoded.detach()


@contextmanager
def open_source(path: str) -> Iterator[Source]:
    """Open a file, or standard input for "-"; its first bytes say how it is compressed.

    Raises
    ------
    CommandError
        For what is no table, and damaged compressed data.
    """
    is_input = path == "-"
    name = "standard input" if is_input else path
    raw: Any = sys.stdin.buffer if is_input else open(path, "rb")  # noqa: SIM115 (closed below)
    source = None
    try:
        # Standard input may be anything that a test or another program put there.
        peekable = raw if hasattr(raw, "peek") else io.BufferedReader(raw)
        magic = peekable.peek(_MOST_MAGIC)[:_MOST_MAGIC]
        if magic.startswith(b"PK\x03\x04"):
            raise CommandError(
                f"{name}: this is a zip archive or an Excel workbook. Unpack it, or save the sheet "
                "as 'CSV UTF-8' first."
            )
        opener = next((_OPENERS[begin] for begin in _OPENERS if magic.startswith(begin)), None)
        stream = peekable if opener is None else io.BufferedReader(opener(peekable))
        source = Source(name, raw, stream)
        yield source
    except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise _damaged(name, source, error) from None
    except OSError as error:
        if error.errno is None:  # bz2 has no error of its own
            raise _damaged(name, source, error) from None
        raise
    finally:
        if not is_input:
            raw.close()


def _damaged(name: str, source: Source | None, error: Exception) -> CommandError:
    line = 0 if source is None else source.line
    return CommandError(
        f"{name}, after line {line}: the compressed data are damaged or cut off ({error}). Fetch "
        "or copy the file again."
    )


def _size_of(raw: Any) -> int:
    """Return the bytes of a file, 0 for a pipe."""
    try:
        status = os.fstat(raw.fileno())
    except (OSError, AttributeError):
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0
