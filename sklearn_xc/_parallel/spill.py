"""Arrays outside the heap: in anonymous memory maps, and in unnamed files beyond a limit.

Memory of many small arrays stays with the process after they are freed: the heap has holes. A
memory map returns to the system at once, so that finished weights can be moved one block at a time
and are in memory once.
"""

import functools
import mmap
import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from sklearn_xc._parallel.memory import available_bytes, format_bytes

#: Size of the files, in bytes; each takes a file descriptor.
PIECE = 2**28
#: Rows of more bytes are in a file.
_LARGE = 2**26


class Spill:
    """Copies arrays to memory maps, and to files once they exceed a limit.

    Parameters
    ----------
    allowed : int or None
        Bytes to keep in memory; None for half of what the machine has left. The rest goes to
        unnamed files in the folder of temporary files (``TMPDIR``), which vanish with the arrays,
        however the process ends.
    who : str
        Name of the estimator, for messages.
    """

    def __init__(self, allowed: int | None, who: str) -> None:
        if allowed is None:
            free = available_bytes()
            allowed = 2**63 if free is None else free // 2
        self.allowed, self.who = allowed, who
        self.in_memory = self.in_file = 0
        self._piece: mmap.mmap | None = None
        self._used = 0

    def keep(self, array: np.ndarray) -> np.ndarray:
        """Return a copy of a contiguous array outside the heap.

        Its memory, or its part of the file, is free once the last array in it is gone.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        size = array.nbytes
        if size == 0:
            return array.copy()
        room: mmap.mmap
        if self.in_memory + size <= self.allowed:
            room, first = mmap.mmap(-1, size), 0
            self.in_memory += size
        else:
            first = -(-self._used // 64) * 64
            if self._piece is None or first + size > len(self._piece):
                what = f"weights beyond {format_bytes(self.allowed)}"
                self._piece, first = _mapped_file(max(PIECE, size), what, self.who), 0
            room, self._used = self._piece, first + size
            self.in_file += size
        kept = np.frombuffer(room, array.dtype, array.size, first).reshape(array.shape)
        kept[...] = array
        return kept


def empty_in_file(size: int, dtype: Any, who: str) -> np.ndarray:
    """Return `size` zeros in an unnamed file, whose memory the system can take back.

    `who` is the name of the estimator, for the OSError where the file cannot be written.
    """
    n_bytes = size * np.dtype(dtype).itemsize
    if n_bytes == 0:
        return np.empty(0, dtype)
    return np.frombuffer(_mapped_file(n_bytes, "data beyond max_memory", who), dtype, size)


def empty_rows(n: int, dim: int, dtype: Any, who: str) -> np.ndarray:
    """Return zeros (n, dim), in an unnamed file if they are large; see :func:`empty_in_file`."""
    if n * dim * np.dtype(dtype).itemsize <= _LARGE:
        return np.zeros((n, dim), dtype)
    return empty_in_file(n * dim, dtype, who).reshape(n, dim)


def allocator(in_files: bool, who: str) -> Callable[..., np.ndarray]:
    """Return a function of a length and a dtype that makes arrays, in files or in memory."""
    return functools.partial(empty_in_file, who=who) if in_files else np.empty


class _MappedFile(mmap.mmap):
    """An unnamed file in memory, with the name of the estimator that its arrays belong to."""

    who = ""


def _memory_of(array: np.ndarray) -> Any:
    """Return the object whose memory an array is a view of."""
    room: Any = array
    while isinstance(room, np.ndarray):
        room = room.base
    return room.obj if isinstance(room, memoryview) else room


def is_in_file(array: np.ndarray) -> bool:
    """Return whether an array is in an unnamed file."""
    return isinstance(_memory_of(array), _MappedFile)


def allocator_like(array: np.ndarray) -> Callable[..., np.ndarray]:
    """Return a function like that of :func:`allocator`: in files if this array is in one."""
    return allocator(is_in_file(array), getattr(_memory_of(array), "who", ""))


def _mapped_file(size: int, what: str, who: str) -> _MappedFile:
    try:
        with tempfile.TemporaryFile(prefix="sklearn_xc-") as file:
            if hasattr(os, "posix_fallocate"):  # a full disk is an error now, not a signal later
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
            room = _MappedFile(file.fileno(), size)
            room.who = who
            return room
    except OSError as error:
        raise OSError(
            error.errno,
            f"{who}: {what} need a file of {format_bytes(size)} in {tempfile.gettempdir()}: "
            f"{error.strerror}. Raise max_memory, or set TMPDIR to a folder with more room",
        ) from error


def release(array: np.ndarray, n: int) -> None:
    """Return the memory of the first n items of an array from ``Spill.keep`` to the system.

    They must not be read again. Pages that hold further items or other arrays stay.
    """
    room = _memory_of(array)
    if not isinstance(room, mmap.mmap) or not hasattr(mmap, "MADV_REMOVE"):
        return
    offset = array.ctypes.data - np.frombuffer(room, np.uint8).ctypes.data
    first = -(-offset // mmap.PAGESIZE) * mmap.PAGESIZE
    size = (offset + n * array.itemsize) // mmap.PAGESIZE * mmap.PAGESIZE - first
    if size <= 0:
        return
    try:
        room.madvise(mmap.MADV_REMOVE, first, size)
    except OSError:  # a file system without holes: the memory at least
        room.madvise(mmap.MADV_DONTNEED, first, size)
