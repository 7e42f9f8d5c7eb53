"""A flag that asks workers to stop at their next step."""

import threading


class StopFlag:
    """Shared by the threads of one call; a copy sent to another process is never set.

    joblib may run the work in processes under a user's ``parallel_config``. Those are ended by
    joblib itself, so that the flag need not reach them, but it must survive being pickled.
    """

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Ask for the stop."""
        self._event.set()

    def is_set(self) -> bool:
        """Tell whether the stop was asked for."""
        return self._event.is_set()

    def __reduce__(self) -> tuple[type, tuple]:
        return StopFlag, ()
