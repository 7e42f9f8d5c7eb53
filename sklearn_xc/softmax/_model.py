"""Predictions of a fitted softmax model."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._input.checks import check_instances
from sklearn_xc._input.data import CsrRows, LabelFrequencies
from sklearn_xc._labels.allowed import AllowedLabels
from sklearn_xc._labels.best_allowed import Scorer, best_of_pairs
from sklearn_xc._state.fitted import reads_snapshot
from sklearn_xc._state.schema import Array, Number, Record, declares
from sklearn_xc._weights.class_weights import ClassWeights
from sklearn_xc.base import XCClassifier, map_entries
from sklearn_xc.softmax.calibration import Calibration, topk_log_proba
from sklearn_xc.softmax.pairs import log_frequencies
from sklearn_xc.softmax.state import SoftmaxState


@declares(
    coef_=Array("real", "labels", "features"),
    intercept_=Array("real", "labels"),
    temperature_=Number(least=0),
    best_map_=Array("float64", 3),
    _prior=Array("float64", "labels", optional=True),
    _frequencies=Record("LabelFrequencies"),
    _labels_per_row=Number(),
)
class SoftmaxModel(XCClassifier):
    """Probabilities, scores and best classes of dense weights."""

    classes_: np.ndarray
    coef_: np.ndarray
    intercept_: np.ndarray
    temperature_: float
    best_map_: np.ndarray
    _frequencies: LabelFrequencies  # of the training pairs
    _prior: np.ndarray | None  # scores of an instance without features
    _labels_per_row: float  # mean, over rows that have any

    def _keep_weights(self, state: SoftmaxState, frequencies: LabelFrequencies) -> None:
        """Set the attributes that predictions need."""
        self.coef_ = state.V
        self.intercept_ = state.intercept.astype(state.V.dtype)
        self._frequencies = frequencies
        self._prior = log_frequencies(frequencies.of_blank()) if self.fit_intercept else None

    def _find_unseen(self) -> np.ndarray:
        return np.flatnonzero(self._frequencies.counts == 0)

    @reads_snapshot
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes, with the exact normaliser.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.

        Returns
        -------
        ndarray of shape (n, n_classes), or CSR of shape (n, n_labels)
            Rows sum to 1 over all classes. In a multilabel model too, an entry is the probability
            that a label drawn from those of the instance is this one. Classes without a training
            instance have probability zero. After a sparse fit, a CSR with the ``top_k`` largest of
            each row: a missing entry was left out, it is not zero.

        Notes
        -----
        Scores are divided by ``temperature_`` before the softmax. Then ``best_map_`` is applied to
        the probability of the best class, and the others share the rest in proportion. The order
        of the classes does not change. Both are fitted to the held-out instances of a search for
        the learning rate; with a `learning_rate` of your own and without early stopping, none are
        held out, and probabilities are the softmax of the scores.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from sklearn_xc import ImplicitSoftmaxSGD
        >>> X, y = load_digits(return_X_y=True)
        >>> clf = ImplicitSoftmaxSGD(learning_rate=1.0, random_state=0).fit(X / 16, y)
        >>> proba = clf.predict_proba(X / 16)
        >>> proba.shape, bool((abs(proba.sum(axis=1) - 1) < 1e-6).all())
        ((1797, 10), True)
        """
        return map_entries(np.exp, self.predict_log_proba(X))

    @reads_snapshot
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
        with self._in_range(instances):
            if self._targets_kind != "sparse":
                return self._log_proba_of(self._scores(instances))
            labels, log_proba = self._topk_log_proba(instances, self._n_considered(X))
        return self._csr(labels, log_proba, np.ones_like(labels, bool))

    def _log_proba_of(self, scores: np.ndarray) -> np.ndarray:
        """Turn scores of all classes into log-probabilities, in place."""
        self._calibration.log_proba(scores, self._weights())
        return scores

    def _topk_log_proba(self, instances: CsrRows, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best classes of each instance, and their log-probabilities."""
        return topk_log_proba(self._weights(), self._calibration, instances, k, self.n_jobs)

    @property
    def _calibration(self) -> Calibration:
        return Calibration(self.temperature_, tuple(self.best_map_))

    def _weights(self) -> ClassWeights:
        return ClassWeights(self.coef_, None, self.intercept_, self._prior, self._unseen_labels)

    @contextmanager
    def _in_range(self, X: CsrRows) -> Iterator[None]:
        """Turn a FloatingPointError within the body into a ValueError about X."""
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

    def _best_of_rows(
        self, X: Any, k: int, allowed: AllowedLabels, **how: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        instances = check_instances(self, X, reset=False).without_zeros()
        assert allowed.indptr is not None
        with self._in_range(instances):
            scores = self._weights().pair_scores(
                instances, allowed.indptr, allowed.labels, self.n_jobs
            )
        return best_of_pairs(allowed, scores, k)

    def _scorer_of(self, labels: np.ndarray, **how: Any) -> Scorer:
        if 2 * len(labels) > len(self.classes_):  # not worth a copy of the weights
            return super()._scorer_of(labels)
        name = type(self).__name__
        score = self._weights().scorer_of(labels, self.n_jobs, self._allowed_bytes(), name)

        def score_checked(X: Any) -> np.ndarray:
            instances = check_instances(self, X, reset=False).without_zeros()
            with self._in_range(instances):
                return score(instances)

        return score_checked

    def _feature_weights(self, instance: CsrRows, position: int) -> np.ndarray:
        weights = self.coef_[position, instance.indices]
        if self._is_binary:
            weights = weights - self.coef_[1 - position, instance.indices]
        return weights

    def _scores(self, instances: CsrRows) -> np.ndarray:
        name = type(self).__name__
        return self._weights().scores(instances, self.n_jobs, self._allowed_bytes(), name)

    def _log_threshold(self) -> float:
        """Return log(1 / (2 m)) for m labels per row: half the probability of one of m labels."""
        return float(np.log(0.5 / self._labels_per_row))

    def _topk_margins(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        instances = check_instances(self, X, reset=False).without_zeros()
        with self._in_range(instances):
            labels, log_proba = self._topk_log_proba(instances, k)
        return labels, log_proba - self._log_threshold()

    def _all_margins(self, X: Any) -> np.ndarray:
        return self._log_proba_of(self._all_scores(X)) - self._log_threshold()
