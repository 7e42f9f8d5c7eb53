"""Arrays as .npy files, and files of several, checked megabyte by megabyte before they are used."""

import hashlib
import math
import os
import re
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from sklearn_xc.exceptions import SavedModelError
from sklearn_xc.storage.places import open_regular

#: Bytes of a file that have a checksum of their own.
CHUNK = 2**20
#: Arrays of at most so many bytes are read and checked at once, and held in memory.
SMALL = 2**16
#: Bytes of an array that is not contiguous that are copied at a time.
_PIECE = 2**24
#: Dtypes that files may have: numbers, little-endian, and texts. No longer ones, as an attribute
#: that is only a dtype has no file whose size bounds it.
DTYPES = re.compile(r"[<|](b1|[iu][1248]|f[248]|U[1-9]\d{0,5})")
_MOST_DIMENSIONS = 32
#: The values of a .npy file begin at such a multiple.
_ALIGNED = 64
#: What the names of files end in that are being written.
WRITING = ".writing"
#: And those of several arrays, see ``tensor_files``: to this module each is an array of bytes.
TENSORS = ".safetensors"


@dataclass(frozen=True)
class ArrayFile:
    """What is known of an array's file.

    Attributes
    ----------
    dtype : str
        As numpy writes it, such as ``"<f4"``.
    shape : tuple of int
    fortran : bool
        Whether the first index runs fastest.
    size : int
        Bytes of the file.
    sha256 : list of str
        Of each megabyte of the file, the header included.
    """

    dtype: str
    shape: tuple[int, ...]
    fortran: bool
    size: int
    sha256: list[str]

    @property
    def offset(self) -> int:
        """Bytes before the values: the .npy header, which only other programs read."""
        return self.size - math.prod(self.shape) * np.dtype(self.dtype).itemsize

    def as_json(self) -> dict[str, Any]:
        """Return what :meth:`from_json` reads."""
        return asdict(self) | {"shape": list(self.shape)}

    @classmethod
    def from_json(cls, name: str, found: Any) -> "ArrayFile":
        """Return what ``as_json`` made.

        Raises
        ------
        SavedModelError
            If it says what no array's file is.
        """
        try:
            file = cls(**found | {"shape": tuple(found["shape"])})
            ok = (
                DTYPES.fullmatch(file.dtype) is not None
                and all(type(length) is int and length >= 0 for length in (*file.shape, file.size))
                and len(file.shape) <= _MOST_DIMENSIONS
                and math.prod(max(length, 1) for length in file.shape) < 2**48
                and type(file.fortran) is bool
                and file.offset >= 0
                and file.offset % _ALIGNED == 0
                and type(file.sha256) is list
                and len(file.sha256) == -(-file.size // CHUNK)
                and all(len(bytes.fromhex(digest)) == 32 for digest in file.sha256)
                and (not name.endswith(TENSORS) or (file.dtype, file.offset) == ("|u1", 0))
            )
        except (TypeError, ValueError, KeyError):
            ok = False
        if not ok:
            raise SavedModelError(f"meta.json: what it says of the array {name} makes no sense.")
        return file


def write_array(array: np.ndarray, folder: Path, name: str) -> tuple[str, ArrayFile]:
    """Write an array to a new file, whose name ends in a part of its checksum.

    Parameters
    ----------
    array : ndarray
        Not of objects.
    folder : Path
        Where to.
    name : str
        What the file's name begins with.

    Returns
    -------
    name : str
        Of the file, such as ``"weights.values-1f0c2a9b.npy"``: another content has another name, so
        that no file which a reader may have open is ever changed.
    file : ArrayFile
    """
    fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    header = BytesIO()
    described = {
        "descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": fortran,
        "shape": array.shape,
    }  # fmt: skip
    np.lib.format.write_array_header_1_0(header, described)
    parts = chain((memoryview(header.getbuffer()),), bytes_of(array.T if fortran else array))
    final, size, sha256 = write_file(parts, folder, name, ".npy")
    return final, ArrayFile(array.dtype.str, array.shape, fortran, size, sha256)


def write_file(
    parts: Iterable[memoryview], folder: Path, name: str, ending: str
) -> tuple[str, int, list[str]]:
    """Write a new file, whose name has a part of its checksum.

    Parameters
    ----------
    parts : iterable of memoryview
        Its bytes.
    folder : Path
        Where to.
    name, ending : str
        What the file's name begins with, and ends in.

    Returns
    -------
    name : str
        Of the file.
    size : int
        In bytes.
    sha256 : list of str
        Of each megabyte.
    """
    scratch, size, sums = folder / f".{secrets.token_hex(4)}{WRITING}", 0, []
    try:
        with open(scratch, "xb") as stream:
            for data in parts:
                stream.write(data)
                while len(data):
                    if size % CHUNK == 0:
                        sums.append(hashlib.sha256())
                    taken = data[: CHUNK - size % CHUNK]
                    sums[-1].update(taken)
                    size, data = size + len(taken), data[len(taken) :]
            stream.flush()
            os.fsync(stream.fileno())
        sha256 = [one.hexdigest() for one in sums]
        final = f"{name}-{hashlib.sha256(''.join(sha256).encode()).hexdigest()[:8]}{ending}"
        os.replace(scratch, folder / final)
    finally:
        scratch.unlink(missing_ok=True)
    return final, size, sha256


def bytes_of(array: np.ndarray) -> Iterable[memoryview]:
    """Yield the bytes of an array in C order, without a copy of it where it is contiguous."""
    if array.flags.c_contiguous:
        if array.nbytes:
            yield array.reshape(-1).view(np.uint8).data
        return
    step = max(1, _PIECE // max(array[:1].nbytes, 1))
    for first in range(0, len(array), step):
        piece = np.ascontiguousarray(array[first : first + step])
        yield piece.reshape(-1).view(np.uint8).data


class StoredArray:
    """An array in a file that was opened, and of which nothing is trusted that was not checked.

    Parameters
    ----------
    path : Path
        The file.
    file : ArrayFile
        What it must be.

    Raises
    ------
    SavedModelError
        If it is missing, no regular file, or of another size.
    """

    def __init__(self, path: Path, file: ArrayFile) -> None:
        self.path, self.file = path, file
        try:
            stream = open_regular(path)
        except (FileNotFoundError, NotADirectoryError):
            raise SavedModelError(f"{path}: the file is missing.") from None
        with stream:
            size = os.fstat(stream.fileno()).st_size
            if size != file.size:
                raise SavedModelError(f"{path}: has {size:,} bytes, {file.size:,} were written.")
            self.bytes = (
                np.frombuffer(stream.read(), np.uint8)
                if size <= SMALL
                else np.asarray(np.memmap(stream, np.uint8, "r"))
            )
        self.offset = file.offset
        array = self.bytes[self.offset :].view(file.dtype)
        shape = file.shape[::-1] if file.fortran else file.shape
        #: The values, not checked. Read-only.
        self.unchecked = array.reshape(shape).T if file.fortran else array.reshape(shape)
        self._valid = -np.inf, np.inf
        self._is_checked = np.zeros(len(file.sha256), bool)
        self.is_checked = not len(file.sha256)

    def check(self, first: np.ndarray, stop: np.ndarray) -> None:
        """Check the megabytes in which some items are, those of them that were not yet.

        Parameters
        ----------
        first, stop : ndarray of int64
            Ranges of items, in the order of the file.

        Raises
        ------
        SavedModelError
            If one is damaged.
        """
        if self.is_checked:
            return
        itemsize = np.dtype(self.file.dtype).itemsize
        some = stop > first
        begin = (self.offset + first[some] * itemsize) // CHUNK
        end = (self.offset + stop[some] * itemsize - 1) // CHUNK + 1
        n_wanted = np.zeros(len(self._is_checked) + 1, np.int64)
        np.add.at(n_wanted, begin, 1)
        np.add.at(n_wanted, end, -1)
        is_wanted = np.cumsum(n_wanted)[:-1] > 0
        for chunk in np.flatnonzero(is_wanted & ~self._is_checked):
            self._check_chunk(int(chunk))

    def require(self, low: float, high: float) -> None:
        """Have megabytes refused with values that are not from `low` to below `high`.

        Whoever requires anything is heard, also of what was checked before.
        """
        self._valid = max(self._valid[0], low), min(self._valid[1], high)
        self._is_checked[:] = False
        self.is_checked = not len(self._is_checked)

    def checked(self) -> np.ndarray:
        """Return the array, read-only, once all of it has been checked."""
        if not self.is_checked:
            for chunk in np.flatnonzero(~self._is_checked):
                self._check_chunk(int(chunk))
        return self.unchecked

    def _check_chunk(self, chunk: int) -> None:
        part = self.bytes[chunk * CHUNK : (chunk + 1) * CHUNK]
        if hashlib.sha256(part.data).hexdigest() != self.file.sha256[chunk]:
            raise SavedModelError(
                f"{self.path}: is damaged between bytes {chunk * CHUNK:,} and "
                f"{chunk * CHUNK + len(part):,}: these are not the values that were written."
            )
        if self._valid != (-np.inf, np.inf):
            self._check_values(chunk)
        self._is_checked[chunk] = True
        self.is_checked = bool(self._is_checked.all())

    def _check_values(self, chunk: int) -> None:
        """Raise an error for values that nobody may have; items lie in one chunk each."""
        items = self.unchecked.reshape(-1)
        limits = [(at * CHUNK - self.offset) // items.itemsize for at in (chunk, chunk + 1)]
        part = items[max(limits[0], 0) : limits[1]]
        low, high = self._valid
        if part.size and not (low <= part.min() and part.max() < high):
            raise SavedModelError(
                f"{self.path}: has values that are not from {low} to below {high}."
            )
