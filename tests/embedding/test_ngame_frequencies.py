"""The frequencies that the tree reads are of the pairs that were trained on."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import normalize


class TestFrequenciesOfTheTree:
    """They are of the pairs that were trained on, with weights, and not of what is held out."""

    @pytest.mark.parametrize("known", [True, False])
    def test_fused_scores_go_by_them(self, known, make):
        """Features say nothing here, so that the tree asks for the frequency."""
        rng = np.random.default_rng(0)
        X, Z = (sp.random_array((n, 30), density=0.2, rng=rng, format="csr") for n in (400, 20))
        Y = sp.csr_array((rng.random((400, 20)) < np.geomspace(0.5, 0.02, 20)).astype(float))
        own = {"label_features": Z} if known else {}
        model = make(fusion="tree", validation_fraction=0.5, n_candidates=20, max_iter=1, **own)
        model.fit(X, Y.toarray())
        n_scores = model.fusion_.n_scores_
        assert (model.fusion_.trees_.feature == n_scores).any()
        kinds = ["embedding", "classifier", *["features"] * known, "mean"]
        scores = np.empty((400, 20, n_scores))
        words = model._means.words
        words = sp.csr_array((words.data, words.indices, words.indptr), shape=words.shape)
        scores[:, :, -1] = (normalize(X) @ words.T).toarray()
        for s, kind in enumerate(kinds):
            labels, values = model.predict_topk(X, 20, component=kind)
            np.put_along_axis(scores[:, :, s], labels, values, axis=1)
        some = np.abs(scores).max(axis=(1, 2)) > 0
        expected = model.fusion_(scores, model._trained_counts)[some]
        assert (expected != model.fusion_(scores, np.zeros(20))[some]).any()
        np.testing.assert_allclose(model.decision_function(X)[some], expected, atol=1e-9)
        labels, values = model.predict_topk(X, 20)
        np.testing.assert_allclose(
            values[some], np.take_along_axis(expected, labels[some], axis=1), atol=1e-9
        )

    def test_they_do_not_follow_the_counts(self, make, documents):
        X, Y, Z = documents
        model = make(label_features=Z, validation_fraction=0.25).fit(X, Y)
        expected = model.predict_topk(X, 5)
        model.label_counts_ = np.zeros_like(model.label_counts_)
        for found, wanted in zip(model.predict_topk(X, 5), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
