"""States of estimators as JSON with names of arrays, and back.

Numbers, texts, lists and None are themselves. What else there is is an object whose first key says
what it stands for: {"tuple": [...]}, {"array": "weights.values-1f0c2a9b.npy"}, and so on. What
stands in two places is written once; in the second is where: {"same": ["state", "coef_"]}, the keys
that lead there.
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from sklearn_xc._plain_state import KIND, STATE, as_plain
from sklearn_xc.exceptions import SavedModelError
from sklearn_xc.storage.array_files import DTYPES
from sklearn_xc.storage.foreign import from_foreign, known_dtype
from sklearn_xc.storage.forms import FORMS, ByPart, OneFile
from sklearn_xc.storage.named_classes import (
    NOT_SAVED,
    check_names,
    check_parameter,
    class_named,
    name_of,
    parameters_of,
)
from sklearn_xc.storage.tensor_files import check_tensors, tensors_in

#: So many texts or more go into arrays: JSON is read whole whenever a model is opened.
_MANY_TEXTS = 200
_ADVICE = (
    "A saved model holds numbers, texts, arrays, and public parts of sklearn_xc and scikit-learn, "
    "so that to load it runs no code; joblib.dump holds anything."
)
_TYPES: dict[str, type] = {"int": int, "float": float} | {
    f"numpy.{name}": getattr(np, name) for name in ("int32", "int64", "float32", "float64")
}
#: What an array of objects may hold.
_PLAIN = bool | int | float | str | np.generic | None
#: A model may hold so many values, what stands in two places counted twice, and objects so deep
#: within others: `repr` and `clone` go through all of them, and `repr` twice at each depth.
_MOST_VALUES, _DEEPEST = 10**6, 10
#: Where something is: the keys that lead there from the top.
Path = tuple[str | int, ...]
#: Keys that say what their value is, not whose.
_SAY_WHAT = {
    "tuple", "dict", "pairs", "state", "parameters", "keys", "object array", "of", "arrays", KIND,
}  # fmt: skip


def readable(path: Path) -> str:
    """Return where something is, for people: ``"weights.values"``."""
    return ".".join(str(key).strip("_") for key in path if key not in _SAY_WHAT) or "model"


class Writer:
    """Turns values into nodes.

    Parameters
    ----------
    put : callable
        Called as ``put(array, name)`` with each array, and with each dictionary of arrays that are
        to be one file; returns the name by which it is found again.
    compact : bool, default=False
        Whether records are made compact that can be.

    Attributes
    ----------
    format : int
        The least format of folders that has all that was written so far.
    forms : set of str
        Names of the records that were written in a form of their own.
    """

    def __init__(self, put: Callable[[Any, str], str], *, compact: bool = False) -> None:
        self._put, self._compact = put, compact
        self.format, self.forms = 1, set[str]()
        self._met: dict[int, tuple[Path, Any]] = {}
        self._files: dict[tuple, tuple[str, Any]] = {}

    def node(self, value: Any, path: Path = ()) -> Any:
        """Return what stands for a value.

        Raises
        ------
        TypeError
            If it is, or holds, what cannot be saved.
        """
        kind = type(value)
        if value is None or kind in (bool, int):
            return value
        if isinstance(value, str):
            return str.__str__(value)  # of a subclass, such as an enumeration, the text
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.generic) and DTYPES.fullmatch(value.dtype.str):
            return {"scalar": [value.dtype.str, np.asarray(value).tobytes().hex()]}
        if isinstance(value, os.PathLike):  # such as checkpoint_dir: by its name
            return self.node(os.fspath(value), path)
        if kind is tuple:
            return {"tuple": self._items(value, (*path, "tuple"))}
        if isinstance(value, type):
            return {"type": self._name_of_type(value, path)}
        if id(value) in self._met:
            return {"same": list(self._met[id(value)][0])}
        self._met[id(value)] = path, value  # kept, or its id might become another's
        if kind is list:
            if _are_many_texts(value):
                return {"texts": self._texts(value, (*path, "texts"))}
            return self._items(value, path)
        if kind is dict:
            return self._dictionary(value, path)
        if kind is range:
            return list(value)
        if isinstance(value, np.ndarray) and kind in (np.ndarray, np.memmap):
            return self._array(value, path)
        if kind is ByPart:
            return {"by part": self._array(value.array, path)["array"]}
        if kind is OneFile:
            return {"tensors": self._tensors(value.arrays, path)}
        if kind is np.random.RandomState:
            return {"random state": self.node(value.get_state(), (*path, "random state"))}
        return self._object(value, path)

    def _object(self, value: Any, path: Path) -> Any:
        kind, name = type(value), name_of(type(value))
        state = as_plain(value.__getstate__()) if name is not None else None
        if name is None or not isinstance(state, dict | None):
            raise TypeError(
                f"{readable(path)} is a {kind.__qualname__} of {kind.__module__}, which cannot be "
                f"saved. {_ADVICE}"
            )
        state = {key: held for key, held in (state or {}).items() if key not in NOT_SAVED}
        given = {key: state.pop(key) for key in parameters_of(kind) if key in state}
        made = {
            "object": name,
            "parameters": self._named(given, (*path, "parameters")),
            "state": self._named(state, (*path, "state")),
        }
        try:
            check_names(kind, [*given, *state])
            for key, held in given.items():
                check_parameter(kind, key, held)
        except (ValueError, TypeError) as error:
            raise TypeError(f"{readable(path)}: cannot be saved. {error} {_ADVICE}") from error
        return made

    def _named(self, values: dict[str, Any], path: Path) -> dict[str, Any]:
        return {key: self.node(value, (*path, key)) for key, value in values.items()}

    def _items(self, values: Any, path: Path) -> list[Any]:
        return [self.node(value, (*path, i)) for i, value in enumerate(values)]

    def _dictionary(self, value: dict[Any, Any], path: Path) -> Any:
        if value.get(KIND) in FORMS:
            kind, state = value[KIND], value[STATE]
            known = FORMS[kind]
            if self._compact and known.compact is not None:
                kind, state = known.compact(state)
                known = FORMS[kind]
            form = known.write(state)
            if form is not None:
                self.format = max(self.format, known.format)
                self.forms.add(kind)
                self._met[id(form)] = path, form
                return {"form": kind, "of": self._named(form, (*path, "of"))}
        if not all(type(key) is str for key in value):
            return {
                "pairs": [
                    self._items(pair, (*path, "pairs", i)) for i, pair in enumerate(value.items())
                ]
            }
        if _are_many_texts(list(value)) and _are_integers(value.values()):
            return {
                "numbered texts": self._texts(list(value), (*path, "numbered texts")),
                "numbers": self._array(np.array(list(value.values())), (*path, "numbers"))["array"],
            }
        return {"dict": self._named(value, (*path, "dict"))}

    def _array(self, value: np.ndarray, path: Path) -> Any:
        if value.dtype.hasobject and value.dtype.names is None:
            flat, shape = value.ravel().tolist(), list(value.shape)
            if flat and all(type(one) is str for one in flat):
                return {"text array": self._texts(flat, (*path, "text array")), "shape": shape}
            if not all(isinstance(one, _PLAIN) for one in flat):
                raise TypeError(f"{readable(path)} is an array of objects, not saved. {_ADVICE}")
            return {"object array": self._items(flat, (*path, "object array")), "shape": shape}
        array = np.asarray(value, value.dtype.newbyteorder("="))
        if not DTYPES.fullmatch(array.dtype.str):
            raise TypeError(f"{readable(path)} is an array of {value.dtype}, not saved. {_ADVICE}")
        return {"array": self._file(_memory(value), array, path)}

    def _tensors(self, arrays: dict[str, np.ndarray], path: Path) -> str:
        check_tensors(arrays, readable(path))
        key = tuple((name, *_memory(array)) for name, array in sorted(arrays.items()))
        return self._file(key, arrays, path)

    def _file(self, key: tuple, content: Any, path: Path) -> str:
        """Return the name of a file; views of the same memory are one."""
        if key not in self._files:
            self._files[key] = self._put(content, readable(path)), content
        return self._files[key][0]

    def _texts(self, texts: list[str], path: Path) -> dict[str, Any]:
        """Return texts as two arrays: all in one, in UTF-8, and where each ends, in characters."""
        blob = np.frombuffer("".join(texts).encode("utf-8", "surrogatepass"), np.uint8)
        ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
        return {
            "utf-8": self._array(blob, (*path, "utf-8"))["array"],
            "ends": self._array(ends, (*path, "ends"))["array"],
        }

    def _name_of_type(self, value: type, path: Path) -> str:
        for name, kind in _TYPES.items():
            if kind is value:
                return name
        raise TypeError(
            f"{readable(path)} is the class {value.__qualname__}, which cannot be saved. {_ADVICE}"
        )


def _memory(array: np.ndarray) -> tuple:
    """Return what only views of the same memory have in common, while they are there."""
    at = array.__array_interface__["data"][0] if array.size else id(array)
    return at, array.shape, array.strides, array.dtype.str


def _are_many_texts(values: list[Any]) -> bool:
    return len(values) >= _MANY_TEXTS and all(type(value) is str for value in values)


def _are_integers(values: Any) -> bool:
    return all(type(value) in (int, np.int64) and -(2**63) <= value < 2**63 for value in values)


@contextmanager
def said_of(path: Path) -> Iterator[None]:
    """Turn what numpy, scikit-learn and we say of numbers from a file into an error of the file.

    Raises
    ------
    SavedModelError
        For any error but that of too little memory.
    """
    try:
        yield
    except (SavedModelError, MemoryError):
        raise
    except Exception as error:
        raise SavedModelError(
            f"meta.json: what it says of {readable(path)} makes no sense "
            f"({type(error).__name__}: {error})."
        ) from error


class Reader:
    """Turns nodes into the values that they were made of.

    Parameters
    ----------
    top : object
        The node at the top.
    opener : object
        Opens what nodes name. ``array(name)`` returns an array that was checked, ``part(name)`` one
        that checks itself part by part, ``make(kind, nodes, reader)`` an object, by the places of
        the nodes of its attributes.
    """

    def __init__(self, top: Any, opener: Any) -> None:
        self.top, self.opener = top, opener
        self._made: dict[Path, Any] = {}
        self._extents: dict[int, tuple[int, int]] = {}
        with said_of(()):
            n_values, depth = self._extent(top)
            if n_values > _MOST_VALUES or depth > _DEEPEST:
                raise ValueError(f"it has {n_values:,} values, in objects {depth} deep")

    def _extent(self, node: Any) -> tuple[int, int]:
        """Return how many values a node stands for, and how deep objects in it are nested."""
        if type(node) is not list and type(node) is not dict:
            return 1, 0
        if id(node) not in self._extents:
            self._extents[id(node)] = _MOST_VALUES + 1, 0  # of a node within itself
            held = list(node.values()) if type(node) is dict else node
            if next(iter(node), None) == "same":
                held = [self._node_at(node["same"])]  # type: ignore[call-overload]
            sizes, depths = zip((1, 0), *map(self._extent, held), strict=True)
            is_object = type(node) is dict and "object" in node
            self._extents[id(node)] = sum(sizes), max(depths) + is_object
        return self._extents[id(node)]

    def value(self, node: Any, path: Path = ()) -> Any:
        """Return what a node stands for; raise a SavedModelError if that is nothing."""
        with said_of(path):
            return self._value(node, path)

    def _value(self, node: Any, path: Path) -> Any:
        if type(node) is not list and type(node) is not dict:
            return node
        if path in self._made:
            return self._made[path]
        made: Any
        if type(node) is list:
            made = [self._value(one, (*path, i)) for i, one in enumerate(node)]
        else:
            made = self._said(node, path)  # type: ignore[arg-type]
        self._made[path] = made
        return made

    def _said(self, node: dict[str, Any], path: Path) -> Any:
        what = next(iter(node), "")
        held, inner = node[what], (*path, what)
        match what:
            case "same":
                return self._at(tuple(held))
            case "float":
                return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[held]
            case "scalar":
                return np.frombuffer(bytes.fromhex(held[1]), known_dtype(held[0]), 1)[0]
            case "type":
                return _TYPES[held]
            case "tuple":
                return tuple(self._value(one, (*inner, i)) for i, one in enumerate(held))
            case "dict":
                return {key: self._value(one, (*inner, key)) for key, one in held.items()}
            case "pairs":
                return dict(
                    [self._value(one, (*inner, i, j)) for j, one in enumerate(pair)]
                    for i, pair in enumerate(held)
                )
            case "texts":
                return self._texts(held)
            case "numbered texts":
                numbers = self.opener.array(node["numbers"]).tolist()
                return dict(zip(self._texts(held), numbers, strict=True))
            case "array":
                return self.opener.array(held)
            case "tensors":
                return tensors_in(self.opener.array(held), held)
            case "by part":
                return self.opener.part(held)
            case "form":
                state = {
                    key: self._value(one, (*path, "of", key)) for key, one in node["of"].items()
                }
                return FORMS[held].read(from_foreign(state))
            case "text array":
                return _object_array(self._texts(held), node["shape"])
            case "object array":
                items = [self._value(one, (*inner, i)) for i, one in enumerate(held)]
                return _object_array(items, node["shape"])
            case "random state":
                state = self._value(held, inner)
                if not 0 <= state[2] <= len(state[1]):  # which numpy does not check
                    raise ValueError("its position is outside of its numbers")
                made = np.random.RandomState()
                made.set_state(state)
                return made
            case "object":
                kind = class_named(held)
                if kind is None:
                    raise SavedModelError(
                        f"meta.json: {readable(path)} is of the class {held!r}, which a saved "
                        "model cannot hold. The file is damaged, or of a newer version."
                    )
                places = {
                    (*path, group, key): one
                    for group in ("parameters", "state")
                    for key, one in node[group].items()
                }
                return self.opener.make(kind, places, self)
        raise ValueError(f"there is no kind {what!r}")

    def _at(self, path: Path) -> Any:
        """Return the value of the node that keys lead to."""
        return self._value(self._node_at(path), path)

    def _node_at(self, path: Iterable[str | int]) -> Any:
        node = self.top
        for key in path:
            node = node[key]
        return node

    def _texts(self, held: dict[str, str]) -> list[str]:
        ends = self.opener.array(held["ends"]).tolist()
        text = self.opener.array(held["utf-8"]).tobytes().decode("utf-8", "surrogatepass")
        if any(a > b for a, b in zip([0, *ends], [*ends, len(text)], strict=True)):
            raise ValueError("the ends of texts do not rise")
        return [text[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)] if ends else []


def _object_array(items: list[Any], shape: list[int]) -> np.ndarray:
    if not all(isinstance(item, _PLAIN) for item in items):
        raise ValueError("it holds what is no number and no text")
    array = np.empty(len(items), object)
    array[:] = items
    return array.reshape(shape)
