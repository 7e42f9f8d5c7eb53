"""Vectors of texts in an SQLite file, where later fits with the same layers find them."""

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Iterator
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
    """The vectors of one set of layers, by the hashes of texts.

    Parameters
    ----------
    path : Path
        A file, which processes may share; its folder is made if it is missing.
    caller : str
        For messages, such as "TransformerEncoder: cache_dir".
    """

    def __init__(self, path: Path, caller: str) -> None:
        self._path, self._who = path, caller

    def find(self, hashes: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write the vectors that are there to rows of `out`, and return which, bool.

        `hashes` are uint64 of shape (n, 2), `out` is float32.
        """
        is_there = np.zeros(len(hashes), bool)
        if not self._path.is_file():
            return is_there
        with self._opened() as file:
            for i, key in enumerate(hashes):
                found = file.execute("SELECT vector FROM vectors WHERE hash = ?", (key.tobytes(),))
                for (vector,) in found:
                    out[i], is_there[i] = np.frombuffer(vector, "<f4"), True
        return is_there

    def add(self, hashes: np.ndarray, vectors: np.ndarray) -> None:
        """Keep the vectors of further texts; OSError if they cannot be written."""
        with self._opened() as file:
            file.executemany(
                "INSERT OR IGNORE INTO vectors VALUES (?, ?)",
                zip(map(np.ndarray.tobytes, hashes), map(np.ndarray.tobytes, vectors), strict=True),
            )

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.closing(sqlite3.connect(self._path, timeout=600)) as file, file:
                columns = "(hash BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID"
                file.execute(f"CREATE TABLE IF NOT EXISTS vectors {columns}")
                yield file
        except (sqlite3.Error, OSError) as error:
            raise OSError(f"{self._who}: {str(self._path)!r} cannot be used: {error}") from error
