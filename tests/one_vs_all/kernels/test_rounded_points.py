"""Rows and points rounded to int16, and the sums of their products, number by number."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_xc._input.data import read_only
from sklearn_xc.one_vs_all.kernels.screen import (
    LEAST_STEP,
    LEVELS,
    SPARE,
    WIDTHS,
    clear_points,
    round_rows,
    round_sparse_points,
    screen_kernel,
)

each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
few, many = (settings(max_examples=n, deadline=None) for n in (25, 60))
seeds = st.integers(0, 2**32 - 1)
ENDLESS, LARGEST = 2000, 2**31 - 1
#: Of a number in steps, at most: float32 holds no more digits.
ROUNDING = 0.505


def list_starts(rng, n, most):
    """Return where lists begin that have up to so many numbers; some are empty."""
    return np.cumsum([0, *rng.integers(0, most + 1, n) * rng.integers(0, 2, n)])


@each_dtype
@few
@given(n=st.integers(0, 8), most=st.integers(0, 9), seed=seeds)
def test_round_rows(dtype, n, most, seed):
    """Whole numbers times powers of two, so that norms are exact; some rows are not finite."""
    rng = np.random.default_rng(seed)
    indptr = list_starts(rng, n, most)
    data = (rng.integers(-9, 10, indptr[-1]) * 2.0 ** rng.integers(-20, 20)).astype(dtype)
    data[rng.random(len(data)) < 0.05] = rng.choice([np.inf, -np.inf, np.nan])
    values, exponents = np.full(len(data), -7, np.int16), np.full(n, -7, np.int16)
    reach = np.full(n, -7, np.int32)
    round_rows(read_only(indptr), read_only(data), values, exponents, reach)
    for i in range(n):
        own = slice(indptr[i], indptr[i + 1])
        row = data[own].astype(float)
        norm = np.sqrt((row**2).sum())
        if not np.isfinite(norm):
            assert (exponents[i], reach[i]) == (ENDLESS, LARGEST - 1)
            assert (values[own] == 0).all()
            continue
        power = 2.0 ** exponents[i]
        assert norm <= SPARE * power
        assert norm > SPARE * power / 2 or exponents[i] == norm == 0
        in_steps = np.rint(row * LEVELS / power)
        np.testing.assert_array_equal(values[own], in_steps)
        moved = ROUNDING * (np.abs(in_steps).sum() + np.sqrt(len(row)) * LEVELS) + 4
        assert abs(reach[i] - moved) <= 1


def step_of(weights):
    """Return the step that a point is rounded in."""
    return max(np.linalg.norm(weights.astype(float)) / LEVELS, LEAST_STEP)


@each_dtype
@many
@given(
    d=st.integers(0, 9), width=st.sampled_from(WIDTHS), m=st.integers(0, 9),
    prune=st.sampled_from([0.0, 0.5, 9.0]), scale=st.sampled_from([1e-40, 1e-9, 1.0]), seed=seeds,
)  # fmt: skip
def test_round_sparse_points(dtype, d, width, m, prune, scale, seed):
    """Of a small weight the larger counts, of itself and of nothing; then all is cleared."""
    rng = np.random.default_rng(seed)
    lists = [rng.permutation(d)[: rng.integers(d + 1)].astype(np.int32) for _ in range(m)]
    points = [(scale * rng.normal(size=len(one) + 1)).astype(dtype) for one in lists]
    for point in points:
        point[:-1] *= rng.random(len(point) - 1) < 0.8
        if rng.random() < 0.2:
            point[0] = rng.choice([np.inf, np.nan])
    prune, kinks = dtype(prune * scale), rng.normal(size=m)
    indptr = np.cumsum([0, *map(len, lists)])
    features = np.concatenate([np.empty(0, np.int32), *lists])
    pool = np.concatenate([np.empty(0, dtype), *points])
    chosen = rng.permutation(m)[: rng.integers(m // 2, m + 1)]
    block, to_pass = np.zeros((d, width), np.int16), np.full(width, np.nan)
    round_sparse_points(chosen, indptr, features, pool, prune, kinks, block, to_pass)
    expected, exact = np.full(width, np.inf), np.zeros((d, width))
    for c, k in enumerate(chosen):
        *weights, bias = points[k].astype(float)
        if not np.isfinite(weights).all():
            expected[c] = -np.inf
            continue
        step, weights = step_of(points[k][:-1]), np.array(weights)
        expected[c] = (kinks[k] - bias) / step
        is_small = np.abs(weights) < prune
        exact[lists[k], c] = np.where(is_small, np.maximum(weights, 0), weights) / step
    np.testing.assert_allclose(to_pass, expected, rtol=1e-12)
    np.testing.assert_allclose(block, exact, rtol=0, atol=ROUNDING)
    kept = block.copy()
    kept[:, : max(len(chosen) - 1, 0)] = 0
    clear_points(chosen[:-1], indptr, features, block)
    np.testing.assert_array_equal(block, kept)
    clear_points(chosen, indptr, features, block)
    assert not block.any()


@pytest.mark.parametrize("width", WIDTHS)
@few
@given(n=st.integers(0, 12), most=st.sampled_from([0, 1, 2, 7, 200]), seed=seeds)
def test_screen_rows(width, n, most, seed):
    """Limits at the sums of some row or next to them; lists go on where they ended."""
    rng = np.random.default_rng(seed)
    indptr, d = list_starts(rng, n, most), 5
    indices = rng.integers(0, d, indptr[-1]).astype(np.int32)
    values = rng.integers(-99, 100, len(indices)).astype(np.int16)
    exponents = rng.choice([-2, 0, 0, 3, ENDLESS], n).astype(np.int16)
    reach = np.where(exponents == ENDLESS, LARGEST - 1, rng.integers(0, 1000, n)).astype(np.int32)
    values[np.repeat(exponents == ENDLESS, np.diff(indptr))] = 0
    block = rng.integers(-3000, 3001, (d, width)).astype(np.int16)
    sums = np.array([
        reach[i] + values[own].astype(int) @ block[indices[own]].astype(int)
        for i in range(n) for own in [slice(indptr[i], indptr[i + 1])]
    ]).reshape(n, width)  # fmt: skip
    to_pass = rng.normal(size=width)
    if n > 0:
        steps = np.ldexp(1 / LEVELS, exponents.clip(max=3).astype(int))
        at = rng.integers(0, n, width)
        to_pass = (sums[at, np.arange(width)] + rng.integers(-2, 3, width)) * steps[at]
    rare = rng.random(width) < 0.2
    to_pass[rare] = rng.choice([np.inf, -np.inf, np.nan, 1e300, -1e300], rare.sum())
    first, last = np.sort(rng.integers(0, n + 1, 2)).tolist()
    counts = rng.integers(0, 3, width)
    rows, before = np.full((width, n + 3), -1, np.int32), counts.copy()
    rounded = tuple(map(read_only, (indptr, indices, values, exponents, reach)))
    screen_kernel(width)(rounded, read_only(block), read_only(to_pass), first, last, rows, counts)
    with np.errstate(invalid="ignore"):
        limits = np.floor(to_pass * np.ldexp(float(LEVELS), -exponents.astype(int))[:, None])
    passed = ~(sums < limits) & (to_pass != np.inf)
    for c in range(width):
        listed = first + np.flatnonzero(passed[first:last, c])
        assert rows[c, before[c] : counts[c]].tolist() == listed.tolist()
        assert (np.delete(rows[c], np.s_[before[c] : counts[c]]) == -1).all()
