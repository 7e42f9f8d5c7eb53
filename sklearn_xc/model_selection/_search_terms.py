"""What the searches add to scikit-learn's: our scorings, checked folds, ``predict_topk``."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._explanation import Explanation
from sklearn_xc._explanation_inside import explain_inside
from sklearn_xc._topk import topk, unwrap
from sklearn_xc.metrics.scorers import ManyAtKScorer, TopKScorer
from sklearn_xc.model_selection import _sparse_y
from sklearn_xc.model_selection._scoring import resolve_scoring


def _best_has(method: str) -> Callable[[Any], bool]:
    """Return whether the classifier inside the best estimator has a method."""

    def check(search: Any) -> bool:
        if not search.refit:
            raise AttributeError(
                f"{type(search).__name__}: {method} needs an estimator that was refitted. Got "
                "refit=False."
            )
        inner, _ = unwrap(getattr(search, "best_estimator_", search.estimator), None)
        return hasattr(inner, method)

    return check


class XCSearch:
    """Put before a search of scikit-learn, which reads `scoring`, `refit` and `cv` translated.

    They are replaced while scikit-learn runs, so that ``get_params`` and ``clone`` see what the
    user set, and nothing of its inside is relied upon.
    """

    scoring: Any
    refit: Any
    cv: Any
    #: Whether the score to compare by must be called "score".
    _one_score = False

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Search, and fit the best candidate to all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : {array-like, sparse matrix} of shape (n_samples,) or (n_samples, n_labels), default=None
            The labels.
        **params : dict
            As in scikit-learn: for the estimator, the splitter and the scorer.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Before any fit, for an unknown name in `scoring` or a `refit` that is not one of its
            metrics; for invalid folds, and for arguments that scikit-learn refuses.
        """
        name = type(self).__name__
        _sparse_y.refuse_malformed(name, X=X, y=y)
        if sp.issparse(y):
            _sparse_y.refuse_stratified(self.cv)
        with self._translated(cv=_sparse_y.with_checked_folds(self.cv, name)):
            return super().fit(X, y, **params)  # type: ignore[misc]

    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """Return the score of the best estimator, by the metric of `refit`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : {array-like, sparse matrix} of shape (n_samples,) or (n_samples, n_labels), default=None
            Their labels.
        **params : dict
            For the scorer, with metadata routing.

        Returns
        -------
        float
        """
        with self._translated():
            return super().score(X, y, **params)  # type: ignore[misc]

    @available_if(_best_has("predict_topk"))
    def predict_topk(
        self, X: Any, k: int = 5, *, candidates: Any = None, exclude: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best labels of each row from the best estimator, see `sklearn_xc.topk`."""
        check_is_fitted(self)
        best = self.best_estimator_  # type: ignore[attr-defined]
        return topk(best, X, k, candidates=candidates, exclude=exclude)

    @available_if(_best_has("explain"))
    def explain(
        self, x: Any, label: Any, *, feature_names: Any = None, n_features: int | None = 10
    ) -> Explanation:
        """Return the features that made the best estimator's score of one label for one instance.

        Parameters
        ----------
        x : {array-like, sparse matrix} of shape (1, n_features) or (n_features,), or str
            The instance; a text if the estimator reads texts.
        label : object
            A member of ``classes_``.
        feature_names : array-like of str of shape (n_features,), default=None
            Names of the features that the classifier sees; None takes those that the estimator
            itself knows, also from the transformers of a Pipeline.
        n_features : int or None, default=10
            How many features to list at most; None for all with a contribution.

        Returns
        -------
        Explanation
            As from the estimator.
        """
        check_is_fitted(self)
        best = self.best_estimator_  # type: ignore[attr-defined]
        return explain_inside(best, x, label, feature_names=feature_names, n_features=n_features)

    def get_metadata_routing(self) -> Any:
        """Return what the estimator, the scorer and the splitter request.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRouter
        """
        with self._translated():
            return super().get_metadata_routing()  # type: ignore[misc]

    @contextlib.contextmanager
    def _translated(self, **others: Any) -> Iterator[None]:
        scoring, refit = translate(type(self).__name__, self.scoring, self.refit)
        if self._one_score and isinstance(scoring, ManyAtKScorer | TopKScorer):
            scoring = _WithScore(scoring, refit if isinstance(refit, str) else scoring.names[0])
            refit = "score" if isinstance(refit, str) else refit
        replaced = {"scoring": scoring, "refit": refit, **others}
        before = {name: getattr(self, name) for name in replaced}
        vars(self).update(replaced)
        try:
            yield
        finally:
            vars(self).update(before)


def translate(who: str, scoring: Any, refit: Any) -> tuple[Any, Any]:
    """Return `scoring` and `refit` as scikit-learn reads them.

    A `refit` of True takes the first of several metrics.

    Raises
    ------
    ValueError
        For a name in `scoring` that nobody knows, and for a `refit` that is none of its metrics.
    """
    found = resolve_scoring(scoring)
    names = _names_of(scoring, found)
    if not names:
        return found, refit
    if isinstance(refit, str) and refit not in names:
        raise ValueError(
            f"{who}: refit must be True, False, a callable or one of the metrics "
            f"{', '.join(map(repr, names))}. Got {refit!r}."
        )
    has_several = isinstance(scoring, list | tuple | dict | TopKScorer)
    return found, names[0] if refit is True and has_several else refit


def _names_of(scoring: Any, found: Any) -> list[str]:
    """Return the metrics of a scoring, empty where only scikit-learn can tell them."""
    if isinstance(found, TopKScorer | ManyAtKScorer):
        return found.names
    if isinstance(scoring, str):
        return list(dict.fromkeys([scoring, getattr(found, "name", scoring)]))
    if isinstance(scoring, dict | list | tuple) and all(isinstance(name, str) for name in scoring):
        return list(scoring)
    return []


class _WithScore:
    """Many metrics, and one of them under the name "score" too, which halving compares by."""

    def __init__(self, scorer: Any, name: str) -> None:
        self.scorer, self.name = scorer, name

    def __call__(self, estimator: Any, X: Any, y: Any, **params: Any) -> dict[str, float]:
        values = self.scorer(estimator, X, y, **params)
        return {"score": values[self.name], **values}

    def get_metadata_routing(self) -> Any:
        return self.scorer.get_metadata_routing()

    def _accept_sample_weight(self) -> bool:
        return self.scorer._accept_sample_weight()

    def __repr__(self) -> str:
        return repr(self.scorer)
