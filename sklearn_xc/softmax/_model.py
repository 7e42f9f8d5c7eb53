"""What a fitted softmax model answers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._blank_rows import LabelFrequencies
from sklearn_xc._checks import check_instances
from sklearn_xc._data import CsrRows
from sklearn_xc._state import reads_one_state
from sklearn_xc.base import XCClassifier
from sklearn_xc.kernels.prediction.class_scores import log_normalisers
from sklearn_xc.weights.class_weights import ClassWeights


class SoftmaxModel(XCClassifier):
    """Probabilities, scores and best classes of dense weights."""

    classes_: np.ndarray
    coef_: np.ndarray
    intercept_: np.ndarray
    _frequencies: LabelFrequencies  # among the pairs of all calls
    _prior: np.ndarray | None  # scores of an instance without features
    _labelled: np.ndarray  # summed weights of pairs, and of instances that have one

    @reads_one_state
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes, with the exact normaliser.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.

        Returns
        -------
        ndarray of shape (n, n_classes), or CSR of shape (n, n_labels)
            Rows sum to 1 over all classes, also of a multilabel model: it is the probability that
            a label drawn from those of the instance is this one. Classes without a training
            instance have none. After a sparse fit, a CSR with
            the ``top_k`` largest of each row: a missing entry was left out, it is not zero.
        """
        log_proba = self.predict_log_proba(X)
        if isinstance(log_proba, np.ndarray):
            return np.exp(log_proba)
        log_proba.data = np.exp(log_proba.data)
        return log_proba

    @reads_one_state
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of ``predict_proba``, in the same containers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.

        Returns
        -------
        ndarray of shape (n, n_classes), or CSR of shape (n, n_labels)
            -inf for classes without a training instance.
        """
        check_is_fitted(self)
        instances = check_instances(self, X, reset=False).without_zeros()
        weights = self._weights()
        with self._in_range(instances):
            if self._targets_kind != "sparse":
                return _log_softmax(self._scores(instances), self._unseen_labels)
            labels, scores = weights.topk(instances, self._n_considered(X), self.n_jobs)
            normalisers = weights.log_normalisers(instances, self.n_jobs)[:, None]
        log_proba = (scores - normalisers).astype(self.coef_.dtype)
        return self._csr(labels, log_proba, np.ones_like(labels, bool))

    def _weights(self) -> ClassWeights:
        return ClassWeights(self.coef_, None, self.intercept_, self._prior, self._unseen_labels)

    @contextmanager
    def _in_range(self, X: CsrRows) -> Iterator[None]:
        """Turn what is beyond the range of floats within the body into a ValueError on X."""
        try:
            yield
        except FloatingPointError as error:
            largest = max(abs(float(X.data.max())), abs(float(X.data.min())))
            raise ValueError(
                f"{type(self).__name__}: {error}; X holds values as large as {largest:.3g}. Scale "
                "X (sklearn.preprocessing.normalize)."
            ) from error

    def _topk_scores(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        instances = check_instances(self, X, reset=False).without_zeros()
        with self._in_range(instances):
            return self._weights().topk(instances, k, self.n_jobs)

    def _all_scores(self, X: Any) -> np.ndarray:
        instances = check_instances(self, X, reset=False).without_zeros()
        with self._in_range(instances):
            scores = self._scores(instances)
        return scores[:, 1:] - scores[:, :1] if self._is_binary else scores

    def _feature_weights(self, instance: CsrRows, position: int) -> np.ndarray:
        weights = self.coef_[position, instance.indices]
        if self._is_binary:
            weights = weights - self.coef_[1 - position, instance.indices]
        return weights

    def _scores(self, instances: CsrRows) -> np.ndarray:
        name = type(self).__name__
        return self._weights().scores(instances, self.n_jobs, self._allowed_bytes(), name)

    def _log_threshold(self) -> float:
        """Return half the probability of a label among as many as a row has, in the logarithm."""
        pairs, instances = self._labelled
        return float(np.log(0.5 * instances / pairs))

    def _topk_margins(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        instances = check_instances(self, X, reset=False).without_zeros()
        weights = self._weights()
        with self._in_range(instances):
            labels, scores = weights.topk(instances, k, self.n_jobs)
            normalisers = weights.log_normalisers(instances, self.n_jobs)[:, None]
        return labels, scores - normalisers - self._log_threshold()

    def _all_margins(self, X: Any) -> np.ndarray:
        return _log_softmax(self._all_scores(X), self._unseen_labels) - self._log_threshold()


def _log_softmax(scores: np.ndarray, unseen: np.ndarray) -> np.ndarray:
    """Turn scores into log-probabilities, in place; classes without an instance have none."""
    if unseen.size < scores.shape[1]:
        scores[:, unseen] = -np.inf
    normalisers = np.empty(len(scores))
    log_normalisers(scores, normalisers)
    scores -= normalisers[:, None].astype(scores.dtype)
    return scores
