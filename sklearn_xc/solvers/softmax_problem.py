"""What a softmax likelihood is of: (instance, class) pairs, and bounds on its optimum.

References
----------
.. [1] F. Fagan and G. Iyengar, "Unbiased scalable softmax optimization", arXiv:1803.08577, 2018.
"""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from sklearn_xc._blank_rows import features_of
from sklearn_xc._data import CsrRows, read_only
from sklearn_xc._declared_state import Array, Number, declares
from sklearn_xc._row_pieces import row_pieces


@declares(n=Number("int", least=0), weight=Number(), counts=Array("int64", "labels", least=0))
class Population(NamedTuple):
    """All pairs of a likelihood, of which a problem may hold a part.

    Attributes
    ----------
    n : int
        Visits of an epoch.
    weight : float
        Sum of the weights: learning rates are in units of its inverse.
    counts : ndarray of int64 of shape (n_classes,)
        Visits of pairs of each class.
    """

    n: int
    weight: float
    counts: np.ndarray


@dataclass(frozen=True)
class SoftmaxProblem:
    """Instances and their classes.

    Attributes
    ----------
    instances : CsrRows of shape (n_rows, n_features)
        X.
    rows, classes : ndarray of int32 of shape (n,)
        The pairs of an instance and one of its classes.
    weight : ndarray of float64 of shape (n,)
        Of each pair, positive.
    n_classes : int
        K, at least 2.
    alpha : float
        Ridge.
    whole : Population, default=None
        The pairs of the likelihood; None for those of the problem. ``population`` holds the answer.
    visits : ndarray of int64 of shape (n,)
        How often an epoch comes to each pair. Heavy pairs are taken in several steps, so that none
        has a scale that is unlike the others'; an epoch has at most 3 n visits.
    """

    instances: CsrRows
    rows: np.ndarray
    classes: np.ndarray
    weight: np.ndarray
    n_classes: int
    alpha: float
    whole: Population | None = None
    population: Population = field(init=False)
    squared_norms: np.ndarray = field(init=False)
    visits: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        X = self.instances
        squares = np.empty(X.shape[0])
        with np.errstate(over="ignore"):
            for first, last in row_pieces(X.indptr):
                start, ends = X.indptr[first], X.indptr[first : last + 1]
                of_entry = np.append(X.data[start : ends[-1]].astype(np.float64) ** 2, 0.0)
                sums = np.add.reduceat(of_entry, ends[:-1] - start)
                squares[first:last] = np.where(np.diff(ends) > 0, sums, 0.0)
        if not np.isfinite(squares).all():
            raise FloatingPointError("the squares of X are beyond the range of float64")
        for name, value in (
            ("rows", self.rows), ("classes", self.classes), ("weight", self.weight),
            ("squared_norms", squares), ("visits", _count_visits(self.weight)),
        ):  # fmt: skip
            object.__setattr__(self, name, read_only(value))
        own = self._count(np.ones(self.n_pairs, bool))
        object.__setattr__(self, "population", own if self.whole is None else self.whole)

    def _count(self, chosen: np.ndarray) -> Population:
        counts = np.zeros(self.n_classes, np.int64)
        np.add.at(counts, self.classes[chosen], self.visits[chosen])
        return Population(
            int(self.visits[chosen].sum()), float(self.weight[chosen].sum()), read_only(counts)
        )

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return len(self.rows)

    def radius(self) -> float:
        """Return a bound on the norm of the optimal W (lemma 1 of [1]_), inf without a ridge."""
        if self.alpha == 0:
            return np.inf
        return float(np.sqrt(2.0 / self.alpha * self.population.weight * np.log(self.n_classes)))

    def largest_normaliser(self) -> float:
        """Return a bound on the optimal u without intercepts (lemma 2 of [1]_)."""
        longest = float(np.sqrt(self.squared_norms.max()))
        reach = 2.0 * longest * self.radius() if longest else 0.0
        return float(np.logaddexp(0.0, np.log(self.n_classes - 1) + reach))

    def mean_square(self) -> float:
        """Return the mean square of the entries of X over the pairs, zeros included.

        Features that none of the pairs has do not count.
        """
        n_features = int(features_of(self.instances, self.rows).sum())
        return self.mean_squared_norm(max(1, n_features))

    def mean_squared_norm(self, parts: int = 1) -> float:
        """Return the mean of |x|^2 over the pairs, divided by a number of parts."""
        squares = self.squared_norms[self.rows]
        largest = float(squares.max()) or 1.0  # the sum of all may be beyond float64
        mean = np.average(squares / largest, weights=self.weight)
        return float(mean * (largest / parts))

    def take(self, chosen: np.ndarray) -> "SoftmaxProblem":
        """Return the problem of some of the pairs."""
        return replace(
            self,
            rows=self.rows[chosen],
            classes=self.classes[chosen],
            weight=self.weight[chosen],
            whole=None,
        )

    def within(self, others: Population, is_new: np.ndarray) -> "SoftmaxProblem":
        """Return the problem as a part of `others` and of those of its own pairs that are new."""
        own = self._count(is_new)
        counts = read_only(others.counts + own.counts)
        return replace(self, whole=Population(others.n + own.n, others.weight + own.weight, counts))


def usual_weight(weight: np.ndarray) -> float:
    """Return a weight that is neither small nor large among positive weights."""
    return max(float(np.median(weight)), 0.5 * float(weight.mean()))


def _count_visits(weight: np.ndarray) -> np.ndarray:
    if not len(weight):
        return np.empty(0, np.int64)
    return np.ceil(weight / usual_weight(weight) * (1.0 - 1e-9)).astype(np.int64)
