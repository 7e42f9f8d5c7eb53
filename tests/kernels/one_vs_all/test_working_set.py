"""Each kernel of working sets agrees with a dense reference; above all, no row is overlooked."""

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_xc._data import CsrRows, read_only
from sklearn_xc.kernels.one_vs_all import working_set as ws
from sklearn_xc.kernels.one_vs_all.lanes import Lanes, WorkingSets
from sklearn_xc.kernels.one_vs_all.screen import LEVELS
from sklearn_xc.solvers.layouts import postings
from sklearn_xc.solvers.screening import CsrScreen

SEEDS = st.integers(0, 2**31)
NONE = np.empty(0, np.int32)
#: Of scores, relative to the sum of the magnitudes of their terms; and what float32 can hold.
ROUNDING, LEAST = 1e-12, 1e-36


def scales(dtype):
    """Return powers of ten that products of two may have in float32."""
    most = 18 if dtype == np.float64 else 15
    return st.sampled_from([-most, -3, 0, 0, 0, 3, most])


def make_rows(rng, n, d, dtype=np.float64, exponent=0, spread=0.0):
    """Return CsrRows, and the same dense in float64: rows and features of all unpleasant kinds."""
    X = rng.uniform(0.01, 1, (n, d)) * 10.0 ** (exponent + rng.uniform(-spread, spread, (n, 1)))
    X *= rng.random((n, d)) < rng.random((n, 1)) * rng.uniform(0.2, 1, d)
    X[rng.random(n) < 0.1] = 0
    X[:, rng.random(d) < 0.1] = 0
    alone = np.flatnonzero(rng.random(n) < 0.2)
    X[np.setdiff1d(np.arange(n), rng.integers(n, size=n))] = X[rng.integers(n)]
    X[alone] = 0
    X[alone, rng.integers(d, size=len(alone))] = 10.0**exponent
    X = X.astype(dtype)
    csr = sp.csr_array(X)
    arrays = csr.indptr.astype(np.int64), csr.indices.astype(np.int32), csr.data
    return CsrRows(*arrays, (n, d)), X.astype(np.float64)


def pooled(lists, dtype):
    """Return an indptr, and lists one behind the other."""
    indptr = np.concatenate(([0], np.cumsum([len(one) for one in lists]))).astype(np.int64)
    return indptr, np.concatenate([np.asarray(one, dtype) for one in lists])


def in_pieces(indptr, values, shift=0):
    """Return the lists, each `shift` longer than said."""
    at = indptr + shift * np.arange(len(indptr))
    return [values[at[c] : at[c + 1]] for c in range(len(indptr) - 1)]


class Points:
    """Random sparse points over d features: pools for kernels, dense rows for numpy."""

    def __init__(self, rng, m, d, dtype=np.float64, exponent=0):
        self.lists = [rng.permutation(d)[: rng.integers(0, d + 1)] for _ in range(m)]
        self.indptr, self.features = pooled(self.lists, np.int32)
        values = []
        for one in self.lists:
            v = rng.normal(size=len(one) + 1) * 10.0 ** rng.uniform(-rng.integers(0, 7), 0)
            v[:-1] *= 10.0 ** rng.choice([0.0, 0.0, 0.0, -2, -5], len(one))
            values.append(np.where(rng.random(len(v)) < 0.1, 0, v) * 10.0**exponent)
        self.values = np.concatenate(values).astype(dtype)
        self.d = d

    @property
    def intercept(self):
        return np.array([v[-1] for v in in_pieces(self.indptr, self.values, 1)], np.float64)

    def dense(self, prune=0.0):
        """Return what counts, without intercepts: the larger of a weight and what is left of it."""
        out = np.zeros((len(self.lists), self.d))
        for row, one, v in zip(
            out, self.lists, in_pieces(self.indptr, self.values, 1), strict=True
        ):
            row[one] = v[:-1]
        return np.where(np.abs(out) < prune, np.maximum(out, 0), out)

    def scores(self, X, prune):
        """Return scores of shape (n, m), and how much of them may be rounding."""
        P, b = self.dense(prune), self.intercept
        return X @ P.T + b, ROUNDING * (X @ np.abs(P.T) + np.abs(b)) + LEAST

    def move_intercepts(self, to):
        self.values[self.indptr[1:] + np.arange(len(self.lists))] = to


def choose_kinks(rng, X, points, prune):
    """Return kinks at, or next to, the score of some row; some of them where no score can be."""
    scores, _ = points.scores(X, prune)
    m = scores.shape[1]
    kinks = scores[rng.integers(len(X), size=m), np.arange(m)]
    nudge = rng.choice([0, 1e-15, 1e-9, 1e-6, 1e-3, 0.3], m) * rng.choice([-1, 1], m)
    kinks = kinks + nudge * np.abs(kinks - points.intercept)
    return np.where(rng.random(m) < 0.1, points.intercept - rng.choice([0, 1], m), kinks)


def random_lists(rng, n, m):
    """Return known rows: with -1 in between."""
    lists = [rng.permutation(n)[: rng.integers(0, n)] for _ in range(m)]
    return [np.insert(one, rng.integers(len(one) + 1), -1) for one in lists]


