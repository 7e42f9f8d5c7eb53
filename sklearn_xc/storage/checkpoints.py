"""Finished parts of a long fit in a folder, from which the same fit goes on.

``fit.json`` says which fit it is: digests of the data, the parameters, the versions. Each part is a
file that appears when it is complete, with a checksum before its arrays. A part that is damaged is
as good as missing.
"""

import hashlib
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import numpy as np

from sklearn_xc._atomic_files import open_atomic
from sklearn_xc._data import CsrRows, DenseRows, Targets
from sklearn_xc._plain_state import as_plain
from sklearn_xc.exceptions import SavedModelError
from sklearn_xc.kernels.compiling.cache import processor
from sklearn_xc.storage.folder import versions
from sklearn_xc.storage.locks import locked
from sklearn_xc.storage.nodes import Writer, readable
from sklearn_xc.storage.places import named_in_errors, open_regular, own_folder
from sklearn_xc.storage.signed_json import read_json, write_json

FORMAT = 3
FIT = "fit.json"
_WHAT = "a fit of sklearn_xc on its way"
_PART = ".part"
_OURS = re.compile(rf"{re.escape(FIT)}|[a-z0-9.-]+{re.escape(_PART)}|\..*\.tmp")
#: Where functions, their partial applications, methods and cells hold what they need.
_OF_FUNCTIONS = (
    "__closure__",
    "__defaults__",
    "__kwdefaults__",
    "__func__",
    "__self__",
    "args",
    "cell_contents",
    "func",
    "keywords",
)
_ADVICE = "Give each fit a folder of its own, or remove this one."
#: Parameters that change no byte of a model.
_APART = {
    "checkpoint_dir",
    "n_jobs",
    "numa",
    "verbose",
    "top_k",
    "label_names",
}
#: Of a part: its checksum comes first, then a table of its arrays, which begin at such multiples.
_DIGEST, _ALIGNED = 32, 64
#: Dtypes of arrays in parts: numbers and truth values.
_DTYPE = re.compile(r"[<>]([iu][248]|f[48])|\|([iu]1|b1)")


def identity_of(
    estimator: Any, data: Mapping[str, Iterable[Any] | None]
) -> dict[str, dict[str, Any]]:
    """Return what decides on the bytes of a fit.

    Parameters
    ----------
    estimator : estimator
        Its class and parameters count.
    data : dict
        By the name of an argument, the arrays that it became; None where it was not given.
    """
    given = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if name not in _APART
    }
    found = {name: None if arrays is None else digest(arrays) for name, arrays in data.items()}
    return {
        "data": found,
        "parameters": {name: _node(value) for name, value in given.items()},
        "versions": versions()
        | {"estimator": type(estimator).__qualname__, "processor": processor()},
    }


def data_of(
    instances: CsrRows | DenseRows, targets: Targets, weight: np.ndarray | None
) -> dict[str, Iterable[Any] | None]:
    """Return the arguments of a ``fit``, as of :func:`identity_of`."""
    return {
        "X": (*instances.arrays, np.array(instances.shape)),
        "y": (targets.indptr, targets.rows),
        "sample_weight": None if weight is None else (weight,),
    }


def _node(value: Any, met: dict[int, Any] | None = None) -> Any:
    """Return JSON that tells a value from others; `met` are the objects before it, by id."""
    try:
        return Writer(lambda array, name: digest([array])).node(as_plain(value))
    except TypeError:  # it is, or holds, an object of the user's own
        kind, met = type(value), {} if met is None else met
    name = f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(value, type | ModuleType):
        return {name: f"{getattr(value, '__module__', '')}.{value.__name__}"}
    if isinstance(value, np.ndarray):
        return {name: digest([value])}
    if id(value) in met:
        return {"class": name}
    met[id(value)] = value
    if kind in (list, tuple):
        return {name: [_node(item, met) for item in value]}
    if kind in (set, frozenset):
        return {name: sorted((_node(item, met) for item in value), key=str)}
    if kind is dict:
        return {name: [[_node(key, met), _node(item, met)] for key, item in value.items()]}
    state = {key: getattr(value, key) for key in _OF_FUNCTIONS if hasattr(value, key)}
    state |= getattr(value, "__dict__", {})
    code, text = getattr(value, "__code__", None), repr(value)
    return {
        "class": name,
        "code": None if code is None else _checksum(_code(code).encode()),
        "text": None if " at 0x" in text else text,
        "state": {key: _node(held, met) for key, held in state.items()},
    }


def _code(constant: Any) -> str:
    """Return a code object or one of its constants as text, the same in each process."""
    if hasattr(constant, "co_code"):
        return repr((constant.co_code, constant.co_names, list(map(_code, constant.co_consts))))
    return repr(sorted(constant, key=repr) if isinstance(constant, frozenset) else constant)


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def digest(arrays: Iterable[Any]) -> str:
    """Return a checksum of the values, dtypes and shapes of arrays."""
    found = hashlib.sha256()
    for array in map(np.asarray, arrays):
        found.update(f"{array.dtype.str} {array.shape} ".encode())
        if array.dtype.hasobject:
            found.update(repr(array.tolist()).encode("utf-8", "surrogatepass"))
        else:
            found.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return found.hexdigest()


