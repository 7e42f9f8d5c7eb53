"""What people read when something is wrong with what they gave."""

import errno
import os
import sys
from collections.abc import Iterable

from sklearn_xc._near_names import did_you_mean

#: Exit codes.
OK, BUG, BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141
#: Columns or names that a message lists at most.
_MOST_LISTED = 30


class CommandError(Exception):
    """A sentence for the user of the command line, which ends with exit code 2."""


def say(text: str) -> None:
    """Print a line on standard error, away from the results."""
    print(text, file=sys.stderr, flush=True)


def nearest(name: str, names: Iterable[str]) -> str:
    """Return " Did you mean ...?" for the most similar of `names`, or nothing."""
    return did_you_mean(name, names)


def listed(names: Iterable[object]) -> str:
    """Return names with commas between them, the end of a long list left out."""
    names = list(names)
    more = len(names) - _MOST_LISTED
    text = ", ".join(map(str, names[:_MOST_LISTED]))
    return f"{text} and {more} more" if more > 0 else text


def explain_os_error(error: OSError) -> str:
    """Return what an error of the operating system means for the user."""
    path = error.filename if isinstance(error.filename, str) else "the output"
    if error.errno == errno.ENOENT:
        folder = os.path.dirname(path) or "."
        if not os.path.isdir(folder):
            return f"{path}: there is no folder {folder!r}."
        return f"{path}: there is no such file.{nearest(os.path.basename(path), _files(folder))}"
    if error.errno == errno.ENOSPC:
        return f"{path}: the disk is full."
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{path}: not allowed to read or write there."
    if error.errno == errno.EISDIR:
        return f"{path}: is a folder, where a file was expected."
    return f"{path}: {error.strerror or error}."


def _files(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
