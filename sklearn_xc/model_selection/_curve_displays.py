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
    """Plot of the scores on training sets of growing size.

    :class:`sklearn.model_selection.LearningCurveDisplay`, which see for attributes and ``plot``,
    but ``from_estimator`` takes a sparse indicator, and the scorings of
    :func:`~sklearn_xc.metrics.get_scorer`. Needs matplotlib.

    Parameters
    ----------
    train_sizes : ndarray of shape (n_sizes,)
        Numbers of training rows.
    train_scores, test_scores : ndarray of shape (n_sizes, n_splits)
        The scores.
    score_name : str, default=None
        For the vertical axis.
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
            `score_name`, and others of ``plot``; all else goes to
            :func:`~sklearn_xc.model_selection.learning_curve`. `fit_params` is its `params`.

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

    :class:`sklearn.model_selection.ValidationCurveDisplay`, which see for attributes and ``plot``,
    but ``from_estimator`` takes a sparse indicator, and the scorings of
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
        For the vertical axis.
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
            `score_name`, and others of ``plot``; all else goes to
            :func:`~sklearn_xc.model_selection.validation_curve`. `fit_params` is its `params`.

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
