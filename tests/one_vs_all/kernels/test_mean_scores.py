"""Best scores of equal rows, against scipy and closed forms."""

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_xc.one_vs_all.kernels.mean_scores import constant_scores_kernel, two_means_kernel
from sklearn_xc.one_vs_all.losses import LOSSES
from sklearn_xc.one_vs_all.losses.margin import compiled


def constant_scores(loss, positive, negative):
    out = np.full(len(positive), np.nan)
    positive, negative = np.asarray(positive, float), np.asarray(negative, float)
    constant_scores_kernel(compiled(LOSSES[loss]()))(positive, negative, out)
    return out


@pytest.mark.parametrize("loss", LOSSES)
def test_they_minimise_ridge_and_loss(loss, compiled_loss):
    value = compiled_loss(loss, "value")
    rng = np.random.default_rng(0)
    positive, negative = 10.0 ** rng.uniform(-6, 6, (2, 50))
    found = constant_scores(loss, positive, negative)

    def objective(m, p, q):
        return 0.5 * m * m + p * value(m) + q * value(-m)

    for m, p, q in zip(found, positive, negative, strict=True):
        best = scipy.optimize.minimize_scalar(objective, (-1, 1), args=(p, q), tol=1e-10)
        assert objective(m, p, q) <= best.fun * (1 + 1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_any_weight_gives_a_finite_score(loss):
    scales = [0.0, 5e-324, 1e-300, 1e-20, 1.0, 1e20, 1e150]
    p, q = (side.ravel() for side in np.meshgrid(scales, scales))
    found = constant_scores(loss, p, q)
    assert np.isfinite(found).all()
    assert (found[p == q] == 0).all()
    assert (np.sign(found) == np.sign(p - q))[np.maximum(p, q) > 1e-300].all()


@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=25, deadline=None)
@given(
    d=st.integers(1, 4),
    plus=st.sampled_from([0.0, 0.1, 3.0, 200.0]),
    minus=st.sampled_from([0.0, 1.0, 1e4]),
    is_zero=st.sampled_from([0, 0, 1, 2]),
    seed=st.integers(0, 2**32 - 1),
)
def test_no_other_weights_are_better(loss, d, plus, minus, is_zero, seed, compiled_loss):
    """Of one feature, means are parallel; the objective is the smallest up to the last step."""
    rng, value = np.random.default_rng(seed), compiled_loss(loss, "value")
    p, q = (
        rng.normal(size=(2, d)) * rng.choice([0.1, 1, 5], (2, 1)) * [[is_zero != 1], [is_zero != 2]]
    )

    def objective(w):
        return 0.5 * w @ w + plus * value(w @ p) + minus * value(-w @ q)

    kernel = two_means_kernel(compiled(LOSSES[loss]()))
    a, b = kernel(float(p @ p), float(p @ q), float(q @ q), plus, minus)
    found = objective(a * p + b * q)
    best = min(
        scipy.optimize.minimize(objective, start, method="BFGS").fun
        for start in (np.zeros(d), a * p + b * q)
    )
    assert found <= best * (1 + 2e-4) + 1e-9
