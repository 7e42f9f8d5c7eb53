"""All that the package takes from inside numba: the one file to look at when numba changes.

``cgutils`` and ``TypingError`` are for ``kernels.emitters``, the rest is for the cache.
"""

from numba.core import cgutils
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    InTreeCacheLocator,
    NullCache,
    UserProvidedCacheLocator,
    UserWideCacheLocator,
)
from numba.core.dispatcher import Dispatcher
from numba.core.errors import TypingError
from numba.core.extending import _Intrinsic as Intrinsic
from numba.core.serialize import NumbaPickler, dumps
from numba.core.types import BaseTuple

__all__ = [
    "BaseTuple",
    "CompileResultCacheImpl",
    "Dispatcher",
    "FunctionCache",
    "InTreeCacheLocator",
    "Intrinsic",
    "NullCache",
    "NumbaPickler",
    "TypingError",
    "UserProvidedCacheLocator",
    "UserWideCacheLocator",
    "cgutils",
    "dumps",
]
