"""Cross-validation of a sparse indicator, splits that keep rare labels, and out-of-fold scores.

The searches, ``train_test_split`` and ``cross_val_predict`` of scikit-learn take a sparse indicator
themselves: use those, with ``scoring=get_scorer("P@1")``. The functions here are those whose
argument checks refuse one.
"""

from sklearn_xc.model_selection._cross_val_topk import cross_val_topk
from sklearn_xc.model_selection._cross_validate import (
    cross_val_score,
    cross_validate,
    learning_curve,
)
from sklearn_xc.model_selection._label_errors import find_label_errors
from sklearn_xc.model_selection._rare_label_split import RareLabelSplit

__all__ = [
    "RareLabelSplit",
    "cross_val_score",
    "cross_val_topk",
    "cross_validate",
    "find_label_errors",
    "learning_curve",
]
