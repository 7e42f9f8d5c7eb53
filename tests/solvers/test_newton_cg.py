"""Newton-CG over blocks of labels: optimal, honest about it, and each label on its own."""

import dataclasses
import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.optimize

from sklearn_xc.initialisers import INITIALISERS, Given, Zero
from sklearn_xc.losses import LOSSES
from sklearn_xc.parallel.interrupt import StopFlag
from sklearn_xc.solvers import newton_cg, screening
from sklearn_xc.solvers.newton_cg import STATUS_NAMES, solve_block, workspace_bytes
from sklearn_xc.solvers.problem import sum_instances

CONVERGED, OUT_OF_ITERATIONS, STALLED = range(3)
#: (fit_intercept, regularize_intercept)
INTERCEPTS = [(True, True), (True, False), (False, True)]


@pytest.mark.parametrize("loss", LOSSES)
def test_the_reference_gradient_is_that_of_the_objective(loss, xy, make_problem, objective_of):
    """The reference of all tests here, by finite differences."""
    objective = objective_of(make_problem(*xy, loss=loss), 2)
    w = np.random.default_rng(0).normal(size=41)
    error = scipy.optimize.check_grad(objective.value, objective.gradient, w)
    assert error < 1e-5 * np.linalg.norm(objective.gradient(w))
    for direction in np.eye(41)[::10]:
        change = objective.gradient(w + 1e-6 * direction) - objective.gradient(w - 1e-6 * direction)
        np.testing.assert_allclose(objective.hessian(w) @ direction, change / 2e-6, atol=1e-4)


