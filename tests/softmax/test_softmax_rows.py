"""A model depends neither on threads, nor on the order, repetition or container of its rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.ConvergenceWarning")

STEPS = {
    "umax": (SoftmaxUMax, {"n_negatives": 3, "n_hard_negatives": 0}),
    "umax, ridge": (SoftmaxUMax, {"n_negatives": 1, "alpha": 0.3}),
    "umax, hard": (SoftmaxUMax, {"n_negatives": 1, "n_hard_negatives": 2, "alpha": 0.1}),
    "implicit": (ImplicitSoftmaxSGD, {"n_negatives": 1, "n_hard_negatives": 0}),
    "implicit, ridge": (ImplicitSoftmaxSGD, {"alpha": 0.3, "decay": "1/t", "init": "zero"}),
    "implicit, hard": (ImplicitSoftmaxSGD, {"n_hard_negatives": 3, "sampling": "uniform"}),
    "early stopping": (ImplicitSoftmaxSGD, {"early_stopping": True}),
    "auto": (SoftmaxUMax, {"learning_rate": "auto"}),
}


def fit(step, X, y, sample_weight=None, **parameters):
    estimator, own = STEPS[step]
    parameters = {"learning_rate": 1.0, "max_iter": 3, "random_state": 0, **own, **parameters}
    return estimator(**parameters).fit(X, y, sample_weight)


def assert_same_bytes(a, b):
    for name in ("coef_", "intercept_"):
        assert getattr(a, name).tobytes() == getattr(b, name).tobytes(), name
    for name in ("loss", "log_loss", "learning_rate"):
        np.testing.assert_array_equal(a.fit_report_[name], b.fit_report_[name], name)


@pytest.mark.parametrize("step", ["umax", "umax, hard", "implicit, hard", "auto"])
def test_threads(step, make_xy):
    """More rows than the 512 that one task scores."""
    X, Y = make_xy(n=1300)
    alone, two = (fit(step, X.astype(np.float32), Y, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert_same_bytes(alone, two)
    a, b = (model.predict_log_proba(X) for model in (alone, two))
    assert a.data.tobytes() == b.data.tobytes()


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(4, 60),
    n_classes=st.integers(2, 6),
    step=st.sampled_from([step for step in STEPS if step not in ("early stopping", "auto")]),
    kind=st.sampled_from(["classes", "dense", "sparse"]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_any_order_of_weighted_rows(seed, n, n_classes, step, kind, dtype):
    """Many rows are equal, zeros of both signs are stored, sums of weights round by their order."""
    rng = np.random.default_rng(seed)
    dense = rng.choice([0.0, -0.0, 1.0, -1.0, 0.3], (n, 2)).astype(dtype)
    X = sp.csr_array((dense.ravel(), np.tile([0, 1], n), np.arange(0, 2 * n + 1, 2)), (n, 2))
    Y = rng.random((n, n_classes)) < 0.4
    Y[:2, :2] = np.eye(2)
    y = {"classes": Y.argmax(axis=1), "dense": Y, "sparse": sp.csr_array(Y)}[kind]
    weight = rng.uniform(0.1, 3.0, n) * rng.choice([0.0, 1.0, 1.0, 1.0, 1e3], n)
    weight[:2] = 0.7
    expected, order = fit(step, X, y, weight, max_iter=2), rng.permutation(n)
    model = fit(step, X[order], y[order], weight[order], max_iter=2)
    assert_same_bytes(model, expected)
    for a, b in zip(expected.predict_topk(X, 2), model.predict_topk(X, 2), strict=True):
        np.testing.assert_array_equal(a, b)
