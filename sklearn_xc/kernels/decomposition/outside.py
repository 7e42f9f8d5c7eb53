"""Kernels over functions that the caller of the package has written."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sklearn_xc.kernels.compiling.jit import inlined, kernel
from sklearn_xc.kernels.compiling.numba_private import Dispatcher, NullCache

_PACKAGE = Path(__file__).resolve().parents[2]


@functools.cache
def callable_in_kernels(function: Any) -> Any:
    """Return a function that kernels may call: one from outside is marked as `inlined`."""
    if is_of_package(function) or isinstance(function, Dispatcher):
        return function
    return inlined(function)


def kernel_over(*functions: Any) -> Callable[[Any], Any]:
    """Return what compiles a kernel that closes over some functions.

    The cache on disk is keyed by the sources of the package, and would not notice an edit in a
    function from outside. A kernel over such a function is compiled by each process.
    """
    return kernel if all(map(is_of_package, functions)) else _kernel_without_cache


def is_of_package(function: Any) -> bool:
    """Tell whether the package's own sources hold a function."""
    code = getattr(getattr(function, "py_func", function), "__code__", None)
    return code is not None and Path(code.co_filename).resolve().is_relative_to(_PACKAGE)


def _kernel_without_cache(function: Any) -> Any:
    compiled: Any = kernel(function)
    if hasattr(compiled, "_cache"):  # not where numba is told not to compile
        compiled._cache = NullCache()
    return compiled
