"""Loss, gradient, trace and curvatures of 16 labels against numpy."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit

from sklearn_xc._compile.emitters.row_lanes import LANES
from sklearn_xc._input.data import read_only
from sklearn_xc.one_vs_all.kernels.smooth_loss import TILE, measure_rows, smooth_loss_kernels
from sklearn_xc.one_vs_all.losses import LOSSES
from sklearn_xc.one_vs_all.losses.margin import compiled

N, D = 3 * TILE + 5, 9


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("cuts", [[0, N], [0, 7, TILE, TILE, 2 * TILE + 1, N]])
def test_against_numpy(dtype, cuts):
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
    measure_rows(tuple(map(read_only, rows)), 1.0, squares)
    next_positive, end = y.indptr[:-1].astype(np.int64), y.indptr[1:].astype(np.int64)
    loss, trace = np.zeros((2, LANES))
    gradient, curvatures = np.zeros((D + 1, LANES)), np.full((N, LANES), np.nan, dtype)
    kernels, alone = smooth_loss_kernels(compiled(LOSSES["logistic"]())), np.zeros(LANES)
    begin = next_positive.copy()
    for first, last in itertools.pairwise(cuts):
        kernels.add_losses(
            (tuple(map(read_only, rows)), read_only(weight), squares), first, last,
            read_only(y.indices.astype(np.int32)), next_positive, end, (plus, minus), point,
            np.empty((4, TILE, LANES)), loss, gradient, trace, curvatures,
        )  # fmt: skip
        kernels.sum_losses(
            tuple(map(read_only, rows)), read_only(weight), first, last,
            read_only(y.indices.astype(np.int32)), begin, end, plus, minus, point,
            np.empty((4, TILE, LANES)), alone,
        )  # fmt: skip

    ones = np.hstack([X.toarray(), np.ones((N, 1))]).astype(np.float64)
    scores = ones @ point.astype(np.float64)
    sign = np.where(Y, 1.0, -1.0)
    cost = weight[:, None].astype(np.float64) * np.where(Y, plus, minus)
    chance = expit(sign * scores)
    np.testing.assert_allclose(squares, (ones**2).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(loss, (-cost * np.log(chance)).sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(gradient, ones.T @ (-sign * cost * (1 - chance)), atol=1e-12)
    expected = cost * chance * (1 - chance)
    np.testing.assert_allclose(curvatures, expected, rtol=4 * np.finfo(dtype).eps, atol=1e-15)
    np.testing.assert_allclose(trace, (expected * squares[:, None]).sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(alone, loss, rtol=1e-13)
    np.testing.assert_array_equal(next_positive, end)
    np.testing.assert_array_equal(begin, end)
