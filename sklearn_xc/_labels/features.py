"""Features or texts of labels, in a holder that cross-validation does not slice."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.arguments import is_sequence, refuse_masks_and_dates
from sklearn_xc._input.data import as_rows, check_sparse
from sklearn_xc._input.sklearn_private import safe_indexing
from sklearn_xc._input.texts_with_features import TextsWithFeatures, shown
from sklearn_xc._state.schema import declares


@declares()
class LabelFeatures:
    """Features or texts of all labels, which cross-validation passes on unsliced.

    scikit-learn's searches, cross-validation and pipelines slice every argument of fit that has as
    many rows as X, assuming that it describes the instances: with as many labels as instances, a
    bare matrix of label features would lose rows. They also copy each constructor parameter for
    every candidate and fold. This holder exposes neither rows nor a length, and is never copied:
    clones of an estimator share one holder.

    With `classes`, it knows which label each row belongs to. An estimator then takes the rows of
    the classes that it finds in a 1-D y, even in a fold that lacks some of them.

    Parameters
    ----------
    features : {array-like, sparse matrix} of shape (n_labels, n_features), array-like of str of \
            shape (n_labels,), or TextsWithFeatures of shape (n_labels, n_features)
        A row of features for each label, or a text, or both. They are kept without a copy: do not
        change them.
    classes : array-like of shape (n_labels,), default=None
        What each row belongs to: a class of a 1-D y, or a column of an indicator. With None, an
        estimator must find the same number of labels, in this order.

    Attributes
    ----------
    features : object
        The features as passed; a list of lists becomes an array.
    classes : ndarray of shape (n_labels,) or None
    n_labels : int
        Number of rows or texts.
    is_text : bool
        Whether the features are texts only.

    Raises
    ------
    TypeError
        If `features` are neither a matrix nor a sequence of texts, or are a masked array.
    ValueError
        If `features` are empty, dates or times, or a sparse matrix with indices outside its shape,
        or if `classes` are not n_labels distinct values.

    Notes
    -----
    A holder is equal only to itself. It is pickled together with its contents.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_xc import LabelFeatures
    >>> LabelFeatures(np.eye(3))
    LabelFeatures(3 labels x 3 dense features)
    >>> LabelFeatures(["novel", "poem", "play"])
    LabelFeatures(3 label texts)
    >>> LabelFeatures(["a long story", "lines that rhyme"], classes=["novel", "poem"])
    LabelFeatures(2 label texts of classes)
    """

    def __init__(self, features: Any, classes: Any = None) -> None:
        check_features(features, "LabelFeatures: features")
        self.is_text = _is_text(features)
        if not self.is_text and not hasattr(features, "shape"):
            features = _as_array(features)
        shape = (len(features),) if self.is_text else tuple(features.shape)
        if len(shape) != 1 + (not self.is_text):
            raise TypeError(_not_features(features))
        if 0 in shape:
            raise ValueError(f"LabelFeatures: features must not be empty. Got shape {shape}.")
        self.features = features
        self.n_labels = int(shape[0])
        self.classes = None if classes is None else _check_classes(classes, self.n_labels)

    def _folder_state(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return {"features": self.features, "classes": self.classes}

    @classmethod
    def _from_folder_state(cls, state: dict[str, Any]) -> "LabelFeatures":
        """Return a holder made, and checked, by the constructor."""
        return cls(**state)

    def __repr__(self) -> str:
        whose = "" if self.classes is None else " of classes"
        if self.is_text:
            return f"LabelFeatures({self.n_labels:,} label texts{whose})"
        if isinstance(self.features, TextsWithFeatures):
            with_features = self.features.of_features
            return f"LabelFeatures({self.n_labels:,} label texts with {with_features}{whose})"
        kind = "sparse" if sp.issparse(self.features) else "dense"
        n_features = self.features.shape[1]
        return f"LabelFeatures({self.n_labels:,} labels x {n_features:,} {kind} features{whose})"

    def of_classes(self, classes: np.ndarray, name: str = "LabelFeatures") -> "LabelFeatures":
        """Return the rows of some classes, in their order; all rows if no classes were given.

        Parameters
        ----------
        classes : ndarray of shape (n,)
            Distinct.
        name : str, default="LabelFeatures"
            Name used in messages.

        Returns
        -------
        LabelFeatures
            This holder itself if no row has to be left out or moved.

        Raises
        ------
        ValueError
            If a class has no row.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_xc import LabelFeatures
        >>> known = LabelFeatures(["a long story", "lines that rhyme"], classes=["novel", "poem"])
        >>> known.of_classes(np.array(["poem"])).features
        ['lines that rhyme']
        """
        if self.classes is None or np.array_equal(self.classes, classes):
            return self
        place = {each: row for row, each in enumerate(self.classes.tolist())}
        wanted = np.asarray(classes).tolist()
        missing = [each for each in wanted if each not in place]
        if missing:
            raise ValueError(
                f"{name} must have a row for each class of y. {len(missing):,} of {len(wanted):,} "
                f"classes have none, the first is {missing[0]!r}; there is a row of "
                f"{next(iter(place))!r}."
            )
        rows = [place[each] for each in wanted]
        return LabelFeatures(safe_indexing(as_rows(self.features), rows), classes)

    def __copy__(self) -> "LabelFeatures":
        return self

    def __deepcopy__(self, memo: Any) -> "LabelFeatures":
        return self

    def __sklearn_clone__(self) -> "LabelFeatures":
        return self


def check_features(features: Any, name: str) -> None:
    """Raise for malformed sparse matrices, masked arrays and dates."""
    if isinstance(features, TextsWithFeatures):
        features = features.features
    check_sparse(features, name)
    refuse_masks_and_dates(features, name)


def _is_text(features: Any) -> bool:
    """Return whether this is a sequence whose entries are all texts."""
    if isinstance(features, TextsWithFeatures) or not is_sequence(features):
        return False
    are_texts = [isinstance(text, str) for text in features]
    if any(are_texts) and not all(are_texts):
        at = are_texts.index(False)
        raise TypeError(
            f"LabelFeatures: features must be a text for each label. Got {list(features)[at]!r} "
            f"for label {at}."
        )
    return any(are_texts)


def _check_classes(classes: Any, n_labels: int) -> np.ndarray:
    """Return the classes of the rows as an array."""
    found = np.asarray(classes)
    if found.ndim != 1 or len(found) != n_labels or len(set(found.tolist())) < n_labels:
        raise ValueError(
            f"LabelFeatures: classes must have one entry for each of the {n_labels} rows, all "
            f"distinct. Got {classes!r:.80}."
        )
    return found


def _as_array(features: Any) -> np.ndarray:
    if isinstance(features, str | bytes | LabelFeatures | dict | set):
        raise TypeError(_not_features(features))
    try:
        array = np.asarray(features)
    except ValueError as error:  # rows of different lengths
        raise TypeError(_not_features(features)) from error
    check_features(array, "LabelFeatures: features")
    return array


def _not_features(given: Any) -> str:
    return (
        "LabelFeatures: features must be a matrix with a row for each label, or a sequence of "
        f"label texts. Got {shown(given)}."
    )
