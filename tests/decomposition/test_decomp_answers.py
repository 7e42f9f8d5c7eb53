"""Answers are those of the weights: scores, the threshold, searches, embeddings."""

import numpy as np
import pytest
import scipy.sparse as sp

# A label of the common data has no instance.
pytestmark = pytest.mark.filterwarnings("ignore:.*have no training instance")


def log_odds(model):
    """Return those of labels on instances without features."""
    frequencies = model._frequencies
    counts, n = frequencies.of_blank(), frequencies.total
    half = 0.5 * model.label_counts_[model.label_counts_ > 0].min()
    return np.log(np.maximum(counts, half) / np.maximum(n - counts, half))


def scores_of(model, X):
    """Return all scores in float64; those of labels without instances are below all others."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X)
    V = X.astype(np.float64)
    if model.feature_embedding_ is not None:
        V = V @ model.feature_embedding_.astype(np.float64)
    scores = V @ model.coef_.T.astype(np.float64) + model.intercept_
    if model.fit_intercept:
        scores[~X.any(axis=1)] = log_odds(model) + model.threshold_
    unseen = model.label_counts_ == 0
    scores[:, unseen] = scores[:, ~unseen].min(axis=1)[:, None] - 1
    return scores


@pytest.fixture
def places(xy):
    return xy[0].toarray()[:, :4].argmax(axis=1)


class TestTopK:
    @pytest.mark.parametrize("kind", ["classes", "sparse"])
    def test_the_order_is_that_of_the_scores(self, kind, make, places, xy):
        X, Y = xy
        model = make().fit(X, {"classes": places, "sparse": Y}[kind])
        scores = scores_of(model, X)
        K = scores.shape[1]
        labels, best = model.predict_topk(X, 3)
        assert labels.dtype == np.int64
        assert best.dtype == np.float64
        np.testing.assert_allclose(best, np.take_along_axis(scores, labels, axis=1), atol=1e-13)
        np.testing.assert_allclose(best, -np.sort(-scores, axis=1)[:, :3], atol=1e-13)
        labels, best = model.predict_topk(X, K + 2)
        np.testing.assert_array_equal(np.sort(labels[:, :K]), np.tile(np.arange(K), (120, 1)))
        assert (np.diff(best[:, :K]) <= 0).all()
        assert (labels[:, K:] == -1).all()
        assert (best[:, K:] == -np.inf).all()


class TestSearch:
    """predict_topk(exact=False)."""

    @pytest.mark.parametrize(("k", "index"), [(17, None), (1, "exact"), (1, "spherical")])
    def test_among_all_labels_it_is_exact(self, k, index, make, xy):
        X, Y = xy
        model = make(gradient="decomp_mips", index=index).fit(X, Y)
        assert model.n_candidates_ == 15
        for a, b in zip(model.predict_topk(X, k), model.predict_topk(X, k, False), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)

    def test_among_some_labels_scores_are_exact(self, make):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(300, 8)), np.arange(300)
        model = make(embedding_dim=None, n_candidates=30).fit(X, y)
        labels, best = model.predict_topk(X, 5, exact=False)
        expected, _ = model.predict_topk(X, 5)
        recall = np.mean([np.isin(*pair).mean() for pair in zip(expected, labels, strict=True)])
        assert 0.7 < recall < 1
        scores = np.take_along_axis(scores_of(model, X), labels, axis=1)
        np.testing.assert_allclose(best, scores, rtol=1e-12)
        assert (np.diff(best) <= 0).all()
        assert all(len(set(row)) == 5 for row in labels.tolist())


class TestEmbed:
    @pytest.mark.parametrize("embedding_dim", [None, 6])
    def test_scores_are_linear_in_it(self, embedding_dim, make, xy):
        X, Y = xy
        model = make(embedding_dim=embedding_dim).fit(X, Y.toarray())
        V = model.embed(X)
        dim = embedding_dim or 40
        assert V.shape == (120, dim)
        assert model.coef_.shape == (15, dim)
        seen, scores = model.label_counts_ > 0, model.decision_function(X)
        expected, filled = V @ model.coef_.T + model.intercept_, np.diff(X.indptr) > 0
        shown = np.ix_(filled, seen)
        np.testing.assert_allclose(expected[shown], scores[shown], atol=1e-13)
        np.testing.assert_allclose(scores, scores_of(model, X), atol=1e-13)
        assert model.embedding_dim_ == (embedding_dim or 0)
        if embedding_dim is None:
            assert model.feature_embedding_ is None
            np.testing.assert_array_equal(V, X.toarray())
        else:
            assert model.feature_embedding_.shape == (40, dim)
