"""Scores that are distances: against brute force, finite differences, and the paper's identity."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from sklearn_xc import DecompMIPSClassifier
from sklearn_xc._input.data import CsrRows, DenseRows
from sklearn_xc._parallel.threads import Team
from sklearn_xc.decomposition._training_set import LabelSets
from sklearn_xc.decomposition.batch_sgd import take_steps
from sklearn_xc.decomposition.gradients.protocol import SetLoss
from sklearn_xc.decomposition.gradients.scored import Exact
from sklearn_xc.decomposition.layers import HiddenLayer, IdentityLayer
from sklearn_xc.decomposition.losses import LABEL_SET_LOSSES, MaxMargin
from sklearn_xc.decomposition.moving_rows import MovingProxies, MovingRows

N, D, K = 90, 6, 9
METRICS = ("euclidean", "mahalanobis")


def make_points(seed=0, n=N, d=D, n_classes=K, noise=0.5):
    """Return instances around the points of their classes, off the origin, and the classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return 1.0 + rng.normal(size=(n_classes, d))[y] + noise * rng.normal(size=(n, d)), y


def indicator(y, seed=0):
    """Return sets of one or two labels."""
    rng = np.random.default_rng(seed)
    Y = np.eye(K)[y]
    further = rng.random(len(y)) < 0.4
    Y[np.flatnonzero(further), rng.integers(0, K, further.sum())] = 1
    return Y


def make(metric, loss="softmax", **parameters):
    own = {"gradient": "exact", "learning_rate": 0.05, "max_iter": 3, "random_state": 0}
    return DecompMIPSClassifier(loss, metric=metric, **{**own, **parameters})


def distances(model, X):
    """Return squared distances of embedded instances from proxies."""
    return cdist(model.embed(X), model.coef_ / 2, "sqeuclidean")


def data_of(kind):
    X, y = make_points()
    if kind == "dense":
        return X, y
    rng = np.random.default_rng(1)
    wide = np.hstack([X * (rng.random(X.shape) < 0.4), np.zeros((N, 20))])
    wide[np.arange(N), D + np.arange(N) % 20] = 1
    return sp.csr_array(wide), sp.csr_array(indicator(y))


class TestScores:
    @pytest.mark.parametrize(
        ("how", "metric", "kind"),
        [
            ({}, "euclidean", "dense"),
            ({"fit_intercept": False}, "euclidean", "sparse"),
            ({"fit_intercept": False}, "mahalanobis", "dense"),
            ({}, "mahalanobis", "sparse"),
        ],
    )
    def test_are_minus_squared_distances(self, how, metric, kind):
        X, y = data_of(kind)
        model = make(metric, "triplet", embedding_dim="auto", **how).fit(X, y)
        assert model.embedding_dim_ == (
            (0, D)[metric == "mahalanobis"] if kind == "dense" else (100, 26)[metric != "euclidean"]
        )
        expected = -distances(model, X)
        assert expected.std() > 0.1
        np.testing.assert_allclose(model.intercept_, -((model.coef_ / 2) ** 2).sum(axis=1))
        order = np.argsort(-expected, axis=1, kind="stable")
        for exact in (True, False):
            model.set_params(index="exact")
            labels, scores = model.predict_topk(X, K, exact=exact)
            np.testing.assert_array_equal(labels, order)
            np.testing.assert_allclose(scores, np.take_along_axis(expected, order, 1), atol=1e-10)
        labels, scores = model.predict_topk(X, 2, candidates=[1, 4, 7])
        np.testing.assert_allclose(scores, -np.sort(-expected[:, [1, 4, 7]])[:, :2], atol=1e-10)
        labels, scores = model.predict_topk(X, 2, candidates=np.eye(K)[np.arange(N) % K])
        own = expected[np.arange(N), np.arange(N) % K]
        np.testing.assert_allclose(scores[:, 0], own, atol=1e-10)
        found = model.decision_function(X)
        found = found.toarray() if sp.issparse(found) else found
        np.testing.assert_allclose(found, expected, atol=1e-10)

    def test_are_of_the_distance_in_the_instances_space(self):
        """And the paper's identity: W_p = (-p'Mp, 2 p'M, -1), phi = (1, x, x'Mx)."""
        X, y = make_points()
        model = make("mahalanobis", "triplet", max_iter=8).fit(X, y)
        L = model.feature_embedding_
        M = L @ L.T
        P = np.linalg.solve(L.T, model.coef_.T / 2).T
        expected = [[-(x - p) @ M @ (x - p) for p in P] for x in X]
        np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-9)
        W = np.column_stack([-np.einsum("ki,ij,kj->k", P, M, P), 2 * P @ M, np.full(K, -1.0)])
        phi = np.column_stack([np.ones(N), X, np.einsum("ni,ij,nj->n", X, M, X)])
        np.testing.assert_allclose(phi @ W.T, expected, atol=1e-9)
        assert np.abs(M - np.eye(D)).max() > 0.05

    @pytest.mark.parametrize("metric", METRICS)
    def test_a_label_is_predicted_within_a_radius(self, metric):
        X, y = make_points()
        Y = indicator(y)
        model = make(metric, "triplet", fit_intercept=False).fit(X, Y)
        assert model.threshold_ < 0
        near = distances(model, X)
        np.testing.assert_array_equal(model.predict(X), near < -model.threshold_)
        assert model.predict(X).sum() == pytest.approx(Y.sum(), rel=0.05)
        far = X + 100
        assert not model.predict(far).any()


