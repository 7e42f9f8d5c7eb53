"""What every initialiser offers."""

import math
from abc import ABC, abstractmethod
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_xc.one_vs_all.solver.problem import InstanceSums, OneVsAllProblem, PositiveSums


class Initialiser(BaseEstimator, ABC):
    """Start vectors for one-vs-all training; see the package's docstring.

    The parameters of ``__init__`` are kept as attributes of the same names.

    Examples
    --------
    An initialiser of your own, which starts each label at a multiple of the sum of its positives:

    >>> import numpy as np
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.one_vs_all.starts import Initialiser
    >>> class SumOfPositives(Initialiser):
    ...     def __init__(self, scale=0.1):
    ...         self.scale = scale
    ...
    ...     def start(self, prepared, problem, label, positive_sum):
    ...         return self.scale * positive_sum
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
    >>> Y = np.array([[1, 0], [0, 1], [1, 1]])
    >>> clf = OvALinearXC(init=SumOfPositives(scale=0.2)).fit(X, Y)
    >>> clf.get_params()["init__scale"], clf.score(X, Y)
    (0.2, 1.0)
    """

    #: Whether the start leans on the intercept, so that there must be one.
    needs_intercept = False

    def check(self) -> None:
        """Raise an error if a parameter is a text, NaN or infinity.

        Raises
        ------
        ValueError
            The message shows all parameters.
        """
        for value in vars(self).values():
            is_number = isinstance(value, Real) and math.isfinite(value)
            if isinstance(value, str) or (isinstance(value, Real) and not is_number):
                raise ValueError(f"init: the parameters of {self!r} must be finite numbers.")

    def prepare(self, problem: OneVsAllProblem, sums: InstanceSums) -> Any:
        """Return what ``start`` needs in a worker; nothing by default.

        Parameters
        ----------
        problem : OneVsAllProblem
            The problems of all labels.
        sums : InstanceSums
            Sums over its instances.

        Returns
        -------
        object
            Any object that several threads may read.
        """
        return None

    def parents(self, problem: OneVsAllProblem, labels: np.ndarray) -> np.ndarray | None:
        """Return, for each label, the position of the label at whose weights it starts.

        It is called once, and labels are solved after those that they start from. The weights are
        those after pruning.

        Parameters
        ----------
        problem : OneVsAllProblem
            The problems of all labels.
        labels : ndarray of int64 of shape (m,)
            The labels to be solved: of equal problems, only the first.

        Returns
        -------
        ndarray of int of shape (m,), or None
            Positions in `labels`, without cycles; -1 where ``start`` is called. None, the default,
            if ``start`` is called for all.
        """
        return None

    def mixtures(
        self, prepared: Any, problem: OneVsAllProblem, positives: PositiveSums
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Return the starts of some labels as multiples of two vectors each.

        Parameters
        ----------
        prepared : object
            What ``prepare`` returned.
        problem : OneVsAllProblem
            The problems of all labels.
        positives : PositiveSums of m labels
            Properties of the weighted sum of their positives.

        Returns
        -------
        of_positives, of_shared : ndarray of float64 of shape (m,)
            Multiples of the weighted sum of a label's positives, constant feature included, and of
            `shared`.
        shared : ndarray of float64 of shape (d + 1,)
            Intercept last. Instead of all three, None, the default, if ``start`` is to be called.
        """
        return None

    def sparse_starts(self, prepared: Any, problem: OneVsAllProblem, labels: np.ndarray) -> Any:
        """Return the starts of some labels, if most weights are 0.

        Parameters
        ----------
        prepared : object
            What ``prepare`` returned.
        problem : OneVsAllProblem
            The problems of all labels.
        labels : ndarray of int64 of shape (m,)

        Returns
        -------
        csr_array of shape (m, d + 1), or None
            Intercept last. None, the default, if ``start`` is to be called.
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
            Weighted sum of the label's positives, constant feature last.

        Returns
        -------
        ndarray of float64 of shape (d + 1,)
            Weights with the intercept last.
        """

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({values})"
