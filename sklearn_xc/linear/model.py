"""Answers of a linear model: scores, the best labels, and what made a score."""

from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._arguments import check_count, refuse_disguised
from sklearn_xc._checks import check_instances
from sklearn_xc._data import CsrRows
from sklearn_xc._state import reads_one_state
from sklearn_xc.base import XCClassifier
from sklearn_xc.linear.explanation import Explanation
from sklearn_xc.weights.anytime import AnytimeTopK, TimeBudget
from sklearn_xc.weights.label_weights import LabelWeights


class LinearModel(XCClassifier):
    """Scores, top-k and explanations from sparse weights, ``_weights``, that ``fit`` sets."""

    @property
    def coef_(self) -> sp.csr_array:
        """Weights after pruning, csr_array of shape (n_labels, n_features)."""
        return self._fitted_weights("coef_").coef

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts, ndarray of shape (n_labels,)."""
        return self._fitted_weights("intercept_").intercept

    def _fitted_weights(self, name: str) -> LabelWeights:
        try:
            return self.__dict__["_weights"]
        except KeyError:
            raise AttributeError(f"{name}: this {type(self).__name__} is not fitted yet.") from None

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
        """Return the best labels that can be found in a time per instance, best first.

        Features are read in a fixed order, those first that move scores most for their work. When
        the time is up, the most promising labels are evaluated to the end, and an upper bound on
        the features not read says what may have been missed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.
        k : int, default=5
            How many labels; may exceed their number.
        time_budget : float
            Seconds per instance, for reading weights: what comes before and after, some tens of
            microseconds and the selection among n_labels scores, is not in it. May be 0 or inf.

        Returns
        -------
        indices, scores : ndarray of int64 and float, of shape (n, k)
            As of ``predict_topk``; the scores are those of all features.
        exact : ndarray of bool of shape (n,)
            Whether the row's labels and their order are those of ``predict_topk``. Always after an
            infinite budget, when all arrays equal its own, bit for bit.
        bound_on_missed_score : ndarray of float64 of shape (n,)
            No label that is not returned scores more. Where `exact`, at most the last score.

        Raises
        ------
        ValueError
            If `k` is not a positive integer or `time_budget` no number of at least 0.

        Notes
        -----
        Source: the bound is that of MaxScore [1]_; differs in that it does not skip postings but
        judges an early stop. One thread, row after row.

        References
        ----------
        .. [1] H. Turtle and J. Flood, "Query evaluation: strategies and optimizations",
           Information Processing and Management 31, 1995.
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

    @reads_one_state
    def explain(
        self, x: Any, label: Any, *, feature_names: Any = None, n_features: int | None = 10
    ) -> Explanation:
        """Return the features that made the score of one label for one instance.

        Parameters
        ----------
        x : {array-like, sparse matrix} of shape (1, n_features) or (n_features,)
            The instance.
        label : object
            A member of ``classes_``: a class after a 1-D fit, else a column number.
        feature_names : array-like of str of shape (n_features,), default=None
            Names, for instance ``vectorizer.get_feature_names_out()``. None takes
            ``feature_names_in_`` where fit saw names, else column numbers.
        n_features : int or None, default=10
            How many features to return at most; None for all with a contribution.

        Returns
        -------
        Explanation
            Features by falling magnitude of their contribution; ``print`` shows a table.

        Raises
        ------
        ValueError
            If `x` is not one instance, or `label` is unknown.
        """
        check_is_fitted(self)
        who = type(self).__name__
        if n_features is not None:
            n_features = check_count(n_features, f"{who}: n_features")
        instance = check_instances(self, _as_row(x, who), reset=False).without_zeros()
        if instance.shape[0] != 1:
            raise ValueError(f"{who}: explain takes one instance, x has {instance.shape[0]} rows.")
        row, sign = self._position(label), 1.0
        if self._is_binary:
            row, sign = 0, 1.0 if row == 1 else -1.0
        if feature_names is None:
            feature_names = getattr(self, "feature_names_in_", np.arange(instance.shape[1]))
        names = _check_names(feature_names, instance.shape[1], f"{who}: feature_names")
        weights = sign * self.coef_[[row]].toarray()[0][instance.indices]
        contributions = instance.data * weights
        intercept = sign * float(self._weights.base_of(instance, row))
        order = np.argsort(-np.abs(contributions), kind="stable")
        order = order[contributions[order] != 0][:n_features]
        return Explanation(
            label=label,
            score=float(contributions.sum()) + intercept,
            intercept=intercept,
            features=names[instance.indices[order]],
            values=instance.data[order],
            weights=weights[order],
            contributions=contributions[order],
        )

    def _position(self, label: Any) -> int:
        """Return the position of a label in ``classes_``."""
        is_strange = np.ndim(label) > 0 or (
            isinstance(label, bool | np.bool_) and self.classes_.dtype.kind != "b"
        )
        places = np.flatnonzero(self.classes_ == label) if not is_strange else np.empty(0, np.intp)
        if len(places) != 1:
            raise ValueError(
                f"{type(self).__name__}: label {label!r} is not one of the {len(self.classes_)} in "
                "classes_."
            )
        if places[0] in self._unseen_labels:
            raise ValueError(
                f"{type(self).__name__}: label {label!r} has no training instance: no feature "
                "makes a score."
            )
        return int(places[0])


def _as_row(x: Any, who: str) -> Any:
    """Return one instance in two dimensions; anything else as it is."""
    try:
        is_flat = not sp.issparse(x) and np.ndim(x) == 1
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"{who}: x must be one instance of numbers.") from error
    if not is_flat:
        return x
    refuse_disguised(x, f"{who}: x")
    return np.asarray(x).reshape(1, -1)


def _check_names(feature_names: Any, n_features: int, name: str) -> np.ndarray:
    """Return names of features as an array of texts or integers."""
    refuse_disguised(feature_names, name)
    try:
        names = np.asarray(feature_names)
    except ValueError as error:
        raise ValueError(f"{name} must be {n_features} texts.") from error
    if names.shape != (n_features,):
        raise ValueError(f"{name} has shape {names.shape}, expected ({n_features},).")
    texts = names.dtype.kind in "UTiu" or (
        names.dtype == object and all(isinstance(one, str) for one in names)
    )
    if not texts:
        raise ValueError(f"{name} must be texts. Got {names.tolist()[0]!r} (dtype {names.dtype}).")
    return names


def _check_seconds(time_budget: Any, name: str) -> float:
    valid = isinstance(time_budget, Real) and not isinstance(time_budget, bool | np.timedelta64)
    if not valid or not time_budget >= 0:
        raise ValueError(f"{name} must be a number of seconds of at least 0. Got {time_budget!r}.")
    return float(time_budget) if time_budget < 1e300 else np.inf
