"""Epochs of Siamese training: an encoder (module M1), then classifiers beside it (module M2).

The way of the data, for the rows of a mini-batch::

    rows -> a positive each, and further negatives -> pool of labels
    rows, pool -> module.begin -> V, Z -> scores -> gradient by the scores       triplet_batch.py
                  module.learn <- gradients by V and by Z <-'
"""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from sklearn_xc._data import CsrRows, read_only
from sklearn_xc.embedding._encoding import checked, encoded, first_strange, name_of
from sklearn_xc.embedding._examples import labels_of_rows
from sklearn_xc.encoders.protocol import Encoder
from sklearn_xc.parallel.team import Team
from sklearn_xc.samplers.protocol import BatchSampler, Positives, Scene
from sklearn_xc.solvers.adam import LazyAdam
from sklearn_xc.solvers.batch_sgd import Entries

#: Scores whose gradients are worth a second thread.
_LEAST_WORK = 200_000


@dataclass(frozen=True)
class TripletLoss:
    """The loss ``sum_k [z_k - z_own + margin]_+`` over the negatives k within a radius.

    Attributes
    ----------
    margin : float
    radius : float or None
        Negatives whose embedding is farther from the instance's than this do not count; None is
        for all of the pool.
    """

    margin: float
    radius: float | None = None

    @property
    def floor(self) -> float:
        """The score that a negative at the radius has: vectors of norm 1 are 2 apart at most."""
        if self.radius is None or self.radius > 2:
            return -np.inf
        return 1.0 - 0.5 * self.radius**2


class Pool(NamedTuple):
    """The labels of a mini-batch.

    Attributes
    ----------
    labels : ndarray of int32 of shape (m,)
        Distinct, rising.
    own : ndarray of int64 of shape (n,)
        The place of each instance's positive.
    """

    labels: np.ndarray
    own: np.ndarray

    @classmethod
    def of(cls, positives: np.ndarray, further: np.ndarray | None) -> "Pool":
        """Return the pool of a positive for each instance, and of further negatives, or -1."""
        n = len(positives)
        named = positives
        if further is not None:
            named = np.concatenate([positives, further[further >= 0]])
        labels, places = np.unique(named, return_inverse=True)
        return cls(labels.astype(np.int32), places[:n].astype(np.int64))


