"""Newton-CG of 16 labels side by side: losses, products and steps against numpy."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from sklearn_xc._input.data import read_only
from sklearn_xc.one_vs_all.kernels import smooth
from sklearn_xc.one_vs_all.kernels.smooth import LANES, TILE
from sklearn_xc.one_vs_all.losses import LOSSES
from sklearn_xc.one_vs_all.losses.margin import compiled

N, D = 3 * TILE + 5, 9
CLOSE = {"rtol": 1e-4, "atol": 1e-4}
each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
few = settings(max_examples=25, deadline=None)
shapes = {"n": st.integers(0, 9), "d": st.integers(0, 9), "seed": st.integers(0, 2**32 - 1)}
tried = given(d=st.integers(0, 9), seed=st.integers(0, 2**32 - 1))


def lanes(rng, d, *, dtype=np.float64):
    return rng.normal(size=(d + 1, LANES)).astype(dtype)


@pytest.mark.parametrize("intercept", [1.0, 0.0])
@few
@tried
def test_add_ridge(intercept, d, seed):
    rng = np.random.default_rng(seed)
    point, gradient = lanes(rng, d), lanes(rng, d)
    expected = gradient + point
    expected[d] = intercept * gradient[d] + point[d]
    norm2, gradient_norm2 = np.full((2, LANES), np.nan)
    smooth.add_ridge(point, intercept, gradient, norm2, gradient_norm2)
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
    smooth.begin_directions(gradient, scale, diagonal, weight, vectors, rz, squares)
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
    smooth.take_steps(alpha, gradient, scale, diagonal, vectors, gained, rz)
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
    smooth.update_directions(going.astype(float), beta, diagonal, vectors, squares)
    np.testing.assert_allclose(vectors[2], turned, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(vectors[3], vectors[2])
    stopped = rng.random(LANES) < 0.5
    smooth.stop_steps(stopped, vectors)
    np.testing.assert_allclose(vectors[2], np.where(stopped, 0.0, turned), rtol=1e-3, atol=1e-3)


def make(rng, n, d, dtype):
    """Return CSR rows and the same dense, some of them empty; curvatures, and a range of rows."""
    dense = (rng.normal(size=(n, d)) * (rng.random((n, d)) < rng.random((n, 1)))).astype(dtype)
    X = sp.csr_array(dense)
    arrays = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data
    curvatures = (rng.random((n, LANES)) * (rng.random((n, LANES)) < 0.7)).astype(dtype)
    some = np.sort(rng.integers(0, n + 1, 2)).tolist()
    return tuple(map(read_only, arrays)), dense.astype(float), curvatures, some


@each_dtype
@few
@given(**shapes)
def test_add_squares(dtype, n, d, seed):
    rng = np.random.default_rng(seed)
    X, dense, curvatures, (first, last) = make(rng, n, d, dtype)
    diagonal = rng.normal(size=(d + 1, LANES)).astype(dtype)
    expected = diagonal.astype(float)
    expected[:d] += (dense[first:last] ** 2).T @ curvatures[first:last]
    smooth.add_squares(X, curvatures, first, last, diagonal)
    np.testing.assert_allclose(diagonal, expected, **CLOSE)


@each_dtype
@few
@given(**shapes, intercept=st.sampled_from([0.0, 1.0]))
def test_add_products(dtype, n, d, seed, intercept):
    rng = np.random.default_rng(seed)
    X, dense, curvatures, (first, last) = make(rng, n, d, dtype)
    direction, product = rng.normal(size=(2, d + 1, LANES)).astype(dtype)
    shift, curved = rng.normal(size=(2, LANES))
    rows = np.hstack([dense, np.full((n, 1), intercept)])[first:last]
    scores = rows @ direction.astype(float)
    changes = curvatures[first:last] * scores
    expected = product.astype(float)
    expected[:d] += dense[first:last].T @ changes
    expected_shift, expected_curved = (
        shift + changes.sum(axis=0),
        curved + (changes * scores).sum(0),
    )
    work = np.full((1, LANES), np.nan, dtype)
    smooth.add_products(
        X, curvatures, first, last, intercept, direction, work, shift, curved, product
    )
    np.testing.assert_allclose(product, expected, **CLOSE)
    np.testing.assert_allclose(shift, expected_shift, **CLOSE)
    np.testing.assert_allclose(curved, expected_curved, **CLOSE)


@pytest.mark.parametrize(
    ("dtype", "cuts"), [(np.float32, [0, N]), (np.float64, [0, 7, TILE, TILE, 2 * TILE + 1, N])]
)
def test_losses_and_derivatives(dtype, cuts):
    rng = np.random.default_rng(0)
    X = sp.random_array((N, D), density=0.4, rng=rng, format="csr").astype(dtype)
    rows = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data
    Y = rng.random((N, LANES)) < 0.2
    Y[:, 3], Y[:, 5] = False, True
    Y[[0, N - 1], 7] = True
    y = sp.csc_array(Y)
    weight = (0.5 + rng.random(N)).astype(dtype)
    plus, minus = 0.1 + rng.random((2, LANES)) * 3
    point = rng.normal(size=(D + 1, LANES)).astype(dtype)
    squares = np.empty(N)
    smooth.measure_rows(tuple(map(read_only, rows)), 1.0, squares)
    next_positive, end = y.indptr[:-1].astype(np.int64), y.indptr[1:].astype(np.int64)
    loss, trace = np.zeros((2, LANES))
    gradient, curvatures = np.zeros((D + 1, LANES)), np.full((N, LANES), np.nan, dtype)
    add_losses = smooth.smooth_loss_kernel(compiled(LOSSES["logistic"]()))
    data = tuple(map(read_only, rows)), read_only(weight), squares
    relevance = 0.5 + rng.random(y.nnz) if dtype == np.float64 else np.zeros(0)
    targets = read_only(y.indices.astype(np.int32)), read_only(relevance), next_positive, end
    tile, sums = np.empty((4, TILE, LANES)), (loss, gradient, trace, curvatures)
    for first, last in itertools.pairwise(cuts):
        add_losses(data, first, last, targets, (plus, minus), point, tile, sums)
    ones = np.hstack([X.toarray(), np.ones((N, 1))]).astype(np.float64)
    scores = ones @ point.astype(np.float64)
    sign = np.where(Y, 1.0, -1.0)
    cost = weight[:, None].astype(np.float64) * np.where(Y, plus, minus)
    if len(relevance):
        cost.T[Y.T] *= relevance
    chance = expit(sign * scores)
    np.testing.assert_allclose(squares, (ones**2).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(loss, (-cost * np.log(chance)).sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(gradient, ones.T @ (-sign * cost * (1 - chance)), atol=1e-12)
    expected = cost * chance * (1 - chance)
    np.testing.assert_allclose(curvatures, expected, rtol=4 * np.finfo(dtype).eps, atol=1e-15)
    np.testing.assert_allclose(trace, (expected * squares[:, None]).sum(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(next_positive, end)
