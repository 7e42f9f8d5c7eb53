"""The vectors by which a model tells labels and instances from one another."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array, check_is_fitted

from sklearn_xc._checks import check_instances
from sklearn_xc._label_names import places_in
from sklearn_xc._sparse_input import check_sparse
from sklearn_xc._topk import classes_of, transformers_of
from sklearn_xc.base import XCClassifier
from sklearn_xc.text import TextClassifierXC


def innermost(model: Any, *inputs: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the classifier that learns, inside all that is around it, and inputs as it sees them.

    Of a stack it is the first member that has vectors of labels.

    Parameters
    ----------
    model : estimator
        Fitted; possibly a Pipeline, a search, a ``TextClassifierXC``, a wrapper or a stack.
    *inputs : object
        For `model`.

    Returns
    -------
    classifier : estimator
    inputs : tuple
    """
    while True:
        if isinstance(model, TextClassifierXC):
            check_is_fitted(model)
            inputs = tuple(model._features(one) for one in inputs)
            model = model.classifier_
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "steps"):
            for step in transformers_of(model):
                inputs = tuple(step.transform(one) for one in inputs)
            model = model[-1]
        elif hasattr(model, "final_estimator_") and hasattr(model, "estimators_"):
            members = list(model.estimators_)
            able = [one for one in members if _has_vectors(_classifier_in(one))]
            model = (able or members)[0]
        elif hasattr(model, "estimator_") and not hasattr(model, "estimators_"):
            model = model.estimator_
        else:
            check_is_fitted(model)
            return model, inputs


def _classifier_in(model: Any) -> Any:
    return innermost(model)[0]


def _has_vectors(classifier: Any) -> bool:
    return hasattr(classifier, "label_embeddings_") or hasattr(classifier, "coef_")


def label_vectors(model: Any, who: str) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return a vector for each label: its embedding, or else its weights.

    Parameters
    ----------
    model : estimator
        Fitted.
    who : str
        Named in messages.

    Returns
    -------
    vectors : ndarray or csr_array of shape (n_labels, dim)
    places : ndarray of int64 of shape (n_labels,)
        Which of the model's ``classes_`` each row is of; -1 for none.
    is_known : ndarray of bool of shape (n_labels,)
        False where nothing is known of a label.

    Raises
    ------
    TypeError
        If there are none.
    """
    classifier, _ = innermost(model)
    own = classes_of(classifier)
    vectors = getattr(classifier, "label_embeddings_", getattr(classifier, "coef_", None))
    if vectors is not None and vectors.shape[0] == 1 and len(own) == 2:
        w = sp.csr_array(vectors) if sp.issparse(vectors) else np.asarray(vectors)
        vectors = sp.vstack([-w, w], format="csr") if sp.issparse(w) else np.vstack([-w, w])
    if vectors is None or len(vectors.shape) != 2 or vectors.shape[0] != len(own):
        raise TypeError(
            f"{who}: model must have a vector for each label, embeddings or weights "
            f"(label_embeddings_ or coef_). Got {type(classifier).__name__}, which has none."
        )
    vectors = sp.csr_array(vectors) if sp.issparse(vectors) else np.asarray(vectors)
    is_known = np.ones(len(own), bool)
    if isinstance(classifier, XCClassifier):
        is_known[classifier._unseen_labels] = False
    return vectors, places_in(classes_of(model), own, are_columns=True), is_known


def instance_vectors(model: Any, who: str, *inputs: Any) -> list[Any]:
    """Return a vector for each instance: its embedding, or else its features.

    Parameters
    ----------
    model : estimator
        Fitted.
    who : str
        Named in messages.
    *inputs : object
        Instances as `model` takes them.

    Returns
    -------
    list of ndarray or csr_array of shape (n, dim)
    """
    for one in inputs:
        check_sparse(one, "X", who)
    classifier, inputs = innermost(model, *inputs)
    if hasattr(classifier, "embed"):
        return [classifier.embed(one) for one in inputs]
    return [_features(classifier, one) for one in inputs]


def _features(classifier: Any, X: Any) -> Any:
    if isinstance(classifier, XCClassifier):
        rows = check_instances(classifier, X, reset=False)
        return sp.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape)
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    return sp.csr_array(X) if sp.issparse(X) else X
