"""Checks of single arguments of readers and generators."""

from typing import Any

import numpy as np

#: The largest number of rows and columns that files and generators know.
MAX_SIZE = 2**31 - 1


def check_float_dtype(dtype: Any, name: str) -> np.dtype:
    """Return float32 or float64 as a dtype, or raise ValueError for what is neither."""
    try:
        found = None if dtype is None else np.dtype(dtype)
    except TypeError:
        found = None
    if found not in (np.float32, np.float64):
        raise ValueError(f"{name} must be float32 or float64. Got {found or repr(dtype)}.")
    return found
