"""All that the package takes from inside numba: the one file to look at when numba changes.

``cgutils`` is for the emitters, ``compilation_timer`` for time budgets, the rest for the cache.
"""
# ruff: noqa: F401 (names for other files)

from contextlib import AbstractContextManager
from typing import Any

from numba.core import caching, cgutils, event
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic as Intrinsic
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from numba.core.types import BaseTuple


def _locator(name: str) -> Any:
    """Return what finds a folder for compiled code; older versions have a line before its name."""
    return getattr(caching, name, None) or getattr(caching, f"_{name}")


def compilation_timer() -> AbstractContextManager[Any]:
    """Return a context that begins with an object: `duration` if `done`, seconds of compilation."""
    return event.install_listener("numba:compile", event.TimingListener())


InTreeCacheLocator = _locator("InTreeCacheLocator")
UserProvidedCacheLocator = _locator("UserProvidedCacheLocator")
UserWideCacheLocator = _locator("UserWideCacheLocator")
