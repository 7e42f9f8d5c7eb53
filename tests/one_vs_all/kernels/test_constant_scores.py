"""The best constant scores, against scipy and closed forms."""

import numpy as np
import pytest
import scipy.optimize

from sklearn_xc.one_vs_all.kernels.constant_scores import constant_scores_kernel
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
