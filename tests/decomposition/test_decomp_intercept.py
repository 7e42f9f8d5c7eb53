"""Intercepts: what an instance without features gets, and what dense instances need."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc.decomposition.gradients import MessagePassing

WAYS = {
    "product": {"gradient": "decomp_mips"},
    "spherical": {"gradient": "mips"},
    "faiss": {"gradient": "mips", "index": "faiss"},
    "exact": {"gradient": "mips", "index": "exact"},
    "rounds": {"gradient": MessagePassing(n_rounds=1, n_blocks=2)},
    "sampled": {"gradient": "sampled"},
}


@pytest.fixture(params=WAYS)
def way(request):
    if request.param == "faiss":
        pytest.importorskip("faiss")
    return WAYS[request.param]


def texts(n_labels=90, seed=0):
    """Return bags of words, none of them empty, and labels of very different frequencies."""
    rng = np.random.default_rng(seed)
    n = 600
    X = sp.random_array((n, 80), density=0.06, rng=rng, format="csr")
    X += sp.csr_array((np.ones(n), (np.arange(n), rng.integers(0, 80, n))), shape=X.shape)
    shares = 1.0 / np.arange(1, n_labels + 1)
    y = rng.permutation(n_labels)[rng.choice(n_labels, n, p=shares / shares.sum())]
    Y = np.zeros((n, n_labels), int)
    Y[np.arange(n), y] = 1
    Y[np.arange(n_labels), np.arange(n_labels)] = 1
    return X, Y


def dense(n=150, n_classes=6, seed=0):
    """Return instances around centres far from the origin, which differ in the last column."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    X = np.ones((n, 4)) + 0.02 * rng.normal(size=(n, 4))
    X[:, 3] = y - 2 + 0.2 * rng.normal(size=n)
    return X, y


def by_frequency(counts):
    return np.argsort(-np.asarray(counts), kind="stable")


def log_odds(counts, total):
    """Of labels; one without instances is half as frequent as the rarest of the others."""
    counts = np.asarray(counts, float)
    least = 0.5 * counts[counts > 0].min()
    return np.log(np.maximum(counts, least) / np.maximum(total - counts, least))


def of_kind(X, kind):
    """Return instances of which too few entries are not 0 to train intercepts, or enough."""
    return X if kind == "sparse" else sp.csr_array(np.where(X.toarray() > 0, X.toarray(), 0.1))


