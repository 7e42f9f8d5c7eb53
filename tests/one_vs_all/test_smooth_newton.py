"""Labels side by side under a loss that is never zero: exact directions, each label on its own."""

import numpy as np
import pytest

from sklearn_xc.one_vs_all.solver import newton_cg
from sklearn_xc.one_vs_all.solver.smooth_newton import SmoothNewton
from sklearn_xc.one_vs_all.starts import Given

CONVERGED = 0
EXACT = 1e-14, 0.01, 400


def at_points(problem, points):
    """Return lanes that are about to evaluate given points, the labels in their order."""
    lanes = newton_cg._lanes(problem, len(points))
    lanes.label[:] = np.arange(len(points))
    lanes.plus[:], lanes.minus[:] = problem.plus[: len(points)], problem.minus[: len(points)]
    lanes.objective[:] = np.inf
    for k, point in enumerate(points):
        lanes.trial(k)[:] = point
    return lanes


@pytest.mark.parametrize(
    ("cost", "fit_intercept"), [(1.0, False), (300.0, True)], ids=["alone", "preconditioned"]
)
def test_directions_are_those_of_newton(fit_intercept, cost, xy, make_problem, objective_of):
    """More labels than lanes; with conjugate gradients to the end."""
    weight = 0.5 + np.random.default_rng(1).random(120)
    problem = make_problem(
        *xy,
        loss="logistic",
        fit_intercept=fit_intercept,
        weight=weight,
        plus=np.full(15, cost),
        minus=np.full(15, 0.7 * cost),
    )
    points = np.random.default_rng(0).normal(size=(15, 41)) * 0.3
    points[:, -1] *= fit_intercept
    lanes = at_points(problem, points)
    solver = SmoothNewton(problem, EXACT, lambda: None)
    solver.advance(lanes, np.arange(15))
    for label in range(15):
        objective = objective_of(problem, label)
        w, gradient = points[label], objective.gradient(points[label])
        hessian = objective.hessian(w)
        if not fit_intercept:
            gradient[-1], hessian[-1], hessian[:, -1], hessian[-1, -1] = 0, 0, 0, 1
        step = -np.linalg.solve(hessian, gradient)
        np.testing.assert_allclose(lanes.iterate(label), w)
        np.testing.assert_allclose(lanes.trial(label) - w, step, rtol=1e-5, atol=1e-6)
        assert lanes.objective[label] == pytest.approx(objective.value(w), rel=1e-12)
        assert lanes.gradient_norm[label] == pytest.approx(np.linalg.norm(gradient), rel=1e-10)
        assert lanes.slope[label] == pytest.approx(gradient @ step, rel=1e-6)
        trial = lanes.trial(label)[:-1]
        assert lanes.trial_norm2[label] == pytest.approx(trial @ trial, rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_label_alone_has_the_bytes_of_one_among_many(dtype, make_xy, make_problem):
    """In any lane, and beside lanes that need other numbers of products."""
    X, Y = make_xy(n_labels=40)
    problem = make_problem(X, Y, loss="logistic", dtype=dtype, plus=np.geomspace(0.1, 1e4, 40))
    points = np.random.default_rng(0).normal(size=(40, 41)).astype(dtype)
    solver = SmoothNewton(problem, newton_cg._CG, lambda: None)
    together, apart = at_points(problem, points), at_points(problem, points)
    for _ in range(4):
        solver.advance(together, np.arange(40))
        for k in np.random.default_rng(1).permutation(40):
            solver.advance(apart, np.array([k]))
        assert len(set(together.n_products)) > 2
    np.testing.assert_array_equal(apart.state, together.state)
    np.testing.assert_array_equal(apart.points, together.points)


def test_steps_that_lead_too_far_are_halved(xy, make_problem, objective_of, solve):
    """From far out whole steps overshoot, and all labels still come to the minimum."""
    problem = make_problem(*xy, loss="logistic", tol=1e-7, plus=np.full(15, 50.0), max_iter=1000)
    start, steps = np.random.default_rng(0).normal(size=(15, 41)) * 30, []
    solution, W = solve(problem, Given(start), observe=steps.append)
    assert (solution.status == CONVERGED).all()
    assert min(step.step_length for step in steps) < 1
    for label in (0, 2, 4, 7):
        objective = objective_of(problem, label)
        assert objective.value(W[label]) == pytest.approx(objective.minimum(), rel=1e-9, abs=1e-12)
