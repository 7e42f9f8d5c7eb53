"""Training loops that resume from ``checkpoint_dir``."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from sklearn_xc._state.checkpoints import Checkpoints, checkpoints_of
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
        name = f"{self._name}-{name}" if self._name else name
        return Loop(self._checkpoints, name)

    def get(self) -> dict[str, np.ndarray] | None:
        """Return the state kept last; None if there is none, or if it is damaged."""
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
            raise SavedModelError(f"{name!r} does not fit this training.")
    for name, array in arrays.items():
        array[...] = found[name]


@contextmanager
def kept_loops(
    estimator: Any, data: Mapping[str, Iterable[Any] | None] | None, seed: int
) -> Iterator[tuple[Loop, int]]:
    """Open the folder ``checkpoint_dir`` of an estimator, if it has one.

    Parameters
    ----------
    estimator : estimator
    data : dict or None
        As of ``key_of``; None keeps nothing, as where a call is no ``fit``.
    seed : int
        Drawn for the fit.

    Yields
    ------
    loop : Loop
    seed : int
        That of the call that began the fit.

    Raises
    ------
    SavedModelError
        For a folder of another fit, and for a ValueError or IndexError of a fit that has resumed.
    """
    if data is None:
        yield Loop(), seed
        return
    with checkpoints_of(estimator, data, [seed]) as checkpoints:
        if checkpoints is not None:
            (seed,) = checkpoints.settings
        try:
            yield Loop(checkpoints), seed
        except (ValueError, IndexError) as error:
            if checkpoints is None or not checkpoints.was_read:
                raise
            raise SavedModelError(
                f"{checkpoints.who}: the fit resumed from checkpoint_dir "
                f"{str(checkpoints.folder)!r} and failed: {error} Remove the folder to begin anew."
            ) from error
