"""Opening data files: decompression when reading, all or nothing when writing."""

import errno
import gzip
import lzma
import os
import secrets
import signal
import stat
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

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


@contextmanager
def open_atomic(path: str | os.PathLike[str]) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """Open a file for writing that appears under its name only when it is complete.

    The bytes go to a file without a name in the same folder, which takes the place of `path` at the
    end and keeps its mode. Whatever ends the process before, an older file is as it was and nothing
    else is left. A pipe or a device is written to as it stands. A name that ends in ``.gz`` or
    ``.xz`` compresses; equal content gives equal bytes.

    Notes
    -----
    Where files without a name do not exist (outside Linux, on network file systems) the bytes go to
    a hidden file beside `path`. It is removed after an error, an interruption, and in the main
    thread a SIGTERM for which there is no handler; a SIGKILL leaves it.
    """
    target = Path(os.path.realpath(os.fsdecode(path)))
    if target.is_dir() or not target.parent.is_dir():
        number = errno.EISDIR if target.is_dir() else errno.ENOENT
        raise OSError(number, os.strerror(number), os.fspath(path))
    if target.exists() and not target.is_file():  # a pipe or a device
        with open(target, "wb") as given, _compressing(given, target.suffix) as stream:
            yield stream
        return
    if target.exists() and not os.access(target, os.W_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
    unnamed = _open_unnamed(target.parent)
    if unnamed is None:
        with _scratch_beside(target) as scratch:
            with open(scratch, "xb") as raw:
                with _compressing(raw, target.suffix) as stream:
                    yield stream
                _finish(raw, target)
            os.replace(scratch, target)
    else:
        with unnamed as raw:
            with _compressing(raw, target.suffix) as stream:
                yield stream
            _finish(raw, target)
            # A link takes the place of no file, hence the name in between. With a folder's number,
            # which is not used, Python follows the link in /proc.
            with _scratch_beside(target) as scratch:
                os.link(f"/proc/self/fd/{raw.fileno()}", scratch, src_dir_fd=raw.fileno())
                os.replace(scratch, target)


def _open_unnamed(folder: Path) -> IO[bytes] | None:
    """Open a file that has no name yet, or return None where there is none."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return os.fdopen(os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666), "wb")
    except OSError:
        return None


@contextmanager
def _compressing(raw: IO[bytes], suffix: str) -> Iterator[IO[bytes] | gzip.GzipFile]:
    if suffix == ".gz":
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as stream:
            yield stream
    elif suffix == ".xz":
        with lzma.LZMAFile(raw, "wb") as stream:
            yield stream
    else:
        yield raw


def _finish(raw: IO[bytes], target: Path) -> None:
    """Bring all bytes to the disk, and give the file the mode of the one it replaces."""
    raw.flush()
    if target.exists():
        os.fchmod(raw.fileno(), stat.S_IMODE(target.stat().st_mode))
    os.fsync(raw.fileno())


class _TerminatedError(BaseException):
    """A SIGTERM came; raised so that the file is removed before the process ends."""


@contextmanager
def _scratch_beside(target: Path) -> Iterator[Path]:
    """Yield the name of a hidden file beside `target`, which is gone at the end.

    In the main thread, the only one in which Python handles signals, it is gone as well where a
    SIGTERM comes that would end the process at once. A handler of the user's own is not touched.
    """
    scratch = target.with_name(f".{target.name[:40]}.{secrets.token_hex(4)}.tmp")
    handles = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )
    came = done = False

    def handler(number: int, frame: Any) -> None:
        nonlocal came
        disturbs = came or done
        came = True
        if not disturbs:
            raise _TerminatedError

    try:
        try:
            if handles:
                signal.signal(signal.SIGTERM, handler)
            yield scratch
        finally:
            done = True
    finally:
        scratch.unlink(missing_ok=True)
        if handles and signal.getsignal(signal.SIGTERM) is handler:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if came:
            signal.raise_signal(signal.SIGTERM)
