"""Cross-validation, searches and splits that take a sparse indicator.

scikit-learn's functions refuse one, or fail on it; those here have the same names and parameters.
They also understand "P@3" and the other names of :func:`sklearn_xc.metrics.get_scorer`.
``RareLabelSplit`` keeps rare labels in every training set,
and ``cross_val_topk`` gives out-of-fold scores of the best labels.
"""

import importlib
from typing import Any

from sklearn_xc.model_selection._cross_val_predict import cross_val_predict
from sklearn_xc.model_selection._cross_val_topk import cross_val_topk
from sklearn_xc.model_selection._cross_validate import cross_val_score, cross_validate
from sklearn_xc.model_selection._curve_displays import (
    LearningCurveDisplay,
    ValidationCurveDisplay,
)
from sklearn_xc.model_selection._learning_curve import learning_curve
from sklearn_xc.model_selection._permutation_test import permutation_test_score
from sklearn_xc.model_selection._rare_label_split import RareLabelShuffleSplit, RareLabelSplit
from sklearn_xc.model_selection._search import GridSearchCV, RandomizedSearchCV
from sklearn_xc.model_selection._train_test_split import train_test_split
from sklearn_xc.model_selection._validation_curve import validation_curve

# scikit-learn's are experimental: importing them changes what sklearn.model_selection offers.
_ON_DEMAND = ("HalvingGridSearchCV", "HalvingRandomSearchCV")

__all__ = [
    "GridSearchCV",
    "HalvingGridSearchCV",
    "HalvingRandomSearchCV",
    "LearningCurveDisplay",
    "RandomizedSearchCV",
    "RareLabelShuffleSplit",
    "RareLabelSplit",
    "ValidationCurveDisplay",
    "cross_val_predict",
    "cross_val_score",
    "cross_val_topk",
    "cross_validate",
    "learning_curve",
    "permutation_test_score",
    "train_test_split",
    "validation_curve",
]


def __getattr__(name: str) -> Any:
    if name in _ON_DEMAND:
        return getattr(importlib.import_module("sklearn_xc.model_selection._halving"), name)
    raise AttributeError(f"module 'sklearn_xc.model_selection' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