def run_look(instances, points, prune, kinks, share, most, known):
    """Return what ``list_rows_above`` lists for each point, and whether it is left."""
    (n, d), dtype = instances.shape, instances.dtype
    by_feature, longest = postings(instances)
    dense, scores = np.zeros(d, dtype), np.zeros(n + 1, np.float32)
    met, indptr = np.empty(n + 1, np.int32), np.full(len(kinks) + 1, -7)
    known_indptr, known_rows = pooled(known, np.int32)
    out, is_left = ws.list_rows_above(
        instances.arrays, by_feature, longest, points.indptr, points.features, points.values,
        prune, kinks, share, most, known_indptr, known_rows, dense, scores, met, indptr,
        np.empty(1, np.int32),
    )  # fmt: skip
    assert not dense.any()
    assert not scores.any()
    return in_pieces(indptr, out[: indptr[-1]]), is_left


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@settings(max_examples=200)
@given(data=st.data(), n=st.integers(1, 30), d=st.integers(1, 20), seed=SEEDS)
def test_a_look_lists_all_rows_above_the_kink_and_no_others(dtype, data, n, d, seed):
    rng = np.random.default_rng(seed)
    of_rows, of_points = data.draw(scales(dtype)), data.draw(scales(dtype))
    instances, X = make_rows(rng, n, d, dtype, of_rows, rng.choice([0, 0, 2]))
    points = Points(rng, 8, d, dtype, of_points)
    points.move_intercepts(points.intercept * X.max())
    prune = dtype(rng.choice([0, 1e-3, 0.3, 3]) * 10.0**of_points)
    kinks, share = choose_kinks(rng, X, points, prune), data.draw(st.floats(0.05, 0.95))
    known = random_lists(rng, n, 8)
    lists, is_left = run_look(instances, points, prune, kinks, share, 10**9, known)
    slack, largest = kinks - points.intercept, points.dense().max(axis=1)
    is_in_range = (slack > 1e-20) & (slack < 1e20) & (largest > 1e-20) & (largest < 1e20)
    assert is_left[slack <= 0].all()
    assert not is_left[(slack > 0) & (is_in_range | (largest == 0))].any()
    scores, off = points.scores(X, prune)
    off += ROUNDING * np.abs(kinks)
    for c in np.flatnonzero(~is_left):
        above = scores[:, c] - kinks[c]
        assert len(set(lists[c])) == len(lists[c])
        assert not set(lists[c]) & set(known[c])
        missed = set(np.flatnonzero(above > off[:, c])) - set(lists[c]) - set(known[c])
        assert not missed, (missed, above, kinks[c], share)
        assert (above[lists[c]] >= -off[lists[c], c]).all()
    assert not any(len(lists[c]) for c in np.flatnonzero(is_left))
    # With fewer non-zeros to read more points are left, and what others list is the same.
    for most in [*sorted(rng.integers(0, instances.arrays[0][-1] + 1, 3))[::-1], -1]:
        fewer, also_left = run_look(instances, points, prune, kinks, share, int(most), known)
        assert (also_left >= is_left).all()
        is_left = also_left
        for c in range(8):
            expected = [] if also_left[c] else lists[c]
            np.testing.assert_array_equal(fewer[c], expected)
            assert len(fewer[c]) <= max(most, 0)
    assert is_left.all()


def test_a_look_reads_features_that_count_and_leaves_a_point_that_needs_too_many():
    """Features with 1, 4 and 16 rows, weights 1, 2 and 4, of which each counts the same."""
    instances, _ = make_rows(np.random.default_rng(0), 21, 3)
    features = np.repeat([0, 1, 2], [1, 4, 16]).astype(np.int32)
    instances = CsrRows(np.arange(22), features, np.ones(21), (21, 3))
    points = Points(np.random.default_rng(0), 1, 3)
    points.lists = [np.array([2, 0, 1])]
    points.indptr, points.features = np.array([0, 3]), points.lists[0].astype(np.int32)
    for weights, kink, share, needed in [
        ([4, 1.1, 2.2], 3.5, 0.95, 21),  # the norm of all, but the first is above already
        ([0.1, 1, 2], 1.0, 0.2, 5),
        ([0.1, 1, 0.1], 1.0 - 1e-9, 0.2, 1),
        ([-4, -1, -2], 1.0, 0.05, 0),
    ]:
        points.values = np.array([*weights, 0.0], np.float64)
        kinks = np.array([kink])
        expected = np.flatnonzero(np.array(weights)[[1, 2, 0]][features] > kink)
        for most in range(-1, 23):
            lists, is_left = run_look(instances, points, 0.0, kinks, share, most, [NONE])
            if not is_left[0]:
                assert set(lists[0]) == set(expected)
            if weights[0] != 4:
                assert is_left[0] == (most < needed)


