"""The one place that reaches into scikit-learn for functions which refuse a sparse y."""

from collections.abc import Callable
from typing import Any

import scipy.sparse as sp
import sklearn
from sklearn.model_selection import (
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)


def call(function: Callable[..., Any], y: Any, **arguments: Any) -> Any:
    """Call a function of ``sklearn.model_selection``, with its checks, on a y of any container.

    Only the check of its parameters refuses a sparse y, the code behind does not. So the bare
    function is taken, and its own checks are put around it again with one entry more for y. All
    other arguments give scikit-learn's own errors.
    """
    if sp.issparse(y):
        _refuse_stratified(arguments["cv"])
        function = _accepting_sparse_y(function)
    return function(y=y, **arguments)


def _refuse_stratified(cv: Any) -> None:
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
            "KFold, ShuffleSplit or GroupKFold."
        )


def _accepting_sparse_y(function: Callable[..., Any]) -> Callable[..., Any]:
    bare = getattr(function, "__wrapped__", None)
    constraints = getattr(function, "_skl_parameter_constraints", None)
    try:
        from sklearn.utils._param_validation import validate_params
    except ImportError:
        validate_params = None
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
