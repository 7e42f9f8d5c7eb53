"""The part of an estimator's ``max_memory`` that is left for an estimator inside it."""

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from sklearn_xc.parallel.memory import parse_bytes

#: What is left to a fit for which there is no room, so that it says what it needs.
_NEARLY_NONE = 1
#: More than there is anywhere, and an integer that parameters may hold.
_MOST = 2**60


@dataclass
class Share:
    """What fits inside an estimator may hold, one after the other.

    Attributes
    ----------
    allowed : int or None
        Bytes for all; None for no limit.
    held : int, default=0
        What is held beside the next fit.
    """

    allowed: int | None
    held: int = 0

    @contextmanager
    def limiting(self, estimator: Any, *data: Any) -> Iterator[None]:
        """Set the ``max_memory`` of an estimator to what is left, as far as it has one.

        Parameters
        ----------
        estimator : estimator
            The last step of a Pipeline is what trains. A lower limit of its own stays; in the end
            it has again what it had.
        *data : object
            Copies of X and y that were made for it.
        """
        while hasattr(estimator, "steps"):
            estimator = estimator.steps[-1][1]
        if self.allowed is None or "max_memory" not in estimator.get_params(deep=False):
            yield
            return
        own, name = estimator.max_memory, f"{type(estimator).__name__}: max_memory"
        left = min(_MOST, max(_NEARLY_NONE, self.allowed - self.held - array_bytes(data)))
        estimator.max_memory = left if own is None else min(left, parse_bytes(own, name))
        try:
            yield
        finally:
            estimator.max_memory = own


def array_bytes(thing: Any) -> int:
    """Return what the arrays take that an object holds, each of them once."""
    return sum(array.nbytes for array in arrays_in(thing))


def arrays_in(thing: Any) -> list[np.ndarray]:
    """Return the arrays that an object holds in memory of its own, each of them once."""
    return [array for array in _all_arrays(thing) if array.base is None]


def holds_files(thing: Any) -> bool:
    """Return whether an object holds arrays that are maps of files."""
    return any(_is_map(array) for array in _all_arrays(thing))


def _is_map(array: Any) -> bool:
    while not isinstance(array, mmap.mmap):
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
        if array is None:
            return False
    return True


def _all_arrays(thing: Any) -> list[np.ndarray]:
    """Return the arrays that an object holds, each of them once, and not what is a view of one."""
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
