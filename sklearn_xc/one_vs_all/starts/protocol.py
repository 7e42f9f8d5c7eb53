"""Base class of initialisers, and the starts without a method of their own."""

import math
from abc import ABC, abstractmethod
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from sklearn_xc.one_vs_all.problem import InstanceSums, OneVsAllProblem, PositiveSums


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

    #: Whether the start needs an intercept.
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

    def groups(self, labels: np.ndarray) -> list[tuple["Initialiser", np.ndarray]]:
        """Return the initialisers to use on working sets.

        Parameters
        ----------
        labels : ndarray of int64 of shape (m,)

        Returns
        -------
        list of (Initialiser, ndarray of bool of shape (m,))
            Each with a mask of its labels. The default is this one for all.
        """
        return [(self, np.ones(len(labels), bool))]

    def parents(self, problem: OneVsAllProblem, labels: np.ndarray) -> np.ndarray | None:
        """Return, for each label, the position of the label at whose weights it starts.

        It is called once. Labels are solved after their parents, and start at the pruned weights.

        Parameters
        ----------
        problem : OneVsAllProblem
            The problems of all labels.
        labels : ndarray of int64 of shape (m,)
            The labels to be solved: one for each distinct problem.

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
            Result of ``prepare``.
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
            Intercept last. The default is None instead of all three: ``start`` is called.
        """
        return None

    def sparse_starts(self, prepared: Any, problem: OneVsAllProblem, labels: np.ndarray) -> Any:
        """Return the starts of some labels as sparse vectors.

        Parameters
        ----------
        prepared : object
            Result of ``prepare``.
        problem : OneVsAllProblem
            The problems of all labels.
        labels : ndarray of int64 of shape (m,)

        Returns
        -------
        csr_array of shape (m, d + 1), or None
            Intercept last. None, the default: ``start`` is called.
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
            Result of ``prepare``.
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


class SameStart(Initialiser):
    """Base class of initialisers that start all labels at the vector that ``prepare`` returns."""

    def mixtures(
        self, prepared: np.ndarray, problem: OneVsAllProblem, positives: PositiveSums
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Return the same vector for every label."""
        m = len(positives.weight)
        return np.zeros(m), np.ones(m), prepared

    def start(
        self, prepared: np.ndarray, problem: OneVsAllProblem, label: int, positive_sum: np.ndarray
    ) -> np.ndarray:
        """Return the vector, the same for every label."""
        return prepared


class Bias(SameStart):
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

    def prepare(self, problem: OneVsAllProblem, sums: InstanceSums) -> np.ndarray:
        """Return zeros with ``weight`` as the intercept."""
        w = np.zeros(problem.n_features + 1)
        w[-1] = self.weight
        return w


class Zero(SameStart):
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

    def prepare(self, problem: OneVsAllProblem, sums: InstanceSums) -> np.ndarray:
        """Return the zero vector."""
        return np.zeros(problem.n_features + 1)


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
