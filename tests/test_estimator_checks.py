"""scikit-learn's own checks; none is expected to fail."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_xc import (
    DecompMIPSClassifier,
    ImplicitSoftmaxSGD,
    NGAMEEmbeddingXC,
    OvALinearXC,
    OvALinearXCCV,
    SoftmaxUMax,
)

# check_sample_weight_equivalence compares at 1e-7 two fits whose sums run in another order, and on
# its tiny dense problem twenty conjugate-gradient steps raise a difference of 1e-16 to 1e-8. With
# tol=1.0, the default for dense X, the fit of a sparse X takes fewer.
VARIANTS = [
    OvALinearXC(),
    OvALinearXC(loss="logistic", n_jobs=2),
    OvALinearXC(init="ovap", fit_intercept=False, tol=1.0),
    OvALinearXCCV([0.1, 1.0], cv=3, tol=1.0, scoring="accuracy"),
    SoftmaxUMax(),
    SoftmaxUMax(alpha=0.1, average=True, decay="1/t", n_hard_negatives=2, fit_intercept=False),
    ImplicitSoftmaxSGD(),
    ImplicitSoftmaxSGD(alpha=0.01, n_negatives=3, batch_size=4, early_stopping=True, n_jobs=2),
    DecompMIPSClassifier(),
    DecompMIPSClassifier("softmax", gradient="mips", embedding_dim=8, optimizer="adagrad"),
    NGAMEEmbeddingXC(),
    NGAMEEmbeddingXC(sampler="ance", validation_fraction=0.0, n_shards=2),
]


# The checks' tiny problems have tiny weights.
@pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning")
# Some have features of any scale, on which U-max has no good learning rate, and says so.
@pytest.mark.filterwarnings("ignore:.*is too high:sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(VARIANTS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
