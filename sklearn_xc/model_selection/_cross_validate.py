"""``cross_validate`` and ``cross_val_score`` for a y of any container."""

from typing import Any

import numpy as np
import sklearn.model_selection

from sklearn_xc.model_selection import _sparse_y
from sklearn_xc.model_selection._scoring import resolve_scoring, resolve_single_scoring


def cross_validate(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    scoring: Any = None,
    cv: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    params: dict | None = None,
    pre_dispatch: int | str = "2*n_jobs",
    return_train_score: bool = False,
    return_estimator: bool = False,
    return_indices: bool = False,
    error_score: Any = np.nan,
) -> dict:
    """Return the scores and times of an estimator for each fold of a cross-validation.

    Like :func:`sklearn.model_selection.cross_validate`, which documents all details, with two
    differences: `y` may be a sparse indicator, of which no dense copy is made, and `scoring`
    accepts the names of :func:`sklearn_xc.metrics.get_scorer`.

    Parameters
    ----------
    estimator : estimator
        Cloned and fitted in each fold.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows.
    y : {array-like, sparse matrix} of shape (n_samples,) or (n_samples, n_labels), default=None
        The labels.
    groups : array-like of shape (n_samples,), default=None
        Groups for the splitter.
    scoring : str, callable, list, tuple or dict, default=None
        A name such as "P@3", a scorer such as :class:`sklearn_xc.metrics.TopKScorer`, or several
        of them; if all are names of this package, they share one top-k pass. None calls
        ``estimator.score``.
    cv : int, splitter or iterable, default=None
        Five folds for None. An indicator is split by KFold: it has no classes to stratify by.
    n_jobs : int, default=None
        Number of folds fitted in parallel.
    verbose : int, default=0
        How much to print.
    params : dict, default=None
        Further arguments for ``fit``, for the scorer and for the splitter.
    pre_dispatch : int or str, default="2*n_jobs"
        Number of jobs prepared ahead.
    return_train_score, return_estimator, return_indices : bool, default=False
        What else to return.
    error_score : "raise" or float, default=np.nan
        The score of a fold that failed.

    Returns
    -------
    dict of str to ndarray of shape (n_splits,)
        "fit_time" and "score_time" in seconds, and "test_score", or "test_P@1" and so on if
        `scoring` gives several numbers.

    Raises
    ------
    ValueError
        For an unknown name in `scoring`, numbers of rows that do not match, or a `cv` that cannot
        split.
    TypeError, ValueError
        For other arguments, as in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn.linear_model import Perceptron
    >>> from sklearn.multiclass import OneVsRestClassifier
    >>> from sklearn_xc.model_selection import cross_validate
    >>> X = np.tile(np.eye(3), (4, 1))
    >>> Y = csr_array(X)
    >>> model = OneVsRestClassifier(Perceptron())
    >>> cross_validate(model, X, Y, cv=2, scoring="f1_micro")["test_score"]
    array([1., 1.])
    """
    return _sparse_y.call(
        sklearn.model_selection.cross_validate,
        y,
        estimator=estimator,
        X=X,
        groups=groups,
        scoring=resolve_scoring(scoring),
        cv=cv,
        n_jobs=n_jobs,
        verbose=verbose,
        params=params,
        pre_dispatch=pre_dispatch,
        return_train_score=return_train_score,
        return_estimator=return_estimator,
        return_indices=return_indices,
        error_score=error_score,
    )


def cross_val_score(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    scoring: Any = None,
    cv: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    params: dict | None = None,
    pre_dispatch: int | str | None = "2*n_jobs",
    error_score: Any = np.nan,
) -> np.ndarray:
    """Return one score of an estimator for each fold of a cross-validation.

    Like :func:`sklearn.model_selection.cross_val_score`, which documents all details, with the
    same differences as :func:`cross_validate`.

    Parameters
    ----------
    estimator : estimator
        Cloned and fitted in each fold.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows.
    y : {array-like, sparse matrix} of shape (n_samples,) or (n_samples, n_labels), default=None
        The labels.
    groups : array-like of shape (n_samples,), default=None
        Groups for the splitter.
    scoring : str or callable, default=None
        A name such as "PSP@3", or a scorer that returns one number. None calls
        ``estimator.score``.
    cv, n_jobs, verbose, params, pre_dispatch, error_score
        As in :func:`cross_validate`.

    Returns
    -------
    ndarray of shape (n_splits,), float64

    Raises
    ------
    ValueError
        As in :func:`cross_validate`, and for a `scoring` that gives several numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn_xc.model_selection import cross_val_score
    >>> cross_val_score(DummyClassifier(), np.zeros((6, 1)), [0, 0, 1, 0, 0, 1], cv=2)
    array([0.66666667, 0.66666667])
    """
    scorer = resolve_single_scoring(scoring, "cross_val_score")
    result = cross_validate(
        estimator,
        X,
        y,
        groups=groups,
        # A dict of one, as in scikit-learn: it refuses a callable that returns several numbers.
        scoring=None if scorer is None else {"score": scorer},
        cv=cv,
        n_jobs=n_jobs,
        verbose=verbose,
        params=params,
        pre_dispatch="2*n_jobs" if pre_dispatch is None else pre_dispatch,
        error_score=error_score,
    )
    return result["test_score"]
