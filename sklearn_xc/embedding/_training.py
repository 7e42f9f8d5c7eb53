"""Epochs of Siamese training: the encoder (module M1), then the classifiers (module M2).

The data of a mini-batch, whose labels are called its pool::

    rows -> a positive each, and further negatives -> pool of labels
    rows, pool -> module.begin -> V, Z -> scores -> gradient by the scores
                  module.learn <- gradients by V and by Z <-'
"""

import time
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._input.data import CsrRows, read_only
from sklearn_xc._parallel.progress import Progress
from sklearn_xc._parallel.threads import Team
from sklearn_xc._state.checkpoints import Loop, restore
from sklearn_xc._training.adam import Entries, LazyAdam, kept_steps, resume_steps
from sklearn_xc.embedding._examples import Examples, labels_of_rows
from sklearn_xc.embedding._inputs import checked, encoded, encoder_input, joined_input
from sklearn_xc.embedding.encoders.protocol import Encoder
from sklearn_xc.embedding.kernels.steps import triplet_gradient
from sklearn_xc.embedding.samplers.protocol import BatchSampler, TrainingState

#: Scores whose gradients are worth a second thread.
_LEAST_WORK = 200_000


class SiameseEpoch(NamedTuple):
    """Weighted mean loss of an epoch, share of negatives within the margin, and wall seconds."""

    loss: float
    violations: float
    seconds: float

    def __str__(self) -> str:
        return f"loss {self.loss:.4g}, {100 * self.violations:.2g} % of negatives within the margin"


def as_fit_report(epochs: Mapping[str, Sequence[SiameseEpoch]]) -> dict[str, np.ndarray]:
    """Return ``fit_report_``: columns with a row for each epoch of a module, numbered from 1."""
    rows = [
        (module, number, *report)
        for module, reports in epochs.items()
        for number, report in enumerate(reports, 1)
    ]
    kinds = [("module", "U10"), ("epoch", "i8"), *((name, "f8") for name in SiameseEpoch._fields)]
    table = np.array(rows, kinds)
    return {name: table[name].copy() for name, _ in kinds}