def where_shared(checkpoints: "Checkpoints | None") -> "Checkpoints | None":
    """Return the parts of a fit in a worker of a cluster, None if it does not see their folder."""
    return checkpoints if checkpoints is not None and checkpoints.is_there else None


class Checkpoints:
    """The parts of a fit that are finished; see :func:`opened`.

    Attributes
    ----------
    folder : Path
    who : str
        The estimator, for messages.
    settings : list of int
        Those of the first call of this fit.
    """

    def __init__(self, folder: Path, who: str, settings: list[int]) -> None:
        self.folder, self.who, self.settings = folder, who, settings
        #: Checksum of what says which fit it is; "" if nothing does.
        self.fit = ""
        #: Whether a part was found.
        self.was_read = False
        #: Not after an error, when threads of the fit may still be at work.
        self.is_open = True

    def put(self, name: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep a part; it is there once this returns, or not at all.

        Raises
        ------
        OSError
            If it cannot be written; those before stay.
        RuntimeError
            If the fit has ended.
        """
        if not self.is_open:
            raise RuntimeError(f"{self.who}: the fit has ended, and keeps nothing more.")
        path = self.folder / f"{name}{_PART}"
        with named_in_errors(path), open_atomic(path) as stream:
            stream.write(bytes(_DIGEST))
            checksum = hashlib.sha256()
            for piece in _pieces(arrays):
                checksum.update(piece)
                stream.write(piece)
            stream.seek(0)
            stream.write(checksum.digest())

    @property
    def is_there(self) -> bool:
        """Whether this machine sees the folder, and not another one of that name."""
        try:
            return self.fit == _checksum((self.folder / FIT).read_bytes())
        except OSError:
            return False

    @property
    def has_parts(self) -> bool:
        """Whether there is anything to go on from."""
        return any(self.folder.glob(f"*{_PART}"))

    def remove(self, names: str) -> None:
        """Forget the parts of a name, in which * stands for anything."""
        for path in self.folder.glob(f"{names}{_PART}"):
            with suppress(OSError):
                path.unlink()

    def get(self, name: str) -> dict[str, np.ndarray] | None:
        """Return a part, in arrays that may be written; None if it is not there, or damaged.

        Raises
        ------
        SavedModelError
            If something else has its name, such as a link or a pipe.
        """
        path = self.folder / f"{name}{_PART}"
        if path.is_symlink():  # else the next part of this name would be written elsewhere
            raise SavedModelError(f"{path}: is a link.")
        try:
            with open_regular(path) as stream:
                found = _read(stream, os.fstat(stream.fileno()).st_size)
        except FileNotFoundError:
            return None
        self.was_read |= found is not None
        return found


def _read(stream: IO[bytes], n_left: int) -> dict[str, np.ndarray] | None:
    """Return the arrays of a part, each in memory of its own; None if it is damaged."""
    digest, checksum = stream.read(_DIGEST), hashlib.sha256()

    def take(size: int) -> bytes:
        content = stream.read(size)
        checksum.update(content)
        return content

    size = int.from_bytes(take(8), "little")
    if size > n_left:
        return None
    arrays = {}
    try:
        for name, (dtype, shape, order) in json.loads(take(size)).items():
            take(-stream.tell() % _ALIGNED)
            if _DTYPE.fullmatch(dtype) is None:
                return None
            n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
            if n_bytes > n_left:
                return None
            n_left -= n_bytes
            arrays[name] = array = np.empty(shape, dtype, order)
            if n_bytes:
                held = array.ravel(order="K").view(np.uint8)
                stream.readinto(held.data)  # type: ignore[attr-defined]
                checksum.update(held.data)
                if array.dtype.kind == "b" and held.max() > 1:
                    return None
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return None  # the table is damaged
    return arrays if checksum.digest() == digest and not stream.read(1) else None


def _pieces(arrays: Mapping[str, np.ndarray]) -> Iterator[Any]:
    """Yield the content of a part behind its checksum: where arrays are, and the arrays."""
    table = {
        name: (array.dtype.str, array.shape, "F" if _is_by_column(array) else "C")
        for name, array in arrays.items()
    }
    head = json.dumps(table).encode()
    yield len(head).to_bytes(8, "little")
    yield head
    written = _DIGEST + 8 + len(head)
    for array in arrays.values():
        gap = -written % _ALIGNED
        yield bytes(gap)
        written += gap + array.nbytes
        if array.nbytes:
            flat = (array.T if _is_by_column(array) else np.ascontiguousarray(array)).reshape(-1)
            yield flat.view(np.uint8).data


def _is_by_column(array: np.ndarray) -> bool:
    return array.flags.f_contiguous and not array.flags.c_contiguous


@contextmanager
def checkpoints_of(
    estimator: Any,
    data: Mapping[str, Iterable[Any] | None],
    settings: list[int],
) -> Iterator[Checkpoints | None]:
    """Open the folder ``checkpoint_dir`` of an estimator; yields None where there is none.

    Parameters
    ----------
    estimator, data
        As of :func:`identity_of`.
    settings : list of int
        As of :func:`opened`.

    Raises
    ------
    ValueError, OSError
        As of :func:`opened`.
    """
    if estimator.checkpoint_dir is None:
        yield None
        return
    identity = identity_of(estimator, data)
    path, who = estimator.checkpoint_dir, type(estimator).__name__
    with opened(path, who, identity, settings) as checkpoints:
        yield checkpoints


@contextmanager
def opened(
    path: str | os.PathLike[str],
    who: str,
    identity: dict[str, dict[str, Any]],
    settings: list[int],
) -> Iterator[Checkpoints]:
    """Open the folder of a fit, for one process.

    Parameters
    ----------
    path : str or PathLike
        A folder of this fit, an empty one, or a free name.
    who : str
        Name of the estimator, for messages.
    identity : dict
        As ``identity_of`` returns it.
    settings : list of int
        How the fit is cut, or its seed, unless it has begun before.

    Raises
    ------
    SavedModelError
        If the folder is that of another fit, with what differs, or damaged.
    OSError
        If it cannot be written, holds other files, or another process is training there.
    """
    where = f"{who}: checkpoint_dir {os.path.abspath(os.fspath(path))!r}"
    folder = own_folder(
        path, _OURS, f"{where}:", "a fit", is_file="It must be a folder, or a free name.",
        others=_ADVICE,
    )  # fmt: skip
    folder.mkdir(exist_ok=True)
    with locked(folder, f"{who}: another process is training with this checkpoint_dir"):
        for name in os.listdir(folder):
            if name.endswith(".tmp"):
                with suppress(OSError):
                    (folder / name).unlink()
        checkpoints = Checkpoints(folder, who, _begun(folder, where, identity, settings))
        checkpoints.fit = _checksum((folder / FIT).read_bytes())
        try:
            yield checkpoints
        finally:
            checkpoints.is_open = False
            if not checkpoints.has_parts:  # refused: other parameters may follow
                (folder / FIT).unlink(missing_ok=True)


def _begun(
    folder: Path, where: str, identity: dict[str, dict[str, Any]], settings: list[int]
) -> list[int]:
    """Return the settings of the fit that began there, which must be this one, or begin it."""
    path = folder / FIT
    try:
        if path.is_symlink():  # else files elsewhere might be written
            raise SavedModelError(f"{path}: is a link.")
        known = read_json(path, _WHAT)
    except FileNotFoundError:
        with named_in_errors(path):
            write_json(path, {"what": _WHAT, "format": FORMAT, **identity, "settings": settings})
        return settings
    except SavedModelError as error:
        raise SavedModelError(f"{where}: {error} Remove the folder.") from None
    if known["format"] != FORMAT:
        raise SavedModelError(f"{where}: is of format {known['format']}, not {FORMAT}. {_ADVICE}")
    begun, groups = known.get("settings"), [known.get(group) for group in identity]
    if not (
        all(type(group) is dict for group in groups)
        and type(begun) is list
        and len(begun) == len(settings)
        and all(type(number) is int and 0 <= number < 2**63 for number in begun)
    ):
        raise SavedModelError(f"{where}: {FIT} is not what was written. Remove the folder.")
    for group, says in (("versions", "version"), ("parameters", "parameter"), ("data", "data")):
        was, now = known[group], identity[group]
        for name in sorted(was.keys() | now.keys()):
            if was.get(name) != now.get(name):
                change = f"{name} is not the same"
                if group != "data":
                    change = _first_change((name,), was.get(name), now.get(name))
                raise SavedModelError(
                    f"{where} holds a fit with other {says}{'' if group == 'data' else 's'}: "
                    f"{change}. {_ADVICE}"
                )
    return begun


def _first_change(path: tuple[str, ...], was: Any, now: Any) -> str:
    """Return what differs first in two nodes, and how."""
    if isinstance(was, dict) and isinstance(now, dict) and was.keys() == now.keys():
        key = next(key for key in was if was[key] != now[key])
        if len(was) > 1 or isinstance(was[key], dict):
            return _first_change((*path, key), was[key], now[key])
    return f"{readable(path)} was {_short(was)}, is {_short(now)}"


def _short(node: Any) -> str:
    items = node["tuple"] if isinstance(node, dict) and node.keys() == {"tuple"} else node
    if (
        isinstance(items, list)
        and len(items) < 5
        and not any(isinstance(item, dict | list) for item in items)
    ):
        return repr(tuple(items) if items is not node else items)
    return repr(node) if not isinstance(node, dict | list) else "another"
