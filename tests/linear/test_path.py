"""The path over C against cold starts."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc import OvALinearXC
from sklearn_xc.initialisers import Initialiser, MeanSeparating
from sklearn_xc.linear import path
from sklearn_xc.linear.training import same_problems
from sklearn_xc.losses import LOSSES
from sklearn_xc.parallel.engines.local import LocalEngine

CS = np.logspace(-1.5, 1, 8)


@pytest.fixture
def follow(make_problem, xy):
    """Return a function that solves a path: the problem, the solutions by C and the rows."""

    def follow(Cs=CS, *, n_jobs=1, max_memory=None, init=None, XY=xy, **parameters):
        problem = make_problem(*XY, **parameters)
        init = init or MeanSeparating()
        group = same_problems(problem, init)
        here = LocalEngine()
        return problem, *path.solve_path(problem, Cs, init, group, max_memory, n_jobs, here)[:2]

    return follow


def stacked(solutions, rows, name):
    return np.concatenate([getattr(s, name) for s in solutions])[rows]


def dense(solutions, rows, d):
    blocks = [
        sp.csr_array((s.values, s.indices, s.indptr), shape=(len(s.labels), d)).toarray()
        for s in solutions
    ]
    weights = np.vstack(blocks)[rows]
    return np.hstack([weights, stacked(solutions, rows, "intercepts")[:, None]])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("Cs", [CS, CS[:1], CS[:2], np.array([0.001, 0.5, 0.6, 40.0])], ids=len)
def test_every_c_ends_at_its_optimum(Cs, loss, follow, objective_of, make_problem, xy):
    _, by_C, rows = follow(Cs, loss=loss)
    assert len(by_C) == len(Cs)
    for C, solutions in zip(Cs, by_C, strict=True):
        points = dense(solutions, rows, 40)
        bound = 0.5 * stacked(solutions, rows, "gradient_norm") ** 2
        at_C = make_problem(*xy, loss=loss, plus=np.full(15, C), minus=np.full(15, C))
        for label in range(15):
            objective = objective_of(at_C, label)
            excess = objective.value(points[label]) - objective.minimum()
            assert excess <= bound[label] + 1e-9


@pytest.mark.parametrize("prune", [0.0, 0.01, 0.3])
def test_pruning_is_that_of_the_solver(prune, follow, solve, make_problem, xy):
    """At a tolerance where both starts give the same weights to rounding."""
    _, (solutions,), rows = follow(np.array([0.7]), tol=1e-9, prune=prune)
    cold = make_problem(*xy, tol=1e-9, prune=prune, plus=np.full(15, 0.7), minus=np.full(15, 0.7))
    np.testing.assert_allclose(dense(solutions, rows, 40), solve(cold)[1], atol=1e-7)
    assert (dense(solutions, rows, 40)[:, :-1] == 0).any() == (prune > 0)


def test_steps_are_saved(follow):
    """Against the sum of cold starts; by more than a third on data like this."""
    _, by_C, _ = follow()
    cold = [follow(CS[[c]])[1][0] for c in range(len(CS))]
    warm, cold = (sum(s.n_iter.sum() for of_C in x for s in of_C) for x in (by_C, cold))
    assert warm < 2 / 3 * cold


def test_starts_lie_on_the_line_through_the_last_two_solutions(monkeypatch, follow):
    starts, points, solve_block = [], [], path.solve_block

    def recording_solve_block(problem, sums, initialiser, prepared, labels, *args, ends):
        starts.append(initialiser.points.copy() if hasattr(initialiser, "points") else None)
        solution = solve_block(problem, sums, initialiser, prepared, labels, *args, ends=ends)
        points.append(ends.copy())
        return solution

    monkeypatch.setattr(path, "solve_block", recording_solve_block)
    monkeypatch.setattr(path, "EXTRAPOLATION", 0.5)
    Cs = np.exp([0.0, 1.5, 1.7, 2.5, 2.6])
    follow(Cs)
    assert starts[0] is None
    np.testing.assert_array_equal(starts[1], points[0])
    for c, ratio in ((2, 0.8 / 0.1), (3, 0.2 / 0.8)):
        expected = points[c - 1] + 0.5 * ratio * (points[c - 1] - points[c - 2])
        np.testing.assert_allclose(starts[c], expected, rtol=1e-12)
    np.testing.assert_array_equal(starts[4], points[3])  # a step of 1.5 is too long


def test_identical_labels_are_solved_once(follow, xy):
    _, by_C, rows = follow()
    assert rows[2] == rows[9]
    assert sum(len(s.labels) for s in by_C[0]) == len(np.unique(rows)) == 14


class Negative(Initialiser):
    def __init__(self):
        self.prepared_for = []

    def prepare(self, problem, sums):
        self.prepared_for.append(float(problem.minus[0]))

    def start(self, prepared, problem, label, positive_sum):
        w = np.zeros(problem.n_features + 1)
        w[-1] = -1.0
        return w


def test_the_initialiser_is_prepared_for_the_largest_c(follow):
    init = Negative()
    follow(np.array([0.1, 0.2, 0.3, 0.4]), init=init)
    assert init.prepared_for == [0.4]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_change_nothing(dtype, follow, make_xy, monkeypatch):
    monkeypatch.setattr("sklearn_xc.parallel.blocks.MAX_LANES", 4)
    XY = make_xy(n_labels=60)
    _, one, rows = follow(XY=XY, dtype=dtype)
    assert len(one[0]) > 4
    _, two, rows_of_two = follow(XY=XY, dtype=dtype, n_jobs=2)
    np.testing.assert_array_equal(rows, rows_of_two)
    for a, b in zip(one, two, strict=True):
        for name in ("labels", "indices", "values", "intercepts", "objective"):
            np.testing.assert_array_equal(
                *(np.concatenate([getattr(s, name) for s in x]) for x in (a, b))
            )
        np.testing.assert_array_equal(
            *(np.concatenate([np.diff(s.indptr) for s in x]) for x in (a, b))
        )


class TestGoingOn:
    """A path that goes on where another has ended."""

    @pytest.fixture
    def go_on(self, make_problem, xy):
        problem = make_problem(*xy, tol=1e-3)
        group = same_problems(problem, MeanSeparating())

        def go_on(Cs, max_memory=None, **options):
            start = MeanSeparating()
            return path.solve_path(
                problem, Cs, start, group, max_memory, 1, LocalEngine(), **options
            )

        return go_on

    def test_it_takes_the_same_steps_but_for_the_first_start(self, go_on, monkeypatch):
        monkeypatch.setattr(path, "EXTRAPOLATION", 0.0)
        whole, rows, end = go_on(CS)
        assert end is None
        upper, _, end = go_on(CS[3:], keep_end=True)
        assert CS[3] == end.C
        lower, _, _ = go_on(CS[:3], after=end)
        for expected, found in zip(whole, [*lower, *upper], strict=True):
            np.testing.assert_array_equal(dense(found, rows, 40), dense(expected, rows, 40))

    def test_the_second_start_lies_on_a_line_again(self, go_on):
        whole, _, _ = go_on(CS)
        _, _, end = go_on(CS[3:], keep_end=True)
        lower, _, _ = go_on(CS[:3], after=end)
        cold, _, _ = go_on(CS[:3])
        steps = [sum(s.n_iter.sum() for c in x[:3] for s in c) for x in (whole, lower, cold)]
        assert steps[1] < 1.2 * steps[0]
        assert steps[1] < steps[2]

    def test_an_end_that_takes_too_much_memory_is_not_kept(self, go_on, monkeypatch):
        n_bytes = 14 * 41 * 8
        for share, is_kept in ((n_bytes / 2**20, True), (n_bytes / 2**20 - 1e-6, False)):
            monkeypatch.setattr(path, "KEPT_SHARE", share)
            assert (go_on(CS[:2], 2**20, keep_end=True)[2] is not None) == is_kept
        monkeypatch.setattr(path, "KEPT_BYTES", n_bytes)
        assert go_on(CS[:2], keep_end=True)[2] is not None
        monkeypatch.setattr(path, "KEPT_BYTES", n_bytes - 1)
        assert go_on(CS[:2], keep_end=True)[2] is None


def test_max_memory_bounds_the_labels_together(follow, make_xy, monkeypatch):
    sizes, solve_block = [], path.solve_block

    def recording_solve_block(*args, **ends):
        sizes.append((len(args[4]), args[5]))
        return solve_block(*args, **ends)

    monkeypatch.setattr(path, "solve_block", recording_solve_block)
    XY = make_xy(n_labels=60)
    follow(CS[:2], XY=XY)
    roomy = max(sizes)
    sizes.clear()
    follow(CS[:2], XY=XY, max_memory=118_000)
    assert max(sizes) < roomy
    assert all(labels <= path.LABELS_PER_LANE * lanes for labels, lanes in sizes)


def test_the_estimator_agrees(follow, xy):
    """The problem for C = 1 times C is the estimator's."""
    _, by_C, rows = follow(np.array([0.3, 3.0]), tol=1e-9)
    for C, solutions in zip((0.3, 3.0), by_C, strict=True):
        model = OvALinearXC(C, tol=1e-9, prune=0).fit(*xy)
        np.testing.assert_allclose(
            dense(solutions, rows, 40)[:, :-1], model.coef_.toarray(), atol=1e-7
        )
