"""Against numpy written out slowly, and against the minimum of the objective."""

import functools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from sklearn_xc.decomposition.gradients import MessagePassing
from sklearn_xc.decomposition.losses import LABEL_SET_LOSSES

N, D, K, BATCH = 24, 8, 12, 5

WAYS = {
    "exact": {"gradient": "exact"},
    "sampled": {"gradient": "sampled", "n_candidates": K},
    "mips": {"gradient": "mips", "index": "exact", "n_candidates": K},
    "rounds": {
        "gradient": MessagePassing(n_rounds=2000, n_blocks=2),
        "index": "exact",
        "n_candidates": K,
    },
}


def make_data(kind="sets", dtype=np.float64, seed=0):
    """Return X, the labels of each row, and y: sets of one to three labels, or one class each."""
    rng = np.random.default_rng(seed)
    X = (0.4 * rng.normal(size=(N, D))).astype(dtype)
    sizes = 1 + np.arange(N) % 3 if kind == "sets" else np.ones(N, int)
    sets = [np.sort(rng.choice(K, size, replace=False)) for size in sizes]
    if kind == "sets":
        y = np.zeros((N, K))
        for i, own in enumerate(sets):
            y[i, own] = 1
        return X, sets, sp.csr_array(y)
    y = np.array([own[0] for own in sets])
    y[:K] = np.arange(K)
    return X, [[k] for k in y], y


def log_frequencies(sets, weight=None):
    """Return the logarithm of the share of each label, half of the least for those without one."""
    weight = np.ones(N) if weight is None else weight
    shares = (
        np.array(
            [sum(w for w, own in zip(weight, sets, strict=True) if k in own) for k in range(K)]
        )
        / weight.sum()
    )
    return np.log(np.where(shares > 0, shares, 0.5 * shares[shares > 0].min()))


class Twin:
    """Training by mini-batches in the order that the estimator draws.

    `b` is None, or what intercepts start from.
    """

    def __init__(self, slow_loss, loss, mu, E=None, b=None, *, rate, interval):
        self.gradient_of = lambda scores, own: slow_loss(loss, scores, own, mu)
        self.E, self.W = E, np.zeros((K, D if E is None else E.shape[1]))
        self.b, self.is_trained = np.zeros(K) if b is None else b.copy(), b is not None
        self.rate, self.interval, self.visits = rate, interval, 0

    def move(self, name, gradient, rate):
        setattr(self, name, getattr(self, name) - rate * gradient)

    def run(self, X, sets, order, weight):
        """Go once through the rows; return their mean loss."""
        total = 0.0
        for first in range(0, len(order), BATCH):
            rows = order[first : first + BATCH]
            V = X[rows] if self.E is None else X[rows] @ self.E
            G = np.zeros((len(rows), K))
            for i, row in enumerate(rows):
                value, gradient = self.gradient_of(self.W @ V[i] + self.b, sets[row])
                total += weight[row] * value
                G[i] = weight[row] * gradient
            rate = self.rate / (1 + self.visits / self.interval)
            by_V = G @ self.W
            self.move("W", G.T @ V, rate)
            if self.is_trained:
                self.move("b", G.sum(axis=0), 3 / np.sqrt(K) * rate)
            if self.E is not None:
                norms = np.linalg.norm(by_V, axis=1)
                squares = (X[rows] ** 2).sum(axis=1)
                by_V /= (np.maximum(norms, 1) * np.maximum(squares, 1))[:, None]
                self.move("E", X[rows].T @ by_V, rate)
            self.visits += len(rows)
        return total / weight[order].sum()


class Recorder:
    """Steps into the order of the instances of each epoch."""

    def __init__(self, monkeypatch):
        from sklearn_xc.decomposition._training_set import TrainingSet

        self.orders = []
        plain = TrainingSet.order

        def order(training_set, seed):
            self.orders.append(plain(training_set, seed))
            return self.orders[-1]

        monkeypatch.setattr(TrainingSet, "order", order)


@pytest.fixture
def make(make):
    """Return what makes estimators that show the weights after the last step."""
    return functools.partial(make, average=False)


@pytest.fixture
def orders(monkeypatch):
    return Recorder(monkeypatch).orders


def fitted(make, X, y, loss, way, embedding_dim=None, **parameters):
    own = {"batch_size": BATCH, "max_iter": 2, "sampled_epochs": 0, "learning_rate": 0.2}
    own |= {"embedding_dim": embedding_dim, **WAYS[way], **parameters}
    return make(loss, **own).fit(X, y)


def start_of(make, X, y, embedding_dim, **parameters):
    """Return the feature vectors before training: a step so small that nothing moves."""
    model = make(embedding_dim=embedding_dim, max_iter=1, learning_rate=1e-300, **parameters).fit(
        X, y
    )
    return model.feature_embedding_


