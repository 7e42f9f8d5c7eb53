"""Arrays by name in a safetensors file, memory-mapped where it is read."""

import errno
import hashlib
import json
import os
import stat
from pathlib import Path
from typing import IO, Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from sklearn_xc.exceptions import SavedModelError

#: Dtypes by what the format calls them.
DTYPES = {
    name: np.dtype(dtype)
    for name, dtype in (
        *(("F64", "<f8"), ("F32", "<f4"), ("F16", "<f2"), ("BOOL", "?")),
        *(("I64", "<i8"), ("I32", "<i4"), ("I16", "<i2"), ("I8", "i1")),
        *(("U64", "<u8"), ("U32", "<u4"), ("U16", "<u2"), ("U8", "u1")),
    )
}


def write_arrays(
    path: Path, arrays: dict[str, np.ndarray], metadata: dict[str, str] | None = None
) -> str:
    """Write a new file to the disk, and return its sha256.

    Raises
    ------
    OSError
        If it cannot be written.
    """
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
    """Return the arrays of a file, as read-only memory maps, and its metadata.

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
    for name, said in header.items():
        begin, end = said["data_offsets"]
        part = data[8 + n_header :][begin:end]
        arrays[name] = array = part.view(DTYPES[said["dtype"]]).reshape(said["shape"])
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
