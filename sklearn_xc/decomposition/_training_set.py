"""The problem of a fit: its resolved parameters, and instances with their label sets."""

from dataclasses import dataclass, replace

import numpy as np

from sklearn_xc._input.data import CsrRows, DenseRows, Targets, entry_places
from sklearn_xc._input.equal_rows import distinct_instances
from sklearn_xc._input.given_vectors import GivenVectors
from sklearn_xc.decomposition.gradients.protocol import Gradient, RowBatch, SetLoss
from sklearn_xc.search import MipsIndex

#: Values of a dense X per chunk.
_CHUNK_VALUES = 2**22
#: Most visits of an instance in an epoch, however large its weight.
_MOST_VISITS = 64


@dataclass(frozen=True)
class TrainingConfig:
    """Parameters of a training, validated and resolved for the training set.

    Attributes
    ----------
    name : str
        Of the estimator, for messages.
    loss : SetLoss
    gradient : Gradient
    index : str or MipsIndex
        A name, or an instance to copy.
    n_candidates : int
    hidden_dim : int
        0 for no hidden layer.
    has_intercept : bool
        Whether label vectors have a trained intercept, or are proxies.
    embedding_init : GivenVectors or None
        Initial feature vectors.
    feature_names : ndarray of str of shape (n_features,) or None
    metric : {"inner_product", "euclidean", "mahalanobis"}
    dropout : float
    batch_size, n_workers, seed : int
    """

    name: str
    loss: SetLoss
    gradient: Gradient
    index: str | MipsIndex
    n_candidates: int
    hidden_dim: int
    has_intercept: bool
    embedding_init: GivenVectors | None
    feature_names: np.ndarray | None
    metric: str
    dropout: float
    batch_size: int
    n_workers: int
    seed: int

    @property
    def has_proxies(self) -> bool:
        """Whether scores are distances: intercepts then follow from the vectors."""
        return self.metric != "inner_product"


@dataclass(frozen=True)
class LabelSets:
    """The labels of all instances, and their weights.

    Attributes
    ----------
    indptr : ndarray of int64 of shape (n + 1,)
    labels : ndarray of int32
    weight : ndarray of float64 of shape (n,)
    """

    indptr: np.ndarray
    labels: np.ndarray
    weight: np.ndarray

    def of_rows(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels of some rows, as row pointers and labels."""
        starts = self.indptr[rows]
        at, bounds = entry_places(starts, self.indptr[rows + 1] - starts)
        return bounds, self.labels[at]

    def batch(self, rows: np.ndarray, V: np.ndarray) -> RowBatch:
        """Return a mini-batch of some rows, given their embeddings."""
        return RowBatch(V, *self.of_rows(rows), self.weight[rows])


@dataclass(frozen=True)
class TrainingSet:
    """Distinct pairs of an instance and its label set, in an order that depends on them alone.

    So a fit depends neither on the order of the rows, nor on whether a row is repeated or has a
    weight.

    Attributes
    ----------
    instances : CsrRows or DenseRows of shape (n_given, n_features)
        All instances passed.
    targets : Targets
        Their labels.
    given_weight : ndarray of float64 of shape (n_given,)
        Their sample weights.
    rows : ndarray of int64 of shape (n,)
        A row of X for each distinct pair.
    sets : LabelSets
        The labels of all rows of X. The weight of those in `rows` is that of a single visit.
    visits : ndarray of int64 of shape (n,)
        Visits per epoch: the summed weight of equal pairs, rounded up, but at most 64.
    weight : ndarray of float64 of shape (n,)
        Summed weight of each pair.
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
    def share_of_nonzeros(self) -> float:
        """Return the share of non-zero entries, in whatever container."""
        X, rows, total = self.instances, self.rows, 0
        n_chunk = max(1, _CHUNK_VALUES // X.shape[1])
        for first in range(0, len(rows), n_chunk):
            total += int(np.count_nonzero(X.take(rows[first : first + n_chunk]).arrays[-1]))
        return total / (len(rows) * X.shape[1])

    def part(self, chosen: np.ndarray) -> "TrainingSet":
        """Return a subset of the distinct pairs, by positions in `rows`."""
        return replace(
            self, rows=self.rows[chosen], visits=self.visits[chosen], weight=self.weight[chosen]
        )

    def order(self, seed: tuple[int, ...]) -> np.ndarray:
        """Return the rows of an epoch, in random order."""
        order = np.repeat(self.rows, self.visits)
        np.random.default_rng(seed).shuffle(order)
        return order


def merge_instances(X: CsrRows | DenseRows, targets: Targets, weight: np.ndarray) -> TrainingSet:
    """Merge equal instances with equal label sets; those without a label or weight are left out."""
    n = X.shape[0]
    indptr, labels = targets.by_instance(n)
    rows, total = distinct_instances(X, indptr, labels, weight)
    visits = np.minimum(np.ceil(total), _MOST_VISITS).astype(np.int64)
    per_visit = np.zeros(n)
    per_visit[rows] = total / visits
    sets = LabelSets(indptr, labels, per_visit)
    return TrainingSet(X, targets, weight, rows, sets, visits, total)
