"""The ridge of the label vectors."""

import numpy as np
import pytest
import scipy.optimize
from scipy.special import log_softmax
from sklearn.datasets import make_classification

# A label of the common data has no instance.
pytestmark = pytest.mark.filterwarnings("ignore:.*have no training instance")


@pytest.fixture
def classes():
    X, y = make_classification(
        120, 6, n_informative=5, n_redundant=0, n_classes=4, class_sep=0.7, random_state=0
    )
    return X / np.linalg.norm(X, axis=1).max(), y


@pytest.mark.parametrize("alpha", [10.0])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_training_comes_to_the_minimum_of_loss_and_ridge(fit_intercept, make, classes, alpha):
    """Intercepts are no part of the ridge."""
    X, y = classes
    kept = (np.arange(len(X)) % 4 > 0) | (y > 1)  # fewer of two classes
    X, y = X[kept], y[kept]
    ones = np.full((len(X), 1), float(fit_intercept))

    def objective(w):
        W = w.reshape(4, 7)
        log_p = log_softmax(np.hstack([X, ones]) @ W.T, axis=1)
        P = np.exp(log_p)
        P[np.arange(len(X)), y] -= 1
        penalised = W * ([1.0] * 6 + [0.0])
        loss = -log_p[np.arange(len(X)), y].sum() + 0.5 * alpha * (penalised**2).sum()
        return loss, (P.T @ np.hstack([X, ones]) + alpha * penalised).ravel()

    best = scipy.optimize.minimize(objective, np.zeros(28), jac=True, tol=1e-10)
    own = {"embedding_dim": None, "learning_rate": 0.3, "fit_intercept": fit_intercept}
    model = make("softmax", alpha=alpha, max_iter=400, **own).fit(X, y)
    W = np.column_stack([model.coef_, model.intercept_ - model.intercept_.mean()])
    expected = best.x.reshape(4, 7)
    expected[:, 6] -= expected[:, 6].mean()  # what is added to all of them changes nothing
    np.testing.assert_allclose(W, expected, atol=0.015)
    assert objective(W.ravel())[0] == pytest.approx(best.fun, rel=1e-4)
    free = make("softmax", max_iter=20, **own).fit(X, y)
    assert np.abs(free.coef_ - model.coef_).max() > 0.1
    assert not fit_intercept or np.abs(W[:, 6]).max() > 0.2
