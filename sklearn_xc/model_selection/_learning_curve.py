"""``learning_curve`` for a y of any container."""

from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.model_selection

from sklearn_xc.model_selection import _sparse_y
from sklearn_xc.model_selection._scoring import resolve_single_scoring

_TENTHS = np.linspace(0.1, 1.0, 5)


def learning_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    train_sizes: Any = _TENTHS,
    cv: Any = None,
    scoring: Any = None,
    exploit_incremental_learning: bool = False,
    n_jobs: int | None = None,
    pre_dispatch: int | str = "all",
    verbose: int = 0,
    shuffle: bool = False,
    random_state: Any = None,
    error_score: Any = np.nan,
    return_times: bool = False,
    params: dict | None = None,
) -> tuple:
    """Return the scores of an estimator on training sets of increasing size.

    Like :func:`sklearn.model_selection.learning_curve`, which documents all details, with the same
    differences as :func:`~sklearn_xc.model_selection.cross_validate`.

    Parameters
    ----------
    estimator : estimator
        Cloned and fitted for each size in each fold.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows.
    y : {array-like, sparse matrix} of shape (n_samples,) or (n_samples, n_labels)
        The labels.
    groups : array-like of shape (n_samples,), default=None
        Groups for the splitter.
    train_sizes : array-like of shape (n_sizes,), default=np.linspace(0.1, 1.0, 5)
        Fractions of the training rows of a fold, or numbers of rows.
    cv : int, splitter or iterable, default=None
        Five folds for None.
    scoring : str or callable, default=None
        A name such as "PSP@3", or a scorer that returns one number. None calls
        ``estimator.score``.
    exploit_incremental_learning : bool, default=False
        Whether to continue with ``partial_fit`` from one size to the next; not with a sparse `y`.
    n_jobs, pre_dispatch, verbose, error_score, params
        As in :func:`~sklearn_xc.model_selection.cross_validate`.
    shuffle : bool, default=False
        Whether to shuffle the training rows before the first ones are taken.
    random_state : int, RandomState instance or None, default=None
        Seeds `shuffle`.
    return_times : bool, default=False
        Whether to return the times.

    Returns
    -------
    train_sizes_abs : ndarray of shape (n_sizes,), int64
        Numbers of training rows.
    train_scores, test_scores : ndarray of shape (n_sizes, n_splits), float64
        The scores.
    fit_times, score_times : ndarray of shape (n_sizes, n_splits), float64
        In seconds; only with `return_times`.

    Raises
    ------
    ValueError
        As in :func:`~sklearn_xc.model_selection.cross_val_score`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn_xc.model_selection import learning_curve
    >>> sizes, _, test = learning_curve(
    ...     DummyClassifier(), np.zeros((8, 1)), [0, 1] * 4, cv=2, train_sizes=[0.5, 1.0]
    ... )
    >>> sizes, test.shape
    (array([2, 4]), (2, 2))
    """
    if exploit_incremental_learning and sp.issparse(y):
        raise ValueError(
            "exploit_incremental_learning: scikit-learn lists the classes of y with np.unique, "
            "which has no meaning for a sparse indicator. Got a sparse y. Leave it at False."
        )
    return _sparse_y.call(
        sklearn.model_selection.learning_curve,
        y,
        estimator=estimator,
        X=X,
        groups=groups,
        train_sizes=train_sizes,
        cv=cv,
        scoring=resolve_single_scoring(scoring, "learning_curve"),
        exploit_incremental_learning=exploit_incremental_learning,
        n_jobs=n_jobs,
        pre_dispatch=pre_dispatch,
        verbose=verbose,
        shuffle=shuffle,
        random_state=random_state,
        error_score=error_score,
        return_times=return_times,
        params=params,
    )
