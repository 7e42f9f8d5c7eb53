"""Products of rows whose bits depend on the row, and the unit sphere, against numpy."""

import numpy as np
import pytest

from sklearn_xc.embedding.kernels.steps import (
    gradient_before_norms,
    gradient_before_rectifier,
    multiply_rows,
    normalise_rows,
    rectify_rows,
)

DTYPES = pytest.mark.parametrize(("dtype", "tol"), [(np.float32, 1e-5), (np.float64, 1e-13)])


@DTYPES
@pytest.mark.parametrize(("dim", "n_columns"), [(1, 1), (33, 64), (100, 70)])
def test_products(dtype, tol, dim, n_columns):
    rng = np.random.default_rng(0)
    U = rng.normal(size=(70, dim)).astype(dtype)
    M = rng.normal(size=(dim, n_columns)).astype(dtype)
    out = np.full((70, n_columns), np.nan, dtype)
    multiply_rows(U, M, out)
    np.testing.assert_allclose(out, U.astype(np.float64) @ M, atol=tol * dim)
    for first, last in ((0, 1), (5, 39), (40, 40), (33, 70)):
        some = np.full((last - first, n_columns), np.nan, dtype)
        multiply_rows(U[first:last], M, some)
        assert some.tobytes() == out[first:last].tobytes()


@DTYPES
def test_rectified_rows_and_the_gradient_before(dtype, tol):
    rng = np.random.default_rng(0)
    H, bias = rng.normal(size=(9, 21)).astype(dtype), rng.normal(size=21).astype(dtype)
    expected = np.maximum(H + bias, 0)
    rectify_rows(H, bias)
    np.testing.assert_array_equal(H, expected)
    assert 0.2 < (H == 0).mean() < 0.8
    G = rng.normal(size=H.shape).astype(dtype)
    expected = np.where(H > 0, G, 0)
    gradient_before_rectifier(G, H)
    np.testing.assert_array_equal(G, expected)


@DTYPES
def test_unit_rows_and_the_gradient_before(dtype, tol):
    rng = np.random.default_rng(0)
    U, Y = (rng.normal(size=(9, 21)).astype(dtype) for _ in range(2))
    U[2] = 0.0  # whatever Y is
    Y[5] = -U[5]  # the sum is 0
    V, inverse = np.full_like(U, np.nan), np.full(9, np.nan, dtype)
    normalise_rows(U, Y, V, inverse)
    total = U.astype(np.float64) + Y
    norms = np.linalg.norm(total, axis=1)
    norms[[2, 5]] = np.inf
    np.testing.assert_allclose(inverse, 1 / norms, rtol=tol)
    np.testing.assert_allclose(V, total / norms[:, None], atol=tol)
    G, out = rng.normal(size=U.shape).astype(dtype), np.full_like(U, np.nan)
    gradient_before_norms(G, V, inverse, out)
    expected = (G - np.sum(G * V, axis=1, keepdims=True) * V) / norms[:, None]
    np.testing.assert_allclose(out, expected, atol=10 * tol)
    assert not out[2].any()


@DTYPES
def test_a_square_that_overflows_is_no_number(dtype, tol):
    """A unit vector of 0 would be that of nothing."""
    U = np.array([[1.0, 2.0], [3.0, 1e19 if dtype == np.float32 else 1e154]], dtype)
    V, inverse = np.zeros_like(U), np.zeros(2, dtype)
    normalise_rows(U * U.dtype.type(2), U, V, inverse)
    assert np.isfinite(V[0]).all()
    assert np.isnan(V[1]).all()
    assert np.isnan(inverse[1])
