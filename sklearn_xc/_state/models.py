"""Models in folders: ``meta.json``, and the arrays that it names, in one safetensors file.

The name of the arrays' file has a part of its checksum, so that a model saved over another changes
no file of that one. Once the arrays are on the disk, meta.json takes the place of the older one in
a single step; then the file that nobody names is removed. Whatever ends the process, the folder
holds the model before or the one after.
"""

import errno
import hashlib
import json
import os
import re
import secrets
import time
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from platform import python_version
from typing import Any

import sklearn_xc
from sklearn_xc._state.atomic_files import open_atomic
from sklearn_xc._state.schema import check_attributes
from sklearn_xc._state.tensors import open_regular, read_arrays, write_arrays
from sklearn_xc._state.values import Reader, Writer
from sklearn_xc.exceptions import SavedModelError

FORMAT = 1
META = "meta.json"
_WHAT = "a model of sklearn_xc"
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "joblib", "safetensors")
_ARRAYS = re.compile(r"arrays-[0-9a-f]{8}\.safetensors")
#: Files of a model, and those that an interrupted save leaves behind.
_OURS = re.compile(rf"{re.escape(META)}|{_ARRAYS.pattern}|\..*\.tmp")
#: Seconds after which such a file is removed: no save takes so long.
_OLD = 24 * 3600


def versions() -> dict[str, str]:
    """Return the versions of this package and of those that numbers come from."""
    found = {"sklearn_xc": sklearn_xc.__version__, "python": python_version()}
    return found | {name: metadata.version(name) for name in _PACKAGES}


def save_model(model: Any, path: str | os.PathLike[str], *, compact: bool = False) -> None:
    """Save an estimator to a folder; see ``SavedEstimator.save``."""
    folder = check_folder(path)
    writer = Writer(compact=compact)
    node = writer.json_of(model, "")
    if compact and not writer.n_compact:
        raise ValueError(
            f"{type(model).__name__}: compact=True is for weights of one-vs-all, fitted; this "
            "model holds none."
        )
    is_new = not folder.exists()
    folder.mkdir(exist_ok=True)
    scratch = folder / f".{secrets.token_hex(4)}.tmp"
    ours = [scratch.name, _named_file(folder)]
    try:
        sha256 = write_arrays(scratch, writer.arrays)
        name = f"arrays-{sha256[:8]}.safetensors"
        ours.append(name)
        os.replace(scratch, folder / name)
        meta = {"what": _WHAT, "format": FORMAT, "versions": versions()}
        meta |= {"arrays": {"file": name, "sha256": sha256}, "model": node}
        with open_atomic(folder / META) as stream:
            stream.write(json.dumps({**meta, "sha256": _digest(meta)}, indent=1).encode())
    finally:
        named = _named_file(folder)
        _sweep(folder, {*ours} - {named}, named)
        if is_new and named is None:
            folder.rmdir()


def _digest(meta: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(meta).encode()).hexdigest()


def _named_file(folder: Path) -> str | None:
    """Return the arrays' file of the model in a folder, if there is one."""
    try:
        return str(read_meta(folder)["arrays"]["file"])
    except SavedModelError:
        return None


def _sweep(folder: Path, gone: set[str | None], named: str | None) -> None:
    """Remove files of this save that are not the model's, and what an interrupted one left."""
    for entry in os.scandir(folder):
        with suppress(OSError):
            is_old = entry.stat().st_mtime < time.time() - _OLD
            is_left = is_old and entry.name not in (META, named) and _OURS.fullmatch(entry.name)
            if entry.name in gone or is_left:
                os.unlink(entry)


def check_folder(path: str | os.PathLike[str]) -> Path:
    """Return the folder of a path, if a model can be saved there.

    Raises
    ------
    OSError
        If it cannot be made or written, or holds other files.
    """
    folder = Path(os.path.abspath(os.fspath(path)))
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(
            f"{folder}: is a file. A model is saved as a folder: give another name, or remove it."
        )
    if not folder.parent.is_dir():
        raise FileNotFoundError(
            f"{folder}: there is no folder {str(folder.parent)!r}. Make it first."
        )
    if not os.access(folder if folder.exists() else folder.parent, os.W_OK | os.X_OK):
        raise PermissionError(f"{folder}: not allowed to write there.")
    names = sorted(os.listdir(folder)) if folder.exists() else []
    others = [name for name in names if not _OURS.fullmatch(name)]
    if others:
        raise FileExistsError(
            f"{folder}: holds files that are no part of a model, such as {others[0]!r}. Give the "
            "model a folder of its own."
        )
    return folder


