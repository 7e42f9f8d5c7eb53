"""Folds of a cross-validation, from splitters and lists, checked."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from sklearn_xc._input.arguments import refuse_disguised


class ListedFolds:
    """A splitter that returns a list of folds."""

    def __init__(self, folds: Iterable[Any]) -> None:
        self.folds = list(folds)

    def split(self, X: Any = None, y: Any = None, groups: Any = None) -> Iterator[Any]:
        """Return the folds."""
        return iter(self.folds)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return len(self.folds)


def is_list_of_folds(cv: Any) -> bool:
    """Return whether a `cv` is an iterable of folds, not a number or a splitter."""
    is_single = isinstance(cv, str | bytes) or (isinstance(cv, np.ndarray) and cv.ndim == 0)
    return isinstance(cv, Iterable) and not is_single and not hasattr(cv, "split")


def check_folds(
    folds: Iterable[Any], n: int, who: str, cv: Any = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the numbers of the training and test rows of each fold.

    Parameters
    ----------
    folds : iterable of (train, test)
        Row numbers from 0, or masks over all rows. A row may come several times.
    n : int
        Number of rows.
    who : str
        The function or estimator, named first in messages.
    cv : object, default=None
        The argument that the folds come from.

    Returns
    -------
    list of (ndarray of int64, ndarray of int64)

    Raises
    ------
    ValueError
        Without folds, and for a fold that is no pair, has no training or test rows, row numbers
        that are out of range or negative, or a mask of another length.
    TypeError
        For masked arrays.
    """
    found = []
    for number, fold in enumerate(folds):
        try:
            train, test = fold
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{who}: cv must give pairs (train, test) of row numbers, fold {number} is "
                f"{fold!r}."
            ) from error
        name = f"{who}: cv: the {{}} rows of fold {number}"
        found.append(
            (
                _row_numbers(train, n, name.format("training")),
                _row_numbers(test, n, name.format("test")),
            )
        )
    if not found:
        used_up = isinstance(cv, Iterator)
        raise ValueError(
            f"{who}: cv gives no folds. "
            + (
                f"This {type(cv).__name__} was used up, by an earlier call if not before: pass a "
                "list of its folds."
                if used_up
                else f"Got {cv!r}."
            )
        )
    return found


def _row_numbers(rows: Any, n: int, name: str) -> np.ndarray:
    refuse_disguised(rows, name)
    try:
        rows = np.asarray(rows)
    except ValueError as error:
        raise ValueError(f"{name} must be row numbers or a mask. Got lists of lists.") from error
    if rows.ndim != 1:
        raise ValueError(f"{name} must have one dimension. Got shape {rows.shape}.")
    if rows.dtype == bool:
        if len(rows) != n:
            raise ValueError(f"{name} are a mask of {len(rows)} entries, X has {n} rows.")
        rows = np.flatnonzero(rows)
    if not len(rows):
        raise ValueError(f"{name} are none.")
    if rows.dtype.kind not in "iu":
        raise ValueError(f"{name} must be row numbers or a mask. Got dtype {rows.dtype}.")
    wrong = (rows < 0) | (rows >= n)
    if wrong.any():
        raise ValueError(f"{name} must be from 0 to {n - 1}. Got {rows[wrong.argmax()]}.")
    return rows.astype(np.int64, copy=False)
