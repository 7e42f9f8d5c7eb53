"""Start vectors that the user gives, for instance the solution for another C."""

from typing import Any

import numpy as np

from sklearn_xc.initialisers.protocol import Initialiser
from sklearn_xc.solvers.problem import OneVsAllProblem


class Given(Initialiser):
    """Start at given vectors.

    Parameters
    ----------
    vectors : ndarray or csr_array of shape (L, d) or (L, d + 1)
        One row per label; a further column holds intercepts.
    """

    def __init__(self, vectors: Any) -> None:
        self.vectors = vectors

    def start(
        self, prepared: Any, problem: OneVsAllProblem, label: int, positive_sum: np.ndarray
    ) -> np.ndarray:
        """Return the label's row."""
        row = self.vectors[[label]]
        row = row.toarray()[0] if hasattr(row, "toarray") else row[0]
        w = np.zeros(problem.n_features + 1)
        w[: row.shape[0]] = row
        return w
