"""The one way in which this package compiles a loop.

``inlined`` is for functions that kernels call. ``kernel`` wraps :func:`numba.njit` with the flags
that all kernels share:

* ``nogil``: threads run side by side.
* a partial ``fastmath``: sums may be reordered and contracted into fused multiply-adds, but tests
  for inf and NaN stay true, which the full flag would break.
* ``error_model="numpy"``: no zero-division branch inside the loops.
* an on-disk cache, keyed by the text of *all* sources that are compiled. numba's own key is the
  file that holds the outermost function, so that an edit in a function called from another file
  would go unnoticed. Functions from outside the package that a kernel closes over are part of its
  own key: see ``code_key``. The cache never makes a call fail: see ``cache``.

Index arrays are read through ``np.uint32``/``np.uint64`` casts in the loops: numba wraps negative
signed indices, and the test for it costs up to 1.7 times the work of a sparse product.
"""

import functools
import hashlib
import inspect
from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from sklearn_xc._compile.cache import KernelCache, NoCache, ReadOnlyCache, refuse
from sklearn_xc._compile.code_key import PACKAGE, is_compiled_source
from sklearn_xc._compile.numba_private import BaseTuple, Dispatcher

FASTMATH = {"reassoc", "contract", "arcp", "nsz"}
#: Entries between the end of an array and whatever follows: four registers of 64 bytes, at 4 bytes.
GAP = 64
#: Bytes of two cache lines, which are fetched together.
_CACHE_LINES = 128
#: Lines of numba's message that are shown.
_LINES = 3


@functools.cache
def source_checksum() -> str:
    """Return one checksum over the names and texts of all sources that are compiled.

    Raises
    ------
    FileNotFoundError
        If there are none, as in a zip file: nobody knows then whether compiled code is stale.
    """
    digest = hashlib.sha256()
    paths = [path for path in sorted(PACKAGE.rglob("*.py")) if is_compiled_source(str(path))]
    if not paths:
        raise FileNotFoundError(f"no sources in {PACKAGE}")
    for path in paths:
        digest.update(path.relative_to(PACKAGE).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def inlined(function: Any) -> Any:
    """Have `function`, a part of kernels, compiled into each kernel that calls it.

    Otherwise a kernel may call a copy that another one brought along. Which copy it finds depends
    on what this process has compiled and what it has loaded from the cache, and as sums may be
    reordered, copies round differently: a model would have other bits the second time.
    """
    # Nothing calls it but kernels: wrappers for Python and C take a tenth of the time to compile.
    return register_jitable(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(
        function
    )


@functools.cache
def callable_in_kernels(function: Any) -> Any:
    """Return what kernels may call in place of a function from outside, such as a user's loss.

    It is `inlined`, unless the package has done so or numba has compiled it.
    """
    if isinstance(function, Dispatcher) or is_compiled_source(function.__code__.co_filename):
        return function
    return inlined(function)


def kernel(function: Any) -> Any:
    """Compile `function` on its first call with the flags of the package.

    Parameters
    ----------
    function : callable
        A plain function of arrays and scalars.

    Returns
    -------
    numba dispatcher
        Callable like `function`; it releases the GIL while it runs. Where the environment has
        ``NUMBA_DISABLE_JIT=1``, a function that raises a RuntimeError.
    """
    compiled: Any = numba.njit(
        nogil=True, fastmath=FASTMATH, error_model="numpy", no_cfunc_wrapper=True
    )(function)
    if compiled is function:  # NUMBA_DISABLE_JIT
        return refuse
    try:
        compiled._cache = KernelCache(function, source_checksum())
    except Exception as error:  # nothing about the cache is worth a failing import
        try:
            compiled._cache = ReadOnlyCache(function, source_checksum(), error)
        except Exception:
            compiled._cache = NoCache(error)
    return compiled


@inlined
def scratch(n, dtype):
    """Return an uninitialised array of n entries, followed by `GAP` entries of padding."""
    return np.empty(n + GAP, dtype)[:n]


def aligned_zeros(shape: tuple[int, ...], dtype: npt.DTypeLike) -> np.ndarray:
    """Return zeros that begin with a cache line."""
    n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    room = np.zeros(n_bytes + _CACHE_LINES, np.uint8)
    first = -room.ctypes.data % _CACHE_LINES
    return room[first : first + n_bytes].view(dtype).reshape(shape)


def is_function(function: Any) -> bool:
    """Return whether this is a plain function, or one that numba has compiled."""
    return inspect.isfunction(function) or isinstance(function, Dispatcher)


def check_compiles(
    function: Any, arguments: tuple[Any, ...], caller: str, results: str, n_results: int
) -> None:
    """Compile a function alone, unless it is the package's own.

    Parameters
    ----------
    function : callable
        See `is_function`.
    arguments : tuple
        numba's types of its arguments.
    caller : str
        How messages name it, such as "OvALinearXC: loss: value of MyLoss()".
    results : str
        What it must return, for messages.
    n_results : int
        How many numbers that are; 1 is a number, not a tuple.

    Raises
    ------
    ValueError
        If it cannot be compiled, or returns something else.
    """
    if not isinstance(function, Dispatcher) and is_compiled_source(function.__code__.co_filename):
        return
    try:
        returned = _return_type(function, arguments)
    except Exception as error:  # numba's own, and those of its passes
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        # The first line only names the pass.
        reason = " ".join(lines[lines[0].startswith("Failed in") :][:_LINES]) if lines else ""
        raise ValueError(
            f"{caller} cannot be compiled: {reason or type(error).__name__}"
        ) from error
    if returned is None:
        return
    parts: Sequence[Any] = [returned]
    if n_results > 1:
        parts = getattr(returned, "types", ()) if isinstance(returned, BaseTuple) else ()
    if len(parts) != n_results or not all(isinstance(p, numba.types.Number) for p in parts):
        raise ValueError(f"{caller} must return {results}. Got {returned}.")


@functools.lru_cache(maxsize=1024)
def _return_type(function: Any, arguments: tuple[Any, ...]) -> Any:
    """Return numba's type of what a function returns; None where nothing is compiled."""
    if isinstance(function, Dispatcher):
        if function.signatures:  # the user's own, or compiled before
            return None
        function = function.py_func
    compiled: Any = numba.njit(function)
    if compiled is function:  # NUMBA_DISABLE_JIT
        return None
    compiled.compile(arguments)
    return compiled.overloads[arguments].signature.return_type
