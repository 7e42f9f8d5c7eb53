"""Any state of a training as arrays, and back: arrays, numbers and objects of this package.

It is a pickle without its arrays, which are kept as they are. What is read makes objects of this
package's classes, of numpy's, and of the classes of parts that the caller has given; a pickle that
names anything else, such as a function, is refused.
"""

import io
import pickle
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

_OBJECTS = "objects"
_ROOT = __name__.split(".", maxsplit=1)[0]
#: What pickles of numpy's scalars, arrays of objects and generators name.
_OF_NUMPY = {"_reconstruct", "scalar", "ndarray", "dtype"}
_BUILTIN = {"set", "frozenset", "slice", "range", "complex", "bytearray", "object"}


def pack(state: Any, own: Collection[str] = ()) -> dict[str, np.ndarray]:
    """Return a state as named arrays.

    Parameters
    ----------
    state : object
        Arrays in it that are one in memory will be one again.
    own : collection of str
        Modules whose classes it may hold too.

    Raises
    ------
    TypeError
        If it holds anything that :func:`unpack` would refuse.
    """
    held = io.BytesIO()
    pickler = _Pickler(held, protocol=5)
    pickler.dump(state)
    objects = np.frombuffer(held.getvalue(), np.uint8)
    arrays = {f"{number}": array for number, array in enumerate(pickler.arrays)}
    _Names(io.BytesIO(held.getvalue()), [*arrays.values()], own).load()
    return {_OBJECTS: objects, **arrays}


def unpack(arrays: Mapping[str, np.ndarray], own: Collection[str] = ()) -> Any:
    """Return the state that :func:`pack` made these of; its arrays may be written.

    Raises
    ------
    TypeError
        If it names what is no class of this package, of numpy, or of the modules `own`.
    """
    found = [arrays[f"{number}"] for number in range(len(arrays) - 1)]
    return _Names(io.BytesIO(arrays[_OBJECTS].tobytes()), found, own).load()


class _Pickler(pickle.Pickler):
    """Leaves out arrays; those of one place in memory are one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.arrays: list[np.ndarray] = []
        self._numbers: dict[tuple, int] = {}

    def persistent_id(self, value: Any) -> Any:
        if type(value) is not np.ndarray or value.dtype.hasobject or value.dtype.names is not None:
            return None
        place = value.__array_interface__["data"][0] if value.size else id(value)
        key = place, value.shape, value.strides, value.dtype.str
        if key not in self._numbers:
            self._numbers[key] = len(self.arrays)
            self.arrays.append(value)
        return self._numbers[key], value.flags.writeable


class _Names(pickle.Unpickler):
    """Finds listed classes only, and arrays by number."""

    def __init__(self, held: io.BytesIO, arrays: list[np.ndarray], own: Collection[str]) -> None:
        super().__init__(held)
        self._arrays, self._own = arrays, own

    def find_class(self, module: str, name: str) -> Any:
        root = module.split(".", maxsplit=1)[0]
        if root == "numpy":
            kind = super().find_class(module, name)
            is_number = isinstance(kind, type) and issubclass(kind, np.generic | np.dtype)
            if is_number or name in _OF_NUMPY:
                return kind
        elif root == _ROOT or module in self._own or (module == "builtins" and name in _BUILTIN):
            kind = super().find_class(module, name)
            if isinstance(kind, type):
                return kind
        raise TypeError(f"{module}.{name} is no class of {_ROOT}, numpy, or a part that was given")

    def persistent_load(self, pid: Any) -> np.ndarray:
        number, is_writeable = pid
        array = self._arrays[number]
        if not is_writeable:
            array = array.view()
            array.flags.writeable = False
        return array
