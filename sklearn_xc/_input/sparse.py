"""Validation of sparse matrices: index arrays inside the shape, native byte order.

scipy's constructors and conversions trust index arrays, and read all arrays in the processor's byte
order. A column index beyond the shape (a test file with a new feature, an array edited in place) or
a big-endian array then crashes the process or gives a wrong answer. Every public function calls
``check_sparse`` on each sparse matrix that it takes, before using it.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

#: Entries compared at a time, which bounds the memory of the comparison.
_PIECE = 2**20


def check_sparse(matrix: Any, name: str, who: str = "") -> None:
    """Raise ValueError if `matrix` is sparse and malformed.

    Parameters
    ----------
    matrix : object
        Objects that are not sparse pass unchecked. Never changed.
    name : str
        The argument's name for the message.
    who : str, default=""
        The function or estimator, named first.

    Raises
    ------
    ValueError
        For a matrix that is not two-dimensional; for index arrays of the wrong type or length, that
        decrease where they must not, or point outside the shape; and for arrays that are masked or
        not in native byte order.

    Notes
    -----
    Two passes over the index arrays; lists and dictionaries are converted to COO. Order and
    repetitions within a row are no fault.
    """
    if not sp.issparse(matrix):
        return
    name = f"{who}: {name}" if who else name
    if len(matrix.shape) != 2:
        raise ValueError(
            f"{name}: a sparse matrix of 2 dimensions was expected. Got shape "
            f"{tuple(matrix.shape)}."
        )
    try:
        fault = _fault(matrix)
    except (AttributeError, IndexError, OverflowError, TypeError, ValueError) as error:
        fault = str(error)
    if fault:
        raise ValueError(
            f"{name}: this {type(matrix).__name__} of shape {tuple(matrix.shape)} is malformed: "
            f"{fault}. Its arrays were changed by hand, or read with a shape that is too small."
        )


def _fault(matrix: Any) -> str:
    """Describe what is wrong with a sparse matrix; empty if nothing is."""
    if matrix.format in ("lil", "dok"):
        if matrix.format == "lil" and [*map(len, matrix.rows)] != [*map(len, matrix.data)]:
            return "a row has other numbers of columns and of values"
        return _fault(matrix.tocoo())
    if matrix.format == "coo":
        rows, columns = matrix.coords
        fault = _array_fault(matrix.data, 1, row=rows, col=columns)
        if not fault and not len(rows) == len(columns) == len(matrix.data):
            fault = "row, col and data differ in length"
        fault = fault or _range_fault(rows, matrix.shape[0], "row")
        return fault or _range_fault(columns, matrix.shape[1], "column")
    if matrix.format == "dia":
        fault = _array_fault(matrix.data, 2, offsets=matrix.offsets)
        if not fault and not len(matrix.offsets) == len(matrix.data) == len(set(matrix.offsets)):
            fault = "offsets must be different, one for each diagonal"
        n, d = matrix.shape
        return fault or _range_fault(matrix.offsets + max(n - 1, 0), max(n - 1, 0) + d, "diagonal")
    data, indices, indptr = matrix.data, matrix.indices, matrix.indptr
    is_blocked = matrix.format == "bsr"
    if fault := _array_fault(data, 3 if is_blocked else 1, indices=indices, indptr=indptr):
        return fault
    block = data.shape[1:] if is_blocked else (1, 1)
    if 0 in block or matrix.shape[0] % block[0] or matrix.shape[1] % block[1]:
        return f"blocks of shape {block} do not fill the shape"
    (n_major, n_minor), minor = (
        (n // size for n, size in zip(matrix.shape, block, strict=True)),
        "column",
    )
    if matrix.format == "csc":
        n_major, n_minor, minor = n_minor, n_major, "row"
    if len(indptr) != n_major + 1 or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        return f"indptr must rise from 0 and have {n_major + 1} entries"
    n = int(indptr[-1])
    if n > min(len(indices), len(data)):
        return f"indptr ends at {n}, indices or data hold fewer entries"
    return _range_fault(indices[:n], n_minor, minor)


def _array_fault(data: Any, n_dimensions: int, **arrays: Any) -> str:
    for name, array in {"data": data, **arrays}.items():
        if type(array) is not np.ndarray and not isinstance(array, np.memmap):
            return f"{name} must be an array. Got {type(array).__name__}"
        if array.ndim != (n_dimensions if name == "data" else 1):
            return f"{name} has {array.ndim} dimensions"
        if name != "data" and array.dtype.kind not in "iu":
            return f"{name} must hold integers. Got {array.dtype}"
        if not array.dtype.isnative:
            return (
                f"{name} must be in native byte order, the only one that scipy supports: convert "
                "it before the matrix is made, array.astype(array.dtype.newbyteorder('='))"
            )
    return ""


def _range_fault(indices: np.ndarray, limit: int, what: str) -> str:
    if not len(indices) or (indices.min() >= 0 and indices.max() < limit):
        return ""
    at = int(((indices < 0) | (indices >= limit)).argmax())
    return f"{what} index {indices[at]} is not in 0 to {limit - 1} (entry {at})"


def rows_are_canonical(indptr: np.ndarray, indices: np.ndarray) -> bool:
    """Return whether the indices of each row rise, without repetitions.

    scipy remembers the answer in a flag that an edit of the arrays leaves unchanged.
    """
    for start in range(0, len(indices) - 1, _PIECE):
        piece = indices[start : start + _PIECE + 1]
        rises = piece[1:] > piece[:-1]
        inner = slice(*np.searchsorted(indptr, (start + 1, start + len(piece))))
        rises[indptr[inner] - (start + 1)] = True  # where a row begins
        if not rises.all():
            return False
    return True
