"""Writing the text format of the Extreme Classification Repository."""

import os
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from sklearn_xc._input.sparse import check_sparse
from sklearn_xc._parallel.row_ranges import cut_rows
from sklearn_xc._state.atomic_files import open_atomic
from sklearn_xc.datasets._files import MAX_SIZE
from sklearn_xc.metrics.check import as_array, canonical_csr

#: Rows are written together up to this many pairs.
_BLOCK_PAIRS = 1 << 18


def dump_xmc_file(path: str | os.PathLike[str], X: Any, Y: Any) -> None:
    """Write features and labels in the format of the Extreme Classification Repository.

    :func:`load_xmc_file` with the same `dtype` reads back the same bits. The file appears under
    its name only when it is complete: after an error, an interrupt or the death of the process, an
    older file of that name is unchanged and nothing else is left (outside Linux and on network
    file systems, a kill may leave a hidden file).

    Parameters
    ----------
    path : str or path-like
        The file. It is compressed if its name ends in ``.gz`` or ``.xz``.
    X : sparse or dense array of shape (n_samples, n_features), float or integer
        Features. Each value is written with the fewest digits that restore it. Explicit zeros of a
        sparse array are written; other zeros are not.
    Y : sparse or dense array of shape (n_samples, n_labels)
        Label indicator of zeros and ones.

    Raises
    ------
    ValueError
        If the shapes do not match or exceed 2**31 - 1, index arrays point outside them, a value of
        `X` is not finite or not real, or an entry of `Y` is neither 0 nor 1.
    TypeError
        For masked arrays.

    Notes
    -----
    Writes about a million pairs per second. ``X`` and ``Y`` are not modified; unsorted or repeated
    entries are put in order in a copy.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from sklearn_xc.datasets import dump_xmc_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "train.txt")
    ...     dump_xmc_file(path, np.array([[0.0, 0.1], [1.5, 0.0]]), np.array([[1, 1], [0, 0]]))
    ...     print(path.read_text())
    2 2 2
    0,1 1:0.1
     0:1.5
    """
    X, Y = _as_canonical_csr("X", X), _as_canonical_csr("Y", Y)
    if X.shape[0] != Y.shape[0]:
        raise ValueError(
            f"dump_xmc_file: X has {X.shape[0]} rows and Y has {Y.shape[0]}; each row of X needs "
            "its row of labels."
        )
    if X.dtype.kind == "f" and not np.isfinite(X.data).all():
        raise ValueError("dump_xmc_file: X holds NaN or inf; the format has finite numbers only.")
    if not ((Y.data == 0) | (Y.data == 1)).all():
        wrong = Y.data[(Y.data != 0) & (Y.data != 1)][0]
        raise ValueError(
            f"dump_xmc_file: Y must be an indicator of zeros and ones. Got an entry {wrong}."
        )
    if (Y.data == 0).any():
        Y = Y.copy()
        Y.eliminate_zeros()
    with open_atomic(path) as stream:
        stream.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n".encode())
        n_pairs = X.indptr.astype(np.int64) + Y.indptr
        # A row counts for one more, as blocks of empty rows are to end too.
        for first, last in cut_rows(n_pairs + np.arange(len(n_pairs)), _BLOCK_PAIRS):
            stream.write(_format_rows(X, Y, first, last))


def _as_canonical_csr(name: str, matrix: Any) -> Any:
    """Return a matrix as a CSR of integers, float32 or float64, columns sorted in each row."""
    who = f"dump_xmc_file: {name}"
    check_sparse(matrix, name, "dump_xmc_file")
    if not issparse(matrix):
        matrix = as_array(matrix, who, "a matrix")
    if matrix.ndim != 2:
        raise ValueError(f"{who} must have two dimensions. Got shape {matrix.shape}.")
    if max(matrix.shape) > MAX_SIZE:
        raise ValueError(
            f"{who} must have at most {MAX_SIZE} rows and columns. Got shape {matrix.shape}."
        )
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"{who} must hold real numbers. Got dtype {matrix.dtype}.")
    if matrix.dtype.kind == "f":
        with np.errstate(over="ignore"):
            matrix = matrix.astype(np.float32 if matrix.dtype.itemsize <= 4 else np.float64)
    return canonical_csr(matrix if issparse(matrix) else csr_array(matrix))


def _format_rows(X: Any, Y: Any, first: int, last: int) -> bytes:
    entries = slice(X.indptr[first], X.indptr[last])
    texts = zip(X.indices[entries].tolist(), _shortest(X.data[entries]), strict=True)
    pairs = [f"{feature}:{value}" for feature, value in texts]
    labels = list(map(str, Y.indices[Y.indptr[first] : Y.indptr[last]].tolist()))
    ends = (X.indptr[first : last + 1] - X.indptr[first]).tolist()
    label_ends = (Y.indptr[first : last + 1] - Y.indptr[first]).tolist()
    lines = []
    for row in range(last - first):
        own = ",".join(labels[label_ends[row] : label_ends[row + 1]])
        lines.append(f"{own} {' '.join(pairs[ends[row] : ends[row + 1]])}\n")
    return "".join(lines).encode()


def _shortest(values: np.ndarray) -> list[str]:
    """Return the shortest texts that read back as `values`, by way of a float64."""
    if values.dtype.kind != "f":
        return [str(int(value)) for value in values.tolist()]
    texts = values.astype(str)
    differs = texts.astype(np.float64).astype(values.dtype) != values  # it was rounded twice
    texts[differs] = values[differs].astype(np.float64).astype(str)
    return texts.tolist()
