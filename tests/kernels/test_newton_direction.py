"""Gradient, Hessian product and conjugate gradients against the dense Hessian."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc.kernels._jit import kernel
from sklearn_xc.kernels.newton_direction import (
    add_gradient,
    compact_rows,
    conjugate_gradients,
    hessian_product,
)

compact = kernel(compact_rows)
gradient_kernel = kernel(add_gradient)
product_kernel = kernel(hessian_product)
cg_kernel = kernel(conjugate_gradients)

DTYPES = [np.float32, np.float64]
#: (intercept, ridge): with a regularised intercept, a free one, none.
INTERCEPTS = [(1.0, 1.0), (1.0, 0.0), (0.0, 0.0)]


@pytest.fixture
def rows():
    """Return dense rows, their CSR parts in a dtype, and derivatives with some zeros."""
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(25, 8)) * (rng.random((25, 8)) < 0.4)
    dense[4] = 0
    slopes = rng.normal(size=25)
    slopes[[2, 7]] = 0.0
    curvatures = np.where(slopes == 0.0, 0.0, 0.1 + rng.random(25))

    def parts(dtype):
        X = sp.csr_array(dense.astype(dtype))
        return X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data

    return dense, parts, slopes, curvatures


def dense_hessian(dense, curvatures, intercept, ridge):
    """Return the Hessian over the features, the intercept and the untouched coordinate."""
    n, d = dense.shape
    columns = np.hstack([dense, np.full((n, 1), intercept), np.zeros((n, 1))])
    return np.diag([*np.ones(d), ridge, 1.0]) + (columns.T * curvatures) @ columns


def test_compact_rows_renumbers_the_touched_features(rows):
    dense, parts, _, _ = rows
    indptr, indices, data = parts(np.float64)
    chosen = np.array([3, 4, 11, 0], np.int32)
    position, touched = np.full(8, -1, np.int32), np.empty(8, np.int32)
    out = np.empty(5, np.int64), np.empty(40, np.int32), np.empty(40)
    n_local = compact(indptr, indices, data, chosen, position, *out, touched)
    out_indptr, out_indices, out_data = out
    size = out_indptr[-1]
    local = sp.csr_array((out_data[:size], out_indices[:size], out_indptr), shape=(4, n_local))
    np.testing.assert_array_equal(local.toarray(), dense[chosen][:, touched[:n_local]])
    assert set(touched[:n_local]) == set(np.flatnonzero(dense[chosen].any(axis=0)))
    np.testing.assert_array_equal(position[touched[:n_local]], np.arange(n_local))
    assert (position >= 0).sum() == n_local


@pytest.mark.parametrize("dtype", DTYPES)
def test_add_gradient(rows, dtype):
    dense, parts, slopes, curvatures = rows
    gradient, diagonal = np.ones(10), np.ones(10)
    gradient_kernel(*parts(dtype), slopes, curvatures, gradient, diagonal)
    tolerance = 10 * np.finfo(dtype).eps
    np.testing.assert_allclose(gradient[:8], 1 + dense.T @ slopes, atol=20 * tolerance)
    np.testing.assert_allclose(diagonal[:8], 1 + (dense**2).T @ curvatures, rtol=tolerance)
    assert gradient[8] == pytest.approx(1 + slopes.sum())
    assert diagonal[8] == pytest.approx(1 + curvatures.sum())
    assert gradient[9] == diagonal[9] == 1.0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("intercept", "ridge"), INTERCEPTS)
def test_hessian_product(rows, dtype, intercept, ridge):
    dense, parts, _, curvatures = rows
    vector = np.random.default_rng(1).normal(size=10).astype(dtype)
    out = np.full(10, np.nan, dtype)
    product_kernel(*parts(dtype), curvatures, intercept, ridge, vector, out)
    expected = dense_hessian(dense, curvatures, intercept, ridge) @ vector
    np.testing.assert_allclose(out, expected, atol=200 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("intercept", "ridge"), INTERCEPTS[:2])
def test_conjugate_gradients_with_a_tiny_tolerance_solve_the_system(rows, dtype, intercept, ridge):
    dense, parts, _, curvatures = rows
    hessian = dense_hessian(dense, curvatures, intercept, ridge)
    gradient = np.random.default_rng(2).normal(size=10)
    work = np.empty((5, 10), dtype)
    eps = float(np.finfo(dtype).eps)
    n_products = cg_kernel(
        *parts(dtype), curvatures, intercept, ridge, gradient, np.diag(hessian).copy(),
        (eps, 0.01, 100), work,
    )  # fmt: skip
    assert 5 <= n_products <= 40
    expected = -np.linalg.solve(hessian, gradient)
    np.testing.assert_allclose(work[0], expected, atol=1e3 * eps, rtol=1e-3)


def slow_conjugate_gradients(hessian, gradient, tolerance, diagonal_weight, max_iter):
    """Return step and products: textbook preconditioned CG, Nash and Sofer's stopping rule."""
    scale = 1 - diagonal_weight + diagonal_weight * np.diag(hessian)
    step, residual = np.zeros_like(gradient), -gradient
    direction = residual / scale
    model = 0.0
    for k in range(1, max_iter + 1):
        product = hessian @ direction
        rz = residual @ (residual / scale)
        alpha = rz / (direction @ product)
        step = step + alpha * direction
        residual = residual - alpha * product
        new_model = gradient @ step + 0.5 * step @ hessian @ step
        if k * (1 - model / new_model) <= tolerance:
            break
        model = new_model
        direction = residual / scale + residual @ (residual / scale) / rz * direction
    return step, k


@pytest.mark.parametrize("tolerance", [0.5, 0.1, 1e-3])
@pytest.mark.parametrize("diagonal_weight", [0.0, 0.01, 0.5])
@pytest.mark.parametrize("max_iter", [2, 100])
def test_conjugate_gradients_stop_where_the_twin_stops(rows, tolerance, diagonal_weight, max_iter):
    dense, parts, _, curvatures = rows
    hessian = dense_hessian(dense, curvatures, 1.0, 1.0)
    for seed in range(5):
        gradient = np.random.default_rng(seed).normal(size=10)
        work = np.empty((5, 10))
        n_products = cg_kernel(
            *parts(np.float64), curvatures, 1.0, 1.0, gradient, np.diag(hessian).copy(),
            (tolerance, diagonal_weight, max_iter), work,
        )  # fmt: skip
        step, k = slow_conjugate_gradients(hessian, gradient, tolerance, diagonal_weight, max_iter)
        assert n_products == k
        np.testing.assert_allclose(work[0], step, rtol=1e-8, atol=1e-10)
        assert gradient @ work[0] < 0


def test_no_curvature_ends_conjugate_gradients():
    """A free intercept without active rows: the Hessian is zero along it."""
    empty = np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0)
    work = np.full((5, 2), np.nan)
    n_products = cg_kernel(
        *empty, np.zeros(0), 1.0, 0.0, np.array([1.0, 0.0]), np.array([0.0, 1.0]), (0.5, 0.01, 9),
        work,
    )  # fmt: skip
    assert n_products == 1
    assert np.isfinite(work[0]).all()
