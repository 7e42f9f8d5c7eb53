"""Writing the text format of the Extreme Classification Repository."""

import os
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from sklearn_xc._input.sparse import check_sparse
from sklearn_xc._parallel.row_ranges import cut_rows
from sklearn_xc._state.atomic_files import open_atomic
from sklearn_xc.metrics.check import as_array, canonical_csr

_MAX_INDEX = 2**31 - 1
_BLOCK_PAIRS = 1 << 18
_POWERS = 10.0 ** np.arange(23)


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
    """Return a matrix as a CSR of numbers that numpy can write, columns rising in each row."""
    who = f"dump_xmc_file: {name}"
    check_sparse(matrix, name, "dump_xmc_file")
    if not issparse(matrix):
        matrix = as_array(matrix, who, "a matrix")
    if matrix.ndim != 2:
        raise ValueError(f"{who} must have two dimensions. Got shape {matrix.shape}.")
    if max(matrix.shape) > _MAX_INDEX:
        raise ValueError(
            f"{who} must have at most {_MAX_INDEX} rows and columns. Got shape {matrix.shape}."
        )
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"{who} must hold real numbers. Got dtype {matrix.dtype}.")
    if matrix.dtype.kind == "f" and matrix.dtype.itemsize not in (4, 8):
        with np.errstate(over="ignore"):
            matrix = matrix.astype(np.float32 if matrix.dtype.itemsize == 2 else np.float64)
    return canonical_csr(matrix if issparse(matrix) else csr_array(matrix))


def _format_rows(X: Any, Y: Any, first: int, last: int) -> bytes:
    start, stop = X.indptr[first], X.indptr[last]
    values = _shortest(X.data[start:stop])
    features = X.indices[start:stop].tolist()
    pairs = [f"{f}:{v!r}" for f, v in zip(features, values, strict=True)]
    bounds = (X.indptr[first : last + 1] - start).tolist()
    start, stop = Y.indptr[first], Y.indptr[last]
    labels = [str(label) for label in Y.indices[start:stop].tolist()]
    label_bounds = (Y.indptr[first : last + 1] - start).tolist()
    lines = [
        ",".join(labels[label_bounds[i] : label_bounds[i + 1]])
        + " "
        + " ".join(pairs[bounds[i] : bounds[i + 1]])
        + "\n"
        for i in range(last - first)
    ]
    return "".join(lines).encode()


def _shortest(values: Any) -> list[Any]:
    """Return Python numbers whose ``repr`` is the shortest text that reads back as `values`.

    A float32 is first replaced by the float64 nearest to its value at 6, 7, 8 or 9 digits, the
    first that a cast takes back to it: the very cast that the reader makes.
    """
    if values.dtype.kind in "biu":
        return values.astype(np.int8).tolist() if values.dtype.kind == "b" else values.tolist()
    exact = values.astype(np.float64)
    result = exact.copy()
    if values.dtype.itemsize <= 4:
        values = values.astype(np.float32)
        with np.errstate(divide="ignore"):
            magnitude = np.where(exact == 0, 0, np.floor(np.log10(np.abs(exact))))
        magnitude = magnitude.astype(np.int64)
        left = np.flatnonzero(np.abs(magnitude) < 13)  # beyond, the powers would not be exact
        for n_digits in (6, 7, 8, 9):
            shift = n_digits - 1 - magnitude[left]
            up, down = _POWERS[np.maximum(shift, 0)], _POWERS[np.maximum(-shift, 0)]
            decimal = np.rint(exact[left] * up / down) / up * down
            fits = decimal.astype(np.float32) == values[left]
            result[left[fits]] = decimal[fits]
            left = left[~fits]
        for i in np.flatnonzero(np.abs(magnitude) >= 13):
            decimal = float(str(values[i]))
            result[i] = decimal if np.float32(decimal) == values[i] else exact[i]
    whole = np.abs(result) < 1e15
    whole &= (result == np.rint(result)) & ~((result == 0) & np.signbit(result))
    if whole.all():
        return result.astype(np.int64).tolist()
    return result.tolist()
