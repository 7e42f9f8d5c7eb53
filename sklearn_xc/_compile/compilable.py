"""Whether numba can compile the functions of a loss from outside the package."""

import functools
import inspect
from collections.abc import Sequence
from typing import Any

import numba

from sklearn_xc._compile.code_key import is_compiled_source
from sklearn_xc._compile.numba_private import BaseTuple, Dispatcher

#: Lines of numba's message that are shown.
_LINES = 3


def is_function(function: Any) -> bool:
    """Return whether this is a plain function, or one that numba has compiled."""
    return inspect.isfunction(function) or isinstance(function, Dispatcher)


def check_compiles(
    function: Any, arguments: tuple[Any, ...], who: str, results: str, n_results: int
) -> None:
    """Compile a function alone, unless it is the package's own.

    Parameters
    ----------
    function : callable
        See `is_function`.
    arguments : tuple
        numba's types of its arguments.
    who : str
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
        raise ValueError(f"{who} cannot be compiled: {reason or type(error).__name__}") from error
    if returned is None:
        return
    parts: Sequence[Any] = [returned]
    if n_results > 1:
        parts = getattr(returned, "types", ()) if isinstance(returned, BaseTuple) else ()
    if len(parts) != n_results or not all(isinstance(p, numba.types.Number) for p in parts):
        raise ValueError(f"{who} must return {results}. Got {returned}.")


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
