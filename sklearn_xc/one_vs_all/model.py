"""Predictions of a linear model: scores, the best labels, probabilities."""

from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._input.checks import check_instances
from sklearn_xc._input.data import CsrRows, in_parts, read_only
from sklearn_xc._labels.allowed import AllowedLabels
from sklearn_xc._labels.best_allowed import Scorer, best_of_pairs
from sklearn_xc._state.fitted import reads_snapshot, shallow_copy
from sklearn_xc._state.schema import Number, Record, declares
from sklearn_xc._weights.label_weights import LabelWeights
from sklearn_xc.base import XCClassifier, map_entries
from sklearn_xc.one_vs_all.losses import Logistic

Model = TypeVar("Model", bound="LinearModel")

#: Scores of all classes that are held at a time where the probabilities of a row must sum to 1.
_CHUNK_SCORES = 2**22


def _is_logistic(model: Any) -> bool:
    """Tell whether the fitted loss is the logistic one; before a fit, whether it is asked for."""
    is_logistic = vars(model).get("_is_logistic")
    if is_logistic is None:
        is_logistic = model.loss == "logistic" or type(model.loss) is Logistic
    if not is_logistic:
        caller = type(model).__name__
        raise AttributeError(
            f"{caller}: probabilities are those of loss='logistic'. Got loss={model.loss!r}, for "
            f"which TopKCalibrator({caller}(...)) learns them."
        )
    return True


@declares(
    # Of two classes the second has weights.
    _weights=Record(
        "LabelWeights",
        labels=lambda model: 1 if model._is_binary else "labels",
    ),
    _is_logistic=Number("bool"),
)
class LinearModel(XCClassifier):
    """Predictions from sparse weights.

    A subclass has a parameter ``loss``; its ``fit`` sets ``_weights`` and ``_is_logistic``.
    """

    @property
    def coef_(self) -> sp.csr_array:
        """Weights after pruning, read-only csr_array of shape (n_labels, n_features)."""
        held = self._fitted_weights("coef_").coef
        coef = sp.csr_array(held.shape, dtype=held.dtype)
        arrays = held.data, held.indices, held.indptr
        coef.data, coef.indices, coef.indptr = map(read_only, arrays)
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

    @reads_snapshot
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
        return shallow_copy(self, vars(self) | {"_weights": self._weights.compact()})

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
        instances = check_instances(self, X, reset=False)
        caller = type(self).__name__
        return self._weights.among(labels).topk(instances, k, self.n_jobs, caller)

    def _best_of_rows(
        self, X: Any, k: int, allowed: AllowedLabels, **how: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        instances = check_instances(self, X, reset=False)
        caller = type(self).__name__
        assert allowed.indptr is not None
        scores = self._weights.pair_scores(instances, allowed.indptr, allowed.labels, caller)
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
        scores = self._weights.scores(instances, self.n_jobs, caller=type(self).__name__)[:, 0]
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

    @available_if(_is_logistic)
    @reads_snapshot
    def predict_proba(self, X: Any) -> Any:
        """Return the probability that each label is relevant, for ``loss="logistic"`` only.

        A label's probability is ``1 / (1 + exp(-score))``, independent of the other labels. This
        is what the logistic loss estimates, but for the effects of the ridge, of pruning, and of
        `class_weight`, which counts labels as more or less frequent than they are.
        :class:`~sklearn_xc.TopKCalibrator` learns to correct for these from held-out rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.

        Returns
        -------
        ndarray of shape (n, n_labels), or CSR of shape (n, n_labels)
            After a sparse fit, a CSR with the probabilities of the ``top_k`` best labels of each
            row: a missing entry means that it was not scored, not that it is zero. After a 1-D
            fit, rows are divided by their sums. Labels without a training instance have 0.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_xc import OvALinearXC
        >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
        >>> Y = np.array([[1, 0], [0, 1], [1, 1]])
        >>> clf = OvALinearXC(loss="logistic", C=30.0).fit(X, Y)
        >>> clf.predict_proba(X).round(1)
        array([[0.9, 0.2],
               [0.1, 0.9],
               [1. , 0.9]])
        """
        return map_entries(np.exp, self.predict_log_proba(X))

    @available_if(_is_logistic)
    @reads_snapshot
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the entries of :meth:`predict_proba`, -inf for 0.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.

        Returns
        -------
        ndarray of shape (n, n_labels), or CSR of shape (n, n_labels)
        """
        scores = self.decision_function(X)
        if sp.issparse(scores):
            scores.data = _log_sigmoid(scores.data)
            return scores
        if self._is_binary:
            scores = np.stack([-scores, scores], axis=1)
        logs = _log_sigmoid(scores)
        logs[:, self._unseen_labels] = -np.inf
        if self._targets_kind == "classes":
            logs -= logsumexp(logs, axis=1, keepdims=True)
        return logs

    @available_if(_is_logistic)
    @reads_snapshot
    def predict_proba_topk(
        self, X: Any, k: int = 5, *, candidates: Any = None, exclude: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best labels of each instance, and their probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.
        k : int, default=5
            How many labels; may exceed their number.
        candidates, exclude : sequence, or indicator of shape (n, n_labels), default=None
            The labels that may or may not be returned, as in :meth:`predict_topk`. They do not
            affect the probability of a label.

        Returns
        -------
        indices : ndarray of int64 of shape (n, k)
            As in :meth:`predict_topk`.
        probabilities : ndarray of float of shape (n, k)
            Padded with 0.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_xc import OvALinearXC
        >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
        >>> Y = np.array([[1, 0], [0, 1], [1, 1]])
        >>> clf = OvALinearXC(loss="logistic", C=30.0).fit(X, Y)
        >>> labels, probabilities = clf.predict_proba_topk(X, k=1)
        >>> labels.ravel(), probabilities.ravel().round(1)
        (array([0, 1, 0]), array([0.9, 0.9, 1. ]))
        """
        check_is_fitted(self)
        labels, scores = self.predict_topk(X, k, candidates=candidates, exclude=exclude)
        logs = _log_sigmoid(scores)
        if self._targets_kind == "classes" and not self._is_binary:
            size = max(1, _CHUNK_SCORES // len(self.classes_))
            for at, part in enumerate(in_parts(X, len(labels), size)):
                of_all = _log_sigmoid(self.decision_function(part))
                of_all[:, self._unseen_labels] = -np.inf
                own = slice(at * size, at * size + len(of_all))
                logs[own] -= logsumexp(of_all, axis=1, keepdims=True)
        logs[(labels < 0) | np.isin(labels, self._unseen_labels)] = -np.inf
        return labels, np.exp(logs)


def _log_sigmoid(scores: np.ndarray) -> np.ndarray:
    """Return ``log(1 / (1 + exp(-scores)))``, which neither overflows nor becomes -inf too soon."""
    return -np.logaddexp(scores.dtype.type(0.0), -scores)
