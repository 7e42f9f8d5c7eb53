"""Messages about compilation: a line before it starts, a warning if its results cannot be kept.

Nothing here imports numba, so that estimators can import this file at no cost.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sklearn_xc._warnings import warn

# Of the process, not of the thread or context: kernels are compiled in the threads of joblib too.
_lock = threading.Lock()
_n_verbose = 0
_is_announced = _has_warned = False


class KernelCacheWarning(UserWarning):
    """The on-disk cache of compiled loops cannot be used; results are right, but come later.

    It is given once per process. The message names the folder and what is wrong with it.

    Examples
    --------
    Where it is known that there is no folder to write to:

    >>> import warnings
    >>> import numpy as np
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.exceptions import KernelCacheWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", KernelCacheWarning)
    ...     clf = OvALinearXC().fit(np.eye(3), [0, 1, 2])
    >>> clf.predict(np.eye(3))
    array([0, 1, 2])
    """


@contextmanager
def announced_compilation(verbose: int) -> Iterator[None]:
    """Print a line before the first kernel that is compiled in the body, by any thread.

    Where all kernels come from the cache nothing is printed. Within another such body that has
    printed its line there is no second one.

    Parameters
    ----------
    verbose : int
        Nothing is printed if it is 0.
    """
    if not verbose:
        yield
        return
    global _n_verbose, _is_announced
    with _lock:
        _is_announced &= _n_verbose > 0
        _n_verbose += 1
    try:
        yield
    finally:
        with _lock:
            _n_verbose -= 1


def announce_compilation(folder: str | None) -> None:
    """Print once, if requested, that kernels are compiled and kept in `folder`."""
    global _is_announced
    with _lock:
        is_new = _n_verbose > 0 and not _is_announced
        _is_announced |= is_new
    if is_new:
        later = "in each process: no folder for them" if folder is None else f"kept in {folder}"
        print(f"[sklearn_xc] compiling loops, which takes some seconds ({later})", flush=True)


def warn_once(problem: str) -> None:
    """Give the process its one warning of the cache."""
    global _has_warned
    with _lock:
        if _has_warned:
            return
        _has_warned = True
    warn(problem, KernelCacheWarning)
