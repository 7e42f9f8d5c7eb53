"""``cross_val_predict`` for a y of any container."""

from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.model_selection
from sklearn.base import clone

from sklearn_xc.model_selection import _sparse_y

#: Methods for which scikit-learn puts the classes of y in order, which an indicator has already.
_OF_CLASSES = ("decision_function", "predict_log_proba", "predict_proba")


def cross_val_predict(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    cv: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    params: dict | None = None,
    pre_dispatch: int | str = "2*n_jobs",
    method: str = "predict",
) -> Any:
    """Return a prediction for each row, from an estimator that was fitted without the row.

    Like :func:`sklearn.model_selection.cross_val_predict`, which documents all details, but `y`
    may be a sparse indicator for every `method`, and no dense copy of it is made.

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
    cv : int, splitter or iterable, default=None
        Five folds for None. Each row must be in exactly one test fold.
    n_jobs, verbose, params, pre_dispatch
        As in :func:`cross_validate`.
    method : {"predict", "predict_proba", "predict_log_proba", "decision_function"}, \
            default="predict"
        The method to call. For the scores of the best labels only, and for models without sparse
        predictions, see :func:`cross_val_topk`.

    Returns
    -------
    {ndarray, sparse matrix} of shape (n_samples,) or (n_samples, n_labels)
        The predictions of all folds, in the order of X; sparse if the estimator's are, as with the
        estimators of this package for a sparse `y`.

    Raises
    ------
    ValueError
        As in :func:`cross_validate`, and for a `cv` whose test folds are not a partition.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.model_selection import cross_val_predict
    >>> X = np.tile(np.eye(3), (4, 1))
    >>> scores = cross_val_predict(
    ...     OvALinearXC(top_k=1), X, csr_array(X), cv=2, method="decision_function"
    ... )
    >>> scores.shape, scores.indices[:4].tolist()
    ((12, 3), [0, 1, 2, 0])
    """
    if sp.issparse(y) and method in _OF_CLASSES and hasattr(estimator, "fit"):
        estimator, method = _Answering(estimator, method), "predict"
    return _sparse_y.call(
        sklearn.model_selection.cross_val_predict,
        y,
        estimator=estimator,
        X=X,
        groups=groups,
        cv=cv,
        n_jobs=n_jobs,
        verbose=verbose,
        params=params,
        pre_dispatch=pre_dispatch,
        method=method,
    )


class _Answering:
    """An estimator whose ``predict`` is another of its methods; all else is its own."""

    def __init__(self, estimator: Any, method: str) -> None:
        self._estimator, self._method = estimator, method

    def fit(self, X: Any, y: Any, **params: Any) -> "_Answering":
        self._estimator.fit(X, y, **params)
        return self

    def predict(self, X: Any) -> np.ndarray:
        return getattr(self._estimator, self._method)(X)

    def __sklearn_clone__(self) -> "_Answering":
        return _Answering(clone(self._estimator), self._method)

    def __getattr__(self, name: str) -> Any:
        if name == "_estimator":  # a copy in the making has none yet
            raise AttributeError(name)
        return getattr(self._estimator, name)

    def __repr__(self) -> str:
        return repr(self._estimator)
