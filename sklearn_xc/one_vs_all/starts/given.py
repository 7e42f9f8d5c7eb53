"""Start vectors that the user gives, for instance the solution for another C."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc.one_vs_all.solver.problem import OneVsAllProblem
from sklearn_xc.one_vs_all.starts.protocol import Initialiser


class Given(Initialiser):
    """Start at given vectors.

    Parameters
    ----------
    vectors : ndarray or csr_array of shape (L, d) or (L, d + 1)
        One row per label; an additional column holds intercepts.

    Examples
    --------
    A fit that starts from a solution takes fewer Newton steps:

    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> from sklearn_xc.one_vs_all.starts import Given
    >>> X, Y = make_xc_classification(
    ...     n_samples=500, n_features=300, n_labels=50, random_state=0, return_X_y=True
    ... )
    >>> first = OvALinearXC().fit(X, Y)
    >>> again = OvALinearXC(C=0.55, init=Given(first.coef_)).fit(X, Y)
    >>> bool(again.n_iter_.sum() < 0.9 * first.n_iter_.sum())
    True
    """

    def __init__(self, vectors: Any) -> None:
        self.vectors = vectors

    def sparse_starts(self, prepared: Any, problem: OneVsAllProblem, labels: np.ndarray) -> Any:
        """Return the rows of some labels, if they are sparse."""
        if not sp.issparse(self.vectors):
            return None
        rows = self.vectors[labels]
        without = problem.n_features + 1 - rows.shape[1]
        return sp.hstack([rows, sp.csr_array((len(labels), without))], "csr") if without else rows

    def start(
        self, prepared: Any, problem: OneVsAllProblem, label: int, positive_sum: np.ndarray
    ) -> np.ndarray:
        """Return the label's row."""
        row = self.vectors[[label]]
        row = row.toarray()[0] if hasattr(row, "toarray") else row[0]
        w = np.zeros(problem.n_features + 1)
        w[: row.shape[0]] = row
        return w
