"""Inner products in a fixed order, against the same order written in numpy."""

import numpy as np
import pytest
from numba.core.errors import TypingError

from sklearn_xc._compile.emitters.dense_dot import dense_dot
from sklearn_xc._compile.jit import kernel


@kernel
def dot(a, a_first, b, b_first, n):
    return dense_dot(a, np.uint64(a_first), b, np.uint64(b_first), np.uint64(n))


@kernel
def dot_rows(a, b, out):
    n = np.uint64(a.shape[1])
    for i in range(np.uint64(a.shape[0])):
        out[i] = dense_dot(b, np.uint64(0), a, i * n, n)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [*range(20), 31, 32, 33, 100, 128, 513])
def test_inner_products(dtype, n):
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=(7, n)).astype(dtype), rng.normal(size=n).astype(dtype)
    out = np.empty(7, dtype)
    dot_rows(a, b, out)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(out, exact, atol=20 * np.finfo(dtype).eps * max(1, n) ** 0.5)
    alone = [dot(a, i * n, b, 0, n) for i in range(7)]
    np.testing.assert_array_equal(alone, out)


@pytest.mark.parametrize("n", [5, 16, 27])
def test_nothing_beyond_the_numbers_counts(n):
    a, b = np.full(60, np.nan, np.float32), np.full(60, np.nan, np.float32)
    a[3 : 3 + n], b[11 : 11 + n] = 2.0, 3.0
    assert dot(a, 3, b, 11, n) == 6 * n


@pytest.mark.parametrize(
    "other", [np.ones(4), np.ones(8, np.float32)[::2]], ids=["other type", "strided"]
)
def test_what_cannot_be_read_is_refused(other):
    with pytest.raises(TypingError, match="C-contiguous arrays of one type"):
        dot(np.ones(4, np.float32), 0, other, 0, 4)
