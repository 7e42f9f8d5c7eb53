"""Labels of a fitted model are dropped or renamed, alone or in all its parts."""

import copy
import dataclasses
from collections.abc import Mapping
from numbers import Number
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._input.arguments import refuse_masks_and_dates
from sklearn_xc._input.checks import distinct_classes
from sklearn_xc._input.data import CsrRows
from sklearn_xc._labels.names import check_label_names, position_of
from sklearn_xc._state.fitted import fits_in_one_step, shallow_copy
from sklearn_xc._state.schema import SHARED_LENGTHS, Array, Estimator, Record, schema_of


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
    for name, declared in schema_of(type(owner)).items():
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


def independent_copy(estimator: Any) -> Any:
    """Return an estimator, or Pipeline, over the same arrays, which later changes do not affect.

    An estimator of another package is returned itself.
    """
    if hasattr(estimator, "_name_labels"):
        return shallow_copy(estimator, dict(vars(estimator)))
    if hasattr(estimator, "steps"):
        other = copy.copy(estimator)
        other.steps = [(name, independent_copy(step)) for name, step in estimator.steps]
        return other
    return estimator


def _changed(estimator: Any, method: str, argument: np.ndarray) -> Any:
    if hasattr(estimator, method):
        changed = shallow_copy(estimator, dict(vars(estimator)))
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
    if hasattr(value, "taking_labels"):
        return value.taking_labels(positions)
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
    """Return the new numbers of labels, ascending, without those that were dropped."""
    number = np.full(n_labels, -1)
    number[positions] = np.arange(len(positions))
    found = number[labels]
    return np.sort(found[found >= 0]).astype(labels.dtype)


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
    n_distinct = len(distinct_classes(classes, name))
    new = np.asarray(classes)
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


class ChangeableLabels:
    """Changes of the labels of a model without training."""

    classes_: np.ndarray
    _targets_kind: str

    def _take_labels(self, places: np.ndarray) -> None:
        """Keep the labels at these positions, in this order, in all fitted attributes."""
        self.__dict__.update(attributes_of_labels(self, places, len(self.classes_)))

    def _name_labels(self, classes: np.ndarray) -> None:
        """Set the names of the labels."""
        self.classes_ = classes

    @fits_in_one_step
    def drop_labels(self, labels: Any) -> Any:
        """Drop some labels; the weights of the others do not change.

        Parameters
        ----------
        labels : array-like of shape (n_dropped,)
            Members of ``classes_``.

        Returns
        -------
        estimator
            The estimator itself. ``classes_`` holds the other labels, in the same order; columns
            named by numbers keep their numbers.

        Raises
        ------
        ValueError
            If a label is unknown or repeated, or if too few would be left: at least one column of
            an indicator, or three classes of a 1-D y, must remain.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_xc import OvALinearXC
        >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
        >>> Y = np.array([[1, 0], [0, 1], [1, 1]])
        >>> clf = OvALinearXC(label_names=["soup", "bread"]).fit(X, Y)
        >>> clf.drop_labels(["soup"]).predict(X)
        array([[0],
               [1],
               [1]])
        >>> clf.classes_.tolist()
        ['bread']
        """
        check_is_fitted(self)
        is_kept = np.ones(len(self.classes_), bool)
        is_kept[self._places(labels, "drop_labels")] = False
        least = 3 if self._targets_kind == "classes" else 1
        if np.count_nonzero(is_kept) < least:
            raise ValueError(
                f"{type(self).__name__}: drop_labels must leave {least} of the "
                f"{len(is_kept)} labels at least. It would leave {np.count_nonzero(is_kept)}."
            )
        self._take_labels(np.flatnonzero(is_kept))
        return self

    @fits_in_one_step
    def rename_labels(self, names: Any) -> Any:
        """Rename labels; nothing else changes.

        Parameters
        ----------
        names : mapping, or array-like of shape (n_labels,)
            A mapping from some labels in ``classes_`` to their new names, or the new names of all
            labels.

        Returns
        -------
        estimator
            The estimator itself. The classes of a 1-D y are sorted by their new names, and ties in
            score are ranked in this order.

        Raises
        ------
        ValueError
            For unknown labels, and for names that are equal, missing or of different kinds.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_xc import OvALinearXC
        >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
        >>> Y = np.array([[1, 0], [0, 1], [1, 1]])
        >>> clf = OvALinearXC(label_names=["soup", "bread"]).fit(X, Y)
        >>> clf.rename_labels({"soup": "stew"}).classes_.tolist()
        ['stew', 'bread']
        """
        check_is_fitted(self)
        caller = f"{type(self).__name__}: names"
        known = self.classes_
        if isinstance(names, Mapping):
            values = known.tolist()
            for place, name in zip(
                self._places(list(names), "rename_labels"), names.values(), strict=True
            ):
                values[place] = name
            names = values
        if self._targets_kind != "classes":
            self._name_labels(check_label_names(names, len(known), caller))
            return self
        kinds = {_kind(name) for name in (names.tolist() if hasattr(names, "tolist") else names)}
        if len(kinds) > 1:
            raise ValueError(f"{caller} must be of one kind. Got {' and '.join(sorted(kinds))}.")
        distinct = distinct_classes(names, caller)
        renamed = np.asarray(names)
        if len(renamed) != len(known) or len(distinct) < len(known):
            raise ValueError(
                f"{caller} must be {len(known)} distinct classes. Got {len(renamed)}, of which "
                f"{len(distinct)} are distinct."
            )
        order = np.argsort(renamed, kind="stable")
        if len(order) == 2 and order[0] == 1:
            raise ValueError(
                f"{caller} cannot reorder the classes of a binary model: its weights belong to "
                f"classes_[1]. Got {renamed.tolist()}."
            )
        self._name_labels(renamed)
        if not np.array_equal(order, np.arange(len(order))):
            self._take_labels(order)
        return self

    def _places(self, labels: Any, method: str) -> np.ndarray:
        """Return the positions of labels, int64, distinct."""
        caller = f"{type(self).__name__}.{method}"
        refuse_masks_and_dates(labels, f"{caller}: labels")
        if isinstance(labels, str | bytes) or not hasattr(labels, "__iter__"):
            raise TypeError(f"{caller}: labels must be a list of labels. Got {labels!r}.")
        known = {label: place for place, label in enumerate(self.classes_.tolist())}
        places = [
            known[label] if _is_key(label, known) else position_of(label, self.classes_, caller)
            for label in (labels.tolist() if hasattr(labels, "tolist") else labels)
        ]
        found = np.array(places, np.int64)
        if len(np.unique(found)) < len(found):
            values, counts = np.unique(found, return_counts=True)
            twice = self.classes_[values[np.argmax(counts)]]
            raise ValueError(f"{caller}: labels must be distinct. Got {twice!r} more than once.")
        return found


def _kind(name: Any) -> str:
    """Return the kind of a class, for a message."""
    if isinstance(name, bool | np.bool_):
        return "bool"
    return "number" if isinstance(name, Number) else type(name).__name__


def _is_key(label: Any, known: dict) -> bool:
    """Return whether a label is a key, and no bool that equals a number."""
    try:
        return label in known and not isinstance(label, bool | np.bool_)
    except TypeError:  # no hash
        return False
