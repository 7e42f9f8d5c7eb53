"""Which features made a score."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc import OvALinearXC


@pytest.fixture
def model(xy):
    return OvALinearXC(prune=0).fit(*xy)


@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_array.toarray], ids=["sparse", "dense"])
def test_contributions_sum_to_the_score(make, model, xy):
    X, _ = xy
    x = X[[8]]
    explanation = model.explain(make(x), 6, n_features=None)
    assert explanation.label == 6
    score = (x @ model.coef_[[6]].T).toarray()[0, 0] + model.intercept_[6]
    assert explanation.score == pytest.approx(score)
    assert explanation.contributions.sum() + explanation.intercept == pytest.approx(score)
    np.testing.assert_allclose(explanation.values * explanation.weights, explanation.contributions)
    assert (np.diff(np.abs(explanation.contributions)) <= 0).all()
    np.testing.assert_array_equal(explanation.values, x.toarray()[0][explanation.features])
    assert set(explanation.features) == set(x.indices)


@pytest.mark.parametrize("label", ["no", "yes"])
def test_two_classes(label, xy):
    X, Y = xy
    model = OvALinearXC(prune=0).fit(X, np.where(Y[:, [0]].toarray()[:, 0] > 0, "yes", "no"))
    sign = 1 if label == "yes" else -1
    score = sign * model.decision_function(X[[8]])[0]
    explanation = model.explain(X[[8]], label, n_features=None)
    assert explanation.score == pytest.approx(score)
    assert explanation.contributions.sum() + explanation.intercept == pytest.approx(score)
