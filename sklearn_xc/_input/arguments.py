"""Arguments: numbers and vectors of numbers, columns of tables, seeds and lists of folds."""

from collections.abc import Iterable, Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from sklearn_xc._parallel.memory import require_bytes

#: Bytes of a label and a score.
_ENTRY_BYTES = 16


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
    column = values
    names = frame_columns(values)
    if names is not None and len(names) == 1:
        column = values[names[0]]
    elif isinstance(values, np.ndarray) and values.ndim == 2 and values.shape[1] == 1:
        column = values[:, 0]
    if column is not values and to_array(column).dtype.kind in "biuf":
        return values
    is_arrow = hasattr(column, "to_pylist") and frame_columns(column) is None
    return column.to_pylist() if is_arrow else column


def is_sequence(texts: Any) -> bool:
    """Return whether an object may be a sequence of texts, by its type and shape."""
    if sp.issparse(texts) or isinstance(texts, str | bytes | dict | set):
        return False
    is_flat = getattr(texts, "ndim", 1) == 1 and frame_columns(texts) is None
    return is_flat and hasattr(texts, "__len__") and hasattr(texts, "__iter__")


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    kinds = (float, np.floating, np.datetime64, np.timedelta64)
    return isinstance(value, kinds) and bool(value != value)


def draw_seed(random_state: Any) -> int:
    """Return a seed from `random_state`: int, RandomState or None, as in scikit-learn.

    All random numbers of a fit come from ``numpy.random.default_rng((seed, key))``, independent of
    the number of threads and of other draws.
    """
    return int(check_random_state(random_state).randint(2**31 - 1))


class ListedFolds:
    """A splitter that returns a list of folds."""

    def __init__(self, folds: Iterable[Any]) -> None:
        self.folds = list(folds)

    def split(self, X: Any = None, y: Any = None, groups: Any = None) -> Iterator[Any]:
        """Return the folds."""
        return iter(self.folds)


def is_list_of_folds(cv: Any) -> bool:
    """Return whether a `cv` is an iterable of folds, not a number or a splitter."""
    is_single = isinstance(cv, str | bytes) or (isinstance(cv, np.ndarray) and cv.ndim == 0)
    return isinstance(cv, Iterable) and not is_single and not hasattr(cv, "split")


def check_folds(
    folds: Iterable[Any], n: int, caller: str, cv: Any = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the numbers of the training and test rows of each fold.

    Parameters
    ----------
    folds : iterable of (train, test)
        Row numbers from 0, or masks over all rows. A row may come several times.
    n : int
        Number of rows.
    caller : str
        The function or estimator, named first in messages.
    cv : object, default=None
        The argument that the folds come from.

    Returns
    -------
    list of (ndarray of int64, ndarray of int64)

    Raises
    ------
    ValueError
        Without folds, and for a fold that is no pair, or has other row numbers or masks.
    """
    found = []
    for number, fold in enumerate(folds):
        try:
            train, test = (np.asarray(rows) for rows in fold)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{caller}: cv must give pairs (train, test) of row numbers, fold {number} is "
                f"{fold!r}."
            ) from error
        name = f"{caller}: cv: the {{}} rows of fold {number}"
        found.append(
            (
                _row_numbers(train, n, name.format("training")),
                _row_numbers(test, n, name.format("test")),
            )
        )
    if not found:
        hint = (
            " It was used up by an earlier call: pass a list." if isinstance(cv, Iterator) else ""
        )
        raise ValueError(f"{caller}: cv gives no folds. Got {cv!r}.{hint}")
    return found


def _row_numbers(rows: np.ndarray, n: int, name: str) -> np.ndarray:
    if rows.dtype == bool and rows.shape == (n,):
        rows = np.flatnonzero(rows)
    is_vector = rows.ndim == 1 and len(rows) and rows.dtype.kind in "iu"
    if not is_vector or rows.min() < 0 or rows.max() >= n:
        raise ValueError(
            f"{name} must be numbers from 0 to {n - 1}, at least one, or a mask of {n} entries. "
            f"Got {rows!r}."
        )
    return rows.astype(np.int64, copy=False)


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


def check_topk_size(k: Any, X: Any, model: Any = None) -> int:
    """Return `k` as an int if it is a count and an answer with k columns fits into memory.

    Parameters
    ----------
    k : object
        A positive integer.
    X : object
        The instances, perhaps not checked yet.
    model : XCClassifier, default=None
        Named in messages; the answer has to fit into its ``max_memory``.

    Raises
    ------
    ValueError
        If `k` is no positive integer.
    MemoryBudgetError
        If the answer does not fit.
    """
    caller = "topk" if model is None else type(model).__name__
    allowed = None if model is None else model._allowed_bytes()
    k = check_count(k, f"{caller}: k")
    shape = getattr(X, "shape", None)
    n = shape[0] if shape else len(X) if hasattr(X, "__len__") else 1
    what = f"the answer, {n} instances x k={k}"
    advice = "Lower k, or predict fewer instances."
    require_bytes(n * k * _ENTRY_BYTES, allowed, what, advice, caller)
    return k


def refuse_masks_and_dates(values: Any, name: str) -> None:
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
    refuse_masks_and_dates(values, name)
    if sp.issparse(values):
        raise ValueError(f"{name} is a sparse matrix; {expected}.")
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:  # rows of different lengths
        raise ValueError(f"{name} is no array of one dimension; {expected}.") from error
    refuse_masks_and_dates(array, name)
    if array.dtype.kind not in "biuf":
        strange = repr(array.ravel()[:1].tolist()[0]) if array.size else "nothing"
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
