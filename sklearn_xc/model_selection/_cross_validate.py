"""Functions of scikit-learn whose argument checks refuse a sparse y, without that refusal."""

import inspect
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.model_selection

from sklearn_xc._input.data import check_sparse
from sklearn_xc.metrics import TopKScorer, get_scorer


def cross_validate(
    estimator: Any, X: Any, y: Any = None, *, scoring: Any = None, **params: Any
) -> dict:
    """Return the scores and times of an estimator for each fold of a cross-validation.

    Like :func:`sklearn.model_selection.cross_validate`, with two differences: `y` may be a sparse
    indicator, which is never made dense, and `scoring` accepts the names of
    :func:`sklearn_xc.metrics.get_scorer`.

    Parameters
    ----------
    estimator : estimator
        Cloned and fitted in each fold.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The instances.
    y : {array-like, sparse matrix} of shape (n_samples,) or (n_samples, n_labels), default=None
        The labels.
    scoring : str, callable, list, tuple or dict, default=None
        A name such as "P@3", a scorer, or several of them. A
        :class:`~sklearn_xc.metrics.TopKScorer` computes several metrics from one top-k pass. None
        calls ``estimator.score``.
    **params : dict
        `cv`, `groups`, `n_jobs` and the other arguments of scikit-learn's function. An indicator is
        split by KFold if `cv` is a number: it has no classes to stratify by.

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
    if isinstance(scoring, list | tuple) and all(isinstance(name, str) for name in scoring):
        scoring = {name: name for name in scoring}
    if isinstance(scoring, dict):
        scoring = {name: get_scorer(scorer) for name, scorer in scoring.items()}
    return _call("cross_validate", estimator, X, y, scoring=get_scorer(scoring), **params)


def cross_val_score(
    estimator: Any, X: Any, y: Any = None, *, scoring: Any = None, **params: Any
) -> np.ndarray:
    """Return the score of an estimator for each fold of a cross-validation.

    Like :func:`sklearn.model_selection.cross_val_score`, with the differences of
    :func:`cross_validate`.

    Parameters
    ----------
    estimator : estimator
        Cloned and fitted in each fold.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The instances.
    y : {array-like, sparse matrix} of shape (n_samples,) or (n_samples, n_labels), default=None
        The labels.
    scoring : str or callable, default=None
        A name such as "P@3", or a scorer that returns one number. None calls ``estimator.score``.
    **params : dict
        `cv`, `groups`, `n_jobs` and the other arguments of scikit-learn's function.

    Returns
    -------
    ndarray of shape (n_splits,), float64
        The scores.

    Raises
    ------
    ValueError
        As in :func:`cross_validate`, and for a `scoring` that gives several numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.model_selection import cross_val_score
    >>> X = np.tile(np.eye(3), (4, 1))
    >>> cross_val_score(OvALinearXC(), X, csr_array(X), cv=2, scoring="P@1")
    array([1., 1.])
    """
    scoring = _one_number(scoring, "cross_val_score")
    return cross_validate(estimator, X, y, scoring=scoring, **params)["test_score"]


def learning_curve(
    estimator: Any, X: Any, y: Any, *, scoring: Any = None, **params: Any
) -> tuple[np.ndarray, ...]:
    """Return the scores of an estimator for training sets of several sizes.

    Like :func:`sklearn.model_selection.learning_curve`, with the differences of
    :func:`cross_validate`.

    Parameters
    ----------
    estimator : estimator
        Cloned and fitted for each size in each fold.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The instances.
    y : {array-like, sparse matrix} of shape (n_samples,) or (n_samples, n_labels)
        The labels.
    scoring : str or callable, default=None
        A name such as "P@3", or a scorer that returns one number. None calls ``estimator.score``.
    **params : dict
        `train_sizes`, `cv`, `groups`, `n_jobs` and the other arguments of scikit-learn's function.

    Returns
    -------
    train_sizes : ndarray of shape (n_sizes,), int64
        Numbers of training instances.
    train_scores, test_scores : ndarray of shape (n_sizes, n_splits), float64
        The scores; with ``return_times=True``, two arrays of seconds follow.

    Raises
    ------
    ValueError
        As in :func:`cross_val_score`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.model_selection import learning_curve
    >>> X = np.tile(np.eye(3), (4, 1))
    >>> sizes, _, test = learning_curve(
    ...     OvALinearXC(), X, csr_array(X), cv=2, scoring="P@1", train_sizes=[3, 6]
    ... )
    >>> sizes, test.mean(axis=1)
    (array([3, 6]), array([1., 1.]))
    """
    scoring = _one_number(scoring, "learning_curve")
    return _call("learning_curve", estimator, X, y, scoring=scoring, **params)


def _one_number(scoring: Any, caller: str) -> Any:
    """Return the scorer that `scoring` names or is, which must give a single number."""
    if isinstance(scoring, list | tuple | set | dict | TopKScorer):
        raise ValueError(
            f"scoring: {caller} reports one number per fit, but {scoring!r} gives several. Use "
            'cross_validate, or a single name such as "P@1".'
        )
    return get_scorer(scoring)


def _call(name: str, estimator: Any, X: Any, y: Any, **params: Any) -> Any:
    """Call a function of scikit-learn, for a sparse y without the check of its argument types.

    Only that check refuses a sparse y: ``inspect.unwrap`` gives the function inside.
    """
    function = getattr(sklearn.model_selection, name)
    check_sparse(X, "X", name)
    check_sparse(y, "y", name)
    if sp.issparse(y):
        refuse_stratified(params.get("cv"))
        function = inspect.unwrap(function)
    return function(estimator, X, y, **params)


def refuse_stratified(cv: Any) -> None:
    """Raise ValueError for splitters that need classes."""
    if "Stratified" in type(cv).__name__:
        raise ValueError(
            f"cv: {cv} keeps the shares of classes, which a sparse indicator does not have. Use "
            "RareLabelSplit, which keeps those of labels, or KFold, ShuffleSplit or GroupKFold."
        )