class TestInstancesWithoutFeatures:
    """Rows of which all entries are 0."""

    @pytest.mark.parametrize(
        ("targets", "kind"),
        [
            ("sparse", "sparse"),
            ("dense", "dense"),
            ("classes", "sparse"),
            ("two classes", "dense"),
        ],
    )
    def test_all_answers(self, targets, kind, make):
        """Of instances with features, too: each has the same answer as alone."""
        X, Y = texts()
        Y[np.arange(600) % 5 > 0, 7] = 1  # 4 of 5 instances have it
        y = {
            "sparse": sp.csr_array(Y),
            "dense": Y,
            "classes": Y[:, :7].argmax(axis=1),
            "two classes": np.where(Y[:, 7] > 0, "b", "a"),
        }[targets]
        X = of_kind(X, kind)
        model = make(embedding_dim=None, top_k=5).fit(X, y)
        counts = model.label_counts_
        order, expected = by_frequency(counts), log_odds(counts, 600)
        filled = X[np.flatnonzero(np.diff(X.indptr) > 0)[:2]]
        some = sp.vstack([X[:0], sp.csr_array((1, 80)), filled, X[:1] * 0])
        scores, found = model.decision_function(some), model.predict(some)
        if targets == "two classes":
            np.testing.assert_allclose(scores[[0, 3]], expected[1] - expected[0], rtol=1e-12)
            assert found[[0, 3]].tolist() == ["b", "b"]
        elif targets == "classes":
            np.testing.assert_allclose(scores[[0, 3]], [expected] * 2, rtol=1e-12)
            assert (found[[0, 3]] == model.classes_[order[0]]).all()
        else:
            if targets == "sparse":
                assert scores[[0]].indices.tolist() == sorted(order[:5].tolist())
                expected[order[5:]] = -model.threshold_
                scores, found = scores.toarray(), found.toarray()
            np.testing.assert_allclose(scores[[0, 3]], [expected + model.threshold_] * 2, rtol=1e-5)
            assert np.flatnonzero(found[0]).tolist() == np.flatnonzero(found[3]).tolist() == [7]
        for exact in (True, False):
            labels, best = model.predict_topk(some, 2, exact=exact)
            assert labels[[0, 3]].tolist() == [order[:2].tolist()] * 2
            alone = model.predict_topk(filled, 2, exact=exact)
            np.testing.assert_array_equal(labels[1:3], alone[0])
            np.testing.assert_array_equal(best[1:3], alone[1])
        alone = model.decision_function(filled)
        alone = alone.toarray() if sp.issparse(alone) else alone
        np.testing.assert_allclose(scores[1:3], alone, rtol=1e-5, atol=1e-7)

    @pytest.mark.parametrize("kind", ["sparse", "dense"])
    def test_the_threshold_is_that_of_the_others(self, kind, make):
        X, Y = texts(12)
        filled = np.arange(600) % 7 > 0
        X = of_kind(X, kind) * filled[:, None]
        filled &= X.toarray().any(axis=1)
        model = make().fit(X, sp.csr_array(Y))
        assert model.predict(X[filled]).nnz == Y[filled].sum()
        assert model.predict(X[~filled]).nnz == 0

    def test_a_warm_start_has_the_frequencies_of_its_own_instances(self, make):
        X, Y = texts(12)
        model = make(warm_start=True).fit(X[:300], Y[:300]).fit(X[300:], Y[300:])
        scores = model.decision_function(np.zeros((1, 80)))[0] - model.threshold_
        np.testing.assert_allclose(scores, log_odds(Y[300:].sum(axis=0), 300), rtol=1e-10)


class TestScores:
    def test_are_inner_products_and_intercepts(self, way, make):
        X, y = dense()
        for dim, fit_intercept in ((None, True), (5, False)):
            model = make(embedding_dim=dim, fit_intercept=fit_intercept, **way).fit(X, y)
            assert model.coef_.shape == (6, dim or 4)
            assert model.coef_.flags.c_contiguous
            assert model.intercept_.shape == (6,)
            assert model.intercept_.any() == fit_intercept
            scores = model.embed(X) @ model.coef_.T + model.intercept_
            np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-12)
            for exact in (True, False):
                labels, best = model.predict_topk(X, 6, exact=exact)
                expected = np.take_along_axis(scores, labels, axis=1)
                np.testing.assert_allclose(best, expected, atol=1e-12)
                np.testing.assert_array_equal(labels, np.argsort(-scores, axis=1, kind="stable"))

    def test_a_search_sees_them(self, way, make):
        """Label vectors are noise, and what scores best are large intercepts."""
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(600, 8)), np.arange(600) % 300
        model = make(embedding_dim=None, n_candidates=20, max_iter=1, **way).fit(X, y)
        model.coef_ = 0.01 * rng.normal(size=(300, 8))
        model.intercept_ = np.where(rng.permutation(300) < 8, 5.0, 0.0)
        high = set(np.flatnonzero(model.intercept_).tolist())
        labels, scores = model.predict_topk(X, 5, exact=False)
        # faiss has no regard for the lengths of rows when it lists them.
        least = 0.3 if way.get("index") == "faiss" else 0.95
        assert np.mean([set(row) <= high for row in labels.tolist()]) > least
        expected = np.take_along_axis(X @ model.coef_.T + model.intercept_, labels, axis=1)
        np.testing.assert_allclose(scores, expected, atol=1e-12)


class TestDenseInstances:
    @pytest.mark.parametrize("embedding_dim", ["auto", 5])
    def test_they_train_them(self, embedding_dim, make):
        X, y = dense()
        start = make(embedding_dim=embedding_dim, learning_rate=1e-300).fit(X, y)
        expected = 0.01 * np.log(np.bincount(y) / len(y))
        np.testing.assert_allclose(start.intercept_, expected, rtol=1e-12)
        model = make(embedding_dim=embedding_dim).fit(X, y)
        assert np.abs(model.intercept_ - expected).min() > 0.01
