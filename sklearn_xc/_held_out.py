"""Which rows are held out of training, so that something can be learned from answers to them."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from sklearn_xc._data import Targets
from sklearn_xc._folds import ListedFolds, check_folds, is_list_of_folds
from sklearn_xc._out_of_fold import as_rows, said_by

#: Without `cv`: this share of the rows is held out, at least so many; fewer rows than _SMALL are
#: all predicted out of fold. On 12,000 questions five folds gave 0.3 points more of precision@1
#: than a held-out tenth, for three times the time.
_SHARE, _FEWEST, _SMALL, _FOLDS = 0.1, 1_000, 5_000, 5
#: At most so many rows are learned from, drawn from those that there are.
MOST_ROWS = 20_000


def split(
    cv: Any,
    X: Any,
    y: Any,
    targets: Targets,
    weight: np.ndarray,
    seed: int,
    who: str,
    params: Mapping[str, Any],
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the rows that are trained on, and those that are asked about, for each fold.

    Parameters
    ----------
    cv : float, int, splitter, iterable or None
        The parameter of the estimator.
    X, y : object
        What it is fitted to.
    targets : Targets
        y, checked.
    weight : ndarray of float of shape (n,)
        Rows of weight 0 are not there.
    seed : int
    who : str
        Named in messages.
    params : dict
        Further arguments of ``cv.split``.

    Returns
    -------
    list of (ndarray of int64, ndarray of int64)
        A pair for each fold; together at most ``MOST_ROWS`` of the latter, rising. A fold that was
        drawn here is left out if all its training rows are of one class, or have no label.

    Raises
    ------
    ValueError
        For folds that cannot be made.
    """
    rows = np.flatnonzero(weight > 0)
    n = len(rows)
    if n < 2:
        raise ValueError(f"{who} holds rows out: X must have at least 2 of them. Got {n}.")
    if cv is None:
        cv = min(_FOLDS, n) if n < _SMALL else max(_SHARE, _FEWEST / n)
    if isinstance(cv, Integral):
        n_folds = int(cv)
        if not 2 <= n_folds <= n:
            raise ValueError(f"{who}: cv must be from 2 to {n}, the number of rows. Got {cv}.")
        splitter = KFold(n_folds, shuffle=True, random_state=seed)
        folds = [(rows[train], rows[test]) for train, test in splitter.split(rows)]
    elif isinstance(cv, Real):
        order = rows[np.random.default_rng((seed, 1)).permutation(n)]
        n_held = min(max(1, round(float(cv) * n)), n - 1)
        folds = [(np.sort(order[n_held:]), np.sort(order[:n_held]))]
    else:
        splitter = ListedFolds(cv) if is_list_of_folds(cv) else cv
        if isinstance(cv, bytes) or not hasattr(splitter, "split"):
            raise ValueError(
                f"{who}: cv must be a share, a number of folds, a splitter or a list of folds. Got "
                f"{cv!r}."
            )
        with said_by("cv", who):  # of a splitter that y does not suit
            given = list(splitter.split(as_rows(X), y, **params))
        given = check_folds(given, len(weight), who, cv)
        folds = [(a[weight[a] > 0], b[weight[b] > 0]) for a, b in given]
        if any(not len(train) or not len(test) for train, test in folds):
            raise ValueError(f"{who}: cv: a fold has only rows of weight zero. Got {cv!r}.")
    if cv is None or isinstance(cv, Real):
        folds = [fold for fold in folds if _can_be_trained_on(fold[0], targets, len(weight))]
        if not folds:
            raise ValueError(
                f"{who}: no training rows of two classes, or with a label, are left if rows are "
                f"held out. Got {n} rows: give more, or folds as cv."
            )
    chosen = np.zeros(len(weight), bool)
    chosen[draw_rows(np.concatenate([test for _, test in folds]), seed)] = True
    return [(train, test[chosen[test]]) for train, test in folds if chosen[test].any()]


def _can_be_trained_on(rows: np.ndarray, targets: Targets, n: int) -> bool:
    """Return whether some of n rows hold two classes, or a label of an indicator."""
    n_found = np.count_nonzero(targets.counts_among(rows, n))
    return bool(n_found >= (2 if targets.kind == "classes" else 1))


def draw_rows(rows: np.ndarray, seed: int) -> np.ndarray:
    """Return the rows that are learned from: ``MOST_ROWS`` of them, if there are more."""
    if len(rows) <= MOST_ROWS:
        return rows
    return np.sort(np.random.default_rng((seed, 2)).permutation(rows)[:MOST_ROWS])
