"""What all estimators share: top-k prediction, the answers derived from it, and pickling."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils.validation import check_is_fitted

import sklearn_xc

#: Raised when the meaning of pickled attributes changes.
STATE_FORMAT = 1

#: Dense scores of a foreign estimator are reduced in pieces of about so many values.
_PIECE = 2**24


class XCClassifier(ClassifierMixin, BaseEstimator):
    """Answers of a classifier over many labels, all derived from its best-scored labels.

    A subclass sets ``classes_``, ``_targets_kind`` ("classes", "dense" or "sparse"),
    ``_targets_dtype`` and ``_targets_container`` in fit, has a parameter ``top_k``, and defines
    ``_topk_scores(X, k)`` and ``_all_scores(X)`` with columns in the order of ``classes_``; after a
    1-D fit of two classes ``_all_scores`` has the single column of the second.
    """

    def predict_topk(self, X: Any, k: int = 5) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best labels of each instance and their scores, best first.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.
        k : int, default=5
            How many labels; may exceed their number.

        Returns
        -------
        indices : ndarray of int64 of shape (n, k)
            Positions in ``classes_``, padded with -1. Ties go to the smaller position.
        scores : ndarray of float of shape (n, k)
            Their scores, padded with -inf.
        """
        check_is_fitted(self)
        return self._topk_scores(X, check_k(k))

    def decision_function(self, X: Any) -> Any:
        """Return scores; the container follows that of y in fit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.

        Returns
        -------
        ndarray of shape (n, n_labels) or (n,), or CSR of shape (n, n_labels)
            After a sparse fit, a CSR with the ``top_k`` best scores of each row: a missing entry
            was not scored, it is not zero. Otherwise the scores of all labels, or after a 1-D fit
            of two classes the score of the second.
        """
        check_is_fitted(self)
        if self._targets_kind == "sparse":
            labels, scores = self._topk_scores(X, min(self.top_k, len(self.classes_)))
            return self._csr(labels, scores, np.ones_like(labels, bool))
        scores = self._all_scores(X)
        return scores[:, 0] if self._is_binary else scores

    def predict(self, X: Any) -> Any:
        """Return the labels of each instance; the container follows that of y in fit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.

        Returns
        -------
        ndarray of shape (n,), ndarray of shape (n, n_labels), or CSR of shape (n, n_labels)
            After a 1-D fit the best class. Otherwise an indicator of the labels with a score above
            0; after a sparse fit only the ``top_k`` best labels of each row are considered.
        """
        check_is_fitted(self)
        if self._targets_kind == "sparse":
            labels, scores = self._topk_scores(X, min(self.top_k, len(self.classes_)))
            positive = scores > 0
            ones = np.ones_like(scores, dtype=self._targets_dtype)
            return self._csr(labels, ones, positive)
        if self._targets_kind == "dense":
            return (self._all_scores(X) > 0).astype(self._targets_dtype)
        if self._is_binary:
            return self.classes_[(self._all_scores(X)[:, 0] > 0).astype(np.int64)]
        labels, _ = self._topk_scores(X, 1)
        return self.classes_[labels[:, 0]]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return precision@1: the share of instances whose best label is one of theirs.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.
        y : {array-like, sparse matrix} of shape (n,) or (n, n_labels)
            True classes or labels, as in fit.
        sample_weight : array-like of shape (n,), default=None
            Weights of the instances.

        Returns
        -------
        float
            In [0, 1]; the accuracy after a 1-D fit.
        """
        check_is_fitted(self)
        if self._targets_kind == "classes":
            hits = self.predict(X) == np.asarray(y)
            return float(np.average(hits, weights=sample_weight))
        from sklearn_xc.metrics import precision_at_k

        labels, _ = self.predict_topk(X, 1)
        return precision_at_k(y, labels, k=1, sample_weight=sample_weight)

    @property
    def _is_binary(self) -> bool:
        return self._targets_kind == "classes" and len(self.classes_) == 2

    def _csr(self, labels: np.ndarray, values: np.ndarray, kept: np.ndarray) -> Any:
        """Return a CSR of the user's kind with the kept entries, columns sorted within rows."""
        order = np.argsort(labels, axis=1)
        labels, values, kept = (
            np.take_along_axis(a, order, axis=1) for a in (labels, values, kept)
        )
        indptr = np.concatenate(([0], np.cumsum(kept.sum(axis=1))))
        shape = (len(labels), len(self.classes_))
        matrix = issubclass(self._targets_container, sp.spmatrix)
        make = sp.csr_matrix if matrix else sp.csr_array
        return make((values[kept], labels[kept], indptr), shape=shape)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        tags.target_tags.two_d_labels = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state["_sklearn_xc_version"] = sklearn_xc.__version__
        state["_sklearn_xc_format"] = STATE_FORMAT
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        version = state.pop("_sklearn_xc_version", "unknown")
        written = state.pop("_sklearn_xc_format", 0)
        name = type(self).__name__
        if written > STATE_FORMAT:
            raise ValueError(
                f"{name}: pickled by sklearn_xc {version} in state format {written}, this is "
                f"{sklearn_xc.__version__}, which reads formats up to {STATE_FORMAT}. Upgrade it."
            )
        if version != sklearn_xc.__version__:
            warnings.warn(
                InconsistentVersionWarning(
                    estimator_name=name,
                    current_sklearn_version=f"(sklearn_xc) {sklearn_xc.__version__}",
                    original_sklearn_version=f"(sklearn_xc) {version}",
                ),
                stacklevel=2,
            )
        super().__setstate__(state)


