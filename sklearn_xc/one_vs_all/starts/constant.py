"""Starts without weights: zero, or a negative intercept."""

from typing import Any

import numpy as np

from sklearn_xc.one_vs_all.solver.problem import OneVsAllProblem, PositiveSums
from sklearn_xc.one_vs_all.starts.protocol import Initialiser


class Bias(Initialiser):
    """Start with an intercept alone.

    Parameters
    ----------
    weight : float, default=-2.0
        The intercept. At -1, all negatives are at the kink of the squared hinge and the first
        steps are tiny; the paper's runs were fastest at -2 (section 3 of Schultheis and Babbar,
        2022).

    Examples
    --------
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> from sklearn_xc.one_vs_all.starts import Bias
    >>> X, Y = make_xc_classification(
    ...     n_samples=500, n_features=300, n_labels=50, random_state=0, return_X_y=True
    ... )
    >>> clf = OvALinearXC(init=Bias(weight=-1.5)).fit(X, Y)
    >>> bool(clf.score(X, Y) > 0.9)
    True
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


class Zero(Initialiser):
    """Start at zero.

    Examples
    --------
    The same as ``init="zero"``:

    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> from sklearn_xc.one_vs_all.starts import Zero
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
