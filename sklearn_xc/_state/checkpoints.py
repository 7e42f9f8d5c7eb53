"""Finished parts of a long fit in a folder, from which the same fit resumes.

``fit.json`` holds the key of the fit: its parameters, versions, and digests of the data. Each part
is a safetensors file with a digest of that key and one of its arrays. A part that is damaged, or of
another fit, is treated as missing.
"""

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from sklearn_xc._compile.cache import processor
from sklearn_xc._input.data import CsrRows, DenseRows, Targets
from sklearn_xc._state.files import (
    UNFINISHED,
    open_atomic,
    open_regular,
    read_arrays,
    versions,
    write_arrays,
)
from sklearn_xc.exceptions import SavedModelError

_FIT, _PART = "fit.json", ".safetensors"
_OURS = re.compile(rf"{re.escape(_FIT)}|.*{re.escape(_PART)}|{UNFINISHED}")
_ADVICE = "Give each fit a folder of its own, or remove this one."
#: Parameters that change no byte of a model.
_IRRELEVANT = {"checkpoint_dir", "max_memory", "n_jobs", "numa", "verbose", "top_k", "label_names"}
#: Seconds between the epochs that a loop keeps.
INTERVAL = 60.0

#: Arrays of a fit, by the name of the argument that they became; None where it was not given.
Data = Mapping[str, Iterable[Any] | None]


def data_of(instances: CsrRows | DenseRows, targets: Targets, weight: np.ndarray | None) -> Data:
    """Return the data of a ``fit``."""
    return {
        "X": (*instances.arrays, np.array(instances.shape)),
        "y": (targets.indptr, targets.rows),
        "sample_weight": None if weight is None else (weight,),
        "pair_weight": None if targets.pair_weight is None else (targets.pair_weight,),
    }


def key_of(estimator: Any, data: Data) -> dict[str, Any]:
    """Return what the bytes of a fit depend on."""
    key = versions() | {"estimator": type(estimator).__qualname__, "processor": processor()}
    for name, value in ({**data} | estimator.get_params(deep=False)).items():
        if name not in _IRRELEVANT:
            is_plain = type(value) in (bool, int, float, str, type(None))
            key[name] = value if is_plain else [_digest(value)]
    return key


def _digest(value: Any) -> str:
    """Return a checksum of arrays, or of any object."""
    return str(joblib.hash(value, hash_name="sha1", coerce_mmap=True))


