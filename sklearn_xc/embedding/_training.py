"""Epochs of Siamese training: an encoder (module M1), then classifiers beside it (module M2).

The way of the data, for the rows of a mini-batch, whose labels are called its pool::

    rows -> a positive each, and further negatives -> pool of labels
    rows, pool -> module.begin -> V, Z -> scores -> gradient by the scores       triplet_batch.py
                  module.learn <- gradients by V and by Z <-'
"""

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._data import read_only
from sklearn_xc.embedding._examples import labels_of_rows
from sklearn_xc.embedding._modules import Module
from sklearn_xc.embedding._report import EpochReport
from sklearn_xc.embedding._sampling import CheckedSampler
from sklearn_xc.kernels.embedding.triplet_batch import triplet_gradient
from sklearn_xc.parallel.team import Team
from sklearn_xc.samplers.protocol import Positives, TrainingState
from sklearn_xc.storage.loops import restore

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
    """The labels of a mini-batch: one drawn for each instance, and further negatives.

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
    sampler : CheckedSampler
        Started.
    loss : TripletLoss
    rate : float
        Of Adam's steps at the beginning; it falls to 0 in a line.
    n_epochs : int
    seed : int
    n_workers : int
        Threads, on which nothing depends.
    inputs : callable
        Returns the instances as encoders read them, for the sampler.
    """

    def __init__(
        self, module: Module, positives: Positives, weight: np.ndarray,
        sampler: CheckedSampler, loss: TripletLoss, rate: float, n_epochs: int, seed: int,
        n_workers: int, inputs: Callable[[], Any],
    ) -> None:  # fmt: skip
        self._module, self._positives, self._sampler, self._loss = module, positives, sampler, loss
        self._rate, self._n_epochs, self._seed = rate, n_epochs, seed
        self._weight, self._n_workers = weight / weight.mean(), n_workers
        self._columns = np.full(module.n_labels, -1, np.int32)
        n = len(positives.indptr) - 1
        # What embeddings were when first asked for: before they move, at epoch 0.
        initial_embeddings = list[np.ndarray]()

        def initial() -> np.ndarray:  # no method, or this object, with all that it holds, would be
            if not initial_embeddings:  # there until Python looks for cycles
                initial_embeddings.append(module.instances().copy())
            return initial_embeddings[0]

        self._state = TrainingState(
            n, module.n_labels, positives, inputs, module.instances, module.last_seen,
            initial, module.labels, module.moves_instances,
        )  # fmt: skip

    def run(self, first: int = 0) -> Generator[EpochReport, None, None]:
        """Train from an epoch on, and tell of each."""
        with Team(self._n_workers) as team:
            for epoch in range(first, self._n_epochs):
                yield self._epoch(epoch, team)

    def kept(self, reports: list[EpochReport]) -> dict[str, np.ndarray]:
        """Return what a checkpoint keeps after the epochs of these reports."""
        return {**self._module.kept(), **self._sampler.kept(), "reports": np.array(reports)}

    def resume(self, found: dict[str, np.ndarray]) -> list[EpochReport]:
        """Continue from what was kept of a training that began like this one; return the reports.

        Raises
        ------
        SavedModelError
            If it does not fit this training.
        """
        n_done = len(np.atleast_1d(found.get("reports", 0)))
        reports = np.empty((min(n_done, self._n_epochs), len(EpochReport._fields)))
        restore({"reports": reports}, found)
        self._sampler.resume(found, n_done - 1, self._state)
        self._module.resume(found)
        return [EpochReport(*row) for row in reports.tolist()]

    def _epoch(self, epoch: int, team: Team) -> EpochReport:
        began = time.perf_counter()
        self._sampler.refresh(epoch, self._state)
        refreshed = time.perf_counter()
        indptr, labels = self._positives
        counts = np.diff(indptr)
        n = len(counts)
        rng = np.random.default_rng((self._seed, epoch))
        drawn = labels[indptr[:-1] + np.minimum((rng.random(n) * counts).astype(int), counts - 1)]
        total, n_violations, n_pairs, done = 0.0, 0, 0, 0
        for rows in self._sampler.batches(epoch):
            rate = self._rate * (1.0 - (epoch + done / n) / self._n_epochs)
            pool = Pool.of(drawn[rows], self._sampler.negatives(rows))
            loss, found = self._step(rows, pool, rate, rng, team)
            total, n_violations = total + loss, n_violations + found
            n_pairs += len(rows) * (len(pool.labels) - 1)
            done += len(rows)
        ended = time.perf_counter()
        total /= self._weight.sum()
        return EpochReport(total, n_violations / max(1, n_pairs), refreshed - began, ended - began)

    def _step(
        self, rows: np.ndarray, pool: Pool, rate: float, rng: np.random.Generator, team: Team
    ) -> tuple[float, int]:
        """Take a step; return the summed loss and the number of violations."""
        V, Z = self._module.begin(rows, pool.labels, rng)
        gradient = V @ Z.T
        losses, n_violations = self._to_gradient(gradient, rows, pool, team)
        chosen = self._sampler.select(losses)
        if chosen is not None:
            gradient[~chosen] = 0
        # Each instance counts alike, however many labels are within its margin.
        gradient *= (1.0 / np.maximum(n_violations, 1)).astype(gradient.dtype)[:, None]
        by_instances = gradient @ Z if self._module.moves_instances else None
        self._module.learn(by_instances, gradient.T @ V, rate, team)
        return float(losses.sum()), int(n_violations.sum())

    def _to_gradient(
        self, scores: np.ndarray, rows: np.ndarray, pool: Pool, team: Team
    ) -> tuple[np.ndarray, np.ndarray]:
        """Overwrite scores with the gradient by them; return losses and violations by instance."""
        n, m = scores.shape
        bounds, own = labels_of_rows(self._positives, rows)
        self._columns[pool.labels] = np.arange(m, dtype=np.int32)
        losses, n_violations = np.empty(n), np.empty(n, np.int64)
        weight = self._weight[rows].astype(scores.dtype)
        n_parts = team.n_workers if n * m >= _LEAST_WORK else 1
        cuts = np.linspace(0, n, n_parts + 1).astype(int)
        arrays = tuple(map(read_only, (pool.own, bounds, own, self._columns, weight)))

        def share(worker: int) -> None:
            if worker < n_parts:
                triplet_gradient(
                    scores, *arrays, self._loss.margin, self._loss.floor, cuts[worker],
                    cuts[worker + 1], losses, n_violations,
                )  # fmt: skip

        team.run(share)
        self._columns[pool.labels] = -1
        return losses, n_violations
