"""What made a score: contributions and what is not listed sum to the score of the model."""

import numpy as np
import pytest
import scipy.sparse as sp
from small_data import easy, made

from sklearn_xc import TopKCalibrator
from sklearn_xc._labels.explanation import Explanation

X, Y = made(5, 0)


@pytest.fixture(scope="module")
def model(entry):
    return entry.make().fit(X, Y.toarray().astype(int))


def test_it_sums_to_the_score(model):
    for row, label, n_features in ((0, 0, None), (7, 3, 1), (31, 4, 3)):
        found = model.explain(X[[row]], label, n_features=n_features)
        assert found.score == pytest.approx(model.decision_function(X[[row]])[0, label], abs=1e-9)
        total = found.intercept + found.contributions.sum() + found.other
        assert total == pytest.approx(found.score, rel=1e-6, abs=1e-6)
        assert len(found.features) <= (n_features or 15)
        assert set(found.features) <= set(X[[row]].indices)
        np.testing.assert_array_equal(found.values, X[[row]].toarray()[0][found.features])
        assert (np.diff(np.abs(found.contributions)) <= 0).all()


def test_contributions_are_terms_or_effects(entry, model):
    x = X[[7]]
    found = model.explain(x, 3, n_features=None)
    if found.weights is not None:
        np.testing.assert_allclose(found.contributions, found.values * found.weights)
        assert found.n_other == 0
        assert found.other == 0
        return
    for feature, contribution in zip(found.features, found.contributions, strict=True):
        without = x.toarray()
        without[0, feature] = 0
        score = model.decision_function(sp.csr_array(without))[0, 3]
        assert contribution == pytest.approx(found.score - score, abs=1e-6)
    blank = model.decision_function(sp.csr_array((1, 15)))[0, 3]
    assert found.intercept == pytest.approx(blank, abs=1e-9)


def test_two_classes(entry):
    rows, places = easy(2)
    model = entry.make().fit(rows, np.array(["no", "yes"])[places])
    score = model.decision_function(rows[[3]])[0]
    for label, sign in (("yes", 1), ("no", -1)):
        found = model.explain(rows[[3]], label)
        assert found.score == pytest.approx(sign * score, rel=1e-6)
        total = found.intercept + found.contributions.sum() + found.other
        assert total == pytest.approx(found.score, rel=1e-5, abs=1e-6)


def test_an_instance_without_features(model):
    found = model.explain(sp.csr_array((1, 15)), 2)
    assert found.score == pytest.approx(model.decision_function(sp.csr_array((1, 15)))[0, 2])
    assert found.intercept == pytest.approx(found.score)
    assert not found.features.size


def test_it_shows_itself(model):
    names = np.array([f"<word {i}>" for i in range(15)])
    found = model.explain(X[[7]], 3, feature_names=names, n_features=2)
    assert isinstance(found, Explanation)
    text = repr(found)
    assert text == str(found)
    chance = "" if found.probability is None else f", probability {found.probability:.3f}"
    assert text.splitlines()[0] == f"3: score {found.score:+.3f}{chance}"
    assert bool(chance) == isinstance(model, TopKCalibrator)
    assert text.splitlines()[-1].endswith("(intercept)")
    assert all(name in text for name in found.features)
    shown = [float(line.split()[0]) for line in text.splitlines()[1:]]
    assert sum(shown) == pytest.approx(found.score, abs=0.0006 * len(shown))


def test_bad_arguments(model):
    who = type(getattr(model, "estimator_", model)).__name__
    for arguments, match in (
        ((X[:2], 0), "explain takes one instance, x has 2 rows"),
        ((X[[0]], 17), r"label must be one of the 5 in classes_, such as 0\. Got 17\.$"),
        ((X[[0]], "cat"), r"label must be one of the 5 in classes_, such as 0\. Got 'cat'\.$"),
        ((X[[0]], "3"), r"label must be .* Got '3'\. Did you mean 3\?$"),
    ):
        with pytest.raises(ValueError, match=rf"^{who}: {match}"):
            model.explain(*arguments)
    with pytest.raises(ValueError, match=r"feature_names has shape \(1,\), expected \(15,\)"):
        model.explain(X[[0]], 0, feature_names=["a"])
    with pytest.raises(ValueError, match="n_features must be an integer of at least 1"):
        model.explain(X[[0]], 0, n_features=0)
