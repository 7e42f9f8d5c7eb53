"""Labels side by side under a loss that is never zero: exact directions, each label on its own."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from sklearn_xc import OvALinearXC
from sklearn_xc.initialisers import Given
from sklearn_xc.kernels.one_vs_all.lanes import PRUNED
from sklearn_xc.losses import MarginLoss
from sklearn_xc.parallel.interrupt import StopFlag
from sklearn_xc.solvers import newton_cg, screening, smooth_newton
from sklearn_xc.solvers.newton_cg import solve_block, workspace_bytes
from sklearn_xc.solvers.problem import sum_instances
from sklearn_xc.solvers.smooth_newton import SmoothNewton, is_side_by_side

CONVERGED = 0
EXACT = 1e-14, 0.01, 400


class Exponential(MarginLoss):
    """log(1 + exp(-m)) made steeper: a loss of a user, with a branch and a call."""

    msi_negative_score = -1.5

    def functions(self):
        def value(margin):
            return (
                np.log1p(np.exp(-2 * margin))
                if margin > 0
                else (np.log1p(np.exp(2 * margin)) - 2 * margin)
            )

        def slope(margin):
            return -2 / (1 + np.exp(2 * margin))

        def curvature(margin):
            small = np.exp(-2 * abs(margin))
            return 4 * small / ((1 + small) * (1 + small))

        return value, slope, curvature


def at_points(problem, points):
    """Return lanes that are about to look at given points, the labels in their order."""
    lanes = newton_cg._make_lanes(problem, len(points))
    lanes.label[:] = np.arange(len(points))
    lanes.plus[:], lanes.minus[:] = problem.plus[: len(points)], problem.minus[: len(points)]
    lanes.objective[:] = np.inf
    for k, point in enumerate(points):
        lanes.trial(k)[:] = point
    return lanes


@pytest.mark.parametrize("cost", [1.0, 300.0], ids=["alone", "preconditioned"])
@pytest.mark.parametrize(
    ("fit_intercept", "regularize_intercept"), [(True, True), (True, False), (False, True)]
)
def test_directions_are_those_of_newton(
    fit_intercept, regularize_intercept, cost, xy, make_problem, objective_of
):
    """More labels than lanes; with conjugate gradients to the end."""
    weight = 0.5 + np.random.default_rng(1).random(120)
    problem = make_problem(
        *xy, loss="logistic", fit_intercept=fit_intercept,
        regularize_intercept=regularize_intercept, weight=weight,
        plus=np.full(15, cost), minus=np.full(15, 0.7 * cost),
    )  # fmt: skip
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
        elif not regularize_intercept:
            hessian[-1, -1] += smooth_newton.DAMPING * abs(gradient[-1])
        step = -np.linalg.solve(hessian, gradient)
        np.testing.assert_allclose(lanes.stand(label), w)
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
    for step in range(5):
        if step == 4:
            together.purpose[::3] = apart.purpose[::3] = PRUNED
        solver.advance(together, np.arange(40))
        for k in np.random.default_rng(1).permutation(40):
            solver.advance(apart, np.array([k]))
        assert step == 4 or len(set(together.n_products)) > 2
    assert (together.pruned_objective[::3] > 0).all()
    for name, values in together._asdict().items():
        if values.dtype != np.int32:  # lists of active rows, which nobody reads
            np.testing.assert_array_equal(getattr(apart, name), values, err_msg=name)


@pytest.mark.parametrize("n_rows", [1, 50])
def test_calls_of_few_rows(n_rows, xy, make_problem, solve, monkeypatch):
    problem = make_problem(*xy, loss="logistic", tol=1e-6)
    _, expected = solve(problem)
    monkeypatch.setattr(screening, "_ROWS_PER_CALL", n_rows)
    solution, W = solve(problem)
    assert (solution.status == CONVERGED).all()
    np.testing.assert_allclose(W, expected, atol=1e-5)


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


def test_a_start_beyond_numbers_is_zero(xy, make_problem, solve):
    start = np.zeros((15, 41))
    start[3], start[5] = 1e200, np.nan
    problem = make_problem(*xy, loss="logistic", tol=1e-6)
    solution, W = solve(problem, Given(start))
    assert (solution.status == CONVERGED).all()
    np.testing.assert_allclose(W, solve(problem)[1], atol=1e-5)


def test_a_flag_that_is_set_meanwhile_stops_it(xy, make_problem, monkeypatch):
    problem = make_problem(*xy, loss="logistic")
    stop, products = StopFlag(), smooth_newton.add_products

    def last_products(*arguments):
        products(*arguments)
        stop.set()

    monkeypatch.setattr(smooth_newton, "add_products", last_products)
    start = Given(np.zeros((15, 41)))
    with pytest.raises(KeyboardInterrupt):
        solve_block(problem, sum_instances(problem), start, None, np.arange(15), 4, stop)


def test_few_labels_and_dense_rows_are_solved_one_at_a_time(xy, make_problem, solve):
    X, Y = xy
    several = make_problem(X, Y, loss="logistic", tol=1e-8)
    few = make_problem(X, Y[:, :3], loss="logistic", tol=1e-8)
    dense = make_problem(X, Y, loss="logistic", tol=1e-8, dense=True)
    assert is_side_by_side(several)
    assert not any(map(is_side_by_side, (few, dense, make_problem(X, Y))))
    W = solve(several)[1]
    np.testing.assert_allclose(solve(few)[1], W[:3], atol=1e-6)
    np.testing.assert_allclose(solve(dense)[1], W, atol=1e-6)


def test_a_loss_of_ones_own(make_xy):
    X, Y = make_xy(n_labels=12)
    model = OvALinearXC(loss=Exponential(), C=2.0, tol=1e-8, prune=0).fit(X, Y)
    assert (model.fit_report_["status"] == "converged").all()
    for label in (0, 3, 8):
        sign = np.where(Y[:, [label]].toarray()[:, 0] > 0, 1.0, -1.0)
        rows = np.hstack([X.toarray(), np.ones((X.shape[0], 1))])

        def objective(w, rows=rows, sign=sign):
            return 0.5 * w @ w + 2.0 * np.logaddexp(0, -2 * sign * (rows @ w)).sum()

        found = scipy.optimize.minimize(objective, np.zeros(rows.shape[1]), tol=1e-10).fun
        assert model.fit_report_["objective"][label] == pytest.approx(found, rel=1e-6)


def test_liblinear_has_the_same_weights():
    """Short rows, more features than rows, rare labels: what it is for."""
    rng = np.random.default_rng(0)
    X = sp.random_array((400, 900), density=0.01, rng=rng, format="csr")
    Y = np.zeros((400, 20), int)
    for label in range(20):
        Y[rng.choice(400, 1 + label, replace=False), label] = 1
    model = OvALinearXC(loss="logistic", C=3.0, tol=1e-9, prune=0).fit(X, sp.csr_array(Y))
    for label in range(20):
        reference = LogisticRegression(C=3.0, solver="liblinear", tol=1e-9, max_iter=10_000)
        reference.fit(X, Y[:, label])
        found = model.coef_[[label]].toarray()
        np.testing.assert_allclose(found, reference.coef_, atol=2e-5)
        np.testing.assert_allclose(model.intercept_[label], reference.intercept_, atol=2e-5)


def test_threads_and_blocks_change_no_byte(make_xy, monkeypatch):
    X, Y = make_xy(n_labels=70)
    fits = []
    for n_jobs, size in ((1, None), (2, None), (2, 17)):
        if size:
            monkeypatch.setattr("sklearn_xc.parallel.blocks.MAX_BLOCK_LABELS", size)
            monkeypatch.setattr("sklearn_xc.parallel.blocks.MAX_LANES", size)
        fits.append(OvALinearXC(loss="logistic", n_jobs=n_jobs).fit(X, Y))
    for other in fits[1:]:
        assert other.coef_.data.tobytes() == fits[0].coef_.data.tobytes()
        assert other.intercept_.tobytes() == fits[0].intercept_.tobytes()


def test_workspace_bytes(make_problem):
    """It is what the arrays of the solver take, and those of the points."""
    X, Y = np.random.default_rng(0).normal(size=(300, 40)), np.eye(300, 32)
    problem = make_problem(X, Y, loss="logistic")
    solver = SmoothNewton(problem, EXACT, lambda: None)
    arrays = [v for v in vars(solver).values() if isinstance(v, np.ndarray)]
    taken = sum(array.nbytes for array in arrays)
    points = newton_cg._make_lanes(problem, 32).points.nbytes
    told = workspace_bytes(300, 40, 32, 8, True)
    assert taken + points <= told <= 2 * (taken + points) + 2**16
