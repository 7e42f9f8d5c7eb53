"""A classifier around another one, with something learned from its answers to held-out rows."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._input.arguments import check_count
from sklearn_xc._input.checks import check_rows, check_targets
from sklearn_xc._input.data import (
    DenseRows,
    LabelFrequencies,
    Targets,
    check_sparse,
    features_of,
    is_blank,
    n_rows,
    shares_any,
)
from sklearn_xc._labels.allowed import AllowedLabels
from sklearn_xc._labels.changes import estimator_with_classes
from sklearn_xc._labels.explanation import Explanation
from sklearn_xc._labels.names import positions_of
from sklearn_xc._parallel.progress import Fit
from sklearn_xc._state.fitted import reads_snapshot
from sklearn_xc._state.schema import Array, Estimator, Holds, Record, declares
from sklearn_xc._topk import classes_of, unwrap
from sklearn_xc.base import XCClassifier, map_entries
from sklearn_xc.ensemble.held_out import (
    PAIR_BYTES,
    HeldOutAnswers,
    LearnsFromHeldOut,
    Members,
)
from sklearn_xc.ensemble.members import Answers, tagger_in
from sklearn_xc.metrics.frequency_groups import group_of


@declares(
    _frequencies=Record("LabelFrequencies", optional=True),
    _known_features=Array("bool", lambda model: 0 if model._frequencies is None else "features"),
)
class AnswersBlankRows(XCClassifier):
    """Answers instances without known features by the frequencies of the labels."""

    #: None if members make features of X themselves.
    _frequencies: LabelFrequencies | None
    #: Whether some training instance has each feature, bool of shape (n_features,).
    _known_features: np.ndarray
    cv: Any
    predict_proba: Callable[..., Any]

    @reads_snapshot
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the entries of :meth:`predict_proba`, -inf for 0.

        Parameters
        ----------
        X : object of n instances
            As in fit.

        Returns
        -------
        ndarray of shape (n, n_labels), or CSR of shape (n, n_labels)
        """
        return map_entries(np.log, self.predict_proba(X))

    def _keep_frequencies(self, X: Any, held_out: HeldOutAnswers, *, reads_matrix: bool) -> None:
        self._frequencies = None
        self._known_features = np.empty(0, bool)
        if not reads_matrix:
            return
        instances = check_rows(self, X, reset=False)
        n_labels = len(self.classes_)
        if isinstance(self.cv, str):  # it is not known which features prefit members have seen
            counts = self.label_counts_.astype(np.float64)
            total = float(self.n_samples_fit_)
            self._frequencies = LabelFrequencies(counts, total, np.zeros(n_labels), 0.0)
            self._known_features = np.ones(instances.shape[1], bool)
            return
        weight = held_out.weight
        rows, labels = held_out.truth.nonzero()
        self._frequencies = LabelFrequencies.of(rows, labels, weight, is_blank(instances), n_labels)
        self._known_features = features_of(instances, np.flatnonzero(weight > 0))

    def _are_blank(self, X: Any) -> np.ndarray:
        """Return which instances have no known feature, bool of shape (n,)."""
        if self._frequencies is None:
            return np.zeros(n_rows(X, type(self).__name__), bool)
        X = check_rows(self, X, reset=False)
        if isinstance(X, DenseRows):
            return np.asarray(~X.values[:, self._known_features].any(axis=1))
        return ~shares_any(X.without_zeros(), self._known_features)

    def _blank_probabilities(self) -> np.ndarray:
        """Return the probabilities of the labels of an instance without known features."""
        assert self._frequencies is not None
        return self._frequencies.of_blank() / self._frequencies.total


def reads_features(estimator: Any) -> bool:
    """Return whether X is a matrix of features to an estimator of this package.

    Pipelines may make features of anything, and take a row of zeros for one like any other.
    """
    is_outer = any(hasattr(estimator, name) for name in ("estimators", "steps"))
    return isinstance(estimator, XCClassifier) and not is_outer and estimator._reads_matrix