@settings(max_examples=30)
@given(d=st.integers(1, 3000), off=st.sampled_from([1e-10, 1e-8, 1e-7]), seed=SEEDS)
def test_a_look_at_long_rows(d, off, seed):
    """Sums in float32 are off by more, the more terms they have."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.01, 1, (6, d)) * (rng.random((6, 1)) < 0.8)
    csr = sp.csr_array(X)
    instances = CsrRows(csr.indptr.astype(np.int64), csr.indices.astype(np.int32), csr.data, (6, d))
    points = Points(rng, 6, d)
    points.values[:] = rng.uniform(0.1, 1, len(points.values))
    scores, rounding = points.scores(X, 0.0)
    kinks = scores[np.arange(6), np.arange(6)] * (1 - off)
    lists, is_left = run_look(instances, points, 0.0, kinks, 1e-9, 10**9, [NONE] * 6)
    for c in np.flatnonzero(~is_left):
        assert set(np.flatnonzero(scores[:, c] > kinks[c] + rounding[:, c])) <= set(lists[c])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@settings(max_examples=30)
@given(seed=SEEDS)
def test_points_that_are_not_finite(bad, seed):
    """They are left, or rows that finite features put above are listed; work spaces are clean."""
    rng = np.random.default_rng(seed)
    instances, X = make_rows(rng, 12, 5)
    points = Points(rng, 6, 5)
    at = rng.integers(len(points.values))
    points.values[at] = bad
    kinks = np.abs(rng.normal(size=6))
    lists, is_left = run_look(instances, points, 0.1, kinks, 0.4, 10**9, [NONE] * 6)
    bad_point = np.flatnonzero(points.indptr + np.arange(7) <= at)[-1]
    if bad == np.inf or (np.isnan(bad) and np.isnan(points.intercept).any()):
        assert is_left[bad_point]
    with np.errstate(invalid="ignore"):
        P = np.where(np.isnan(points.dense(0.1)), -np.inf, points.dense(0.1))
        terms = np.where(X[:, None] > 0, X[:, None] * P, 0)
    scores = terms.sum(axis=2) + points.intercept
    for c in np.flatnonzero(~is_left):
        above = np.flatnonzero(scores[:, c] > kinks[c] + 1e-9)
        assert set(above) <= set(lists[c])


@pytest.mark.parametrize("of_rows", [-160, -100, -50, -40, -30, 30, 38, 40, 50, 100, 140])
def test_a_look_at_scales_beyond_float32(of_rows):
    """Scores near 1, as products of numbers that float32 cannot hold."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        instances, X = make_rows(rng, 20, 8, exponent=of_rows)
        points = Points(rng, 8, 8, exponent=-of_rows)
        points.move_intercepts(-rng.random(8))
        kinks = np.full(8, 1e-3)
        lists, is_left = run_look(instances, points, 0.0, kinks, 0.4, 10**9, [NONE] * 8)
        scores, _ = points.scores(X, 0.0)
        for c in np.flatnonzero(~is_left):
            assert set(np.flatnonzero(scores[:, c] > 1e-3 + 1e-9)) <= set(lists[c])


@numba.njit
def overlooked(n_problems, rng):
    """Return how many rows looks at random small problems overlook, list in vain, and list."""
    largest_n, largest_d = 10, 8
    scores, met = np.zeros(largest_n + 1, np.float32), np.empty(largest_n + 1, np.int32)
    dense, out = np.zeros(largest_d), np.empty(largest_n, np.int32)
    out_indptr, no_rows = np.zeros(2, np.int64), np.zeros(2, np.int64)
    known = np.empty(0, np.int32)
    n_missed, n_vain, n_listed, n_left = 0, 0, 0, 0
    for _ in range(n_problems):
        n, d = rng.integers(1, largest_n + 1), rng.integers(1, largest_d + 1)
        exponent, density = 10.0 ** rng.integers(-6, 7), rng.random()
        X, w = np.zeros((n, d)), np.zeros(d + 1)
        indptr, by_indptr = np.zeros(n + 1, np.int64), np.zeros(d + 1, np.int64)
        indices, rows = np.empty(n * d, np.int32), np.empty(n * d, np.int32)
        values, by_values = np.empty(n * d), np.empty(n * d)
        longest, at = 0.0, 0
        for i in range(n):
            norm2 = 0.0
            for j in range(d):
                if rng.random() < density:
                    X[i, j] = (0.01 + rng.random()) * exponent
                    norm2 += X[i, j] ** 2
                    indices[at], values[at] = j, X[i, j]
                    at += 1
            indptr[i + 1] = at
            longest = max(longest, norm2)
        at = 0
        for j in range(d):
            for i in range(n):
                if X[i, j] > 0:
                    rows[at], by_values[at] = i, X[i, j]
                    at += 1
            by_indptr[j + 1] = at
            size = 10.0 ** (-rng.random() * rng.integers(0, 8))
            w[j] = (rng.random() - 0.3) * size / exponent
        w[d] = rng.random() - 0.5
        prune = 10.0 ** -rng.integers(0, 6) / exponent
        share = 0.05 + 0.9 * rng.random()
        exact, terms = np.full(n, w[d]), np.full(n, abs(w[d]))
        for i in range(n):
            for j in range(d):
                v = w[j] if abs(w[j]) >= prune else max(w[j], 0.0)
                exact[i] += X[i, j] * v
                terms[i] += X[i, j] * abs(v)
        pick = rng.integers(0, n)
        kink = exact[pick] - 10.0 ** -rng.integers(1, 13) * terms[pick]
        ws_out, is_left = ws.list_rows_above(
            (indptr, indices[:at], values[:at]), (by_indptr, rows[:at], by_values[:at]),
            np.sqrt(longest) * (1.0 + 1e-9), np.array([0, d]), np.arange(d).astype(np.int32), w,
            prune, np.array([kink]), share, 10**6, no_rows, known, dense, scores, met, out_indptr,
            out,
        )  # fmt: skip
        n_left += is_left[0]
        if is_left[0]:
            continue
        is_listed = np.zeros(n, np.bool_)
        for r in range(out_indptr[1]):
            n_vain += is_listed[ws_out[r]]
            is_listed[ws_out[r]] = True
        for i in range(n):
            off = 1e-14 * (terms[i] + abs(kink))
            n_missed += exact[i] > kink + off and not is_listed[i]
            n_vain += exact[i] < kink - off and is_listed[i]
            n_listed += is_listed[i]
        n_vain += dense.any() or scores.any()
    return n_missed, n_vain, n_listed, n_left


def test_thousands_of_looks():
    n_missed, n_vain, n_listed, n_left = overlooked(20_000, np.random.default_rng(0))
    assert (n_missed, n_vain) == (0, 0)
    assert n_listed > 20_000 > 2 * n_left


