"""Malformed sparse matrices that scipy does not refuse, and well-formed ones stored in odd ways.

``FAULTS[format][name](matrix, rng)`` makes a well-formed matrix malformed, in place. ``ODDITIES``
and ``ARRAY_ODDITIES`` change how a matrix is stored, not what it holds.
"""

import numpy as np
import scipy.sparse as sp


def well_formed(rng, shape, is_indicator):
    """Return a dense array of eighths, so that sums are exact in any order; not all are 0."""
    if is_indicator:
        values = (rng.random(shape) < 0.3).astype(np.float64)
        values[np.arange(shape[0]), np.arange(shape[0]) % shape[1]] = 1
        return values
    is_there = rng.random(shape) < 0.4
    is_there[:1, rng.integers(shape[1])] = True
    return rng.integers(1, 9, shape) / 8 * is_there


def stored(values, fmt, kind):
    """Return `values` in a format, as a matrix or an array of scipy."""
    made = sp.csr_array(values) if kind == "array" else sp.csr_matrix(values)
    if fmt == "dia":  # of few diagonals, else all of the array is stored
        return made.todia()
    return made.asformat(fmt).copy()


def _put(name, value):
    def fault(matrix, rng):
        array = np.array(getattr(matrix, name))
        array = array.astype(np.int64) if abs(value(matrix, rng)) >= 2**31 else array
        array[rng.integers(len(array))] = value(matrix, rng)
        setattr(matrix, name, array)

    return fault


def _replace(name, make):
    def fault(matrix, rng):
        setattr(matrix, name, make(np.array(getattr(matrix, name)), matrix, rng))

    return fault


def _minor(matrix):
    n = matrix.shape[0] if matrix.format == "csc" else matrix.shape[1]
    return n // matrix.blocksize[1] if matrix.format == "bsr" else n


def _swap_pointers(indptr, matrix, rng):
    at = 1 + int(rng.integers(max(1, len(indptr) - 2)))
    indptr[at] = indptr[-1] + 1 + int(rng.integers(50))
    return indptr


_COMPRESSED = {
    "index at the end": _put("indices", lambda m, r: _minor(m)),
    "index far out": _put("indices", lambda m, r: int(10 ** r.integers(3, 9))),
    "index below 0": _put("indices", lambda m, r: -int(2 ** r.integers(0, 31))),
    "index 2**32": _put("indices", lambda m, r: 2**32 + int(r.integers(3))),
    "indices of floats": _replace("indices", lambda a, m, r: a.astype(np.float64)),
    "indices in a list": _replace("indices", lambda a, m, r: a.tolist()),
    "indices too few": _replace("indices", lambda a, m, r: a[: -1 - int(r.integers(2))]),
    "indices in two dimensions": _replace("indices", lambda a, m, r: a[:, None]),
    "data too few": _replace("data", lambda a, m, r: a[: -1 - int(r.integers(2))]),
    "no data": _replace("data", lambda a, m, r: None),
    "data masked": _replace("data", lambda a, m, r: np.ma.masked_array(a, a > np.median(a))),
    "pointers fall": _replace("indptr", _swap_pointers),
    "last pointer too large": _replace(
        "indptr", lambda a, m, r: np.append(a[:-1], a[-1] + int(10 ** r.integers(0, 9)))
    ),
    "first pointer 1": _replace("indptr", lambda a, m, r: np.append([1], a[1:]).astype(a.dtype)),
    "a pointer far below": _put("indptr", lambda m, r: -int(2 ** r.integers(1, 31))),
    "pointers too few": _replace("indptr", lambda a, m, r: a[:-1]),
    "pointers of floats": _replace("indptr", lambda a, m, r: a.astype(np.float64)),
}


def _shrink(matrix, rng):
    matrix._shape = (matrix.shape[0], max(1, matrix.shape[1] - 3))


def _coordinate(axis, make):
    def fault(matrix, rng):
        coords = [np.array(one) for one in matrix.coords]
        coords[axis] = make(coords[axis], matrix, rng)
        matrix.coords = tuple(coords)

    return fault


def _coordinate_put(axis, value):
    def make(array, matrix, rng):
        number = value(matrix, rng)
        array = array.astype(np.int64) if abs(number) >= 2**31 else array
        array[rng.integers(len(array))] = number
        return array

    return _coordinate(axis, make)


_COORDINATES = {
    "row at the end": _coordinate_put(0, lambda m, r: m.shape[0]),
    "column far out": _coordinate_put(1, lambda m, r: int(10 ** r.integers(3, 9))),
    "row -1": _coordinate_put(0, lambda m, r: -1),
    "column 2**32": _coordinate_put(1, lambda m, r: 2**32),
    "rows of floats": _coordinate(0, lambda a, m, r: a.astype(np.float64)),
    "columns too few": _coordinate(1, lambda a, m, r: a[:-1]),
    "data too few": _replace("data", lambda a, m, r: a[:-1]),
}


def _list_put(name, value):
    def fault(matrix, rng):
        filled = [i for i, row in enumerate(matrix.rows) if row]
        row = matrix.rows[filled[rng.integers(len(filled))]]
        row[int(rng.integers(len(row)))] = value(matrix)

    return fault


def _list_drop(matrix, rng):
    filled = [i for i, row in enumerate(matrix.rows) if row]
    matrix.data[filled[rng.integers(len(filled))]].pop()


