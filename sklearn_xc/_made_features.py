"""Features that a vectorizer made of all rows, and how to make them again without some of these.

A word of a single text is known to a vectorizer that was fitted to it, so that rows which are held
out of a classifier alone look more familiar than new ones will. Within ``made_from`` the fits of
clones, for thresholds, probabilities or stacks, fit the vectorizer to their own rows, too.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from sklearn_xc._label_features import LabelFeatures
from sklearn_xc._out_of_fold import as_rows
from sklearn_xc._sklearn import safe_indexing


class MadeFeatures(NamedTuple):
    """What a vectorizer made.

    Attributes
    ----------
    features : object of n rows
    source : object of n rows
        What it read, such as texts.
    vectorizer : transformer
        Cloned.
    """

    features: Any
    source: Any
    vectorizer: Any

    def refitted(self, rows: np.ndarray) -> "Refitted | None":
        """Return what comes of a vectorizer that is fitted to some rows alone.

        Parameters
        ----------
        rows : ndarray of int64

        Returns
        -------
        Refitted or None
            None where they are too few for it, such as texts without a word that counts.
        """
        fitted, source = clone(self.vectorizer), safe_indexing(as_rows(self.source), rows)
        try:
            features = fit_transform(fitted, source)
        except ValueError:
            return None
        return Refitted(MadeFeatures(features, source, self.vectorizer), fitted, self.source)


class Refitted(NamedTuple):
    """A vectorizer that is fitted to some of the rows.

    Attributes
    ----------
    made : MadeFeatures
        Of these rows.
    vectorizer : transformer
        Fitted.
    source : object of n rows
        All rows.
    """

    made: MadeFeatures
    vectorizer: Any
    source: Any

    def of(self, rows: np.ndarray) -> Any:
        """Return the features of other rows."""
        return self.vectorizer.transform(safe_indexing(as_rows(self.source), rows))


def fit_transform(vectorizer: Any, source: Any) -> Any:
    """Fit a vectorizer, and return what it makes; a frozen one has no ``fit_transform``."""
    if hasattr(vectorizer, "fit_transform"):
        return vectorizer.fit_transform(source)
    return vectorizer.fit(source, None).transform(source)


_MADE: ContextVar[MadeFeatures | None] = ContextVar("made features", default=None)


@contextmanager
def made_from(made: MadeFeatures | None) -> Iterator[None]:
    """Have fits to these very features know what they are made from, inside the ``with``."""
    token = _MADE.set(made)
    try:
        yield
    finally:
        _MADE.reset(token)


def made_features(X: Any) -> MadeFeatures | None:
    """Return what X is made from, if X is what ``made_from`` said."""
    made = _MADE.get()
    return made if made is not None and made.features is X else None


def is_bound_to_columns(classifier: Any, features: Any) -> bool:
    """Tell whether parameters say something of each column, which another vocabulary has not.

    Parameters
    ----------
    classifier : estimator
    features : object of shape (n, n_features)
    """
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
