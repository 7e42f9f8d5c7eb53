"""What a kernel is compiled from, as bytes that are the same in every process.

The texts of the package's own sources are in the checksum of all of them: their functions are named
here. Functions of others, which kernels may close over, are taken apart: their code, the text of
their file, and all that they close over or name, function by function. What cannot be taken apart,
such as a foreign module whose functions are called by name, has no key, and what is compiled from
it is not kept. A numba ``overload`` counts if it is in the file of the function that it is for.
"""

import functools
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from sklearn_xc._compile.numba_private import (
    BaseTuple,
    Dispatcher,
    Intrinsic,
    NumbaPickler,
)

#: The package's folder, and the folders and modules in it whose functions are compiled.
PACKAGE = Path(__file__).resolve().parents[1]
_COMPILED = {"kernels", "losses", "_compile"}
#: What follows from the versions of numba and of Python.
_KNOWN = {"llvmlite", "numba", "numpy", *sys.stdlib_module_names} - {"__main__"}


class NoKeyError(TypeError):
    """Nobody could tell whether the compiled code is stale."""


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
        Beside a checksum of the package's sources, the versions of Python and numba, and the
        signature, they tell compiled code apart.

    Raises
    ------
    NoKeyError
        If the function depends on something whose changes cannot be told.
    """
    code = function.__code__
    closure = tuple(cell.cell_contents for cell in function.__closure__ or ())
    content = (code.co_code, code.co_consts, code.co_names, closure)
    whole = () if is_compiled_source(code.co_filename) else (function,)
    buffer = io.BytesIO()
    pickler = _KeyPickler(buffer, protocol=4)
    pickler.dump((content, whole, [*_records(signature)]))
    return b"".join([buffer.getvalue(), *map(_text_of, sorted(pickler.foreign_files))])


def _text_of(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:  # typed in, or made by a program
        return b""


def _records(types: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the fields of each NamedTuple in a signature: numba's types tell their number only."""
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
    """Tell whether a file is in the checksum of the package's sources."""
    file = Path(path).resolve()
    if not file.is_relative_to(PACKAGE):
        return False
    return not _COMPILED.isdisjoint(file.relative_to(PACKAGE).with_suffix("").parts)


def _is_known(module: str | None) -> bool:
    """Tell whether what a module holds follows from versions and from the checksum of sources."""
    name = module or ""
    first, *rest = name.split(".")
    return first in _KNOWN or (first == PACKAGE.name and not _COMPILED.isdisjoint(rest))


class _KeyPickler(NumbaPickler):
    """Pickle what a kernel closes over.

    numba gives each intrinsic and each kernel a random name in each process and pickles it with
    them. A kernel that closes over one would never be found again, and leave a file each time.
    """

    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol=protocol)
        self.foreign_files: set[str] = set()

    def reducer_override(self, obj: Any) -> Any:
        """Pickle intrinsics and kernels as the functions that they are made of."""
        if isinstance(obj, Intrinsic):
            return tuple, ((obj._defn,),)
        if isinstance(obj, Dispatcher):
            return tuple, ((obj.py_func, _in_words(obj.targetoptions)),)
        if isinstance(obj, FunctionType) and not is_compiled_source(obj.__code__.co_filename):
            if _is_known(obj.__module__):
                return super().reducer_override(obj)
            self.foreign_files.add(obj.__code__.co_filename)
            return self._dynamic_function_reduce(obj)
        if isinstance(obj, ModuleType) and not _is_known(obj.__name__):
            raise NoKeyError(f"the module {obj.__name__} may change")
        if isinstance(obj, BuiltinFunctionType) and not _is_known(obj.__module__):
            raise NoKeyError(f"{obj.__name__} of {obj.__module__} may change")
        if isinstance(obj, type) and not _is_known(obj.__module__):
            if not (issubclass(obj, tuple) and hasattr(obj, "_fields")):
                raise NoKeyError(f"the class {obj.__qualname__} may change")
            return tuple, ((obj.__qualname__, obj._fields),)
        return super().reducer_override(obj)


def _in_words(options: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the options of a compiler, in an order that is the same in every process."""
    return sorted(
        (name, str(sorted(map(str, value)) if isinstance(value, set | frozenset) else value))
        for name, value in options.items()
    )
