"""Sums over instances that starts and stopping rules share."""

import numpy as np
import pytest

from sklearn_xc.solvers.problem import sum_instances, sum_rows


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_sums(dtype, fit_intercept, xy, make_problem):
    X, Y = xy
    weight = np.random.default_rng(0).random(X.shape[0]).astype(dtype)
    problem = make_problem(X, Y, dtype=dtype, weight=weight, fit_intercept=fit_intercept)
    dense = np.hstack([X.toarray().astype(dtype), np.full((120, 1), fit_intercept, dtype)])
    weighted = weight.astype(np.float64)[:, None] * dense
    sums = sum_instances(problem)
    np.testing.assert_allclose(sums.total, weighted.sum(axis=0), rtol=1e-12, atol=1e-14)
    assert sums.weight == pytest.approx(weight.sum(dtype=np.float64))
    rows = problem.positives(2)
    expected = weighted[Y.toarray()[:, 2] > 0].sum(axis=0)
    np.testing.assert_allclose(sum_rows(problem, rows), expected, rtol=1e-12, atol=1e-14)


def test_ridge_and_intercept(xy, make_problem):
    cases = [(True, True), (True, False), (False, True)]
    problems = [
        make_problem(*xy, fit_intercept=fit, regularize_intercept=regularize)
        for fit, regularize in cases
    ]
    assert [(p.intercept, p.ridge) for p in problems] == [(1.0, 1.0), (1.0, 0.0), (0.0, 0.0)]
