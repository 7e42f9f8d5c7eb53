"""Memory: what the machine has left, what a user allows, and refusals before allocation."""

import contextlib
import math
import os
import re
from numbers import Real
from pathlib import Path
from typing import Any

from sklearn_xc.exceptions import MemoryBudgetError

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


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


def require_bytes(needed: int, allowed: int | None, what: str, advice: str, who: str = "") -> None:
    """Raise unless `needed` bytes fit into what is allowed and into what the machine has left.

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
    who : str, default=""
        Name of the estimator or function, which the message begins with.

    Raises
    ------
    MemoryBudgetError
        Before anything is allocated.
    """
    name = f"{who}: " if who else ""
    free = available_bytes()
    limits = [(allowed, "max_memory allows"), (free, "this machine has")]
    for limit, of_what in limits:
        if limit is not None and needed > limit:
            raise MemoryBudgetError(
                f"{name}{format_bytes(needed)} are needed and {of_what} {format_bytes(limit)}. "
                f"The largest array is {what}. {advice}"
            )
