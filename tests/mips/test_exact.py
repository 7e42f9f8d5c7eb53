"""Exact search against a sort of all scores; what all indexes promise is in test_indexes."""

import numpy as np
import pytest

from sklearn_xc.mips import ExactIndex, exact


@pytest.mark.parametrize("n", [1, 10, 11, 23])
@pytest.mark.parametrize("k", [1, 5, 64, 700])
def test_the_best_labels_with_ties(columns, slow_search, dtype, n, k):
    W, V = columns(700, 9, dtype)
    index = ExactIndex()
    index.build(W)
    found = index.query(V[:n], k)
    labels, scores = slow_search(W, V[:n], k)
    np.testing.assert_array_equal(found.labels, labels)
    np.testing.assert_array_equal(found.scores, scores)


@pytest.mark.parametrize("k", [3, 40, 290])
def test_blocks_change_nothing(columns, monkeypatch, k):
    W, V = columns(700, 9)
    index = ExactIndex(n_jobs=2)
    index.build(W, 2, 7)
    V = np.ascontiguousarray(V[:, 2:7])
    expected = index.query(V, k)
    for queries, labels, few in ((4, 100, 0), (23, 1, 0), (4, 699, 4), (7, 350, 7)):
        monkeypatch.setattr(exact, "_QUERIES", queries)
        monkeypatch.setattr(exact, "_LABELS", labels)
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


def test_changes_are_seen_without_an_update(columns):
    W, V = columns(60, 5)
    index = ExactIndex()
    index.build(W)
    W[17] = 100 * V[0]
    assert index.query(V, 1).labels[0, 0] == 17


def test_nan_is_never_found(columns):
    W, V = columns(60, 5)
    W[[4, 9]] = np.nan
    index = ExactIndex()
    index.build(W)
    found = index.query(V, 60)
    assert (found.counts == 58).all()
    assert not np.isin([4, 9, -1], found.labels[:, :58]).any()