@contextmanager
def restored_on_error(estimator: Any) -> Iterator[None]:
    """Give `estimator` back the attributes it had, should the body fail or be interrupted."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def check_k(k: Any) -> int:
    """Return `k` as an int, or raise ValueError if it is not a positive integer."""
    if isinstance(k, bool) or not isinstance(k, Integral) or k < 1:
        raise ValueError(f"k must be an integer of at least 1, got {k!r}.")
    return int(k)


def unwrap(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Return the classifier inside Pipelines and searches, and X as it reaches that classifier.

    Parameters
    ----------
    estimator : estimator
        A fitted classifier, possibly the last step of a Pipeline, the best estimator of a search,
        or wrapped in a meta-estimator with a fitted ``estimator_``.
    X : object
        Input for `estimator`.

    Returns
    -------
    classifier : estimator
    X : object
        Transformed by all steps before it.
    """
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "steps"):
            if len(estimator.steps) > 1 and X is not None:
                X = estimator[:-1].transform(X)
            estimator = estimator[-1]
        elif _is_wrapper(estimator):
            estimator = estimator.estimator_
        else:
            return estimator, X


def _is_wrapper(estimator: Any) -> bool:
    # The estimator_ of an ensemble is not fitted: it is what its estimators_ were copied from.
    has = {name: hasattr(estimator, name) for name in ("predict_topk", "estimator_", "estimators_")}
    return has["estimator_"] and not has["estimators_"] and not has["predict_topk"]


def topk(estimator: Any, X: Any, k: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Return the k best labels of each instance from any fitted classifier, best first.

    Pipelines and searches do not forward ``predict_topk``; this function looks inside them. A
    classifier without that method is asked for ``decision_function`` or ``predict_proba``, in
    pieces of rows.

    Parameters
    ----------
    estimator : estimator
        A fitted classifier, Pipeline, search, or wrapper around one.
    X : object of n instances
        Input for `estimator`.
    k : int, default=5
        How many labels.

    Returns
    -------
    indices : ndarray of int64 of shape (n, k)
        Positions in the classifier's ``classes_``, padded with -1. Ties go to the smaller one.
    scores : ndarray of float of shape (n, k)
        Padded with -inf.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import MaxAbsScaler
    >>> from sklearn_xc import OvALinearXC, topk
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> Y = np.array([[1, 0], [0, 1], [1, 1]])
    >>> model = make_pipeline(MaxAbsScaler(), OvALinearXC()).fit(X, Y)
    >>> topk(model, X, k=1)[0]
    array([[0],
           [1],
           [0]])
    """
    k = check_k(k)
    classifier, X = unwrap(estimator, X)
    if hasattr(classifier, "predict_topk"):
        return classifier.predict_topk(X, k)
    method = next((m for m in ("decision_function", "predict_proba") if hasattr(classifier, m)), "")
    if not method:
        raise TypeError(
            f"topk needs predict_topk, decision_function or predict_proba, and "
            f"{type(classifier).__name__} has none of them."
        )
    parts = [_best_of_dense(scores, k) for scores in _dense_scores(classifier, method, X)]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def _dense_scores(classifier: Any, method: str, X: Any) -> Iterator[np.ndarray]:
    rows = max(1, _PIECE // max(1, len(classifier.classes_)))
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    for first in range(0, max(n, 1), rows):
        scores = getattr(classifier, method)(X[first : first + rows])
        if isinstance(scores, list):  # of one array (n, n_classes) per label, as random forests do
            both = zip(scores, classifier.classes_, strict=True)
            scores = np.column_stack([s @ np.asarray(classes, bool) for s, classes in both])
        scores = np.asarray(scores)
        yield np.column_stack([-scores, scores]) if scores.ndim == 1 else scores


def _best_of_dense(scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    n, n_labels = scores.shape
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    indices = np.full((n, k), -1, np.int64)
    best = np.full((n, k), -np.inf, scores.dtype)
    indices[:, :n_labels] = order
    best[:, :n_labels] = np.take_along_axis(scores, order, axis=1)
    return indices, best
