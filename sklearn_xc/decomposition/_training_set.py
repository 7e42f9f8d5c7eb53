"""What is trained on: instances and their label sets, with equal ones merged."""

from dataclasses import dataclass, replace

import numpy as np

from sklearn_xc._data import CsrRows, DenseRows, Targets
from sklearn_xc._distinct import distinct_instances
from sklearn_xc.solvers.batch_sgd import LabelSets

#: Values of a dense X that are counted at a time.
_VALUES = 2**22
#: An instance is visited at most so often in an epoch, however large its weight.
_MOST_VISITS = 64


@dataclass(frozen=True)
class TrainingSet:
    """Distinct pairs of an instance and its label set, in an order that follows from their content.

    A fit on them depends neither on the order of the rows, nor on whether a row is repeated or has
    a weight.

    Attributes
    ----------
    instances : CsrRows or DenseRows of shape (n_given, n_features)
        All that were passed, checked.
    targets : Targets
        Their labels.
    given_weight : ndarray of float64 of shape (n_given,)
        Their weights.
    rows : ndarray of int64 of shape (n,)
        A row of X for each.
    sets : LabelSets
        The labels of all rows of X. The weight of those in `rows` is summed over equal ones, and
        that of a single visit.
    visits : ndarray of int64 of shape (n,)
        How often each is visited in an epoch: its weight, rounded up, but at most 64 times.
    weight : ndarray of float64 of shape (n,)
        Of each, in all visits.
    """

    instances: CsrRows | DenseRows
    targets: Targets
    given_weight: np.ndarray
    rows: np.ndarray
    sets: LabelSets
    visits: np.ndarray
    weight: np.ndarray

    @property
    def n_labels(self) -> int:
        """Return the number of labels."""
        return len(self.targets.classes)

    @property
    def epoch_visits(self) -> int:
        """Return the number of visits in an epoch."""
        return int(self.visits.sum())

    @property
    def share_of_nonzeros(self) -> float:
        """Return the share of the entries of the rows that are not 0, in whatever container."""
        X, rows, total = self.instances, self.rows, 0
        n_together = max(1, _VALUES // X.shape[1])
        for first in range(0, len(rows), n_together):
            total += int(np.count_nonzero(X.take(rows[first : first + n_together]).arrays[-1]))
        return total / (len(rows) * X.shape[1])

    def part(self, chosen: np.ndarray) -> "TrainingSet":
        """Return some of the distinct instances, by their places in `rows`."""
        return replace(
            self, rows=self.rows[chosen], visits=self.visits[chosen], weight=self.weight[chosen]
        )

    def order(self, seed: tuple[int, ...]) -> np.ndarray:
        """Return the rows of an epoch, in random order."""
        order = np.repeat(self.rows, self.visits)
        np.random.default_rng(seed).shuffle(order)
        return order


def merge_instances(
    name: str, X: CsrRows | DenseRows, targets: Targets, weight: np.ndarray
) -> TrainingSet:
    """Return the distinct instances with at least one label and a weight above 0.

    Parameters
    ----------
    name : str
        Of the estimator, for messages.
    X : CsrRows or DenseRows of shape (n, d)
        Checked instances.
    targets : Targets
        Their labels.
    weight : ndarray of float64 of shape (n,)
        Not negative. Those of equal instances with equal label sets are summed.

    Raises
    ------
    ValueError
        If the weights have no finite sum.
    """
    with np.errstate(over="ignore"):
        total = weight.sum()
    if not np.isfinite(total):
        raise ValueError(
            f"{name}: the sum of sample_weight must be finite, the largest is {weight.max():g}. "
            "Divide them by it."
        )
    n = X.shape[0]
    indptr, labels = targets.by_instance(n)
    rows, total = distinct_instances(X, indptr, labels, weight)
    visits = np.minimum(np.ceil(total), _MOST_VISITS).astype(np.int64)
    per_visit = np.zeros(n)
    per_visit[rows] = total / visits
    return TrainingSet(
        X, targets, weight, rows, LabelSets(indptr, labels, per_visit), visits, total
    )
