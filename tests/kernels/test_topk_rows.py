"""Top-k scores against a stable sort of the dense product."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sklearn_xc.kernels.topk import score_rows, topk_rows


def slow_topk(scores, k):
    """Return the k best of each row, ties to the smaller label."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(scores, order, axis=1)


def run(X, W, intercept, k, first=0):
    """Return labels and scores of topk_rows, and all scores, for the rows from `first`."""
    X, W = sp.csr_array(X), sp.csc_array(W)
    n, n_labels = X.shape[0] - first, W.shape[0]
    rows = (X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, first)
    weights = (W.indptr.astype(np.int64), W.indices.astype(np.int32), W.data, intercept)
    labels, best = np.full((n, k + 1), -1, np.int64), np.full((n, k + 1), -np.inf, X.dtype)
    topk_rows(*rows, *weights, k, labels, best)
    assert (labels[:, k] == -1).all()  # the place behind the k best is not touched
    scores = np.empty((n, n_labels), X.dtype)
    score_rows(*rows, *weights, scores)
    return labels[:, :k], best[:, :k], scores


@given(
    n=st.integers(1, 6),
    d=st.integers(1, 8),
    n_labels=st.integers(1, 40),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 2**31),
    data=st.data(),
)
def test_topk_is_a_stable_sort_of_the_dense_product(n, d, n_labels, dtype, seed, data):
    """Small whole numbers: sums are exact, and ties are everywhere."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n, d)).astype(dtype)
    W = rng.integers(-1, 2, (n_labels, d)).astype(dtype)
    intercept = rng.integers(-1, 2, n_labels).astype(dtype)
    k = data.draw(st.integers(1, n_labels))
    first = data.draw(st.integers(0, n - 1))
    labels, best, scores = run(X, W, intercept, k, first)
    expected = (X @ W.T + intercept)[first:]
    np.testing.assert_array_equal(scores, expected)
    order, values = slow_topk(expected, k)
    np.testing.assert_array_equal(labels, order)
    np.testing.assert_array_equal(best, values)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_real_scores(dtype):
    rng = np.random.default_rng(0)
    X = sp.random_array((30, 50), density=0.2, random_state=rng, dtype=dtype)
    W = sp.random_array((200, 50), density=0.2, random_state=rng, dtype=dtype)
    intercept = rng.normal(size=200).astype(dtype)
    labels, best, scores = run(X, W, intercept, 17)
    expected = X.toarray() @ W.toarray().T + intercept
    np.testing.assert_allclose(scores, expected, atol=30 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(np.take_along_axis(scores, labels, axis=1), best)
    np.testing.assert_array_equal(best, -np.sort(-scores, axis=1)[:, :17])


def test_labels_and_features_beyond_65536():
    W = sp.csc_array(([1.0, 5.0], ([3, 70_000], [1, 70_001])), shape=(70_001, 70_002))
    X = sp.csr_array(([1.0], ([0], [70_001])), shape=(1, 70_002))
    labels, best, _ = run(X, W, np.zeros(70_001), 2)
    assert labels.tolist() == [[70_000, 0]]
    assert best.tolist() == [[5.0, 0.0]]
