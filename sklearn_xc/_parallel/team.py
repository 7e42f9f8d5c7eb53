"""Threads that run parts of one step together."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any


class Team:
    """A pool of threads; a team of one is the calling thread.

    Use it in a ``with`` statement, at whose end all threads have stopped.

    Parameters
    ----------
    n_workers : int
        Threads.
    """

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self._pool = ThreadPoolExecutor(n_workers) if n_workers > 1 else None

    def __enter__(self) -> "Team":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def run(self, work: Callable[[int], Any]) -> list:
        """Return the results of ``work(worker)``, one for each worker."""
        if self._pool is None:
            return [work(0)]
        return list(self._pool.map(work, range(self.n_workers)))
