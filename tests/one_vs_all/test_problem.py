"""Sums over instances that starts and stopping rules share."""

import numpy as np
import pytest

from sklearn_xc.one_vs_all.problem import check_range, sum_instances, sum_rows


@pytest.mark.parametrize(("dtype", "fit_intercept"), [(np.float32, True), (np.float64, False)])
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


def test_the_range_holds_twice_the_squared_norm(make_problem):
    """The curvature of the squared hinge along an instance, in float32, up to 3.4e38."""
    problems = [
        make_problem(
            np.array([[np.sqrt(square)]]), np.array([[1]]), dtype=np.float32, fit_intercept=False
        )
        for square in (1.6e38, 1.8e38)
    ]
    check_range(problems[0], sum_instances(problems[0]))
    with pytest.raises(ValueError, match="too large for float32"):
        check_range(problems[1], sum_instances(problems[1]))
