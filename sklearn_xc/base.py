"""What all estimators share: top-k prediction, the answers derived from it, and pickling."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils.validation import check_is_fitted

import sklearn_xc
from sklearn_xc._topk import check_k
from sklearn_xc._validation import Targets
from sklearn_xc.metrics import precision_at_k

#: Raised when the meaning of pickled attributes changes.
STATE_FORMAT = 1


class XCClassifier(ClassifierMixin, BaseEstimator):
    """Answers of a classifier over many labels, all derived from its best-scored labels.

    A subclass calls ``_keep_targets(targets)`` in fit, has a parameter ``top_k``, and defines
    ``_topk_scores(X, k)`` and ``_all_scores(X)`` with columns in the order of ``classes_``; after a
    1-D fit of two classes ``_all_scores`` has the single column of the second. An indicator fit
    predicts the labels with positive scores, unless ``_topk_margins`` and ``_all_margins`` say
    otherwise.
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
            labels, scores = self._topk_margins(X, min(self.top_k, len(self.classes_)))
            positive = scores > 0
            ones = np.ones_like(scores, dtype=self._targets_dtype)
            return self._csr(labels, ones, positive)
        if self._targets_kind == "dense":
            return (self._all_margins(X) > 0).astype(self._targets_dtype)
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
        labels, _ = self.predict_topk(X, 1)
        return precision_at_k(y, labels, k=1, sample_weight=sample_weight)

    def _keep_targets(self, targets: Targets) -> None:
        """Set ``classes_``, and what it takes to answer in the terms of y."""
        self.classes_ = targets.classes
        self._targets_kind = targets.kind
        self._targets_dtype = targets.dtype
        self._targets_container: Any = targets.container

    def _topk_margins(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the best labels, and numbers that are positive for those that hold."""
        return self._topk_scores(X, k)

    def _all_margins(self, X: Any) -> np.ndarray:
        """Return numbers that are positive for labels that hold, (n, n_labels)."""
        return self._all_scores(X)

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


def threshold_for(scores: np.ndarray, n_labels: int) -> float:
    """Return the threshold that as many scores exceed as there are true labels.

    Parameters
    ----------
    scores : ndarray of float of shape (n, k)
        Of the best labels of some instances; not padded.
    n_labels : int
        True labels of these instances, at least 1.

    Returns
    -------
    float
        Halfway between the last score to exceed it and the next, or just below the smallest where
        there are not enough; of equal scores all exceed it or none.
    """
    best = np.sort(scores, axis=None)[::-1]
    if n_labels < len(best):
        return float(0.5 * (best[n_labels - 1] + best[n_labels]))
    return float(np.nextafter(best[-1], -np.inf))


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
