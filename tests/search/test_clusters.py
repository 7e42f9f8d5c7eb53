"""Steps of clustering and of the search among clusters, against numpy."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_xc._input.data import read_only
from sklearn_xc.search.kernels.clusters import Clusters, list_members, search_clusters, two_nearest

FIRST = 1


def make_weights(rng, n_labels, d):
    """Return rows of few values, so that many are the same, with columns that are not copied."""
    return rng.integers(-2, 3, (n_labels, FIRST + d + 1)).astype(np.float32)


def clustered(W, cluster, n_clusters, d):
    gap, begin = np.zeros(len(W)), np.empty(n_clusters + 1, np.int64)
    rows = np.ascontiguousarray(W[:, FIRST : FIRST + d])
    clusters = Clusters(rows, cluster, gap, np.empty(len(W), np.int32), begin)
    list_members(clusters)
    return clusters


@settings(max_examples=25, deadline=None)
@given(
    n_labels=st.one_of(st.integers(0, 12), st.integers(100, 400)),
    n_clusters=st.integers(1, 5),
    d=st.integers(0, 9),
    n=st.integers(0, 4),
    seed=st.integers(0, 2**32 - 1),
)
def test_search_clusters(n_labels, n_clusters, d, n, seed):
    """Whole numbers: sums are exact, clusters and labels tie. Some clusters are empty."""
    rng, dtype = np.random.default_rng(seed), np.float32
    W = make_weights(rng, n_labels, d)
    cluster = rng.integers(0, n_clusters, n_labels).astype(np.int32)
    clusters = clustered(W, cluster, n_clusters, d)
    V = rng.integers(-1, 2, (n, d)).astype(dtype)
    centroids = rng.integers(-1, 2, (n_clusters, d + 1)).astype(dtype)
    n_candidates = int(rng.integers(n_labels + 1)) // int(rng.choice([1, 8]))
    first, last = np.sort(rng.integers(0, n + 1, 2)).tolist()
    labels = np.full((n, n_candidates), -1, np.int32)
    scores, counts = np.full((n, n_candidates), np.nan, dtype), np.full(n, -1)
    search_clusters(
        read_only(V),
        first,
        last,
        read_only(centroids),
        clusters,
        n_candidates,
        labels,
        scores,
        counts,
    )
    expected = np.full_like(labels, -1), np.full_like(scores, np.nan), np.full(n, -1)
    for i in range(first, last):
        seen = []
        for c in np.argsort(-(centroids[:, :d] @ V[i]), kind="stable"):
            if len(seen) < n_candidates:
                seen += np.flatnonzero(cluster == c).tolist()
        seen = np.sort(np.array(seen, int))
        products = W[seen, FIRST : FIRST + d] @ V[i]
        best = np.argsort(-products, kind="stable")[:n_candidates]
        expected[0][i], expected[1][i], expected[2][i] = seen[best], products[best], n_candidates
    for found, wanted in zip((labels, scores, counts), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


@settings(max_examples=60, deadline=None)
@given(n=st.integers(0, 9), n_clusters=st.integers(1, 6), seed=st.integers(0, 2**32 - 1))
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
