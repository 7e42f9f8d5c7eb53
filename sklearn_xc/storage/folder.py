"""A model's folder: meta.json and the arrays that it names, replaced all or nothing.

meta.json is the model: it says what it is, and names the files of its arrays with their sizes and
checksums, its own last. A file's name has a part of its checksum, so that a model saved over
another changes no file of that one. Once all are on the disk, meta.json takes the place of the
older in one step; then files that it does not name are removed. Whatever ends the process, the
folder holds the model before or the one after.
"""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from platform import python_version
from typing import Any

import numpy as np

import sklearn_xc
from sklearn_xc.exceptions import SavedModelError
from sklearn_xc.storage.array_files import TENSORS, WRITING, ArrayFile, StoredArray, write_array
from sklearn_xc.storage.locks import locked
from sklearn_xc.storage.places import own_folder
from sklearn_xc.storage.signed_json import read_json, write_json
from sklearn_xc.storage.tensor_files import write_tensors

#: The newest that folders have, each as low a one as has all that is in it: then earlier versions
#: read it, too. Those of every number up to this are read by every later version. In 2 weights may
#: be compact, in 3 arrays of a network are one file.
FORMAT = 3
META = "meta.json"
_WHAT = "a model of sklearn_xc"
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "joblib")
#: The names of arrays' files.
_NAMES = re.compile(rf"[A-Za-z0-9_+-][A-Za-z0-9_.+-]*-[0-9a-f]{{8}}(\.npy|{re.escape(TENSORS)})")
#: Files that a save may leave behind that was ended.
_OURS = re.compile(rf"{re.escape(META)}|{_NAMES.pattern}|\..*({re.escape(WRITING)}|\.tmp)")


def versions() -> dict[str, str]:
    """Return the versions of this package and of what its numbers come from."""
    found = {"sklearn_xc": sklearn_xc.__version__, "python": python_version()}
    return found | {name: metadata.version(name) for name in _PACKAGES}


class FolderWriter:
    """Takes the arrays of a model, then what it is; see :func:`writing`.

    Attributes
    ----------
    files : dict of str to ArrayFile
        Written so far.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, ArrayFile] = {}

    def put(self, content: np.ndarray | dict[str, np.ndarray], name: str) -> str:
        """Write an array, or arrays by name to one file, and return the name of the file."""
        safe = re.sub(r"[^A-Za-z0-9_.+-]", "_", name)[:100].strip(".") or "array"
        if isinstance(content, dict):
            final, file = write_tensors(content, self.folder, safe)
        else:
            final, file = write_array(content, self.folder, safe)
        self.files[final] = file
        return final

    def finish(self, model: Any, format: int) -> None:
        """Have the folder hold a model, whose nodes name the arrays that were put."""
        meta = {
            "what": _WHAT,
            "format": format,
            "versions": versions(),
            "model": model,
            "files": {name: file.as_json() for name, file in sorted(self.files.items())},
        }
        write_json(self.folder / META, meta)
        _sync(self.folder)


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[FolderWriter]:
    """Open a folder for a model; unless ``finish`` was called, it is as it was.

    Parameters
    ----------
    path : str or PathLike
        A folder that holds a model, or nothing; or a name that is free, in a folder that is there.

    Raises
    ------
    OSError
        If the folder cannot be made or written, holds other files, or another process writes to it.
    """
    folder = check_folder(path)
    is_new = not folder.exists()
    folder.mkdir(exist_ok=True)
    try:
        with locked(folder, "another process is saving a model there"):
            writer = FolderWriter(folder)
            try:
                yield writer
            finally:
                _sweep(folder)
    except BaseException:
        if is_new:
            with suppress(OSError):
                folder.rmdir()  # not if a model is in it
        raise


def check_folder(path: str | os.PathLike[str]) -> Path:
    """Return the folder of a path, if a model can be saved there.

    Raises
    ------
    OSError
        As :func:`writing`, short of locks.
    """
    return own_folder(
        path, _OURS, f"{os.path.abspath(os.fspath(path))}:", "a model",
        is_file="A model is saved as a folder: give another name, or remove it.",
        others="Give the model a folder of its own.",
    )  # fmt: skip


def _sweep(folder: Path) -> None:
    """Remove what the folder's model does not name, and what was left when a save was ended."""
    try:
        named = set(read_meta(folder)["files"]) | {META}
    except SavedModelError:
        if (folder / META).exists():  # damaged, or of a newer version: not ours to judge
            return
        named = set()
    for name in os.listdir(folder):
        if name not in named and _OURS.fullmatch(name):
            with suppress(OSError):
                (folder / name).unlink()


def _sync(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    if os.name != "posix":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    except OSError:  # some file systems do not take this for folders
        pass
    finally:
        os.close(number)


def read_meta(folder: Path) -> dict[str, Any]:
    """Return what a model's meta.json says.

    Raises
    ------
    SavedModelError
        If the folder is no model's, or meta.json is not as it was written or of a newer format.
    FileNotFoundError
        If there is no such folder.
    """
    path = folder / META
    try:
        meta = read_json(path, _WHAT)
    except (FileNotFoundError, NotADirectoryError):
        raise SavedModelError(_why_no_model(folder)) from None
    if any(type(meta.get(name)) is not dict for name in ("model", "files", "versions")):
        raise SavedModelError(f"{path}: must name a model, its files and versions.")
    if meta["format"] not in range(1, FORMAT + 1):
        raise SavedModelError(
            f"{folder}: is a model in format {meta['format']}, of sklearn_xc "
            f"{meta['versions'].get('sklearn_xc', 'unknown')}. This is "
            f"{sklearn_xc.__version__}, which reads formats 1 to {FORMAT}. Upgrade it."
        )
    for name in meta["files"]:
        if not _NAMES.fullmatch(name):
            raise SavedModelError(f"{path}: {name!r} is no name of an array's file.")
    files = {name: ArrayFile.from_json(name, file) for name, file in meta["files"].items()}
    return {**meta, "files": files}


def _why_no_model(folder: Path) -> str:
    if folder.is_file():
        return (
            f"{folder}: is a file, a saved model is a folder. Was it written by joblib.dump or "
            "pickle? These are loaded by joblib.load and pickle.load."
        )
    if folder.exists() and not folder.is_dir():
        return f"{folder}: is no folder."
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))
    names = os.listdir(folder)
    if names and all(_OURS.fullmatch(name) for name in names):
        return f"{folder}: holds no model: its first save was ended before it was complete."
    return f"{folder}: holds no model: there is no {META} in it."


def open_arrays(folder: Path, files: dict[str, ArrayFile]) -> dict[str, StoredArray]:
    """Open all arrays of a model, and check their sizes, dtypes and shapes.

    Raises
    ------
    SavedModelError
        If one is not as it was written.
    """
    return {name: StoredArray(folder / name, file) for name, file in files.items()}
