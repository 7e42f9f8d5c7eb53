"""What is counted: instances passed to fit, and those trained on, which the tree reads."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc import OvALinearXC
from sklearn_xc.metrics import propensity, psp_at_k


@pytest.fixture(scope="module")
def uneven(documents):
    """Return rows of which some are repeated, without features or without labels."""
    X, Y, _ = documents
    rows = np.r_[np.arange(160), np.arange(40), np.zeros(9, int)]
    X, Y = X[rows].tolil(), Y[rows].tolil()
    X[100:110], Y[50:53] = 0, 0
    return X.tocsr(), Y.tocsr()


WEIGHTS = {
    "none": None,
    "ones": np.ones(209),
    "halves": np.full(209, 0.5),
    "some are zero": np.where(np.arange(209) % 3 > 0, 1.5, 0.0),
}


class TestInstancesOfFit:
    @pytest.mark.parametrize("which", WEIGHTS)
    @pytest.mark.parametrize("known", [True, False])
    def test_as_other_estimators_count(self, known, which, make, uneven, documents):
        (X, Y), weight = uneven, WEIGHTS[which]
        own = {"label_features": documents.Z} if known else {}
        model = make(validation_fraction=0.25, **own).fit(X, Y, sample_weight=weight)
        other = OvALinearXC(max_iter=1, tol=1.0)
        other.fit(X, Y, sample_weight=weight)
        assert model.label_counts_.dtype == np.int64
        assert model.label_counts_.tolist() == other.label_counts_.tolist()
        assert type(model.n_samples_fit_) is int
        assert model.n_samples_fit_ == other.n_samples_fit_

    def test_propensities_are_those_of_other_estimators(self, make, uneven):
        X, Y = uneven
        model, other = make(validation_fraction=0.25).fit(X, Y), OvALinearXC(max_iter=1, tol=1.0)
        other.fit(X, Y)
        best, _ = model.predict_topk(X, 3)
        p, q = (propensity(each.label_counts_, each.n_samples_fit_) for each in (model, other))
        assert psp_at_k(Y, best, k=3, propensities=p) == psp_at_k(Y, best, k=3, propensities=q)

    @pytest.mark.parametrize("y", [np.arange(209) % 3, np.arange(209) % 5 < 2])
    def test_classes(self, y, make, uneven):
        model = make(validation_fraction=0.25).fit(uneven[0], y)
        assert model.label_counts_.tolist() == np.unique(y, return_counts=True)[1].tolist()
        assert model.n_samples_fit_ == 209

    def test_a_call_that_fails_counts_nothing(self, make, uneven, monkeypatch):
        X, Y = uneven
        model = make(validation_fraction=0.25).fit(X, Y)
        before = pickle.dumps(model)
        monkeypatch.setattr(type(model), "_require_finite", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model.partial_fit(X, Y)
        assert pickle.dumps(model) == before


class TestFrequenciesOfTheTree:
    """They are of the pairs that were trained on, with weights, and not of what is held out."""

    @pytest.mark.parametrize("known", [True, False])
    def test_fused_scores_go_by_them(self, known, make):
        """Features say nothing here, so that the tree asks for the frequency."""
        rng = np.random.default_rng(0)
        X, Z = (sp.random_array((n, 30), density=0.2, rng=rng, format="csr") for n in (400, 20))
        Y = sp.csr_array((rng.random((400, 20)) < np.geomspace(0.5, 0.02, 20)).astype(float))
        own = {"label_features": Z} if known else {}
        model = make(validation_fraction=0.5, n_candidates=20, max_iter=1, **own)
        model.fit(X, Y.toarray())
        n_scores = model.fusion_.n_scores_
        assert (model.fusion_.tree_.feature == n_scores).any()
        kinds = ["embedding", "classifier", "features"][:n_scores]
        scores = np.empty((400, 20, n_scores))
        for s, kind in enumerate(kinds):
            labels, values = model.predict_topk(X, 20, kind)
            np.put_along_axis(scores[:, :, s], labels, values, axis=1)
        some = np.abs(scores).max(axis=(1, 2)) > 0
        expected = model.fusion_(scores, model._frequencies)[some]
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
