"""Compact weights: near those that they come from, and scored as those that they stand for."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sklearn_xc._input.data import CsrRows
from sklearn_xc._weights.compact import compact
from sklearn_xc._weights.label_weights import LabelWeights


def rows(X, dtype):
    X = sp.csr_array(X, dtype=dtype)
    return CsrRows(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, X.shape)


def make(n_labels, dtype, seed=0, n_features=40):
    """Return weights with features on no label, one, all, few and many; of very unequal sizes."""
    rng = np.random.default_rng(seed)
    W = np.zeros((n_labels, n_features), dtype)
    for j in range(n_features):
        count = [0, 1, n_labels][j] if j < 3 else int(n_labels * rng.random() ** 3)
        some = rng.choice(n_labels, count, replace=False)
        W[some, j] = rng.standard_t(3, size=count) * 10.0 ** rng.integers(-4, 3)
    intercept, prior = rng.normal(size=(2, n_labels)).astype(dtype)
    return LabelWeights(sp.csr_array(W), intercept, prior)


def make_rows(dtype, seed=1, n=30, n_features=40):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < rng.random((n, 1)))
    X[0], X[1], X[2] = 0, np.eye(n_features)[0], np.eye(n_features)[1]
    return rows(X, dtype)


def of_full_size(small):
    """Return a model of the weights that the codes of a compact one stand for."""
    return LabelWeights(small.coef, small.intercept, small.prior, small.unseen)


@pytest.mark.parametrize(
    ("n_labels", "dtype"), [(1, np.float64), (255, np.float32), (1001, np.float32)]
)
def test_weights_stay_near(n_labels, dtype):
    model = make(n_labels, dtype)
    W, near = model.coef.toarray().astype(float), model.compact().coef
    assert near.dtype == dtype
    assert near.data.all()
    largest = np.abs(W).max(axis=0)
    bound = 0.0112 * np.sqrt(np.abs(W) * largest) + 0.00007 * largest
    assert (np.abs(near.toarray() - W) <= bound).all()
    np.testing.assert_array_equal((near.toarray() != 0).any(axis=0), W.any(axis=0))


@given(
    n_labels=st.sampled_from([1, 2, 63, 300, 700]),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 2**31),
)
def test_scores_have_the_bits_of_the_weights_that_codes_stand_for(n_labels, dtype, seed):
    small = make(n_labels, dtype, seed).compact()
    full, X = of_full_size(small), make_rows(dtype, seed + 1)
    np.testing.assert_array_equal(small.scores(X, None), full.scores(X, None))
    for found, expected in zip(small.topk(X, 5, None), full.topk(X, 5, None), strict=True):
        np.testing.assert_array_equal(found, expected)
    # And those of numpy.
    W, dense = small.coef.toarray().astype(float), np.zeros(X.shape)
    dense[np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indices] = X.data
    is_blank = ~dense[:, W.any(axis=0)].any(axis=1)
    expected = np.where(is_blank[:, None], small.prior, dense @ W.T + small.intercept)
    tolerance = 100 * np.finfo(dtype).eps * (np.abs(dense) @ np.abs(W.T) + 1)
    assert (np.abs(small.scores(X, None) - expected) <= tolerance).all()


def test_there_are_no_weights():
    dtype = np.float32
    intercept = np.arange(3).astype(dtype)
    small = LabelWeights(sp.csr_array((3, 4), dtype=dtype), intercept).compact()
    assert small.coef.nnz == 0
    assert small.coef.dtype == dtype
    assert small.topk(rows(np.ones((1, 4)), dtype), 2, None)[0].tolist() == [[2, 1]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_at_the_ends_of_their_range(dtype):
    info = np.finfo(dtype)
    W = np.array(
        [[info.max / 4, info.tiny * 9, 1], [-info.max / 8, info.tiny * 4, 2.0**-20]], dtype
    )
    near = compact(sp.csr_array(W)).by_label().toarray()
    np.testing.assert_allclose(near[:, 0], W[:, 0], rtol=0.02)
    np.testing.assert_allclose(near[:, 1], W[:, 1], rtol=0.2)
    assert near[:, 2].tolist() == [pytest.approx(1, rel=0.02), 0]


def test_it_is_pickled_as_it_is():
    small, X = make(300, np.float32).compact(), make_rows(np.float32)
    size = len(pickle.dumps(small))
    _ = small.coef
    assert len(pickle.dumps(small)) == size
    assert size < len(pickle.dumps(of_full_size(small))) / 2
    again = pickle.loads(pickle.dumps(small))
    assert again.is_compact
    np.testing.assert_array_equal(again.scores(X, None), small.scores(X, None))


@pytest.mark.parametrize("n_labels", [30, 700])
def test_what_needs_weights_by_label(n_labels):
    dtype = np.float32
    small, X = make(n_labels, dtype).compact(), make_rows(dtype)
    everything, some = small.scores(X, None), np.arange(1, n_labels, 3)
    np.testing.assert_array_equal(small.scorer_of(some, None)(X), everything[:, some])
    indptr = np.arange(31) * len(some)
    np.testing.assert_allclose(
        small.pair_scores(X, indptr, np.tile(some, 30)),
        everything[:, some].ravel(),
        rtol=1e-3,
        atol=1e-3 * np.abs(everything).mean(),
    )
    labels, scores = small.among(some).topk(X, 4, None)
    assert np.isin(labels, some).all()
    np.testing.assert_array_equal(scores, -np.sort(-everything[:, some], axis=1)[:, :4])


def test_duplicate_entries_are_summed():
    coef = sp.csr_array((np.ones(3), np.array([2, 2, 1]), np.array([0, 2, 3])), shape=(2, 3))
    summed = sp.csr_array(np.array([[0, 0, 2.0], [0, 1, 0]]))
    found = compact(coef).by_label().toarray()
    np.testing.assert_array_equal(found, compact(summed).by_label().toarray())
    assert coef.nnz == 3
