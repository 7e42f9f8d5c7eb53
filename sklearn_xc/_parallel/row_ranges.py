"""Ranges of rows for chunks and threads, and limits on the threads of BLAS and OpenMP."""

import functools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from sklearn_xc._parallel.threads import count_threads


def cut_rows(indptr: np.ndarray, n_entries: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows that cover all of them, one after another.

    Parameters
    ----------
    indptr : ndarray of int of shape (n_rows + 1,)
        Where each row begins, rising.
    n_entries : int
        Limit on the entries of a range, unless it is a single row.

    Yields
    ------
    first, last : int
        The rows from `first` up to, not including, `last`.
    """
    first, n_rows = 0, len(indptr) - 1
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
