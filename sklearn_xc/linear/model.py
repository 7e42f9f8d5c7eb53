"""Answers of a linear model: scores and the best labels."""

from numbers import Real
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._allowed_labels import AllowedLabels
from sklearn_xc._best_allowed import Scorer, best_of_pairs
from sklearn_xc._checks import check_instances
from sklearn_xc._data import CsrRows
from sklearn_xc._declared_state import Number, Record, declares
from sklearn_xc._saved import read_all
from sklearn_xc._state import reads_one_state, sharing
from sklearn_xc.base import XCClassifier
from sklearn_xc.weights.anytime import AnytimeTopK, TimeBudget
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
        magnitude among the weights of its feature. ``coef_``, ``explain``, ``candidates=`` and
        ``predict_topk_anytime`` need full-size weights by label, which are made in memory on first
        use.

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
        read_all(self)
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

    @reads_one_state
    def predict_topk_anytime(self, X: Any, k: int = 5, *, time_budget: float) -> AnytimeTopK:
        """Return the best labels found within a time budget per instance, best first.

        Features are read in a fixed order, starting with those that move scores most for their
        cost. When the time is up, the most promising labels are scored in full, and an upper bound
        on the contribution of the unread features tells what may have been missed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.
        k : int, default=5
            How many labels; may exceed their number.
        time_budget : float
            Seconds per instance for reading weights. The work before and after, some tens of
            microseconds and the selection among n_labels scores, is not included. May be 0 or inf.

        Returns
        -------
        indices, scores : ndarray of int64 and float, of shape (n, k)
            As in ``predict_topk``; scores are over all features.
        exact : ndarray of bool of shape (n,)
            Whether the row's labels and their order are those of ``predict_topk``. Always True
            after an infinite budget, when labels and scores equal those of ``predict_topk`` bit
            for bit.
        bound_on_missed_score : ndarray of float64 of shape (n,)
            No label that is not returned has a higher score. Where `exact`, it is at most the last
            score.

        Raises
        ------
        ValueError
            If `k` is not a positive integer or `time_budget` is not a number of at least 0.

        Notes
        -----
        Source: the bound of MaxScore [1]_, used here to judge an early stop instead of to skip
        postings. Rows are processed one after another, in one thread.

        References
        ----------
        .. [1] H. Turtle and J. Flood, "Query evaluation: strategies and optimizations",
           Information Processing and Management 31, 1995.

        Examples
        --------
        With a tenth of a millisecond per instance, an answer that is marked exact is that of
        ``predict_topk``:

        >>> from sklearn_xc import OvALinearXC
        >>> from sklearn_xc.datasets import make_xc_classification
        >>> X, Y = make_xc_classification(
        ...     n_samples=500, n_features=300, n_labels=50, random_state=0, return_X_y=True
        ... )
        >>> clf = OvALinearXC().fit(X, Y)
        >>> answer = clf.predict_topk_anytime(X, k=3, time_budget=1e-4)
        >>> best, _ = clf.predict_topk(X, k=3)
        >>> bool((answer.indices == best)[answer.exact].all())
        True
        >>> bool(clf.predict_topk_anytime(X, k=3, time_budget=float("inf")).exact.all())
        True
        """
        check_is_fitted(self)
        who = type(self).__name__
        budget = TimeBudget(_check_seconds(time_budget, f"{who}: time_budget"))
        k = self._check_topk_size(k, X)
        if not self._is_binary:
            instances = check_instances(self, X, reset=False)
            return self._with_unseen(self._weights.topk_anytime(instances, k, budget, who), k)
        labels, scores = self._topk_scores(X, k)  # a single problem is always solved to the end
        bound = np.full(len(labels), -np.inf) if k > 1 else scores[:, 0].astype(np.float64)
        return AnytimeTopK(labels, scores, np.ones(len(labels), bool), bound)

    def _with_unseen(self, answer: AnytimeTopK, k: int) -> AnytimeTopK:
        """Score labels without training instances as ``predict_topk`` does, and bound them."""
        labels, scores = self._unseen_last(answer.indices, answer.scores)
        n_labels = len(self.classes_)
        if not 0 < n_labels - len(self._unseen_labels) <= k:
            return answer
        missed = scores[:, k - 1].astype(np.float64)
        if k >= n_labels:
            missed[:] = -np.inf
        return AnytimeTopK(labels, scores, answer.exact, missed)

    def _feature_weights(self, instance: CsrRows, position: int) -> np.ndarray:
        if self._is_binary:
            weights = self.coef_[[0]].toarray()[0][instance.indices]
            return weights if position == 1 else -weights
        return self.coef_[[position]].toarray()[0][instance.indices]


def _check_seconds(time_budget: Any, name: str) -> float:
    valid = isinstance(time_budget, Real) and not isinstance(time_budget, bool | np.timedelta64)
    if not valid or not time_budget >= 0:
        raise ValueError(f"{name} must be a number of seconds of at least 0. Got {time_budget!r}.")
    return float(time_budget) if time_budget < 1e300 else np.inf
