"""The path over C against cold starts."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc._parallel.engines import Engine
from sklearn_xc.one_vs_all import warm_start
from sklearn_xc.one_vs_all.starts import MeanSeparating
from sklearn_xc.one_vs_all.training import solve_all

CS = np.logspace(-1.5, 1, 8)


@pytest.fixture
def follow(make_problem, xy):
    """Return a function that solves a path: the solutions by C and the rows."""

    def follow(Cs=CS, *, max_memory=None, init=None, XY=xy, **parameters):
        return solve_all(
            make_problem(*XY, **parameters),
            init or MeanSeparating(),
            Cs=Cs,
            n_jobs=1,
            max_memory=max_memory,
            engine=Engine(),
        )

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


@pytest.mark.parametrize("loss", ["squared_hinge", "huber_hinge", "logistic"])
def test_every_c_ends_at_its_optimum(loss, follow, objective_of, make_problem, xy):
    Cs = np.array([0.001, 0.5, 0.6, 40.0])
    by_C, rows = follow(Cs, loss=loss)
    assert len(by_C) == len(Cs)
    for C, solutions in zip(Cs, by_C, strict=True):
        points = dense(solutions, rows, 40)
        bound = 0.5 * stacked(solutions, rows, "gradient_norm") ** 2
        at_C = make_problem(*xy, loss=loss, plus=np.full(15, C), minus=np.full(15, C))
        for label in range(15):
            objective = objective_of(at_C, label)
            excess = objective.value(points[label]) - objective.minimum()
            assert excess <= bound[label] + 1e-9


def test_starts_lie_on_the_line_through_the_last_two_solutions(monkeypatch, follow):
    starts, points, solve_block = [], [], warm_start.solve_block

    def recording_solve_block(problem, sums, initialiser, prepared, labels, *args, ends):
        starts.append(initialiser.points.copy() if hasattr(initialiser, "points") else None)
        solution = solve_block(problem, sums, initialiser, prepared, labels, *args, ends=ends)
        points.append(ends.copy())
        return solution

    monkeypatch.setattr(warm_start, "solve_block", recording_solve_block)
    monkeypatch.setattr(warm_start, "EXTRAPOLATION", 0.5)
    follow(np.exp([0.0, 1.5, 1.7, 2.5, 2.6]))
    assert starts[0] is None
    np.testing.assert_array_equal(starts[1], points[0])
    for c, ratio in ((2, 0.8 / 0.1), (3, 0.2 / 0.8)):
        expected = points[c - 1] + 0.5 * ratio * (points[c - 1] - points[c - 2])
        np.testing.assert_allclose(starts[c], expected, rtol=1e-12)
    np.testing.assert_array_equal(starts[4], points[3])  # a step of 1.5 is too long


def test_the_initialiser_is_prepared_for_the_largest_c(follow):
    class Recording(MeanSeparating):
        def prepare(self, problem, sums):
            minus.append(float(problem.minus[0]))
            return super().prepare(problem, sums)

    minus = []
    follow(np.array([0.1, 0.2, 0.3, 0.4]), init=Recording())
    assert minus == [0.4]
