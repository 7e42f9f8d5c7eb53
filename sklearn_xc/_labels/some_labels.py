"""Fitted state for some of the labels, in any order, by the schema of each class.

Arrays with a length that the schema calls "labels" are indexed along it, and records likewise.
Other objects define ``of_labels(positions, n_labels)``.
"""

import copy
import dataclasses
from typing import Any

import numpy as np

from sklearn_xc._input.data import CsrRows
from sklearn_xc._state.fitted import sharing
from sklearn_xc._state.schema import SHARED_LENGTHS, Array, Estimator, Record, declarations


def attributes_of_labels(
    owner: Any, positions: np.ndarray, n_labels: int, called: str = "labels"
) -> dict[str, Any]:
    """Return the attributes of a model, or of a record in it, that change with its labels.

    Parameters
    ----------
    owner : object
        An instance of a class with a schema.
    positions : ndarray of int64
        The labels to keep.
    n_labels : int
        Current number of labels.
    called : str, default="labels"
        Name of the number of labels in the schema of `owner`.
    """
    found = {}
    for name, declared in declarations(type(owner)).items():
        value = getattr(owner, name, None)
        if value is None:
            continue
        if isinstance(declared, Array) and declared.below == called:
            found[name] = _renumbered(value, positions, n_labels)
        elif isinstance(declared, Array) and called in declared.shape:
            for axis in (i for i, length in enumerate(declared.shape) if length == called):
                value = np.ascontiguousarray(np.take(value, positions, axis))
            found[name] = value
        elif isinstance(declared, Record):
            for theirs, ours in (dict.fromkeys(SHARED_LENGTHS) | declared.names).items():
                if (theirs if ours is None else ours) == called:
                    found[name] = _object_of_labels(value, positions, n_labels, theirs)
        elif isinstance(declared, Estimator) and declared.names.get("labels") == called:
            found[name] = estimator_of_labels(value, positions)
    return found


def estimator_of_labels(estimator: Any, positions: np.ndarray) -> Any:
    """Return a fitted classifier, or a Pipeline that ends in one, with some of its labels.

    Raises
    ------
    TypeError
        For an estimator of another package.
    """
    return _changed(estimator, "_take_labels", positions)


def estimator_with_classes(estimator: Any, classes: np.ndarray) -> Any:
    """Return a fitted classifier, or a Pipeline that ends in one, with other names of labels."""
    return _changed(estimator, "_name_labels", classes)


def apart(estimator: Any) -> Any:
    """Return an estimator, or Pipeline, over the same arrays, which later changes do not affect.

    An estimator of another package is returned itself.
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


def _object_of_labels(value: Any, positions: np.ndarray, n_labels: int, called: str) -> Any:
    if type(value) in (list, tuple):
        return type(value)(_object_of_labels(one, positions, n_labels, called) for one in value)
    if hasattr(value, "of_labels"):
        return value.of_labels(positions, n_labels)
    if isinstance(value, CsrRows):
        return value.take(positions)
    found = attributes_of_labels(value, positions, n_labels, called)
    if not found:
        return value
    if hasattr(value, "_replace"):
        return value._replace(**found)
    if dataclasses.is_dataclass(value):
        return dataclasses.replace(value, **found)  # type: ignore[type-var]
    changed = copy.copy(value)
    vars(changed).update(found)
    return changed


def _renumbered(labels: np.ndarray, positions: np.ndarray, n_labels: int) -> np.ndarray:
    """Return the new numbers of labels, rising, without those that were dropped."""
    number = np.full(n_labels, -1)
    number[positions] = np.arange(len(positions))
    found = number[labels]
    return np.sort(found[found >= 0]).astype(labels.dtype)
