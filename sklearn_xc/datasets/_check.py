"""Checks of single arguments of readers and generators."""

from numbers import Integral
from typing import Any

import numpy as np

from sklearn_xc._arguments import is_number

#: The largest number of rows and columns that files and generators know.
MAX_SIZE = 2**31 - 1


def check_whole(value: Any, name: str, least: int) -> int:
    """Return `value` as an int, or raise ValueError unless it is one from `least` to 2**31 - 1."""
    is_whole = is_number(value) and isinstance(value, Integral)
    if not is_whole or not least <= int(value) <= MAX_SIZE:
        raise ValueError(f"{name} must be a whole number from {least} to 2**31 - 1, got {value!r}.")
    return int(value)


def check_float_dtype(dtype: Any, name: str) -> np.dtype:
    """Return float32 or float64 as a dtype, or raise ValueError for what is neither."""
    try:
        found = None if dtype is None else np.dtype(dtype)
    except TypeError:
        found = None
    if found not in (np.float32, np.float64):
        raise ValueError(f"{name} must be float32 or float64, got {found or repr(dtype)}.")
    return found
