"""A flag that asks workers to stop at their next step."""

import threading


class StopFlag:
    """Shared by the threads of one call; a copy that was sent to another process is never set."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Ask for the stop."""
        self._event.set()

    def is_set(self) -> bool:
        """Return whether the stop was asked for."""
        return self._event.is_set()

    def __reduce__(self) -> tuple[type, tuple]:
        return StopFlag, ()

    def __deepcopy__(self, memo: object) -> "StopFlag":
        return self
