"""The maximum of the likelihood: scikit-learn's LogisticRegression, and its log-loss."""

import functools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import log_softmax
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax

#: Rates at which a few epochs end worse than they began are of interest here.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(is too high|the last rate):sklearn.exceptions.ConvergenceWarning"
)


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


STEPS = {
    "U-max, one class": (SoftmaxUMax, {"n_negatives": 1, "n_hard_negatives": 0}),
    "U-max": (SoftmaxUMax, {"n_negatives": 5, "n_hard_negatives": 0}),
    "implicit, one class": (ImplicitSoftmaxSGD, {"n_negatives": 1, "n_hard_negatives": 0}),
    "implicit": (ImplicitSoftmaxSGD, {"n_negatives": 3, "n_hard_negatives": 0}),
    "U-max, hard": (SoftmaxUMax, {"n_negatives": 3, "n_hard_negatives": 2}),
    "implicit, hard": (ImplicitSoftmaxSGD, {"n_negatives": 1, "n_hard_negatives": 2}),
}
# Ridge, learning rate, and epochs.
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
    ("two species", "U-max, one class", True),
    ("text", "U-max", True),
    ("iris", "implicit, one class", True),
    ("digits", "implicit", False),
    ("text", "U-max, hard", False),
    ("iris", "implicit, hard", True),
]


class TestMaximum:
    @pytest.mark.parametrize(("name", "step", "is_weighted"), CASES)
    def test_falling_steps_converge(self, name, step, is_weighted):
        X, y = data(name)
        alpha, rate, max_iter = DATA[name]
        estimator, parameters = STEPS[step]
        weight = np.ones(len(y))
        if is_weighted:
            weight = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 2.5], len(y))
        model = estimator(
            alpha,
            learning_rate=rate,
            decay="1/t",
            max_iter=max_iter,
            random_state=0,
            fit_intercept=is_weighted,
            **parameters,
        ).fit(X, y, weight if is_weighted else None)
        least = least_objective(X, y, alpha, weight, is_weighted)
        found = objective(model.coef_, X, y, alpha, weight, model.intercept_)
        assert least * (1 - 1e-9) < found < least * (1 + 5e-3)
        assert objective(np.zeros_like(model.coef_), X, y, alpha, weight) > 1.4 * least
        assert model.intercept_.any() == is_weighted

    @pytest.mark.parametrize("is_weighted", [False, True])
    def test_a_multilabel_row_is_an_observation_of_each_of_its_labels(self, is_weighted):
        X, y = data("text")
        second = (y + 1 + np.arange(len(y)) % 3) % 8
        Y = sp.csr_array(np.eye(8)[y] + np.eye(8)[second])
        weight = np.ones((2, 200))
        if is_weighted:
            weight = np.random.default_rng(0).choice([0.5, 1.0, 2.5], (2, 200))
        of_pair = (np.eye(8)[y].T * weight[0] + np.eye(8)[second].T * weight[1]).T
        model = ImplicitSoftmaxSGD(
            0.3,
            n_negatives=3,
            learning_rate=8.0,
            decay="1/t",
            max_iter=500,
            random_state=0,
            fit_intercept=False,
        ).fit(X, Y, pair_weight=of_pair if is_weighted else None)
        both, labels = sp.vstack([X, X]).tocsr(), np.concatenate([y, second])
        least = least_objective(both, labels, 0.3, weight.ravel())
        found = objective(model.coef_, both, labels, 0.3, weight.ravel())
        assert least * (1 - 1e-9) < found < least * (1 + 5e-3)
