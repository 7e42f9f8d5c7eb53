"""What is known of the labels, held so that cross-validation does not take it for instances."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._arguments import refuse_disguised
from sklearn_xc._sparse_input import check_sparse


class LabelFeatures:
    """Features or texts of all labels, which cross-validation hands on whole.

    scikit-learn's searches, cross-validation and pipelines slice every argument of fit that has as
    many rows as X, in the belief that it describes the instances: with as many labels as instances,
    a bare matrix of label features would lose rows. They also copy each parameter of a constructor
    for every candidate and fold. This holder shows them neither rows nor a length, and is never
    copied: a clone of an estimator has the same holder.

    Parameters
    ----------
    features : {array-like, sparse matrix} of shape (n_labels, n_features), or array-like of str \
            of shape (n_labels,)
        A row of features for each label, or a text. They are held as they are, without a copy: do
        not change them.

    Attributes
    ----------
    features : object
        What was passed; a list of lists as an array.
    n_labels : int
        Rows or texts.
    is_text : bool
        Whether these are texts.

    Raises
    ------
    TypeError
        If `features` are no matrix and no sequence of texts, or a masked array.
    ValueError
        If they are empty, dates or times, or a sparse matrix with indices outside its shape.

    Notes
    -----
    Holders are equal only to themselves. They pickle with what they hold.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_xc import LabelFeatures
    >>> LabelFeatures(np.eye(3))
    LabelFeatures(3 labels x 3 dense features)
    >>> LabelFeatures(["novel", "poem", "play"])
    LabelFeatures(3 label texts)
    """

    def __init__(self, features: Any) -> None:
        check_features(features, "LabelFeatures: features")
        is_sparse = sp.issparse(features)  # some are dicts
        if not is_sparse and isinstance(features, str | bytes | LabelFeatures | dict | set):
            raise TypeError(_not_features(features))
        self.is_text = _is_text(features)
        if not self.is_text and not hasattr(features, "shape"):
            features = _as_array(features)
        shape = (len(features),) if self.is_text else features.shape
        if len(shape) != 1 + (not self.is_text):
            raise TypeError(_not_features(features))
        if 0 in shape:
            shape = tuple(shape)
            raise ValueError(f"LabelFeatures: features must not be empty. Got shape {shape}.")
        self.features = features
        self.n_labels = int(shape[0])

    def __repr__(self) -> str:
        if self.is_text:
            return f"LabelFeatures({self.n_labels:,} label texts)"
        kind = "sparse" if sp.issparse(self.features) else "dense"
        return (
            f"LabelFeatures({self.n_labels:,} labels x {self.features.shape[1]:,} {kind} features)"
        )

    def __copy__(self) -> "LabelFeatures":
        return self

    def __deepcopy__(self, memo: Any) -> "LabelFeatures":
        return self

    def __sklearn_clone__(self) -> "LabelFeatures":
        return self


def check_features(features: Any, name: str) -> None:
    """Raise for what is not what it looks like; see ``check_sparse`` and ``refuse_disguised``."""
    check_sparse(features, name)
    refuse_disguised(features, name)


def _is_text(features: Any) -> bool:
    """Return whether this is a sequence whose entries are all texts."""
    if (
        sp.issparse(features)
        or getattr(features, "ndim", 1) != 1
        or not hasattr(features, "__len__")
    ):
        return False
    are_texts = [isinstance(text, str) for text in features]
    if any(are_texts) and not all(are_texts):
        at = are_texts.index(False)
        raise TypeError(
            f"LabelFeatures: features must be a text for each label. Got {list(features)[at]!r} "
            f"for label {at}."
        )
    return any(are_texts)


def _as_array(features: Any) -> np.ndarray:
    try:
        array = np.asarray(features)
    except ValueError as error:  # rows of different lengths
        raise TypeError(_not_features(features)) from error
    if array.ndim == 0:  # of something else
        raise TypeError(_not_features(features))
    check_features(array, "LabelFeatures: features")
    return array


def _not_features(given: Any) -> str:
    shape = f" of shape {tuple(given.shape)}" if hasattr(given, "shape") else ""
    return (
        "LabelFeatures: features must be a matrix with a row for each label, or a sequence of "
        f"label texts. Got {type(given).__name__}{shape}."
    )
