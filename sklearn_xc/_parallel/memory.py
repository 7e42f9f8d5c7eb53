"""Memory: what is available and allowed, refusals before allocation, and arrays in files."""

import contextlib
import functools
import math
import mmap
import os
import re
import tempfile
from collections.abc import Callable
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from sklearn_xc.exceptions import MemoryBudgetError

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
#: Up to this size, arrays are allocated without asking how much the machine has left.
_SMALL = 2**26
#: Size of the files, in bytes; each takes a file descriptor.
_CHUNK_BYTES = 2**28
#: Rows of more bytes are in a file.
_LARGE = 2**26


def parse_bytes(size: Any, name: str) -> int:
    """Return a number of bytes from a number or a text such as ``"8GB"`` or ``"512 MiB"``.

    Parameters
    ----------
    size : int, float or str
        Bytes, or a number with a unit; units are powers of 1024.
    name : str
        The argument's name for the message.

    Raises
    ------
    ValueError
        If `size` is neither.
    """
    number = math.nan
    if isinstance(size, str):
        match = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]?)(?:I?B)?\s*", size.upper())
        if match is not None:
            with contextlib.suppress(ValueError):  # more than one point
                number = float(match[1]) * _UNITS[match[2]]
    elif not isinstance(size, bool) and isinstance(size, Real):
        with contextlib.suppress(OverflowError):  # an integer beyond all floats
            number = float(size)
    if 1 <= number < math.inf:
        return int(number)
    raise ValueError(f"{name} must be a positive number of bytes or a text as '8GB'. Got {size!r}.")


def format_bytes(size: float) -> str:
    """Return a size for people, as ``"1.5 GiB"``."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def available_bytes() -> int | None:
    """Return the memory that is left on this machine or in its container, or None if unknown."""
    try:
        meminfo = Path("/proc/meminfo").read_text()
        free = int(re.search(r"MemAvailable:\s+(\d+) kB", meminfo)[1]) * 1024  # type: ignore[index]
    except (OSError, TypeError):
        try:
            free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (AttributeError, OSError, ValueError):
            return None
    try:  # a container's own limit
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        free = min(free, max(0, limit - used))
    except (OSError, ValueError):
        pass
    return free


def require_bytes(
    needed: int, allowed: int | None, what: str, advice: str, caller: str = ""
) -> None:
    """Raise unless `needed` bytes fit into what is allowed and, if large, into free memory.

    Parameters
    ----------
    needed : int
        Bytes about to be allocated.
    allowed : int or None
        The user's limit.
    what : str
        The largest array, with its shape.
    advice : str
        What the caller can do.
    caller : str, default=""
        Name of the estimator or function, which the message begins with.

    Raises
    ------
    MemoryBudgetError
        Before anything is allocated.
    """
    name = f"{caller}: " if caller else ""
    free = available_bytes() if needed > _SMALL else None
    for limit, source in ((allowed, "max_memory allows"), (free, "this machine has")):
        if limit is not None and needed > limit:
            raise MemoryBudgetError(
                f"{name}{format_bytes(needed)} are needed and {source} {format_bytes(limit)}. "
                f"The largest array is {what}. {advice}"
            )


class Spill:
    """Copies arrays to memory maps, and to files once they exceed a limit.

    Parameters
    ----------
    allowed : int or None
        Bytes to keep in memory; None for half of what the machine has left. The rest goes to
        unnamed files in the folder of temporary files (``TMPDIR``), which vanish with the arrays,
        however the process ends.
    caller : str
        Name of the estimator, for messages.
    """

    def __init__(self, allowed: int | None, caller: str) -> None:
        if allowed is None:
            free = available_bytes()
            allowed = 2**63 if free is None else free // 2
        self.allowed, self.caller = allowed, caller
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
            room = mmap.mmap(-1, size)
            first = 0
            self.in_memory += size
        else:
            first = -(-self._used // 64) * 64
            if self._piece is None or first + size > len(self._piece):
                what = f"weights beyond {format_bytes(self.allowed)}"
                self._piece, first = _mapped_file(max(_CHUNK_BYTES, size), what, self.caller), 0
            room = self._piece
            self._used = first + size
            self.in_file += size
        kept = np.frombuffer(room, array.dtype, array.size, first).reshape(array.shape)
        kept[...] = array
        return kept


def empty_in_file(size: int, dtype: Any, caller: str) -> np.ndarray:
    """Return `size` zeros in an unnamed file, whose memory the system can take back.

    `caller` is the name of the estimator, for the OSError where the file cannot be written.
    """
    n_bytes = size * np.dtype(dtype).itemsize
    if n_bytes == 0:
        return np.empty(0, dtype)
    return np.frombuffer(_mapped_file(n_bytes, "data beyond max_memory", caller), dtype, size)


def empty_rows(n: int, dim: int, dtype: Any, caller: str) -> np.ndarray:
    """Return zeros (n, dim), in an unnamed file if they are large; see :func:`empty_in_file`."""
    n_bytes = n * dim * np.dtype(dtype).itemsize
    if n_bytes <= _LARGE:
        return np.zeros((n, dim), dtype)
    room = _mapped_file(n_bytes, f"{n} x {dim} numbers", caller, "Set")
    return np.frombuffer(room, dtype).reshape(n, dim)


def allocator(in_files: bool, caller: str) -> Callable[..., np.ndarray]:
    """Return a function of a length and a dtype that makes arrays, in files or in memory."""
    return functools.partial(empty_in_file, caller=caller) if in_files else np.empty


class _MappedFile(mmap.mmap):
    """An unnamed file in memory, with the name of the estimator that its arrays belong to."""

    caller = ""


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
    return allocator(is_in_file(array), getattr(_memory_of(array), "caller", ""))


def _mapped_file(
    size: int, what: str, caller: str, advice: str = "Raise max_memory, or set"
) -> _MappedFile:
    try:
        with tempfile.TemporaryFile(prefix="sklearn_xc-") as file:
            if hasattr(os, "posix_fallocate"):  # a full disk is an error now, not a signal later
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
            room = _MappedFile(file.fileno(), size)
            room.caller = caller
            return room
    except OSError as error:
        raise OSError(
            error.errno,
            f"{caller}: {what} need a file of {format_bytes(size)} in {tempfile.gettempdir()}: "
            f"{error.strerror}. {advice} TMPDIR to a folder with more room",
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


def array_bytes(thing: Any, *, mapped: bool = False) -> int:
    """Return the bytes of all arrays in an object, each counted once; of `mapped` ones if asked."""
    found: dict[int, int] = {}
    seen: set[int] = set()
    waiting = [thing]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            while isinstance(one.base, np.ndarray):
                one = one.base
            found[id(one)] = one.nbytes if mapped or one.base is None else 0
        elif isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, list | tuple | set):
            waiting.extend(one)
        elif hasattr(one, "__dict__") and not isinstance(one, type):
            waiting.append(vars(one))
    return sum(found.values())
