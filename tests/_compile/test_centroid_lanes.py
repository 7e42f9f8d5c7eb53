"""Centroids in the lanes of a register, against numpy: the nearest, their scores, table entries."""

import numpy as np
import pytest

from sklearn_xc._compile.emitters.byte_lanes import TABLE
from sklearn_xc._compile.emitters.centroid_lanes import (
    WIDTH,
    nearest_centroid,
    score_centroids,
    write_entries,
)
from sklearn_xc._compile.jit import kernel
from sklearn_xc._input.data import read_only

N_BLOCKS = 3


@kernel
def nearest(values, at, block, width, centroids, halves):
    return nearest_centroid(values, np.uint64(at), np.uint64(block), width, centroids, halves)


@kernel
def score(values, at, block, centroids, frequencies, falls):
    return score_centroids(values, np.uint64(at), np.uint64(block), centroids, frequencies, falls)


@kernel
def entries(falls, scale, block, query, tables):
    write_entries(falls, np.float32(scale), np.uint64(block), np.uint64(query), tables)


def make_centroids(seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    return (scale * rng.normal(size=(N_BLOCKS, WIDTH, TABLE))).astype(np.float32)


def halves_of(centroids):
    return (0.5 * (centroids.astype(np.float64) ** 2).sum(axis=1)).astype(np.float32)


def find_all(values, centroids, width=WIDTH):
    """Return the nearest centroid of each block of one row; it stands behind another one."""
    n_blocks = len(centroids)
    room = np.concatenate([np.full(n_blocks * WIDTH, 1e30), values]).astype(np.float32)
    arrays = read_only(centroids), read_only(halves_of(centroids))
    places = len(values) + WIDTH * np.arange(n_blocks)
    return [nearest(read_only(room), at, b, width, *arrays) for b, at in enumerate(places)]


def squared_distances(values, centroids):
    blocks = values.astype(np.float64).reshape(N_BLOCKS, WIDTH, 1)
    return ((blocks - centroids.astype(np.float64)) ** 2).sum(axis=1)


@pytest.mark.parametrize("scale", [1e-15, 1e-6, 1.0, 1e6, 1e15])
def test_the_nearest_against_numpy(scale):
    """Of centroids that are about as near as single precision tells."""
    centroids = make_centroids(scale=scale)
    for seed in range(60):
        values = scale * np.random.default_rng(seed).normal(size=N_BLOCKS * WIDTH)
        values = values.astype(np.float32)
        distances = squared_distances(values, centroids)
        found = distances[np.arange(N_BLOCKS), find_all(values, centroids)]
        norms = (values.astype(np.float64).reshape(N_BLOCKS, WIDTH) ** 2).sum(axis=1)
        norms += (centroids.astype(np.float64) ** 2).sum(axis=1).max(axis=1)
        assert (found <= distances.min(axis=1) * (1 + 1e-5) + 1e-6 * norms).all()


def test_a_centroid_is_its_own_nearest():
    centroids = make_centroids()
    for c in range(TABLE):
        values = np.ascontiguousarray(centroids[:, :, c]).ravel()
        assert find_all(values, centroids) == [c] * N_BLOCKS


def test_the_first_of_equal_centroids():
    centroids = make_centroids()
    centroids[:, :, 5:9] = centroids[:, :, 12:13]
    centroids[:, :, 12] = centroids[:, :, 5]
    values = np.ascontiguousarray(centroids[:, :, 5]).ravel()
    assert find_all(values, centroids) == [5] * N_BLOCKS
    assert find_all(values, np.zeros_like(centroids)) == [0] * N_BLOCKS
    assert find_all(np.zeros_like(values), np.zeros_like(centroids)) == [0] * N_BLOCKS


@pytest.mark.parametrize("far", [1e-30, 1e30, np.inf, np.nan])
def test_any_value_gets_one_of_the_centroids(far):
    centroids = make_centroids()
    values = np.full(N_BLOCKS * WIDTH, far, np.float32)
    for code in find_all(values, centroids):
        assert 0 <= code < TABLE


def test_columns_that_are_padded_do_not_matter():
    """They are 0 in the row and in all centroids."""
    centroids = make_centroids()
    centroids[:, 1:] = 0
    values = np.zeros((N_BLOCKS, WIDTH), np.float32)
    values[:, 0] = 0.3, -0.8, 5.0
    expected = np.abs(values[:, :1] - centroids[:, 0]).argmin(axis=1)
    np.testing.assert_array_equal(find_all(values.ravel(), centroids), expected)


def test_what_follows_a_narrow_block_does_not_hide_distances():
    """They differ in the fourth digit; what follows is thousands of times as large."""
    centroids = np.zeros((N_BLOCKS, WIDTH, TABLE), np.float32)
    centroids[:, 0] = 1 + 1e-3 * np.arange(TABLE)
    values = np.full((N_BLOCKS, WIDTH), 1e4, np.float32)
    values[:, 0], values[:, 1] = (1.003, 1.014, 1.0), 0
    assert find_all(values.ravel(), centroids, width=2) == [3, 14, 0]


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_scores_against_numpy(scale):
    centroids, rng = make_centroids(scale=scale), np.random.default_rng(1)
    frequencies = rng.integers(0, 1000, (N_BLOCKS, TABLE)).astype(np.int32)
    frequencies[0, 3:9] = 0
    values = rng.normal(size=5 + N_BLOCKS * WIDTH).astype(np.float32)
    for b in range(N_BLOCKS):
        falls = np.full((N_BLOCKS, TABLE), -7.0, np.float32)
        at = 5 + b * WIDTH
        arguments = map(read_only, (values, centroids, frequencies))
        values_, centroids_, frequencies_ = arguments
        found = score(values_, at, b, centroids_, frequencies_, falls)
        products = values[at : at + WIDTH].astype(np.float64) @ centroids[b].astype(np.float64)
        expected = products.max() - products
        np.testing.assert_allclose(found[0], products.max(), rtol=1e-5)
        np.testing.assert_allclose(falls[b], expected, atol=1e-6 * np.abs(products).max())
        np.testing.assert_allclose(found[1], frequencies[b] @ expected, rtol=1e-5)
        np.testing.assert_allclose(found[2], frequencies[b] @ expected**2, rtol=1e-5)
        assert falls[b].min() == 0
        assert (np.delete(falls, b, axis=0) == -7).all()


def test_entries_are_rounded_and_stop_at_255():
    falls = np.zeros((2, TABLE), np.float32)
    falls[1, :10] = 0.0, 0.1, 0.24, 0.26, 1.0, 127.2, 127.3, 127.6, 1e30, np.nan
    tables = np.full((3, 2, TABLE), 99, np.uint8)
    entries(read_only(falls), 2.0, 1, 2, tables)
    expected = [0, 0, 0, 1, 2, 254, 255, 255, 255, 255] + [0] * 6
    np.testing.assert_array_equal(tables[2, 1], expected)
    assert (tables[:2] == 99).all()
    assert (tables[2, 0] == 99).all()