@declares(
    estimator_=Estimator(labels="labels", features="features"),
    group_edges_=Array(
        "int64", None, least=1, ascending=True, below=lambda model: model.n_samples_fit_ + 1
    ),
    _classes_fit=Holds("all classes of estimator_ are in classes_"),
)
class WrappedClassifier(LearnsFromHeldOut):
    """Scores and ranks as ``estimator_`` does.

    A subclass calls ``_learn_held_out`` in fit, and has the parameters ``estimator``, ``cv``,
    ``top_k``, ``n_jobs`` and ``random_state``.
    """

    estimator: Any
    estimator_: Any
    top_k: int
    #: Whether the order of labels is not that of ``estimator_``.
    _ranks_anew = False

    @reads_snapshot
    def predict(self, X: Any) -> Any:
        """Return the labels of each instance; the container follows that of y in fit.

        Parameters
        ----------
        X : object of n instances
            As in fit.

        Returns
        -------
        ndarray of shape (n,), ndarray of shape (n, n_labels), or CSR of shape (n, n_labels)
            After a 1-D fit the class that ``estimator_`` predicts. Otherwise an indicator of the
            labels past the threshold; after a sparse fit only the ``top_k`` best of each row are
            considered.
        """
        check_is_fitted(self)
        if self._targets_kind == "classes" and not self._ranks_anew:
            check_sparse(X, "X", type(self).__name__)
            return self.estimator_.predict(X)
        return super().predict(X)

    @available_if(lambda self: hasattr(self._inner, "explain"))
    def explain(
        self, x: Any, label: Any, *, feature_names: Any = None, n_features: int | None = 10
    ) -> Explanation:
        """Return the features that made the score of ``estimator_`` for one label and instance.

        Parameters
        ----------
        x : {array-like, sparse matrix} of shape (1, n_features) or (n_features,)
            The instance.
        label : object
            A member of ``classes_``.
        feature_names : array-like of str of shape (n_features,), default=None
            Names; None takes those of fit, else column numbers.
        n_features : int or None, default=10
            How many features to list at most; None for all with a contribution.

        Returns
        -------
        Explanation
            As of the estimator.
        """
        check_is_fitted(self)
        return self.estimator_.explain(x, label, feature_names=feature_names, n_features=n_features)

    @property
    def _reads_matrix(self) -> bool:
        return getattr(self.estimator, "_reads_matrix", True)

    @property
    def _classes_fit(self) -> bool:
        known = classes_of(self.estimator_)
        found = positions_of(known, self.classes_, are_columns=self._has_columns)
        return bool((found >= 0).all())

    @property
    def _inner(self) -> Any:
        """The estimator, fitted or not."""
        return getattr(self, "estimator_", self.estimator)

    @property
    def _also_lacking(self) -> str:  # type: ignore[override]
        return getattr(unwrap(self.estimator_, None)[0], "_also_lacking", "")

    def _name_labels(self, classes: np.ndarray) -> None:
        self.classes_ = classes
        self.estimator_ = estimator_with_classes(self.estimator_, classes)

    def _routed_parts(self) -> dict[str, Any]:
        return {} if isinstance(self.cv, str) else {"estimator": self.estimator}

    def _part_name(self, name: str) -> str:
        return name

    def _learn_held_out(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        params: dict[str, Any],
        fit: Fit,
        *,
        of_classes: bool = True,
    ) -> HeldOutAnswers:
        """Fit ``estimator_``, and return its ``top_k`` best labels of held-out rows.

        Without `of_classes` no row is held out of a 1-D y.
        """
        caller = type(self).__name__
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            raise TypeError(f"{caller}: estimator must be a classifier. Got {self.estimator!r}.")
        if tagger_in(self.estimator) is not None:
            raise TypeError(
                f"{caller}: estimator must take y as a classifier does, and this one takes names. "
                f"Put {caller} inside: TextClassifierXC(vectorizer, {caller}(classifier))."
            )
        members = [("estimator", self.estimator)]
        held_out, _, progress = self._fit_held_out(
            members, X, y, sample_weight, params, fit, of_classes=of_classes
        )
        progress.close()
        return held_out

    def _report(self, began: float, **columns: np.ndarray) -> dict[str, np.ndarray]:
        """Return ``fit_report_``, a row for each group of labels, of a fit that began then."""
        edges = self.group_edges_
        n_groups = len(edges) + 1
        return {
            "least_frequency": np.concatenate(([0], edges)),
            "n_labels": np.bincount(group_of(self.label_counts_, edges), minlength=n_groups),
            **columns,
            "seconds": np.full(n_groups, (time.perf_counter() - began) / n_groups),
        }

    def _check_prefit(self, y: Any, n: int) -> Targets:
        caller = type(self).__name__
        known = classes_of(self.estimator)
        is_indicator = sp.issparse(y) or (np.ndim(y) == 2 and np.shape(y)[1] > 1)
        if is_indicator and np.shape(y)[1] != len(known):
            raise ValueError(
                f"{caller}: y must have a column for each of the {len(known)} labels of the fitted "
                f"estimator. Got shape {np.shape(y)}."
            )
        return check_targets(self, y, n, known)

    def _depth(self) -> int:
        top_k = check_count(self.top_k, f"{type(self).__name__}: top_k")
        return min(top_k, len(self.classes_))

    def _pair_size(self, n_members: int) -> tuple[int, int, str]:
        return self._depth(), PAIR_BYTES, "top_k"

    def _keep_members(self, fitted: list[tuple[str, Any]]) -> None:
        self.estimator_ = fitted[0][1]
        if self._has_columns and np.array_equal(self.classes_, np.arange(len(self.classes_))):
            self.classes_ = classes_of(self.estimator_)  # which may have been given names

    def _ask_members(self, members: Members, X: Any) -> list[Answers]:
        return [self._ask_member(*members[0], X, self._depth())]

    def _allowed_topk(
        self, X: Any, k: int, allowed: AllowedLabels, **how: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._ask_member("estimator", self.estimator_, X, k, allowed)

    def _topk_scores(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        return self._ask_member("estimator", self.estimator_, X, k)

    def _all_scores(self, X: Any) -> np.ndarray:
        n, n_labels = self._require_dense(X, 32, "the dense scores", "predict_topk")
        own = classes_of(self.estimator_)
        if hasattr(self.estimator_, "decision_function") and len(own) == n_labels:
            scores = self.estimator_.decision_function(X)
            if not sp.issparse(scores):
                scores = np.asarray(scores)
                return scores[:, None] if scores.ndim == 1 else scores
        labels, found = self._ask_member("estimator", self.estimator_, X, n_labels)
        scores = np.full((n, n_labels), -np.inf, found.dtype)
        at, ranks = np.nonzero(labels >= 0)
        scores[at, labels[at, ranks]] = found[at, ranks]
        return scores[:, 1:] - scores[:, :1] if self._is_binary else scores
