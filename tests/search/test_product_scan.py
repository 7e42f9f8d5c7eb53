"""The labels of the least sums, against a sort of all of them."""

import numpy as np
import pytest

from sklearn_xc._compile.emitters.byte_lanes import LANES, TABLE
from sklearn_xc._input.data import read_only
from sklearn_xc.search.kernels.product_scan import (
    _LEAST_SAMPLE,
    _SAMPLED,
    SIDE_BY_SIDE,
    search_codes,
)


def make_codes(n_labels, n_pairs, seed=0):
    """Return codes whose lanes without a label would score best in most tables of `make_tables`."""
    rng = np.random.default_rng(seed)
    n_groups = -(-n_labels // LANES)
    codes = rng.integers(0, 256, (n_groups, n_pairs, LANES), np.uint8)
    codes[-1, :, n_labels - LANES * (n_groups - 1) :] = 0
    return codes


def make_tables(n, n_pairs, highest, seed=0):
    rng = np.random.default_rng(seed)
    tables = rng.integers(0, highest, (n, 2 * n_pairs, TABLE), np.uint8, endpoint=True)
    tables[1:, :, 0] = 0
    return tables


def all_sums(codes, tables, n_labels):
    n_groups, n_pairs, _ = codes.shape
    both = np.stack([codes % TABLE, codes // TABLE], axis=2).reshape(n_groups, 2 * n_pairs, LANES)
    both = both.swapaxes(1, 2).reshape(n_groups * LANES, 2 * n_pairs)[:n_labels]
    blocks = np.arange(2 * n_pairs)
    return np.stack([np.minimum(255, t.astype(int)[blocks, both].sum(axis=1)) for t in tables])


def search(codes, n_labels, tables, n_candidates, dtype=np.float32):
    """Return labels, sums and counts of the search."""
    n = len(tables)
    labels = np.full((n, n_candidates), 10**6, np.int32)
    scores, counts = np.full((n, n_candidates), np.nan, dtype), np.full(n, -5)
    arrays = map(read_only, (codes, tables, np.zeros(n), np.full(n, -1.0)))
    codes, tables, tops, steps = arrays
    search_codes(codes, n_labels, tables, tops, steps, labels, scores, counts)
    return labels, scores, counts


def assert_least(codes, n_labels, tables, n_candidates):
    """The labels found are the first by sum, then label."""
    labels, sums, counts = search(codes, n_labels, tables, n_candidates)
    everything = all_sums(codes, tables, n_labels)
    expected = np.argsort(everything, axis=1, kind="stable")[:, :n_candidates]
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_array_equal(sums, np.take_along_axis(everything, expected, axis=1))
    assert (counts == n_candidates).all()


@pytest.mark.parametrize(
    ("n_labels", "share", "highest"),
    [
        (1, 1.0, 9),
        (64, 0.5, 255),
        (63, 1.0, 255),
        (6000, 0.0, 9),
        (6000, 0.003, 255),
        (6000, 0.5, 0),
    ],
)
def test_against_a_sort(n_labels, share, highest):
    """From all labels that tie, over sums that all differ, to most that stop at 255."""
    n_candidates = max(1, round(share * n_labels))
    tables = make_tables(SIDE_BY_SIDE + 2, 4, highest)
    assert_least(make_codes(n_labels, 4), n_labels, tables, n_candidates)


def sampled_groups(n_groups):
    n_sampled = max(n_groups // _SAMPLED, _LEAST_SAMPLE)
    assert n_sampled < n_groups
    return np.arange(n_sampled) * n_groups // n_sampled


@pytest.mark.parametrize(
    ("n_candidates", "is_better", "gap"), [(1, False, 8), (600, True, 1), (600, False, 8)]
)
def test_a_sample_that_misleads(n_candidates, is_better, gap):
    """The labels of the sample are the best or the worst: too few pass at first, or too many."""
    n_labels, rng = 5000, np.random.default_rng(0)
    codes = np.zeros((79, 1, LANES), np.uint8)
    is_sampled = np.isin(np.arange(79), sampled_groups(79))[:, None]
    codes[:, 0] = rng.integers(0, 16 - gap, (79, LANES)) + gap * (is_sampled != is_better)
    tables = np.zeros((SIDE_BY_SIDE + 2, 2, TABLE), np.uint8)
    tables[:, 0] = np.arange(TABLE)
    tables[2, 0] += 200
    tables[3, 0] = 255 * (tables[3, 0] > gap)
    assert_least(codes, n_labels, tables, n_candidates)


@pytest.mark.parametrize("n_candidates", [50, 600])
def test_labels_that_get_better_and_better(n_candidates):
    """Each is better than those before: the room for candidates is full again and again."""
    n_labels = 20_000
    places = np.arange(n_labels + 32)
    ladder = 255 - np.minimum(places // (n_labels // 256), 255)
    codes = (ladder.reshape(-1, 1, LANES)).astype(np.uint8)
    tables = np.zeros((SIDE_BY_SIDE + 1, 2, TABLE), np.uint8)
    tables[:, 0], tables[:, 1] = np.arange(TABLE), np.minimum(16 * np.arange(TABLE), 255)
    assert_least(codes, n_labels, tables, n_candidates)


def test_scores_are_steps_below_the_top():
    dtype = np.float64
    codes, tables = make_codes(300, 2), make_tables(SIDE_BY_SIDE + 1, 2, 9)
    n = len(tables)
    tops, steps = np.linspace(-3, 5, n), np.linspace(0, 0.1, n)
    labels, scores, counts = np.empty((n, 40), np.int32), np.empty((n, 40), dtype), np.empty(n, int)
    search_codes(codes, 300, tables, tops, steps, labels, scores, counts)
    sums = np.sort(all_sums(codes, tables, 300), axis=1)[:, :40]
    np.testing.assert_allclose(scores, tops[:, None] - steps[:, None] * sums, atol=1e-6)
    search_codes(make_codes(39, 2), 39, tables, tops, steps, labels, scores, counts)
    assert (labels[:, 39] == -1).all()  # fewer labels than wanted
