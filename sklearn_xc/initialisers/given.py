"""Start vectors that the user gives, for instance the solution for another C."""

import numpy as np

from sklearn_xc.solvers.problem import InstanceSums, OneVsAllProblem


def prepare(problem: OneVsAllProblem, sums: InstanceSums) -> None:
    """Nothing is needed: the estimator has checked the array and passes it on."""


def start(
    prepared: np.ndarray, problem: OneVsAllProblem, label: int, positive_sum: np.ndarray
) -> np.ndarray:
    """Return the row of `label`, of shape (d,) or with an intercept (d + 1,)."""
    w = np.zeros(problem.n_features + 1)
    row = prepared[[label]]
    row = row.toarray()[0] if hasattr(row, "toarray") else row[0]
    w[: row.shape[0]] = row
    return w
