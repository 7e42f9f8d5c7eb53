"""The explanation of a score by the classifier inside Pipelines and searches."""

from typing import Any

import numpy as np

from sklearn_xc._explanation import Explanation, as_row
from sklearn_xc._topk import transformers_of, unwrap


def explain_inside(
    estimator: Any, x: Any, label: Any, *, feature_names: Any = None, n_features: int | None = 10
) -> Explanation:
    """Return the features that made the score of one label for one instance.

    Parameters
    ----------
    estimator : estimator
        Fitted: a classifier with ``explain``, also as the last step of a Pipeline or in a search.
    x : {array-like, sparse matrix} of shape (1, n_features) or (n_features,), or str
        The instance, as `estimator` takes it.
    label : object
        One of the classifier's ``classes_``.
    feature_names : array-like of str of shape (n_features,), default=None
        Of what reaches the classifier; None takes the names that transformers or data frames give.
    n_features : int or None, default=10
        How many features to list at most.

    Returns
    -------
    Explanation

    Raises
    ------
    TypeError
        If the classifier has no ``explain``, or takes no `feature_names`.
    """
    instance = [x] if isinstance(x, str | bytes) else as_row(x, type(estimator).__name__)
    classifier, row = unwrap(estimator, instance)
    who = type(classifier).__name__
    if not hasattr(classifier, "explain"):
        raise TypeError(f"explain: {who} has no method explain.")
    if hasattr(classifier, "encode_targets"):  # reads texts, and names features itself
        if feature_names is not None:
            raise TypeError(f"feature_names: {who} takes none, it has those of its vectorizer.")
        return classifier.explain(row[0], label, n_features=n_features)
    if feature_names is None:
        feature_names = _names_within(estimator)
    return classifier.explain(row, label, feature_names=feature_names, n_features=n_features)


def _names_within(estimator: Any) -> np.ndarray | None:
    """Return the names of the features that the last transformer makes, None if nobody knows."""
    names = None
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "steps"):
            try:
                for step in transformers_of(estimator):
                    names = step.get_feature_names_out(names)
            except (AttributeError, ValueError):  # some step gives its features no names
                names = None
            estimator = estimator[-1]
        else:
            return names