def _key_put(key):
    def fault(matrix, rng):
        matrix._dict[key(matrix)] = matrix.dtype.type(1)

    return fault


FAULTS = {
    "csr": _COMPRESSED | {"shape too narrow": _shrink},
    "csc": _COMPRESSED,
    "bsr": _COMPRESSED,
    "coo": _COORDINATES | {"shape too narrow": _shrink},
    "dia": {
        "an offset twice": _replace("offsets", lambda a, m, r: np.append(a[:-1], a[0])),
        "offsets too few": _replace("offsets", lambda a, m, r: a[:-1]),
        "offsets of floats": _replace("offsets", lambda a, m, r: a.astype(np.float64)),
        "data in one dimension": _replace("data", lambda a, m, r: a[0]),
    },
    "lil": {
        "column at the end": _list_put("rows", lambda m: m.shape[1]),
        "column -1": _list_put("rows", lambda m: -1),
        "a text for a column": _list_put("rows", lambda m: "one"),
        "a value too few": _list_drop,
        "rows too few": _replace("rows", lambda a, m, r: a[:-1]),
    },
    "dok": {
        "column at the end": _key_put(lambda m: (0, m.shape[1])),
        "row -1": _key_put(lambda m: (-1, 0)),
        "column of 2**32": _key_put(lambda m: (0, 2**32)),
        "a number for a key": _key_put(lambda m: 3),
    },
}


def _unsorted(matrix, rng):
    """Reverse each row, while the flags go on saying that rows rise."""
    matrix.sum_duplicates()
    indices, data = matrix.indices.copy(), matrix.data.copy()
    for first, last in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        indices[first:last] = indices[first:last][::-1].copy()
        data[first:last] = data[first:last][::-1].copy()
    matrix.indices, matrix.data = indices, data
    matrix.has_sorted_indices = matrix.has_canonical_format = True


def _zeros(matrix, rng):
    """Store zeros, where there is room, at the end of each row."""
    dense = matrix.toarray() if matrix.format == "csr" else matrix.toarray().T
    indptr, indices, data = [0], [], []
    for row in dense:
        zero = np.flatnonzero(row == 0)[:2]
        columns = np.sort(np.concatenate([np.flatnonzero(row), zero]))
        indices.append(columns)
        data.append(row[columns])
        indptr.append(indptr[-1] + len(columns))
    matrix.indices = np.concatenate(indices).astype(np.int32)
    matrix.data = np.concatenate(data).astype(matrix.dtype)
    matrix.indptr = np.array(indptr, np.int32)


def _halves(matrix, rng):
    """Store each entry twice, as halves; an indicator would hold halves then."""
    matrix.sum_duplicates()
    matrix.data = np.repeat(matrix.data / 2, 2)
    matrix.indices = np.repeat(matrix.indices, 2)
    matrix.indptr = matrix.indptr * 2
    matrix.has_canonical_format = True


def _longer(matrix, rng):
    matrix.indices = np.append(matrix.indices, [10**6, -1]).astype(matrix.indices.dtype)
    matrix.data = np.append(matrix.data, [7, 7]).astype(matrix.dtype)


def _of_some(make):
    """Return an oddity that replaces some of a matrix's arrays by ``make(array, rng)``."""

    def oddity(matrix, rng):
        if matrix.format in ("lil", "dok"):  # no arrays of numbers
            matrix.dtype = make(np.ones(1, matrix.dtype), rng).dtype
            return
        names = [name for name in ("data", "indices", "indptr", "offsets") if hasattr(matrix, name)]
        for name in names:
            if rng.random() < 0.5:
                setattr(matrix, name, make(getattr(matrix, name), rng))
        if matrix.format == "coo":
            matrix.coords = tuple(
                make(one, rng) if rng.random() < 0.5 else one for one in matrix.coords
            )

    return oddity


def _foreign(array, rng):
    return array.astype(array.dtype.newbyteorder())


def _other_type(array, rng):
    """Return the array in any dtype that holds its values."""
    integers = [f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)]
    dtypes = integers if array.dtype.kind in "iu" else [*integers, "?", "f4", "f8", "g", "c16"]
    with np.errstate(invalid="ignore"):
        fits = [d for d in dtypes if np.array_equal(array.astype(d), array, equal_nan=True)]
    return array.astype(rng.choice(fits))


def _strided(array, rng):
    step = int(rng.choice([2, -1]))
    wide = np.full((abs(step) * len(array), *array.shape[1:]), 7, array.dtype)
    wide[::step] = array
    return wide[::step]


def _unaligned(array, rng):
    room = np.zeros(array.nbytes + 1, np.uint8)[1:]
    odd = room.view(array.dtype).reshape(array.shape)
    odd[...] = array
    return odd


def _frozen(array, rng):
    array = array.copy()
    array.flags.writeable = False
    return array


ODDITIES = {
    "rows in any order, flags say otherwise": _unsorted,
    "zeros are stored": _zeros,
    "entries in halves": _halves,
    "arrays longer than pointers say": _longer,
}
#: Oddities of arrays, for all formats that have some.
ARRAY_ODDITIES = {
    "foreign byte order": _of_some(_foreign),
    "other dtypes": _of_some(_other_type),
    "strided": _of_some(_strided),
    "unaligned": _of_some(_unaligned),
    "read-only": _of_some(_frozen),
}
