"""The screen misses no row above the kink, and lists few others."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sparse_points import ROUNDING, SEEDS, Points, choose_kinks, make_rows, scales

from sklearn_xc._input.data import read_only
from sklearn_xc.one_vs_all.kernels.screen import (
    LEVELS,
    WIDTHS,
    list_above,
    round_points,
    round_rows,
    screen_kernel,
)
from sklearn_xc.one_vs_all.solver.screening import CsrScreen

KINK = -1.0


def put_at_the_kink(rng, X, points, reach):
    """Choose intercepts with which the score of some row is the kink, or as far as it reaches."""
    points = points.astype(np.float64)
    for point in points:
        i = rng.integers(X.shape[0])
        off = rng.choice([-2.5, -1, -0.5, -1e-3, 0, 1e-3, 0.5, 1]) * reach[i] * step_of(point)
        point[-1] = KINK - (X[[i]].astype(np.float64) @ point[:-1])[0] + off
    return points.astype(X.dtype)


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

    Returns
    -------
    lists : list of ndarray
    reach : ndarray of float64 of shape (n,)
        In units of a point's step.
    """
    n, d = X.shape
    indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int32)
    values, exponents = np.full(X.nnz, -7, np.int16), np.full(n, -7, np.int16)
    reach = np.full(n, -7, np.int32)
    round_rows(read_only(indptr), read_only(X.data), values, exponents, reach)
    rounded = tuple(map(read_only, (indptr, indices, values, exponents, reach)))
    # Points between others, and a block and limits with old contents.
    flat = np.full((len(points), 2, d + 1), 1e3, X.dtype)
    flat[:, 1] = points
    offsets = (2 * np.arange(len(points)) + 1) * (d + 1)
    norm2 = (points[:, :-1].astype(np.float64) ** 2).sum(axis=1)
    block = np.full((d, width), 77, np.int16)
    to_pass = np.full(width, -77.0)
    round_points(flat.reshape(-1), offsets, norm2, KINK, block, to_pass)
    rows, counts = np.full((width, n), -1, np.int32), np.zeros(width, np.int64)
    for first, last in itertools.pairwise([0, *cuts, n]):
        screen_kernel(width)(rounded, block, to_pass, first, last, rows, counts)
    assert not counts[len(points) :].any()
    lists = [rows[c, : counts[c]] for c in range(len(points))]
    with np.errstate(over="ignore"):
        return lists, reach * np.ldexp(1 / LEVELS, exponents)


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


@given(
    n=st.integers(1, 30),
    n_points=st.integers(1, 70),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 2**31),
)
def test_list_above(n, n_points, dtype, seed):
    """Eighths, that sums hold exactly: equal is not above, NaN is. What was listed stays.

    A list that has no room for all gets the length -1.
    """
    rng = np.random.default_rng(seed)
    scores = (rng.integers(-9, 9, (n, n_points)) / 8).astype(dtype)
    scores[rng.random((n, n_points)) < 0.05] = np.nan
    scores[rng.random((n, n_points)) < 0.05] = np.inf
    norms, slack = rng.integers(0, 4, n) / 1.0, rng.integers(0, 4, n_points) / 8
    threshold = rng.integers(-9, 9, n_points) / 8
    first = int(rng.integers(100))
    room = int(rng.choice([n, n, rng.integers(n)]))
    rows, counts = np.full((n_points, room + 1), -1, np.int32), np.ones(n_points, np.int64)
    list_above(scores, norms, slack, threshold, first, rows, counts)
    above = ~(scores + slack * norms[:, None] <= threshold)
    for k in range(n_points):
        assert rows[k, 0] == -1
        expected = first + np.flatnonzero(above[:, k])
        assert counts[k] == (1 + len(expected) if len(expected) <= room else -1)
        if counts[k] > 0:
            np.testing.assert_array_equal(rows[k, 1 : counts[k]], expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@settings(max_examples=60)
@given(data=st.data(), n=st.integers(1, 30), d=st.integers(1, 20), seed=SEEDS)
def test_the_screen_lists_all_rows_above_the_kink(make_problem, dtype, data, n, d, seed):
    rng = np.random.default_rng(seed)
    of_rows, of_points = data.draw(scales(dtype)), data.draw(scales(dtype))
    _, X = make_rows(rng, n, d, dtype, of_rows, rng.choice([0, 0, 2]))
    points = Points(rng, 20, d, dtype, of_points)
    points.move_intercepts(points.intercept * X.max())
    problem = make_problem(X, np.ones((n, 1)), dtype=dtype)
    kinks = choose_kinks(rng, X, points)
    screen, which = CsrScreen(problem, problem.instances, 20), rng.permutation(20)
    scores, off = points.scores(X)
    exponents, reach = (a.astype(np.float64) for a in problem.rounded[3:])
    short = CsrScreen(problem, problem.instances, 20)
    room = int(rng.integers(n))
    short.candidates = short.candidates[:, :room]
    for some in (which[:17], which[:3]):  # blocks of two widths
        counts = screen.list_above(some, points.arrays, kinks, lambda: None)
        of_short = short.list_above(some, points.arrays, kinks, lambda: None)
        np.testing.assert_array_equal(of_short, np.where(counts > room, -1, counts))
        assert not screen.block.any()
        assert not counts[len(some) :].any()
        for k, c in enumerate(some):
            listed = screen.candidates[k, : counts[k]]
            if of_short[k] >= 0:
                np.testing.assert_array_equal(short.candidates[k, : counts[k]], listed)
            above, to_pass = scores[:, c] - kinks[c], abs(kinks[c] - points.intercept[c])
            assert (np.diff(listed) > 0).all()
            missed = np.flatnonzero(above > off[:, c] + ROUNDING * abs(kinks[c]))
            assert set(missed) <= set(listed)
            step = max(np.linalg.norm(points.dense()[c]) / LEVELS, 1e-30)
            slack = 2.002 * reach * np.ldexp(1 / LEVELS, exponents.astype(int)) * step
            assert (above[listed] >= -slack[listed] - 2e-6 * to_pass).all()
