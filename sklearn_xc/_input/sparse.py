"""Validation of sparse matrices: index arrays inside the shape, native byte order.

scipy's constructors and conversions trust index arrays, and read all arrays in the processor's byte
order. A column index beyond the shape (a test file with a new feature, an array edited in place) or
a big-endian array then crashes the process or gives a wrong answer. Every public function calls
``check_sparse`` on each sparse matrix that it takes, before using it.
"""

from itertools import chain
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

#: Entries compared at a time, so that what is compared stays in a processor's cache.
_PIECE = 2**16
#: More at a time where each piece takes a search of row ends.
_LONG_PIECE = 2**20


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
        For a matrix that is not two-dimensional; for index arrays of the wrong number, type or
        length, that decrease where they must not, or point outside the shape; and for arrays that
        are masked or not in native byte order.

    Notes
    -----
    One pass over the index arrays, some 0.2 ns an entry for CSR and CSC. Order and repetitions
    within a row are no fault.
    """
    if sp.issparse(matrix):
        problem = problem_of(matrix)
        if problem:
            raise ValueError(f"{who}: {name}: {problem}" if who else f"{name}: {problem}")


def problem_of(matrix: Any) -> str:
    """Describe what is wrong with a sparse matrix; empty if nothing is."""
    if len(matrix.shape) != 2:
        return f"a sparse matrix of 2 dimensions was expected. Got shape {tuple(matrix.shape)}."
    try:
        _CHECKS[matrix.format](matrix)
        _check_byte_order("data", matrix.dtype)
    except _MalformedError as error:
        return f"this {type(matrix).__name__} of shape {tuple(matrix.shape)} is malformed: {error}"
    return ""


def rows_are_canonical(indptr: np.ndarray, indices: np.ndarray) -> bool:
    """Return whether the indices of each row rise, without repetitions.

    scipy remembers the answer in a flag that an edit of the arrays leaves as it was.
    """
    if len(indices) < 2:
        return True
    for start in range(0, len(indices) - 1, _LONG_PIECE):
        piece = indices[start : start + _LONG_PIECE + 1]
        rises = piece[1:] > piece[:-1]
        inner = slice(*np.searchsorted(indptr, (start + 1, start + len(piece))))
        rises[indptr[inner] - (start + 1)] = True  # where a row begins
        if not rises.all():
            return False
    return True


class _MalformedError(Exception):
    """What is wrong, without the argument's name."""


def _fail(problem: str) -> NoReturn:
    raise _MalformedError(
        f"{problem}. Its arrays were set or changed by hand, or read with a shape that is too "
        "small."
    )


def _check_byte_order(name: str, dtype: Any) -> None:
    if not np.dtype(dtype).isnative:
        raise _MalformedError(
            f"{name} must be in native byte order, the only one that scipy supports. Got dtype "
            f"{np.dtype(dtype).str!r}: convert arrays before the matrix is made of them, "
            "array.astype(array.dtype.newbyteorder('='))."
        )


def _check_compressed(matrix: Any) -> None:
    n_major, n_minor = matrix.shape if matrix.format == "csr" else matrix.shape[::-1]
    _check_vectors(matrix.data, indptr=matrix.indptr, indices=matrix.indices)
    n = _check_pointers(matrix.indptr, n_major)
    shorter = min(len(matrix.indices), len(matrix.data))
    if n > shorter:
        _fail(f"indptr ends at {n}, indices or data hold {shorter} entries")
    _check_range(matrix.indices[:n], n_minor, "column" if matrix.format == "csr" else "row")


