"""The rows that a model has seen, in files: ``partial_fit`` reads them again.

A batch is what one call brought. Its arrays are written behind those of the batches before, and are
there once ``history.json`` counts them in: what a process that was killed has left behind is
written over. Each batch has a checksum, which is looked at before its rows are used.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from sklearn_xc._data import CsrRows, DenseRows, Targets
from sklearn_xc.exceptions import SavedModelError
from sklearn_xc.storage.checkpoints import digest
from sklearn_xc.storage.locks import locked
from sklearn_xc.storage.places import named_in_errors, own_folder
from sklearn_xc.storage.signed_json import read_json, write_json

FORMAT = 1
LIST = "history.json"
_WHAT = "rows that a model of sklearn_xc has seen"
_FILES = ("x.lengths", "x.indices", "x.values", "y.lengths", "y.labels", "weights")
_OURS = re.compile(rf"{re.escape(LIST)}|({'|'.join(map(re.escape, _FILES))})\.bin|\..*\.tmp")


class RowHistory:
    """The batches in a folder; see :func:`opened_history`.

    Attributes
    ----------
    folder : Path
    where : str
        How messages begin.
    kind : dict
        What all batches have in common: features, labels, dtype, whether X is sparse.
    batches : list of dict
        Of each its checksum, and the items that it has in each file.
    """

    def __init__(self, folder: Path, where: str, kind: dict[str, Any]) -> None:
        self.folder, self.where, self.kind = folder, where, kind
        self.batches: list[dict[str, Any]] = []
        try:
            found = read_json(folder / LIST, _WHAT)
        except FileNotFoundError:
            return
        except SavedModelError as error:
            raise SavedModelError(f"{where}: {error}") from None
        if found["format"] != FORMAT:
            raise ValueError(f"{where}: is of format {found['format']}, not {FORMAT}.")
        self.kind = {**kind, "sparse": found["kind"].get("sparse")}
        for name, value in self.kind.items():
            if found["kind"].get(name) != value:
                raise ValueError(
                    f"{where} holds rows of other data: {name} was {found['kind'].get(name)!r}, is "
                    f"{value!r}. Give each model a folder of its own."
                )
        self.batches = found["batches"]

    def seen_after(self, n_batches: int) -> str:
        """Return what stands for the first batches, in a model that has seen them."""
        chain = "".join(batch["sha256"] for batch in self.batches[:n_batches])
        return hashlib.sha256(chain.encode()).hexdigest()

    def append(
        self, instances: CsrRows | DenseRows, targets: Targets, weight: np.ndarray | None
    ) -> None:
        """Write a batch behind the others; ``commit`` makes it one of them.

        Raises
        ------
        OSError
            If it cannot be written; those before stay.
        """
        arrays = _arrays(instances, targets, weight)
        ends = self._ends(len(self.batches))
        for name, array in arrays.items():
            path = self.folder / f"{name}.bin"
            self._require_size(path, ends[name] * array.dtype.itemsize)
            with named_in_errors(path), open(path, "r+b" if path.exists() else "xb") as stream:
                stream.truncate(ends[name] * array.dtype.itemsize)
                stream.seek(0, os.SEEK_END)
                stream.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
                stream.flush()
                os.fsync(stream.fileno())
        self.batches = [
            *self.batches,
            {
                "sha256": digest(arrays.values()), "rows": instances.shape[0],
                "weighted": weight is not None,
                "items": {name: array.size for name, array in arrays.items()},
            },
        ]  # fmt: skip

    def commit(self) -> None:
        """Have all batches count that were appended."""
        with named_in_errors(self.folder / LIST):
            write_json(
                self.folder / LIST,
                {"what": _WHAT, "format": FORMAT, "kind": self.kind, "batches": self.batches},
            )

    def is_last(
        self, instances: CsrRows | DenseRows, targets: Targets, weight: np.ndarray | None
    ) -> bool:
        """Tell whether the last batch is this one."""
        if not self.batches:
            return False
        return digest(_arrays(instances, targets, weight).values()) == self.batches[-1]["sha256"]

    def read(self, like: Targets) -> tuple[CsrRows | DenseRows, Targets, np.ndarray | None]:
        """Return the rows of all batches, features in memory maps.

        Parameters
        ----------
        like : Targets
            Has the classes, and the kind of y.

        Raises
        ------
        SavedModelError
            If they are not as they were written.
        """
        arrays = {name: self._mapped(name, dtype) for name, dtype in self._dtypes().items()}
        begin = self._ends(0)
        for number, batch in enumerate(self.batches):
            end = {name: at + batch["items"].get(name, 0) for name, at in begin.items()}
            own = {name: array[begin[name] : end[name]] for name, array in arrays.items()}
            if "x.lengths" not in own:
                own["x.values"] = own["x.values"].reshape(-1, self.kind["n_features"])
            if digest(own.values()) != batch["sha256"]:
                raise SavedModelError(
                    f"{self.where}: batch {number} is damaged: these are not the rows that were "
                    "written."
                )
            begin = end
        n, d = sum(batch["rows"] for batch in self.batches), self.kind["n_features"]
        instances: CsrRows | DenseRows
        if self.kind["sparse"]:
            indptr = np.concatenate(([0], np.cumsum(arrays["x.lengths"], dtype=np.int64)))
            instances = CsrRows(indptr, arrays["x.indices"], arrays["x.values"], (n, d))
        else:
            instances = DenseRows(arrays["x.values"].reshape(n, d))
        is_weighted = any(batch["weighted"] for batch in self.batches)
        weight = np.array(arrays["weights"]) if is_weighted else None
        return instances, _targets(arrays["y.lengths"], arrays["y.labels"], like), weight

    def _dtypes(self) -> dict[str, Any]:
        dtypes: dict[str, Any] = {"x.values": self.kind["dtype"]}
        if self.kind["sparse"]:
            dtypes = {"x.lengths": np.int64, "x.indices": np.int32, **dtypes}
        return {**dtypes, "y.lengths": np.int64, "y.labels": np.int32, "weights": np.float64}

    def _ends(self, n_batches: int) -> dict[str, int]:
        """Return where the first batches end in each file, in items."""
        some = self.batches[:n_batches]
        return {name: sum(batch["items"].get(name, 0) for batch in some) for name in _FILES}

    def _mapped(self, name: str, dtype: Any) -> np.ndarray:
        path, n = self.folder / f"{name}.bin", self._ends(len(self.batches))[name]
        if n == 0:
            return np.empty(0, dtype)
        self._require_size(path, n * np.dtype(dtype).itemsize)
        return np.asarray(np.memmap(path, dtype, "r", shape=(n,)))

    def _require_size(self, path: Path, n_bytes: int) -> None:
        if n_bytes and (not path.is_file() or path.stat().st_size < n_bytes):
            raise SavedModelError(f"{self.where}: {path.name} is missing, or cut off.")


def _arrays(
    instances: CsrRows | DenseRows, targets: Targets, weight: np.ndarray | None
) -> dict[str, np.ndarray]:
    """Return the arrays of a batch."""
    n = instances.shape[0]
    found: dict[str, np.ndarray] = {}
    if isinstance(instances, CsrRows):
        found |= {"x.lengths": np.diff(instances.indptr), "x.indices": instances.indices}
    found["x.values"] = instances.arrays[-1]
    indptr, labels = targets.by_instance(n)
    weight = np.ones(n) if weight is None else weight
    return {**found, "y.lengths": np.diff(indptr), "y.labels": labels, "weights": weight}


def _targets(lengths: np.ndarray, labels: np.ndarray, like: Targets) -> Targets:
    """Return the positive rows of each problem, from the labels of each row."""
    rows = np.repeat(np.arange(len(lengths)), lengths)
    if like.n_problems == 1 and len(like.classes) == 2:  # positives are those of the second class
        rows, labels = rows[labels == 1], np.zeros(np.count_nonzero(labels == 1), np.int32)
    return like.of_pairs(labels, rows)


@contextmanager
def opened_history(
    path: str | os.PathLike[str], who: str, instances: CsrRows | DenseRows, n_labels: int
) -> Iterator[RowHistory]:
    """Open the folder of a model's rows, for one process.

    Parameters
    ----------
    path : str or PathLike
        Such a folder, an empty one, or a free name.
    who : str
        Name of the estimator, for messages.
    instances : CsrRows or DenseRows
        Rows of the kind that is kept.
    n_labels : int

    Raises
    ------
    ValueError
        If it holds rows of another kind.
    SavedModelError
        If it is damaged.
    OSError
        If it cannot be written, holds other files, or another process is at work there.
    """
    where = f"{who}: history_dir {os.path.abspath(os.fspath(path))!r}"
    folder = own_folder(
        path, _OURS, f"{where}:", "a history", is_file="It must be a folder, or a free name.",
        others="Give the history a folder of its own.",
    )  # fmt: skip
    is_new = not folder.exists()
    folder.mkdir(exist_ok=True)
    kind = {
        "n_features": instances.shape[1], "n_labels": n_labels, "dtype": instances.dtype.str,
        "sparse": isinstance(instances, CsrRows),
    }  # fmt: skip
    with locked(folder, f"{who}: another process is training with this history_dir"):
        try:
            yield RowHistory(folder, where, kind)
        finally:
            if is_new and not (folder / LIST).exists():
                for name in filter(_OURS.fullmatch, os.listdir(folder)):
                    (folder / name).unlink()
                with suppress(OSError):
                    folder.rmdir()
