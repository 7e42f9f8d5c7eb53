"""Finished parts of a long fit in a folder, from which the same fit resumes.

``fit.json`` holds the key of the fit: digests of the data, the parameters, the versions. Each part
is a safetensors file with a digest of that key and one of its arrays. A part that is damaged, or of
another fit, is treated as missing.
"""

import hashlib
import json
import os
import pickle
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from sklearn_xc._compile.cache import processor
from sklearn_xc._input.data import CsrRows, DenseRows, Targets
from sklearn_xc._state.atomic_files import open_atomic
from sklearn_xc._state.models import versions
from sklearn_xc._state.tensors import open_regular, read_arrays, write_arrays
from sklearn_xc._state.values import Writer
from sklearn_xc.exceptions import SavedModelError

FIT = "fit.json"
_PART = ".safetensors"
_ADVICE = "Give each fit a folder of its own, or remove this one."
#: Parameters that change no byte of a model.
_APART = {"checkpoint_dir", "n_jobs", "numa", "verbose", "top_k", "label_names"}


def key_of(estimator: Any, data: Mapping[str, Iterable[Any] | None]) -> dict[str, dict[str, Any]]:
    """Return what decides on the bytes of a fit.

    Parameters
    ----------
    estimator : estimator
        Its class and parameters count.
    data : dict
        By the name of an argument, the arrays that it became; None where it was not given.
    """
    given = estimator.get_params(deep=False)
    return {
        "versions": versions()
        | {"estimator": type(estimator).__qualname__, "processor": processor()},
        "parameters": {
            name: _key_of_value(value) for name, value in given.items() if name not in _APART
        },
        "data": {name: None if arrays is None else digest(arrays) for name, arrays in data.items()},
    }


def _key_of_value(value: Any) -> Any:
    """Return JSON that tells a parameter from others."""
    writer = Writer()
    try:
        node = writer.json_of(value, "")
    except TypeError:  # an object of the user's own
        return hashlib.sha256(pickle.dumps(value)).hexdigest()
    return [node, digest(writer.arrays.values())] if writer.arrays else node


def data_of(
    instances: CsrRows | DenseRows, targets: Targets, weight: np.ndarray | None
) -> dict[str, Iterable[Any] | None]:
    """Return the arguments of a ``fit``, as :func:`key_of` takes them."""
    return {
        "X": (*instances.arrays, np.array(instances.shape)),
        "y": (targets.indptr, targets.rows),
        "sample_weight": None if weight is None else (weight,),
    }


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
    """The finished parts of a fit; see :func:`opened`.

    Attributes
    ----------
    folder : Path
    who : str
        Name of the estimator, for messages.
    settings : list of int
        Those of the call that began the fit.
    was_read : bool
        Whether a part was found.
    """

    def __init__(self, folder: Path, who: str, settings: list[int], fit: str) -> None:
        self.folder, self.who, self.settings, self._fit = folder, who, settings, fit
        self.was_read = False

    def put(self, name: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep a part: once this returns it is on the disk as a whole.

        Raises
        ------
        OSError
            If it cannot be written; earlier parts stay.
        """
        held = {key: np.asarray(array, order="C") for key, array in sorted(arrays.items())}
        path = self.folder / f"{name}{_PART}"
        scratch = path.with_name(f".{path.name}.tmp")
        try:
            write_arrays(scratch, held, self._metadata(held))
            os.replace(scratch, path)
        finally:
            scratch.unlink(missing_ok=True)

    def get(self, name: str) -> dict[str, np.ndarray] | None:
        """Return copies of the arrays of a part; None if it is missing, damaged or of another fit.

        Raises
        ------
        SavedModelError
            If something else has its name, such as a pipe.
        """
        path = self.folder / f"{name}{_PART}"
        try:
            open_regular(path).close()
            found, metadata = read_arrays(path)
        except FileNotFoundError:
            return None
        except SavedModelError:
            if not path.is_file() or path.is_symlink():
                raise
            return None
        held = {key: found[key] for key in sorted(found)}
        if metadata != self._metadata(held):
            return None
        self.was_read = True
        return {key: array.copy() for key, array in held.items()}

    def _metadata(self, arrays: dict[str, np.ndarray]) -> dict[str, str]:
        return {"fit": self._fit, "arrays": digest([list(arrays), *arrays.values()])}

    def remove(self, names: str) -> None:
        """Remove the parts whose name matches a pattern with *."""
        for path in self.folder.glob(f"{names}{_PART}"):
            path.unlink(missing_ok=True)


@contextmanager
def checkpoints_of(
    estimator: Any, data: Mapping[str, Iterable[Any] | None], settings: list[int]
) -> Iterator[Checkpoints | None]:
    """Open the folder ``checkpoint_dir`` of an estimator; yields None where there is none.

    Parameters
    ----------
    estimator, data
        As for :func:`key_of`.
    settings : list of int
        As for :func:`opened`.
    """
    if estimator.checkpoint_dir is None:
        yield None
        return
    key, who = key_of(estimator, data), type(estimator).__name__
    yield opened(estimator.checkpoint_dir, who, key, settings)


def opened(
    path: str | os.PathLike[str], who: str, key: dict[str, dict[str, Any]], settings: list[int]
) -> Checkpoints:
    """Open the folder of a fit.

    Parameters
    ----------
    path : str or PathLike
        A folder of this fit, an empty one, or a free name.
    who : str
        Name of the estimator, for messages.
    key : dict
        As :func:`key_of` returns it.
    settings : list of int
        How the fit is divided, or its seed, unless it has begun before.

    Raises
    ------
    SavedModelError
        If the folder is that of another fit, naming what differs, or damaged.
    OSError
        If it cannot be written, or holds other files.
    """
    folder = Path(os.path.abspath(os.fspath(path)))
    where = f"{who}: checkpoint_dir {str(folder)!r}"
    folder.mkdir(exist_ok=True)
    others = [one for one in os.listdir(folder) if one != FIT and not one.endswith((_PART, ".tmp"))]
    if others:
        raise FileExistsError(f"{where} holds other files, such as {min(others)!r}. {_ADVICE}")
    if (folder / FIT).exists() and any(folder.glob(f"*{_PART}")):
        settings = _settings_of_same(folder / FIT, where, key, settings)
    else:
        with open_atomic(folder / FIT) as stream:
            stream.write(json.dumps({**key, "settings": settings}, indent=1).encode())
    return Checkpoints(folder, who, settings, _checksum((folder / FIT).read_bytes()))


def _settings_of_same(
    path: Path, where: str, key: dict[str, dict[str, Any]], settings: list[int]
) -> list[int]:
    """Return the settings of the fit in a folder, which must have the same key."""
    try:
        with open_regular(path) as stream:
            known = json.loads(stream.read())
        begun: Any = known["settings"]
        differ = [
            (group, name, known[group].get(name), now)
            for group, of_group in key.items()
            for name, now in of_group.items()
            if known[group].get(name) != now
        ]
        fits = len(begun) == len(settings) and all(
            type(number) is int and 0 <= number < 2**63 for number in begun
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        fits, differ = False, []
    if not fits:
        raise SavedModelError(f"{where}: {FIT} is damaged. Remove the folder.")
    if differ:
        group, name, was, now = differ[0]
        change = f"was {was!r:.40}, is {now!r:.40}" if group != "data" else "is not the same"
        raise SavedModelError(f"{where} holds a fit with other {group}: {name} {change}. {_ADVICE}")
    return begun  # type: ignore[no-any-return]


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
