"""Start vectors: what all of the registry promise, and the definition of each."""

import pickle

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp

from sklearn_xc.one_vs_all.problem import sum_instances, sum_rows
from sklearn_xc.one_vs_all.starts import (
    INITIALISERS,
    Given,
    MeanSeparating,
    OneVsAllPrimal,
    OneVsAllPrimalPlusPlus,
)


def start(initialiser, problem, label):
    sums = sum_instances(problem)
    prepared = pickle.loads(pickle.dumps(initialiser.prepare(problem, sums)))
    positive_sum = sum_rows(problem, problem.positives(label))
    return initialiser.start(prepared, problem, label, positive_sum)


def with_constant(X, problem):
    dense = X.toarray() if sp.issparse(X) else X
    return np.hstack([dense, np.full((len(dense), 1), problem.intercept)])


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        *((name, "squared_hinge") for name in INITIALISERS),
        ("msi", "huber_hinge"),
        ("msi", "logistic"),
    ],
)
def test_every_start_is_finite_and_respects_a_missing_intercept(name, loss, xy, make_problem):
    fit_intercept = INITIALISERS[name].needs_intercept
    problem = make_problem(*xy, loss=loss, fit_intercept=fit_intercept)
    for label in range(problem.n_labels):
        w = start(INITIALISERS[name](), problem, label)
        assert w.shape == (problem.n_features + 1,)
        assert w.dtype == np.float64
        assert np.isfinite(w).all()
        assert fit_intercept or w[-1] == 0


@pytest.mark.parametrize(
    ("loss", "initialiser", "s", "t", "fit_intercept"),
    [
        ("squared_hinge", MeanSeparating(), 1.0, -2.0, True),
        ("logistic", MeanSeparating(1.0), 1.0, -3.0, False),
        ("logistic", MeanSeparating(2.0, -5.0), 2.0, -5.0, True),
    ],
)
def test_mean_separating_is_the_smallest_vector_with_the_given_mean_scores(
    loss, initialiser, s, t, fit_intercept, xy, make_problem
):
    X, Y = xy
    weight = np.random.default_rng(0).random(X.shape[0])
    problem = make_problem(X, Y, loss=loss, weight=weight, fit_intercept=fit_intercept)
    rows, Y = with_constant(X, problem), Y.toarray() > 0
    for label in set(range(Y.shape[1])) - {4, 7}:
        w = start(initialiser, problem, label)
        positive = Y[:, label]
        scores = rows @ w
        assert np.average(scores[positive], weights=weight[positive]) == pytest.approx(s)
        assert np.average(scores[~positive], weights=weight[~positive]) == pytest.approx(t)
        means = [np.average(rows[m], axis=0, weights=weight[m]) for m in (positive, ~positive)]
        smallest = np.linalg.lstsq(np.array(means), np.array([s, t]))[0]
        np.testing.assert_allclose(w, smallest, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_mean_separating_of_a_loss_that_is_never_zero_is_the_minimum_for_two_means(
    fit_intercept, make_problem
):
    """Of rare labels. The scores of frequent ones have limits."""
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(200, 12)) + 0.3, 0.5 + rng.random(200)
    Y = rng.random((200, 3)) < [0.02, 0.05, 0.7]
    plus, minus = np.array([[0.05, 0.02, 9.0], [0.3, 0.2, 9.0]])
    problem = make_problem(
        X, Y, loss="logistic", weight=weight, plus=plus, minus=minus, fit_intercept=fit_intercept
    )
    rows = with_constant(X, problem)
    for label in range(3):
        positive = Y[:, label]
        p, q = (np.average(rows[m], axis=0, weights=weight[m]) for m in (positive, ~positive))
        A, B = plus[label] * weight[positive].sum(), minus[label] * weight[~positive].sum()

        def objective(w, p=p, q=q, A=A, B=B):
            return 0.5 * w @ w + A * np.logaddexp(0, -w @ p) + B * np.logaddexp(0, w @ q)

        best = scipy.optimize.minimize(objective, np.zeros(13), tol=1e-12)
        s, t = best.x @ p, max(best.x @ q, min(np.log(A / B), -2.0))
        is_limited = s > 0 or t > best.x @ q
        assert is_limited == (label == 2)
        smallest = np.linalg.lstsq(np.array([p, q]), np.array([min(s, 0.0), t]))[0]
        np.testing.assert_allclose(start(MeanSeparating(), problem, label), smallest, atol=0.05)


@pytest.mark.parametrize("stop", [0.5, 0.1, 1e-7])
def test_ovap_is_the_all_negative_problem_left_at_the_given_gradient(
    stop, xy, make_problem, dense_objective
):
    X, _ = xy
    weight = 0.5 + np.random.default_rng(0).random(X.shape[0])
    minus = np.linspace(0.5, 2.5, 15)
    problem = make_problem(*xy, weight=weight, minus=minus)
    w = start(OneVsAllPrimal(stop), problem, 3)
    np.testing.assert_array_equal(w, start(OneVsAllPrimal(stop), problem, 0))
    none = np.zeros(X.shape[0], bool)
    objective = dense_objective(X.toarray(), none, minus=np.median(minus), weight=weight)
    at_zero = np.linalg.norm(objective.gradient(np.zeros_like(w)))
    # The share is that of the estimator's rule for a label without positives.
    assert np.linalg.norm(objective.gradient(w)) <= stop * at_zero
    assert objective.value(w) < objective.value(np.zeros_like(w))
    if stop == 1e-7:
        assert objective.value(w) == pytest.approx(objective.minimum(), rel=1e-10)
    else:
        assert objective.value(w) > objective.minimum() * (1 + 1e-6)


@pytest.mark.parametrize(("make", "extra"), [(np.asarray, 1), (sp.csr_array, 0), (sp.csr_array, 1)])
def test_given(make, extra, xy, make_problem):
    problem = make_problem(*xy)
    vectors = np.random.default_rng(0).normal(size=(15, 40 + extra))
    w = start(Given(make(vectors)), problem, 6)
    np.testing.assert_array_equal(w[: 40 + extra], vectors[6])
    assert w.shape == (41,)
    assert extra or w[-1] == 0


def test_a_label_of_ovap_plus_plus_starts_at_its_parent(xy, make_problem, solve):
    X, Y = xy
    problem = make_problem(X, Y, prune=0.05)
    steps = []
    _, W = solve(problem, "ovap++", observe=steps.append)
    parents = OneVsAllPrimalPlusPlus().parents(problem, np.arange(15))
    begun = [step.label for step in steps if step.n_iter == 0]
    assert sorted(begun) == list(range(15))
    for label in np.flatnonzero(parents >= 0):
        assert begun.index(parents[label]) < begun.index(label)
        (first,) = [s for s in steps if s.label == label and s.n_iter == 0]
        (same,) = [s for s in observed(problem, W[parents[label]], label, solve) if s.n_iter == 0]
        assert first.objective == pytest.approx(same.objective, rel=1e-12)


def observed(problem, w, label, solve):
    steps = []
    solve(problem, Given(np.tile(w, (15, 1))), labels=[label], observe=steps.append)
    return steps
