"""The zero vector."""

from typing import Any

import numpy as np

from sklearn_xc.solvers.problem import InstanceSums, OneVsAllProblem


def prepare(problem: OneVsAllProblem, sums: InstanceSums) -> None:
    """Nothing is needed."""


def start(
    prepared: Any, problem: OneVsAllProblem, label: int, positive_sum: np.ndarray
) -> np.ndarray:
    """Return zeros."""
    return np.zeros(problem.n_features + 1)