def load(path: str | os.PathLike[str], *, verify: bool = False) -> Any:
    """Open a model that an estimator's ``save`` wrote, without running code from it.

    Arrays are memory maps of the file, which processes share: they are read when they are used.
    ``meta.json``, shapes, dtypes and indices are checked on opening. The folder may be read-only.

    Parameters
    ----------
    path : str or PathLike
        The folder.
    verify : bool, default=False
        Whether to read all arrays now, and compare them with their checksum.

    Returns
    -------
    estimator
        The fitted estimator, as it was saved. Its predictions are bit-for-bit the same, and it can
        be fitted further.

    Raises
    ------
    SavedModelError
        If the folder holds no model, a damaged one, one of another format, or anything that a model
        may not hold.
    FileNotFoundError
        If there is no such folder.

    Notes
    -----
    Do not change the files of a model that is open. Save over it instead, which leaves open models
    intact.

    Examples
    --------
    >>> import tempfile
    >>> import sklearn_xc
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> X, Y = make_xc_classification(n_samples=100, n_labels=10, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sklearn_xc.OvALinearXC(C=2.0).fit(X, Y).save(folder)
    ...     model = sklearn_xc.load(folder)
    ...     labels, scores = model.predict_topk(X[:2], k=2)
    >>> model
    OvALinearXC(C=2.0)
    >>> labels.shape
    (2, 2)
    """
    folder = Path(os.path.abspath(os.fspath(path)))
    while True:
        meta = read_meta(folder)
        try:
            return _opened(folder, meta, verify)
        except SavedModelError:  # was another model saved over it meanwhile?
            if read_meta(folder) == meta:
                raise


def _opened(folder: Path, meta: dict[str, Any], verify: bool) -> Any:
    path = folder / meta["arrays"]["file"]
    try:
        arrays, _ = read_arrays(path, meta["arrays"]["sha256"] if verify else None)
    except FileNotFoundError:
        raise SavedModelError(f"{path}: the file is missing.") from None
    try:
        reader = Reader(arrays)
        model = reader.value_of(meta["model"])
        if not hasattr(model, "save"):
            raise SavedModelError("meta.json: the model is no estimator of sklearn_xc.")
        _check_schemas(reader.made, verify)
    except SavedModelError as error:
        raise SavedModelError(f"{folder}: {error}") from error
    return model


def _check_schemas(made: list[Any], reads_floats: bool) -> None:
    """Check fitted objects, each after the one that holds it."""
    checked: set[int] = set()
    for one in reversed(made):
        is_fitted = not hasattr(one, "get_params") or any(name[-1:] == "_" for name in vars(one))
        if id(one) in checked or not is_fitted:
            continue
        name = type(one).__name__
        try:
            check_attributes(one, name, reads_floats=reads_floats, checked=checked)
        except (SavedModelError, MemoryError):
            raise
        except Exception as error:
            raise SavedModelError(
                f"{name}: its attributes do not fit each other ({type(error).__name__}: {error})."
            ) from error


def read_meta(folder: Path) -> dict[str, Any]:
    """Return the content of a model's meta.json.

    Raises
    ------
    SavedModelError
        If the folder holds no model, or meta.json is damaged or of another format.
    FileNotFoundError
        If there is no such folder.
    """
    path = folder / META
    try:
        with open_regular(path) as stream:
            meta = json.loads(stream.read())
        sha256, arrays = meta.pop("sha256"), meta["arrays"]
        is_ours = meta["what"] == _WHAT and type(meta["versions"]) is dict
        is_whole = is_ours and sha256 == _digest(meta) and type(arrays["sha256"]) is str
        is_whole = is_whole and bool(_ARRAYS.fullmatch(arrays["file"]))
    except FileNotFoundError:
        if not folder.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder)) from None
        raise SavedModelError(
            f"{folder}: holds no model, which is a folder with a {META}. Files of joblib.dump and "
            "pickle are loaded by joblib.load and pickle.load."
        ) from None
    except SavedModelError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        is_whole = False
    if not is_whole:
        raise SavedModelError(f"{path}: is damaged, or was not written by sklearn_xc.")
    if meta["format"] != FORMAT:
        raise SavedModelError(
            f"{folder}: is a model in format {meta['format']}, of sklearn_xc "
            f"{meta['versions'].get('sklearn_xc', 'unknown')}. This is {sklearn_xc.__version__}, "
            f"which reads format {FORMAT}. Load it with that version, or upgrade this one."
        )
    return meta  # type: ignore[no-any-return]
