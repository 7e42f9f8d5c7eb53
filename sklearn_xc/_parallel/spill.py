"""Keeps what is finished out of the heap: in mappings of its own, and in a file what does not fit.

Memory that many small arrays took and gave back stays with the process: the heap has holes. A
mapping goes back to the system at once, so that finished parts may be handed over one by one and
are held once.
"""

import functools
import mmap
import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from sklearn_xc._parallel.memory import available_bytes, format_bytes

#: The file is mapped in pieces of so many bytes: each takes a file descriptor.
PIECE = 2**28
#: Bytes of rows from which on they are in a file.
_LARGE = 2**26


class Spill:
    """Takes arrays over.

    Parameters
    ----------
    allowed : int or None
        Bytes to keep in memory; None for half of what the machine has left. What is beyond goes to
        a file without a name in the folder of temporary files (``TMPDIR``), which is gone with the
        arrays, however the process ends.
    who : str
        Name of the estimator, for messages.
    what : str, default="weights"
        What is taken over, for messages.
    """

    def __init__(self, allowed: int | None, who: str, what: str = "weights") -> None:
        if allowed is None:
            free = available_bytes()
            allowed = 2**63 if free is None else free // 2
        self.allowed, self.who, self.what = allowed, who, what
        self.in_memory = self.in_file = 0
        self._piece: mmap.mmap | None = None
        self._used = 0

    def keep(self, array: np.ndarray) -> np.ndarray:
        """Return a copy of an array that is not in the heap.

        Parameters
        ----------
        array : ndarray
            Contiguous.

        Returns
        -------
        ndarray
            Equal to `array`. Its memory, or its place in the file, is free once the last array in
            it is gone.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        size = array.nbytes
        if size == 0:
            return array.copy()
        if self.in_memory + size <= self.allowed:
            room, first = mmap.mmap(-1, size), 0
            self.in_memory += size
        else:
            room, first = self._place(size)
            self.in_file += size
        kept = np.frombuffer(room, array.dtype, array.size, first).reshape(array.shape)
        kept[...] = array
        return kept

    def _place(self, size: int) -> tuple[mmap.mmap, int]:
        """Return a place in the file for so many bytes."""
        first = -(-self._used // 64) * 64
        if self._piece is None or first + size > len(self._piece):
            self._piece, first = self._new_piece(max(PIECE, size)), 0
        self._used = first + size
        return self._piece, first

    def _new_piece(self, size: int) -> mmap.mmap:
        what = f"what is beyond {format_bytes(self.allowed)} of {self.what}"
        return _mapped_file(size, what, self.who)


def empty_in_file(size: int, dtype: Any, who: str) -> np.ndarray:
    """Return an array of zeros in a file without a name, which is gone with it.

    The system writes what is in it to the disk, and takes its memory back, where others need that.

    Parameters
    ----------
    size : int
        Length.
    dtype : dtype
    who : str
        Name of the estimator, for messages.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    n_bytes = size * np.dtype(dtype).itemsize
    if n_bytes == 0:
        return np.empty(0, dtype)
    return np.frombuffer(_mapped_file(n_bytes, "what is beyond max_memory", who), dtype, size)


def empty_rows(n: int, dim: int, dtype: Any, who: str) -> np.ndarray:
    """Return an array (n, dim) of zeros: in memory, or if it is large in a file without a name.

    For rows that are read a few at a time. The arguments are those of :func:`empty_in_file`.
    """
    if n * dim * np.dtype(dtype).itemsize <= _LARGE:
        return np.zeros((n, dim), dtype)
    return empty_in_file(n * dim, dtype, who).reshape(n, dim)


def maker(in_files: bool, who: str) -> Callable[..., np.ndarray]:
    """Return what makes arrays of a length and a dtype: in files, for `who`, or in memory."""
    return functools.partial(empty_in_file, who=who) if in_files else np.empty


class _MappedFile(mmap.mmap):
    """A file without a name, as memory; `who` is the estimator that its arrays are of."""

    who = ""


def _memory_of(array: np.ndarray) -> Any:
    """Return the object whose memory an array is a view of."""
    room: Any = array
    while isinstance(room, np.ndarray):
        room = room.base
    return room.obj if isinstance(room, memoryview) else room


def is_in_file(array: np.ndarray) -> bool:
    """Tell whether an array is in a file without a name, as of :func:`empty_in_file`."""
    return isinstance(_memory_of(array), _MappedFile)


def maker_beside(array: np.ndarray) -> Callable[..., np.ndarray]:
    """Return what makes arrays where this one is, as ``maker`` does."""
    room = _memory_of(array)
    return maker(isinstance(room, _MappedFile), getattr(room, "who", ""))


def _mapped_file(size: int, what: str, who: str) -> _MappedFile:
    try:
        with tempfile.TemporaryFile(prefix="sklearn_xc-") as file:
            if hasattr(os, "posix_fallocate"):  # a full disk is told now, not by a signal
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
            room = _MappedFile(file.fileno(), size)
            room.who = who
            return room
    except OSError as error:
        raise OSError(
            error.errno,
            f"{who}: {what} goes to a file, and {format_bytes(size)} cannot be had in "
            f"{tempfile.gettempdir()}: {error.strerror}. Raise max_memory, or set TMPDIR to a "
            "folder with more room",
        ) from error


def release(array: np.ndarray, n: int) -> None:
    """Give back the memory of the first items of an array, which are not to be read again.

    Parameters
    ----------
    array : ndarray
        As ``Spill.keep`` returned it; of others nothing is given back, nor where the system cannot.
    n : int
        How many items. Of the last page, and of pages shared with other arrays, nothing goes.
    """
    room = _memory_of(array)
    if not isinstance(room, mmap.mmap) or not hasattr(mmap, "MADV_REMOVE"):
        return
    place = array.ctypes.data - np.frombuffer(room, np.uint8).ctypes.data
    first = -(-place // mmap.PAGESIZE) * mmap.PAGESIZE
    size = (place + n * array.itemsize) // mmap.PAGESIZE * mmap.PAGESIZE - first
    if size <= 0:
        return
    try:
        room.madvise(mmap.MADV_REMOVE, first, size)
    except OSError:  # a file system without holes: out of the memory at least
        room.madvise(mmap.MADV_DONTNEED, first, size)
