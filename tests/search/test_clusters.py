"""Steps of clustering against numpy."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_xc.search.kernels.clusters import (
    augment_rows,
    largest_norm,
    sum_members,
    two_nearest,
)

seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=40, deadline=None)
@given(n=st.integers(0, 9), dim=st.integers(0, 9), seed=seeds)
def test_norms_and_augmented_rows(n, dim, seed):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(n, dim)).astype(np.float32)
    first, last = np.sort(rng.integers(0, dim + 1, 2))
    norms = np.linalg.norm(W[:, first:last].astype(float), axis=1)
    bound = largest_norm(W, first, last)
    np.testing.assert_allclose(bound, norms.max(initial=0.0), rtol=1e-12)
    rows = rng.integers(0, n, 5 if n else 0)
    out = np.full((len(rows), last - first + 1), np.nan, np.float32)
    augment_rows(W, first, rows, 0.9 * bound, out)
    np.testing.assert_array_equal(out[:, :-1], W[rows, first:last])
    expected = np.sqrt(np.maximum(0.0, (0.9 * bound) ** 2 - norms[rows] ** 2))
    np.testing.assert_allclose(out[:, -1], expected, rtol=1e-5, atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(n=st.integers(0, 9), n_clusters=st.integers(1, 6), seed=seeds)
def test_two_nearest(n, n_clusters, seed):
    rng = np.random.default_rng(seed)
    affinity = rng.integers(-2, 3, (n, n_clusters)).astype(np.float32)
    nearest, largest, gap = np.full(n, -1, np.int32), np.full(n, np.nan), np.full(n, np.nan)
    two_nearest(affinity, nearest, largest, gap)
    np.testing.assert_array_equal(nearest, affinity.argmax(axis=1))
    np.testing.assert_array_equal(largest, affinity.max(axis=1))
    if n_clusters == 1:
        assert (gap == np.inf).all()
    else:
        np.testing.assert_array_equal(gap, largest - np.sort(affinity, axis=1)[:, -2])


@settings(max_examples=40, deadline=None)
@given(n=st.integers(0, 9), n_clusters=st.integers(1, 4), d=st.integers(0, 5), seed=seeds)
def test_sum_members(n, n_clusters, d, seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, d)).astype(np.float32)
    nearest = rng.integers(0, n_clusters, n).astype(np.int32)
    sums = np.ones((n_clusters, d))
    sum_members(points, nearest, sums)
    expected = np.ones((n_clusters, d))
    np.add.at(expected, nearest, points.astype(float))
    np.testing.assert_allclose(sums, expected, rtol=1e-12, atol=1e-12)
