"""What users hear of compilation: a line before it starts, a warning if its results cannot be kept.

Nothing here imports numba, so that estimators can import this file at no cost.
"""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


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


class _Listener:
    """One who wants to hear that kernels are compiled, once."""

    def __init__(self) -> None:
        self.was_told = False


# Of the process, not of the thread or context: kernels are compiled in the threads of joblib too.
_lock = threading.Lock()
_listeners: list[_Listener] = []
_has_warned = False


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
    listener = _Listener()
    with _lock:
        _listeners.append(listener)
    try:
        yield
    finally:
        with _lock:
            _listeners.remove(listener)


def tell_compilation(folder: str | None) -> None:
    """Say to all who listen that a kernel is about to be compiled and kept in `folder`."""
    with _lock:
        is_news = bool(_listeners) and not any(listener.was_told for listener in _listeners)
        for listener in _listeners:
            listener.was_told = True
    if is_news:
        later = "in each process: no folder for them" if folder is None else f"kept in {folder}"
        print(f"[sklearn_xc] compiling loops, which takes some seconds ({later})", flush=True)


def warn_once(problem: str) -> None:
    """Give the process its one warning of the cache."""
    global _has_warned
    with _lock:
        if _has_warned:
            return
        _has_warned = True
    warnings.warn(problem, KernelCacheWarning, stacklevel=2)
