"""Bytes of the arrays that an object holds."""

from typing import Any

import numpy as np


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
