"""The generated vector code against numpy, in sums that float32 holds exactly."""

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sklearn_xc.kernels._jit import FASTMATH
from sklearn_xc.kernels.int16_lanes import AHEAD, lowest_bit, prefetch, row_screen
from sklearn_xc.kernels.screen import LEVELS, WIDTHS

# Not the package's `kernel`, whose cache on disk would not notice an edit of this file.
jit = numba.njit(nogil=True, fastmath=FASTMATH, error_model="numpy")


def make_mask_rows(width):
    screen = row_screen(width)

    @jit
    def mask_rows(indptr, indices, data, block, first, threshold, out):
        for i in range(out.shape[0]):
            start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
            end = np.uint64(indptr[indptr.shape[0] - 1])
            out[i] = screen(indices, data, start, stop, end, block, first[i], threshold)

    return mask_rows


MASK_ROWS = {width: make_mask_rows(width) for width in WIDTHS}


def masks(X, block, first, threshold):
    """Return the mask of each row of a CSR matrix, uint64."""
    out = np.zeros(X.shape[0], np.uint64)
    indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int32)
    MASK_ROWS[block.shape[1]](
        indptr, indices, X.data, block, np.float32(first), np.float32(threshold), out
    )
    return out


def bits(mask, width):
    """Return the lowest bits of a mask as booleans; the others are zero."""
    assert int(mask) >> width == 0
    return [bool(int(mask) >> k & 1) for k in range(width)]


@given(
    width=st.sampled_from(WIDTHS),
    dtype=st.sampled_from([np.float32, np.float64]),
    n=st.integers(1, 8),
    d=st.integers(1, 3 * AHEAD),
    seed=st.integers(0, 2**31),
)
def test_bit_k_tells_whether_the_kth_sum_is_above_its_threshold(width, dtype, n, d, seed):
    """Rows of any length, the last ones shorter than what is fetched ahead; thresholds are met."""
    rng = np.random.default_rng(seed)
    dense = rng.integers(-4, 5, (n, d)) * (rng.random((n, d)) < rng.random((n, 1)))
    block = rng.integers(-LEVELS, LEVELS + 1, (d, width)).astype(np.int16)
    first = rng.integers(0, 100, n) / 2
    sums = first[:, None] + dense @ block.astype(np.float64)
    threshold = sums[rng.integers(n, size=width), np.arange(width)] + rng.integers(-1, 2, width)
    threshold[rng.random(width) < 0.2] = np.inf
    got = masks(sp.csr_array(dense.astype(dtype)), block, first, threshold)
    np.testing.assert_array_equal([bits(m, width) for m in got], sums > threshold)


@pytest.mark.parametrize("width", WIDTHS)
def test_nan_is_above_every_threshold(width):
    """A value beyond float32 times a zero is NaN, and so is a sum of both infinities."""
    block = np.zeros((2, width), np.int16)
    block[:, 1] = 1
    block[:, 2] = 1, -1
    X = sp.csr_array(np.array([[1e300, 0.0], [1e300, 1e300], [0.0, 0.0]]))
    got = masks(X, block, np.zeros(3), np.full(width, 1e38))
    expected = np.ones((3, width), bool)
    expected[2] = False
    np.testing.assert_array_equal([bits(m, width) for m in got], expected)
    infinite = masks(X, block, [0, 0, np.nan], np.full(width, np.inf))
    expected[:2, 1], expected[0, 2], expected[2] = False, False, True
    np.testing.assert_array_equal([bits(m, width) for m in infinite], expected)


def test_features_beyond_65536():
    block = np.zeros((70_001, 16), np.int16)
    block[70_000, 3], block[70_000 - 65_536, 4] = 5, 5
    X = sp.csr_array((np.ones(1), ([0], [70_000])), shape=(1, 70_001))
    assert masks(X, block, [0.0], np.full(16, 4.5)).tolist() == [1 << 3]


def test_lowest_bit():
    lowest = jit(lambda mask: lowest_bit(mask))
    rng = np.random.default_rng(0)
    for k in range(64):
        higher = int(rng.integers(2**63)) << k + 1 & 2**64 - 1
        assert lowest(np.uint64(1 << k)) == lowest(np.uint64(higher | 1 << k)) == k


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
def test_prefetch_changes_nothing_and_may_look_beyond_the_end(dtype):
    @jit
    def fetch(array, index):
        prefetch(array, np.uint64(index))
        return array[0]

    array = np.arange(1, 101, dtype=dtype)
    for index in (0, 99, 100, 10**6):
        assert fetch(array, index) == 1
    np.testing.assert_array_equal(array, np.arange(1, 101))
    assert fetch(np.ones(1, dtype), 0) == 1
