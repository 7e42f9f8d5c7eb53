"""The zero vector."""

from typing import Any

import numpy as np

from sklearn_xc.initialisers.protocol import Initialiser
from sklearn_xc.solvers.problem import OneVsAllProblem, PositiveSums


class Zero(Initialiser):
    """Start at zero.

    Examples
    --------
    The same as ``init="zero"``:

    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> from sklearn_xc.initialisers import Zero
    >>> X, Y = make_xc_classification(
    ...     n_samples=500, n_features=300, n_labels=50, random_state=0, return_X_y=True
    ... )
    >>> clf = OvALinearXC(init=Zero()).fit(X, Y)
    >>> bool((clf.coef_ != OvALinearXC(init="zero").fit(X, Y).coef_).nnz == 0)
    True
    """

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
