"""Rows of X times a block of 16 columns, and multiples of rows added to a block, against numpy."""

import numpy as np
import pytest

from sklearn_xc._compile.emitters.row_lanes import (
    LANES,
    add_row_multiples,
    add_row_squares,
    weigh_row,
    write_row_scores,
)
from sklearn_xc._compile.jit import kernel
from sklearn_xc._input.data import read_only

N_FEATURES = 40
#: Of what is summed, and of the sums.
TYPES = [(np.float32, np.float32), (np.float32, np.float64), (np.float64, np.float64)]


@kernel
def write(indices, values, start, stop, block, out, at):
    write_row_scores(indices, values, np.uint64(start), np.uint64(stop), block, out, np.uint64(at))


@kernel
def add(indices, values, start, stop, moves, at, block):
    add_row_multiples(
        indices, values, np.uint64(start), np.uint64(stop), moves, np.uint64(at), block
    )


@kernel
def add_squares(indices, values, start, stop, moves, at, block):
    add_row_squares(indices, values, np.uint64(start), np.uint64(stop), moves, np.uint64(at), block)


@kernel
def weigh(values, slopes, bends, r, weight, square, costs, sums, curvatures, at):
    weigh_row(
        values,
        slopes,
        bends,
        np.uint64(r),
        weight,
        square,
        costs,
        sums[0],
        sums[1],
        sums[2],
        curvatures,
        np.uint64(at),
    )


def make_row(dtype, n, first=3):
    """Return a row of n non-zeros that stands behind others."""
    rng = np.random.default_rng(n)
    indices = np.full(first + n + 2, -(2**31), np.int32)  # would be found far outside
    indices[first : first + n] = rng.permutation(N_FEATURES)[:n]
    values = rng.normal(size=len(indices)).astype(dtype)
    return read_only(indices), read_only(values), first, first + n


def make_block(n, dtype, skipped):
    """Return a block that begins so many numbers behind a place that suits vectors."""
    room = np.random.default_rng(skipped).normal(size=(n + 1) * LANES).astype(dtype)
    return room[skipped : skipped + n * LANES].reshape(n, LANES)


@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("n", [0, 17])
def test_scores(types, n):
    """At any place in memory; nothing beside the sums is written."""
    skipped = 1
    dtype, of_sum = types
    block, (indices, values, start, stop) = (
        make_block(N_FEATURES, dtype, skipped),
        make_row(dtype, n),
    )
    out = np.full((4, LANES), -7.0, of_sum)
    write(indices, values, start, stop, block, out, 2)
    row = slice(start, stop)
    exact = values[row].astype(np.float64) @ block[indices[row]].astype(np.float64)
    np.testing.assert_allclose(out[2], exact, atol=100 * np.finfo(of_sum).eps)
    assert n > 0 or (out[2] == 0).all()
    assert (out[[0, 1, 3]] == -7).all()


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("types", TYPES)
def test_multiples(types, power):
    dtype, of_sum = types
    block, moves = make_block(N_FEATURES, of_sum, 1), make_block(3, of_sum, 0)
    indices, values, start, stop = make_row(dtype, 17)
    row, before = slice(start, stop), block.copy()
    (add if power == 1 else add_squares)(indices, values, start, stop, moves, 1, block)
    exact = before.astype(np.float64)
    exact[indices[row]] += np.outer(values[row].astype(np.float64) ** power, moves[1])
    np.testing.assert_allclose(block, exact, atol=100 * np.finfo(of_sum).eps)
    untouched = np.setdiff1d(np.arange(N_FEATURES), indices[row])
    np.testing.assert_array_equal(block[untouched], before[untouched])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weighing(dtype):
    rng = np.random.default_rng(0)
    values, slopes, bends = rng.normal(size=(3, 4, LANES))
    costs, sums = rng.normal(size=LANES), rng.normal(size=(3, LANES))
    curvatures, before, old = np.full((3, LANES), -7.0, dtype), sums.copy(), slopes.copy()
    weigh(values, slopes, bends, 2, 0.7, 1.9, costs, sums, curvatures, 1)
    cost = 0.7 * costs
    np.testing.assert_allclose(slopes[2], -cost * old[2], rtol=1e-14)
    np.testing.assert_array_equal(slopes[[0, 1, 3]], old[[0, 1, 3]])
    expected = [cost * values[2], slopes[2], 1.9 * cost * bends[2]]
    np.testing.assert_allclose(sums, before + expected, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(curvatures[1], cost * bends[2], rtol=2 * np.finfo(dtype).eps)
    assert (curvatures[[0, 2]] == -7).all()
