"""The order for propensity-scored precision: probabilities over propensities."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc.metrics import propensity, psp_at_k


@pytest.fixture(scope="module")
def fitted(make, make_documents):
    """Return X, Y and a model of them; labels are frequent and rare."""
    X, Y, Z = make_documents(n=600, n_more=3)
    rng = np.random.default_rng(0)
    kept = rng.random(600) < np.where(Y.toarray()[:, ::2].any(axis=1), 1.0, 0.2)
    X, Y = X[kept], sp.csr_array(Y[kept])
    model = make(label_features=Z, validation_fraction=0.3).fit(X, Y)
    assert model.fusion_ is not None
    return X, Y, model


@pytest.fixture
def turn(fitted):
    """Return a function that sets the objective, and set it back in the end."""
    yield lambda objective: fitted[2].set_params(objective=objective)
    fitted[2].set_params(objective="precision")


def test_an_independent_reference(fitted, turn):
    X, Y, model = fitted
    labels, chances = model.predict_topk(X, 20)
    assert (chances >= 0).all()
    assert (chances <= 1).all()
    every = np.empty((X.shape[0], 20))
    np.put_along_axis(every, labels, chances, axis=1)
    counts = np.asarray(Y.sum(axis=0)).ravel()
    C = (np.log(X.shape[0]) - 1) * 2.5**0.55  # of Jain et al. (2016), with A = 0.55 and B = 1.5
    worth = every * (1 + C * (counts + 1.5) ** -0.55)
    turn("propensity")
    labels, scores = model.predict_topk(X, 20)
    np.testing.assert_allclose(scores, -np.sort(-worth, axis=1), rtol=1e-12)
    np.testing.assert_allclose(np.take_along_axis(worth, labels, axis=1), scores, rtol=1e-12)


def test_it_is_better_in_its_own_measure(fitted, turn):
    X, Y, model = fitted
    p = propensity(model.label_counts_, model.n_samples_fit_)
    best = {}
    for objective in ("precision", "propensity"):
        labels, _ = turn(objective).predict_topk(X, 1)
        best[objective] = psp_at_k(Y, labels, k=1, propensities=p)
    assert best["propensity"] > best["precision"]


@pytest.mark.parametrize("kind", ["sparse", "dense", "classes"])
def test_all_ways_to_ask(kind, fitted, make):
    """Top k and dense scores agree; what predict says of an indicator does not change."""
    X, Y, _ = fitted
    y = {"sparse": Y, "dense": Y.toarray(), "classes": Y.toarray().argmax(axis=1)}[kind]
    model = make(validation_fraction=0.3, top_k=20, n_candidates=20).fit(X, y)
    before = model.predict(X)
    one = make(validation_fraction=0.3, objective="propensity", top_k=20, n_candidates=20).fit(X, y)
    model.set_params(objective="propensity")
    np.testing.assert_array_equal(one.coef_, model.coef_)
    labels, scores = model.predict_topk(X, 3)
    for answer, other in zip(one.predict_topk(X, 3), (labels, scores), strict=True):
        np.testing.assert_array_equal(answer, other)
    after = model.predict(X)
    if kind == "sparse":
        assert (after != before).nnz == 0
        return
    if kind == "dense":
        np.testing.assert_array_equal(after, before)
    else:
        np.testing.assert_array_equal(after, model.classes_[labels[:, 0]])
    if kind == "classes":
        all_ = model.decision_function(X)
        np.testing.assert_allclose(np.take_along_axis(all_, labels, axis=1), scores, rtol=1e-12)


def test_components_are_as_they_were(fitted, turn):
    X = fitted[0]
    for component in ("embedding", "classifier", "mean", "features"):
        plain = turn("precision").predict_topk(X, 5, component=component)
        for one, other in zip(
            plain, turn("propensity").predict_topk(X, 5, component=component), strict=True
        ):
            np.testing.assert_array_equal(one, other)


def test_a_row_without_features(fitted, turn):
    X, _, model = fitted
    blank = sp.csr_array((1, X.shape[1]))
    labels, shares = model.predict_topk(blank, 4)
    assert shares[0].tolist() == sorted(shares[0], reverse=True)
    p = propensity(model.label_counts_, model.n_samples_fit_)
    of_rare, scores = turn("propensity").predict_topk(blank, 4)
    assert of_rare.tolist() == labels.tolist()
    np.testing.assert_allclose(scores, shares / p[labels], rtol=1e-12)


class TestRefusals:
    @pytest.mark.parametrize("own", [{"fusion": "tree"}, {"fusion": "sum"},
                                     {"validation_fraction": 0.0}], ids=str)  # fmt: skip
    def test_nothing_to_weigh(self, own, fitted, make):
        with pytest.raises(
            ValueError, match=r"objective='propensity' must have probabil.* Got fusi"
        ):
            make(objective="propensity", **own).fit(*fitted[:2])

    def test_turned_after_the_fit(self, fitted, make):
        X, Y, _ = fitted
        model = make(fusion="tree", validation_fraction=0.3).fit(X, Y)
        with pytest.raises(ValueError, match="Got fusion='tree'"):
            model.set_params(objective="propensity").predict_topk(X)
