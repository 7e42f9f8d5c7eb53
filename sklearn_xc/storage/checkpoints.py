"""Finished parts of a long fit in a folder, from which the same fit goes on.

``fit.json`` says which fit it is: digests of the data, the parameters, the versions. Each part is a
file that appears when it is complete, with a checksum before its arrays. A part that is damaged is
as good as missing.
"""

import hashlib
import io
import os
import pickle
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from sklearn_xc._atomic_files import open_atomic
from sklearn_xc.exceptions import SavedModelError
from sklearn_xc.kernels.compiling.cache import processor
from sklearn_xc.storage.folder import versions
from sklearn_xc.storage.locks import locked
from sklearn_xc.storage.nodes import Writer
from sklearn_xc.storage.places import named_in_errors, own_folder
from sklearn_xc.storage.signed_json import read_json, write_json

FORMAT = 1
FIT = "fit.json"
_WHAT = "a fit of sklearn_xc on its way"
_PART = ".part"
_OURS = re.compile(rf"{re.escape(FIT)}|[a-z0-9-]+{re.escape(_PART)}|\..*\.tmp")
_ADVICE = "Give each fit a folder of its own, or remove this one."


def identity_of(
    estimator: Any, data: Mapping[str, Iterable[Any] | None], apart: Iterable[str]
) -> dict[str, dict[str, Any]]:
    """Return what decides on the bytes of a fit.

    Parameters
    ----------
    estimator : estimator
        Its class and parameters count.
    data : dict
        By the name of an argument, the arrays that it became; None where it was not given.
    apart : iterable of str
        Parameters that decide nothing.
    """

    def digest_of(array: np.ndarray, name: str) -> str:
        return digest([array])

    given = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if name not in set(apart)
    }
    return {
        "data": {name: None if arrays is None else digest(arrays) for name, arrays in data.items()},
        "parameters": {name: _node(value, digest_of) for name, value in given.items()},
        "versions": versions()
        | {"estimator": type(estimator).__qualname__, "processor": processor()},
    }


def _node(value: Any, digest_of: Any) -> Any:
    try:
        return Writer(digest_of).node(value)
    except TypeError:  # a part of the user's own
        return {"pickle": hashlib.sha256(pickle.dumps(value)).hexdigest()}


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


class Checkpoints:
    """The parts of a fit that are finished; see :func:`opened`.

    Attributes
    ----------
    settings : dict
        What the first call of this fit was told of how to cut it, also where this one was told
        otherwise.
    """

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self.folder, self.settings = folder, settings

    def put(self, name: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep a part; it is there once this returns, or not at all.

        Raises
        ------
        OSError
            If it cannot be written; those before stay.
        """
        held = io.BytesIO()
        np.savez(held, **dict(arrays))  # type: ignore[arg-type]
        content = held.getbuffer()
        path = self.folder / f"{name}{_PART}"
        with named_in_errors(path), open_atomic(path) as stream:
            stream.write(hashlib.sha256(content).digest())
            stream.write(content)

    def remove(self, beginning: str) -> None:
        """Forget the parts whose names begin so."""
        for path in self.folder.glob(f"{beginning}*{_PART}"):
            path.unlink(missing_ok=True)

    def get(self, name: str) -> dict[str, np.ndarray] | None:
        """Return a part, or None if it is not there, or damaged."""
        path = self.folder / f"{name}{_PART}"
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        if hashlib.sha256(memoryview(content)[32:]).digest() != content[:32]:
            return None
        with np.load(io.BytesIO(memoryview(content)[32:]), allow_pickle=False) as found:
            return dict(found)


@contextmanager
def opened(
    path: str | os.PathLike[str],
    who: str,
    identity: dict[str, dict[str, Any]],
    settings: dict[str, Any],
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
    settings : dict
        How the fit is cut, unless it has begun before.

    Raises
    ------
    ValueError
        If the folder is that of another fit, with what differs.
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
        yield Checkpoints(folder, _begun(folder, where, identity, settings))


def _begun(
    folder: Path, where: str, identity: dict[str, dict[str, Any]], settings: dict[str, Any]
) -> dict[str, Any]:
    """Return the settings of the fit that began there, which must be this one, or begin it."""
    try:
        known = read_json(folder / FIT, _WHAT)
    except FileNotFoundError:
        write_json(
            folder / FIT,
            {"what": _WHAT, "format": FORMAT, **identity, "settings": settings},
        )
        return settings
    except SavedModelError as error:
        raise SavedModelError(f"{where}: {error} Remove the folder.") from None
    if known["format"] != FORMAT:
        raise ValueError(f"{where}: is of format {known['format']}, not {FORMAT}. {_ADVICE}")
    for group, says in (("versions", "version"), ("parameters", "parameter"), ("data", "data")):
        was, now = known[group], identity[group]
        for name in sorted(was.keys() | now.keys()):
            if was.get(name) != now.get(name):
                change = (
                    "is not the same"
                    if group == "data"
                    else f"was {_short(was.get(name))}, is {_short(now.get(name))}"
                )
                raise ValueError(
                    f"{where} holds a fit with other {says}{'' if group == 'data' else 's'}: "
                    f"{name} {change}. {_ADVICE}"
                )
    return dict(known["settings"])


def _short(node: Any) -> str:
    return repr(node) if not isinstance(node, dict | list) else "another"
