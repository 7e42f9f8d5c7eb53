"""What every index promises; the tests run on all of the registry."""

import subprocess
import sys

import numpy as np
import pytest


def assert_same(one, other):
    for a, b in zip(one, other, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def assert_holds(found, W, V, n_candidates, has_exact_scores):
    """Candidates are distinct, best first, padded behind, and their scores inner products."""
    assert found.labels.shape == found.scores.shape == (len(V), n_candidates)
    assert found.labels.dtype == np.int32
    assert found.counts.dtype == np.int64
    assert found.scores.dtype == W.dtype
    for v, labels, scores, count in zip(V, *found, strict=True):
        assert (labels[count:] == -1).all()
        assert (scores[count:] == -np.inf).all()
        labels, scores = labels[:count], scores[:count]
        assert len(np.unique(labels)) == count
        assert ((labels >= 0) & (labels < len(W))).all()
        order = np.lexsort((labels, -scores))
        np.testing.assert_array_equal(order, np.arange(count))
        if has_exact_scores:
            exact = W[labels].astype(np.float64) @ v.astype(np.float64)
            np.testing.assert_allclose(scores, exact, atol=100 * np.finfo(W.dtype).eps)


@pytest.mark.parametrize(
    ("first_last", "n_candidates", "dtype"),
    [((0, None), 1, np.float32), ((3, 8), 7, np.float64), ((11, 12), 150, np.float32)],
)
def test_candidates_are_rows_with_their_inner_products(
    index_class, columns, dtype, first_last, n_candidates
):
    W, V = columns(150, 12, dtype, is_whole=False)
    own = slice(*first_last)
    index = index_class()
    index.build(W, *first_last)
    V = np.ascontiguousarray(V[:, own])
    found = index.query(V, n_candidates)
    assert_holds(found, np.ascontiguousarray(W[:, own]), V, n_candidates, index.has_exact_scores)


@pytest.mark.parametrize(("n_labels", "dim"), [(2, 4), (40, 1)])
def test_all_labels_are_found_where_all_are_wanted(
    index_class, columns, slow_search, n_labels, dim
):
    W, V = columns(n_labels, dim)
    index = index_class()
    index.build(W)
    found = index.query(V, n_labels)
    labels, scores = slow_search(W, V, n_labels)
    if index.has_exact_scores:
        np.testing.assert_array_equal(found.labels, labels)
        np.testing.assert_array_equal(found.scores, scores)
    else:
        np.testing.assert_array_equal(np.sort(found.labels), np.sort(labels))
    assert (found.counts == n_labels).all()


def test_updates_are_seen(index_class, columns, slow_search):
    W, V = columns(150, 12)
    index = index_class()
    index.build(W)
    rng = np.random.default_rng(0)
    for n_changed in (1, 150, 0, 20, 3):
        rows = rng.choice(150, n_changed, replace=False).astype(np.int32)
        W[rows] = rng.integers(-9, 10, (n_changed, 12))
        index.update(rows)
        found = index.query(V, 150)
        assert_holds(found, W, V, 150, index.has_exact_scores)
        if index.has_exact_scores:
            np.testing.assert_array_equal(found.labels, slow_search(W, V, 150)[0])


def test_the_number_of_threads_changes_nothing(index_class, columns):
    W, _ = columns(2000, 40, is_whole=False)
    V = np.random.default_rng(1).normal(size=(1500, 40)).astype(np.float32)
    rows = np.arange(0, 2000, 3, dtype=np.int32)
    expected = None
    for n_jobs in (None, 1, 2, 3):
        mine = W.copy()
        index = index_class(n_jobs=n_jobs)
        index.build(mine)
        mine[rows] *= np.float32(1.5)
        index.update(rows)
        found = index.query(V, 50)
        if expected is not None:
            assert_same(found, expected)
        expected = found


def test_a_query_is_answered_alike_in_any_company(index_class, columns):
    W, _ = columns(2000, 40, is_whole=False)
    V = np.random.default_rng(1).normal(size=(600, 40)).astype(np.float32)
    index = index_class()
    index.build(W)
    together = index.query(V, 50)
    for own in (slice(0, 1), slice(599, 600), slice(100, 117), slice(200, 500)):
        assert_same(index.query(V[own], 50), [part[own] for part in together])


def test_the_registry_does_not_load_faiss():
    code = "import sys, sklearn_xc.search; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "faiss" not in done.stdout.split()


def test_an_index_that_follows_goes_on_alone(index_class, columns):
    """It finds what an index would that has seen the same moves, and its origin stays as it is."""
    W, V = columns(150, 12)
    index, expected = index_class(), index_class()
    for one in (index, expected):
        one.build(W)
    rng = np.random.default_rng(0)
    first, second = (np.sort(rng.choice(150, 40, replace=False)).astype(np.int32) for _ in range(2))
    before_W = W.copy()
    W[first] += rng.integers(-2, 3, (40, 12))
    for one in (index, expected):
        one.update(first)
    moved, before = W.copy(), index.query(V, 20)
    other = index.following(moved)
    assert type(other) is type(index)
    assert_same(other.query(V, 20), before)
    moved[second] += rng.integers(-2, 3, (40, 12))
    other.update(second)
    assert_same(index.query(V, 20), before)
    W[second] = moved[second]
    expected.update(second)
    assert_same(other.query(V, 20), expected.query(V, 20))
    assert any((a != b).any() for a, b in zip(other.query(V, 20), before, strict=True))
    assert (before_W != W).any()
