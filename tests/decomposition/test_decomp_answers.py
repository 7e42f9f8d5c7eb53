"""Answers are those of the weights: scores, the threshold, searches, embeddings."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc.decomposition.losses import MaxMargin

# A label of the common data has no instance.
pytestmark = pytest.mark.filterwarnings("ignore:.*have no training instance")

SPARSE = [
    sp.csr_matrix,
    sp.csr_array,
    sp.csc_matrix,
    sp.csc_array,
    sp.coo_matrix,
    sp.coo_array,
    sp.lil_array,
    sp.bsr_matrix,
]
DTYPES = [bool, np.int8, np.uint8, np.int64, np.float32, np.float64]
NAMES = ("zebra", "ape", "cat", "emu")


def value_of(model, name):
    """Return an attribute; of what training did, the losses: seconds differ."""
    return model.fit_report_["loss"] if name == "fit_report_" else getattr(model, name)


def assert_same_model(a, b):
    for name in ("coef_", "feature_embedding_", "fit_report_", "label_counts_", "threshold_"):
        np.testing.assert_array_equal(value_of(a, name), value_of(b, name), name)


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


@pytest.fixture
def partly_labelled(xy):
    """Return X and Y without label 7, which every row has, and 9, which ties with 2.

    Many rows have no label then.
    """
    X, Y = xy
    Y = Y[:, [j for j in range(15) if j not in (7, 9)]]
    assert 0 < (np.diff(Y.indptr) == 0).sum() < 60
    return X, Y


class TestSparseTargets:
    def test_sparse_answers_hold_the_top_k(self, make, xy):
        X, Y = xy
        model = make(top_k=4).fit(X, Y)
        scores = scores_of(model, X)
        answer = model.decision_function(X)
        assert np.diff(answer.indptr).tolist() == [4] * 120
        filled = np.diff(X.indptr) > 0
        order = np.argsort(-scores, axis=1, kind="stable")[:, :4]
        labels = answer.indices.reshape(120, 4)
        np.testing.assert_array_equal(labels[filled], np.sort(order, axis=1)[filled])
        expected = np.take_along_axis(scores, labels, axis=1).ravel()
        np.testing.assert_allclose(answer.data, expected, atol=1e-13)


class TestThreshold:
    def test_classes_have_none(self, make, places, xy):
        assert make().fit(xy[0], places).threshold_ == 0.0


class TestTopK:
    @pytest.mark.parametrize("kind", ["classes", "dense", "sparse"])
    def test_the_order_is_that_of_the_scores(self, kind, make, places, xy):
        X, Y = xy
        model = make().fit(X, {"classes": places, "dense": Y.toarray(), "sparse": Y}[kind])
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

    @pytest.mark.parametrize("index", [None, "exact", "spherical"])
    @pytest.mark.parametrize("k", [1, 5, 17])
    def test_among_all_labels_it_is_exact(self, k, index, make, xy):
        X, Y = xy
        model = make(gradient="decomp_mips", index=index).fit(X, Y)
        assert model.n_candidates_ == 15
        for a, b in zip(model.predict_topk(X, k), model.predict_topk(X, k, False), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_among_some_labels_scores_are_exact(self, dtype, make):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(300, 8)).astype(dtype), np.arange(300)
        model = make(embedding_dim=None, n_candidates=30).fit(X, y)
        labels, best = model.predict_topk(X, 5, exact=False)
        expected, _ = model.predict_topk(X, 5)
        recall = np.mean([np.isin(*pair).mean() for pair in zip(expected, labels, strict=True)])
        assert 0.7 < recall < 1
        scores = np.take_along_axis(scores_of(model, X), labels, axis=1)
        np.testing.assert_allclose(best, scores, rtol=1e-5 if dtype == np.float32 else 1e-12)
        assert (np.diff(best) <= 0).all()
        assert best.dtype == dtype
        assert all(len(set(row)) == 5 for row in labels.tolist())


class TestEmbed:
    @pytest.mark.parametrize("container", [sp.csr_array, sp.csc_matrix, sp.csr_array.toarray])
    @pytest.mark.parametrize("embedding_dim", [None, 6])
    def test_scores_are_linear_in_it(self, embedding_dim, container, make, xy):
        X, Y = xy
        x = container(X)
        model = make(embedding_dim=embedding_dim).fit(x, Y.toarray())
        V = model.embed(x)
        dim = embedding_dim or 40
        assert V.shape == (120, dim)
        assert model.coef_.shape == (15, dim)
        seen, scores = model.label_counts_ > 0, model.decision_function(x)
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


class TestClasses:
    def test_each_class_is_a_label(self, make, places, xy):
        X, _ = xy
        one_d, indicator = (make().fit(X, y) for y in (places, np.eye(4)[places]))
        np.testing.assert_array_equal(one_d.coef_, indicator.coef_)
        np.testing.assert_array_equal(
            make(MaxMargin(smoothing=1.0)).fit(X, places).coef_, one_d.coef_
        )
        assert (make(MaxMargin(smoothing=5.0)).fit(X, places).coef_ != one_d.coef_).any()


class TestInstances:
    @pytest.mark.parametrize("embedding_dim", [None, 6])
    @pytest.mark.parametrize(
        ("dtype", "expected"),
        [
            (np.float32, np.float32),
            (np.float64, np.float64),
            (np.float16, np.float64),
            (np.int64, np.float64),
            (bool, np.float64),
        ],
    )
    def test_the_arithmetic_follows_x(self, dtype, expected, embedding_dim, make, xy):
        X, Y = xy
        dense = (X.toarray() * 2).astype(dtype)
        for x in [dense] if dtype == np.float16 else [dense, sp.csr_array(dense)]:
            model = make(embedding_dim=embedding_dim).fit(x, Y)
            assert model.coef_.dtype == expected
            assert model.embed(x).dtype == expected
            if model.feature_embedding_ is not None:
                assert model.feature_embedding_.dtype == expected
            assert model.decision_function(x).dtype == expected
            assert model.predict_topk(x)[1].dtype == expected
            assert model.predict_topk(x, exact=False)[1].dtype == expected


class TestUnpleasantRows:
    def test_empty_label_columns(self, make, xy):
        X, Y = xy
        model = make(max_iter=20).fit(X, Y)
        counts = np.asarray(Y.sum(axis=0)).ravel()
        np.testing.assert_array_equal(model.label_counts_, counts)
        assert counts[4] == 0
        assert model.coef_[4].any()  # it is a negative of every row
        mean = scores_of(model, X).mean(axis=0)
        assert mean[4] < mean[7]
        assert mean[7] == mean.max()
