"""Everything private that the package imports from scikit-learn, in one file.

Public names of scikit-learn are imported where they are used.
"""
# ruff: noqa: F401 (names for other files)

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import _fit_context as fit_context
from sklearn.multiclass import _ConstantPredictor as ConstantPredictor
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    Options,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.metaestimators import _BaseComposition as BaseComposition
from sklearn.utils.validation import _check_method_params as check_method_params
from sklearn.utils.validation import _num_samples as num_samples

try:  # experimental in 1.9
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback._callback_support import callback_management_context as callbacks_around
except ImportError:  # training goes without

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in for estimators without callbacks."""

    @contextmanager
    def callbacks_around(estimator: Any) -> Iterator[None]:
        """Stand-in for the context that closes the callbacks of a fit."""
        yield


def boosted_trees(model: Any) -> tuple[float, tuple[np.ndarray, ...], np.ndarray]:
    """Return the trees of a binary gradient boosting on numbers as plain arrays.

    Parameters
    ----------
    model : HistGradientBoostingClassifier
        Fitted to two classes.

    Returns
    -------
    start : float
        The log-odds that the values of all trees add to.
    trees : tuple of ndarray
        Root of each tree; feature, threshold (values up to it go left), left, right and
        value of each node; -2 as feature and -1 as left and right in leaves.
    missing_left : ndarray of bool
        For each node, whether missing values go left.
    """
    start = float(np.asarray(model._baseline_prediction).ravel()[0])
    nodes = [predictors[0].nodes for predictors in model._predictors]
    roots = np.cumsum([0, *map(len, nodes)])[:-1].astype(np.int32)
    offsets = np.repeat(roots, [len(part) for part in nodes])
    every = np.concatenate(nodes)
    is_leaf = every["is_leaf"].astype(bool)
    left, right = (
        np.where(is_leaf, -1, every[name].astype(np.int64) + offsets).astype(np.int32)
        for name in ("left", "right")
    )
    feature = np.where(is_leaf, -2, every["feature_idx"].astype(np.int64)).astype(np.int32)
    threshold = every["num_threshold"].astype(np.float64)
    trees = roots, feature, threshold, left, right, every["value"].astype(np.float64)
    return start, trees, every["missing_go_to_left"].astype(bool)
