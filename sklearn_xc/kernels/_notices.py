"""What users hear of compilation: a warning if its results cannot be kept.

Nothing here imports numba, so that all may import this file at no cost.
"""

import threading
import warnings


class KernelCacheWarning(UserWarning):
    """The on-disk cache of compiled loops cannot be used; results are right, but come later.

    It is given once per process. The message names the folder and what is wrong with it.
    """


_lock = threading.Lock()
_has_warned = False


def warn_once(problem: str) -> None:
    """Give the process its one warning of the cache."""
    global _has_warned
    with _lock:
        if _has_warned:
            return
        _has_warned = True
    warnings.warn(problem, KernelCacheWarning, stacklevel=2)
