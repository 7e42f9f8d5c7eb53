"""Models in folders: ``meta.json``, and the arrays that it names, in one safetensors file.

The name of the arrays' file has a part of its checksum, so that a model saved over another changes
no file of that one. Once the arrays are on the disk, meta.json takes the place of the older one in
a single step; then the older arrays are removed. Whatever ends the process, the folder holds the
model before or the one after.
"""

import bz2
import errno
import gzip
import hashlib
import json
import lzma
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from importlib import metadata
from pathlib import Path
from platform import python_version
from typing import IO, Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

import sklearn_xc
from sklearn_xc._state.schema import check_attributes
from sklearn_xc._state.sklearn_parts import SCHEMAS
from sklearn_xc._state.values import DTYPES, Reader, Writer
from sklearn_xc.exceptions import SavedModelError

#: Streams that compress, by suffix; equal content gives equal bytes.
_COMPRESSED: dict[str, Any] = {
    ".gz": lambda raw: gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0),
    ".xz": partial(lzma.LZMAFile, mode="wb"),
    ".bz2": partial(bz2.BZ2File, mode="wb"),
}
FORMAT = 1
META = "meta.json"
_WHAT = "a model of sklearn_xc"
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "joblib", "safetensors")
_ARRAYS = re.compile(r"arrays-[0-9a-f]{8}\.safetensors")
#: Names of files that a killed process leaves half-written: by this package, and by safetensors.
UNFINISHED = r"\..*\.tmp|\.tmp[0-9A-Za-z]{6}"
_OURS = re.compile(rf"{re.escape(META)}|{_ARRAYS.pattern}|{UNFINISHED}")


@contextmanager
def open_atomic(path: str | os.PathLike[str]) -> Iterator[Any]:
    """Open a file for writing that appears under its name only when it is complete.

    The bytes go to a hidden file in the same folder, which takes the place of `path` at the end and
    keeps its mode. After an error the older file is as it was and nothing else is left; a killed
    process leaves the hidden file. A pipe or a device is written to directly. A name that ends in
    ``.gz``, ``.xz`` or ``.bz2`` compresses.
    """
    target = Path(os.path.realpath(os.fsdecode(path)))
    if target.is_dir() or not target.parent.is_dir():
        number = errno.EISDIR if target.is_dir() else errno.ENOENT
        raise OSError(number, os.strerror(number), os.fspath(path))
    compressed = _COMPRESSED.get(target.suffix, nullcontext)
    if target.exists() and not target.is_file():  # a pipe or a device
        with open(target, "wb") as raw, compressed(raw) as stream:
            yield stream
        return
    scratch = target.with_name(f".{target.name[:40]}.{secrets.token_hex(4)}.tmp")
    try:
        with open(scratch, "xb") as raw:
            with compressed(raw) as stream:
                yield stream
            raw.flush()
            if target.exists():
                os.fchmod(raw.fileno(), stat.S_IMODE(target.stat().st_mode))
            os.fsync(raw.fileno())
        os.replace(scratch, target)
    finally:
        scratch.unlink(missing_ok=True)


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
    before = _arrays_of(folder)
    gone = {scratch := folder / f".{secrets.token_hex(4)}.tmp", before}
    try:
        sha256 = write_arrays(scratch, writer.arrays)
        arrays = folder / f"arrays-{sha256[:8]}.safetensors"
        gone.add(arrays)
        os.replace(scratch, arrays)
        meta = {"what": _WHAT, "format": FORMAT, "versions": versions()}
        meta |= {"arrays": {"file": arrays.name, "sha256": sha256}, "model": node}
        with open_atomic(folder / META) as stream:
            stream.write(json.dumps({**meta, "sha256": _digest(meta)}, indent=1).encode())
    finally:  # the model after, or after an error the one before
        for file in gone - {_arrays_of(folder)}:
            with suppress(OSError, AttributeError):
                file.unlink()
        if is_new and not any(folder.iterdir()):
            folder.rmdir()


def _digest(meta: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(meta).encode()).hexdigest()


