"""The one place where samplers are called: what they may read, and what they give, checked."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from sklearn_xc._parts import new_part
from sklearn_xc.samplers import SAMPLERS
from sklearn_xc.samplers.protocol import BatchSampler, TrainingState

_METHODS = ("start", "refresh", "batches", "negatives", "select")
_EMBEDDINGS = ("instances", "last_seen", "initial", "labels")


class CheckedSampler:
    """A sampler whose answers are checked, in time proportional to their size.

    Parameters
    ----------
    given : str or BatchSampler
        A key of ``SAMPLERS``, or an instance, which is cloned.
    estimator : str
        Name of the estimator, for messages.

    Raises
    ------
    ValueError
        For what is no sampler, and from each method for an answer against the protocol.
    """

    def __init__(self, given: Any, estimator: str) -> None:
        who, protocol = f"{estimator}: sampler", "sklearn_xc.samplers.BatchSampler"
        self._sampler: BatchSampler = new_part(given, SAMPLERS, _METHODS, who, protocol)
        self._name = f"{who}: {type(self._sampler).__name__}"
        self.reads: Collection[str] = getattr(self._sampler, "reads", ())
        if isinstance(self.reads, str) or not set(self.reads) <= set(_EMBEDDINGS):
            raise ValueError(
                f"{self._name}.reads must be a collection of some of {_EMBEDDINGS}. Got "
                f"{self.reads!r}."
            )

    def start(self, batch_size: int, n_epochs: int, seed: int, n_jobs: int | None) -> None:
        """Begin a training; see `BatchSampler.start`."""
        self._sampler.start(batch_size, n_epochs, seed, n_jobs)
        self._batch_size, self._n, self._n_labels = batch_size, 0, 0
        n_negatives: Any = getattr(self._sampler, "n_negatives", 0)
        if not isinstance(n_negatives, Integral) or n_negatives < 0:
            raise ValueError(
                f"{self._name}.n_negatives must be a non-negative integer. Got {n_negatives!r}."
            )
        self.n_negatives = int(n_negatives)

    @property
    def kind(self) -> type:
        """The sampler's class."""
        return type(self._sampler)

    def kept(self) -> dict[str, np.ndarray]:
        """Return what a checkpoint keeps of a sampler of this package."""
        return self._sampler._kept()  # type: ignore[attr-defined,no-any-return]

    def resume(self, found: dict[str, np.ndarray], epoch: int, state: TrainingState) -> None:
        """Continue, after ``start``, as after an epoch whose ``kept`` is `found`."""
        self._n, self._n_labels = state.n, state.n_labels
        self._sampler._resume(found, epoch, state)  # type: ignore[attr-defined]

    def refresh(self, epoch: int, state: TrainingState) -> None:
        """Let the sampler look at the training; see `BatchSampler.refresh`."""
        self._n, self._n_labels = state.n, state.n_labels
        hidden: dict[str, Any] = {
            what: self._refusal(what) for what in _EMBEDDINGS if what not in self.reads
        }
        self._sampler.refresh(epoch, replace(state, **hidden))

    def _refusal(self, what: str) -> Any:
        def refuse() -> np.ndarray:
            raise ValueError(
                f"{self._name}.reads must name {what!r}, which the sampler asks for: "
                f"the memory of a fit is planned by it. Got {self.reads!r}."
            )

        return refuse

    def batches(self, epoch: int) -> Iterator[np.ndarray]:
        """Yield the instances of each mini-batch; see `BatchSampler.batches`."""
        must = f"{self._name}.batches must yield each of {self._n} instances once"
        given: Any = self._sampler.batches(epoch)
        if not hasattr(given, "__iter__"):
            raise ValueError(f"{must}, in ndarrays of integers. Got {type(given).__name__}.")
        place, n_seen = np.full(self._n, -1, np.int32), 0  # of each row in its mini-batch
        for rows in given:
            if not _is_integers(rows, 1) or not 0 < len(rows) <= self._batch_size:
                raise ValueError(
                    f"{must}, in ndarrays of 1 to {self._batch_size} integers. Got {_kind(rows)}."
                )
            if rows.min() < 0 or rows.max() >= self._n:
                wrong = rows[(rows < 0) | (rows >= self._n)][0]
                raise ValueError(f"{must}, as rows 0 to {self._n - 1}. Got row {wrong}.")
            order, is_repeated = np.arange(len(rows), dtype=np.int32), place[rows] >= 0
            place[rows] = order
            is_repeated |= place[rows] != order
            if is_repeated.any():
                raise ValueError(f"{must}. Got row {rows[is_repeated.argmax()]} twice.")
            n_seen += len(rows)
            yield rows.astype(np.int64, copy=False)
        if n_seen < self._n:
            got = f"{n_seen} rows without row {np.argmin(place)}" if n_seen else "no mini-batch"
            raise ValueError(f"{must}. Got {got}.")

    def negatives(self, rows: np.ndarray) -> np.ndarray | None:
        """Return further labels for each instance; see `BatchSampler.negatives`."""
        labels: Any = self._sampler.negatives(rows)
        if labels is None:
            return None
        must, shape = f"{self._name}.negatives must return", (len(rows), self.n_negatives)
        if not _is_integers(labels, 2) or labels.shape != shape:
            raise ValueError(
                f"{must} None or an ndarray of integers of shape (rows, n_negatives), {shape}. Got "
                f"{_kind(labels)}."
            )
        if labels.size and (labels.min() < -1 or labels.max() >= self._n_labels):
            wrong = labels[(labels < -1) | (labels >= self._n_labels)][0]
            raise ValueError(
                f"{must} labels 0 to {self._n_labels - 1}, or -1 for none. Got {wrong}."
            )
        return np.asarray(labels)

    def select(self, losses: np.ndarray) -> np.ndarray | None:
        """Return which instances of a mini-batch count; see `BatchSampler.select`."""
        counts: Any = self._sampler.select(losses)
        is_array = isinstance(counts, np.ndarray)
        if counts is None or (is_array and counts.dtype == bool and counts.shape == losses.shape):
            return counts  # type: ignore[no-any-return]
        raise ValueError(
            f"{self._name}.select must return None or an ndarray of bool of shape "
            f"{losses.shape}. Got {_kind(counts)}."
        )


def _is_integers(given: Any, ndim: int) -> bool:
    return isinstance(given, np.ndarray) and given.ndim == ndim and given.dtype.kind in "iu"


def _kind(given: Any) -> str:
    if not isinstance(given, np.ndarray):
        return type(given).__name__
    return f"an ndarray of {given.dtype} of shape {given.shape}"
