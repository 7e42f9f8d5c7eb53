"""A negative intercept and nothing else: every instance starts as a clear negative."""

from typing import Any

import numpy as np

from sklearn_xc.initialisers.protocol import Initialiser
from sklearn_xc.solvers.problem import OneVsAllProblem, PositiveSums


class Bias(Initialiser):
    """Start with an intercept alone.

    Parameters
    ----------
    weight : float, default=-2.0
        The intercept. At -1 all negatives sit on the kink of the squared hinge and the first steps
        are tiny; the paper's runs were fastest at -2 (section 3 of Schultheis and Babbar, 2022).
    """

    needs_intercept = True

    def __init__(self, weight: float = -2.0) -> None:
        self.weight = weight

    def mixtures(
        self, prepared: Any, problem: OneVsAllProblem, positives: PositiveSums
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Return the intercept alone."""
        m = len(positives.weight)
        shared = np.zeros(problem.n_features + 1)
        shared[-1] = self.weight
        return np.zeros(m), np.ones(m), shared

    def start(
        self, prepared: Any, problem: OneVsAllProblem, label: int, positive_sum: np.ndarray
    ) -> np.ndarray:
        """Return zeros with ``weight`` as the intercept."""
        w = np.zeros(problem.n_features + 1)
        w[-1] = self.weight
        return w
