"""Models saved to folders, opened without reading them, and read part by part as they are used."""

import inspect
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from sklearn_xc._declared_state import Lengths, check_attribute, declarations
from sklearn_xc._saved import UNREAD, SavedEstimator
from sklearn_xc.exceptions import SavedModelError
from sklearn_xc.storage.array_files import SMALL, StoredArray
from sklearn_xc.storage.folder import open_arrays, read_meta, writing
from sklearn_xc.storage.foreign import from_foreign
from sklearn_xc.storage.named_classes import (
    NOT_SAVED,
    check_names,
    check_parameter,
    class_named,
    parameters_of,
)
from sklearn_xc.storage.nodes import Path as Place
from sklearn_xc.storage.nodes import Reader, Writer, said_of
from sklearn_xc.storage.places import named_in_errors

#: A model is opened again so often if it is saved anew just then.
_ATTEMPTS = 3


def save_model(model: Any, path: str | os.PathLike[str], *, compact: bool = False) -> None:
    """Save an estimator to a folder, all or nothing; see ``SavedEstimator.save``."""
    with named_in_errors(path), writing(path) as folder:
        writer = Writer(folder.put, compact=compact)
        node = writer.node(model)
        if compact and "CompactLabelWeights" not in writer.forms:
            raise ValueError(
                f"{type(model).__name__}: compact=True is for weights of one-vs-all, fitted; this "
                "model holds none."
            )
        folder.finish(node, writer.format)


def load_model(path: str | os.PathLike[str], *, verify: bool = False) -> Any:
    """Open a model that :func:`save_model` wrote; see :func:`sklearn_xc.load`."""
    folder = Path(os.path.abspath(os.fspath(path)))
    for attempt in range(_ATTEMPTS):
        meta = read_meta(folder)
        try:
            opened = _Opened(folder, meta, verify)
            break
        except SavedModelError:  # are these the files of a model that was saved over?
            if attempt == _ATTEMPTS - 1 or read_meta(folder) == meta:
                raise
    return opened.model()


class _Opened:
    """What nodes of a model name, in its folder: the opener of its reader."""

    def __init__(self, folder: Path, meta: dict[str, Any], is_whole: bool) -> None:
        self.arrays = open_arrays(folder, meta["files"])
        self.is_whole = is_whole
        self.folder = folder
        with self.named_in_errors():
            self.reader = Reader(meta["model"], self)
        self.lock = threading.RLock()
        self._lengths: dict[int, tuple[Lengths, Any]] = {}

    def model(self) -> Any:
        """Return the estimator."""
        with self.named_in_errors():
            model = self.reader.value(self.reader.top)
        if self.is_whole:  # now that it is known what is required of their values
            for array in self.arrays.values():
                array.checked()
        if not isinstance(model, SavedEstimator):
            raise SavedModelError("meta.json: the model is no estimator of sklearn_xc.")
        return model

    def array(self, name: str) -> np.ndarray:
        """Return an array that has been checked."""
        return self.arrays[name].checked()

    def part(self, name: str) -> StoredArray:
        """Return an array that checks itself part by part."""
        return self.arrays[name]

    @contextmanager
    def named_in_errors(self) -> Iterator[None]:
        """Have errors that say what is wrong with the model say which it is."""
        try:
            yield
        except SavedModelError as error:
            if str(error).startswith(str(self.folder)):
                raise
            raise SavedModelError(f"{self.folder}: {error}") from error

    def lengths_of(self, made: Any) -> Lengths:
        """Return what is known of the lengths of an object that was made."""
        return self._lengths.setdefault(id(made), (Lengths(), made))[0]

    def check(self, owner: Any, name: str, lengths: Lengths, *value: Any) -> None:
        """Raise an error unless an attribute is what the class of its object declares."""
        if name in parameters_of(type(owner)):
            check_parameter(type(owner), name, *(value or [getattr(owner, name)]))
        check_attribute(owner, name, lengths, self.lengths_of, type(owner).__name__, *value)

    def make(self, kind: type, state: dict[Place, Any], reader: Reader) -> Any:
        """Return an object; of an estimator of ours, what is large is left unread."""
        made: Any = object.__new__(kind)
        now: dict[Any, Any] = {}
        later: dict[Any, tuple[Place, Any]] = {}
        is_ours = issubclass(kind, SavedEstimator)
        for place, node in state.items():
            # Scikit-learn's "deprecated" is the default of one version, which another may not have.
            if place[-1] in NOT_SAVED or node == "deprecated":
                continue
            if is_ours and not self.is_whole and self._is_large(node):
                later[place[-1]] = place, node
            else:
                now[place[-1]] = reader.value(node, place)
        # Those that the version which saved the model did not know are as they are by default.
        defaults = {
            name: default
            for name, default in parameters_of(kind).items()
            if default is not inspect.Parameter.empty and name not in later
        }
        now = {**defaults, **from_foreign(now)}
        check_names(kind, [*now, *later])
        if hasattr(made, "__setstate__"):
            made.__setstate__(now)
        else:
            vars(made).update(now)
        if later:
            vars(made)[UNREAD] = Unread(self, kind, self.lengths_of(made), later)
        is_fitted = any(name.endswith("_") for name in (*now, *later))
        for name in {**parameters_of(kind), **declarations(kind)}:
            if name not in later and (is_fitted or name in now):
                self.check(made, name, self.lengths_of(made))
        return made

    def read(self, owner: Any, name: str, place: Place, node: Any, lengths: Lengths) -> Any:
        """Return an attribute that waited, and fits its owner."""
        with self.named_in_errors(), said_of(place):
            value = from_foreign(self.reader.value(node, place))
            self.check(owner, name, lengths, value)
            return value

    def _is_large(self, node: Any) -> bool:
        """Tell whether a node holds a large array; those of estimators wait by themselves."""
        if type(node) is list:
            return any(map(self._is_large, node))
        if type(node) is not dict:
            return (
                type(node) is str and node in self.arrays and (self.arrays[node].file.size > SMALL)
            )
        if "object" in node:
            kind = class_named(node["object"])
            if kind is not None and issubclass(kind, SavedEstimator):
                return False
        return any(map(self._is_large, node.values()))


class Unread:
    """Attributes of an opened estimator that were not read yet: by name, their places and nodes."""

    def __init__(
        self, opened: _Opened, kind: type, lengths: Lengths, nodes: dict[Any, tuple[Place, Any]]
    ) -> None:
        self._opened, self._kind, self._lengths, self._nodes = opened, kind, lengths, nodes

    def read(self, attributes: dict[str, Any], name: str) -> bool:
        """Have an attribute among those of an estimator; tell whether there is one to be read.

        It counts as unread no more, should it be removed again.
        """
        with self._opened.lock:
            if name in attributes:  # another thread was faster
                return True
            if name not in self._nodes:
                return False
            owner: Any = object.__new__(self._kind)
            owner.__dict__ = attributes
            attributes[name] = self._opened.read(owner, name, *self._nodes[name], self._lengths)
            del self._nodes[name]
            return True

    def read_all(self, attributes: dict[str, Any]) -> None:
        """Have all among the attributes of an estimator that it has not got since."""
        for name in list(self._nodes):
            self.read(attributes, name)
