"""The zero vector."""

from typing import Any

import numpy as np

from sklearn_xc.initialisers.protocol import Initialiser
from sklearn_xc.solvers.problem import OneVsAllProblem


class Zero(Initialiser):
    """Start at zero."""

    def start(
        self, prepared: Any, problem: OneVsAllProblem, label: int, positive_sum: np.ndarray
    ) -> np.ndarray:
        """Return zeros."""
        return np.zeros(problem.n_features + 1)
