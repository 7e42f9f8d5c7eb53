"""Searches over all or some of a grid of parameters, for a y of any container."""

import sklearn.model_selection

from sklearn_xc.model_selection._search_terms import XCSearch


class GridSearchCV(XCSearch, sklearn.model_selection.GridSearchCV):
    """Search over all combinations of parameter values by cross-validation.

    Like :class:`sklearn.model_selection.GridSearchCV`, which documents all details, with these
    differences: `scoring` accepts the names of :func:`sklearn_xc.metrics.get_scorer`; several of
    them share one top-k pass per fit; ``refit=True`` takes the first of several metrics; a wrong
    `refit` fails before anything is fitted; and the search has ``predict_topk`` and ``explain`` if
    its estimator has them. `y` may be a sparse indicator.

    Parameters
    ----------
    estimator : estimator
        Cloned and fitted for each combination in each fold.
    param_grid : dict or list of dict
        Values to try for each parameter.
    scoring : str, callable, list, tuple or dict, default=None
        A name such as "P@3", a scorer such as :class:`sklearn_xc.metrics.TopKScorer`, or several
        of them. None calls ``estimator.score``.
    n_jobs : int, default=None
        Number of fits run in parallel.
    refit : bool, str or callable, default=True
        The metric whose best candidate is fitted to all rows.
    cv : int, splitter or iterable, default=None
        Five folds for None; :class:`RareLabelSplit` keeps rare labels in all training sets.
    verbose, pre_dispatch, error_score, return_train_score
        As in scikit-learn.

    See Also
    --------
    HalvingGridSearchCV : Tries candidates on few rows first, and drops those that are bad there.
    sklearn_xc.OvALinearXCCV : One-vs-all with its own search for C.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.model_selection import GridSearchCV
    >>> X = np.tile(np.eye(3), (4, 1))
    >>> search = GridSearchCV(OvALinearXC(), {"C": [0.1, 1.0]}, scoring=["P@1", "nDCG@2"], cv=2)
    >>> search = search.fit(X, csr_array(X))
    >>> search.cv_results_["mean_test_P@1"], search.predict_topk(X[:1], 1)[0]
    (array([1., 1.]), array([[0]]))
    """


class RandomizedSearchCV(XCSearch, sklearn.model_selection.RandomizedSearchCV):
    """Search over random parameter values by cross-validation.

    Like :class:`sklearn.model_selection.RandomizedSearchCV`, which documents all details, with the
    same differences as :class:`GridSearchCV`.

    Parameters
    ----------
    estimator : estimator
        Cloned and fitted for each candidate in each fold.
    param_distributions : dict or list of dict
        A distribution or a list of values for each parameter.
    n_iter : int, default=10
        Number of candidates.
    scoring : str, callable, list, tuple or dict, default=None
        As in :class:`GridSearchCV`.
    n_jobs : int, default=None
        Number of fits run in parallel.
    refit : bool, str or callable, default=True
        The metric whose best candidate is fitted to all rows.
    cv : int, splitter or iterable, default=None
        Five folds for None.
    verbose, pre_dispatch, error_score, return_train_score
        As in scikit-learn.
    random_state : int, RandomState instance or None, default=None
        Seeds the draw of the candidates.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.model_selection import RandomizedSearchCV
    >>> X = np.tile(np.eye(3), (4, 1))
    >>> values = {"C": [0.1, 1.0, 10.0]}
    >>> search = RandomizedSearchCV(OvALinearXC(), values, n_iter=2, scoring="P@1", cv=2)
    >>> float(search.fit(X, csr_array(X)).best_score_)
    1.0
    """
