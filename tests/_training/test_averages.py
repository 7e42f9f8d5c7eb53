"""Means that move against numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_xc._training.kernels.averages import blend


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(0, 6),
    dim=st.integers(0, 6),
    further=st.integers(0, 2),
    share=st.sampled_from([0.0, 0.25, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_blend(dtype, n, dim, further, share, seed):
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=(n, dim)).astype(dtype)
    values = rng.normal(size=(n, dim + further)).astype(dtype)
    expected = mean + share * (2.0 * values[:, :dim] - mean)
    blend(mean, values, dtype(2.0), dtype(share))
    np.testing.assert_allclose(mean, expected, rtol=1e-5, atol=1e-6)
