"""Cross-validation that takes a sparse indicator.

scikit-learn's ``train_test_split``, ``GridSearchCV``, ``RandomizedSearchCV`` and ``KFold`` take
one already; ``cross_validate``, ``cross_val_score`` and ``learning_curve`` refuse it, and are here
with the same parameters. They also understand "P@3" and the other names of
:func:`sklearn_xc.metrics.get_scorer`. ``cross_val_topk`` takes the place of ``cross_val_predict``.
"""

from sklearn_xc.model_selection._cross_val_topk import cross_val_topk
from sklearn_xc.model_selection._cross_validate import cross_val_score, cross_validate
from sklearn_xc.model_selection._learning_curve import learning_curve

__all__ = ["cross_val_score", "cross_val_topk", "cross_validate", "learning_curve"]
