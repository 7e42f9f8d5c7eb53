"""The maximum of the likelihood: scikit-learn's LogisticRegression, and its log-loss."""

import functools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import log_softmax
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import normalize

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax
from sklearn_xc.softmax import classifier
from sklearn_xc.softmax._inputs import hold_out

#: Rates at which a few epochs end worse than they began are of interest here.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(is too high|the last rate):sklearn.exceptions.ConvergenceWarning"
)

ESTIMATORS = [SoftmaxUMax, ImplicitSoftmaxSGD]


@functools.cache
def data(name):
    """Return X and y in 0, ..., K - 1."""
    if name in ("iris", "two species"):
        X, y = load_iris(return_X_y=True)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        return (X, y) if name == "iris" else (X[50:], y[50:] - 1)
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return normalize(X[:300]), y[:300]
    rng = np.random.default_rng(0)
    X = sp.random_array((200, 60), density=0.1, format="csr", random_state=rng)
    y = (X @ rng.normal(size=(60, 8))).argmax(axis=1)
    return normalize(X), y


def objective(W, X, y, alpha, weight, intercept=0.0):
    log_proba = log_softmax(np.asarray(X @ W.T) + intercept, axis=1)
    return 0.5 * alpha * (W * W).sum() - weight @ log_proba[np.arange(len(y)), y]


def least_objective(X, y, alpha, weight, fit_intercept=False):
    """Return the objective at the weights that scikit-learn finds; it has no ridge on intercepts.

    Of two classes it has one vector: w_1 - w_0, which costs the least where w_0 = -w_1.
    """
    is_binary = y.max() == 1
    C = (2.0 if is_binary else 1.0) / alpha
    model = LogisticRegression(fit_intercept=fit_intercept, C=C, tol=1e-9, max_iter=10_000)
    W, b = model.fit(X, y, weight).coef_, model.intercept_
    W = np.vstack([-W / 2, W / 2]) if is_binary else W
    b = np.concatenate([-b / 2, b / 2]) if is_binary else b
    return objective(W, X, y, alpha, weight, b)


def log_shares(y, weight):
    return np.log(np.bincount(y, weight) / weight.sum())


STEPS = {
    "U-max, one class": (SoftmaxUMax, {"n_negatives": 1, "n_hard_negatives": 0}),
    "U-max": (SoftmaxUMax, {"n_negatives": 5, "n_hard_negatives": 0}),
    "implicit, one class": (ImplicitSoftmaxSGD, {"n_negatives": 1, "n_hard_negatives": 0}),
    "implicit": (ImplicitSoftmaxSGD, {"n_negatives": 3, "n_hard_negatives": 0}),
    "U-max, hard": (SoftmaxUMax, {"n_negatives": 3, "n_hard_negatives": 2}),
    "implicit, hard": (ImplicitSoftmaxSGD, {"n_negatives": 1, "n_hard_negatives": 2}),
    "batches": (ImplicitSoftmaxSGD, {"n_negatives": 4, "batch_size": 8}),
    "batches, one class": (ImplicitSoftmaxSGD, {"n_negatives": 1, "batch_size": 2}),
}
# Ridge, learning rate per instance of a step, and epochs.
DATA = {
    "iris": (1.0, 3.0, 600),
    "two species": (1.0, 3.0, 600),
    "digits": (0.5, 10.0, 1500),
    "text": (0.3, 8.0, 1000),
}
# With weights of instances and intercepts, or without both; every step on dense rows and on sparse
# ones, every data set with both. The first steps of U-max are long: with one sampled class and
# many, or with unequal weights on long rows, it comes back only to 1e-2 in as many epochs.
CASES = [
    ("iris", "U-max, one class", False), ("two species", "U-max, one class", True),
    ("iris", "U-max", False), ("text", "U-max", True), ("digits", "U-max", False),
    ("iris", "implicit, one class", True), ("text", "implicit, one class", False),
    ("iris", "implicit", False), ("text", "implicit", True), ("two species", "implicit", False),
    ("iris", "U-max, hard", True), ("text", "U-max, hard", False),
    ("iris", "implicit, hard", False), ("text", "implicit, hard", True),
    ("iris", "batches", True), ("text", "batches", False), ("digits", "batches", True),
    ("iris", "batches, one class", False), ("text", "batches, one class", True),
]  # fmt: skip


