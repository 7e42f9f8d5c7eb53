"""Extreme parameters, features and weights: what works, and what is refused by its range."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc.embedding.samplers import (
    SAMPLERS,
)


def model_counts(Y):
    return np.asarray(Y.sum(axis=0)).ravel()


class TestInstances:
    @pytest.mark.parametrize(
        ("known", "sampler"), [(i % 2, sampler) for i, sampler in enumerate(sorted(SAMPLERS))]
    )
    def test_empty_rows(self, known, sampler, make, documents, blank_counts):
        """They have the embedding 0 and the most frequent labels."""
        X, Y, Z = documents
        X = X.tolil()
        X[::9] = 0
        X = X.tocsr()
        expected = np.argsort(-blank_counts(X, Y), kind="stable")[:4].tolist()
        model = make(label_features=Z if known else None, sampler=sampler, fusion="sum").fit(X, Y)
        assert np.isfinite(model.coef_).all()
        empty = sp.csr_array((2, 80))
        assert not model.embed(empty).any()
        assert model.predict_topk(empty, 4)[0].tolist() == [expected] * 2
        assert model.predict(empty).shape == (2, 20)

    @pytest.mark.parametrize("fraction", [0.0, 0.3])
    def test_nothing_but_zeros(self, fraction, make, documents):
        model = make(validation_fraction=fraction).fit(sp.csr_array((160, 6)), documents.Y)
        assert not model.coef_.any()
        expected = np.argsort(-model_counts(documents.Y), kind="stable")[:2].tolist()
        assert model.predict_topk(sp.csr_array((1, 6)), 2)[0].tolist() == [expected]


class TestTargets:
    @pytest.mark.parametrize("sampler", ["ance", "ngame", "o_sgd"])
    def test_instances_with_all_labels(self, sampler, make, documents, curve_of):
        """They have no negatives, and others do."""
        X, Y, Z = documents
        Y = Y.tolil()
        Y[:40] = 1
        model = make(label_features=Z, sampler=sampler).fit(X, Y.tocsr())
        assert np.isfinite(model.coef_).all()
        full = make(label_features=Z, sampler=sampler).fit(X, np.ones((160, 20)))
        np.testing.assert_allclose(full.coef_, full.label_embeddings_, atol=1e-15)
        assert [loss for loss, _ in curve_of(full, "encoder")] == [0.0] * 3


class TestRange:
    """Values whose squares would leave the range of their dtype."""

    @pytest.fixture
    def model(self, make, documents):
        """Return a fitted model, for the test alone."""
        return make(label_features=documents.Z).fit(*documents[:2])

    @pytest.mark.parametrize(
        ("dtype", "scale", "message"),
        [
            (np.float64, 1e200, r"up to 1e\+100 in float64. Got 6\.54654e\+199 in row 2"),
            (np.float32, 1e25, r"up to 1e\+15 in float32. Got 6\.54654e\+24 in row 2"),
        ],
    )
    def test_instances(self, dtype, scale, message, model, documents):
        X, Y, _ = documents
        before = pickle.dumps(model)
        with pytest.raises(ValueError, match=f"NGAMEEmbeddingXC: X must have values {message}"):
            model.fit((X * scale).astype(dtype), Y)
        assert pickle.dumps(model) == before

    def test_tiny_values_are_zeros(self, make, documents):
        X, Y, Z = documents
        tiny = (X * 1e-25).astype(np.float32)
        assert not make(label_features=Z).fit(tiny, Y).embed(tiny).any()

    @pytest.mark.parametrize(
        ("weight", "named"), [(1e300, r"1e\+300"), (1e-300, "1e-300"), (1e21, r"1e\+21")]
    )
    def test_weights(self, weight, named, model, documents):
        X, Y, _ = documents
        weights, before = np.ones(160), pickle.dumps(model)
        weights[0] = weight
        message = f"sample_weight must be 0 or from 1e-20 to 1e\\+20. Got {named}"
        with pytest.raises(ValueError, match=message):
            model.fit(X, Y, sample_weight=weights)
        assert pickle.dumps(model) == before

    def test_weights_that_are_alike(self, make, documents):
        """They matter by their ratios alone."""
        X, Y, Z = documents
        weights = np.random.default_rng(0).uniform(1, 2, 160)
        own = {"label_features": Z, "validation_fraction": 0.25}
        a, b = (make(**own).fit(X, Y, sample_weight=w) for w in (weights, weights * 2.0**-66))
        np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-9)
        for p, q in zip(a.predict_topk(X, 5), b.predict_topk(X, 5), strict=True):
            np.testing.assert_allclose(p, q, atol=1e-9)
