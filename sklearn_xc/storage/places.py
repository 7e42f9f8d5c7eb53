"""Folders of our own: where they may be, what is in the way, and how their files are opened."""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from sklearn_xc.exceptions import SavedModelError


def open_regular(path: Path) -> IO[bytes]:
    """Open a regular file to be read, without waiting for one that is not, such as a pipe.

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        If there is no such file.
    SavedModelError
        If it cannot be read, or is not a regular file.
    """

    def without_waiting(path: str, flags: int) -> int:
        return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))

    try:
        stream = open(path, "rb", opener=without_waiting)  # noqa: SIM115
    except (FileNotFoundError, NotADirectoryError):
        raise
    except (OSError, ValueError) as error:  # a folder, links in a circle, a NUL in the name
        raise SavedModelError(f"{path}: cannot be read ({error}).") from None
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise SavedModelError(f"{path}: is not a regular file.")
    return stream


def own_folder(
    path: str | os.PathLike[str], ours: re.Pattern[str], where: str, what: str, *, is_file: str,
    others: str,
) -> Path:  # fmt: skip
    """Return the folder of a path, if it is ours, or may become so.

    Parameters
    ----------
    path : str or PathLike
        A folder that holds our files or nothing; or a name that is free, in a folder that is there.
    ours : re.Pattern
        Matches the names of our files.
    where : str
        How messages begin.
    what : str
        What is kept there, such as "a model".
    is_file, others : str
        What to do about a file of that name, and about a folder with other files.

    Raises
    ------
    OSError
        If the folder cannot be made or written, or holds other files.
    """
    folder = Path(os.path.abspath(os.fspath(path)))
    is_there = folder.is_dir()
    if folder.exists() and not is_there:
        raise FileExistsError(f"{where} is a file. {is_file}")
    if not folder.parent.is_dir():
        raise FileNotFoundError(
            f"{where} there is no folder {str(folder.parent)!r}. Make it first."
        )
    if not os.access(folder if is_there else folder.parent, os.W_OK | os.X_OK):
        raise PermissionError(f"{where} not allowed to write there.")
    found = sorted(n for n in os.listdir(folder) if not ours.fullmatch(n)) if is_there else []
    if found:
        raise FileExistsError(
            f"{where} holds files that are no part of {what}, such as {found[0]!r}. {others}"
        )
    return folder


@contextmanager
def named_in_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Have errors of the system name a path: that of a full disk does not say where."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise type(error)(error.errno, error.strerror, os.fspath(path)) from error
        raise