class Module(Protocol):
    """What learns: it has embeddings of the instances and of the labels."""

    def begin(
        self, rows: np.ndarray, labels: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the embeddings of some instances and labels, (n, dim) and (m, dim)."""

    def learn(self, by_instances: np.ndarray | None, by_labels: np.ndarray, rate: float,
              team: Team) -> None:  # fmt: skip
        """Take a step with the gradients by what ``begin`` has returned."""

    @property
    def moves_instances(self) -> bool:
        """Whether the instances' embeddings learn."""

    @property
    def n_labels(self) -> int:
        """Of all."""

    def instances(self) -> np.ndarray:
        """Return the embeddings of all instances, (n, dim)."""

    def labels(self) -> np.ndarray:
        """Return the embeddings of all labels, (n_labels, dim)."""


class SiameseModule:
    """Module M1: one encoder of instances and labels.

    Parameters
    ----------
    encoder : Encoder
        Started; learns.
    X : CsrRows of shape (n, n_features)
        Instances.
    Z : CsrRows of shape (n_labels, n_features)
        What is known of the labels.
    dim : int
        Of the embeddings.
    n_jobs : int or None
        Threads that encode.
    name : str
        The estimator's, for messages.
    keep : bool, default=False
        Whether the embeddings of instances that training has seen are kept for those who ask for
        them, who get them as they were then. Otherwise all are encoded anew.
    """

    moves_instances = True

    def __init__(
        self, encoder: Encoder, X: CsrRows, Z: CsrRows, dim: int, n_jobs: int | None, name: str,
        keep: bool = False,
    ) -> None:  # fmt: skip
        self._encoder, self._X, self._Z, self._n_jobs = encoder, X, Z, n_jobs
        self._dim, self._name, self._has_learnt = dim, name, False
        self.n_labels = Z.shape[0]
        self._visit: Any = None
        self._seen: np.ndarray | None = None
        self._is_new = np.ones(X.shape[0] if keep else 0, bool)

    def begin(
        self, rows: np.ndarray, labels: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the embeddings of some instances and labels."""
        self._visit = self._encoder.visit([(self._X, rows), (self._Z, labels)], rng)
        name, shape = (
            f"{self._name}: {name_of(self._encoder)}",
            (len(rows) + len(labels), self._dim),
        )
        V = checked(getattr(self._visit, "V", None), f"{name}: V of visit", shape, self._X.dtype)
        if not self._has_learnt and first_strange(V) >= 0:
            raise ValueError(f"{name} gives NaN or infinity before it has learnt anything.")
        if len(self._is_new):
            self._keep(rows, V[: len(rows)])
        return V[: len(rows)], V[len(rows) :]

    def learn(
        self, by_instances: np.ndarray | None, by_labels: np.ndarray, rate: float, team: Team
    ) -> None:
        """Take a step with the encoder."""
        assert by_instances is not None
        self._has_learnt = True
        self._encoder.learn(self._visit, np.concatenate([by_instances, by_labels]), rate, team)

    def instances(self) -> np.ndarray:
        """Return the embeddings of all instances."""
        if self._seen is not None and not self._is_new.any():
            return self._seen
        return self._encoded(self._X)

    def _keep(self, rows: np.ndarray, V: np.ndarray) -> None:
        if self._seen is None:
            self._seen = np.zeros((len(self._is_new), V.shape[1]), V.dtype)
        self._seen[rows], self._is_new[rows] = V, False

    def labels(self) -> np.ndarray:
        """Return the embeddings of all labels."""
        return self._encoded(self._Z)

    def _encoded(self, inputs: CsrRows) -> np.ndarray:
        return encoded(self._encoder, inputs, self._dim, inputs.dtype, self._n_jobs, self._name)


class ClassifierModule:
    """Module M2: a unit vector for each label; the instances' embeddings stay.

    Parameters
    ----------
    V : ndarray of float of shape (n, dim)
        Embeddings of the instances.
    W : ndarray of float of shape (n_labels, dim)
        What the label vectors start at; changed in place. Rows have norm 1, or 0: then they have it
        after their first step.
    steps : LazyAdam or None
        What steps depend on besides gradients; None begins anew.
    """

    moves_instances = False

    def __init__(self, V: np.ndarray, W: np.ndarray, steps: LazyAdam | None = None) -> None:
        self._V, self._W, self.n_labels = V, W, len(W)
        self._steps = LazyAdam((W.shape[0], W.shape[1]), W.dtype) if steps is None else steps
        self._at = np.empty(0, np.int32)

    def begin(
        self, rows: np.ndarray, labels: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the embeddings of some instances, and label vectors."""
        self._at = labels
        return self._V[rows], self._W[labels]

    def learn(
        self, by_instances: np.ndarray | None, by_labels: np.ndarray, rate: float, team: Team
    ) -> None:
        """Take a step along the sphere, and return to it."""
        m, W = len(self._at), self._W
        w = W[self._at]
        along = by_labels - np.einsum("ij,ij->i", by_labels, w)[:, None] * w
        entries = Entries(np.arange(m), np.ones(m, np.int64), self._at, np.ones(m, W.dtype))
        self._steps.step(W, entries, np.ascontiguousarray(along), rate, team)
        w = W[self._at]
        norms = np.sqrt(np.einsum("ij,ij->i", w, w))
        norms[np.isinf(norms)] = np.nan  # 0 would be a label that nothing is known of
        W[self._at] = w / np.where(norms == 0, 1, norms)[:, None]

    def instances(self) -> np.ndarray:
        """Return the embeddings of all instances."""
        return self._V

    def labels(self) -> np.ndarray:
        """Return the vectors of all labels."""
        return self._W


class EpochReport(NamedTuple):
    """What an epoch has seen.

    Attributes
    ----------
    loss : float
        Weighted mean of the instances, as seen in the steps.
    hit_share : float
        The share of the pool's negatives that were within the margin, of all pairs of an instance
        and a label of its pool.
    sampler_s, seconds : float
        Wall seconds of the sampler's refresh, and of all.
    """

    loss: float
    hit_share: float
    sampler_s: float
    seconds: float

    @classmethod
    def joined(cls, reports: Sequence["EpochReport"]) -> "EpochReport":
        """Return what label shards have seen in an epoch: means, and the time of all."""
        losses, hit_shares, sampler_s, seconds = map(np.array, zip(*reports, strict=True))
        return cls(
            float(losses.mean()), float(hit_shares.mean()), float(sampler_s.sum()),
            float(seconds.sum()),
        )  # fmt: skip


class SiameseTraining:
    """Epochs with mini-batches of a sampler.

    Parameters
    ----------
    module : Module
        Learns.
    positives : Positives
        The labels of the instances, at least one for each.
    weight : ndarray of float64 of shape (n,)
        Of the instances. They are divided by their mean: Adam does not step along gradients that
        are all tiny.
    sampler : BatchSampler
    loss : TripletLoss
    rate : float
        Of Adam's steps at the beginning; it falls to 0 in a line.
    n_epochs : int
    seed : int
    n_workers : int
        Threads, on which nothing depends.
    """

    def __init__(
        self, module: Module, positives: Positives, weight: np.ndarray,
        sampler: BatchSampler, loss: TripletLoss, rate: float, n_epochs: int, seed: int,
        n_workers: int,
    ) -> None:  # fmt: skip
        self._module, self._positives, self._sampler, self._loss = module, positives, sampler, loss
        self._rate, self._n_epochs, self._seed = rate, n_epochs, seed
        self._weight, self._n_workers = weight / weight.mean(), n_workers
        self._columns = np.full(module.n_labels, -1, np.int32)
        n = len(positives.indptr) - 1
        self._static: np.ndarray | None = None
        self._scene = Scene(
            n, n_epochs, positives, module.instances, module.labels, self._static_embeddings,
            module.moves_instances,
        )  # fmt: skip

    def run(self) -> Iterator[EpochReport]:
        """Train, and tell of each epoch."""
        with Team(self._n_workers) as team:
            for epoch in range(self._n_epochs):
                yield self._epoch(epoch, team)

    def _static_embeddings(self) -> np.ndarray:
        """Return what embeddings were when first asked for: before they move, at epoch 0."""
        if self._static is None:
            self._static = self._module.instances().copy()
        return self._static

    def _epoch(self, epoch: int, team: Team) -> EpochReport:
        began = time.perf_counter()
        self._sampler.refresh(epoch, self._scene)
        refreshed = time.perf_counter()
        indptr, labels = self._positives
        counts = np.diff(indptr)
        n = len(counts)
        rng = np.random.default_rng((self._seed, epoch))
        drawn = labels[indptr[:-1] + np.minimum((rng.random(n) * counts).astype(int), counts - 1)]
        total, n_hits, n_pairs, done = 0.0, 0, 0, 0
        for rows in self._sampler.batches(epoch):
            rate = self._rate * (1.0 - (epoch + done / n) / self._n_epochs)
            pool = Pool.of(drawn[rows], self._sampler.negatives(rows))
            loss, hits = self._step(rows, pool, rate, rng, team)
            total, n_hits = total + loss, n_hits + hits
            n_pairs += len(rows) * (len(pool.labels) - 1)
            done += len(rows)
        ended = time.perf_counter()
        total /= self._weight.sum()
        return EpochReport(total, n_hits / max(1, n_pairs), refreshed - began, ended - began)

    def _step(
        self, rows: np.ndarray, pool: Pool, rate: float, rng: np.random.Generator, team: Team
    ) -> tuple[float, int]:
        """Take a step; return the summed loss and the number of hits."""
        V, Z = self._module.begin(rows, pool.labels, rng)
        gradient = V @ Z.T
        losses, n_hits = self._to_gradient(gradient, rows, pool, team)
        chosen = self._sampler.select(losses)
        if chosen is not None:
            gradient[~chosen] = 0
        # Each instance counts alike, however many labels are within its margin.
        gradient *= (1.0 / np.maximum(n_hits, 1)).astype(gradient.dtype)[:, None]
        by_instances = gradient @ Z if self._module.moves_instances else None
        self._module.learn(by_instances, gradient.T @ V, rate, team)
        return float(losses.sum()), int(n_hits.sum())

    def _to_gradient(
        self, scores: np.ndarray, rows: np.ndarray, pool: Pool, team: Team
    ) -> tuple[np.ndarray, np.ndarray]:
        """Overwrite scores with the gradient by them; return losses and hits of the instances."""
        from sklearn_xc.kernels.embedding.triplet_batch import triplet_gradient

        n, m = scores.shape
        bounds, own = labels_of_rows(self._positives, rows)
        self._columns[pool.labels] = np.arange(m, dtype=np.int32)
        losses, n_hits = np.empty(n), np.empty(n, np.int64)
        weight = self._weight[rows].astype(scores.dtype)
        n_parts = team.n_workers if n * m >= _LEAST_WORK else 1
        cuts = np.linspace(0, n, n_parts + 1).astype(int)
        arrays = tuple(map(read_only, (pool.own, bounds, own, self._columns, weight)))

        def share(worker: int) -> None:
            if worker < n_parts:
                triplet_gradient(
                    scores, *arrays, self._loss.margin, self._loss.floor, cuts[worker],
                    cuts[worker + 1], losses, n_hits,
                )  # fmt: skip

        team.run(share)
        self._columns[pool.labels] = -1
        return losses, n_hits


def show_epoch(name: str, module: str, epoch: int, n_epochs: int, report: EpochReport) -> None:
    """Print a line for an epoch."""
    print(
        f"[{name}] {module}, epoch {epoch + 1} of {n_epochs}: loss {report.loss:.4g}, "
        f"{100 * report.hit_share:.2g} % of the pool within the margin, {report.seconds:.1f} s",
        file=sys.stdout,
        flush=True,
    )
