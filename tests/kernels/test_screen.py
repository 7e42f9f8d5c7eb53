"""The screen misses no row above the kink, and lists few others."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sklearn_xc._validation import read_only
from sklearn_xc.kernels.screen import (
    LEVELS,
    WIDTHS,
    list_above,
    round_points,
    screen_kernel,
    screening_reach,
)

KINK = -1.0


def list_rows(X, points, width, cuts=()):
    """Return the rows that the screen lists for each point, and the reach of each row.

    Parameters
    ----------
    X : csr_array of shape (n, d)
    points : ndarray of shape (n_points, d + 1)
        Of the dtype of X, intercept last.
    width : int
        Of the block.
    cuts : sequence of int
        Where to cut the rows into ranges.
    """
    n, d = X.shape
    indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int32)
    arrays = tuple(read_only(part) for part in (indptr, indices, X.data))
    reach = np.full(n, np.nan, np.float32)
    screening_reach(arrays[0], arrays[2], reach)
    # Points between others, and a block and thresholds with old contents.
    flat = np.full((len(points), 2, d + 1), 1e3, X.dtype)
    flat[:, 1] = points
    offsets = (2 * np.arange(len(points)) + 1) * (d + 1)
    norm2 = (points[:, :-1].astype(np.float64) ** 2).sum(axis=1)
    block = np.full((d, width), 77, np.int16)
    threshold = np.full(width, -77, np.float32)
    round_points(flat.reshape(-1), offsets, norm2, KINK, block, threshold)
    rows, counts = np.full((width, n), -1, np.int32), np.zeros(width, np.int64)
    for first, last in itertools.pairwise([0, *cuts, n]):
        screen_kernel(width)(*arrays, read_only(reach), block, threshold, first, last, rows, counts)
    assert not counts[len(points) :].any()
    return [rows[c, : counts[c]] for c in range(len(points))], reach.astype(np.float64)


def step_of(point):
    """Return the unit of a point's rounding."""
    return np.linalg.norm(point[:-1]) / LEVELS or 1.0


def assert_lists_are_right(X, points, lists, reach):
    """Compare with the scores in float64: none is missed, and others lie close to the kink."""
    dense = X.astype(np.float64).toarray()
    for point, listed in zip(points.astype(np.float64), lists, strict=True):
        step, to_pass = step_of(point), KINK - point[-1]
        excess = dense @ point[:-1] - to_pass
        missed = np.setdiff1d(np.flatnonzero(excess > 0), listed)
        assert missed.size == 0, excess[missed]
        slack = 2 * reach * step + 2e-6 * abs(to_pass)
        assert (excess[listed] >= -1.001 * slack[listed]).all()
        assert (np.diff(listed) > 0).all()


def put_at_the_kink(rng, X, points, reach):
    """Choose intercepts with which the score of some row is the kink, or as far as it reaches."""
    points = points.astype(np.float64)
    for point in points:
        i = rng.integers(X.shape[0])
        off = rng.choice([-2.5, -1, -0.5, -1e-3, 0, 1e-3, 0.5, 1]) * reach[i] * step_of(point)
        point[-1] = KINK - (X[[i]].astype(np.float64) @ point[:-1])[0] + off
    return points.astype(X.dtype)


