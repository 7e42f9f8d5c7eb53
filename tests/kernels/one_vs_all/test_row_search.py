"""Rows are found as in a dense reference; above all, none is overlooked."""

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sparse_points import (
    ROUNDING,
    SEEDS,
    Points,
    choose_kinks,
    in_pieces,
    least_rows,
    make_rows,
    pooled,
    random_lists,
    scales,
)

from sklearn_xc._data import CsrRows, read_only
from sklearn_xc.kernels.one_vs_all import row_search as search
from sklearn_xc.solvers.layouts import postings

NONE = np.empty(0, np.int32)


def run_look(instances, points, prune, kinks, share, most, known):
    """Return what ``list_rows_above`` lists for each point, and whether it is left."""
    (n, d), dtype = instances.shape, instances.dtype
    by_feature, longest = postings(instances)
    dense, scores = np.zeros(d, dtype), np.zeros(n + 1, np.float32)
    met, indptr = np.empty(n + 1, np.int32), np.full(len(kinks) + 1, -7)
    known_indptr, known_rows = pooled(known, np.int32)
    out, is_left = search.list_rows_above(
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
        ws_out, is_left = search.list_rows_above(
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
    is_cut = search.keep_highest(
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
    search.find_high_levels(
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
    search.keep_highest(
        instances.arrays, np.array([0, 2]), features, values, 0.0, np.array([0.5]), np.array([2]),
        indptr, rows, np.zeros(2),
    )  # fmt: skip
    assert 0 < indptr[1] <= 6


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
    out, is_left = search.list_similar_rows(
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


@pytest.mark.parametrize("least", [0.0, 5e-324])
def test_similar_rows_where_products_are_zero(least):
    """The work space is long enough: what lies behind it stays as it was."""
    found, _ = run_similar(*least_rows(least), [np.arange(30)], [5], 10**6)
    np.testing.assert_array_equal(found[0], [*range(30), -1])


@given(n=st.integers(1, 30), m=st.integers(1, 6), seed=SEEDS)
def test_list_new_rows(n, m, seed):
    rng = np.random.default_rng(seed)
    lists = np.array([rng.permutation(n) for _ in range(m + 2)], np.int32)
    counts, known = rng.integers(0, n + 1, m + 2), random_lists(rng, n, m)
    expected = [lists[c, : counts[c]] for c in range(m)]
    expected = [one[~np.isin(one, rows)] for one, rows in zip(expected, known, strict=True)]
    known_indptr, known_rows = pooled(known, np.int32)
    seen, indptr = np.zeros(n, np.uint8), np.full(m + 1, -7)
    search.list_new_rows(lists, counts, known_indptr, known_rows, seen, indptr)
    np.testing.assert_array_equal(np.diff(indptr), [len(one) for one in expected])
    for c, one in enumerate(expected):
        np.testing.assert_array_equal(lists[c, : len(one)], one)
    assert indptr[0] == 0
    assert not seen.any()