@pytest.mark.slow
def test_a_million_looks():
    n_missed, n_vain, n_listed, n_left = overlooked(1_000_000, np.random.default_rng(1))
    assert (n_missed, n_vain) == (0, 0)
    assert n_listed > 1_000_000 > 2 * n_left


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@settings(max_examples=60)
@given(data=st.data(), n=st.integers(1, 30), d=st.integers(1, 20), seed=SEEDS)
def test_the_screen_lists_all_rows_above_the_kink(make_problem, dtype, data, n, d, seed):
    rng = np.random.default_rng(seed)
    of_rows, of_points = data.draw(scales(dtype)), data.draw(scales(dtype))
    _, X = make_rows(rng, n, d, dtype, of_rows, rng.choice([0, 0, 2]))
    points = Points(rng, 20, d, dtype, of_points)
    points.move_intercepts(points.intercept * X.max())
    prune = dtype(rng.choice([0, 1e-3, 0.3, 3]) * 10.0**of_points)
    problem = make_problem(X, np.ones((n, 1)), dtype=dtype, prune=prune)
    kinks = choose_kinks(rng, X, points, prune)
    screen, which = CsrScreen(problem, problem.instances, 4), rng.permutation(20)
    scores, off = points.scores(X, prune)
    exponents, reach = (a.astype(np.float64) for a in problem.rounded[3:])
    for some in (which[:17], which[:3]):  # blocks of two widths
        counts = screen.list_above(
            some, points.indptr, points.features, points.values, kinks, lambda: None
        )
        assert not screen.sparse_block.any()
        assert not counts[len(some) :].any()
        for k, c in enumerate(some):
            listed = screen.candidates[k, : counts[k]]
            above, to_pass = scores[:, c] - kinks[c], abs(kinks[c] - points.intercept[c])
            assert (np.diff(listed) > 0).all()
            missed = np.flatnonzero(above > off[:, c] + ROUNDING * abs(kinks[c]))
            assert set(missed) <= set(listed)
            step = max(np.linalg.norm(points.dense()[c]) / LEVELS, 1e-30)
            slack = 2.002 * reach * np.ldexp(1 / LEVELS, exponents.astype(int)) * step
            assert (above[listed] >= -slack[listed] - 2e-6 * to_pass).all()


def test_the_screen_lists_all_rows_for_points_that_are_not_finite(make_problem):
    _, X = make_rows(np.random.default_rng(0), 9, 4)
    problem = make_problem(X, np.ones((9, 1)))
    screen = CsrScreen(problem, problem.instances, 4)
    for bad in (np.nan, np.inf, -np.inf, 1e200):
        points = np.array([0.1, bad, 0.2, -5.0])
        features = np.array([2, 0, 3], np.int32)
        arguments = np.array([0]), np.array([0, 3]), features, points, np.array([1.0])
        assert screen.list_above(*arguments, lambda: None)[0] == 9
        assert not screen.sparse_block.any()


@settings(max_examples=100, deadline=None)
@given(n=st.integers(1, 30), m=st.integers(1, 6), prune=st.sampled_from([0.0, 0.3]), seed=SEEDS)
def test_the_highest_of_long_lists_are_kept(n, m, prune, seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 9))
    instances, X = make_rows(rng, n, d)
    points = Points(rng, m, d)
    lists = [rng.permutation(n)[: rng.integers(0, n + 1)] for _ in range(m)]
    scores = points.dense(prune) @ X.T + points.intercept[:, None]
    # Between two scores, so that rounding decides nothing.
    levels = np.array([np.mean(rng.choice(np.unique(own), 2)) for own in scores])
    levels[rng.random(m) < 0.2] = np.inf
    wanted = rng.integers(0, n + 1, m)
    indptr, rows = pooled(lists, np.int32)
    dense = np.zeros(d)
    is_cut = ws.keep_highest(
        instances.arrays, points.indptr, points.features, points.values, prune, levels, wanted,
        indptr, rows, dense,
    )  # fmt: skip
    assert not dense.any()
    for c, kept in enumerate(in_pieces(indptr, rows)):
        one, own = lists[c], scores[c]
        assert is_cut[c] == (len(kept) < len(one))
        if len(one) <= wanted[c]:
            np.testing.assert_array_equal(kept, one)
            continue
        np.testing.assert_array_equal(kept, one[np.isin(one, kept)])  # in their order
        dropped = np.setdiff1d(one, kept)
        if len(dropped) == 0:  # all lie close together, or none was to be kept
            continue
        size = 1e-6 * (1 + np.abs(own).max())
        assert own[kept].min() > own[dropped].max() - size
        assert (own[dropped] <= levels[c] + size).all()
        # Those not above the level are as many as are wanted, but for 256th parts of the range.
        part = np.ptp(own[one]) / 255 + size
        inner = kept[own[kept] <= levels[c] - part]
        if len(inner):
            assert (own[one] >= own[inner].min() + part).sum() <= wanted[c]
        assert (own[one] >= own[dropped].max() - 2 * part).sum() >= wanted[c]


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 60), m=st.integers(1, 6), prune=st.sampled_from([0.0, 0.3]), seed=SEEDS)
def test_a_sample_says_above_which_score_there_are_enough_rows(n, m, prune, seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 9))
    instances, X = make_rows(rng, n, d)
    points, dense = Points(rng, m, d), np.zeros(d)
    sample = np.sort(rng.permutation(n)[: rng.integers(1, n + 1)]).astype(np.int32)
    scores = (points.dense(prune) @ X.T + points.intercept[:, None])[:, sample]
    wanted, levels = rng.integers(1, n + 1, m), np.full(m, np.nan)
    ws.find_high_levels(
        instances.arrays, sample, points.indptr, points.features, points.values, prune, wanted,
        levels, dense,
    )  # fmt: skip
    assert not dense.any()
    for own, n_wanted, level in zip(scores, wanted, levels, strict=True):
        if n_wanted >= len(sample):
            assert level == -np.inf
            continue
        size = 1e-6 * (1 + np.abs(own).max())
        reach = own.max() - min(own.min(), 0.0) + np.abs(points.intercept).max()
        assert (own > level + size).sum() <= n_wanted or level >= own.max() - reach / 255 - size
        # As many as are wanted, but for 256th parts of the range.
        assert (own >= level - 2 * reach / 255 - size).sum() >= n_wanted