@given(
    n=st.integers(1, 40),
    d=st.integers(1, 60),
    width=st.sampled_from(WIDTHS),
    n_points=st.integers(1, 64),
    dtype=st.sampled_from([np.float32, np.float64]),
    scales=st.tuples(*[st.sampled_from([1e-6, 1.0, 1e6])] * 2),
    heavy=st.booleans(),
    intercept=st.sampled_from(["kink", "zero", "any", "huge"]),
    seed=st.integers(0, 2**31),
    cuts=st.lists(st.integers(0, 40), max_size=3),
)
def test_no_row_above_the_kink_is_missed_and_few_others_are_listed(
    n, d, width, n_points, dtype, scales, heavy, intercept, seed, cuts
):
    """Random scales, empty rows and zero points; in pieces as in one call."""
    rng = np.random.default_rng(seed)
    n_points = min(n_points, width)
    dense = rng.normal(size=(n, d)) * (rng.random((n, d)) < rng.random((n, 1)))
    points = rng.normal(size=(n_points, d + 1)) * (rng.random((n_points, 1)) < 0.9)
    if heavy:  # values of all magnitudes
        dense *= 10.0 ** rng.uniform(-6, 6, (n, d))
        points *= 10.0 ** rng.uniform(-6, 6, (n_points, d + 1))
    X, points = sp.csr_array((scales[0] * dense).astype(dtype)), (scales[1] * points).astype(dtype)
    if intercept == "kink":
        points = put_at_the_kink(rng, X, points, 0.5 * np.abs(X).sum(axis=1))
    elif intercept != "any":
        points[:, -1] = rng.choice([-1e6, 1e6], n_points) * (intercept == "huge")
    lists, reach = list_rows(X, points, width)
    assert_lists_are_right(X, points, lists, reach)
    in_pieces, _ = list_rows(X, points, width, sorted(min(cut, n) for cut in cuts))
    for one, other in zip(lists, in_pieces, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("nnz", [1, 5])
def test_rows_that_rounding_treats_worst_are_listed(width, dtype, nnz):
    """Each weight is rounded down by almost half a step, all against the row."""
    rng = np.random.default_rng(0)
    points = rng.integers(0, LEVELS // 4, (width, nnz + 2)) + 0.49
    points[:, 0] = np.sqrt(LEVELS**2 - (points[:, 1:-1] ** 2).sum(axis=1))  # one step is 1
    X = sp.csr_array(np.hstack([np.zeros((4, 1)), 0.1 + rng.random((4, nnz))]).astype(dtype))
    points = points.astype(dtype).astype(float)
    for i, row in enumerate(X.toarray().astype(float)):
        points[:, -1] = KINK - points[:, :-1] @ row + 0.01 * row.sum()
        lists, reach = list_rows(X, points.astype(dtype), width)
        assert all(i in listed for listed in lists)
        assert_lists_are_right(X, points.astype(dtype), lists, reach)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float32_sums_that_only_lose_do_not_miss_a_row(width, dtype):
    """After a term of 1.3e8, where float32 counts by eights, 4,000 terms of 3 do not count."""
    points = np.full((2, 4002), 3.0)
    points[:, 0] = np.sqrt(LEVELS**2 - 4000 * 9)  # one step is 1
    points = points.astype(dtype).astype(float)
    row = np.ones(4001)
    row[0] = 4000
    score = row @ points[0, :-1]
    points[:, -1] = [100 - score, -3 * score]  # one above the kink, the other far below
    X = sp.csr_array(row[None].astype(dtype))
    lists, reach = list_rows(X, points.astype(dtype), width)
    assert [len(listed) for listed in lists] == [1, 0]
    assert_lists_are_right(X, points.astype(dtype), lists, reach)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("positive", [False, True])
def test_long_rows(dtype, positive, scale):
    """3,000 non-zeros: the float32 sums round, most of all where the terms have one sign."""
    rng = np.random.default_rng(0)
    dense, points = rng.normal(size=(40, 3000)), rng.normal(size=(30, 3001))
    if positive:
        dense, points = np.abs(dense), 3 - 0.1 * rng.random(points.shape)
    X, points = sp.csr_array((scale * dense).astype(dtype)), points.astype(dtype)
    points = put_at_the_kink(rng, X, points, 0.5 * np.abs(X).sum(axis=1))
    lists, reach = list_rows(X, points, 32)
    assert_lists_are_right(X, points, lists, reach)
    assert (reach < 20 * np.abs(X).sum(axis=1)).all()
    assert 0 < np.mean([len(listed) for listed in lists]) < 40


def test_points_of_zeros_stand_or_fall_with_their_intercept():
    X = sp.csr_array(np.random.default_rng(0).normal(size=(7, 3)))
    points = np.zeros((4, 4))
    points[:, -1] = 0, KINK + 1e-3, KINK - 1e6, -1e30
    X.data[:2] = 0  # stored zeros
    lists, _ = list_rows(X, points, 16)
    assert [len(listed) for listed in lists] == [7, 7, 0, 0]
    lists, _ = list_rows(sp.csr_array((7, 3)), points, 16)
    assert [len(listed) for listed in lists] == [7, 7, 0, 0]


def test_a_row_beyond_float32_is_listed_whatever_the_point():
    X = sp.csr_array(np.array([[1e300, 0.0], [1e300, 1e300], [1e-3, 1e-3]]))
    points = np.array([[1.0, 0, -9], [-1.0, 0, -9], [0, 0, -9], [1.0, -1.0, -9], [0, 1.0, -9]])
    for listed in list_rows(X, points, 16)[0]:
        assert listed.tolist() == [0, 1]


@given(
    n=st.integers(1, 30),
    n_points=st.integers(1, 70),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 2**31),
)
def test_list_above(n, n_points, dtype, seed):
    """Eighths, that sums hold exactly: equal is not above, NaN is. What was listed stays."""
    rng = np.random.default_rng(seed)
    scores = (rng.integers(-9, 9, (n, n_points)) / 8).astype(dtype)
    scores[rng.random((n, n_points)) < 0.05] = np.nan
    scores[rng.random((n, n_points)) < 0.05] = np.inf
    norms, slack = rng.integers(0, 4, n) / 1.0, rng.integers(0, 4, n_points) / 8
    threshold = rng.integers(-9, 9, n_points) / 8
    first = int(rng.integers(100))
    rows, counts = np.full((n_points, n + 1), -1, np.int32), np.ones(n_points, np.int64)
    list_above(scores, norms, slack, threshold, first, rows, counts)
    above = ~(scores + slack * norms[:, None] <= threshold)
    for k in range(n_points):
        assert rows[k, 0] == -1
        np.testing.assert_array_equal(rows[k, 1 : counts[k]], first + np.flatnonzero(above[:, k]))
