"""What a kernel is compiled from, as bytes that are the same in every process.

The texts of the package's own sources are in the checksum of all of them: their functions are named
here. Functions of others, which kernels may close over, are taken apart: their code, the text of
their file, and all that they close over or name, function by function. What cannot be taken apart,
such as a foreign module whose functions are called by name, has no key, and what is compiled from
it is not kept. A numba ``overload`` counts if it is in the file of the function that it is for.
"""

import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from sklearn_xc._compile.numba_private import BaseTuple, Dispatcher, Intrinsic

#: The package's folder, and the folders and modules in it whose functions are compiled.
PACKAGE = Path(__file__).resolve().parents[1]
_COMPILED = {"kernels", "losses", "_compile"}
#: What follows from the versions of numba and of Python.
_KNOWN = {"llvmlite", "numba", "numpy", *sys.stdlib_module_names} - {"__main__"}


class NoKeyError(TypeError):
    """It cannot be known whether the compiled code is stale."""


def code_key(function: Any, signature: Any) -> bytes:
    """Return bytes that differ where the code compiled for a signature would.

    Parameters
    ----------
    function : callable
        What is compiled.
    signature : tuple
        numba's types of its arguments.

    Returns
    -------
    bytes
        With a checksum of the package's sources, the versions of Python and numba, and the
        signature, they identify compiled code.

    Raises
    ------
    NoKeyError
        If the function depends on something whose changes cannot be seen.
    """
    return repr((list(_described(function, set())), [*_records(signature)])).encode()


def _described(value: Any, seen: set[Any]) -> Iterator[Any]:
    """Yield a description of a value of a closure, the same in every process."""
    if isinstance(value, Intrinsic):  # it has a random name in each process, as kernels have
        value = value._defn
    if isinstance(value, Dispatcher):
        yield sorted((name, str(_in_order(one))) for name, one in value.targetoptions.items())
        value = value.py_func
    kind = type(value)
    if isinstance(value, FunctionType):
        if value in seen:
            return
        seen.add(value)
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        yield from _described((value.__code__, value.__defaults__, *cells), seen)
        file = value.__code__.co_filename
        if not is_compiled_source(file) and not _is_known(value.__module__):
            yield _text_of(file)
            for name in sorted(_names_of(value.__code__) & value.__globals__.keys()):
                yield from _described((name, value.__globals__[name]), seen)
    elif isinstance(value, CodeType):
        yield value.co_code, value.co_names
        yield from _described(value.co_consts, seen)
    elif isinstance(value, tuple | list | set | frozenset):
        yield kind.__qualname__, len(value)
        for one in _in_order(value):
            yield from _described(one, seen)
    elif isinstance(value, np.ndarray):
        yield str(value.dtype), value.shape, value.tobytes()
    elif isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
        yield value.__qualname__, value._fields
    else:
        is_named = isinstance(value, ModuleType | type | BuiltinFunctionType)
        module = value if is_named else kind
        name = module.__name__ if isinstance(module, ModuleType) else module.__module__
        if not _is_known(name):
            raise NoKeyError(f"{value!r} may change")
        yield (name, value.__name__) if is_named else (name, repr(value))


def _in_order(value: Any) -> Any:
    return sorted(value, key=repr) if isinstance(value, set | frozenset) else value


def _names_of(code: CodeType) -> set[str]:
    """Return the names in a function and in those within it."""
    inner = (one for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*map(_names_of, inner))


def _text_of(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:  # typed in, or made by a program
        return b""


def _records(types: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the fields of each NamedTuple in a signature: numba's types have their number only."""
    for each in types:
        if not isinstance(each, BaseTuple):
            continue
        found: Any = each
        kind: Any = getattr(found, "instance_class", tuple)
        if kind is not tuple:
            if not _is_importable(kind):  # the next process has another class of that name
                raise NoKeyError(f"{kind.__qualname__} cannot be imported")
            yield kind.__qualname__, kind._fields
        yield from _records(found.types)


def _is_importable(kind: type) -> bool:
    found: Any = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is kind and kind.__module__ != "__main__"


@functools.cache
def is_compiled_source(path: str) -> bool:
    """Return whether a file is in the checksum of the package's sources."""
    file = Path(path).resolve()
    if not file.is_relative_to(PACKAGE):
        return False
    return not _COMPILED.isdisjoint(file.relative_to(PACKAGE).with_suffix("").parts)


def _is_known(module: str | None) -> bool:
    """Return whether what a module holds follows from versions and from the checksum of sources."""
    name = module or ""
    first, *rest = name.split(".")
    return first in _KNOWN or (first == PACKAGE.name and not _COMPILED.isdisjoint(rest))