def _arrays_of(folder: Path) -> Any:
    """Return the path of the arrays of the model in a folder, or None."""
    try:
        return folder / read_meta(folder)["arrays"]["file"]
    except SavedModelError:
        return None


def check_folder(path: str | os.PathLike[str]) -> Path:
    """Return the folder of a path; raise an OSError if no model can be saved there."""
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
    others = [name for name in names if not _OURS.fullmatch(name) or (folder / name).is_fifo()]
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
            return _load(folder, meta, verify)
        except SavedModelError:  # was another model saved over it meanwhile?
            if read_meta(folder) == meta:
                raise


def _load(folder: Path, meta: dict[str, Any], verify: bool) -> Any:
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
        check_objects(reader.objects)
    except SavedModelError as error:
        raise SavedModelError(f"{folder}: {error}") from error
    return model


def check_objects(objects: list[Any]) -> None:
    """Check the schemas of fitted objects, which follow those within them."""
    checked: set[int] = set()
    for one in reversed(objects):
        is_fitted = not hasattr(one, "get_params") or any(name[-1:] == "_" for name in vars(one))
        if id(one) in checked or not is_fitted:
            continue
        name = type(one).__name__
        try:
            check_attributes(one, name, checked=checked, schemas=SCHEMAS)
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
        sha256 = meta.pop("sha256")
        arrays = meta["arrays"]
        is_whole = (
            (meta["what"], sha256) == (_WHAT, _digest(meta))
            and type(meta["versions"]) is dict
            and {"format", "model"} <= meta.keys()
            and type(arrays["sha256"]) is str
            and bool(_ARRAYS.fullmatch(arrays["file"]))
        )
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


def write_arrays(
    path: Path, arrays: dict[str, np.ndarray], metadata: dict[str, str] | None = None
) -> str:
    """Write a safetensors file to the disk, and return its sha256."""
    try:
        save_file(arrays, path, metadata)
        with open(path, "r+b") as stream:
            os.fsync(stream.fileno())
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except SafetensorError as error:
        raise OSError(f"{path}: {error}") from error
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def read_arrays(
    path: Path, sha256: str | None = None
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return the arrays of a safetensors file, as read-only memory maps, and its metadata.

    Parameters
    ----------
    path : Path
    sha256 : str, default=None
        Checksum to compare with; None reads no values but booleans.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    SavedModelError
        If it is no regular file in the safetensors format, or has another checksum.
    """
    with open_regular(path) as stream:
        if sha256 is not None and hashlib.file_digest(stream, "sha256").hexdigest() != sha256:
            raise SavedModelError(f"{path}: is damaged: its values are not those written.")
        try:
            data = np.asarray(np.memmap(stream, np.uint8, "r"))
            with safe_open(path, "np"):  # checks lengths, offsets and dtypes
                pass
            return _views(data)
        except (SafetensorError, ValueError, KeyError, TypeError, OSError) as error:
            raise SavedModelError(f"{path}: is no whole safetensors file ({error}).") from None


def _views(data: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    n_header = int.from_bytes(data[:8].tobytes(), "little")
    header = json.loads(data[8 : 8 + n_header].tobytes())
    metadata = header.pop("__metadata__", {})
    arrays = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        part = data[8 + n_header :][begin:end]
        arrays[name] = array = part.view(DTYPES[entry["dtype"]]).reshape(entry["shape"])
        if not array.flags.aligned or (array.dtype == bool and part.max(initial=0) > 1):
            raise ValueError(f"{name!r:.100} is not aligned, or has other bytes than its dtype")
    return arrays, metadata


def open_regular(path: Path) -> IO[bytes]:
    """Open a regular file to be read, without waiting for a pipe.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    SavedModelError
        If it cannot be read, or is not a regular file.
    """

    def without_waiting(name: str, flags: int) -> int:
        return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))

    try:
        stream: Any = open(path, "rb", opener=without_waiting)  # noqa: SIM115
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from None
    except (OSError, ValueError) as error:  # a folder, links in a circle, a NUL in the name
        raise SavedModelError(f"{path}: cannot be read ({error}).") from None
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise SavedModelError(f"{path}: is not a regular file.")
    return stream  # type: ignore[no-any-return]
