"""The data of a softmax likelihood: (instance, class) pairs and their weights."""

from dataclasses import dataclass, field, replace

import numpy as np

from sklearn_xc._input.data import CsrRows, features_of, read_only, row_pieces


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
    squared_norms : ndarray of float64 of shape (n_rows,)
        ``|x|^2``.
    visits : ndarray of int64 of shape (n,)
        How often an epoch visits each pair. Heavy pairs are taken in several steps, so that all
        steps have similar lengths; an epoch has at most 3 n visits.
    counts : ndarray of int64 of shape (n_classes,)
        Visits of the pairs of each class.
    """

    instances: CsrRows
    rows: np.ndarray
    classes: np.ndarray
    weight: np.ndarray
    n_classes: int
    alpha: float
    squared_norms: np.ndarray = field(init=False)
    visits: np.ndarray = field(init=False)
    counts: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        visits = np.ceil(self.weight / typical_weight(self.weight) * (1.0 - 1e-9)).astype(np.int64)
        counts = np.zeros(self.n_classes, np.int64)
        np.add.at(counts, self.classes, visits)
        arrays = {"squared_norms": squared_norms(self.instances), "visits": visits}
        arrays |= {"rows": self.rows, "classes": self.classes, "weight": self.weight}
        for name, values in {**arrays, "counts": counts}.items():
            object.__setattr__(self, name, read_only(values))

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return len(self.rows)

    @property
    def n_visits(self) -> int:
        """Number of visits of an epoch."""
        return int(self.visits.sum())

    def mean_squared_norm(self) -> float:
        """Return the mean of ``|x|^2`` over the pairs."""
        squares = self.squared_norms[self.rows]
        largest = float(squares.max()) or 1.0  # the sum of all may be beyond float64
        return float(np.average(squares / largest, weights=self.weight) * largest)

    def mean_square(self) -> float:
        """Return the mean square of X over the pairs and the features that any of them has."""
        n_features = int(features_of(self.instances, self.rows).sum())
        return self.mean_squared_norm() / max(1, n_features)

    def take(self, chosen: np.ndarray) -> "SoftmaxProblem":
        """Return the problem of some of the pairs."""
        return replace(
            self,
            rows=self.rows[chosen],
            classes=self.classes[chosen],
            weight=self.weight[chosen],
        )


def squared_norms(X: CsrRows) -> np.ndarray:
    """Return ``|x|^2`` of each row, summed in float64 without a copy of X."""
    squares = np.empty(X.shape[0])
    with np.errstate(over="ignore"):
        for first, last in row_pieces(X.indptr):
            start, ends = X.indptr[first], X.indptr[first : last + 1]
            of_entry = np.append(X.data[start : ends[-1]].astype(np.float64) ** 2, 0.0)
            sums = np.add.reduceat(of_entry, ends[:-1] - start)
            squares[first:last] = np.where(np.diff(ends) > 0, sums, 0.0)
    if not np.isfinite(squares).all():
        raise FloatingPointError("the squares of X are beyond the range of float64")
    return squares


def typical_weight(weight: np.ndarray) -> float:
    """Return the median of positive weights, but at least half of their mean."""
    return max(float(np.median(weight)), 0.5 * float(weight.mean()))
