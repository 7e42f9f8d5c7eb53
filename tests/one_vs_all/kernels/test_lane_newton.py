"""Steps of conjugate gradients of labels side by side against numpy, over random shapes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_xc.one_vs_all.kernels import lane_newton as kernels
from sklearn_xc.one_vs_all.kernels.lane_newton import LANES

CLOSE = {"rtol": 1e-4, "atol": 1e-4}
tried = given(d=st.integers(0, 9), seed=st.integers(0, 2**32 - 1))
few = settings(max_examples=25, deadline=None)


def lanes(rng, d, *, dtype=np.float64):
    return rng.normal(size=(d + 1, LANES)).astype(dtype)


@pytest.mark.parametrize(("intercept", "ridge"), [(1.0, 1.0), (1.0, 0.0), (0.0, 0.0)])
@few
@tried
def test_add_ridge(intercept, ridge, d, seed):
    rng = np.random.default_rng(seed)
    point, gradient = lanes(rng, d), lanes(rng, d)
    expected = gradient + point
    expected[d] = intercept * gradient[d] + ridge * point[d]
    norm2, gradient_norm2 = np.full((2, LANES), np.nan)
    kernels.add_ridge(point, intercept, ridge, gradient, norm2, gradient_norm2)
    np.testing.assert_allclose(gradient, expected)
    np.testing.assert_allclose(norm2, (point[:d] ** 2).sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(gradient_norm2, (expected**2).sum(axis=0))


@few
@tried
def test_a_direction_is_begun_stepped_along_and_turned(d, seed):
    rng = np.random.default_rng(seed)
    gradient, diagonal = lanes(rng, d), np.exp(lanes(rng, d, dtype=np.float32))
    scale, weight = rng.choice([0.0, 1.0, 2.0], LANES), rng.choice([0.0, 0.5, 1.0])
    vectors, rz, squares = np.full((4, d + 1, LANES), np.nan, np.float32), *np.full((2, LANES), 9.0)
    condition, downhill = 1.0 / ((1 - weight) + weight * diagonal), -scale * gradient
    kernels.begin_directions(gradient, scale, diagonal, weight, vectors, rz, squares)
    first = condition * downhill
    for found, expected in zip(vectors, (0 * first, downhill, first, first), strict=True):
        np.testing.assert_allclose(found, expected, **CLOSE)
    np.testing.assert_allclose(diagonal, condition, **CLOSE)
    np.testing.assert_allclose(rz, (downhill * first).sum(axis=0), **CLOSE)
    np.testing.assert_allclose(squares, (first**2).sum(axis=0), **CLOSE)

    vectors[3] = rng.normal(size=(d + 1, LANES))
    alpha, (step, residual, direction, product) = rng.normal(size=LANES), vectors.astype(float)
    step, residual = step + alpha * direction, residual - alpha * product
    gained = np.full(LANES, np.nan)
    kernels.take_steps(alpha, gradient, scale, diagonal, vectors, gained, rz)
    np.testing.assert_allclose(vectors[0], step, **CLOSE)
    np.testing.assert_allclose(vectors[1], residual, **CLOSE)
    np.testing.assert_allclose(
        gained, (step * (residual + downhill)).sum(axis=0), rtol=1e-3, atol=1e-3
    )
    np.testing.assert_allclose(
        rz, (residual * condition * residual).sum(axis=0), rtol=1e-3, atol=1e-3
    )

    going, beta = rng.random(LANES) < 0.5, rng.normal(size=LANES)
    turned = np.where(going, condition * residual + beta * direction, 0.0)
    kernels.turn_directions(going.astype(float), beta, diagonal, vectors, squares)
    np.testing.assert_allclose(vectors[2], turned, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(vectors[3], vectors[2])
    stopped = rng.random(LANES) < 0.5
    kernels.stop_steps(stopped, vectors)
    np.testing.assert_allclose(vectors[2], np.where(stopped, 0.0, turned), rtol=1e-3, atol=1e-3)
