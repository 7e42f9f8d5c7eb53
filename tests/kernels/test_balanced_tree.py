"""Balanced 2-means: sizes, one split against a slow twin, and a subtree against its levels."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from sklearn_xc.kernels import balanced_tree
from sklearn_xc.kernels._jit import kernel
from sklearn_xc.kernels.balanced_tree import _move_centroids, rows_on_the_left, split_subtree
from sklearn_xc.kernels.negatives import mix, mix_key, random_unit


def leaf_sizes(m, c):
    if c == 1:
        return [m]
    k = rows_on_the_left(m, c)
    return leaf_sizes(k, c // 2) + leaf_sizes(m - k, c - c // 2)


@given(st.integers(1, 300), st.integers(0, 5000))
def test_leaves_differ_by_one_row_at_most(c, more):
    sizes = leaf_sizes(c + more, c)
    assert len(sizes) == c
    assert sum(sizes) == c + more
    assert min(sizes) >= 1
    assert max(sizes) - min(sizes) <= 1


def in_front(V, normal, k):
    """Return a mask of the k rows farthest along the normal; ties go to the first."""
    mask = np.zeros(len(V), bool)
    mask[np.argsort(-(V @ normal), kind="stable")[:k]] = True
    return mask


def move_centroids(V, normal, k, n_rounds):
    length = 0.0
    for _ in range(n_rounds):
        left = in_front(V, normal, k)
        normal = V[left].mean(axis=0) - V[~left].mean(axis=0)
        before, length = length, normal @ normal
        if length <= before * (1 + balanced_tree._GAIN):
            break
    return normal, length


def slow_split(V, k, key):
    """Return a mask of the rows on the left, by means and whole sorts."""
    m = len(V)
    n_sample = min(m, balanced_tree._SAMPLE)
    places = np.arange(n_sample) * m // n_sample
    n_left = min(max(1, k * n_sample // m), n_sample - 1)
    with np.errstate(over="ignore"):
        units = [random_unit(key, t) for t in range(2 * balanced_tree._STARTS)]
    tried = []
    for one, other in zip(units[::2], units[1::2], strict=True):
        a, b = int(one * n_sample), int(other * (n_sample - 1))
        b += b >= a
        normal = V[places[a]] - V[places[b]]
        tried.append(move_centroids(V[places], normal, n_left, balanced_tree._ROUNDS))
    normal, _ = max(tried, key=lambda pair: pair[1])
    if n_sample < m:
        normal, _ = move_centroids(V, normal, k, balanced_tree._FULL_ROUNDS)
    return in_front(V, normal, k)


def split(V, n_clusters, depth=1, seed=0):
    order, cluster = np.arange(len(V), dtype=np.int32), np.full(len(V), -1)
    V = V.copy()
    V.flags.writeable = False
    split_subtree(V, order, cluster, 0, len(V), n_clusters, 0, 1, depth, mix_key(seed, 0))
    return order, cluster


@pytest.mark.parametrize("n_clusters", [2, 3, 7])
@pytest.mark.parametrize(("n", "dim"), [(7, 3), (60, 1), (90, 20), (700, 9), (2000, 4)])
def test_one_split_is_that_of_the_slow_twin(n, dim, n_clusters):
    for seed in range(3):
        V = np.random.default_rng(seed).normal(size=(n, dim))
        order, _ = split(V, n_clusters, seed=seed)
        k = rows_on_the_left(n, n_clusters)
        with np.errstate(over="ignore"):
            key = mix(mix_key(seed, 0) + balanced_tree._GOLDEN)
        left = slow_split(V, k, key)
        np.testing.assert_array_equal(order[:k], np.flatnonzero(left))
        np.testing.assert_array_equal(order[k:], np.flatnonzero(~left))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [2, 9, 1000])
def test_ties_go_by_row_number(n, dtype):
    order, cluster = split(np.ones((n, 3), dtype), 2)
    np.testing.assert_array_equal(order, np.arange(n))
    np.testing.assert_array_equal(cluster, np.arange(n) >= n // 2)


@pytest.mark.parametrize("largest", [1e30, np.inf, np.nan])
def test_numbers_too_large_to_be_multiplied_leave_sizes_exact(largest):
    V = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32) * np.float32(1e30)
    V[3, 1] = largest
    _, cluster = split(V, 7, depth=10)
    assert np.bincount(cluster).tolist().count(7) == 6
    assert np.bincount(cluster, minlength=7).max() == 8


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_it_goes_down_as_many_levels_as_asked(depth):
    V = np.random.default_rng(1).normal(size=(40, 5))
    order, cluster = split(V, 5, depth)
    assert (cluster >= 0).sum() == {0: 0, 1: 0, 2: 24}[depth]
    np.testing.assert_array_equal(np.sort(order), np.arange(40))


@kernel
def move_from(V, rows, k, work, places, sums, total, normal):
    """Do a round from a normal; return the square of the next one's length."""
    return _move_centroids(
        V, rows, rows.shape[0], k, 1, work[0], work[1], places, sums, total, normal
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dim", [12, 20, 64])
def test_no_bit_depends_on_where_the_work_space_is(dim, dtype):
    """A loop that writes right behind what it reads is not run in vectors, and rounds otherwise."""
    rng = np.random.default_rng(0)
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
            length = move_from(V, rows, 17, work, places, sums, total, normal)
            found.append((length, normal.tobytes()))
        assert found[0] == found[1] == found[2]