class TestMaximum:
    @pytest.mark.parametrize(("name", "step", "is_weighted"), CASES)
    def test_an_average_of_falling_steps_converges(self, name, step, is_weighted):
        X, y = data(name)
        alpha, rate, max_iter = DATA[name]
        estimator, parameters = STEPS[step]
        weight = np.ones(len(y))
        if is_weighted:
            weight = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 2.5], len(y))
        model = estimator(
            alpha, learning_rate=rate * parameters.get("batch_size", 1), decay="1/t", average=True,
            max_iter=max_iter, random_state=0, fit_intercept=is_weighted, **parameters,
        ).fit(X, y, weight if is_weighted else None)  # fmt: skip
        least = least_objective(X, y, alpha, weight, is_weighted)
        found = objective(model.coef_, X, y, alpha, weight, model.intercept_)
        assert least * (1 - 1e-9) < found < least * (1 + 1e-3)
        assert objective(np.zeros_like(model.coef_), X, y, alpha, weight) > 1.4 * least
        assert model.intercept_.any() == is_weighted

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_u_ends_at_the_log_loss_of_its_instance(self, estimator):
        X, y = data("iris")
        model = estimator(
            1.0, n_negatives=2, learning_rate=3.0, decay="1/t", average=True, max_iter=600,
            random_state=0,
        ).fit(X, y)  # fmt: skip
        log_losses = -model.predict_log_proba(X)[np.arange(len(y)), y]
        assert np.corrcoef(model.u_, log_losses)[0, 1] > 0.95
        assert np.quantile(np.abs(model.u_ - log_losses), 0.95) < 0.05
        assert log_losses.max() > 0.5  # the tolerance is small beside what it is of

    def test_a_multilabel_row_is_an_observation_of_each_of_its_labels(self):
        X, y = data("text")
        second = (y + 1 + np.arange(len(y)) % 3) % 8
        Y = sp.csr_array(np.eye(8)[y] + np.eye(8)[second])
        model = ImplicitSoftmaxSGD(
            0.3, n_negatives=3, learning_rate=8.0, decay="1/t", average=True, max_iter=500,
            random_state=0, fit_intercept=False,
        ).fit(X, Y)  # fmt: skip
        both, labels = sp.vstack([X, X]).tocsr(), np.concatenate([y, second])
        least = least_objective(both, labels, 0.3, np.ones(400))
        found = objective(model.coef_, both, labels, 0.3, np.ones(400))
        assert least * (1 - 1e-9) < found < least * (1 + 1e-3)

    def test_float32(self):
        X, y = data("text")
        model = ImplicitSoftmaxSGD(
            0.3, n_negatives=3, learning_rate=8.0, decay="1/t", average=True, max_iter=500,
            random_state=0,
        ).fit(X.astype(np.float32), y)  # fmt: skip
        assert model.coef_.dtype == model.intercept_.dtype == np.float32
        least = least_objective(X, y, 0.3, np.ones(200), True)
        W, b = model.coef_.astype(float), model.intercept_.astype(float)
        assert objective(W, X, y, 0.3, np.ones(200), b) < least * (1 + 2e-3)


class TestWithoutRidge:
    @pytest.mark.parametrize("name", ["iris", "text"])
    @pytest.mark.parametrize("step", STEPS)
    def test_the_log_loss_falls(self, step, name):
        X, y = data(name)
        estimator, parameters = STEPS[step]
        rate = 0.3 * parameters.get("batch_size", 1)
        entropy = -(np.exp(log_shares(y, np.ones(len(y)))) @ log_shares(y, np.ones(len(y))))
        model = estimator(learning_rate=rate, max_iter=30, random_state=0, **parameters).fit(X, y)
        assert model.fit_report_["log_loss"].shape == model.fit_report_["loss"].shape == (30,)
        assert model.fit_report_["log_loss"][-1] < model.fit_report_["log_loss"][0] < entropy
        assert model.fit_report_["log_loss"][-1] < 0.9 * entropy

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_auto_finds_a_rate_that_learns(self, estimator):
        X, y = data("digits")
        model = estimator(random_state=0, max_iter=20).fit(X, y)
        assert model.fit_report_["log_loss"][-1] < 0.3
        assert model.score(X, y) > 0.95


