"""Vectors of texts in a folder, where later fits with the same layers find them.

Each call that adds some writes a file of its own, under a temporary name first, so that processes
need not wait for each other and no file is half-written. A record is the hash of a text and its
vector.
"""

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np


def digest_of(parts: dict[str, Any], arrays: dict[str, np.ndarray]) -> str:
    """Return a name for the settings and weights that vectors depend on."""
    found = hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=12)
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        found.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        found.update(array.reshape(-1).view(np.uint8).data)
    return found.hexdigest()


class StoredVectors:
    """The vectors that a folder has for one set of layers.

    Parameters
    ----------
    folder : str or PathLike
        Made if it is missing.
    layers : str
        See ``digest_of``.
    dim : int
    who : str
        For messages, such as "TransformerEncoder: cache_dir".
    read_only : bool, default=False
        Whether nothing is added; then there need be no folder.

    Raises
    ------
    OSError
        If the folder cannot be made.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        layers: str,
        dim: int,
        who: str,
        *,
        read_only: bool = False,
    ) -> None:
        self._folder, self._who, self._read_only = Path(folder) / layers, who, read_only
        self._record = np.dtype([("hash", "<u8", (2,)), ("vector", "<f4", (dim,))])
        self._files: dict[str, np.ndarray] = {}
        self._places: dict[bytes, tuple[str, int]] = {}
        if not read_only:
            self._make_folder()

    def find(self, hashes: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write the vectors that are there to rows of `out`, and return which, bool.

        `hashes` are uint64 of shape (n, 2).
        """
        self._read_new_files()
        is_there = np.zeros(len(hashes), bool)
        for i, key in enumerate(np.ascontiguousarray(hashes, "<u8")):
            place = self._places.get(key.tobytes())
            if place is not None:
                out[i] = self._files[place[0]][place[1]]["vector"]
                is_there[i] = True
        return is_there

    def add(self, hashes: np.ndarray, vectors: np.ndarray) -> None:
        """Keep the vectors of further texts, unless read-only.

        Raises OSError if they cannot be written.
        """
        if self._read_only:
            return
        self._make_folder()
        records = np.empty(len(hashes), self._record)
        records["hash"], records["vector"] = hashes, vectors
        try:
            with tempfile.NamedTemporaryFile(dir=self._folder, suffix=".tmp", delete=False) as file:
                np.save(file, records, allow_pickle=False)
            os.replace(file.name, Path(file.name).with_suffix(".npy"))
        except OSError as error:
            message = f"{self._who}: cannot be written: {error.strerror}"
            raise OSError(error.errno, message, str(self._folder)) from error

    def _make_folder(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"{self._who}: cannot make the folder: {error.strerror}"
            raise OSError(error.errno, message, str(self._folder)) from error

    def _read_new_files(self) -> None:
        """Map files that have come since; a damaged one is passed over."""
        for path in sorted(self._folder.glob("*.npy")):
            if path.name in self._files or path.is_symlink() or not path.is_file():
                continue
            try:
                records = np.load(path, mmap_mode="r", allow_pickle=False)
            except (ValueError, OSError):
                continue
            if records.dtype == self._record and records.ndim == 1:
                self._files[path.name] = records
                for i, key in enumerate(records["hash"]):
                    self._places[key.tobytes()] = path.name, i
