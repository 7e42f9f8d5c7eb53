"""A logistic regression with bounds and a pull, beside scipy and scikit-learn."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from sklearn_xc._training.bounded_logistic import fit_bounded_logistic


def drawn(n=400, d=4, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, d)) * 3
    odds = features @ rng.normal(size=d)
    weight = rng.integers(0, 4, n).astype(float)
    return features, weight * (rng.random(n) < 1 / (1 + np.exp(-odds))), weight


def by_scipy(features, right, weight, target, pull, lower):
    def loss(coef):
        odds = features @ coef
        value = weight @ np.logaddexp(0, odds) - right @ odds
        slope = features.T @ (weight * expit(odds) - right)
        return value + 0.5 * pull @ (coef - target) ** 2, slope + pull * (coef - target)

    bounds = [(low if np.isfinite(low) else None, None) for low in lower]
    options = {"ftol": 1e-15, "maxiter": 10_000}
    found = minimize(loss, target, jac=True, bounds=bounds, method="SLSQP", options=options)
    return found.x, found.fun


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("low", [-np.inf, 0.0])
def test_the_least_of_the_loss(low, seed):
    features, right, weight = drawn(seed=seed)
    target, pull = np.array([1.0, 1.0, 0.5, 0.0]), np.array([3.0, 0.1, 10.0, 0.0])
    lower = np.array([low, low, low, -np.inf])
    arguments = features, right, weight, target, pull, lower
    coef, _, value = fit_bounded_logistic(*arguments)
    expected, least = by_scipy(*arguments)
    assert value == pytest.approx(least, rel=1e-9)
    np.testing.assert_allclose(coef, expected, atol=2e-4)
    assert (coef >= lower).all()
    if low == 0.0 and seed == 0:
        assert (coef[:3] == 0).any()


def test_without_bounds_it_is_scikit_learn():
    features, right, weight = drawn()
    kept = weight > 0
    coef, *_ = fit_bounded_logistic(
        features, right, weight, np.zeros(4), np.full(4, 2.0), np.full(4, -np.inf)
    )
    model = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10, max_iter=1000)
    model.fit(features[kept], right[kept] > 0, sample_weight=weight[kept])
    np.testing.assert_allclose(coef, model.coef_[0], atol=1e-5)


def test_parts_of_a_row_can_be_right():
    features, _, weight = drawn()
    coef, *_ = fit_bounded_logistic(
        features, 0.5 * weight, weight, np.ones(4), np.full(4, 1e-3), np.full(4, -np.inf)
    )
    np.testing.assert_allclose(coef, 0, atol=1e-3)


@pytest.mark.parametrize("n", [1, 3])
def test_separable_rows_end(n):
    """Where nothing pulls, coefficients would grow without end."""
    features = np.ones((n, 1)) * 1e3
    coef, _, value = fit_bounded_logistic(
        features, np.ones(n), np.ones(n), np.zeros(1), np.zeros(1), np.zeros(1)
    )
    assert np.isfinite(coef).all()
    assert value < 1e-6


def test_nothing_to_learn_from_leaves_the_target():
    target = np.array([1.0, 0.0])
    for n in (0, 5):
        coef, _, value = fit_bounded_logistic(
            np.ones((n, 2)), np.zeros(n), np.zeros(n), target, np.ones(2), np.zeros(2)
        )
        np.testing.assert_array_equal(coef, target)
        assert value == 0.0
