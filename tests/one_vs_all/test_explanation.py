"""Which features made a score."""

import numpy as np
import pandas as pd
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


def test_names(xy):
    X, Y = xy
    names = [f"word{j}" for j in range(40)]
    model = OvALinearXC(prune=0).fit(pd.DataFrame(X.toarray(), columns=names), Y)
    frame = pd.DataFrame(X[[8]].toarray(), columns=names)
    explanation = model.explain(frame, 6, n_features=3)
    assert all(name.startswith("word") for name in explanation.features)
    other = OvALinearXC(prune=0).fit(X.toarray(), Y).explain(X[[8]], 6, feature_names=names)
    np.testing.assert_array_equal(other.features[:3], explanation.features)
    text = str(explanation).splitlines()
    assert text[0].startswith("6: score ")
    assert explanation.features[0] in text[1]
    assert text[-1].endswith("(intercept)")
    assert text[-2].endswith("(1 other feature)")
    assert len(text) == 6


def test_errors(model, xy):
    X, _ = xy
    with pytest.raises(ValueError, match=r"^OvALinearXC: explain takes one instance, x has 2 rows"):
        model.explain(X[:2], 0)
    with pytest.raises(ValueError, match=r"^OvALinearXC: label must be one of the 15 .* Got 15\."):
        model.explain(X[[0]], 15)
    with pytest.raises(ValueError, match=r"label must be one of .* Got 'cat'\.$"):
        model.explain(X[[0]], "cat")
    with pytest.raises(
        ValueError, match=r"^OvALinearXC: feature_names has shape \(1,\), expected \(40,\)"
    ):
        model.explain(X[[0]], 0, feature_names=["a"])
    with pytest.raises(ValueError, match="X has 39 features"):
        model.explain(X[[0], :39], 0)