def test_scores_beyond_all_bounds_are_no_reason_to_fail():
    instances, _ = make_rows(np.random.default_rng(0), 6, 2)
    features, values = np.array([0, 1], np.int32), np.array([1e200, -1e200, 0.0])
    rows, indptr = np.arange(6, dtype=np.int32), np.array([0, 6])
    ws.keep_highest(
        instances.arrays, np.array([0, 2]), features, values, 0.0, np.array([0.5]), np.array([2]),
        indptr, rows, np.zeros(2),
    )  # fmt: skip
    assert 0 < indptr[1] <= 6


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_rows_in_order_of_length(seed):
    """Positives and -1 lead; the others are the same, the shorter ones first, and else in order."""
    rng = np.random.default_rng(seed)
    instances, _ = make_rows(rng, 40, 30)
    lengths = np.diff(instances.arrays[0])
    n_positives = rng.integers(1, 4, 5)
    lists = [
        np.concatenate((rng.permutation(40)[:k], [-1], rng.permutation(40)[: rng.integers(0, 41)]))
        for k in n_positives
    ]
    indptr, rows = pooled(lists, np.int32)
    ws.order_by_length(instances.arrays, n_positives, indptr, rows)
    for k, before, after in zip(n_positives, lists, in_pieces(indptr, rows), strict=True):
        rest = before[k + 1 :]
        np.testing.assert_array_equal(after[: k + 1], before[: k + 1])
        np.testing.assert_array_equal(
            after[k + 1 :], rest[np.argsort(lengths[rest], kind="stable")]
        )


def run_similar(instances, weight, positives, wanted, most, start=None, largest=10**9):
    """Return what ``list_similar_rows`` lists for each label, and which are left."""
    (n, d), m = instances.shape, len(positives)
    by_feature, longest_row = postings(instances)
    of_positives, of_shared, shared, kink, share = start or (
        np.ones(m), np.zeros(m), np.zeros(d + 1), -1.0, 0.4
    )  # fmt: skip
    y_indptr, y_rows = pooled(positives, np.int32)
    room = np.full(len(instances.arrays[1]) * 2 + d + 2, -7, np.int32)
    work, scores = np.zeros(d + 1), np.zeros(n + 1, np.float32)
    indptr = np.empty(m + 1, np.int64)
    out, is_left = ws.list_similar_rows(
        instances.arrays, read_only(weight), by_feature, longest_row, read_only(y_indptr),
        read_only(y_rows), np.arange(m), of_positives, of_shared, shared, kink, share,
        np.asarray(wanted), most, largest, work, room[: d + 1], scores, np.empty(n + 1, np.int32),
        indptr, np.empty(1, np.int32),
    )  # fmt: skip
    assert not work.any()
    assert not scores.any()
    assert (room[d + 1 :] == -7).all()
    return in_pieces(indptr, out[: indptr[-1]]), is_left


def random_start(rng, m, d):
    shared = rng.normal(size=d + 1)
    return rng.uniform(0.1, 1, m), rng.uniform(-1, 1, m), shared, rng.uniform(-3, 3), 0.4


