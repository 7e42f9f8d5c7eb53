"""Exact search against a sort of all scores; what all indexes promise is in test_indexes."""

import numpy as np
import pytest

from sklearn_xc.search import ExactIndex, exact


@pytest.mark.parametrize(
    ("n", "k", "dtype"),
    [(10, 64, np.float32), (11, 1, np.float32), (11, 700, np.float32), (11, 64, np.float64)],
)
def test_the_best_labels_with_ties(columns, slow_search, dtype, n, k):
    W, V = columns(700, 9, dtype)
    index = ExactIndex()
    index.build(W)
    found = index.query(V[:n], k)
    labels, scores = slow_search(W, V[:n], k)
    np.testing.assert_array_equal(found.labels, labels)
    np.testing.assert_array_equal(found.scores, scores)


@pytest.mark.parametrize("k", [3, 290])
def test_blocks_change_nothing(columns, monkeypatch, k):
    W, V = columns(700, 9)
    index = ExactIndex(n_jobs=2)
    index.build(W, 2, 7)
    V = np.ascontiguousarray(V[:, 2:7])
    expected = index.query(V, k)
    for queries, labels, few in ((4, 100, 0), (23, 1, 0), (4, 699, 4), (7, 350, 7)):
        monkeypatch.setattr(exact, "_CHUNK_QUERIES", queries)
        monkeypatch.setattr(exact, "_CHUNK_LABELS", labels)
        monkeypatch.setattr(exact, "_FEW_QUERIES", few)
        for part, other in zip(index.query(V, k), expected, strict=True):
            np.testing.assert_array_equal(part, other)


def test_labels_that_tie_in_masses(slow_search):
    """More than the labels to spare, and than a buffer of choices."""
    W = np.zeros((5000, 3), np.float32)
    W[4000:4010] = 1.0
    index = ExactIndex()
    index.build(W)
    V = np.ones((12, 3), np.float32)
    np.testing.assert_array_equal(index.query(V, 50).labels, slow_search(W, V, 50)[0])
    np.testing.assert_array_equal(index.query(-V, 50).labels, slow_search(W, -V, 50)[0])


def test_nan_is_never_found(columns):
    W, V = columns(60, 5)
    W[[4, 9]] = np.nan
    index = ExactIndex()
    index.build(W)
    found = index.query(V, 60)
    assert (found.counts == 58).all()
    assert not np.isin([4, 9, -1], found.labels[:, :58]).any()


@pytest.mark.parametrize(("n_queries", "k"), [(3, 400), (23, 1)])
def test_offsets_are_added(k, n_queries, columns):
    """-inf stands for labels that are not to be found."""
    dtype = np.float32
    W, V = columns(5000, 12, dtype)
    offsets = np.random.default_rng(0).integers(-9, 10, 5000).astype(dtype)
    offsets[::7] = -np.inf
    index = ExactIndex(offsets=offsets)
    index.build(W, 2, 11)
    found = index.query(np.ascontiguousarray(V[:n_queries, 2:11]), k)
    scores = V[:n_queries, 2:11].astype(np.float64) @ W[:, 2:11].T.astype(np.float64) + offsets
    labels = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(found.labels, labels)
    np.testing.assert_array_equal(found.scores, np.take_along_axis(scores, labels, axis=1))