class TestSteps:
    @pytest.mark.parametrize("loss", LABEL_SET_LOSSES)
    @pytest.mark.parametrize("way", WAYS)
    def test_two_epochs(self, way, loss, make, slow_loss, orders):
        """Every way and every loss with a hidden layer and intercepts, and without both."""
        fit_intercept = ([*WAYS].index(way) + [*LABEL_SET_LOSSES].index(loss)) % 2 == 0
        kind, embedding_dim = ("sets", 5) if fit_intercept else ("classes", None)
        X, sets, y = make_data(kind)
        if embedding_dim:
            X[:3] *= 3  # longer than 1
        E = None if embedding_dim is None else start_of(make, X, y, embedding_dim)
        orders.clear()
        model = fitted(make, X, y, loss, way, embedding_dim, fit_intercept=fit_intercept)
        b = 0.01 * log_frequencies(sets) if fit_intercept else None
        twin = Twin(slow_loss, loss, 1.0, E, b, rate=0.2, interval=float(N))
        losses = [twin.run(X, sets, order, np.ones(N)) for order in orders]
        assert len(losses) == 2
        # Messages pass for labels with a gradient above 1e-3 only.
        tol = 1e-12 if way != "rounds" else 1e-3
        if way == "rounds" and loss == "triplet":
            return self.assert_near(model, twin, losses)
        np.testing.assert_allclose(model.fit_report_["loss"], losses, rtol=tol, atol=tol)
        np.testing.assert_allclose(model.coef_, twin.W, atol=tol)
        np.testing.assert_allclose(model.intercept_, twin.b, atol=tol)
        if E is not None:
            np.testing.assert_allclose(model.feature_embedding_, twin.E, atol=tol)
            assert np.abs(twin.E - E).max() > 3 * tol
        assert np.abs(twin.W).max() > 10 * tol
        if fit_intercept:
            assert np.abs(twin.b - b).max() > 10 * tol
        else:
            assert not model.intercept_.any()

    @staticmethod
    def assert_near(model, twin, losses):
        """Hinges that are just beyond their kink on one side only are of one size with the rest."""
        np.testing.assert_allclose(model.fit_report_["loss"], losses, rtol=0.05)
        distance = np.linalg.norm(model.coef_ - twin.W)
        assert distance < 0.2 * np.linalg.norm(twin.W)

    def test_weights_are_visits(self, make, slow_loss, orders):
        X, sets, y = make_data()
        weight = np.random.default_rng(0).choice([0.5, 1.0, 2.5, 100.0], N)
        way = {**WAYS["exact"], "batch_size": BATCH, "max_iter": 1, "sampled_epochs": 0}
        model = make(embedding_dim=None, learning_rate=0.01, **way)
        model.fit(X, y, weight)
        (order,) = orders
        visits = np.bincount(order, minlength=N)
        np.testing.assert_array_equal(visits, np.minimum(np.ceil(weight), 64))
        b = 0.01 * log_frequencies(sets, weight)
        twin = Twin(slow_loss, "margin", 1.0, b=b, rate=0.01, interval=float(len(order)))
        loss = twin.run(X, sets, order, weight / visits)
        assert model.fit_report_["loss"][0] == pytest.approx(loss, rel=1e-12)
        np.testing.assert_allclose(model.coef_, twin.W, atol=1e-12)


class TestMinimum:
    """Small rates that fall: a convex objective comes near its minimum."""

    @pytest.fixture
    def noisy(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 5))
        scores = X @ rng.normal(size=(5, 4)) + 1.5 * rng.gumbel(size=(300, 4)) + [0, 1, 0, -1]
        return X, scores.argmax(axis=1)

    def trained(self, make, loss, X, y):
        """Return label vectors and intercepts side by side."""
        model = make(
            loss,
            embedding_dim=None,
            max_iter=150,
            learning_rate=0.05,
            sampled_epochs=0,
        )
        model.fit(X, y)
        return np.column_stack([model.coef_, model.intercept_])

    def test_softmax_and_logistic_regression(self, noisy, make, slow_loss):
        X, y = noisy
        reference = LogisticRegression(C=1e8, tol=1e-8, max_iter=1000).fit(X, y)
        best = np.column_stack([reference.coef_, reference.intercept_])
        found = self.trained(make, "softmax", X, y)
        minimum, found = (
            np.mean(
                [
                    slow_loss("softmax", W @ np.append(x, 1), [k], 1)[0]
                    for x, k in zip(X, y, strict=True)
                ]
            )
            for W in (best, found)
        )
        assert minimum - 1e-9 <= found < minimum + 1e-4
        assert minimum < np.log(4) - 0.1
