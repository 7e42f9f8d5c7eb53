"""The weights of a point that are not zero, against numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_xc.kernels.one_vs_all.block_newton import list_weights


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=25, deadline=None)
@given(d=st.integers(0, 12), share=st.sampled_from([0.0, 0.5, 1.0]), seed=st.integers(0, 2**32 - 1))
def test_list_weights(dtype, d, share, seed):
    """Whatever the intercept; NaN is a weight, a zero below zero is none."""
    rng = np.random.default_rng(seed)
    weights, zeros = rng.choice([1.5, -2.0, 1e-40, np.nan, np.inf], d + 1), rng.choice([0, -0.0])
    point = np.where(rng.random(d + 1) < share, weights, zeros).astype(dtype)
    indices, values = np.full(d + 1, -1, np.int32), np.full(d + 1, 7.0, dtype)
    n = list_weights(point, indices, values)
    expected = np.flatnonzero(point[:-1] != 0)
    assert indices[:n].tolist() == expected.tolist()
    np.testing.assert_array_equal(values[:n], point[expected])
    assert (indices[d], values[d]) == (-1, 7)