def raising_weights(X, weight, own, start, m):
    """Return the positive weights of a start on the features of its positives, and squares."""
    of_positives, of_shared, shared, _, _ = start
    total = weight[own].astype(np.float64) @ X[own]
    values = np.maximum(of_positives[m] * total + of_shared[m] * shared[:-1], 0.0) * (total > 0)
    return values, values**2 / np.maximum(np.count_nonzero(X, axis=0), 1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@settings(max_examples=60)
@given(data=st.data(), n=st.integers(2, 40), d=st.integers(1, 20), seed=SEEDS)
def test_similar_rows(dtype, data, n, d, seed):
    """Rows with the largest products, by features that count enough for their frequency."""
    rng = np.random.default_rng(seed)
    instances, X = make_rows(rng, n, d, dtype, data.draw(scales(dtype)))
    weight = rng.uniform(0.1, 2, n).astype(dtype)
    positives = [np.sort(rng.permutation(n)[: rng.integers(0, 5)]) for _ in range(5)]
    wanted, most = rng.integers(0, n + 1, 5), int(rng.integers(0, np.count_nonzero(X) + 1))
    start = random_start(rng, 5, d)
    found, is_left = run_similar(instances, weight, positives, wanted, most, start)
    assert not is_left.any()
    lengths = np.count_nonzero(X, axis=0)
    for m, (own, n_wanted, rows) in enumerate(zip(positives, wanted, found, strict=True)):
        np.testing.assert_array_equal(rows[: len(own)], own)
        assert rows[len(own)] == -1
        listed = rows[len(own) + 1 :]
        values, squares = raising_weights(X, weight, own, start, m)
        levels = np.append(squares, 0.0)
        level = min(one for one in levels if lengths[squares > one].sum() <= most)
        products = X @ (values * (squares > level))
        products[own] = 0
        assert len(set(listed)) == len(listed)
        assert (products[listed] > 0).all()
        largest = max(products.max(), 1e-30)
        bin_, off = largest / 255.9, 1e-5 * largest
        unlisted = np.setdiff1d(np.flatnonzero(products), listed)
        if len(listed) > n_wanted:
            assert (products[listed] >= 255 * bin_ - off).all()
        if len(unlisted):
            most_left = products[unlisted].max()
            assert (products[listed] >= most_left - off).all()
            assert (products >= most_left - bin_ - off).sum() > n_wanted


@settings(max_examples=60)
@given(n=st.integers(2, 40), d=st.integers(1, 20), seed=SEEDS)
def test_labels_whose_features_are_frequent_are_left(n, d, seed):
    """Features matter but for those that together add so little, the least ones first."""
    rng = np.random.default_rng(seed)
    instances, X = make_rows(rng, n, d)
    weight, own = rng.uniform(0.1, 2, n), np.sort(rng.permutation(n)[: rng.integers(1, 5)])
    start = random_start(rng, 1, d)
    of_positives, of_shared, shared, kink, share = start
    values, squares = raising_weights(X, weight, own, start, 0)
    touched, lengths = weight[own] @ X[own] > 0, np.count_nonzero(X, axis=0)
    slack = kink - of_positives[0] * weight[own].sum() - of_shared[0] * shared[-1]
    longest_row = np.linalg.norm(X, axis=1).max()
    needed = lengths[touched].sum()
    for level in np.unique(squares):
        if longest_row * np.linalg.norm(values[squares <= level]) <= share * slack:
            needed = lengths[squares > level].sum()
    for largest in (needed, needed - 1):
        found, is_left = run_similar(instances, weight, [own], [5], 10**6, start, largest)
        assert is_left.tolist() == [largest < needed]
        if largest < needed:
            np.testing.assert_array_equal(found[0], [*own, -1])


@pytest.mark.parametrize("exponent", [18.9, 25, 50, 140])
def test_similar_rows_of_large_numbers(exponent):
    """Products that float32 cannot hold are equal: nothing breaks, and lists stay lists."""
    instances, _ = make_rows(np.random.default_rng(0), 40, 6, exponent=exponent)
    positives = [np.arange(10), np.arange(20, 30)]
    found, _ = run_similar(instances, np.ones(40), positives, [7, 30], 10**6)
    for one, own in zip(found, positives, strict=True):
        np.testing.assert_array_equal(one[:11], [*own, -1])
        assert len(set(one)) == len(one)
        assert set(one[11:]) <= set(range(40)) - set(own)


def least_rows(least):
    """Return 30 rows of 2 features, and weights: the products are 0."""
    indices = np.tile(np.arange(2, dtype=np.int32), 30)
    return CsrRows(np.arange(0, 61, 2), indices, np.full(60, least), (30, 2)), np.full(30, 0.4)


@pytest.mark.parametrize("least", [0.0, 5e-324])
def test_similar_rows_where_products_are_zero(least):
    """The work space is long enough: what lies behind it stays as it was."""
    found, _ = run_similar(*least_rows(least), [np.arange(30)], [5], 10**6)
    np.testing.assert_array_equal(found[0], [*range(30), -1])


def run_describe(instances, weight, positives, mean):
    d = instances.shape[1]
    y_indptr, y_rows = pooled(positives, np.int32)
    work, room = np.zeros(d), np.full(len(instances.arrays[1]) + d + 1, -7, np.int32)
    out = np.full((3, len(positives)), np.nan)
    ws.describe_positives(
        instances.arrays, read_only(weight), read_only(y_indptr), read_only(y_rows),
        np.arange(len(positives)), mean, work, room[:d], out,
    )  # fmt: skip
    assert not work.any()
    assert (room[d:] == -7).all()
    return out


@settings(max_examples=40)
@given(n=st.integers(2, 30), d=st.integers(1, 20), exponent=scales(np.float64), seed=SEEDS)
def test_describe_positives(n, d, exponent, seed):
    rng = np.random.default_rng(seed)
    instances, X = make_rows(rng, n, d, exponent=exponent)
    weight, mean = rng.uniform(0.1, 3, n), rng.random(d + 1)
    positives = [np.sort(rng.permutation(n)[: rng.integers(0, n)]) for _ in range(4)]
    out = run_describe(instances, weight, positives, mean)
    sums = np.array([weight[own] @ X[own] for own in positives])
    np.testing.assert_allclose(out[0], [weight[own].sum() for own in positives])
    np.testing.assert_allclose(out[1], (sums**2).sum(axis=1))
    np.testing.assert_allclose(out[2], sums @ mean[:-1])


@pytest.mark.parametrize("least", [0.0, 5e-324])
def test_describe_positives_where_products_are_zero(least):
    out = run_describe(*least_rows(least), [np.arange(30)], np.ones(3))
    np.testing.assert_allclose(out[:, 0], [12, 0, 0])


@given(n=st.integers(1, 30), m=st.integers(1, 6), seed=SEEDS)
def test_list_new_rows_and_count_entries(n, m, seed):
    rng = np.random.default_rng(seed)
    instances, X = make_rows(rng, n, 7)
    lists = np.array([rng.permutation(n) for _ in range(m + 2)], np.int32)
    counts, known = rng.integers(0, n + 1, m + 2), random_lists(rng, n, m)
    expected = [lists[c, : counts[c]] for c in range(m)]
    expected = [one[~np.isin(one, rows)] for one, rows in zip(expected, known, strict=True)]
    known_indptr, known_rows = pooled(known, np.int32)
    seen, indptr = np.zeros(n, np.uint8), np.full(m + 1, -7)
    ws.list_new_rows(lists, counts, known_indptr, known_rows, seen, indptr)
    np.testing.assert_array_equal(np.diff(indptr), [len(one) for one in expected])
    for c, one in enumerate(expected):
        np.testing.assert_array_equal(lists[c, : len(one)], one)
    assert indptr[0] == 0
    assert not seen.any()
    out = np.full(m, -7)
    ws.count_entries(instances.arrays, known_indptr, known_rows, out)
    nnz = np.count_nonzero(X, axis=1)
    np.testing.assert_array_equal(out, [nnz[rows[rows >= 0]].sum() for rows in known])


CROWD = 1000.0


class Copies:
    """Working sets of some lanes: positives, -1 and others, copied by the kernel."""

    def __init__(self, rng, n, d, m, exponent=0):
        self.instances, self.X = make_rows(rng, n, d, exponent=exponent)
        self.weight = rng.uniform(0.1, 3, n)
        self.n_positives = rng.integers(0, n + 1, m)
        self.rows = []
        for k in self.n_positives:
            some = rng.permutation(n)
            self.rows.append(np.concatenate((some[:k], [-1], some[k:][: rng.integers(0, n)])))
        row_indptr, rows = pooled(self.rows, np.int32)
        total = sum(np.count_nonzero(self.X[one[one >= 0]]) for one in self.rows)
        indptr, indices = np.full(len(rows) + m, -7), np.full(total, -7, np.int32)
        data, weight, first_entry = np.empty(total), np.empty(len(rows)), np.empty(m, np.int64)
        self.indptr, features = np.full(m + 1, -7), np.empty(total + 1, np.int32)
        position = np.full(d, -1, np.int32)
        ws.copy_rows_of_lanes(
            self.instances.arrays, read_only(self.weight), CROWD, row_indptr, rows, position,
            indptr, indices, data, weight, first_entry, self.indptr, features,
        )  # fmt: skip
        assert (position == -1).all()
        self.features = features[: self.indptr[-1]]
        self.of_lane = in_pieces(self.indptr, self.features)
        y_indptr, y_rows = pooled([range(k) for k in self.n_positives], np.int32)
        self.sets = WorkingSets(
            np.diff(row_indptr), row_indptr[:-1].copy(), first_entry, indptr, indices, data,
            weight, y_indptr, y_rows, np.ones(m), 100,
        )  # fmt: skip

    def random_pool(self, rng, copies=2):
        """Return random points of the lanes one behind the other, each `copies` times as long."""
        n = copies * (len(self.features) + len(self.rows))
        values = rng.normal(size=n) * 10.0 ** rng.uniform(-4, 1, n)
        return np.where(rng.random(n) < 0.2, 0, values)

    def lanes(self, points, current):
        """Return Lanes with these points; what the kernels do not read is None."""
        width = np.diff(self.indptr) + 1
        first, m = 2 * (self.indptr[:-1] + np.arange(len(width))), len(width)
        nothing = dict.fromkeys(Lanes._fields, np.empty(0))
        known = {"points": points, "first": first, "width": width, "current": current}
        return Lanes(**{**nothing, **known, "trial_norm2": np.full(m, np.nan)})

    def spread(self, c, point):
        """Return weights of a lane as a vector over the features of X."""
        out = np.zeros(self.X.shape[1])
        out[self.of_lane[c]] = point[:-1]
        return out


SIZES = {"n": st.integers(1, 15), "d": st.integers(1, 12), "m": st.integers(1, 5), "seed": SEEDS}


@given(exponent=scales(np.float64), **SIZES)
def test_copies_of_rows(n, d, m, exponent, seed):
    copies = Copies(np.random.default_rng(seed), n, d, m, exponent)
    sets = copies.sets
    for c, rows in enumerate(copies.rows):
        first, features = sets.first_row[c], copies.of_lane[c]
        indptr = sets.indptr[first + c : first + c + len(rows) + 1]
        at = sets.first_entry[c]
        entries = slice(at, at + indptr[-1])
        shape = (len(rows), len(features))
        small = sp.csr_array((sets.data[entries], sets.indices[entries], indptr), shape=shape)
        dense = np.zeros((len(rows), d))
        dense[:, features] = small.toarray()
        expected = np.where((rows < 0)[:, None], 0, copies.X[rows])
        np.testing.assert_array_equal(dense, expected)
        assert set(features) == set(np.flatnonzero(expected.any(axis=0)))
        assert len(set(features)) == len(features)
        np.testing.assert_array_equal(
            sets.weight[first : first + len(rows)], np.where(rows < 0, CROWD, copies.weight[rows])
        )


@given(**SIZES)
def test_points_that_are_mixed_and_moved(n, d, m, seed):
    rng = np.random.default_rng(seed)
    copies = Copies(rng, n, d, m)
    of_positives, of_shared, shared = rng.normal(size=m), rng.normal(size=m), rng.normal(size=d + 1)
    points, norm2 = copies.random_pool(rng), np.full(m, np.nan)
    before, dense = points.copy(), np.zeros(d + 1)
    ws.mix_points(
        copies.sets, copies.indptr, copies.features, of_positives, of_shared, shared, dense,
        points, norm2,
    )  # fmt: skip
    assert not dense.any()
    old = Points(rng, m, d)
    moved, moved_norm2 = before.copy(), np.full(m, np.nan)
    ws.move_points(
        old.indptr, old.features, old.values, copies.indptr, copies.features, dense, moved,
        moved_norm2,
    )  # fmt: skip
    assert not dense.any()
    for c, rows in enumerate(copies.rows):
        own, features = rows[: copies.n_positives[c]], copies.of_lane[c]
        total = np.append(copies.weight[own] @ copies.X[own], copies.weight[own].sum())
        expected = (of_positives[c] * total + of_shared[c] * shared)[[*features, d]]
        first = copies.lanes(points, None).first[c]
        here, other = np.split(np.arange(2 * len(features) + 2) + first, 2)
        np.testing.assert_allclose(points[here], expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(norm2[c], (points[here][:-1] ** 2).sum())
        np.testing.assert_array_equal(moved[here[:-1]], old.dense()[c, features])
        assert moved[here[-1]] == old.intercept[c]
        np.testing.assert_allclose(moved_norm2[c], (moved[here][:-1] ** 2).sum())
        for pool in (points, moved):
            np.testing.assert_array_equal(pool[other], before[other])


@given(prune=st.sampled_from([0.0, 1e-2, 0.5, 100.0]), **SIZES)
def test_points_that_are_pruned(n, d, m, prune, seed):
    """Features of the point seen before that the lane has lost count as well."""
    rng = np.random.default_rng(seed)
    copies, seen = Copies(rng, n, d, m), Points(rng, m, d)
    points, current = copies.random_pool(rng), rng.integers(0, 2, m)
    lanes, before = copies.lanes(points, current), points.copy()
    stand, rises = copies.random_pool(rng, 1), np.full(m, np.nan)
    dense = np.zeros(d)
    ws.prune_points(
        lanes, prune, copies.indptr, copies.features, seen.indptr, seen.features, seen.values,
        dense, stand, rises,
    )  # fmt: skip
    assert not dense.any()
    expected_points, stands = before.copy(), in_pieces(copies.indptr, stand, 1)
    for c in range(m):
        here = lanes.first[c] + current[c] * lanes.width[c] + np.arange(lanes.width[c])
        w = before[here]
        np.testing.assert_array_equal(stands[c], w)
        pruned = np.append(np.where(np.abs(w[:-1]) < prune, 0, w[:-1]), w[-1])
        expected_points[here + (1 - 2 * current[c]) * lanes.width[c]] = pruned
        np.testing.assert_allclose(lanes.trial_norm2[c], (pruned[:-1] ** 2).sum())
        now = np.maximum(copies.spread(c, w), copies.spread(c, pruned))
        rise = np.linalg.norm(np.maximum(now - seen.dense(prune)[c], 0))
        np.testing.assert_allclose(rises[c], rise, rtol=1e-12)
    np.testing.assert_array_equal(lanes.points, expected_points)


@given(prune=st.sampled_from([0.0, 1e-2, 0.5, 100.0]), **SIZES)
def test_rows_near_a_loss_are_kept(n, d, m, prune, seed):
    rng = np.random.default_rng(seed)
    copies = Copies(rng, n, d, m)
    points, current = copies.random_pool(rng), rng.integers(0, 2, m)
    lanes, kinks = copies.lanes(points, current), rng.normal(size=m)
    kept = np.zeros(len(copies.sets.weight), np.bool_)
    ws.keep_near_rows(copies.sets, lanes, prune, kinks, kept)
    for c, rows in enumerate(copies.rows):
        stand = lanes.stand(c)
        weights = copies.spread(c, stand)
        weights = np.where(np.abs(weights) < prune, np.maximum(weights, 0), weights)
        scores = np.where(rows < 0, 0, copies.X[rows] @ weights) + stand[-1]
        first = np.arange(len(rows)) <= copies.n_positives[c]
        got = kept[copies.sets.first_row[c] :][: len(rows)]
        sure = first | (np.abs(scores - kinks[c]) > 1e-9)
        np.testing.assert_array_equal(got[sure], (first | (scores > kinks[c]))[sure])


@given(
    m=st.integers(1, 6), d=st.integers(1, 9), prune=st.sampled_from([0.0, 1e-3, 0.5]), seed=SEEDS
)
def test_lists_of_weights_and_some_of_several_lists(m, d, prune, seed):
    rng = np.random.default_rng(seed)
    points = Points(rng, m, d)
    if len(points.features):  # a weight of just this size stays
        at = points.indptr[:-1] + np.arange(m)
        points.values[at[np.diff(points.indptr) > 0]] = -prune
    indptr, features = np.full(m + 1, -7), np.full(len(points.features), -7, np.int32)
    values = np.full(len(features), np.nan)
    ws.list_pruned(points.indptr, points.features, points.values, prune, indptr, features, values)
    which = rng.permutation(m)[: rng.integers(0, m + 1)]
    for shift, pool in ((0, points.features), (1, points.values)):
        lists = in_pieces(points.indptr, pool, shift)
        expected = [lists[c] for c in which] + [pool[:0]]
        ends = np.concatenate(([0], np.cumsum(np.diff(points.indptr)[which])))
        out = np.full(ends[-1] + shift * len(which) + 1, -7, pool.dtype)
        ws.take_lists(points.indptr, which, shift, pool, ends, out)
        np.testing.assert_array_equal(out, [*np.concatenate(expected), -7])
    pools = zip(
        in_pieces(points.indptr, points.features), in_pieces(points.indptr, points.values, 1),
        in_pieces(indptr, features), in_pieces(indptr, values), strict=True,
    )  # fmt: skip
    for old, w, new, v in pools:
        kept = (w[:-1] != 0) & (np.abs(w[:-1]) >= prune)
        np.testing.assert_array_equal(new, old[kept])
        np.testing.assert_array_equal(v, w[:-1][kept])
