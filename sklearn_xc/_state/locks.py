"""One writer at a time in a folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:  # not a Unix
    fcntl = None


@contextmanager
def locked(folder: Path, why: str) -> Iterator[None]:
    """Hold a folder for oneself; the system lets go of it when the process ends, however it does.

    Parameters
    ----------
    folder : Path
    why : str
        For the message, should it be held by another.

    Raises
    ------
    BlockingIOError
        If another holds it.
    """
    if fcntl is None:
        yield
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError(f"{folder}: {why}.") from None
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(number)