def _check_blocks(matrix: Any) -> None:
    data = matrix.data
    _check_array("data", data, 3)
    rows, columns = data.shape[1:]
    if not (rows and columns) or matrix.shape[0] % rows or matrix.shape[1] % columns:
        _fail(f"blocks of {rows} x {columns} do not fill the shape")
    _check_vectors(data[:, 0, 0], indptr=matrix.indptr, indices=matrix.indices)
    n = _check_pointers(matrix.indptr, matrix.shape[0] // rows)
    shorter = min(len(matrix.indices), len(data))
    if n > shorter:
        _fail(f"indptr ends at {n}, indices or data hold {shorter} blocks")
    _check_range(matrix.indices[:n], matrix.shape[1] // columns, "block column")


def _check_coordinates(matrix: Any) -> None:
    if len(matrix.coords) != 2:
        _fail(f"two arrays of coordinates were expected. Got {len(matrix.coords)}")
    row, column = matrix.coords
    _check_vectors(matrix.data, row=row, col=column)
    if not len(row) == len(column) == len(matrix.data):
        _fail(f"row, col and data have {len(row)}, {len(column)} and {len(matrix.data)} entries")
    _check_range(row, matrix.shape[0], "row")
    _check_range(column, matrix.shape[1], "column")


def _check_diagonals(matrix: Any) -> None:
    _check_array("data", matrix.data, 2)
    offsets = matrix.offsets
    _check_vectors(matrix.data[:, 0] if matrix.data.shape[1] else offsets, offsets=offsets)
    if len(offsets) != len(matrix.data):
        _fail(f"{len(matrix.data)} diagonals have {len(offsets)} offsets")
    n, d = matrix.shape
    outside = (offsets <= -n) | (offsets >= d) if n and d else np.zeros(len(offsets), bool)
    if outside.any():
        _fail(f"the diagonal of offset {offsets[outside.argmax()]} lies outside the shape")
    if len(np.unique(offsets)) != len(offsets):
        _fail("an offset comes twice")


def _check_lists(matrix: Any) -> None:
    n = matrix.shape[0]
    for name in ("rows", "data"):
        lists = getattr(matrix, name)
        if getattr(lists, "shape", None) != (n,) or not all(isinstance(one, list) for one in lists):
            _fail(f"{name} must hold {n} lists")
    if any(len(one) != len(two) for one, two in zip(matrix.rows, matrix.data, strict=True)):
        _fail("a row has other numbers of columns and of values")
    columns = list(chain.from_iterable(matrix.rows))
    if columns:
        _check_integers("rows", np.asarray(columns))
        _check_range(np.asarray(columns), matrix.shape[1], "column")


def _check_keys(matrix: Any) -> None:
    keys = list(matrix.keys())
    if not keys:
        return
    if not all(isinstance(key, tuple) and len(key) == 2 for key in keys):
        _fail("keys must be pairs of a row and a column")
    pairs = np.asarray(keys)
    _check_integers("keys", pairs)
    _check_range(pairs[:, 0], matrix.shape[0], "row")
    _check_range(pairs[:, 1], matrix.shape[1], "column")


_CHECKS = {
    "csr": _check_compressed,
    "csc": _check_compressed,
    "bsr": _check_blocks,
    "coo": _check_coordinates,
    "dia": _check_diagonals,
    "lil": _check_lists,
    "dok": _check_keys,
}


def _check_vectors(data: Any, **arrays: Any) -> None:
    for name, array in {"data": data, **arrays}.items():
        _check_array(name, array, 1)
        if name != "data":
            _check_integers(name, array)


def _check_array(name: str, array: Any, n_dimensions: int) -> None:
    if type(array) is not np.ndarray and not isinstance(array, np.memmap):
        _fail(f"{name} must be an array. Got {type(array).__name__}")
    if array.ndim != n_dimensions:
        _fail(f"{name} must have {n_dimensions} dimensions. Got {array.ndim}")


def _check_integers(name: str, array: np.ndarray) -> None:
    if array.dtype.kind not in "iu":
        _fail(f"{name} must hold integers. Got dtype {array.dtype}")
    _check_byte_order(name, array.dtype)


def _check_pointers(indptr: np.ndarray, n: int) -> int:
    """Return the last pointer."""
    if len(indptr) != n + 1:
        _fail(f"indptr must have {n + 1} entries. Got {len(indptr)}")
    if indptr[0] != 0:
        _fail(f"indptr must begin with 0. Got {indptr[0]}")
    for first in range(0, n, _PIECE):
        piece = indptr[first : first + _PIECE + 1]
        falls = piece[1:] < piece[:-1]
        if falls.any():
            at = first + int(falls.argmax())
            _fail(f"indptr falls from {indptr[at]} to {indptr[at + 1]} at entry {at + 1}")
    return int(indptr[-1])


def _check_range(indices: np.ndarray, limit: int, what: str) -> None:
    if not len(indices):
        return
    # Read as unsigned, a negative number is a large one: one comparison does for both ends.
    unsigned = indices.view(f"u{indices.dtype.itemsize}") if indices.dtype.kind == "i" else indices
    if int(unsigned.max()) >= limit:
        at = int((unsigned >= limit).argmax())
        _fail(f"{what} index {indices[at]} is not in 0 to {limit - 1} (entry {at})")
