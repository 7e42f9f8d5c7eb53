"""Newton-CG over blocks of labels: optimal, honest about it, and each label on its own."""

import dataclasses

import numpy as np
import pytest

from sklearn_xc._parallel.progress import StopFlag
from sklearn_xc.one_vs_all.problem import sum_instances
from sklearn_xc.one_vs_all.solver import screening
from sklearn_xc.one_vs_all.solver.newton_cg import solve_block

CONVERGED, OUT_OF_ITERATIONS, STALLED = range(3)


@pytest.mark.parametrize(
    ("loss", "fit_intercept"), [("squared_hinge", False), ("huber_hinge", True), ("logistic", True)]
)
def test_certificate_holds_and_is_recomputed_for_every_label(
    loss, fit_intercept, xy, make_problem, objective_of, solve
):
    rng = np.random.default_rng(0)
    problem = make_problem(
        *xy,
        loss=loss,
        tol=1e-3,
        fit_intercept=fit_intercept,
        prune=0.05,
        weight=0.5 + rng.random(120),
        plus=0.5 + rng.random(15),
        minus=0.5 + rng.random(15),
    )
    _, unpruned = solve(dataclasses.replace(problem, prune=0.0))
    solution, pruned = solve(problem)
    assert (solution.status == CONVERGED).all()
    for label in range(problem.n_labels):
        objective = objective_of(problem, label)
        w = unpruned[label]
        at_zero = np.linalg.norm(objective.gradient(np.zeros_like(w)))
        norm = np.linalg.norm(objective.gradient(w))
        tolerance = problem.relative_tolerance[label] * at_zero
        assert norm <= tolerance
        assert solution.gradient_norm[label] == pytest.approx(norm, rel=1e-7)
        assert solution.gradient_tolerance[label] == pytest.approx(tolerance, rel=1e-10)
        assert solution.objective[label] == pytest.approx(objective.value(w), rel=1e-12)
        expected = np.where(np.abs(w) < 0.05, 0, w)
        expected[-1] = w[-1]
        np.testing.assert_array_equal(pruned[label], expected)
        removed = 1 - (expected[:-1] ** 2).sum() / (w[:-1] ** 2).sum() if w[:-1].any() else 0.0
        assert solution.pruned[label] == pytest.approx(removed, abs=1e-7)
        assert fit_intercept or w[-1] == 0


@pytest.mark.parametrize(
    ("loss", "dtype", "dense"),
    [("squared_hinge", "f4", False), ("squared_hinge", "f8", True), ("huber_hinge", "f8", False)],
)
def test_a_label_does_not_depend_on_the_labels_beside_it(
    loss, dtype, dense, xy, make_problem, solve
):
    problem = make_problem(*xy, loss=loss, dtype=dtype, dense=dense)
    together, W = solve(problem, n_lanes=4)
    order = np.random.default_rng(0).permutation(15)
    shuffled, V = solve(problem, n_lanes=4, labels=order)
    np.testing.assert_array_equal(V, W[order])
    for name in ("n_iter", "n_products", "objective", "gradient_norm"):
        np.testing.assert_array_equal(getattr(shuffled, name), getattr(together, name)[order])
    few, U = solve(problem, n_lanes=4, labels=[11, 2, 7, 3, 0])
    np.testing.assert_array_equal(U, W[[11, 2, 7, 3, 0]])
    np.testing.assert_array_equal(few.labels, [11, 2, 7, 3, 0])


def test_out_of_iterations_keeps_the_best_point(xy, make_problem, objective_of, solve):
    problem = make_problem(*xy, tol=1e-6, max_iter=2)
    solution, W = solve(problem, "zero")
    assert (solution.status == OUT_OF_ITERATIONS).any()
    assert solution.n_iter.max() == 2
    for label in np.flatnonzero(solution.status == OUT_OF_ITERATIONS):
        objective = objective_of(problem, label)
        norm = np.linalg.norm(objective.gradient(W[label]))
        assert solution.gradient_norm[label] == pytest.approx(norm, rel=1e-8)
        assert norm > solution.gradient_tolerance[label]
        assert objective.value(W[label]) < objective.value(np.zeros(41))


@pytest.mark.parametrize("init", ["zero", "msi"])
def test_observe_sees_every_step(init, xy, make_problem, objective_of, solve):
    problem = make_problem(*xy, tol=1e-4)
    steps = []
    solution, W = solve(problem, init, observe=steps.append)
    for label in range(problem.n_labels):
        mine = [step for step in steps if step.label == label]
        assert [step.n_iter for step in mine] == list(range(solution.n_iter[label] + 1))
        objectives = np.array([step.objective for step in mine])
        assert (np.diff(objectives) <= 1e-10).all()
        assert all(step.step_length in 0.5 ** np.arange(21) for step in mine)
        last, objective = mine[-1], objective_of(problem, label)
        assert last.objective == pytest.approx(objective.value(W[label]), rel=1e-10)
        norm = np.linalg.norm(objective.gradient(W[label]))
        assert last.gradient_norm == pytest.approx(norm, rel=1e-5)
        assert last.active_share == (objective.signs * (objective.rows @ W[label]) < 1).mean()
    first = next(step for step in steps if step.label == 0)
    assert (first.objective == pytest.approx(120.0)) == (init == "zero")


def test_a_set_flag_stops_the_block(xy, make_problem):
    problem = make_problem(*xy)
    sums, stop = sum_instances(problem), StopFlag()
    labels = np.arange(15)
    solve_block(problem, sums, None, None, labels, 4, stop)
    stop.set()
    with pytest.raises(KeyboardInterrupt):
        solve_block(problem, sums, None, None, labels, 4, stop)


@pytest.mark.parametrize("dense", [False, True])
def test_a_small_problem_needs_no_screen(dense, xy, make_problem, solve, monkeypatch):
    problem = make_problem(*xy, dense=dense)
    screened = solve(problem)[0]
    monkeypatch.setattr(screening, "FEWEST_NONZEROS", problem.instances.arrays[-1].size)
    monkeypatch.setattr(screening.CsrScreen, "list_candidates", None)
    monkeypatch.setattr(screening.DenseScreen, "list_candidates", None)
    found = solve(problem)[0]
    for name in ("indptr", "indices", "values", "intercepts", "n_products", "objective"):
        np.testing.assert_array_equal(getattr(found, name), getattr(screened, name))
