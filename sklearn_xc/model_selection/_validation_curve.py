"""``validation_curve`` for a y of any container."""

from typing import Any

import numpy as np
import sklearn.model_selection

from sklearn_xc.model_selection import _sparse_y
from sklearn_xc.model_selection._scoring import resolve_single_scoring


def validation_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    param_name: str,
    param_range: Any,
    groups: Any = None,
    cv: Any = None,
    scoring: Any = None,
    n_jobs: int | None = None,
    pre_dispatch: int | str = "all",
    verbose: int = 0,
    error_score: Any = np.nan,
    params: dict | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of an estimator for several values of one parameter.

    Like :func:`sklearn.model_selection.validation_curve`, which documents all details, with the
    same differences as :func:`~sklearn_xc.model_selection.cross_validate`.

    Parameters
    ----------
    estimator : estimator
        Cloned and fitted for each value in each fold.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows.
    y : {array-like, sparse matrix} of shape (n_samples,) or (n_samples, n_labels)
        The labels.
    param_name : str
        The parameter, such as "C", or "ovalinearxc__C" within a Pipeline.
    param_range : array-like of shape (n_values,)
        Its values.
    groups : array-like of shape (n_samples,), default=None
        Groups for the splitter.
    cv : int, splitter or iterable, default=None
        Five folds for None.
    scoring : str or callable, default=None
        A name such as "PSP@3", or a scorer that returns one number. None calls
        ``estimator.score``.
    n_jobs, pre_dispatch, verbose, error_score, params
        As in :func:`~sklearn_xc.model_selection.cross_validate`.

    Returns
    -------
    train_scores, test_scores : ndarray of shape (n_values, n_splits), float64
        The scores.

    Raises
    ------
    ValueError
        As in :func:`~sklearn_xc.model_selection.cross_val_score`, and for a `param_name` that the
        estimator does not have.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn_xc.model_selection import validation_curve
    >>> _, test = validation_curve(
    ...     DummyClassifier(), np.zeros((8, 1)), [0, 1, 1, 1] * 2, cv=2,
    ...     param_name="strategy", param_range=["most_frequent", "prior"],
    ... )
    >>> test
    array([[0.75, 0.75],
           [0.75, 0.75]])
    """
    return _sparse_y.call(
        sklearn.model_selection.validation_curve,
        y,
        estimator=estimator,
        X=X,
        param_name=param_name,
        param_range=param_range,
        groups=groups,
        cv=cv,
        scoring=resolve_single_scoring(scoring, "validation_curve"),
        n_jobs=n_jobs,
        pre_dispatch=pre_dispatch,
        verbose=verbose,
        error_score=error_score,
        params=params,
    )
