"""Vectors of texts in a folder, which any later fit with the same layers finds again.

``vectors.f32`` has a row of float32 for each text, ``texts.u64`` three numbers: a hash of the text
and a checksum of the row. Both grow at the end, the vectors first. What a process left half-written
when it was ended is cut off by the next one, and a row whose checksum is not its own is made anew.
"""

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from sklearn_xc.storage.locks import locked

_VECTORS, _TEXTS = "vectors.f32", "texts.u64"


def digest_of(parts: dict[str, Any], arrays: dict[str, np.ndarray]) -> str:
    """Return a name for all that decides on vectors: settings and weights."""
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
        Of all layers; is made if it is not there.
    layers : str
        As of ``digest_of``.
    dim : int
    who : str
        For messages, such as "TransformerEncoder: cache_dir".
    is_read_only : bool, default=False
        Whether nothing is added. Then there need be no folder.

    Raises
    ------
    OSError
        If the folder cannot be made.
    """

    def __init__(
        self, folder: str | os.PathLike[str], layers: str, dim: int, who: str, *,
        is_read_only: bool = False,
    ) -> None:  # fmt: skip
        self._who, self._dim, self._is_read_only = who, dim, is_read_only
        self._folder = Path(folder) / layers
        if not is_read_only:
            self._make_folder()
        self._forget()

    def find(self, hashes: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write the vectors that are there to rows of `out`.

        Parameters
        ----------
        hashes : ndarray of uint64 of shape (n, 2)
        out : ndarray of float32 of shape (n, dim)

        Returns
        -------
        ndarray of bool of shape (n,)
            Which were there, whole.
        """
        n_known = self._index()
        if not n_known:
            return np.zeros(len(hashes), bool)
        at = np.minimum(np.searchsorted(self._first, hashes[:, 0]), n_known - 1)
        rows = self._order[at]
        is_there = (self._numbers[rows, :2] == hashes).all(axis=1)
        vectors = np.memmap(self._folder / _VECTORS, "<f4", "r", shape=(n_known, self._dim))
        for i in np.flatnonzero(is_there):
            vector = vectors[rows[i]]
            if _checksum(vector) == self._numbers[rows[i], 2]:
                out[i] = vector
            else:
                is_there[i] = False
        return is_there

    def add(self, hashes: np.ndarray, vectors: np.ndarray) -> None:
        """Keep vectors of further texts; not if another process is just writing, or read-only.

        Raises
        ------
        OSError
            If they cannot be written; what was there stays.
        """
        if self._is_read_only:
            return
        self._make_folder()
        numbers = np.empty((len(hashes), 3), "<u8")
        numbers[:, :2] = hashes
        numbers[:, 2] = [_checksum(vector) for vector in vectors]
        with suppress(BlockingIOError), locked(self._folder, self._who):
            n = self._index()
            self._append(_VECTORS, n * self._dim * 4, np.ascontiguousarray(vectors, "<f4"))
            self._append(_TEXTS, n * 24, numbers)

    def _append(self, name: str, end: int, array: np.ndarray) -> None:
        path = self._folder / name
        try:
            with open(path, "r+b" if path.exists() else "x+b") as stream:
                stream.truncate(end)
                stream.seek(end)
                stream.write(array.reshape(-1).view(np.uint8).data)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise OSError(
                error.errno, f"{self._who}: cannot be written: {error.strerror}", str(path)
            ) from error

    def _make_folder(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(
                error.errno, f"{self._who}: cannot make the folder: {error.strerror}",
                str(self._folder),
            ) from error  # fmt: skip

    def _forget(self) -> None:
        """Know of no text."""
        self._numbers = np.empty((0, 3), np.uint64)
        #: Rows by the first numbers of their hashes, and these numbers, rising.
        self._order, self._first = np.empty(0, np.int64), np.empty(0, np.uint64)

    def _index(self) -> int:
        """Look at what has come since; return how many texts are there."""
        sizes = [
            path.stat().st_size if path.exists() else 0
            for path in (self._folder / _TEXTS, self._folder / _VECTORS)
        ]
        n = min(sizes[0] // 24, sizes[1] // (4 * self._dim))
        if n < len(self._order):  # somebody has cut it off
            self._forget()
        known = len(self._order)
        if n > known:
            path, count = self._folder / _TEXTS, 3 * (n - known)
            new = np.fromfile(path, "<u8", count, offset=24 * known).reshape(-1, 3)
            self._numbers = np.concatenate([self._numbers, new])
            # Of equal texts the last comes first: one that was damaged was made anew.
            order = np.lexsort((-np.arange(len(new)), new[:, 0]))
            first = new[order, 0]
            at = np.searchsorted(self._first, first)
            self._order = np.insert(self._order, at, known + order)
            self._first = np.insert(self._first, at, first)
        return n


def _checksum(vector: np.ndarray) -> int:
    content = np.ascontiguousarray(vector, "<f4").tobytes()
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")
