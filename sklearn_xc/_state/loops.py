"""Training loops that resume from ``checkpoint_dir``."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from sklearn_xc._state.checkpoints import Checkpoints, Data, checkpoints_of
from sklearn_xc.exceptions import SavedModelError

#: Seconds between the epochs that a loop keeps.
INTERVAL = 60.0


class Loop:
    """A training loop that keeps named arrays: at most once a minute, and at its end.

    Parameters
    ----------
    checkpoints : Checkpoints or None
        None keeps nothing.
    name : str
        Lower-case letters, digits, dots and hyphens.
    """

    def __init__(self, checkpoints: Checkpoints | None = None, name: str = "") -> None:
        self._checkpoints, self._name = checkpoints, name
        self._due = time.monotonic() + INTERVAL

    def within(self, name: str) -> "Loop":
        """Return a loop of this part of the fit."""
        return Loop(self._checkpoints, f"{self._name}-{name}" if self._name else name)

    def get(self) -> dict[str, np.ndarray] | None:
        """Return the arrays kept last; None if there are none, or if they are damaged."""
        return None if self._checkpoints is None else self._checkpoints.get(self._name)

    def put(self, state: Callable[[], Mapping[str, np.ndarray]], *, is_final: bool = False) -> None:
        """Keep the arrays that `state` returns, if a minute has passed or it is final."""
        if self._checkpoints is not None and (is_final or time.monotonic() >= self._due):
            self._checkpoints.put(self._name, state())
            self._due = time.monotonic() + INTERVAL


def restore(arrays: Mapping[str, np.ndarray], found: Mapping[str, np.ndarray]) -> None:
    """Write arrays of a checkpoint over those of a training that began alike.

    Raises
    ------
    SavedModelError
        If an array is missing, has another dtype or shape, or holds NaN, infinity or a negative
        integer. Nothing is written then.
    """
    for name, array in arrays.items():
        new = found.get(name)
        if (
            new is None
            or (new.dtype, new.shape) != (array.dtype, array.shape)
            or not np.isfinite(new).all()
            or (new.dtype.kind == "i" and (new < 0).any())
        ):
            raise SavedModelError(f"checkpoint_dir: {name!r} does not fit this training.")
    for name, array in arrays.items():
        array[...] = found[name]


@contextmanager
def kept_loops(estimator: Any, data: Data | None, seed: int) -> Iterator[tuple[Loop, int]]:
    """Yield a loop in the ``checkpoint_dir`` of an estimator, and the seed that began its fit.

    With `data` None, as where the call is no ``fit``, nothing is kept.
    """
    if data is None or estimator.checkpoint_dir is None:
        yield Loop(), seed
        return
    with checkpoints_of(estimator, data, [seed]) as checkpoints:
        assert checkpoints is not None
        yield Loop(checkpoints), checkpoints.settings[0]
