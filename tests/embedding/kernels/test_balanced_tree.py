"""Balanced 2-means: sizes, one split against a slow twin, and a subtree against its levels."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from sklearn_xc._compile.arithmetic.sampling import mix, mix_key, random_unit
from sklearn_xc._compile.jit import kernel
from sklearn_xc.embedding.kernels import balanced_tree
from sklearn_xc.embedding.kernels.balanced_tree import (
    _move_centroids,
    rows_on_the_left,
    split_subtree,
)


def leaf_sizes(m, c, rng):
    if c == 1:
        return [m]
    a = int(rng.integers(1, c))
    k = rows_on_the_left(m, c, a)
    return leaf_sizes(k, a, rng) + leaf_sizes(m - k, c - a, rng)


@given(st.integers(1, 300), st.integers(0, 5000), st.integers(0, 100))
def test_leaves_differ_by_one_row_at_most(c, more, seed):
    sizes = leaf_sizes(c + more, c, np.random.default_rng(seed))
    assert len(sizes) == c
    assert sum(sizes) == c + more
    assert min(sizes) >= 1
    assert max(sizes) - min(sizes) <= 1


def in_front(V, normal, k):
    """Return a mask of the k rows farthest along the normal; ties go to the first."""
    mask = np.zeros(len(V), bool)
    mask[np.argsort(-(V @ normal), kind="stable")[:k]] = True
    return mask


def removed(V, left):
    """Return what a split takes off the inertia."""
    k, m = left.sum(), len(V)
    difference = V[left].mean(axis=0) - V[~left].mean(axis=0)
    return k * (m - k) / m * difference @ difference


def sampled_rows(m, n_sample, c, a):
    return min(max(1, rows_on_the_left(m, c, a) * n_sample // m), n_sample - 1)


def best_place(along, m, c):
    """Return how many clusters on the left take most off the inertia along the normal."""
    lowest, n_sample = max(1, -(-c // 4)), len(along)
    places = np.arange(lowest, c - lowest + 1, max(1, c // n_sample))
    gains = []
    for a in places:
        k = sampled_rows(m, n_sample, c, a)
        gains.append(removed(along[:, None], in_front(along[:, None], np.ones(1), k)))
    return int(places[np.argmax(gains)])


def move_centroids(V, m, c, a, normal, n_rounds, n_free):
    gain = 0.0
    for n_round in range(n_rounds):
        if n_round < n_free and c > 2:
            a = best_place(V @ normal, m, c)
        left = in_front(V, normal, sampled_rows(m, len(V), c, a))
        normal = V[left].mean(axis=0) - V[~left].mean(axis=0)
        before, gain = gain, removed(V, left)
        if gain <= before * (1 + balanced_tree._GAIN):
            break
    return normal, gain, a


def slow_split(V, c, key):
    """Return a mask of the rows on the left, by means and whole sorts, and the clusters there."""
    m = len(V)
    n_sample = min(m, balanced_tree._SAMPLE)
    places = np.arange(n_sample) * m // n_sample
    with np.errstate(over="ignore"):
        units = [random_unit(key, t) for t in range(2 * balanced_tree._STARTS)]
    tried = []
    for one, other in zip(units[::2], units[1::2], strict=True):
        a, b = int(one * n_sample), int(other * (n_sample - 1))
        b += b >= a
        normal = V[places[a]] - V[places[b]]
        rounds = balanced_tree._ROUNDS, balanced_tree._FREE_ROUNDS
        tried.append(move_centroids(V[places], m, c, c // 2, normal, *rounds))
    normal, _, n_left = max(tried, key=lambda found: found[1])
    if n_sample < m:
        rounds = balanced_tree._FULL_ROUNDS, balanced_tree._FULL_FREE_ROUNDS
        normal, _, n_left = move_centroids(V, m, c, n_left, normal, *rounds)
    return in_front(V, normal, rows_on_the_left(m, c, n_left)), n_left


def split(V, n_clusters, depth=1, seed=0):
    order, cluster = np.arange(len(V), dtype=np.int32), np.full(len(V), -1)
    V = V.copy()
    V.flags.writeable = False
    n_left = split_subtree(V, order, cluster, 0, len(V), n_clusters, 0, 1, depth, mix_key(seed, 0))
    return order, cluster, n_left


@pytest.mark.parametrize(
    ("n", "dim", "n_clusters"),
    [(60, 1, 2), (60, 1, 59), (90, 20, 3), (700, 9, 7), (2000, 4, 2), (2000, 4, 59)],
)
def test_one_split_is_that_of_the_slow_twin(n, dim, n_clusters):
    for seed in range(3):
        V = np.random.default_rng(seed).normal(size=(n, dim))
        order, _, n_left = split(V, n_clusters, seed=seed)
        with np.errstate(over="ignore"):
            key = mix(mix_key(seed, 0) + balanced_tree._GOLDEN)
        left, expected = slow_split(V, n_clusters, key)
        assert n_left == expected
        k = rows_on_the_left(n, n_clusters, n_left)
        np.testing.assert_array_equal(order[:k], np.flatnonzero(left))
        np.testing.assert_array_equal(order[k:], np.flatnonzero(~left))


@pytest.mark.parametrize("share", [0.25, 0.4, 0.7])
def test_the_cut_goes_between_groups(share):
    """Two groups of rows: the cut is where the clusters of one of them end."""
    n = 2000
    V = np.random.default_rng(0).normal(size=(n, 6))
    V[np.random.default_rng(1).permutation(n)[: int(share * n)], 0] += 12
    _, _, n_left = split(V, 20)
    assert n_left in {round(20 * share), round(20 * (1 - share))}


@pytest.mark.parametrize(("n", "dtype"), [(2, np.float32), (9, np.float32), (1000, np.float64)])
def test_ties_go_by_row_number(n, dtype):
    order, cluster, _ = split(np.ones((n, 3), dtype), 2)
    np.testing.assert_array_equal(order, np.arange(n))
    np.testing.assert_array_equal(cluster, np.arange(n) >= n // 2)


@pytest.mark.parametrize("largest", [1e30, np.inf, np.nan])
def test_numbers_too_large_to_be_multiplied_leave_sizes_exact(largest):
    V = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32) * np.float32(1e30)
    V[3, 1] = largest
    _, cluster, _ = split(V, 7, depth=10)
    assert np.bincount(cluster).tolist().count(7) == 6
    assert np.bincount(cluster, minlength=7).max() == 8


@kernel
def move_from(V, rows, work, places, sums, total, normal):
    """Do a round of 16 clusters from a normal; return what it takes off the inertia, and a cut."""
    parts = work[0], work[1], places, sums, total
    return _move_centroids(V, rows, rows.shape[0], 16, 8, 1, 1, parts, normal)


@pytest.mark.parametrize("dim", [12, 20, 64])
def test_no_bit_depends_on_where_the_work_space_is(dim):
    """A loop that writes right behind what it reads is not run in vectors, and rounds otherwise."""
    rng, dtype = np.random.default_rng(0), np.float32
    room, rows = np.zeros(2**14, np.uint8), np.arange(40, dtype=np.int32)
    for _ in range(20):
        V, start = rng.normal(size=(40, dim)).astype(dtype), rng.normal(size=dim).astype(dtype)
        found = []
        # The normal behind the sums, behind the totals, and far from both.
        for at in ((0, 4096, 8 * dim + 16), (4096, 0, 8 * dim + 16), (0, 4096, 8192)):
            sums, total = (room[a : a + 8 * dim].view(np.float64) for a in at[:2])
            normal = room[at[2] : at[2] + start.nbytes].view(dtype)
            normal[:] = start
            work, places = np.zeros((2, 40), dtype), np.zeros(40, np.int32)
            cut = move_from(V, rows, work, places, sums, total, normal)
            found.append((cut, normal.tobytes()))
        assert found[0] == found[1] == found[2]
