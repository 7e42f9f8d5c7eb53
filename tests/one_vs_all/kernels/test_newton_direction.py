"""Conjugate gradients against the dense Hessian; ``advance``'s tests have the gradient."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc._compile.jit import kernel
from sklearn_xc._input.data import read_only
from sklearn_xc.one_vs_all.kernels import dense_rows, sparse_rows
from sklearn_xc.one_vs_all.kernels.newton_direction import cg_function

KERNELS = {
    module: SimpleNamespace(dtype=dtype, conjugate_gradients=kernel(cg_function(module)))
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
    """Return 40 rows in both forms, and curvatures of the chosen ones, some of them zero."""
    rng, dtype = np.random.default_rng(0), KERNELS[module].dtype
    dense = rng.normal(size=(40, D)) * (rng.random((40, D)) < 0.4)
    dense[CHOSEN[4]] = 0
    X = sp.csr_array(dense.astype(dtype))
    parts = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data
    curvatures = 0.1 + rng.random(30)  # more than there are rows
    curvatures[[2, 7, 9]] = 0.0
    return SimpleNamespace(
        kernels=KERNELS[module],
        X=tuple(map(read_only, parts if module is sparse_rows else (X.toarray(),))),
        dense=X.toarray().astype(np.float64)[CHOSEN],
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
        *(rows.X, CHOSEN, rows.curvatures, intercept, 0.25, gradient),
        *(np.diag(hessian).copy(), cg, work),
    )
    return work[0, : D + 2], n_products


@pytest.mark.parametrize("intercept", [1.0, 0.0])
def test_conjugate_gradients_with_no_tolerance_solve_the_system(rows, intercept):
    hessian = dense_hessian(rows, intercept)
    gradient = np.random.default_rng(2).normal(size=D + 2)
    gradient[D] *= intercept
    step, n_products = solve_by_kernel(rows, hessian, gradient, intercept, (0.0, 0.01, 200))
    assert 5 <= n_products <= 60
    expected = -0.25 * np.linalg.solve(hessian, gradient)
    np.testing.assert_allclose(step, expected, atol=1e3 * rows.eps, rtol=10 * rows.eps**0.5)
