"""The state of a fitted model for some of its labels, in any order, as its classes declare it.

An array with a length that is called "labels" is cut along it, an object that declares attributes
likewise. An object that cannot be cut so has a method ``of_labels(places, n_labels)``.
"""

import copy
import dataclasses
from typing import Any

import numpy as np

from sklearn_xc._input.data import CsrRows
from sklearn_xc._state.fitted import sharing
from sklearn_xc._state.schema import SHARED_LENGTHS, Array, Estimator, Record, declarations


def attributes_of_labels(
    held: Any, places: np.ndarray, n_labels: int, called: str = "labels"
) -> dict[str, Any]:
    """Return those attributes of a model, or of an object in it, that change with its labels.

    Parameters
    ----------
    held : object
        Whose class declares attributes.
    places : ndarray of int64
        The labels to keep.
    n_labels : int
        How many there are.
    called : str, default="labels"
        What `held` calls its number of labels.
    """
    found = {}
    for name, says in declarations(type(held)).items():
        value = getattr(held, name, None)
        if value is None:
            continue
        if isinstance(says, Array) and says.below == called:
            found[name] = _renumbered(value, places, n_labels)
        elif isinstance(says, Array) and called in says.shape:
            for axis in (i for i, length in enumerate(says.shape) if length == called):
                value = np.ascontiguousarray(np.take(value, places, axis))
            found[name] = value
        elif isinstance(says, Record):
            for theirs, ours in (dict.fromkeys(SHARED_LENGTHS) | says.names).items():
                if (theirs if ours is None else ours) == called:
                    found[name] = _object_of_labels(value, places, n_labels, theirs)
        elif isinstance(says, Estimator) and says.names.get("labels") == called:
            found[name] = estimator_of_labels(value, places)
    return found


def estimator_of_labels(estimator: Any, places: np.ndarray) -> Any:
    """Return a fitted classifier, or a Pipeline that ends in one, with some of its labels.

    Raises
    ------
    TypeError
        For one that is not of this package.
    """
    return _changed(estimator, "_take_labels", places)


def estimator_with_classes(estimator: Any, classes: np.ndarray) -> Any:
    """Return a fitted classifier, or a Pipeline that ends in one, with other names of labels."""
    return _changed(estimator, "_name_labels", classes)


def apart(estimator: Any) -> Any:
    """Return a fitted estimator over the same arrays, which does not change with the one given.

    Pipelines likewise. What is not of this package is returned itself.
    """
    if hasattr(estimator, "_name_labels"):
        return sharing(estimator, dict(vars(estimator)))
    if hasattr(estimator, "steps"):
        other = copy.copy(estimator)
        other.steps = [(name, apart(step)) for name, step in estimator.steps]
        return other
    return estimator


def _changed(estimator: Any, method: str, argument: np.ndarray) -> Any:
    if hasattr(estimator, method):
        changed = sharing(estimator, dict(vars(estimator)))
        getattr(changed, method)(argument)
        return changed
    if hasattr(estimator, "steps"):
        name, last = estimator.steps[-1]
        changed = copy.copy(estimator)
        changed.steps = [*estimator.steps[:-1], (name, _changed(last, method, argument))]
        return changed
    raise TypeError(
        f"labels cannot be changed of {type(estimator).__name__}: only of classifiers of "
        "sklearn_xc, and of Pipelines that end in one."
    )


def _object_of_labels(held: Any, places: np.ndarray, n_labels: int, called: str) -> Any:
    if type(held) in (list, tuple):
        return type(held)(_object_of_labels(one, places, n_labels, called) for one in held)
    if hasattr(held, "of_labels"):
        return held.of_labels(places, n_labels)
    if isinstance(held, CsrRows):
        return held.take(places)
    found = attributes_of_labels(held, places, n_labels, called)
    if not found:
        return held
    if hasattr(held, "_replace"):
        return held._replace(**found)
    if dataclasses.is_dataclass(held):
        return dataclasses.replace(held, **found)  # type: ignore[type-var]
    changed = copy.copy(held)
    vars(changed).update(found)
    return changed


def _renumbered(labels: np.ndarray, places: np.ndarray, n_labels: int) -> np.ndarray:
    """Return the new numbers of some labels, rising; those that are gone are left out."""
    number = np.full(n_labels, -1)
    number[places] = np.arange(len(places))
    found = number[labels]
    return np.sort(found[found >= 0]).astype(labels.dtype)
