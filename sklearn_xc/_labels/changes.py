"""Labels of a fitted model that are dropped or renamed."""

from collections.abc import Mapping
from numbers import Number
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._input.arguments import refuse_disguised
from sklearn_xc._input.checks import distinct_classes
from sklearn_xc._labels.names import check_label_names, place_of
from sklearn_xc._labels.some_labels import attributes_of_labels
from sklearn_xc._state.fitted import built_apart


class ChangeableLabels:
    """Changes of the labels of a model without training."""

    classes_: np.ndarray
    _targets_kind: str

    def _take_labels(self, places: np.ndarray) -> None:
        """Keep the labels at these positions, in this order, in all fitted attributes."""
        self.__dict__.update(attributes_of_labels(self, places, len(self.classes_)))
        self.__dict__.pop("_search_index", None)  # is built again

    def _name_labels(self, classes: np.ndarray) -> None:
        """Set the names of the labels."""
        self.classes_ = classes

    @built_apart
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

    @built_apart
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
        who, known = f"{type(self).__name__}: names", self.classes_
        if isinstance(names, Mapping):
            values = known.tolist()
            for place, name in zip(
                self._places(list(names), "rename_labels"), names.values(), strict=True
            ):
                values[place] = name
            names = values
        if self._targets_kind != "classes":
            self._name_labels(check_label_names(names, len(known), who))
            return self
        kinds = {_kind(name) for name in (names.tolist() if hasattr(names, "tolist") else names)}
        if len(kinds) > 1:
            raise ValueError(f"{who} must be of one kind. Got {' and '.join(sorted(kinds))}.")
        distinct = distinct_classes(names, who)
        renamed = np.asarray(names)
        if len(renamed) != len(known) or len(distinct) < len(known):
            raise ValueError(
                f"{who} must be {len(known)} distinct classes. Got {len(renamed)}, of which "
                f"{len(distinct)} are distinct."
            )
        order = np.argsort(renamed, kind="stable")
        if len(order) == 2 and order[0] == 1:
            raise ValueError(
                f"{who} cannot reorder the classes of a binary model: its weights belong to "
                f"classes_[1]. Got {renamed.tolist()}."
            )
        self._name_labels(renamed)
        if not np.array_equal(order, np.arange(len(order))):
            self._take_labels(order)
        return self

    def _places(self, labels: Any, method: str) -> np.ndarray:
        """Return the positions of labels, int64, distinct."""
        who = f"{type(self).__name__}.{method}"
        refuse_disguised(labels, f"{who}: labels")
        if isinstance(labels, str | bytes) or not hasattr(labels, "__iter__"):
            raise TypeError(f"{who}: labels must be a list of labels. Got {labels!r}.")
        known = {label: place for place, label in enumerate(self.classes_.tolist())}
        places = [
            known[label] if _is_key(label, known) else place_of(label, self.classes_, who)
            for label in (labels.tolist() if hasattr(labels, "tolist") else labels)
        ]
        found = np.array(places, np.int64)
        if len(np.unique(found)) < len(found):
            values, counts = np.unique(found, return_counts=True)
            twice = self.classes_[values[np.argmax(counts)]]
            raise ValueError(f"{who}: labels must be distinct. Got {twice!r} more than once.")
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
