"""The ridge of the label vectors."""

import io

import joblib
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


@pytest.mark.parametrize("alpha", [1.0, 10.0])
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
    model = make("softmax", alpha=alpha, max_iter=400, decay=0.985, **own).fit(X, y)
    W = np.column_stack([model.coef_, model.intercept_ - model.intercept_.mean()])
    expected = best.x.reshape(4, 7)
    expected[:, 6] -= expected[:, 6].mean()  # what is added to all of them changes nothing
    np.testing.assert_allclose(W, expected, atol=0.015)
    assert objective(W.ravel())[0] == pytest.approx(best.fun, rel=1e-4)
    free = make("softmax", max_iter=20, **own).fit(X, y)
    assert np.abs(free.coef_ - model.coef_).max() > 0.1
    assert not fit_intercept or np.abs(W[:, 6]).max() > 0.2


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("gradient", ["exact", "decomp_mips", "mips"])
@pytest.mark.parametrize("alpha", [3.0, 1000.0])
def test_goes_on_where_it_was(make, xy, average, gradient, alpha):
    """Passes of their own are epochs, also where the scale is applied in between."""
    X, y = xy[0].toarray(), xy[1]
    own = {"embedding_dim": None, "alpha": alpha, "average": average, "gradient": gradient}
    whole, parts = make(max_iter=3, **own).fit(X, y), make(**own)
    for _ in range(3):
        parts.partial_fit(X, y)
        if gradient == "exact":  # no index is lost
            file = io.BytesIO()
            joblib.dump(parts, file)
            file.seek(0)
            parts = joblib.load(file)
    assert np.isfinite(whole.coef_).all()
    np.testing.assert_array_equal(parts.coef_, whole.coef_)


def test_a_repeated_epoch_halves_it(make, xy):
    """The ridge is beside the sum over the instances."""
    X, y = xy[0].toarray(), xy[1]
    own = {"embedding_dim": None, "learning_rate": 0.3, "max_iter": 400, "decay": 0.985}
    once = make("softmax", alpha=2.0, **own).fit(X, y)
    twice = make("softmax", alpha=4.0, **own).fit(X, y, sample_weight=np.full(len(X), 2.0))
    other = make("softmax", alpha=4.0, **own).fit(X, y)
    scale = np.abs(once.coef_).max()
    assert np.abs(once.coef_ - twice.coef_).max() < 0.02 * scale
    assert np.abs(once.coef_ - other.coef_).max() > 0.1 * scale


def test_averages_can_be_left_out_later(make, xy):
    X, y = xy[0].toarray(), xy[1]
    own = {"embedding_dim": None, "alpha": 5.0, "warm_start": True}
    model, last = make(**own).fit(X, y), make(average=False, **own).fit(X, y)
    model.set_params(average=False).fit(X, y)
    last.fit(X, y)
    np.testing.assert_allclose(model.coef_, last.coef_, rtol=1e-9, atol=1e-12)


def test_must_not_be_negative(make, xy):
    with pytest.raises(ValueError, match=r"'alpha' parameter .* must be a float in the range \[0"):
        make(alpha=-1.0).fit(*xy)