def slope(function, at):
    shape = at.shape
    return scipy.optimize.approx_fprime(
        at.ravel(), lambda x: function(x.reshape(shape)), 1e-7
    ).reshape(shape)


class TestGradients:
    N, D, K, DIM, MU = 8, 5, 7, 4, 2.0

    def draw(self):
        rng = np.random.default_rng(0)
        X = 0.3 * rng.normal(size=(self.N, self.D))
        sizes = 1 + np.arange(self.N) % 3
        sets = [rng.choice(self.K, size, replace=False) for size in sizes]
        labels, indptr = np.concatenate(sets).astype(np.int32), np.cumsum([0, *sizes])
        return X, LabelSets(indptr, labels, rng.uniform(0.01, 0.03, self.N)), sets, rng

    @pytest.fixture
    def objective(self, label_set_loss):
        def find(loss, V, proxies, sets, weight):
            total = 0.0
            for v, own, w in zip(V, sets, weight, strict=True):
                own = own.tolist()
                labels = own + [k for k in range(self.K) if k not in own]
                scores = -((v - proxies[labels]) ** 2).sum(axis=1)  # all of the distance
                total += w * label_set_loss(loss, scores, len(own), self.MU)[0]
            return total

        return find

    @pytest.mark.parametrize(
        ("loss", "is_hidden"),
        [("softmax", False), ("softmax", True), ("margin", True), ("triplet", False)],
    )
    def test_of_proxies_and_layer(self, is_hidden, loss, objective):
        X, label_sets, sets, rng = self.draw()
        assert (np.linalg.norm(X, axis=1) < 1.5).all()
        X /= 1.5
        dim, rate = self.DIM if is_hidden else self.D, 1e-5
        L, proxies = rng.normal(size=(self.D, dim)), 0.5 * rng.normal(size=(self.K, dim))
        moving, features = MovingProxies(2 * proxies), L.copy()
        layer = IdentityLayer(DenseRows(X))
        if is_hidden:
            rows = sp.csr_array(X)
            csr = CsrRows(
                rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data, X.shape
            )
            layer = HiddenLayer(csr, MovingRows(features))
        own = MaxMargin(self.MU) if loss == "margin" else LABEL_SET_LOSSES[loss]()
        method = Exact(SetLoss.of(own))
        how = label_sets, method, np.arange(self.N), self.N, lambda: rate
        with Team(1) as team:
            (step,) = take_steps(layer, moving, *how, team)
        V, weight = X @ L if is_hidden else X, label_sets.weight
        assert step.loss == pytest.approx(objective(loss, V, proxies, sets, weight))
        by_proxy = slope(lambda p: objective(loss, V, p, sets, weight), proxies)
        found = (proxies - moving.vectors / 2) / rate
        assert np.abs(by_proxy).max() > 0.01
        np.testing.assert_allclose(found, by_proxy, atol=2e-5)
        if is_hidden:
            by_L = slope(lambda m: objective(loss, X @ m, proxies, sets, weight), L)
            np.testing.assert_allclose((L - features) / rate, by_L, atol=2e-5)
            assert np.abs(by_L).max() > 0.01


class TestTraining:
    def test_starts_between_the_means(self):
        X, y = make_points()
        model = make("mahalanobis", learning_rate=1e-300, max_iter=1).fit(X, y)
        mean, means = X.mean(axis=0), np.array([X[y == k].mean(axis=0) for k in range(K)])
        np.testing.assert_allclose(model.coef_ / 2, mean + 0.3 * (means - mean), atol=1e-12)
        L = model.feature_embedding_
        np.testing.assert_allclose(L @ L.T, np.eye(D), atol=1e-200)
        flat = make("mahalanobis", learning_rate=1e-300, max_iter=1, embedding_dim=3).fit(X, y)
        L = flat.feature_embedding_
        np.testing.assert_allclose(L.T @ L, D / 3 * np.eye(3), atol=1e-12)
        np.testing.assert_allclose(flat.coef_, model.coef_ @ L, atol=1e-12)
        few = np.repeat([1.0, 2.0], N // 2)
        weighted = make("euclidean", learning_rate=1e-300, max_iter=1).fit(X, y, few)
        mean = few @ X / few.sum()
        own = np.array([few[y == k] @ X[y == k] / few[y == k].sum() for k in range(K)])
        np.testing.assert_allclose(weighted.coef_ / 2, mean + 0.3 * (own - mean), atol=1e-12)
