"""Searches that try few rows first, for a y of any container."""

from math import ceil
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import HalvingGridSearchCV as SklearnHalvingGridSearchCV
from sklearn.model_selection import HalvingRandomSearchCV as SklearnHalvingRandomSearchCV

from sklearn_xc._sklearn import num_samples
from sklearn_xc.model_selection._search_terms import XCSearch


class _XCHalving(XCSearch):
    """What halving asks of a y that is no column of classes."""

    _one_score = True
    _checked_cv_orig: Any
    factor: float

    def _check_input_parameters(self, X: Any, y: Any, split_params: Any) -> None:
        # scikit-learn counts the classes of a 1-D y, to begin with two rows of each in every fold.
        if len(getattr(y, "shape", ())) == 2 and y.shape[1] > 1:
            n, n_splits = num_samples(y), self._checked_cv_orig.get_n_splits(X, y, **split_params)
            most = int(n / (2 * n_splits * self.factor))
            y = np.arange(n) % max(1, min(_rows_with_all_labels(y), most))
        super()._check_input_parameters(X=X, y=y, split_params=split_params)  # type: ignore[misc]


def _rows_with_all_labels(Y: Any) -> int:
    """Return how many rows hold as many positives as there are labels."""
    Y = sp.csc_array(Y)
    n_labels, n_positives = np.count_nonzero(np.diff(Y.indptr)), max(1, Y.nnz)
    return ceil(n_labels * Y.shape[0] / n_positives)


class HalvingGridSearchCV(_XCHalving, SklearnHalvingGridSearchCV):
    """Search over all combinations of parameter values, dropping bad ones after few rows.

    Like :class:`sklearn.model_selection.HalvingGridSearchCV`, which documents all details, with
    the same differences as :class:`GridSearchCV`; `scoring` may also be several names of
    :func:`sklearn_xc.metrics.get_scorer`. Candidates are then compared by the metric of `refit`,
    which is "mean_test_score" in ``cv_results_``. For an indicator, the smallest number of rows
    allows for two positives per label and fold, as it does for classes, but is at most the number
    of all rows divided by `factor`.

    Parameters
    ----------
    estimator : estimator
        Cloned and fitted for each candidate in each fold.
    param_grid : dict or list of dict
        Values to try for each parameter.
    factor : int or float, default=3
        One in `factor` candidates goes on to the next round, with `factor` times as many rows.
    resource : str, default="n_samples"
        What grows from round to round: the number of rows, or a parameter such as "max_iter".
    max_resources, min_resources, aggressive_elimination
        As in scikit-learn.
    cv : int, splitter or iterable, default=5
        It must give the same folds each time, as :class:`RareLabelSplit` does.
    scoring : str, callable, list, tuple or dict, default=None
        As in :class:`GridSearchCV`; if there are several metrics, all must be from this package.
    refit : bool or str, default=True
        The metric whose best candidate is fitted to all rows; True takes the first.
    error_score, return_train_score, verbose
        As in scikit-learn.
    random_state : int, RandomState instance or None, default=None
        Seeds the draw of the rows of each round.
    n_jobs : int, default=None
        Number of fits run in parallel.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.model_selection import HalvingGridSearchCV
    >>> X = np.tile(np.eye(3), (12, 1))
    >>> search = HalvingGridSearchCV(
    ...     OvALinearXC(), {"C": [0.1, 1.0, 10.0]}, scoring="P@1", cv=2, random_state=0
    ... )
    >>> search.fit(X, csr_array(X)).n_resources_
    [12, 36]
    """


class HalvingRandomSearchCV(_XCHalving, SklearnHalvingRandomSearchCV):
    """Search over random parameter values, dropping bad ones after few rows.

    Like :class:`sklearn.model_selection.HalvingRandomSearchCV`, which documents all details, with
    the same differences as :class:`HalvingGridSearchCV`.

    Parameters
    ----------
    estimator : estimator
        Cloned and fitted for each candidate in each fold.
    param_distributions : dict or list of dict
        A distribution or a list of values for each parameter.
    n_candidates : "exhaust" or int, default="exhaust"
        Number of candidates in the first round.
    factor : int or float, default=3
        One in `factor` candidates goes on to the next round, with `factor` times as many rows.
    resource : str, default="n_samples"
        What grows from round to round: the number of rows, or a parameter such as "max_iter".
    max_resources, min_resources, aggressive_elimination
        As in scikit-learn.
    cv : int, splitter or iterable, default=5
        It must give the same folds each time, as :class:`RareLabelSplit` does.
    scoring : str, callable, list, tuple or dict, default=None
        As in :class:`HalvingGridSearchCV`.
    refit : bool or str, default=True
        The metric whose best candidate is fitted to all rows; True takes the first.
    error_score, return_train_score, verbose
        As in scikit-learn.
    random_state : int, RandomState instance or None, default=None
        Seeds the draw of the candidates and of the rows of each round.
    n_jobs : int, default=None
        Number of fits run in parallel.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.model_selection import HalvingRandomSearchCV
    >>> X = np.tile(np.eye(3), (12, 1))
    >>> values = {"C": [0.1, 1.0, 10.0]}
    >>> search = HalvingRandomSearchCV(
    ...     OvALinearXC(), values, n_candidates=3, scoring="P@1", cv=2, random_state=0
    ... )
    >>> search.fit(X, csr_array(X)).n_candidates_
    [3, 1]
    """
