"""Instances and their label sets, with equal ones merged."""

from dataclasses import dataclass

import numpy as np

from sklearn_xc._validation import CsrRows, DenseRows, Targets
from sklearn_xc.solvers.batch_sgd import LabelSets

#: Rows of a dense X that are hashed at a time.
_DENSE_ROWS = 4096
#: An instance is visited at most so often in an epoch, however large its weight.
_MOST_VISITS = 64


@dataclass(frozen=True)
class TrainingSet:
    """Distinct pairs of an instance and its label set, in an order that follows from their content.

    A fit on them depends neither on the order of the rows, nor on whether a row is repeated or has
    a weight.

    Attributes
    ----------
    rows : ndarray of int64 of shape (n,)
        A row of X for each.
    sets : LabelSets
        The labels of all rows of X. The weight of those in `rows` is summed over equal ones, and
        that of a single visit.
    visits : ndarray of int64 of shape (n,)
        How often each is visited in an epoch: its weight, rounded up, but at most 64 times.
    """

    rows: np.ndarray
    sets: LabelSets
    visits: np.ndarray

    def order(self, seed: tuple[int, ...]) -> np.ndarray:
        """Return the rows of an epoch, in random order."""
        order = np.repeat(self.rows, self.visits)
        np.random.default_rng(seed).shuffle(order)
        return order


def merge_instances(X: CsrRows | DenseRows, targets: Targets, weight: np.ndarray) -> TrainingSet:
    """Return the distinct instances with at least one label and a weight above 0.

    Parameters
    ----------
    X : CsrRows or DenseRows of shape (n, d)
        Checked instances.
    targets : Targets
        Their labels.
    weight : ndarray of float64 of shape (n,)
        Not negative. Those of equal instances with equal label sets are summed.
    """
    n = X.shape[0]
    indptr, labels = targets.by_instance(n)
    used = np.flatnonzero((np.diff(indptr) > 0) & (weight > 0))
    hashes = np.column_stack([_hash_instances(X), _hash_sets(indptr, labels)])[used]
    order = np.lexsort((weight[used], *hashes.T))  # sums of weights round by their order
    is_first = np.ones(len(used), bool)
    is_first[1:] = (hashes[order][1:] != hashes[order][:-1]).any(axis=1)
    rows = used[order][is_first]
    total = np.bincount(np.cumsum(is_first) - 1, weights=weight[used][order])
    visits = np.minimum(np.ceil(total), _MOST_VISITS).astype(np.int64)
    per_visit = np.zeros(n)
    per_visit[rows] = total / visits
    return TrainingSet(rows, LabelSets(indptr, labels, per_visit), visits)


def _hash_instances(X: CsrRows | DenseRows) -> np.ndarray:
    from sklearn_xc.kernels.row_hash import hash_rows

    n, d = X.shape
    hashes = np.empty((n, 2), np.uint64)
    if isinstance(X, CsrRows):
        hash_rows(X.indptr, X.indices, _bits(X.data), hashes)
        return hashes
    indices = np.tile(np.arange(d, dtype=np.int32), min(n, _DENSE_ROWS))
    for first in range(0, n, _DENSE_ROWS):
        values = X.values[first : first + _DENSE_ROWS]
        indptr = np.arange(len(values) + 1, dtype=np.int64) * d
        hash_rows(indptr, indices, _bits(values.ravel()), hashes[first : first + _DENSE_ROWS])
    return hashes


def _hash_sets(indptr: np.ndarray, labels: np.ndarray) -> np.ndarray:
    from sklearn_xc.kernels.row_hash import hash_rows

    hashes = np.empty((len(indptr) - 1, 2), np.uint64)
    hash_rows(indptr, labels, np.ones(len(labels), np.uint64), hashes)
    return hashes


def _bits(values: np.ndarray) -> np.ndarray:
    return (values + 0).astype(np.float64).view(np.uint64)  # the sum makes -0.0 a 0.0
