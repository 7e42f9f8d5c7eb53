"""The one place that reaches into scikit-learn for functions which refuse a sparse y."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.model_selection import (
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)

from sklearn_xc._arguments import refuse_disguised
from sklearn_xc._folds import ListedFolds, check_folds, is_list_of_folds
from sklearn_xc._sklearn import num_samples, validate_params
from sklearn_xc._sparse_input import check_sparse


def call(function: Callable[..., Any], y: Any, **arguments: Any) -> Any:
    """Call a function of ``sklearn.model_selection``, with its checks, on a y of any container.

    Only the check of its parameters refuses a sparse y, the code behind does not. So the bare
    function is taken, and its own checks are put around it again with one entry more for y. All
    other arguments give scikit-learn's own errors; index arrays, masks and folds, which it trusts,
    give ours.
    """
    who = getattr(function, "__name__", repr(function))
    refuse_malformed(who, y=y, **arguments)
    if sp.issparse(y):
        refuse_stratified(arguments["cv"])
        function = _accepting_sparse_y(function)
    return function(y=y, **arguments | {"cv": with_checked_folds(arguments["cv"], who)})


def refuse_malformed(who: str, **arguments: Any) -> None:
    """Raise for sparse matrices with wrong index arrays, and for masked arrays."""
    for name, values in arguments.items():
        check_sparse(values, name, who)
        if np.ma.isMaskedArray(values):
            refuse_disguised(values, f"{who}: {name}")


def with_checked_folds(cv: Any, who: str) -> Any:
    """Return a splitter whose folds are checked; what makes none goes on to scikit-learn."""
    if is_list_of_folds(cv):
        listed = ListedFolds(cv)
        if not listed.folds:  # which has a message of its own
            check_folds([], 0, who, cv)
        return _CheckedSplitter(listed, who, cv)
    if hasattr(cv, "split") and not isinstance(cv, str):
        return _CheckedSplitter(cv, who, cv)
    return cv  # a number of folds, or nothing that scikit-learn takes


class _CheckedSplitter:
    """A splitter, its folds checked; all else, metadata routing included, is its own."""

    def __init__(self, splitter: Any, who: str, cv: Any) -> None:
        self._splitter, self._who, self._cv = splitter, who, cv

    def split(self, X: Any, *args: Any, **params: Any) -> Iterator[tuple]:
        folds = self._splitter.split(X, *args, **params)
        return iter(check_folds(folds, num_samples(X), self._who, self._cv))

    def __getattr__(self, name: str) -> Any:
        if name == "_splitter":  # a copy in the making has none yet
            raise AttributeError(name)
        return getattr(self._splitter, name)

    def __repr__(self) -> str:
        return repr(self._splitter)


def refuse_stratified(cv: Any) -> None:
    """Raise ValueError for a splitter by classes, which a sparse indicator does not have."""
    # scikit-learn's own error asks for y.toarray(), which would not help, if it fits into memory.
    stratified = (
        RepeatedStratifiedKFold,
        StratifiedGroupKFold,
        StratifiedKFold,
        StratifiedShuffleSplit,
    )
    if isinstance(cv, stratified):
        raise ValueError(
            f"cv: {cv} keeps the shares of classes, which a sparse indicator does not have. Use "
            "RareLabelSplit, which keeps those of labels, or KFold, ShuffleSplit or GroupKFold."
        )


def _accepting_sparse_y(function: Callable[..., Any]) -> Callable[..., Any]:
    bare = getattr(function, "__wrapped__", None)
    constraints = getattr(function, "_skl_parameter_constraints", None)
    if bare is None or constraints is None or validate_params is None:
        name = getattr(function, "__name__", repr(function))
        raise NotImplementedError(
            f"{name}: scikit-learn {sklearn.__version__} no longer shows the inside that "
            "sklearn_xc needs to hand it a sparse y (__wrapped__, _skl_parameter_constraints and "
            "sklearn.utils._param_validation.validate_params). Use an older scikit-learn or a "
            "newer sklearn_xc; GridSearchCV takes a sparse y without this."
        )
    wider = {**constraints, "y": [*constraints["y"], "sparse matrix"]}
    # False as in scikit-learn, where these functions leave estimators to check themselves.
    return validate_params(wider, prefer_skip_nested_validation=False)(bare)
