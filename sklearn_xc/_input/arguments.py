"""Checks of single numbers and of vectors of numbers."""

from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp


def is_number(value: Any) -> bool:
    """Return whether `value` is a real number, and neither a bool nor a time span."""
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_ | np.timedelta64)


def check_count(value: Any, name: str, least: int = 1, most: int | None = None) -> int:
    """Return `value` as an int; ValueError if it is not an integer or out of range.

    Parameters
    ----------
    value : object
        An integer of Python or numpy; not a bool.
    name : str
        The argument's name for the message.
    least, most : int
        The range; None for no upper end.
    """
    is_whole = isinstance(value, Integral) and is_number(value)
    if not is_whole or value < least or (most is not None and value > most):
        values = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be an integer {values}. Got {value!r}.")
    return int(value)


def refuse_disguised(values: Any, name: str) -> None:
    """Refuse masked arrays, dates and times, which numpy silently converts to numbers.

    Parameters
    ----------
    values : object
        Anything.
    name : str
        The argument's name for the message.

    Raises
    ------
    TypeError
        For masked arrays, whose masked entries would count.
    ValueError
        For dates and times.
    """
    if np.ma.isMaskedArray(values):
        raise TypeError(
            f"{name} is a masked array, an array without a mask was expected: fill it "
            "(numpy.ma.filled), or drop what is masked."
        )
    dtype = getattr(values, "dtype", None)
    kind = getattr(dtype, "kind", None)
    if kind is None and hasattr(values, "dtypes") and hasattr(values, "columns"):
        kinds = {getattr(one, "kind", "O") for one in values.dtypes}
        kind = next(iter(kinds & {"m", "M"}), None)
        dtype = "datetime64" if kind == "M" else "timedelta64"
    if kind in ("m", "M"):
        raise ValueError(
            f"{name} holds dates or times (dtype {dtype}), numbers were expected: turn them into "
            "numbers with a unit of your choice."
        )


def as_native(values: Any) -> np.ndarray:
    """Return an array in native byte order, the only one that scipy and compiled loops read."""
    array = np.asarray(values)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def check_numbers(values: Any, name: str, n: int | None, each: str) -> np.ndarray:
    """Return a vector of finite numbers as float64.

    Parameters
    ----------
    values : array-like of shape (n,)
        Not changed.
    name : str
        The argument's name for the message, with the estimator's before it.
    n : int or None
        Its length; None for any.
    each : str
        The owner of each number, for the message: "row of X".

    Returns
    -------
    ndarray of float64 of shape (n,)

    Raises
    ------
    TypeError
        For a masked array.
    ValueError
        For other shapes and dtypes, NaN and infinity.
    """
    expected = f"{'' if n is None else f'{n} '}finite numbers were expected, one for each {each}"
    refuse_disguised(values, name)
    if sp.issparse(values):
        raise ValueError(f"{name} is a sparse matrix; {expected}.")
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:  # rows of different lengths
        raise ValueError(f"{name} is no array of one dimension; {expected}.") from error
    refuse_disguised(array, name)
    if array.dtype.kind not in "biuf":
        strange = _first_strange(array)
        raise ValueError(f"{name} holds {strange} (dtype {array.dtype}); {expected}.")
    if array.ndim != 1 or n not in (None, len(array)):
        shape = "(n,)" if n is None else f"({n},)"
        raise ValueError(f"{name} has shape {array.shape}, expected {shape}: one for each {each}.")
    array = array.astype(np.float64, copy=False)
    finite = np.isfinite(array)
    if not finite.all():
        at = int(np.argmin(finite))
        what = "NaN" if np.isnan(array[at]) else "infinity"
        raise ValueError(f"{name} contains {what} at entry {at}; {expected}.")
    return array


def _first_strange(array: np.ndarray) -> str:
    flat = array.ravel()
    return repr(flat[:1].tolist()[0]) if flat.size else "nothing"
