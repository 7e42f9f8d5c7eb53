"""NUMA nodes: which processors and how much memory each has, and where pages lie.

Of Linux alone, by its files in sysfs and its system calls; elsewhere there is one node.
"""

import ctypes
import os
import platform
import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

#: Where Linux tells of nodes.
SYSFS = Path("/sys/devices/system/node")
#: The number of the system call move_pages, and its flag for pages of this process alone.
_MOVE_PAGES, _MOVE = {"x86_64": 279, "aarch64": 239}, 2
#: The share of pages that have to be where they shall: some may be busy.
_MOSTLY = 0.9
#: Bytes that stay together: a huge page moves as a whole.
_PIECE = 2**21
_PAGE = os.sysconf("SC_PAGESIZE") if hasattr(os, "sysconf") else 4096


@dataclass(frozen=True)
class Node:
    """Processors that are near some memory.

    Attributes
    ----------
    number : int
    cpus : tuple of int
        Those that this process may use, rising.
    free : int
        Bytes of its memory that nobody uses.
    """

    number: int
    cpus: tuple[int, ...]
    free: int


def nodes(root: Path = SYSFS, allowed: Collection[int] | None = None) -> list[Node]:
    """Return the nodes whose processors this process may use; none where that is not known.

    Parameters
    ----------
    root : Path
        A folder as Linux has it.
    allowed : collection of int, default=None
        Processors; None for those of this process.
    """
    if allowed is None:
        allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    found = []
    try:
        for number in numbers_of((root / "online").read_text()):
            folder = root / f"node{number}"
            cpus = sorted(set(numbers_of((folder / "cpulist").read_text())) & set(allowed))
            if cpus:  # else it is memory alone
                found.append(Node(number, tuple(cpus), _free_bytes(folder / "meminfo")))
    except (OSError, ValueError):
        return []
    return found


def numbers_of(text: str) -> list[int]:
    """Return the numbers that a list such as "0-3,8" stands for.

    Raises
    ------
    ValueError
        If it is none.
    """
    found: list[int] = []
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            found.extend(range(int(first), int(last or first) + 1))
    return found


def _free_bytes(path: Path) -> int:
    """Return what a node says is free; page cache counts, as it gives way."""
    kilobytes = {
        name: int(number)
        for name, number in re.findall(r"(MemFree|FilePages|Shmem):\s+(\d+) kB", path.read_text())
    }
    cache = max(0, kilobytes.get("FilePages", 0) - kilobytes.get("Shmem", 0))
    return 1024 * (kilobytes["MemFree"] + cache) if "MemFree" in kilobytes else 0


def pin(cpus: Iterable[int]) -> None:
    """Keep this thread on some processors, if that can be done."""
    with suppress(OSError, AttributeError):  # a container may forbid it
        os.sched_setaffinity(0, cpus)


def spread(arrays: Iterable[np.ndarray], numbers: Sequence[int]) -> bool:
    """Move the pages of arrays, in place, so that nodes have one piece each in turn.

    Returns
    -------
    bool
        Whether that could be done. ``mbind`` could not: it leaves what is on one of the nodes.
    """
    done = True
    for array in arrays:
        if array.dtype.hasobject:
            continue
        pages = _pages_of(array)
        there = np.array(numbers, np.int32)[(pages // _PIECE % len(numbers)).astype(np.int64)]
        _moved(pages, there)
        done &= bool((nodes_of_pages(array) == there).mean() > _MOSTLY)
    return done


def nodes_of_pages(array: np.ndarray) -> np.ndarray:
    """Return on which node each page of a contiguous array lies, negative where it is not known."""
    # The kernel does not tell of pages by which it is about to find out who reads them.
    array.reshape(-1).view(np.uint8)[::_PAGE].max(initial=0)
    return _moved(_pages_of(array), None)


def _pages_of(array: np.ndarray) -> np.ndarray:
    first = array.ctypes.data // _PAGE * _PAGE
    return np.arange(first, array.ctypes.data + array.nbytes, _PAGE, dtype=np.uint64)


def _moved(pages: np.ndarray, there: np.ndarray | None) -> np.ndarray:
    """Move pages to nodes, if any are given; return where they are, negative where unknown."""
    status = np.full(len(pages), -1, np.int32)
    number = _MOVE_PAGES.get(platform.machine())
    if number is not None and platform.system() == "Linux" and len(pages):
        ctypes.CDLL(None, use_errno=True).syscall(
            number,
            0,
            ctypes.c_ulong(len(pages)),
            ctypes.c_void_p(pages.ctypes.data),
            None if there is None else ctypes.c_void_p(there.ctypes.data),
            ctypes.c_void_p(status.ctypes.data),
            _MOVE,
        )
    return status
