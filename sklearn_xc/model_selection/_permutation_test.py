"""``permutation_test_score`` for a y of any container."""

from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.model_selection
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from sklearn_xc._arguments import check_count
from sklearn_xc._folds import ListedFolds, is_list_of_folds
from sklearn_xc.model_selection import _sparse_y
from sklearn_xc.model_selection._cross_validate import cross_val_score
from sklearn_xc.model_selection._scoring import resolve_single_scoring


def permutation_test_score(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    cv: Any = None,
    n_permutations: int = 100,
    n_jobs: int | None = None,
    random_state: Any = 0,
    verbose: int = 0,
    scoring: Any = None,
    params: dict | None = None,
) -> tuple[float, np.ndarray, float]:
    """Return the score of an estimator, and its scores for shuffled labels.

    Like :func:`sklearn.model_selection.permutation_test_score`, which documents all details, with
    the same differences as :func:`~sklearn_xc.model_selection.cross_validate`. Whole label sets
    are exchanged between rows.

    Parameters
    ----------
    estimator : estimator
        Cloned and fitted in each fold of each permutation.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows.
    y : {array-like, sparse matrix} of shape (n_samples,) or (n_samples, n_labels)
        The labels.
    groups : array-like of shape (n_samples,), default=None
        Labels are exchanged within groups only; also passed to the splitter.
    cv : int, splitter or iterable, default=None
        Five folds for None.
    n_permutations : int, default=100
        Number of permutations.
    n_jobs : int, default=None
        Number of permutations run in parallel.
    random_state : int, RandomState instance or None, default=0
        Seeds the permutations.
    verbose : int, default=0
        How much to print.
    scoring : str or callable, default=None
        A name such as "PSP@3", or a scorer that returns one number. None calls
        ``estimator.score``.
    params : dict, default=None
        Further arguments for ``fit``.

    Returns
    -------
    score : float
        Mean over the folds.
    permutation_scores : ndarray of shape (n_permutations,), float64
        The same for shuffled labels.
    pvalue : float
        Share of permutations that score at least as well, counting the original order as one of
        them.

    Raises
    ------
    ValueError
        As in :func:`~sklearn_xc.model_selection.cross_val_score`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.model_selection import permutation_test_score
    >>> X = np.tile(np.eye(3), (4, 1))
    >>> score, permuted, pvalue = permutation_test_score(
    ...     OvALinearXC(prune=0), X, csr_array(X), cv=2, n_permutations=9
    ... )
    >>> score, permuted.shape
    (np.float64(1.0), (9,))
    """
    scoring = resolve_single_scoring(scoring, "permutation_test_score")
    if not sp.issparse(y):
        return _sparse_y.call(
            sklearn.model_selection.permutation_test_score,
            y,
            estimator=estimator,
            X=X,
            groups=groups,
            cv=cv,
            n_permutations=n_permutations,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
            scoring=scoring,
            params=params,
        )
    check_count(n_permutations, "permutation_test_score: n_permutations")
    _sparse_y.refuse_malformed("permutation_test_score", X=X, y=y, groups=groups)
    Y, state = y.tocsr(), check_random_state(random_state)
    cv = ListedFolds(cv) if is_list_of_folds(cv) else cv

    def score_of(Y: Any) -> float:
        scores = cross_val_score(
            clone(estimator), X, Y, groups=groups, cv=cv, scoring=scoring, params=params,
            error_score="raise",
        )  # fmt: skip
        return np.mean(scores)

    score = score_of(Y)
    found = Parallel(n_jobs=n_jobs, verbose=verbose)(
        delayed(score_of)(Y[_permuted(Y.shape[0], groups, state)]) for _ in range(n_permutations)
    )
    scores = np.array(found)
    return score, scores, (np.sum(scores >= score) + 1.0) / (n_permutations + 1)


def _permuted(n: int, groups: Any, state: np.random.RandomState) -> np.ndarray:
    """Return a permutation of the rows, within groups if there are any."""
    if groups is None:
        return state.permutation(n)
    order = np.arange(n)
    for group in np.unique(groups):
        is_member = np.asarray(groups) == group
        order[is_member] = state.permutation(order[is_member])
    return order
