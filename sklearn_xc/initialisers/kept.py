"""Start vectors from a model that was fitted before."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc.initialisers.protocol import Initialiser
from sklearn_xc.solvers.problem import OneVsAllProblem


class Kept(Initialiser):
    """Start at the weights that labels have.

    Parameters
    ----------
    coef : csr_array of shape (L, d)
        Weights, by the caller's features.
    intercept : ndarray of shape (L,)
    columns : ndarray of int32 of shape (d,)
        Which of the caller's features each feature of the problem is.
    """

    def __init__(self, coef: sp.csr_array, intercept: np.ndarray, columns: np.ndarray) -> None:
        self.coef, self.intercept, self.columns = coef, intercept, columns

    def prepare(self, problem: OneVsAllProblem, sums: Any) -> np.ndarray:
        """Return the problem's number of each of the caller's features."""
        place = np.empty(len(self.columns), np.int32)
        place[self.columns] = np.arange(len(place), dtype=np.int32)
        return place

    def sparse_starts(self, prepared: Any, problem: OneVsAllProblem, labels: np.ndarray) -> Any:
        """Return the weights of some labels, features in no order."""
        rows, d = self.coef[labels], self.coef.shape[1]
        m = len(labels)
        ends = rows.indptr[1:].astype(np.int64) + np.arange(1, m + 1)
        is_intercept = np.zeros(rows.nnz + m, bool)
        is_intercept[ends - 1] = True
        indices, values = np.full(rows.nnz + m, d), np.empty(rows.nnz + m)
        indices[~is_intercept], values[~is_intercept] = prepared[rows.indices], rows.data
        values[is_intercept] = problem.intercept * self.intercept[labels]
        return sp.csr_array((values, indices, np.concatenate(([0], ends))), shape=(m, d + 1))

    def start(
        self, prepared: Any, problem: OneVsAllProblem, label: int, positive_sum: np.ndarray
    ) -> np.ndarray:
        """Return the label's weights."""
        first, last = self.coef.indptr[label : label + 2]
        w = np.zeros(problem.n_features + 1)
        w[prepared[self.coef.indices[first:last]]] = self.coef.data[first:last]
        w[-1] = problem.intercept * self.intercept[label]
        return w
