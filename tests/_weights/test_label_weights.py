"""Sparse label weights and their scores."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc._input.data import CsrRows
from sklearn_xc._parallel import memory
from sklearn_xc._weights import label_weights
from sklearn_xc._weights.label_weights import LabelWeights
from sklearn_xc.exceptions import MemoryBudgetError


@pytest.fixture
def model():
    rng = np.random.default_rng(0)
    coef = sp.random_array(
        (30, 12), density=0.3, format="csr", random_state=rng, data_sampler=rng.normal
    )
    return LabelWeights(coef, rng.normal(size=30))


def rows(X):
    X = sp.csr_array(X)
    return CsrRows(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, X.shape)


@pytest.fixture(name="X")
def instances():
    rng = np.random.default_rng(1)
    return rng.normal(size=(25, 12)) * (rng.random((25, 12)) < 0.6)


@pytest.mark.parametrize("n_labels", [30, 700])
def test_a_row_has_the_same_bits_alone_and_among_others(n_labels):
    """With posting lists only, and with columns for most features."""
    dtype = np.float32
    rng = np.random.default_rng(0)
    coef = sp.random_array(
        (n_labels, 90), density=0.3, format="csr", random_state=rng, data_sampler=rng.normal
    )
    model = LabelWeights(coef.astype(dtype), rng.normal(size=n_labels).astype(dtype))
    assert (len(model.by_feature.columns) > 45) == (n_labels == 700)
    X = (rng.normal(size=(60, 90)) * (rng.random((60, 90)) < 0.5)).astype(dtype)
    labels, scores = model.topk(rows(X), 7, None)
    everything = model.scores(rows(X), None)
    np.testing.assert_array_equal(np.take_along_axis(everything, labels, axis=1), scores)
    for i in range(60):
        alone = model.topk(rows(X[[i]]), 7, None)
        np.testing.assert_array_equal(alone[0][0], labels[i])
        np.testing.assert_array_equal(alone[1][0], scores[i])
    some = model.topk(rows(X[11:47]), 7, 2)
    np.testing.assert_array_equal(some[0], labels[11:47])
    np.testing.assert_array_equal(some[1], scores[11:47])


def test_dense_scores_are_refused_before_they_are_made(model, X, monkeypatch):
    given, _ = rows(X), model.by_feature
    monkeypatch.setattr(memory, "available_bytes", lambda: 25 * 30 * 8 - 1)
    monkeypatch.setattr(memory, "_SMALL", 0)
    monkeypatch.setattr(np, "empty", lambda *args: pytest.fail("allocated"))
    with pytest.raises(MemoryBudgetError, match=r"25 instances x 30 labels.*predict_topk"):
        model.scores(given, None)


def test_some_labels_score_the_bits_that_they_score_among_all():
    """Also where features have whole columns, and rows no weight of these labels, or of any."""
    dtype = np.float32
    rng = np.random.default_rng(0)
    coef = sp.random_array((300, 12), density=0.1, random_state=rng, data_sampler=rng.normal)
    coef = coef.tolil()
    coef[:200, :3] = rng.normal(size=(200, 3))
    coef[:, 10] = 0
    coef = sp.csr_array(coef, dtype=dtype)
    intercept, prior = rng.normal(size=(2, 300)).astype(dtype)
    model = LabelWeights(coef, intercept, prior)
    assert (model.by_feature.slot >= 0).any()
    assert (model.by_feature.slot < 0).any()
    X = rng.normal(size=(40, 12)) * (rng.random((40, 12)) < 0.3)
    X[0], X[1], X[2] = 0, np.eye(12)[10], np.eye(12)[11]
    everything = model.scores(rows(X), None)
    np.testing.assert_array_equal(everything[:2], [prior, prior])
    for labels in ([299], [4, 150, 250, 299], np.arange(5, 300, 2)):
        found = model.scorer_of(np.array(labels), None)(rows(X))
        np.testing.assert_array_equal(found, everything[:, labels])
        assert found.dtype == dtype


@pytest.mark.parametrize(("piece", "cost"), [(1, 1e9), (2**20, 1e9), (2**20, 0), (50, 2)])
def test_scores_of_pairs_are_those_of_all(piece, cost, monkeypatch):
    monkeypatch.setattr(label_weights, "_CHUNK_SCORES", piece)
    monkeypatch.setattr(label_weights, "_COST_OF_ENTRY", cost)
    rng = np.random.default_rng(0)
    coef = sp.random_array((40, 12), density=0.2, random_state=rng, data_sampler=rng.normal)
    coef = coef.tolil()
    coef[:, 10], coef[5], coef[6] = 0, 0, coef[7].toarray()
    model = LabelWeights(sp.csr_array(coef), *rng.normal(size=(2, 40)))
    model.intercept[6], model.prior[6] = model.intercept[7], model.prior[7]
    X = rng.normal(size=(30, 12)) * (rng.random((30, 12)) < 0.3)
    X[0], X[1] = 0, np.eye(12)[10]
    asked = rng.random((30, 40)) < rng.choice([0.0, 0.1, 0.9], 30)[:, None]
    asked[:, 6:8] = asked[:, 6:7]
    indptr, labels = sp.csr_array(asked).indptr.astype(np.int64), np.nonzero(asked)[1]
    found = model.pair_scores(rows(X), indptr, labels)
    np.testing.assert_allclose(found, model.scores(rows(X), None)[asked], atol=1e-12)
    np.testing.assert_array_equal(found[labels == 6], found[labels == 7])  # they tie
