"""Folds of a cross-validation, from splitters and lists, checked."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np


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
        Without folds, and for a fold that is no pair, or has other row numbers or masks.
    """
    found = []
    for number, fold in enumerate(folds):
        try:
            train, test = (np.asarray(rows) for rows in fold)
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
        hint = (
            " It was used up by an earlier call: pass a list." if isinstance(cv, Iterator) else ""
        )
        raise ValueError(f"{who}: cv gives no folds. Got {cv!r}.{hint}")
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
