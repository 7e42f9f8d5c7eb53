"""Files that appear under their name only when they are complete."""

import bz2
import errno
import gzip
import lzma
import os
import secrets
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def open_atomic(path: str | os.PathLike[str]) -> Iterator[Any]:
    """Open a file for writing that appears under its name only when it is complete.

    The bytes go to a file without a name in the same folder, which takes the place of `path` at the
    end and keeps its mode. Whatever ends the process before, an older file is as it was and nothing
    else is left. A pipe or a device is written to as it stands. A name that ends in ``.gz``,
    ``.xz`` or ``.bz2`` compresses; equal content gives equal bytes.

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
def _compressing(raw: IO[bytes], suffix: str) -> Iterator[Any]:
    if suffix == ".gz":
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as stream:
            yield stream
    elif suffix == ".xz":
        with lzma.LZMAFile(raw, "wb") as stream:
            yield stream
    elif suffix == ".bz2":
        with bz2.BZ2File(raw, "wb") as stream:
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
