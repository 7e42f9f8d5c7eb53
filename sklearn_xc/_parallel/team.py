"""Threads that run one kernel together, with barriers within it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any

from sklearn_xc._compile.emitters.spin_barrier import abandon, new_barrier


class Team:
    """Threads with a barrier; a single one is the calling thread.

    Use it in a ``with`` statement, at whose end all have stopped.

    Parameters
    ----------
    n_workers : int
        Threads.

    Attributes
    ----------
    barrier : ndarray of int64
        For ``wait_for_all``. It is abandoned as soon as one of the threads fails, or the calling
        thread is interrupted.
    """

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self.barrier = new_barrier()
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
        """Return the result of ``work(worker)`` for each worker; all run at the same time."""
        if self._pool is None:
            return [work(0)]

        def guarded(worker: int) -> Any:
            try:
                return work(worker)
            except BaseException:
                abandon(self.barrier)
                raise

        try:
            futures = [self._pool.submit(guarded, worker) for worker in range(self.n_workers)]
            return [future.result() for future in futures]
        except BaseException:
            abandon(self.barrier)
            raise
