"""Arrays by name in one file of the safetensors format, as networks are kept elsewhere, too.

Eight bytes say how long the header is. The header is JSON, padded with spaces: of each array it has
the dtype, the shape, and where its values begin and end behind the header. The values follow
without gaps, little-endian and in C order, those of wider dtypes first, so that all are aligned.
The format: https://github.com/huggingface/safetensors. What the library writes has the same bytes.
"""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sklearn_xc.exceptions import SavedModelError
from sklearn_xc.storage.array_files import TENSORS, ArrayFile, bytes_of, write_file

#: What the format calls the dtypes of numpy, in the order in which arrays are in a file.
DTYPES = {
    np.dtype(dtype): name
    for dtype, name in (
        ("<u8", "U64"), ("<i8", "I64"), ("<f8", "F64"), ("<f4", "F32"), ("<u4", "U32"),
        ("<i4", "I32"), ("<f2", "F16"), ("<u2", "U16"), ("<i2", "I16"), ("i1", "I8"), ("u1", "U8"),
        ("?", "BOOL"),
    )
}  # fmt: skip
_NAMED = {name: dtype for dtype, name in DTYPES.items()}
_ORDER = list(_NAMED)
#: The one name in a header that is no array's.
_METADATA = "__metadata__"
#: Headers are no longer, in bytes; also of the library.
_LONGEST = 100_000_000
#: Arrays of numpy have no more dimensions.
_MOST_DIMENSIONS = 64


def write_tensors(arrays: dict[str, np.ndarray], folder: Path, name: str) -> tuple[str, ArrayFile]:
    """Write arrays by name, not refused by `check_tensors`, to one new file; see `write_array`."""
    final, size, sha256 = write_file(parts_of(arrays), folder, name, TENSORS)
    return final, ArrayFile("|u1", (size,), False, size, sha256)


def check_tensors(arrays: Any, where: str) -> None:
    """Raise an error for what a file cannot hold.

    Raises
    ------
    TypeError
        Unless these are arrays of dtypes that the format has, by names that are texts.
    """
    if type(arrays) is not dict:
        raise TypeError(f"{where}: must be a dict of arrays. Got {type(arrays).__name__}.")
    for name, array in arrays.items():
        if (
            type(name) is not str
            or name == _METADATA
            or name.encode("utf-8", "ignore").decode() != name
        ):
            raise TypeError(f"{where}: names of arrays must be texts. Got {name!r}.")
        kind = type(array)
        if kind not in (np.ndarray, np.memmap):
            raise TypeError(f"{where}.{name}: must be an array. Got {kind.__name__}.")
        if array.dtype.newbyteorder("<") not in DTYPES:
            known = ", ".join(dtype.name for dtype in DTYPES)
            raise TypeError(f"{where}.{name}: must be of {known}. Got {array.dtype}.")


def parts_of(arrays: dict[str, np.ndarray]) -> Iterator[memoryview]:
    """Yield the bytes of a file, without a copy of arrays that are contiguous."""
    held = {name: np.asarray(a, a.dtype.newbyteorder("<")) for name, a in arrays.items()}
    names = sorted(held, key=lambda name: (_ORDER.index(DTYPES[held[name].dtype]), name))
    header, end = {}, 0
    for name in names:
        array = held[name]
        begin, end = end, end + array.nbytes
        header[name] = {
            "dtype": DTYPES[array.dtype], "shape": list(array.shape), "data_offsets": [begin, end],
        }  # fmt: skip
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    yield memoryview(len(text).to_bytes(8, "little") + text)
    for name in names:
        yield from bytes_of(held[name])


def tensors_in(data: np.ndarray, name: str) -> dict[str, np.ndarray]:
    """Return the arrays of a file, by name: views of its bytes.

    Parameters
    ----------
    data : ndarray of uint8
        All of the file.
    name : str
        Of the file, for messages.

    Raises
    ------
    SavedModelError
        If it is not of the format, has gaps, or values that are not aligned.
    """
    try:
        return _views(data)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise SavedModelError(
            f"{name}: is no safetensors file as it was written: {error}."
        ) from None


def _views(data: np.ndarray) -> dict[str, np.ndarray]:
    if data.dtype != np.uint8 or data.ndim != 1 or len(data) < 8:
        raise ValueError(f"it has {data.dtype} of shape {data.shape}")
    n_header = int.from_bytes(data[:8].tobytes(), "little")
    if n_header > min(len(data) - 8, _LONGEST) or n_header % 8:
        raise ValueError(f"a header of {n_header:,} bytes, in a file of {len(data):,}")
    text, values = data[8 : 8 + n_header].tobytes().decode(), data[8 + n_header :]
    header = json.loads(text, object_pairs_hook=_each_once)
    header.pop(_METADATA, None)
    arrays, end = dict[str, np.ndarray](), 0
    for name, said in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        dtype, shape, (begin, stop) = _NAMED[said["dtype"]], said["shape"], said["data_offsets"]
        fits = (
            len(said) == 3
            and type(shape) is list
            and len(shape) <= _MOST_DIMENSIONS
            and all(type(n) is int and 0 <= n < 2**63 for n in (*shape, begin, stop))
            and begin == end
            and begin % dtype.itemsize == 0
            and stop - begin == math.prod(shape) * dtype.itemsize
        )
        if not fits:
            raise ValueError(f"what it says of {name!r:.100} does not fit")
        arrays[name] = values[begin:stop].view(dtype).reshape(shape)
        end = stop
    if end != len(values):
        raise ValueError(f"its arrays have {end:,} bytes of {len(values):,}")
    return arrays


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, unless a name stands in it twice."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name stands twice")
    return made
