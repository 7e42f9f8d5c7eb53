"""What every initialiser offers."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from sklearn_xc.solvers.problem import InstanceSums, OneVsAllProblem


class Initialiser(ABC):
    """Start vectors for one-vs-all training; see the package's docstring."""

    #: Whether the start leans on the intercept, so that there must be one.
    needs_intercept = False

    def prepare(self, problem: OneVsAllProblem, sums: InstanceSums) -> Any:
        """Return what ``start`` needs in a worker; nothing by default."""
        return None

    def parents(self, problem: OneVsAllProblem, labels: np.ndarray) -> np.ndarray | None:
        """Return for each label of a block the position of the one that it starts from.

        Parameters
        ----------
        problem : OneVsAllProblem
            The problems of all labels.
        labels : ndarray of int64 of shape (m,)
            The labels of the block.

        Returns
        -------
        ndarray of int of shape (m,), or None
            Positions in `labels`; -1 where ``start`` is asked. None, the default, if it always is.
        """
        return None

    @abstractmethod
    def start(
        self, prepared: Any, problem: OneVsAllProblem, label: int, positive_sum: np.ndarray
    ) -> np.ndarray:
        """Return the start vector of one label.

        Parameters
        ----------
        prepared : object
            What ``prepare`` returned.
        problem : OneVsAllProblem
            The problems of all labels.
        label : int
            The label.
        positive_sum : ndarray of float64 of shape (d + 1,)
            Weighted sum of its positives, constant feature last.

        Returns
        -------
        ndarray of float64 of shape (d + 1,)
            Weights with the intercept last.
        """

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({values})"
