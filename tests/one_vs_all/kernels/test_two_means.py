"""The minimum for one positive and one negative instance, against scipy."""

import numpy as np
import pytest
import scipy.optimize

from sklearn_xc.one_vs_all.kernels.two_means import two_means_kernel
from sklearn_xc.one_vs_all.losses import LOSSES
from sklearn_xc.one_vs_all.losses.margin import compiled


def solve(*arguments):
    return two_means_kernel(compiled(LOSSES["logistic"]()))(*map(float, arguments))


@pytest.mark.parametrize("costs", [(1.0, 1.0), (0.5, 1e5), (300.0, 2.0), (3.0, 1e9)])
@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_minimum_over_all_weights(costs, seed):
    plus, minus = costs
    p, q = np.random.default_rng(seed).normal(size=(2, 6))
    p[-1] = q[-1] = 1.0

    def objective(w):
        return 0.5 * w @ w + plus * np.logaddexp(0, -w @ p) + minus * np.logaddexp(0, w @ q)

    a, b = solve(p @ p, p @ q, q @ q, plus, minus)
    found = objective(a * p + b * q)
    best = scipy.optimize.minimize(objective, a * p + b * q, method="BFGS", tol=1e-10).fun
    assert found == pytest.approx(best, rel=2e-4)


def test_parallel_and_missing_means():
    """Without positives their part is zero; parallel means have some minimum of the smallest f."""
    a, b = solve(0, 0, 2.0, 0, 10.0)
    assert a == 0
    assert b + 0.5 * 0 == pytest.approx(-10.0 / (1 + np.exp(-2.0 * b)), rel=1e-2)
    a, b = solve(1.0, 2.0, 4.0, 3.0, 5.0)  # q = 2 p
    w = a + 2 * b
    best = scipy.optimize.minimize_scalar(
        lambda w: 0.5 * w * w + 3 * np.logaddexp(0, -w) + 5 * np.logaddexp(0, 2 * w)
    )
    assert w == pytest.approx(best.x, abs=0.02)
