"""Top-k scores against a stable sort of the dense product."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sklearn_xc._weights.kernels.row_scores import score_rows, topk_rows


def slow_topk(scores, k):
    """Return the k best of each row, ties to the smaller label."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(scores, order, axis=1)


def arrange(W, has_column):
    """Return posting lists and columns of dense weights (n_labels, d)."""
    n_labels = len(W)
    columns = np.zeros((has_column.sum(), -(-n_labels // 64) * 64), W.dtype)
    columns[:, :n_labels] = W.T[has_column]
    slot = np.where(has_column, np.cumsum(has_column) - 1, -1).astype(np.int32)
    lists = sp.csc_array(np.where(has_column, 0, W))
    arrays = lists.indptr.astype(np.int64), lists.indices.astype(np.int32), lists.data
    return *arrays, slot, columns, None


def run(X, weights, intercept, k, first=0, prior=None):
    """Return labels and scores of topk_rows, and all scores, for the rows from `first`."""
    X = sp.csr_array(X)
    n, bases = X.shape[0] - first, np.stack([intercept, intercept if prior is None else prior])
    rows = (X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data), first
    labels, best = np.full((n, k + 1), -1, np.int64), np.full((n, k + 1), -np.inf, X.dtype)
    topk_rows(*rows, weights, bases, k, labels, best)
    assert (labels[:, k] == -1).all()  # the place behind the k best is not touched
    scores = np.empty((n, len(intercept)), X.dtype)
    score_rows(*rows, weights, bases, scores)
    return labels[:, :k], best[:, :k], scores


@given(
    n=st.integers(1, 6),
    d=st.integers(1, 20),
    n_labels=st.one_of(st.integers(1, 40), st.integers(1000, 1400)),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 2**31),
    data=st.data(),
)
def test_topk_is_a_stable_sort_of_the_dense_product(n, d, n_labels, dtype, seed, data):
    """Small whole numbers: sums are exact, and ties are everywhere."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n, d)).astype(dtype)
    W = rng.integers(-1, 2, (n_labels, d)).astype(dtype)
    intercept, prior = rng.integers(-1, 2, (2, n_labels)).astype(dtype)
    k = data.draw(st.one_of(st.integers(1, min(n_labels, 20)), st.integers(1, n_labels)))
    first = data.draw(st.integers(0, n - 1))
    has_column = rng.random(d) < rng.random()
    weights = arrange(W, has_column)
    labels, best, scores = run(X, weights, intercept, k, first, prior)
    is_blank = ~(X[:, W.any(axis=0) | has_column] != 0).any(axis=1)
    expected = (X @ W.T + np.where(is_blank[:, None], prior, intercept))[first:]
    np.testing.assert_array_equal(scores, expected)
    order, values = slow_topk(expected, k)
    np.testing.assert_array_equal(labels, order)
    np.testing.assert_array_equal(best, values)


def test_rows_without_a_feature_that_has_weights_rank_the_prior():
    W = np.ones((4, 3))
    W[:, 2] = 0
    weights = arrange(W, np.array([True, False, False]))
    X = sp.csr_array(([5.0, 1.0, 1.0], [2, 0, 1], [0, 0, 1, 2, 3]), shape=(4, 3))
    prior = np.array([0.0, 3.0, 0.0, 1.0])
    labels, best, scores = run(X, weights, np.array([1.0, 2.0, 3.0, 4.0]), 3, prior=prior)
    np.testing.assert_array_equal(labels[:2], np.tile([1, 3, 0], (2, 1)))
    np.testing.assert_array_equal(best[:2], np.tile([3.0, 1.0, 0.0], (2, 1)))
    np.testing.assert_array_equal(labels[2:], np.tile([3, 2, 1], (2, 1)))
    np.testing.assert_array_equal(scores[:2], np.tile(prior, (2, 1)))
    np.testing.assert_array_equal(scores[2:], np.tile([2.0, 3.0, 4.0, 5.0], (2, 1)))
