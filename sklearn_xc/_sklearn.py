"""All that the package takes from inside scikit-learn: the one file to look at when it changes.

What is not private is imported from scikit-learn where it is used.
"""

from sklearn.base import _fit_context as fit_context
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    StrOptions,
)
from sklearn.utils.validation import _num_samples as num_samples

try:
    from sklearn.utils._param_validation import validate_params
except ImportError:  # cross-validation of a sparse y says so, the rest goes without
    validate_params = None

__all__ = [
    "HasMethods",
    "Interval",
    "InvalidParameterError",
    "StrOptions",
    "fit_context",
    "num_samples",
    "safe_indexing",
    "validate_params",
]
