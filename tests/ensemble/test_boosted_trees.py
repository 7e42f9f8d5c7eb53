"""Trees taken out of scikit-learn's gradient boosting give its probabilities to the bit."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier

from sklearn_xc import OvALinearXC, StackingXC
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.ensemble.stacking.learner import BoostedTrees


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(10, 300),
    d=st.integers(1, 5),
    missing=st.sampled_from([0.0, 0.1, 0.9]),
    leaves=st.integers(2, 15),
)
def test_the_same_bits(seed, n, d, missing, leaves):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).round(1).astype(np.float32)
    X[2:][rng.random((n - 2, d)) < missing] = np.nan  # scikit-learn wants two values of each
    y = rng.permutation(n) % 2
    model = HistGradientBoostingClassifier(
        max_iter=5, max_leaf_nodes=leaves, min_samples_leaf=1, early_stopping=False
    ).fit(X, y)
    asked = rng.normal(size=(50, d)).round(1).astype(np.float32)
    asked[rng.random((50, d)) < 0.2] = np.nan
    found = BoostedTrees.replacing(model).predict_proba(asked)
    np.testing.assert_array_equal(found, model.predict_proba(asked))


def test_a_stack_keeps_no_boosting():
    X, Y = make_xc_classification(n_samples=600, n_features=60, n_labels=20, random_state=0)
    members = [("a", OvALinearXC(tol=0.1)), ("b", OvALinearXC(C=0.1, tol=0.1))]
    model = StackingXC(members, n_candidates=20, random_state=0).fit(X, Y)
    kinds = {type(learner).__name__ for learner in model.final_estimator_.learners}
    assert kinds <= {"BoostedTrees", "ScaledLogistic"}
    assert "BoostedTrees" in kinds
