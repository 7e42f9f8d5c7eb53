"""Plots of learning and validation curves, for a y of any container."""

from typing import Any

import numpy as np
import sklearn.model_selection

from sklearn_xc.metrics.scorers import AtKScorer, get_scorer
from sklearn_xc.model_selection._learning_curve import learning_curve
from sklearn_xc.model_selection._validation_curve import validation_curve

#: Arguments of ``plot`` besides the name.
_PLOT = (
    "ax", "negate_score", "score_type", "std_display_style", "line_kw", "fill_between_kw",
    "errorbar_kw",
)  # fmt: skip


class LearningCurveDisplay(sklearn.model_selection.LearningCurveDisplay):
    """Plot of the scores on training sets of increasing size.

    Like :class:`sklearn.model_selection.LearningCurveDisplay`, which documents the attributes and
    ``plot``. Here ``from_estimator`` also takes a sparse indicator and the scorings of
    :func:`~sklearn_xc.metrics.get_scorer`. Needs matplotlib.

    Parameters
    ----------
    train_sizes : ndarray of shape (n_sizes,)
        Numbers of training rows.
    train_scores, test_scores : ndarray of shape (n_sizes, n_splits)
        The scores.
    score_name : str, default=None
        Label of the vertical axis.

    Examples
    --------
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> from sklearn_xc.model_selection import LearningCurveDisplay
    >>> X, Y = make_xc_classification(
    ...     n_samples=500, n_features=300, n_labels=50, random_state=0, return_X_y=True
    ... )
    >>> display = LearningCurveDisplay.from_estimator(
    ...     OvALinearXC(), X, Y, cv=2, scoring="P@1", train_sizes=[50, 250]
    ... )
    >>> display.train_sizes, display.ax_.get_ylabel()
    (array([ 50, 250]), 'P@1')
    >>> few, many = display.test_scores.mean(axis=1)
    >>> bool(many > few + 0.1)
    True
    """

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **arguments: Any) -> Any:
        """Return the plot of :func:`~sklearn_xc.model_selection.learning_curve`.

        Parameters
        ----------
        estimator : estimator
            Cloned and fitted for each size in each fold.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : {array-like, sparse matrix} of shape (n_samples,) or (n_samples, n_labels)
            The labels.
        **arguments : dict
            `score_name` and other arguments of ``plot``; all others go to
            :func:`~sklearn_xc.model_selection.learning_curve`. `fit_params` is passed as its
            `params`.

        Returns
        -------
        LearningCurveDisplay
        """
        plot, name, arguments = _divide(arguments)
        sizes, train, test = learning_curve(estimator, X, y, **arguments)
        found = cls(train_sizes=sizes, train_scores=train, test_scores=test, score_name=name)
        return found.plot(**plot)


class ValidationCurveDisplay(sklearn.model_selection.ValidationCurveDisplay):
    """Plot of the scores for several values of one parameter.

    Like :class:`sklearn.model_selection.ValidationCurveDisplay`, which documents the attributes
    and ``plot``. Here ``from_estimator`` also takes a sparse indicator and the scorings of
    :func:`~sklearn_xc.metrics.get_scorer`. Needs matplotlib.

    Parameters
    ----------
    param_name : str
        The parameter.
    param_range : array-like of shape (n_values,)
        Its values.
    train_scores, test_scores : ndarray of shape (n_values, n_splits)
        The scores.
    score_name : str, default=None
        Label of the vertical axis.

    Examples
    --------
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> from sklearn_xc.model_selection import ValidationCurveDisplay
    >>> X, Y = make_xc_classification(
    ...     n_samples=500, n_features=300, n_labels=50, random_state=0, return_X_y=True
    ... )
    >>> display = ValidationCurveDisplay.from_estimator(
    ...     OvALinearXC(), X, Y, cv=2, scoring="P@1", param_name="C", param_range=[0.03, 1.0]
    ... )
    >>> display.param_range
    array([0.03, 1.  ])
    >>> small, large = display.test_scores.mean(axis=1)
    >>> bool(large > small + 0.1)
    True
    """

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, param_name: str, param_range: Any, **arguments: Any
    ) -> Any:
        """Return the plot of :func:`~sklearn_xc.model_selection.validation_curve`.

        Parameters
        ----------
        estimator : estimator
            Cloned and fitted for each value in each fold.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : {array-like, sparse matrix} of shape (n_samples,) or (n_samples, n_labels)
            The labels.
        param_name : str
            The parameter.
        param_range : array-like of shape (n_values,)
            Its values.
        **arguments : dict
            `score_name` and other arguments of ``plot``; all others go to
            :func:`~sklearn_xc.model_selection.validation_curve`. `fit_params` is passed as its
            `params`.

        Returns
        -------
        ValidationCurveDisplay
        """
        plot, name, arguments = _divide(arguments)
        train, test = validation_curve(
            estimator, X, y, param_name=param_name, param_range=param_range, **arguments
        )
        found = cls(
            param_name=param_name,
            param_range=np.asarray(param_range),
            train_scores=train,
            test_scores=test,
            score_name=name,
        )
        return found.plot(**plot)


def _divide(arguments: dict[str, Any]) -> tuple[dict[str, Any], str, dict[str, Any]]:
    """Return the arguments of ``plot``, the name of the score, and those of the curve."""
    plot = {name: value for name, value in arguments.items() if name in _PLOT}
    others = {name: value for name, value in arguments.items() if name not in _PLOT}
    name = others.pop("score_name", None)
    if "fit_params" in others:
        others["params"] = others.pop("fit_params")
    if name is None:
        name = _name_of(others.get("scoring"), bool(plot.get("negate_score")))
    return plot, name, others


def _name_of(scoring: Any, is_negated: bool) -> str:
    """Return the name of a score, scikit-learn's as scikit-learn writes them on axes."""
    scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
    if isinstance(scorer, AtKScorer):
        return f"Negative {scorer.name}" if is_negated else scorer.name
    name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")
    if name.startswith("neg_"):
        name = name.removeprefix("neg_") if is_negated else f"negative {name.removeprefix('neg_')}"
    elif is_negated:
        name = f"negative {name}"
    return name.replace("_", " ").capitalize()