class EncoderModule:
    """Module M1: one encoder of instances and labels.

    Parameters
    ----------
    encoder : Encoder
        Started; learns.
    X, Z : CsrRows
        Instances, and texts or features of the labels; no row is blank.
    dim : int
        Of the embeddings.
    n_jobs : int or None
    estimator : str
        The estimator's name, for messages.
    reads : collection of str
        See `BatchSampler`.
    """

    moves_instances = True

    def __init__(
        self,
        encoder: Encoder,
        X: CsrRows,
        Z: CsrRows,
        dim: int,
        n_jobs: int | None,
        estimator: str,
        reads: Collection[str] = (),
    ) -> None:
        self._encoder, self._X, self._Z, self._n_jobs = encoder, X, Z, n_jobs
        self._dim, self._estimator = dim, estimator
        self.n_labels = Z.shape[0]
        self._passed: Any = None
        self._seen: np.ndarray | None = None
        if "last_seen" in reads:
            self._seen = np.zeros((X.shape[0], dim), X.dtype)

    def begin(
        self, rows: np.ndarray, labels: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the embeddings of some instances and labels, (n, dim) and (m, dim)."""
        inputs = joined_input([(self._X, rows), (self._Z, labels)])
        self._passed = self._encoder.forward(inputs, rng, n_jobs=self._n_jobs)
        name = f"{self._estimator}: V of forward of encoder {type(self._encoder).__name__}"
        shape = inputs.shape[0], self._dim
        V = checked(getattr(self._passed, "V", None), name, shape, self._X.dtype)
        if self._seen is not None:
            self._seen[rows] = V[: len(rows)]
        return V[: len(rows)], V[len(rows) :]

    def learn(
        self, by_instances: np.ndarray | None, by_labels: np.ndarray, rate: float, team: Team
    ) -> None:
        """Take a step with the gradients by what ``begin`` returned."""
        gradient = np.concatenate([by_instances, by_labels])  # type: ignore[list-item]
        self._encoder.learn(self._passed, gradient, rate, n_jobs=team.n_workers)

    def kept(self) -> dict[str, np.ndarray]:
        """Return the arrays of a checkpoint."""
        seen = {} if self._seen is None else {"seen": self._seen}
        return {**self._encoder._kept(), **seen}

    def resume(self, found: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint, in place."""
        if self._seen is not None:
            restore({"seen": self._seen}, found)
        self._encoder._resume(found)

    def instances(self) -> np.ndarray:
        """Return the embeddings of all instances, (n, dim)."""
        return self._encoded(self._X)

    def last_seen(self) -> np.ndarray:
        """Return the embeddings of all instances as of their last mini-batch, if all had one."""
        if self._seen is None or not self._seen.any(axis=1).all():
            return self.instances()
        return self._seen

    def labels(self) -> np.ndarray:
        """Return the embeddings of all labels, (n_labels, dim)."""
        return self._encoded(self._Z)

    def _encoded(self, rows: CsrRows) -> np.ndarray:
        return encoded(self._encoder, rows, self._dim, rows.dtype, self._n_jobs, self._estimator)


class ClassifierModule:
    """Module M2: a unit vector for each label; the instances' embeddings stay.

    Parameters
    ----------
    V : ndarray of float of shape (n, dim)
        Embeddings of the instances.
    W : ndarray of float of shape (n_labels, dim)
        Initial classifiers, changed in place. Rows have norm 1, or 0 before their first step.
    """

    moves_instances = False

    def __init__(self, V: np.ndarray, W: np.ndarray) -> None:
        self._V = V
        self._W = W
        self.n_labels = len(W)
        self._steps = LazyAdam((W.shape[0], W.shape[1]), W.dtype)
        self._at = np.empty(0, np.int32)

    def begin(
        self, rows: np.ndarray, labels: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the embeddings of some instances, and classifiers."""
        self._at = labels
        return self._V[rows], self._W[labels]

    def learn(
        self, by_instances: np.ndarray | None, by_labels: np.ndarray, rate: float, team: Team
    ) -> None:
        """Take a step along the sphere, and return to it."""
        m = len(self._at)
        W = self._W
        w = W[self._at]
        along = by_labels - np.einsum("ij,ij->i", by_labels, w)[:, None] * w
        entries = Entries(np.arange(m), np.ones(m, np.int64), self._at, np.ones(m, W.dtype))
        self._steps.step(W, entries, np.ascontiguousarray(along), rate, team)
        w = W[self._at]
        norms = np.sqrt(np.einsum("ij,ij->i", w, w))
        W[self._at] = w / np.where(norms == 0, 1, norms)[:, None]

    def kept(self) -> dict[str, np.ndarray]:
        """Return the arrays of a checkpoint."""
        return kept_steps([self._W], [self._steps])

    def resume(self, found: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint, in place."""
        resume_steps([self._W], [self._steps], found)

    def instances(self) -> np.ndarray:
        """Return the embeddings of all instances."""
        return self._V

    last_seen = instances

    def labels(self) -> np.ndarray:
        """Return the classifiers."""
        return self._W


class Pool(NamedTuple):
    """The labels of a mini-batch: one drawn for each instance, and further negatives.

    Attributes
    ----------
    labels : ndarray of int32 of shape (m,)
        Distinct, ascending.
    own : ndarray of int64 of shape (n,)
        The place of each instance's positive.
    """

    labels: np.ndarray
    own: np.ndarray

    @classmethod
    def of(cls, positives: np.ndarray, further: np.ndarray | None) -> "Pool":
        """Return the pool of a positive for each instance, and of further negatives, or -1."""
        labels = positives
        if further is not None:
            labels = np.concatenate([positives, further[further >= 0]])
        labels, places = np.unique(labels, return_inverse=True)
        return cls(labels.astype(np.int32), places[: len(positives)].astype(np.int64))


class SiameseTraining:
    """Epochs of the triplet loss ``sum_k [z_k - z_own + margin]_+`` over the negatives k.

    Parameters
    ----------
    module : EncoderModule or ClassifierModule
    examples : Examples
        Weights are divided by their mean: Adam does not step along gradients that are all tiny.
    sampler : BatchSampler
        Started.
    margin : float
    rate : float
        Initial step length of Adam; it falls linearly to 0.
    n_epochs, seed : int
    n_workers : int
        Threads, on which nothing depends.
    """

    def __init__(
        self,
        module: EncoderModule | ClassifierModule,
        examples: Examples,
        sampler: BatchSampler,
        *,
        margin: float,
        rate: float,
        n_epochs: int,
        seed: int,
        n_workers: int = 1,
    ) -> None:
        self._module, self._sampler, self._margin, self._rate = module, sampler, margin, rate
        self._n_epochs, self._seed, self._n_workers = n_epochs, seed, n_workers
        self._positives = examples.positives
        self._weight = examples.weight / examples.weight.mean()
        self._columns = np.full(module.n_labels, -1, np.int32)
        self._state = TrainingState(
            len(examples.weight),
            module.n_labels,
            examples.positives,
            lambda: encoder_input(examples.X),
            module.instances,
            module.last_seen,
            cache(lambda: module.instances().copy()),
            module.labels,
            module.moves_instances,
        )

    def fit(self, progress: Progress, loop: Loop) -> list[SiameseEpoch]:
        """Train all epochs that no checkpoint has; a callback may stop between two."""
        found = loop.get()
        reports = [] if found is None else self._resume(found)
        n_known = len(reports)
        for _ in reports:
            progress.known()
        with Team(self._n_workers) as team:
            for epoch in range(n_known, self._n_epochs):
                task = progress.begin()
                reports.append(self._epoch(epoch, team))
                loop.put(lambda: self._kept(reports))
                if progress.end(task, str(reports[-1])):
                    break
        if len(reports) > n_known:
            loop.put(lambda: self._kept(reports), is_final=True)
        return reports

    def _kept(self, reports: list[SiameseEpoch]) -> dict[str, np.ndarray]:
        return {**self._module.kept(), **self._sampler._kept(), "reports": np.array(reports)}

    def _resume(self, found: dict[str, np.ndarray]) -> list[SiameseEpoch]:
        """Continue from a checkpoint of a training that began like this one."""
        n_done = len(np.atleast_1d(found.get("reports", 0)))
        reports = np.empty((min(n_done, self._n_epochs), len(SiameseEpoch._fields)))
        restore({"reports": reports}, found)
        self._sampler._resume(found)
        self._module.resume(found)
        return [SiameseEpoch(*row) for row in reports.tolist()]

    def _epoch(self, epoch: int, team: Team) -> SiameseEpoch:
        began = time.perf_counter()
        self._sampler.refresh(epoch, self._state)
        indptr, labels = self._positives
        counts = np.diff(indptr)
        n = len(counts)
        rng = np.random.default_rng((self._seed, epoch))
        drawn = labels[indptr[:-1] + np.minimum((rng.random(n) * counts).astype(int), counts - 1)]
        total, n_violations, n_negatives, n_done = 0.0, 0, 0, 0
        for rows in self._sampler.batches(epoch):
            rate = self._rate * (1.0 - (epoch + n_done / n) / self._n_epochs)
            pool = Pool.of(drawn[rows], self._sampler.negatives(rows))
            loss, n_within, n_all = self._step(rows, pool, rate, rng, team)
            total, n_violations = total + loss, n_violations + n_within
            n_negatives += n_all
            n_done += len(rows)
        if n_done != n:
            raise ValueError(
                f"sampler {type(self._sampler).__name__}: batches must yield each of {n} instances "
                f"once in an epoch. Got {n_done}."
            )
        total /= self._weight.sum()
        return SiameseEpoch(total, n_violations / max(1, n_negatives), time.perf_counter() - began)

    def _step(
        self, rows: np.ndarray, pool: Pool, rate: float, rng: np.random.Generator, team: Team
    ) -> tuple[float, int, int]:
        """Take a step; return the summed loss, and the numbers of violations and of negatives."""
        V, Z = self._module.begin(rows, pool.labels, rng)
        gradient = V @ Z.T
        losses, n_violations, n_negatives = self._to_gradient(gradient, rows, pool, team)
        chosen = self._sampler.select(losses)
        if chosen is not None:
            gradient[~chosen] = 0
        # Each instance counts alike, however many labels are within its margin.
        gradient *= (1.0 / np.maximum(n_violations, 1)).astype(gradient.dtype)[:, None]
        by_instances = gradient @ Z if self._module.moves_instances else None
        self._module.learn(by_instances, gradient.T @ V, rate, team)
        return float(losses.sum()), int(n_violations.sum()), n_negatives

    def _to_gradient(
        self, scores: np.ndarray, rows: np.ndarray, pool: Pool, team: Team
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """Overwrite scores with the gradient by them.

        Return losses and violations by instance, and the number of all negatives.
        """
        n, m = scores.shape
        bounds, own = labels_of_rows(self._positives, rows)
        self._columns[pool.labels] = np.arange(m, dtype=np.int32)
        losses, n_violations = np.empty(n), np.empty(n, np.int64)
        weight = self._weight[rows].astype(scores.dtype)
        n_parts = team.n_workers if n * m >= _LEAST_WORK else 1
        cuts = np.linspace(0, n, n_parts + 1).astype(int)
        arrays = tuple(map(read_only, (pool.own, bounds, own, self._columns, weight)))

        def work(worker: int) -> None:
            if worker < n_parts:
                begin, end = cuts[worker], cuts[worker + 1]
                triplet_gradient(scores, *arrays, self._margin, begin, end, losses, n_violations)

        team.run(work)
        n_own = np.count_nonzero(self._columns[own] >= 0)
        self._columns[pool.labels] = -1
        return losses, n_violations, n * m - n_own