class Checkpoints:
    """The finished parts of a fit.

    Parameters
    ----------
    path : str or PathLike
        A folder of this fit, an empty one, or a free name.
    caller : str
        Name of the estimator, for messages.
    key : dict
        From :func:`key_of`.
    settings : list of int
        How the fit is divided, or its seed, unless it has begun before.

    Attributes
    ----------
    settings : list of int
        Those of the call that began the fit.

    Raises
    ------
    SavedModelError
        If the folder is that of another fit, naming what differs, or damaged.
    OSError
        If it cannot be written, or holds other files.
    """

    def __init__(
        self, path: str | os.PathLike[str], caller: str, key: dict[str, Any], settings: list[int]
    ) -> None:
        self.folder = Path(os.path.abspath(os.fspath(path)))
        where = f"{caller}: checkpoint_dir {str(self.folder)!r}"
        fit = self.folder / _FIT
        self.folder.mkdir(exist_ok=True)
        others = [one for one in self.folder.iterdir() if not _OURS.fullmatch(one.name)]
        if others:
            raise FileExistsError(f"{where} holds other files, such as {others[0]}. {_ADVICE}")
        if fit.exists():
            open_regular(fit).close()  # a pipe would wait for a reader
        if fit.exists() and any(self.folder.glob(f"*{_PART}")):
            settings = _known_settings(fit, where, key, settings)
        else:
            with open_atomic(fit) as stream:
                stream.write(json.dumps({**key, "settings": settings}, indent=1).encode())
        self.settings = settings
        self._fit = hashlib.sha256(fit.read_bytes()).hexdigest()

    def put(self, name: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep a part: once this returns, it is on the disk as a whole."""
        found = {key: np.asarray(array, order="C") for key, array in arrays.items()}
        path = self.folder / f"{name}{_PART}"
        scratch = path.with_name(f".{path.name}.tmp")
        try:
            write_arrays(scratch, found, self._metadata(found))
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
        except FileNotFoundError:
            return None
        try:
            found, metadata = read_arrays(path)
        except SavedModelError:
            return None
        if metadata != self._metadata(found):
            return None
        return {key: array.copy() for key, array in found.items()}

    def _metadata(self, arrays: dict[str, np.ndarray]) -> dict[str, str]:
        content = [(key, a.dtype.str, a.shape, a.tobytes()) for key, a in sorted(arrays.items())]
        return {"fit": self._fit, "arrays": _digest(content)}


def _known_settings(path: Path, where: str, key: dict[str, Any], settings: list[int]) -> list[int]:
    """Return the settings of the fit in a folder, which must have the same key."""
    try:
        with open_regular(path) as stream:
            known = json.loads(stream.read())
        begun: list[int] = known["settings"]
        is_whole = len(begun) == len(settings) and all(type(n) is int and n >= 0 for n in begun)
    except (ValueError, KeyError, TypeError, RecursionError):
        is_whole = False
    if not is_whole:
        raise SavedModelError(f"{where}: {_FIT} is damaged. Remove the folder.")
    for name, now in key.items():
        if (before := known.get(name)) != now:
            change = "is not the same" if type(now) is list else f"was {before!r:.40}, is {now!r}"
            raise SavedModelError(f"{where} holds another fit: {name} {change}. {_ADVICE}")
    return begun


def checkpoints_of(estimator: Any, data: Data, settings: list[int]) -> Checkpoints:
    """Open the folder ``checkpoint_dir`` of an estimator, which is not None."""
    path, caller = estimator.checkpoint_dir, type(estimator).__name__
    return Checkpoints(path, caller, key_of(estimator, data), settings)


class Loop:
    """A training loop that keeps named arrays: at most once a minute, and at its end.

    Parameters
    ----------
    checkpoints : Checkpoints or None
        None keeps nothing.
    name : str
        Lower-case letters, digits, dots and hyphens.
    """

    def __init__(self, checkpoints: Checkpoints | None = None, name: str = "") -> None:
        self._checkpoints, self._name = checkpoints, name
        self._due = time.monotonic() + INTERVAL

    def within(self, name: str) -> "Loop":
        """Return a loop of this part of the fit."""
        return Loop(self._checkpoints, f"{self._name}-{name}" if self._name else name)

    def get(self) -> dict[str, np.ndarray] | None:
        """Return the arrays kept last; None if there are none, or if they are damaged."""
        return None if self._checkpoints is None else self._checkpoints.get(self._name)

    def put(self, state: Callable[[], Mapping[str, np.ndarray]], *, is_final: bool = False) -> None:
        """Keep the arrays that `state` returns, if a minute has passed or it is final."""
        if self._checkpoints is not None and (is_final or time.monotonic() >= self._due):
            self._checkpoints.put(self._name, state())
            self._due = time.monotonic() + INTERVAL


def restore(arrays: Mapping[str, np.ndarray], found: Mapping[str, np.ndarray]) -> None:
    """Copy the arrays of a checkpoint into those of a new training with the same settings.

    Raises
    ------
    SavedModelError
        If an array is missing, has another dtype or shape, or holds NaN, infinity or a negative
        integer. Nothing is written then.
    """
    for name, array in arrays.items():
        new = found.get(name)
        if (
            new is None
            or (new.dtype, new.shape) != (array.dtype, array.shape)
            or not np.isfinite(new).all()
            or (new.dtype.kind == "i" and (new < 0).any())
        ):
            raise SavedModelError(f"checkpoint_dir: {name!r} does not fit this training.")
    for name, array in arrays.items():
        array[...] = found[name]


@contextmanager
def checkpointed_loop(estimator: Any, data: Data, seed: int) -> Iterator[tuple[Loop, int]]:
    """Yield a loop that keeps its epochs in ``checkpoint_dir``, and the seed that began the fit.

    Without a ``checkpoint_dir``, nothing is kept.
    """
    if estimator.checkpoint_dir is None:
        yield Loop(), seed
        return
    checkpoints = checkpoints_of(estimator, data, [seed])
    yield Loop(checkpoints), checkpoints.settings[0]