class TestCurves:
    @pytest.mark.parametrize("step", STEPS)
    def test_log_loss_is_that_of_scikit_learn(self, step):
        """Up to 256 training instances are all monitored."""
        X, y = data("text")
        estimator, parameters = STEPS[step]
        weight = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 2.5], len(y))
        for average in (False, True):
            model = estimator(
                0.1, learning_rate=2.0, max_iter=5, average=average, random_state=0, **parameters
            ).fit(X, y, weight)
            expected = log_loss(y, model.predict_proba(X), sample_weight=weight)
            assert model.fit_report_["log_loss"][-1] == pytest.approx(expected, rel=1e-12)
            assert model.fit_report_["log_loss"][-2] != pytest.approx(expected, rel=1e-6)

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_log_loss_of_held_out_rows(self, estimator, monkeypatch):
        X, y = data("text")
        filled = np.flatnonzero(np.diff(X.indptr))
        X, y = X[filled], y[filled]
        seen = []

        def spy_hold_out(*arguments):
            seen.append(hold_out(*arguments))
            return seen[-1]

        monkeypatch.setattr(classifier, "hold_out", spy_hold_out)
        parameters = {
            "learning_rate": 2.0, "max_iter": 40, "random_state": 0, "init": "zero",
            "fit_intercept": False,
        }  # fmt: skip
        model = estimator(early_stopping=True, validation_fraction=0.2, **parameters).fit(X, y)
        ((_, held_out),) = seen
        held = held_out.rows
        assert len(held) == int(np.ceil(0.2 * len(y)))
        kept = np.setdiff1d(np.arange(len(y)), held)
        without = estimator(**{**parameters, "max_iter": model.n_iter_}).fit(X[kept], y[kept])
        expected = log_loss(y[held], without.predict_proba(X[held]), labels=np.arange(8))
        assert model.fit_report_["log_loss"][-1] == pytest.approx(expected, rel=1e-12)
        assert len(model.u_) == len(y)  # but all are trained on

    @pytest.mark.parametrize("step", STEPS)
    def test_the_sampled_objective_is_exact_where_all_classes_score_the_same(self, step):
        X, y = data("text")
        estimator, parameters = STEPS[step]
        model = estimator(
            learning_rate=1e-12, max_iter=2, random_state=0, init="zero", sampling="uniform",
            fit_intercept=False, **parameters,
        )  # fmt: skip
        model.fit(X, y)
        rel = 1e-9
        if "batch_size" in parameters or parameters["n_hard_negatives"]:
            rel = 0.2  # the label, or a hard negative, may be drawn
        np.testing.assert_allclose(model.fit_report_["loss"], np.log(8), rtol=rel)
        np.testing.assert_allclose(model.fit_report_["log_loss"], np.log(8), rtol=1e-9)

    def test_the_sampled_objective_is_unbiased_and_above_the_log_loss(self):
        """At weights that hardly move, over many epochs."""
        X, y = data("iris")
        model = ImplicitSoftmaxSGD(
            learning_rate=1.0, max_iter=20, random_state=0, n_negatives=1, n_hard_negatives=0
        ).fit(X, y)
        model.set_params(warm_start=True, learning_rate=1e-9, max_iter=2000).fit(X, y)
        log_losses = -model.predict_log_proba(X)[np.arange(len(y)), y]
        u = model.u_
        expected = np.mean(u + np.exp(log_losses - u) - 1)
        assert model.fit_report_["loss"].mean() == pytest.approx(expected, rel=0.01)
        assert model.fit_report_["loss"].std() > 0.01 * expected
        assert expected > log_losses.mean()
