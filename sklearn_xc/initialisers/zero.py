"""The zero vector."""

from typing import Any

import numpy as np

from sklearn_xc.initialisers.protocol import Initialiser
from sklearn_xc.solvers.problem import OneVsAllProblem, PositiveSums


class Zero(Initialiser):
    """Start at zero."""

    def mixtures(
        self, prepared: Any, problem: OneVsAllProblem, positives: PositiveSums
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Return zeros."""
        none = np.zeros(len(positives.weight))
        return none, none, np.zeros(problem.n_features + 1)

    def start(
        self, prepared: Any, problem: OneVsAllProblem, label: int, positive_sum: np.ndarray
    ) -> np.ndarray:
        """Return zeros."""
        return np.zeros(problem.n_features + 1)
