"""Sums over vectors, beside numpy's."""

import numpy as np
import pytest

from sklearn_xc.one_vs_all.kernels.block_newton import norm_of_difference
from sklearn_xc.one_vs_all.kernels.mean_scores import dot


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dot_and_norm(dtype):
    for n in (0, 1, 7, 1000):
        a, b = np.random.default_rng(n).normal(size=(2, n)).astype(dtype)
        exact = a.astype(np.float64), b.astype(np.float64)
        assert dot(a, b) == pytest.approx(np.dot(*exact), rel=1e-13, abs=1e-13)
        expected = np.linalg.norm(2.5 * exact[0] - 0.5 * exact[1])
        assert norm_of_difference(2.5, a, 0.5, b) == pytest.approx(expected, rel=1e-12)
