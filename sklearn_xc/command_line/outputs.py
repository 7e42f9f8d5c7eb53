"""Where results are written: files that appear when they are complete, or standard output."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: What the system says when there is no room, without saying where.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def open_output(path: str) -> Iterator[Any]:
    """Open a file that appears under its name when it is complete, or standard output for "-".

    Parameters
    ----------
    path : str
        A name that ends in .gz, .xz or .bz2 compresses.
    """
    if path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    from sklearn_xc._atomic_files import open_atomic

    try:
        with open_atomic(path) as stream:
            yield stream
    except OSError as error:
        if error.filename is None and error.errno in _NO_ROOM:
            error.filename = path
        raise


def give_up_standard_output() -> None:
    """Have what is left in its buffer go nowhere, where Python could not write it at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
