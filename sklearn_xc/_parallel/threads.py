"""Number of threads, from the parameter ``n_jobs``."""

import os
from numbers import Integral
from typing import Any

import numpy as np
from joblib import effective_n_jobs
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
    if is_of_joblib(backend):
        return max(1, min(effective_n_jobs(n_jobs), most))
    return max(1, min(ThreadingBackend().effective_n_jobs(n_jobs or configured), most))


def is_of_joblib(backend: Any) -> bool:
    """Return whether a backend is one that joblib has for a single machine."""
    return type(backend).__module__ == ThreadingBackend.__module__
