"""Gradient, Hessian product and conjugate gradients against the dense Hessian."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc._compile.jit import kernel
from sklearn_xc._input.data import read_only
from sklearn_xc.one_vs_all.kernels import dense_rows, sparse_rows
from sklearn_xc.one_vs_all.kernels.newton_direction import (
    cg_function,
    gradient_function,
    product_function,
)

KERNELS = {
    module: SimpleNamespace(
        dtype=dtype,
        add_gradient=kernel(gradient_function(module)),
        add_loss_product=kernel(product_function(module)),
        conjugate_gradients=kernel(cg_function(module)),
    )
    for module, dtype in ((sparse_rows, np.float32), (dense_rows, np.float64))
}
#: The rows of the sum, in any order.
CHOSEN = np.random.default_rng(3).permutation(40)[:25].astype(np.int32)
D = 8


@pytest.fixture(params=KERNELS, ids=["csr", "dense"])
def module(request):
    return request.param


@pytest.fixture
def rows(module):
    """Return 40 rows in both forms, and derivatives of the chosen ones, some of them zero."""
    rng, dtype = np.random.default_rng(0), KERNELS[module].dtype
    dense = rng.normal(size=(40, D)) * (rng.random((40, D)) < 0.4)
    dense[CHOSEN[4]] = 0
    X = sp.csr_array(dense.astype(dtype))
    parts = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data
    slopes = rng.normal(size=30)  # more than there are rows
    slopes[[2, 7]] = 0.0
    curvatures = 0.1 + rng.random(30)
    curvatures[[2, 7, 9]] = 0.0  # the Huber-hinge has a slope without a curvature
    return SimpleNamespace(
        kernels=KERNELS[module],
        X=tuple(map(read_only, parts if module is sparse_rows else (X.toarray(),))),
        dense=X.toarray().astype(np.float64)[CHOSEN],
        slopes=slopes,
        curvatures=curvatures,
        eps=float(np.finfo(dtype).eps),
        dtype=dtype,
    )


def dense_hessian(rows, intercept):
    """Return the Hessian over the features, the intercept and the untouched coordinate."""
    n = len(CHOSEN)
    columns = np.hstack([rows.dense, np.full((n, 1), intercept), np.zeros((n, 1))])
    return np.eye(D + 2) + (columns.T * rows.curvatures[:n]) @ columns


def solve_by_kernel(rows, hessian, gradient, intercept, cg):
    """Return the step of ``conjugate_gradients`` and the number of products."""
    work = np.full((6, D + 4), np.nan, rows.dtype)
    n_products = rows.kernels.conjugate_gradients(
        rows.X, CHOSEN, rows.curvatures, intercept, gradient, np.diag(hessian).copy(), cg, work
    )
    return work[0, : D + 2], n_products


def test_add_gradient(rows):
    gradient, diagonal, n = np.ones(D + 2), np.ones(D + 2), len(CHOSEN)
    rows.kernels.add_gradient(rows.X, CHOSEN, rows.slopes, rows.curvatures, gradient, diagonal)
    columns = np.hstack([rows.dense, np.ones((n, 1)), np.zeros((n, 1))])
    np.testing.assert_allclose(gradient, 1 + columns.T @ rows.slopes[:n], rtol=1e-13)
    np.testing.assert_allclose(diagonal, 1 + (columns**2).T @ rows.curvatures[:n], rtol=1e-13)


@pytest.mark.parametrize("intercept", [1.0, 0.0])
def test_add_loss_product(rows, intercept):
    vector = np.random.default_rng(1).normal(size=D + 2).astype(rows.dtype)
    out = np.ones(D + 2, rows.dtype)
    arguments = rows.X, CHOSEN, rows.curvatures, intercept, vector, out
    total = rows.kernels.add_loss_product(*arguments)
    expected = dense_hessian(rows, intercept) @ vector - vector
    np.testing.assert_allclose(out, 1 + expected, atol=200 * rows.eps)
    np.testing.assert_allclose(total, vector @ expected, atol=200 * rows.eps)


@pytest.mark.parametrize("intercept", [1.0, 0.0])
def test_conjugate_gradients_with_no_tolerance_solve_the_system(rows, intercept):
    hessian = dense_hessian(rows, intercept)
    gradient = np.random.default_rng(2).normal(size=D + 2)
    gradient[D] *= intercept
    step, n_products = solve_by_kernel(rows, hessian, gradient, intercept, (0.0, 0.01, 200))
    assert 5 <= n_products <= 60
    expected = -np.linalg.solve(hessian, gradient)
    np.testing.assert_allclose(step, expected, atol=1e3 * rows.eps, rtol=10 * rows.eps**0.5)
