"""Spherical clusters: the layout, its updates, and what is found."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from sklearn_xc.search import ExactIndex, SphericalIndex
from sklearn_xc.search.spherical import cluster_directions, nearest_centroids


def augmented(index, W):
    """Return the rows with their augmented coordinate, in float64."""
    rows = W.astype(np.float64)
    norm2 = (rows**2).sum(axis=1)
    return np.column_stack([rows, np.sqrt(np.maximum(0.0, index.bound_**2 - norm2))])


def assert_layout(index, W):
    """Every label is in the cluster of its nearest centroid, with a copy of its row."""
    clusters = index._clusters
    np.testing.assert_array_equal(np.sort(clusters.members), np.arange(len(W)))
    sizes = np.bincount(clusters.cluster, minlength=len(index.centroids_))
    np.testing.assert_array_equal(np.diff(clusters.begin), sizes)
    assert (np.diff(clusters.cluster[clusters.members]) >= 0).all()
    np.testing.assert_array_equal(clusters.rows, W)
    affinity = augmented(index, W) @ index.centroids_.T.astype(np.float64)
    own = affinity[np.arange(len(W)), clusters.cluster]
    scale = max(index.bound_, np.abs(W).max())
    atol = 200 * np.finfo(W.dtype).eps * scale
    np.testing.assert_allclose(own, affinity.max(axis=1), atol=atol)


@pytest.mark.parametrize(
    ("n_clusters", "n_labels", "dim"), [(8, 2, 3), (1, 150, 12), (1000, 150, 12), (None, 150, 12)]
)
def test_layout(columns, n_clusters, n_labels, dim):
    W, _ = columns(n_labels, dim, is_whole=False)
    index = SphericalIndex(n_clusters)
    index.build(W)
    wanted = round(n_labels**0.5) if n_clusters is None else n_clusters
    assert index.centroids_.shape == (min(wanted, n_labels), dim + 1)
    np.testing.assert_allclose(np.linalg.norm(index.centroids_, axis=1), 1.0, rtol=1e-5)
    assert index.bound_ == pytest.approx(np.linalg.norm(W.astype(np.float64), axis=1).max())
    assert_layout(index, W)


steps = st.lists(
    st.tuples(st.sampled_from([1, 3, 20, 60]), st.sampled_from([1e-4, 0.03, 1.0, 30.0])),
    max_size=8,
)


@given(steps, st.integers(1, 70), st.integers(0, 2**16), st.sampled_from([np.float32, np.float64]))
def test_layout_after_any_updates(steps, n_clusters, seed, dtype):
    """Rows stand still nearly, wander, and all go one way, beyond the bound too."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(60, 4)).astype(dtype)
    index = SphericalIndex(n_clusters)
    index.build(W, seed=seed)
    for n_changed, scale in steps:
        rows = rng.choice(60, n_changed, replace=False).astype(np.int32)
        W[rows] += scale * rng.normal(size=(1 if scale > 1 else n_changed, 4))
        index.update(rows)
        assert_layout(index, W)


def test_the_lead_of_a_centroid_falls_by_up_to_twice_the_move():
    """Between opposite centroids: a row that leads by 0.2 is on the other side after 0.15."""
    W = np.repeat([[1.0, 0.0], [-1.0, 0.0], [0.1, 0.0], [-0.1, 0.0]], [20, 20, 1, 1], axis=0)
    index = SphericalIndex(2)
    index.build(W)
    cluster = index._clusters.cluster
    assert cluster[40] == cluster[0] != cluster[20] == cluster[41]
    W[40, 0] = -0.05
    index.update(np.array([40], np.int32))
    assert index._clusters.cluster[40] == cluster[41]
    assert_layout(index, W)


def test_clusters_are_visited_until_enough_rows_are_seen(columns, slow_search):
    W, V = columns(150, 12)
    index = SphericalIndex(9)
    index.build(W)
    clusters = index._clusters
    size = np.diff(clusters.begin)
    for n_candidates in (1, 10, 40, 149):
        found = index.query(V, n_candidates)
        assert (found.counts == n_candidates).all()
        for i, v in enumerate(V):
            order = np.argsort(-(index.centroids_[:, :-1] @ v), kind="stable")
            order = order[size[order] > 0]
            n_visited = np.searchsorted(np.cumsum(size[order]), n_candidates) + 1
            seen = np.flatnonzero(np.isin(clusters.cluster, order[:n_visited]))
            if v.any():  # else centroids tie
                best = seen[slow_search(W[seen], v[None], n_candidates)[0][0]]
                np.testing.assert_array_equal(found.labels[i], best)


def test_scores_have_the_bits_of_exact_search(columns, dtype):
    W, V = columns(150, 13, dtype, is_whole=False)
    index, exact = SphericalIndex(), ExactIndex()
    index.build(W)
    exact.build(W)
    for found, expected in zip(index.query(V, 150), exact.query(V, 150), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_directions_of_separated_points_are_their_means():
    rng = np.random.default_rng(0)
    points = np.repeat(np.eye(5, 8), 30, axis=0) + 0.02 * rng.normal(size=(150, 8))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    found = cluster_directions(points, 5, rng, None)
    means = points.reshape(5, 30, 8).sum(axis=1)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    nearest, affinity, gap = nearest_centroids(points, found, None)
    assert len(np.unique(nearest)) == 5
    np.testing.assert_allclose(found[nearest[::30]], means, atol=1e-12)
    products = np.sort(points @ found.T, axis=1)
    np.testing.assert_allclose(affinity, products[:, -1])
    np.testing.assert_allclose(gap, products[:, -1] - products[:, -2], atol=1e-12)


def test_a_query_for_more_labels_than_there_are_ends(columns):
    W, queries = columns(20, 5, is_whole=False)
    index = SphericalIndex(4)
    index.build(W)
    found = index.query(queries, 25)
    assert (found.counts == 20).all()
    assert (found.labels[:, 20:] == -1).all()
