"""Classes and column names of labels that are added to a fitted model."""

from typing import Any

import numpy as np

from sklearn_xc._input.checks import distinct_classes
from sklearn_xc._labels.names import check_label_names


def with_new_classes(name: str, known: np.ndarray, classes: Any, n_new: int) -> np.ndarray:
    """Return the classes of a 1-D fit, and new ones after them.

    Parameters
    ----------
    name : str
        The estimator's, for messages.
    known : ndarray of shape (n_known,)
    classes : array-like of shape (n_new,)
        As given.
    n_new : int

    Raises
    ------
    ValueError
        For another number of classes, classes that are known already, come twice, or are of another
        kind than those known.
    """
    if classes is None:
        raise ValueError(f"{name}: classes must name the {n_new} new labels. Got None.")
    n_distinct, new = len(distinct_classes(classes, name)), np.asarray(classes)
    if len(new) != n_new:
        raise ValueError(
            f"{name}: classes must name the {n_new} new labels, one each. Got {len(new)}."
        )
    both = _joined(known, new)
    if both is None:
        raise ValueError(
            f"{name}: classes must be of the kind of those known, {known.dtype}. Got {new.dtype}."
        )
    if n_distinct < n_new or len(np.unique(both)) < len(both):
        raise ValueError(
            f"{name}: classes must be new and distinct. Got one that is known already, or one "
            "twice."
        )
    return both


def are_names(classes: np.ndarray) -> bool:
    """Return whether the columns of an indicator have names, or numbers of their own."""
    return not np.array_equal(classes, np.arange(len(classes)))


def with_new_names(name: str, known: np.ndarray, classes: Any, n_new: int) -> np.ndarray:
    """Return the names of an indicator's columns, and those of new columns after them.

    Parameters
    ----------
    name, known, classes, n_new
        As of ``with_new_classes``.

    Raises
    ------
    ValueError
        For another number of names, names that are known already, and names where columns have
        none.
    """
    if are_names(known):
        if classes is None:
            raise ValueError(f"{name}: classes must name the {n_new} new labels. Got None.")
        new = check_label_names(classes, n_new, f"{name}: classes")
        return check_label_names([*known, *new], None, f"{name}: classes")
    if classes is not None:
        raise ValueError(
            f"{name}: classes must be None after an indicator y, whose new columns follow from "
            f"{len(known)} on. Got {type(classes).__name__}."
        )
    return np.arange(len(known) + n_new)


def _joined(known: np.ndarray, new: np.ndarray) -> np.ndarray | None:
    """Return known classes and new ones in one array, or None if they are not of one kind."""
    both = [*known.tolist(), *new.tolist()]
    if len({isinstance(one, str) for one in both}) > 1:
        return None
    try:
        joined = np.array(both, None if known.dtype.kind in "US" else known.dtype)
    except (TypeError, ValueError):
        return None
    return joined if joined.tolist() == both else None
