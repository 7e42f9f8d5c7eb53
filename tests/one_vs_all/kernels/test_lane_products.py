"""Sums over rows for labels side by side, against dense products."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_xc._input.data import read_only
from sklearn_xc.one_vs_all.kernels.lane_newton import LANES, add_products, add_squares

CLOSE = {"rtol": 1e-5, "atol": 1e-4}
each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
few = settings(max_examples=25, deadline=None)
shapes = {"n": st.integers(0, 9), "d": st.integers(0, 9), "seed": st.integers(0, 2**32 - 1)}


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
    add_squares(X, curvatures, first, last, diagonal)
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
    add_products(X, curvatures, first, last, intercept, direction, work, shift, curved, product)
    np.testing.assert_allclose(product, expected, **CLOSE)
    np.testing.assert_allclose(shift, expected_shift, **CLOSE)
    np.testing.assert_allclose(curved, expected_curved, **CLOSE)
