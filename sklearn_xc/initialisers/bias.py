"""A negative intercept and nothing else: every instance starts as a clear negative.

Source: section 3 of Schultheis and Babbar (2022). At -1 all negatives sit on the kink of the
squared hinge and the first steps are tiny; -2 is where the paper's runs were fastest.
"""

from typing import Any

import numpy as np

from sklearn_xc.solvers.problem import InstanceSums, OneVsAllProblem

WEIGHT = -2.0


def prepare(problem: OneVsAllProblem, sums: InstanceSums) -> None:
    """Nothing is needed."""


def start(
    prepared: Any, problem: OneVsAllProblem, label: int, positive_sum: np.ndarray
) -> np.ndarray:
    """Return zeros with ``WEIGHT`` as the intercept."""
    w = np.zeros(problem.n_features + 1)
    w[-1] = WEIGHT
    return w
