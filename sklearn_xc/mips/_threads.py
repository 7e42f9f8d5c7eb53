"""Threads over ranges of rows, and BLAS kept to one thread meanwhile."""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from joblib import Parallel, delayed


def for_row_ranges(
    work: Callable[[int, int], Any], n: int, n_together: int, n_jobs: int | None
) -> None:
    """Call ``work(first, last)`` for ranges that cover the rows 0 to n, in threads.

    Parameters
    ----------
    work : callable
        Writes what it finds to places of its own.
    n, n_together : int
        Rows, and rows of a range, but for the last one. No thread is started for a single range.
    n_jobs : int or None
        Threads, as joblib counts them. The ranges do not depend on it.
    """
    ranges = [(first, min(first + n_together, n)) for first in range(0, n, n_together)]
    with one_blas_thread():
        if len(ranges) < 2 or n_jobs in (None, 1):
            for first, last in ranges:
                work(first, last)
        else:
            Parallel(n_jobs=n_jobs, require="sharedmem")(delayed(work)(*each) for each in ranges)


def one_blas_thread() -> AbstractContextManager:
    """Return a context in which BLAS has one thread; where it has one already, nothing is done.

    ``threadpoolctl.threadpool_limits`` looks through all loaded libraries, for 5 ms: as long as a
    search among 10,000 labels for a hundred queries.
    """
    blas = _blas()
    if all(library.get_num_threads() == 1 for library in blas.lib_controllers):
        return nullcontext()
    return blas.limit(limits=1)


@functools.cache
def _blas() -> Any:
    """Return the controller of the BLAS libraries that are loaded, numpy's among them."""
    import numpy  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
