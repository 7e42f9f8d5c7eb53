"""Names, targets and texts from lists, NumPy, pandas, polars and pyarrow."""

from collections.abc import Iterator
from typing import Any

import numpy as np


def frame_columns(values: Any) -> list | None:
    """Return the column names of a data frame or Arrow table, None for anything else."""
    if not (hasattr(values, "columns") and hasattr(values, "shape")) or len(values.shape) != 2:
        return None
    # `columns` of an Arrow table are its arrays.
    return list(values.column_names if hasattr(type(values), "column_names") else values.columns)


def to_array(values: Any) -> np.ndarray:
    """Return ``np.asarray(values)`` with the dtype of the entries.

    Nullable and Arrow-backed columns of numbers become numbers with NaN instead of objects, and
    mixed lists become objects instead of texts such as "nan".

    Raises
    ------
    ValueError
        For rows of different lengths.
    """
    array = np.asarray(values)
    if array.dtype.kind in "US" and array.ndim == 1 and not hasattr(values, "dtype"):
        kind = str if array.dtype.kind == "U" else bytes
        return array if all(isinstance(one, kind) for one in values) else np.array(values, object)
    if array.dtype != object or not hasattr(values, "to_numpy") or hasattr(values, "to_pylist"):
        return array
    dtypes = values.dtypes if array.ndim == 2 else [values.dtype]
    kinds = {getattr(dtype, "kind", "O") for dtype in dtypes}
    if not kinds or not kinds <= set("biuf"):
        return array
    numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    if "f" in kinds or np.isnan(numbers).any():
        return numbers
    return numbers.astype(bool if kinds == {"b"} else np.int64)


def as_sequence(values: Any) -> Any:
    """Return one-column frames and (n, 1) arrays as 1-D, unless they hold numbers.

    Arrow arrays and iterators become lists; everything else is returned unchanged.
    """
    if isinstance(values, Iterator):
        return list(values)
    column, names = values, frame_columns(values)
    if names is not None and len(names) == 1:
        column = values[names[0]]
    elif isinstance(values, np.ndarray) and values.ndim == 2 and values.shape[1] == 1:
        column = values[:, 0]
    if column is not values and to_array(column).dtype.kind in "biuf":
        return values
    is_arrow = hasattr(column, "to_pylist") and frame_columns(column) is None
    return column.to_pylist() if is_arrow else column


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    kinds = (float, np.floating, np.datetime64, np.timedelta64)
    return isinstance(value, kinds) and bool(value != value)
