"""Where the variables u start: at their optimum, or at 0."""

import numpy as np
import pytest
from scipy.special import log_softmax

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax

#: Nothing moves: u can be read as it started.
STILL = {"learning_rate": 1e-13, "random_state": 0, "n_hard_negatives": 0, "max_iter": 1}

each_estimator = pytest.mark.parametrize("estimator", [SoftmaxUMax, ImplicitSoftmaxSGD])


def still(estimator, **parameters):
    """Return an estimator whose steps are too short to be seen, and which lifts no u."""
    own = {"delta": 1e6} if estimator is SoftmaxUMax else {}
    return estimator(**{**STILL, **own, **parameters})


@pytest.fixture
def data(xy):
    """Return X and one class per row."""
    X, _ = xy
    return X, X.toarray()[:, :4].argmax(axis=1)


@each_estimator
@pytest.mark.parametrize("init", ["means", "zero"])
def test_at_0(estimator, init, data):
    model = still(estimator, init=init, u_init="zero").fit(*data)
    np.testing.assert_allclose(model.u_, 0.0, atol=1e-9)
    optimal = still(estimator, init=init).fit(*data)
    assert (optimal.u_ > 0.1).all()
    np.testing.assert_allclose(model.coef_, optimal.coef_, atol=1e-9)


@each_estimator
def test_pairs_that_are_known_keep_theirs(estimator, data):
    """In partial fits and warm starts; 0 is for new ones."""
    X, y = data
    own = {"delta": 1.0} if estimator is SoftmaxUMax else {}
    rate = 0.03 if estimator is SoftmaxUMax else 0.3
    model = still(estimator, learning_rate=rate, u_init="zero", **own)
    model.partial_fit(X[:80], y[:80], classes=np.arange(4), sample_ids=np.arange(80))
    u = model.u_.copy()
    assert (u > 0).mean() > 0.5
    own = {name: 1e6 for name in own}
    model.set_params(learning_rate=1e-13, **own)
    model.partial_fit(X[60:], y[60:], sample_ids=np.arange(60, 120))
    np.testing.assert_allclose(model.u_[:80], u, atol=1e-9)
    np.testing.assert_allclose(model.u_[80:], 0.0, atol=1e-9)

    model = still(estimator, learning_rate=rate, u_init="zero", warm_start=True)
    u = model.fit(X[:80], y[:80]).u_.copy()
    model.set_params(learning_rate=1e-13, **own).fit(X, y)
    np.testing.assert_allclose(model.u_[:80], u, atol=1e-9)
    np.testing.assert_allclose(model.u_[80:], 0.0, atol=1e-9)


@pytest.mark.parametrize("n_classes", [3, 8])
def test_the_first_step_from_0_is_a_gradient_of_the_double_sum(n_classes):
    """Of U-max with all classes: exp(u) times as long as from the optimum u = log K."""
    X = np.array([[2.0, 1.0]])
    W = {}
    for u_init in ("zero", "optimal"):
        model = SoftmaxUMax(
            u_init=u_init, delta=1e6, learning_rate=0.01, n_negatives=n_classes, init="zero",
            fit_intercept=False, n_hard_negatives=0, random_state=0,
        )  # fmt: skip
        W[u_init] = model.partial_fit(X, [0], classes=np.arange(n_classes)).coef_
    away = -0.01 * np.ones((n_classes, 1)) * X
    away[0] = 0.01 * (n_classes - 1) * X[0]
    np.testing.assert_allclose(W["zero"], away, rtol=1e-12)
    np.testing.assert_allclose(n_classes * W["optimal"], away, rtol=1e-12)


@each_estimator
def test_a_search_for_hard_negatives_sets_all_u(estimator, data):
    X, y = data
    u = [
        still(estimator, u_init=u_init, n_hard_negatives=1, fit_intercept=False).fit(X, y).u_
        for u_init in ("zero", "optimal")
    ]
    np.testing.assert_array_equal(*u)
    assert u[0].min() > 0


@each_estimator
@pytest.mark.parametrize("batch_size", [1, 4])
def test_the_maximum_is_the_same(estimator, batch_size, data):
    """The start of u is forgotten."""
    X, y = data
    own = {"batch_size": batch_size} if estimator is ImplicitSoftmaxSGD else {}
    losses = []
    for u_init in ("zero", "optimal"):
        model = estimator(
            1.0, u_init=u_init, learning_rate=1.0, decay="1/t", average=True, max_iter=300,
            n_hard_negatives=0, random_state=0, **own,
        ).fit(X, y)  # fmt: skip
        log_proba = log_softmax(X @ model.coef_.T + model.intercept_, axis=1)
        losses.append(-log_proba[np.arange(120), y].sum() + 0.5 * (model.coef_**2).sum())
    assert losses[0] == pytest.approx(losses[1], rel=0.01)


@each_estimator
def test_the_same_for_any_n_jobs(estimator, data):
    a, b = (estimator(u_init="zero", random_state=0, n_jobs=j).fit(*data) for j in (1, 2))
    assert a.coef_.tobytes() == b.coef_.tobytes()
    assert a.u_.tobytes() == b.u_.tobytes()
