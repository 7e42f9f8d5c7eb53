"""NUMA nodes: which processors and how much memory each has, and where pages lie.

Of Linux alone, by its files in sysfs and its system calls; elsewhere there is one node.
"""

import ctypes
import os
import platform
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

#: Where Linux tells of nodes.
SYSFS = Path("/sys/devices/system/node")
#: Numbers of the system calls mbind and move_pages.
_CALLS = {"x86_64": (237, 279), "aarch64": (235, 239)}
_INTERLEAVE, _MOVE = 3, 2
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


def interleave(arrays: Iterable[np.ndarray], numbers: Iterable[int]) -> bool:
    """Spread the pages of arrays over nodes, in place; tell whether that could be done."""
    mask = ctypes.c_ulong(sum(1 << number for number in numbers))
    done = True
    for array in arrays:
        first = -(-array.ctypes.data // _PAGE) * _PAGE
        size = array.ctypes.data + array.nbytes - first
        if size >= _PAGE:
            done &= _call(
                0, ctypes.c_void_p(first), ctypes.c_ulong(size), _INTERLEAVE, ctypes.byref(mask),
                ctypes.c_ulong(64), _MOVE,
            ) == 0  # fmt: skip
    return done


def nodes_of_pages(array: np.ndarray) -> np.ndarray:
    """Return on which node each page of an array lies, negative where that is not known."""
    first = array.ctypes.data // _PAGE * _PAGE
    pages = np.arange(first, array.ctypes.data + array.nbytes, _PAGE, dtype=np.uint64)
    status = np.full(len(pages), -1, np.int32)
    _call(
        1, 0, ctypes.c_ulong(len(pages)), ctypes.c_void_p(pages.ctypes.data), None,
        ctypes.c_void_p(status.ctypes.data), 0,
    )  # fmt: skip
    return status


def _call(which: int, *arguments: object) -> int:
    """Make a system call; -1 where it fails or there is none."""
    numbers = _CALLS.get(platform.machine())
    if numbers is None or platform.system() != "Linux":
        return -1
    return int(ctypes.CDLL(None, use_errno=True).syscall(numbers[which], *arguments))
