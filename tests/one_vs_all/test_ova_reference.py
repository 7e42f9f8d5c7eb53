"""The optimum against scikit-learn's solvers and, by certificate, against scipy's minimiser."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from sklearn_xc import OvALinearXC
from sklearn_xc.one_vs_all.losses import LOSSES
from sklearn_xc.one_vs_all.starts import INITIALISERS

LABELS = [0, 2, 5, 11]


def fit(X, y, sample_weight=None, **parameters):
    return OvALinearXC(**{"prune": 0, "tol": 1e-7, **parameters}).fit(X, y, sample_weight)


def weights_of(model, row):
    return np.append(model.coef_[[row]].toarray()[0], model.intercept_[row])


def columns(Y):
    return [(label, Y[:, [label]].toarray()[:, 0].astype(int)) for label in LABELS]


@pytest.mark.parametrize("init", INITIALISERS)
def test_squared_hinge_is_linear_svc(init, xy, dense_objective):
    (X, Y), plus = xy, 5.0
    model = fit(X, Y, C=0.7, init=init, class_weight=plus)
    for label, y in columns(Y):
        objective = dense_objective(X.toarray(), y > 0, plus=0.7 * plus, minus=0.7)
        svc = LinearSVC(
            C=0.7,
            dual=False,
            tol=1e-8,
            max_iter=10_000,
            intercept_scaling=1.0,
            class_weight={0: 1.0, 1: plus},
        ).fit(X, y)
        theirs = np.append(svc.coef_[0], svc.intercept_)
        ours = weights_of(model, label)
        assert objective.value(ours) == pytest.approx(objective.value(theirs), rel=1e-6)
        assert objective.value(ours) <= objective.value(theirs) * (1 + 1e-9)
        np.testing.assert_allclose(ours, theirs, atol=1e-3)


def test_without_intercept(xy):
    X, Y = xy
    model = fit(X, Y, fit_intercept=False)
    assert not model.intercept_.any()
    for label, y in columns(Y):
        svc = LinearSVC(dual=False, tol=1e-8, max_iter=10_000, fit_intercept=False, C=0.5)
        svc.fit(X, y)
        np.testing.assert_allclose(model.coef_[[label]].toarray(), svc.coef_, atol=1e-3)


@pytest.mark.parametrize(
    ("weighted", "init"), [(True, "msi"), (False, "zero"), (False, "ovap"), (True, "ovap++")]
)
def test_logistic_is_logistic_regression(weighted, init, xy):
    X, Y = xy
    weight = np.random.default_rng(0).random(120) if weighted else None
    model = fit(X, Y, weight, C=2.0, loss="logistic", init=init)
    rows = np.hstack([X.toarray(), np.ones((120, 1))])
    for label, y in columns(Y):
        reference = LogisticRegression(
            C=2.0, tol=1e-10, max_iter=1000, solver="newton-cholesky", fit_intercept=False
        )
        expected = reference.fit(rows, y, weight).coef_[0]
        np.testing.assert_allclose(weights_of(model, label), expected, atol=1e-5)


@given(
    n=st.integers(1, 12),
    d=st.integers(1, 6),
    n_labels=st.integers(1, 4),
    loss=st.sampled_from(sorted(LOSSES)),
    init=st.sampled_from(["msi", "zero", "ovap"]),
    intercept=st.booleans(),
    tol=st.sampled_from([1.0, 0.01, 1e-6]),
    log_c=st.integers(-3, 3),
    weighted=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_the_certificate_holds_for_any_small_problem(
    n, d, n_labels, loss, init, intercept, tol, log_c, weighted, seed, dense_objective
):
    """Random shapes, weights and scales; empty rows, all-zero columns, degenerate labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6) * (rng.random(d) < 0.8)
    Y = rng.random((n, n_labels)) < rng.choice([0.0, 0.3, 0.7, 1.0], n_labels)
    C = 10.0 ** (log_c / 2)
    plus = 0.1 + rng.random(n_labels) * 3
    weight = rng.random(n) * 2 + 0.1 if weighted else np.ones(n)
    model = fit(
        sp.csr_array(X),
        sp.csr_array(Y),
        weight,
        C=C,
        loss=loss,
        init=init,
        tol=tol,
        fit_intercept=intercept,
        class_weight=plus,
        max_iter=1000,
    )
    report = model.fit_report_
    assert (report["status"] == "converged").all()
    for j in range(n_labels):
        objective = dense_objective(X, Y[:, j], loss, C * plus[j], C, weight, intercept)
        w = weights_of(model, j)
        norm = np.linalg.norm(objective.gradient(w))
        positive = weight[Y[:, j]].sum()
        share = min(1.0, max(1.0, min(positive, weight.sum() - positive)) / weight.sum())
        rule = tol * share * np.linalg.norm(objective.gradient(np.zeros(d + 1)))
        assert report["gradient_norm"][j] == pytest.approx(norm, rel=1e-6, abs=1e-10)
        assert report["gradient_tolerance"][j] == pytest.approx(rule, rel=1e-9, abs=1e-12)
        assert norm <= rule * (1 + 1e-6) + 1e-10
        assert report["objective"][j] == pytest.approx(objective.value(w), rel=1e-9, abs=1e-11)
        error = objective.value(w) - objective.minimum()
        assert error <= report["suboptimality"][j] * (1 + 1e-6) + 1e-12
