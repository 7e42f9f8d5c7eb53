"""Products of sparse rows with a block of weights, and moves of the block, against numpy."""

import numpy as np
import pytest

from sklearn_xc._compile.emitters.float_lanes import ROW_BYTES, write_row_products
from sklearn_xc._compile.jit import kernel
from sklearn_xc._input.data import read_only

N_FEATURES = 40


@kernel
def write(indices, values, start, stop, block, factors, out, at):
    write_row_products(
        indices, values, np.uint64(start), np.uint64(stop), block, factors, out, np.uint64(at)
    )


@pytest.fixture(params=[np.float32, np.float64])
def dtype(request):
    return request.param


def make_block(dtype, skipped=0):
    """Return a block that begins so many bytes behind a number of whole rows, and factors."""
    rng = np.random.default_rng(skipped)
    width = ROW_BYTES // np.dtype(dtype).itemsize
    room = rng.normal(size=(N_FEATURES + 1) * width).astype(dtype)
    first = skipped // room.itemsize
    block = room[first : first + N_FEATURES * width].reshape(N_FEATURES, width)
    return block, rng.uniform(0.1, 2.0, width).astype(dtype)


def make_row(dtype, n, first=3):
    """Return a row of n non-zeros that stands behind others."""
    rng = np.random.default_rng(n)
    indices = np.full(first + n + 2, -(2**31), np.int32)  # would be found far outside
    indices[first : first + n] = rng.permutation(N_FEATURES)[:n]
    return indices, rng.normal(size=len(indices)).astype(dtype), first, first + n


@pytest.mark.parametrize(
    ("n", "at", "skipped"), [(0, 1, 8), (1, 0, 0), (2, 5, 32), (17, 1, 8), (N_FEATURES, 5, 8)]
)
def test_against_numpy(dtype, n, at, skipped):
    """At any place in memory; nothing beside the sums is written."""
    block, factors = make_block(dtype, skipped)
    indices, values, start, stop = make_row(dtype, n)
    out = np.full(at + len(factors) + 3, -7.0, dtype)
    arrays = map(read_only, (indices, values))
    write(*arrays, start, stop, block, factors, out, at)
    row = slice(start, stop)
    exact = values[row].astype(np.float64) @ block[indices[row]].astype(np.float64) * factors
    found = out[at : at + len(factors)]
    np.testing.assert_allclose(found, exact, atol=100 * np.finfo(dtype).eps)
    assert n > 0 or (found == 0).all()
    assert (out[:at] == -7).all()
    assert (out[at + len(factors) :] == -7).all()


def test_columns_with_the_same_weights_tie(dtype):
    block, factors = make_block(dtype)
    block[:] = block[:, :1].copy()
    factors[:] = factors[0]
    out = np.empty(len(factors), dtype)
    write(*make_row(dtype, 7), block, factors, out, 0)
    assert len(np.unique(out)) == 1


def test_infinities_and_nan_stay_in_their_columns(dtype):
    block, factors = make_block(dtype)
    indices, values, start, stop = make_row(dtype, 9)
    expected = np.empty(len(factors), dtype)
    write(indices, values, start, stop, block, factors, expected, 0)
    block[:, 1], block[indices[start], 2], factors[3] = np.inf, np.nan, 0.0
    found = np.empty(len(factors), dtype)
    write(indices, values, start, stop, block, factors, found, 0)
    assert not np.isfinite(found[1:3]).any()
    assert found[3] == 0
    others = np.r_[0, 4 : len(factors)]
    np.testing.assert_array_equal(found[others], expected[others])
