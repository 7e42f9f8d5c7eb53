"""The generated vector code against numpy."""

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sklearn_xc._compile.emitters.int16_lanes import AHEAD, lowest_bit, row_screen
from sklearn_xc._compile.jit import FASTMATH
from sklearn_xc.one_vs_all.kernels.screen import LEVELS, WIDTHS

# Not the package's `kernel`, whose cache on disk would not notice an edit of this file.
jit = numba.njit(nogil=True, fastmath=FASTMATH, error_model="numpy")


def make_mask_rows(width):
    screen = row_screen(width)

    @jit
    def mask_rows(indptr, indices, values, block, first, limits, out):
        for i in range(out.shape[0]):
            start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
            end = np.uint64(indptr[indptr.shape[0] - 1])
            out[i] = screen(indices, values, start, stop, end, block, first[i], limits)

    return mask_rows


MASK_ROWS = {width: make_mask_rows(width) for width in WIDTHS}


def masks(X, block, first, limits):
    """Return the mask of each row of a CSR matrix, uint64."""
    out = np.zeros(X.shape[0], np.uint64)
    indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int32)
    MASK_ROWS[block.shape[1]](
        indptr,
        indices,
        X.data.astype(np.int16),
        block,
        np.asarray(first, np.int32),
        np.asarray(limits, np.int32),
        out,
    )
    return out


def bits(mask, width):
    """Return the lowest bits of a mask as booleans; the others are zero."""
    assert int(mask) >> width == 0
    return [bool(int(mask) >> k & 1) for k in range(width)]


@given(
    width=st.sampled_from(WIDTHS),
    n=st.integers(1, 8),
    d=st.integers(1, 3 * AHEAD),
    largest=st.sampled_from([1, 9, 500]),
    seed=st.integers(0, 2**31),
)
def test_bit_k_tells_whether_the_kth_sum_reaches_its_limit(width, n, d, largest, seed):
    """Rows of any length, the last ones shorter than what is fetched ahead; limits are met."""
    rng = np.random.default_rng(seed)
    dense = rng.integers(-largest, largest + 1, (n, d)) * (rng.random((n, d)) < rng.random((n, 1)))
    block = rng.integers(-LEVELS, LEVELS + 1, (d, width)).astype(np.int16)
    first = rng.integers(-100, 100, n)
    sums = first[:, None] + dense @ block.astype(np.int64)
    limits = sums[rng.integers(n, size=width), np.arange(width)] + rng.integers(-1, 2, width)
    limits[rng.random(width) < 0.2] = 2**31 - 1
    limits[rng.random(width) < 0.2] = -(2**31)
    got = masks(sp.csr_array(dense), block, first, limits)
    np.testing.assert_array_equal([bits(m, width) for m in got], sums >= limits)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("n", [1, 3])
def test_the_largest_products_do_not_wrap_around(width, n):
    """One product of two numbers of full size; more of them, with the norm of one."""
    block = np.full((n, width), -int(LEVELS / n**0.5), np.int16)
    X = sp.csr_array(np.full((2, n), int(LEVELS / n**0.5)) * [[1], [-1]])
    sums = X.toarray().astype(np.int64) @ block
    assert abs(sums).min() > 0.99 * LEVELS**2
    for off, expected in ((0, True), (1, False)):
        got = masks(X[[0]], block, [0], sums[0] + off)
        assert bits(got[0], width) == [expected] * width
        got = masks(X[[1]], block, [0], sums[1] + off)
        assert bits(got[0], width) == [expected] * width


def test_features_beyond_65536():
    block = np.zeros((70_001, 32), np.int16)
    block[70_000, 3], block[70_000 - 65_536, 4] = 5, 5
    X = sp.csr_array((np.ones(1), ([0], [70_000])), shape=(1, 70_001))
    assert masks(X, block, [0], np.full(32, 5)).tolist() == [1 << 3]


def test_lowest_bit():
    lowest = jit(lambda mask: lowest_bit(mask))
    rng = np.random.default_rng(0)
    for k in range(64):
        higher = int(rng.integers(2**63)) << k + 1 & 2**64 - 1
        assert lowest(np.uint64(1 << k)) == lowest(np.uint64(higher | 1 << k)) == k
