"""Answers of a linear model: scores and the best labels."""

from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._allowed_labels import AllowedLabels
from sklearn_xc._best_allowed import Scorer, best_of_pairs
from sklearn_xc._checks import check_instances
from sklearn_xc._data import CsrRows
from sklearn_xc._declared_state import Number, Record, declares
from sklearn_xc._state import reads_one_state, sharing
from sklearn_xc.base import XCClassifier
from sklearn_xc.weights.label_weights import LabelWeights

Model = TypeVar("Model", bound="LinearModel")


@declares(
    # Of two classes the second has weights.
    _weights=Record(
        "LabelWeights", "CompactLabelWeights",
        labels=lambda model: 1 if model._is_binary else "labels",
    ),
    _is_logistic=Number("bool"),
)  # fmt: skip
class LinearModel(XCClassifier):
    """Scores, top-k and explanations from sparse weights, ``_weights``, that ``fit`` sets."""

    @property
    def coef_(self) -> sp.csr_array:
        """Weights after pruning, read-only csr_array of shape (n_labels, n_features)."""
        held = self._fitted_weights("coef_").coef
        coef = sp.csr_array(held.shape, dtype=held.dtype)
        coef.data, coef.indices, coef.indptr = (
            array.view() for array in (held.data, held.indices, held.indptr)
        )
        for array in (coef.data, coef.indices, coef.indptr):
            array.flags.writeable = False
        return coef

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts, ndarray of shape (n_labels,)."""
        return self._fitted_weights("intercept_").intercept

    def _fitted_weights(self, name: str) -> LabelWeights:
        try:
            return self._weights
        except AttributeError:
            raise AttributeError(f"{name}: this {type(self).__name__} is not fitted yet.") from None

    @reads_one_state
    def compact(self: Model) -> Model:
        """Return the same model with rounded weights that take a quarter of the memory.

        A weight takes one byte, and its label about another, both in memory and in a folder that
        ``save`` writes. Rows are scored directly from this form. Precision changes by about a
        tenth of a point at most, up or down. The original model is not changed.

        Returns
        -------
        estimator
            A model that predicts as if its weights were its ``coef_``, does everything that this
            one does, and can be fitted again.

        Notes
        -----
        A weight w moves by at most ``0.0112 sqrt(|w| m) + 0.00007 m``, where m is the largest
        magnitude among the weights of its feature. ``coef_``, ``explain`` and ``candidates=``
        need full-size weights by label, which are made in memory on first use.

        Examples
        --------
        >>> from sklearn_xc import OvALinearXC
        >>> from sklearn_xc.datasets import make_xc_classification
        >>> X, Y = make_xc_classification(
        ...     n_samples=500, n_features=300, n_labels=50, random_state=0, return_X_y=True
        ... )
        >>> clf = OvALinearXC().fit(X, Y)
        >>> small = clf.compact()
        >>> is_same = small.predict_topk(X, k=1)[0] == clf.predict_topk(X, k=1)[0]
        >>> bool(is_same.mean() > 0.98)
        True
        """
        check_is_fitted(self)
        return sharing(self, vars(self) | {"_weights": self._weights.compact()})

    def _topk_scores(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        instances = check_instances(self, X, reset=False)
        if not self._is_binary:
            return self._weights.topk(instances, k, self.n_jobs, type(self).__name__)
        score = self._binary_scores(instances)
        second = score > 0
        labels = np.full((len(score), max(k, 2)), -1, np.int64)
        scores = np.full((len(score), max(k, 2)), -np.inf, score.dtype)
        labels[:, 0], labels[:, 1] = second, ~second
        scores[:, 0], scores[:, 1] = np.abs(score), -np.abs(score)
        return labels[:, :k], scores[:, :k]

    def _all_scores(self, X: Any) -> np.ndarray:
        instances = check_instances(self, X, reset=False)
        if self._is_binary:
            return self._binary_scores(instances)[:, None]
        name = type(self).__name__
        return self._weights.scores(instances, self.n_jobs, self._allowed_bytes(), name)

    def _best_among(
        self, X: Any, k: int, labels: np.ndarray, **how: Any
    ) -> tuple[np.ndarray, np.ndarray] | None:
        if 2 * len(labels) <= len(self.classes_):
            return None
        instances, who = check_instances(self, X, reset=False), type(self).__name__
        return self._weights.among(labels).topk(instances, k, self.n_jobs, who)

    def _best_of_rows(
        self, X: Any, k: int, allowed: AllowedLabels, **how: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        instances, who = check_instances(self, X, reset=False), type(self).__name__
        assert allowed.indptr is not None
        scores = self._weights.pair_scores(instances, allowed.indptr, allowed.labels, who)
        return best_of_pairs(allowed, scores, k)

    def _scorer_of(self, labels: np.ndarray, **how: Any) -> Scorer:
        if 2 * len(labels) > len(self.classes_):  # not worth a copy of the weights
            return super()._scorer_of(labels)
        score = self._weights.scorer_of(
            labels, self.n_jobs, self._allowed_bytes(), type(self).__name__
        )
        return lambda X: score(check_instances(self, X, reset=False))

    def _binary_scores(self, instances: CsrRows) -> np.ndarray:
        """Return the scores of the second of two classes, (n,); never for one that is unseen."""
        scores = self._weights.scores(instances, self.n_jobs, who=type(self).__name__)[:, 0]
        if not self._unseen_labels.size:
            return scores
        least = np.finfo(scores.dtype).tiny
        sign = 1 if self._unseen_labels[0] == 0 else -1
        return sign * np.maximum(np.abs(scores), least)

    def _feature_weights(self, instance: CsrRows, position: int) -> np.ndarray:
        if self._is_binary:
            weights = self.coef_[[0]].toarray()[0][instance.indices]
            return weights if position == 1 else -weights
        return self.coef_[[position]].toarray()[0][instance.indices]