@pytest.mark.parametrize(("fit_intercept", "regularize_intercept"), INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_certificate_holds_and_is_recomputed_for_every_label(
    loss, fit_intercept, regularize_intercept, xy, make_problem, objective_of, solve
):
    rng = np.random.default_rng(0)
    problem = make_problem(
        *xy, loss=loss, tol=1e-3, fit_intercept=fit_intercept, prune=0.05,
        regularize_intercept=regularize_intercept, weight=0.5 + rng.random(120),
        plus=0.5 + rng.random(15), minus=0.5 + rng.random(15),
    )  # fmt: skip
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
        value = objective.value(pruned[label])
        assert solution.pruned_objective[label] == pytest.approx(value, rel=1e-12)
        assert fit_intercept or w[-1] == 0


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("init", INITIALISERS)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_start_reaches_the_minimum(loss, init, dense, xy, make_problem, objective_of, solve):
    problem = make_problem(*xy, loss=loss, tol=1e-7, dense=dense)
    solution, W = solve(problem, init)
    assert (solution.status == CONVERGED).all()
    for label in (0, 2, 4, 7):
        objective = objective_of(problem, label)
        value = objective.value(W[label])
        assert value == pytest.approx(objective.minimum(), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_float32_is_certified_in_float64(loss, dense, xy, make_problem, objective_of, solve):
    problem = make_problem(*xy, loss=loss, dtype=np.float32, tol=1e-4, dense=dense)
    solution, W = solve(problem)
    assert solution.values.dtype == solution.intercepts.dtype == np.float32
    assert (solution.status == CONVERGED).all()
    for label in range(problem.n_labels):
        objective = objective_of(problem, label)
        norm = np.linalg.norm(objective.gradient(W[label].astype(np.float64)))
        assert solution.gradient_norm[label] == pytest.approx(norm, rel=1e-6)
        assert norm <= solution.gradient_tolerance[label]
    _, double = solve(make_problem(*xy, loss=loss, tol=1e-4))
    np.testing.assert_allclose(W, double, atol=2e-3)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", LOSSES)
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


@pytest.mark.parametrize("n_lanes", [1, 2, 5, 15, 32])
def test_the_number_of_lanes_hardly_matters(n_lanes, xy, make_problem, solve):
    problem = make_problem(*xy)
    _, expected = solve(problem, n_lanes=8)
    _, W = solve(problem, n_lanes=n_lanes)
    np.testing.assert_allclose(W, expected, atol=1e-6)


def test_identical_columns_get_identical_rows(xy, make_problem, solve):
    solution, W = solve(make_problem(*xy))
    np.testing.assert_array_equal(W[2], W[9])
    assert solution.n_iter[2] == solution.n_iter[9]


def test_a_start_at_the_optimum_stays_there(xy, make_problem, solve):
    problem = make_problem(*xy, tol=1e-8)
    _, W = solve(problem)
    solution, again = solve(dataclasses.replace(problem, max_iter=3), Given(W))
    assert (solution.status == CONVERGED).all()
    np.testing.assert_allclose(again, W, atol=1e-6)


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


def test_a_precision_that_cannot_be_had_is_not_called_converged(xy, make_problem, solve):
    solution, W = solve(make_problem(*xy, dtype=np.float32, tol=1e-12, max_iter=40))
    rest = solution.gradient_norm > solution.gradient_tolerance
    assert rest.sum() >= 10
    assert (solution.status[rest] != CONVERGED).all()
    assert (solution.status[~rest] == CONVERGED).all()
    assert np.isfinite(W).all()


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


def test_line_search_makes_enough_progress(xy, make_problem, solve):
    """From far away full steps overshoot: some are shortened, and the objective still falls."""
    problem = make_problem(*xy, plus=np.full(15, 100.0), max_iter=1000)
    steps = []
    start = np.random.default_rng(0).normal(size=(15, 41)) * 10
    solution, _ = solve(problem, Given(start), observe=steps.append)
    assert (solution.status == CONVERGED).all()
    assert min(step.step_length for step in steps) < 1
    for label in range(15):
        objectives = [step.objective for step in steps if step.label == label]
        assert (np.diff(objectives) < 1e-8).all()


@pytest.mark.parametrize("loss", ["squared_hinge", "huber_hinge"])
@pytest.mark.parametrize("seed", range(30))
def test_lists_of_active_rows_have_room(seed, loss, make_problem, solve, monkeypatch):
    """From wild starts a line search may leave more rows active than either end listed."""
    monkeypatch.setattr(screening, "_ROWS_PER_CALL", 4)
    rng = np.random.default_rng(seed)
    n, d, n_labels = rng.integers(50, 300), rng.integers(2, 9), rng.integers(1, 6)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-1, 2)
    Y = rng.random((n, n_labels)) < rng.choice([0.02, 0.1, 0.5])
    cost = np.full(n_labels, 10.0 ** rng.integers(-2, 4))
    start = rng.normal(size=(n_labels, d + 1)) * 10.0 ** rng.integers(-1, 4)
    advance, seen = newton_cg._Block._advance, []

    def watched(self, occupied):
        advance(self, occupied)
        seen.append((self.state.n_active.max(), self.state.active.shape[1]))

    monkeypatch.setattr(newton_cg._Block, "_advance", watched)
    solve(make_problem(X, Y, loss=loss, plus=cost, minus=cost), Given(start))
    assert all(n_active <= room for n_active, room in seen)
    assert max(n_active for n_active, _ in seen) > 0


def test_a_set_flag_stops_the_block(xy, make_problem):
    problem = make_problem(*xy)
    sums, stop = sum_instances(problem), StopFlag()
    labels = np.arange(15)
    solve_block(problem, sums, Zero(), None, labels, 4, stop)
    stop.set()
    with pytest.raises(KeyboardInterrupt):
        solve_block(problem, sums, Zero(), None, labels, 4, stop)


def test_problems_and_solutions_can_be_sent_to_another_process(xy, make_problem, solve):
    problem = make_problem(*xy)
    sent = pickle.loads(pickle.dumps(problem))
    for record in (problem, sent):
        arrays = [a for a in vars(record).values() if isinstance(a, np.ndarray)]
        assert not any(a.flags.writeable for a in arrays)
    solution, W = solve(sent)
    np.testing.assert_array_equal(W, solve(problem)[1])
    again = pickle.loads(pickle.dumps(solution))
    np.testing.assert_array_equal(again.values, solution.values)


def test_seconds_are_shared_out(xy, make_problem, solve):
    solution, _ = solve(make_problem(*xy))
    assert (solution.seconds > 0).all()
    share = 1 + solution.n_iter + solution.n_products
    np.testing.assert_allclose(solution.seconds / solution.seconds.sum(), share / share.sum())


def test_status_names():
    assert STATUS_NAMES == ("converged", "max_iter", "stalled")
    assert (newton_cg.CONVERGED, newton_cg.OUT_OF_ITERATIONS, newton_cg.STALLED) == (0, 1, 2)


def test_workspace_bytes_bounds_what_is_allocated(make_problem):
    """The plan of a fit counts on it; from zero every row is active."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(3000, 40)), np.eye(3000, 32)
    for n_lanes in (1, 8, 32):
        problem = make_problem(X, Y)
        sums, labels = sum_instances(problem), np.arange(32)
        solve_block(problem, sums, Zero(), None, labels, n_lanes)  # compiles
        tracemalloc.start()
        solve_block(problem, sums, Zero(), None, labels, n_lanes)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= workspace_bytes(3000, 40, n_lanes, 8) + 32 * 41 * 16 + 2**18


def test_a_free_intercept_far_out_does_not_stall(make_problem, solve):
    """From b = 27 the logistic loss is a line: its Newton step alone would be 1e11 long."""
    X = np.array([[0, 0.8, 0.3, -1.3, 0, 0.4]]).T
    Y = np.array([[0, 1, 1, 1, 1, 1]]).T
    problem = make_problem(X, Y, loss="logistic", regularize_intercept=False)
    solution, W = solve(problem, Given(np.array([[-3.0, 27.5]])))
    assert (solution.status == CONVERGED).all()
    assert 0 < W[0, -1] < 5
