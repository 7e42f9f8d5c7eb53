"""Threads: their number from ``n_jobs``, ranges of rows, and teams that run a step together."""

import functools
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import ThreadingBackend, get_active_backend

#: Limit on threads where there are few cores.
_MAX_THREADS = 16


def count_threads(n_jobs: Any, name: str = "n_jobs") -> int:
    """Return the number of threads that `n_jobs` asks for, as joblib counts them.

    At most twice the cores, or 16: no result depends on it. Where a ``parallel_config`` asks for a
    cluster, the threads are still those of this machine.

    Parameters
    ----------
    n_jobs : int or None
        None for one, or that of a ``joblib.parallel_config``; -1 for one a core.
    name : str, default="n_jobs"
        The argument's name for the message.

    Raises
    ------
    ValueError
        For 0, a bool, or what is no integer.
    """
    is_whole = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool | np.bool_)
    if n_jobs is not None and (not is_whole or n_jobs == 0):
        raise ValueError(
            f"{name} must be None or an integer other than 0 (-1 for one thread a core). Got "
            f"{n_jobs!r}."
        )
    most = max(_MAX_THREADS, 2 * (os.cpu_count() or 1))
    if n_jobs is not None:
        n_jobs = int(np.clip(int(n_jobs), -most, most))
    backend, configured = get_active_backend()
    if is_local_joblib(backend):
        return max(1, min(effective_n_jobs(n_jobs), most))
    return max(1, min(ThreadingBackend().effective_n_jobs(n_jobs or configured), most))


def is_local_joblib(backend: Any) -> bool:
    """Return whether a backend is one that joblib has for a single machine."""
    return type(backend).__module__ == ThreadingBackend.__module__


def cut_rows(indptr: np.ndarray, n_entries: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows that cover all of them, one after another.

    Parameters
    ----------
    indptr : ndarray of int of shape (n_rows + 1,)
        Where each row begins, ascending.
    n_entries : int
        Limit on the entries of a range, unless it is a single row.

    Yields
    ------
    first, last : int
        The rows from `first` up to, not including, `last`.
    """
    first = 0
    n_rows = len(indptr) - 1
    while first < n_rows:
        end = int(indptr[first]) + n_entries
        last = max(first + 1, int(np.searchsorted(indptr, end, side="right")) - 1)
        yield first, last
        first = last


def for_row_ranges(
    work: Callable[[int, int], Any], n: int, n_together: int, n_jobs: int | None
) -> None:
    """Call ``work(first, last)`` for ranges that cover the rows 0 to n, in threads.

    Parameters
    ----------
    work : callable
        Writes what it finds to places of its own.
    n, n_together : int
        Rows, and rows of a range; the last one may have fewer. No thread is started for a single
        range.
    n_jobs : int or None
        Threads, as joblib counts them. The ranges do not depend on it.
    """
    ranges = [(first, min(first + n_together, n)) for first in range(0, n, n_together)]
    n_workers = 1 if n_jobs is None else count_threads(n_jobs)
    with one_blas_thread():
        if len(ranges) < 2 or n_workers == 1:
            for first, last in ranges:
                work(first, last)
        else:
            Parallel(n_workers, require="sharedmem")(delayed(work)(*each) for each in ranges)


class _Limit:
    """Limit of BLAS to one thread while any context is open; the last one to close lifts it.

    The number of BLAS threads belongs to the process. If each context restored the number that it
    found, contexts that overlap could lift the limit too early, or never.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.n_inside = 0
        self.lift: Any = None


_limit = _Limit()
if hasattr(os, "register_at_fork"):  # threads inside are not in the child
    os.register_at_fork(after_in_child=_limit.__init__)  # type: ignore[misc]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Return a context in which BLAS has one thread, in all threads that are in such a context."""
    with _limit.lock:
        if _limit.n_inside == 0:
            blas = _pools("blas")
            if any(library.get_num_threads() != 1 for library in blas.lib_controllers):
                _limit.lift = blas.limit(limits=1).restore_original_limits
        _limit.n_inside += 1
    try:
        yield
    finally:
        with _limit.lock:
            _limit.n_inside -= 1
            if _limit.n_inside == 0 and _limit.lift is not None:
                _limit.lift()
                _limit.lift = None


def openmp_threads(n: int) -> Any:
    """Return a context in which scikit-learn's OpenMP loops, begun by this thread, have n threads.

    By default they have as many as the machine has cores. If these are busy, threads wait for each
    other at the end of each loop: thirty trees took 10 ms each for a hundred pairs.
    """
    return _pools("openmp").limit(limits=n)


@functools.cache
def _pools(user_api: str) -> Any:
    """Return the controller of the loaded libraries of a kind, numpy's and scikit-learn's.

    Cached: ``threadpoolctl.threadpool_limits`` goes through all libraries each time, for 5 ms.
    """
    import sklearn.base  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api=user_api)


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

    def __exit__(self, *error: Any) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def run(self, work: Callable[[int], Any]) -> list:
        """Return the results of ``work(worker)``, one for each worker."""
        if self._pool is None:
            return [work(0)]
        return list(self._pool.map(work, range(self.n_workers)))
