"""Product codes: what is found, how near estimates are, and updates."""

import numpy as np
import pytest

from sklearn_xc._input.data import read_only
from sklearn_xc.search import ProductIndex, product, search_recall


def build(W, *args, **kwargs):
    index = ProductIndex()
    index.build(W, *args, **kwargs)
    return index


def assert_same_index(one, other):
    for name in ("_centroids", "_halves", "_codes", "_frequencies"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def all_estimates(index, V, n_labels):
    """Return the estimates of all labels, in the order of labels; NaN for those not resolved."""
    found = index.query(V, n_labels)
    estimates = np.empty(found.scores.shape)
    is_resolved = found.scores > found.scores[:, -1:]
    scores = np.where(is_resolved, found.scores, np.nan)
    np.put_along_axis(estimates, found.labels.astype(int), scores, axis=1)
    assert is_resolved.mean() > 0.8
    return estimates


def test_recall_rises_with_the_candidates(clustered):
    W, V = clustered
    recalls = [search_recall(build(W), W, 0, None, V, 10, n) for n in (10, 20, 50, 100, 400, 2000)]
    assert (np.diff(recalls) >= 0).all()
    assert recalls[0] < 0.99
    assert recalls[2] > 0.8
    assert recalls[3] > 0.95
    assert recalls[-1] == 1.0


def test_estimates_are_near_to_inner_products(clustered):
    W, V = clustered
    estimates, exact = all_estimates(build(W), V, len(W)), V @ W.T
    exact[np.isnan(estimates)] = np.nan
    error = np.nanstd(estimates - exact, axis=1) / np.nanstd(exact, axis=1)
    assert error.max() < 0.6  # correlations are about the root of 1 - error^2
    assert error.mean() < 0.45
    assert np.abs(np.nanmean(estimates - exact)) < 0.02 * np.nanstd(exact)


@pytest.mark.parametrize("first_last", [(0, None), (5, 6)])
def test_updates_write_the_codes_of_build(clustered, first_last):
    """All rows that come back, some of them from far, are coded as at first."""
    W = clustered[0].copy()
    index, expected = build(W, *first_last), build(W, *first_last)
    before, rng = W.copy(), np.random.default_rng(0)
    for scale in (1e-3, 1.0, 100.0):
        rows = rng.permutation(2000)[:300].astype(np.int32)
        W[rows] += scale * rng.normal(size=(300, 24))
        index.update(read_only(rows))
        changed = (index._codes != expected._codes).mean()
        W[:] = before
        index.update(rows)
        assert_same_index(index, expected)
        assert (changed > 0.01) == (scale >= 1.0)


def test_ranges_of_queries_change_nothing(clustered, monkeypatch):
    W, V = clustered
    expected = build(W).query(V, 70)
    monkeypatch.setattr(product, "_CHUNK_CODES", 1)
    for n_queries, n_jobs in ((1, 1), (7, 2), (199, 3)):
        monkeypatch.setattr(product, "_CHUNK_QUERIES", n_queries)
        index = ProductIndex(n_jobs=n_jobs)
        index.build(W)
        for part, other in zip(index.query(V, 70), expected, strict=True):
            assert part.tobytes() == other.tobytes()


@pytest.mark.parametrize("n_labels", [1, 16, 17])
def test_few_labels(n_labels):
    """Up to 16 labels, each is a centroid, and the best is found except for the rounding."""
    rng, dtype = np.random.default_rng(n_labels), np.float32
    W, V = rng.normal(size=(n_labels, 10)).astype(dtype), 3 * np.eye(10, dtype=dtype)
    index = build(read_only(W))
    found = index.query(read_only(V), n_labels)
    np.testing.assert_array_equal(np.sort(found.labels), [np.arange(n_labels)] * 10)
    if n_labels <= 16:
        exact, first = V @ W.T, found.labels[:, 0]
        best = exact.max(axis=1)
        rounding = 0.02 * np.abs(exact).max(axis=1)
        assert (exact[np.arange(10), first] >= best - rounding).all()
        assert (np.abs(found.scores[:, 0] - best) <= rounding).all()


def test_a_row_beyond_all_centroids_ties_until_the_next_build():
    """The limit of updates: they know the centroids of the build alone."""
    W, V = np.zeros((200, 6), np.float32), np.ones((3, 6), np.float32)
    index = build(W)
    W[150] = 2.0
    index.update(np.array([150], np.int32))
    np.testing.assert_array_equal(index.query(V, 5).labels, [np.arange(5)] * 3)
    index.build(W)
    assert (index.query(V, 5).labels[:, 0] == 150).all()
    np.testing.assert_allclose(index.query(V, 1).scores, 12.0)
