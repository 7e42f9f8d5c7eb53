"""Probabilities calibrated on the held-out instances of a search, against scipy's optimisers."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from scipy.special import expit, log_softmax, logsumexp

from sklearn_xc import ImplicitSoftmaxSGD
from sklearn_xc._weights.class_weights import ClassWeights
from sklearn_xc.softmax import calibration
from sklearn_xc.softmax.calibration import Calibration, fit_calibration


@pytest.fixture(scope="module")
def too_sure():
    """Return scores, and two classes per row that follow them at three times the temperature."""
    rng = np.random.default_rng(0)
    scores = rng.normal(0.0, 3.0, (600, 12))
    chances = np.exp(log_softmax(scores / 3.0, axis=1))
    classes = np.array([rng.choice(12, 2, replace=False, p=row) for row in chances]).ravel()
    classes[:60] = -1  # of no class that was trained on
    return scores, np.repeat(np.arange(600), 2), classes, rng.uniform(0.5, 2.0, 1200)


def map_of(odds, a, b, c):
    return expit(a * np.log(expit(odds)) - b * np.log(expit(-odds)) + c)


def test_a_fit_minimises_the_log_loss(too_sure, monkeypatch):
    monkeypatch.setattr(calibration, "_PRIOR", 0.0)
    scores, at, classes, weight = too_sure
    rows, best = np.arange(len(scores)), scores.argmax(axis=1)
    others = scores.copy()
    others[rows, best] = -np.inf
    is_other = (classes >= 0) & (classes != best[at])

    def loss_of_others(t):
        losses = logsumexp(others / t, axis=1)[at] - scores[at, classes] / t
        return np.sum((weight * losses)[is_other])

    found = fit_calibration(*too_sure)
    expected = scipy.optimize.minimize_scalar(loss_of_others, bounds=(0.3, 4), method="bounded")
    assert found.temperature == pytest.approx(expected.x, rel=5e-3)

    t = found.temperature
    odds = scores[rows, best] / t - logsumexp(others / t, axis=1)
    is_right = classes == best[at]

    def loss_of_best(numbers):
        p = map_of(odds, *numbers)[at]
        return -np.sum(weight * np.log(np.where(is_right, p, 1 - p))) + 4.0 * np.sum(
            (numbers - [1.0, 1.0, 0.0]) ** 2
        )

    expected = scipy.optimize.minimize(loss_of_best, [0.5, 0.5, -0.5], method="Nelder-Mead")
    assert expected.x[:2].min() > 0
    np.testing.assert_allclose(found.best_map, expected.x, atol=2e-2)
    assert loss_of_best(np.array(found.best_map)) <= expected.fun + 1e-3


def test_right_probabilities_stay(too_sure):
    scores, at, _, weight = too_sure
    rng = np.random.default_rng(1)
    chances = np.exp(log_softmax(scores, axis=1))
    classes = np.repeat([rng.choice(12, p=row) for row in chances], 2)
    assert fit_calibration(scores, at, classes, weight) == Calibration()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log_proba(dtype):
    """Against the definition, in the order of the scores; a row without features is left alone."""
    rng = np.random.default_rng(0)
    prior = rng.normal(size=5)
    weights = ClassWeights(np.eye(5, dtype=dtype), prior=prior, unseen=np.array([3]))
    scores = rng.normal(0.0, 3.0, (50, 5)).astype(dtype)
    scores[7] = weights.prior
    scores[8, :3] = 9.0  # they tie
    known = np.delete(scores.astype(np.float64), 3, axis=1)
    found = scores.copy()
    how = Calibration(1.7, (0.6, 0.4, -0.8))
    how.log_proba(found, weights)
    assert np.isneginf(found[:, 3]).all()
    found = np.delete(np.exp(found.astype(np.float64)), 3, axis=1)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(found[7], np.exp(log_softmax(known[7])), rtol=1e-5)
    np.testing.assert_allclose(found[8, :3], found[8, 0], rtol=1e-5)
    for i in np.delete(np.arange(50), [7, 8]):
        row, chances = known[i] / 1.7, found[i]
        order = np.argsort(-row)
        np.testing.assert_array_equal(np.argsort(-chances), order)
        rest = np.exp(log_softmax(row[order[1:]]))
        p = map_of(row[order[0]] - logsumexp(row[order[1:]]), 0.6, 0.4, -0.8)
        p = max(p, rest[0] / (1 + rest[0]))  # the best class stays the best
        np.testing.assert_allclose(chances[order], np.append(p, (1 - p) * rest), rtol=1e-4)


def test_a_model_is_as_sure_as_it_is_right():
    """Of two classes that nothing tells apart, each is right in half of the instances."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 30, 3000)
    X = sp.csr_array(np.eye(30)[group] + 0.3 * rng.normal(size=(3000, 30)))
    y = 2 * group + rng.integers(0, 2, 3000)
    model = ImplicitSoftmaxSGD(random_state=0).fit(X[:1500], y[:1500])
    for fitted, is_calibrated in (
        (model, True),
        (ImplicitSoftmaxSGD(learning_rate=10.0, random_state=0).fit(X[:1500], y[:1500]), False),
    ):
        chances = fitted.predict_proba(X[1500:])
        error = abs(chances.max(axis=1).mean() - fitted.score(X[1500:], y[1500:]))
        assert (error < 0.05) == is_calibrated
        assert (fitted.best_map_.tolist() != [1, 1, 0]) == is_calibrated


def test_the_best_labels_of_a_sparse_fit_have_the_probabilities_of_a_dense_one():
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.random((600, 20)) * (rng.random((600, 20)) < 0.3))
    Y = (X @ rng.normal(size=(20, 8)) + rng.normal(size=(600, 8)) > 1.0).astype(np.int8)
    models = [
        ImplicitSoftmaxSGD(learning_rate=1.0, max_iter=2, top_k=3, random_state=0).fit(X, of_kind)
        for of_kind in (Y, sp.csr_array(Y))
    ]
    for model in models:
        model.temperature_, model.best_map_ = 1.7, np.array([0.6, 0.4, -0.8])
    dense, stored = models[0].predict_proba(X), models[1].predict_proba(X).toarray()
    assert ((stored > 0).sum(axis=1) == 3).all()
    np.testing.assert_allclose(stored[stored > 0], dense[stored > 0], rtol=1e-12)
