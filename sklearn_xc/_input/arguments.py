"""Checks of single numbers and of vectors of numbers, in the words of this package."""

from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp


def is_number(value: Any) -> bool:
    """Return whether `value` is a single real number.

    Of numpy's too, but neither a bool nor a time span, which numpy counts among the integers.
    """
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_ | np.timedelta64)


def check_count(value: Any, name: str, least: int = 1, most: int | None = None) -> int:
    """Return `value` as an int, or raise ValueError if it is none, or out of range.

    Parameters
    ----------
    value : object
        numpy's integers will do; a bool will not.
    name : str
        The argument's name for the message.
    least, most : int
        The range; None has no end.
    """
    is_whole = isinstance(value, Integral) and is_number(value)
    if not is_whole or value < least or (most is not None and value > most):
        values = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be an integer {values}. Got {value!r}.")
    return int(value)


def refuse_disguised(values: Any, name: str) -> None:
    """Raise for arrays that numpy would turn into numbers that they are not.

    Parameters
    ----------
    values : object
        Anything.
    name : str
        The argument's name for the message.

    Raises
    ------
    TypeError
        For masked arrays, whose masked entries would count as what lies below the mask.
    ValueError
        For dates and times, which would count as the nanoseconds since some day.
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
        Its length; None where any will do.
    each : str
        What each number belongs to, for the message: "row of X".

    Returns
    -------
    ndarray of float64 of shape (n,)

    Raises
    ------
    TypeError
        For a masked array.
    ValueError
        For other shapes, what is no number, NaN and infinity.
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
