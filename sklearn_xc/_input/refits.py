"""Vectorizers that are fitted again to the rows of a fold, instead of all rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from sklearn_xc._input.data import as_rows
from sklearn_xc._input.sklearn_private import safe_indexing
from sklearn_xc._labels.features import LabelFeatures

#: Features of the current fit whose vectorizer may be refitted.
_REFITTABLE: "ContextVar[RefittableFeatures | None]" = ContextVar("refittable", default=None)


class RefittableFeatures(NamedTuple):
    """Features, their source, and the vectorizer.

    Attributes
    ----------
    features : object of n rows
    source : object of n rows
        The input of the vectorizer, such as texts.
    vectorizer : transformer or None
        Cloned; None to keep these features.
    names : ndarray of str, default=None
        Names of the columns, if a warm start needs them.
    """

    features: Any
    source: Any
    vectorizer: Any
    names: np.ndarray | None = None

    def refitted(self, rows: np.ndarray) -> "Refitted | None":
        """Return the vectorizer fitted to some rows; None if that fails, as without words."""
        if self.vectorizer is None:
            return None
        fitted = clone(self.vectorizer)
        source = safe_indexing(as_rows(self.source), rows)
        try:
            features = fit_transform(fitted, source)
        except ValueError:
            return None
        names = None if self.names is None else vectorizer_names(fitted)
        refittable = RefittableFeatures(features, source, self.vectorizer, names)
        return Refitted(refittable, fitted, self.source)


class Refitted(NamedTuple):
    """A vectorizer refitted to some rows, their features, and the source of all rows."""

    refittable: RefittableFeatures
    vectorizer: Any
    source: Any

    def of(self, rows: np.ndarray) -> Any:
        """Return the features of other rows."""
        return self.vectorizer.transform(safe_indexing(as_rows(self.source), rows))


def fit_transform(vectorizer: Any, source: Any) -> Any:
    """Return ``fit_transform(source)``, which a frozen vectorizer lacks."""
    if hasattr(vectorizer, "fit_transform"):
        return vectorizer.fit_transform(source)
    return vectorizer.fit(source, None).transform(source)


@contextmanager
def may_refit(refittable: RefittableFeatures | None) -> Iterator[None]:
    """Context in which fits to these features may refit the vectorizer."""
    token = _REFITTABLE.set(refittable)
    try:
        yield
    finally:
        _REFITTABLE.reset(token)


def refittable_features(X: Any) -> RefittableFeatures | None:
    """Return the record of X if ``may_refit`` was called with these features."""
    refittable = _REFITTABLE.get()
    return refittable if refittable is not None and refittable.features is X else None


def vectorizer_names(vectorizer: Any) -> np.ndarray | None:
    """Return the names of the columns that a fitted vectorizer makes, None if they have none."""
    try:
        return np.asarray(vectorizer.get_feature_names_out())
    except (AttributeError, ValueError):  # a Pipeline raises either for a step without names
        return None


def current_names(n_columns: int) -> np.ndarray | None:
    """Return the names of the columns of the features that ``may_refit`` was called with."""
    refittable = _REFITTABLE.get()
    names = None if refittable is None else refittable.names
    return names if names is not None and len(names) == n_columns else None


def is_bound_to_columns(classifier: Any, features: Any) -> bool:
    """Return whether a parameter has an entry per column, so that the vocabulary must be kept."""
    n_columns = np.shape(features)[1] if len(np.shape(features)) == 2 else None
    return any(
        _is_of_columns(value, n_columns) for value in classifier.get_params(deep=True).values()
    )


def _is_of_columns(value: Any, n_columns: int | None) -> bool:
    if isinstance(value, FrozenEstimator):
        return True
    if isinstance(value, LabelFeatures):
        return hasattr(value.features, "shape")
    if isinstance(value, tuple | list):
        return any(_is_of_columns(one, n_columns) for one in value)
    return n_columns in (getattr(value, "shape", None) or ())
