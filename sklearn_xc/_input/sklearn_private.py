"""Everything private that the package imports from scikit-learn, in one file.

Public names of scikit-learn are imported where they are used.
"""
# ruff: noqa: F401 (names for other files)

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import sklearn.metrics
import sklearn.model_selection
from sklearn.base import _fit_context as fit_context
from sklearn.metrics._scorer import _SCORERS
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


def register_scorers(scorers: Mapping[str, Any]) -> None:
    """Let ``scoring=`` of scikit-learn know scorers by name.

    Its argument checks list the names when they are imported: ours are added to these lists.
    """
    _SCORERS.update(scorers)
    for module in (sklearn.metrics, sklearn.model_selection):
        for one in vars(module).values():
            checks = getattr(one, "_skl_parameter_constraints", None)
            checks = checks or getattr(one, "_parameter_constraints", {})
            for check in checks.get("scoring", ()):
                if isinstance(check, StrOptions):
                    check.options.update(scorers)
