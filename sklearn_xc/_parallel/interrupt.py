"""A flag that asks workers to stop at their next step."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_here = threading.local()


class StopFlag:
    """Shared by the threads of one call.

    Work may run in other processes, which a copy of the flag is sent to: it is set once whoever
    runs the work there says that nobody waits for it any more, see :func:`heard_of`.
    """

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Ask for the stop."""
        self._event.set()

    def is_set(self) -> bool:
        """Tell whether the stop was asked for."""
        return self._event.is_set() or is_unwanted()

    def __reduce__(self) -> tuple[type, tuple]:
        return StopFlag, ()

    def __deepcopy__(self, memo: object) -> "StopFlag":
        return self  # in one process all hear of the same stop


@contextmanager
def heard_of(ask: Callable[[], bool]) -> Iterator[None]:
    """Have flags count as set in this thread, inside the ``with``, once a function says so."""
    _here.is_unwanted = ask
    try:
        yield
    finally:
        del _here.is_unwanted


def is_unwanted() -> bool:
    """Tell whether nobody waits any more for what this thread works on, see :func:`heard_of`."""
    return bool(getattr(_here, "is_unwanted", _never)())


def _never() -> bool:
    return False
