"""The block product and the sums over rows against dense numpy."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sklearn_xc.kernels._jit import kernel
from sklearn_xc.kernels.block_product import multiply_rows
from sklearn_xc.kernels.csr_sums import sum_csr_rows

multiply = kernel(multiply_rows)


def random_rows(rng, n, d, dtype):
    """Return canonical CSR rows with 0 to d entries each: every remainder of a division by 4."""
    dense = rng.normal(size=(n, d)) * (rng.random((n, d)) < rng.random((n, 1)))
    dense[:1] = 0
    X = sp.csr_array(dense.astype(dtype))
    return X.toarray(), X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data


@given(
    n=st.integers(1, 12),
    d=st.integers(1, 19),
    n_lanes=st.sampled_from([1, 2, 3, 7, 8, 16, 33]),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 2**31),
    data=st.data(),
)
def test_multiply_rows_is_the_dense_product(n, d, n_lanes, dtype, seed, data):
    rng = np.random.default_rng(seed)
    dense, *rows = random_rows(rng, n, d, dtype)
    block = rng.normal(size=(d + 1, n_lanes)).astype(dtype)
    first = data.draw(st.integers(0, n))
    last = data.draw(st.integers(first, n))
    out = np.full((n + 1, n_lanes), 7, dtype)
    multiply(*rows, block, first, last, out)
    expected = dense[first:last].astype(np.float64) @ block[:-1] + block[-1]
    np.testing.assert_allclose(out[: last - first], expected, atol=40 * np.finfo(dtype).eps)
    assert (out[last - first :] == 7).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_lanes", [1, 2, 5, 16, 31, 32])
def test_a_lane_does_not_depend_on_the_lanes_beside_it(n_lanes, dtype):
    rng = np.random.default_rng(0)
    _, *rows = random_rows(rng, 30, 50, dtype)
    block = rng.normal(size=(51, 32)).astype(dtype)
    wide, narrow = np.empty((30, 32), dtype), np.empty((30, n_lanes), dtype)
    multiply(*rows, block, 0, 30, wide)
    chosen = rng.permutation(32)[:n_lanes]
    multiply(*rows, np.ascontiguousarray(block[:, chosen]), 0, 30, narrow)
    np.testing.assert_array_equal(narrow, wide[:, chosen])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sum_csr_rows_adds_the_weighted_rows_and_the_constant_feature(dtype):
    rng = np.random.default_rng(1)
    dense, *rows = random_rows(rng, 20, 9, dtype)
    weight = rng.random(20).astype(dtype)
    chosen = np.array([0, 3, 3, 19], np.int32)
    out = np.ones(10)
    sum_csr_rows(*rows, chosen, weight, out)
    with_constant = np.hstack([dense, np.ones((20, 1))]).astype(np.float64)
    expected = 1 + (weight[chosen, None].astype(np.float64) * with_constant[chosen]).sum(axis=0)
    np.testing.assert_allclose(out, expected, rtol=1e-14)


def test_features_beyond_65536():
    X = sp.csr_array(np.ones((1, 1)))
    indptr, indices = X.indptr.astype(np.int64), np.array([70_000], np.int32)
    block = np.zeros((70_002, 2))
    block[70_000] = [3.0, 4.0]
    block[70_000 - 65_536] = 100.0
    out = np.empty((1, 2))
    multiply(indptr, indices, X.data, block, 0, 1, out)
    assert out.tolist() == [[3.0, 4.0]]
    total = np.zeros(70_002)
    sum_csr_rows(indptr, indices, X.data, np.zeros(1, np.int32), np.ones(1), total)
    assert np.flatnonzero(total).tolist() == [70_000, 70_001]
