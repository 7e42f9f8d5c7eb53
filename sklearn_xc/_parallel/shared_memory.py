"""The arrays that an object holds, in memory of its own or mapped from files."""

import mmap
from typing import Any

import numpy as np


def array_bytes(thing: Any) -> int:
    """Return the bytes of the arrays that an object holds, each counted once."""
    return sum(array.nbytes for array in arrays_in(thing))


def arrays_in(thing: Any) -> list[np.ndarray]:
    """Return the arrays that an object holds in memory of its own, each once."""
    return [array for array in _all_arrays(thing) if array.base is None]


def holds_files(thing: Any) -> bool:
    """Return whether an object holds memory-mapped arrays."""
    return any(_is_map(array) for array in _all_arrays(thing))


def _is_map(array: Any) -> bool:
    while not isinstance(array, mmap.mmap):
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
        if array is None:
            return False
    return True


def _all_arrays(thing: Any) -> list[np.ndarray]:
    """Return the arrays that an object holds, each once; of a view, the array behind it."""
    found: dict[int, np.ndarray] = {}
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
            found[id(one)] = one
        elif isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, list | tuple | set):
            waiting.extend(one)
        elif hasattr(one, "__dict__") and not isinstance(one, type):
            waiting.append(vars(one))
    return list(found.values())
