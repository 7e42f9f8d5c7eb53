"""Mini-batches, gradients with respect to their scores, and the methods that compute these."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from sklearn_xc._parallel.threads import Team
from sklearn_xc.decomposition.kernels.label_gradients import label_gradient_kernels
from sklearn_xc.decomposition.kernels.message_passing import message_passing_kernel
from sklearn_xc.decomposition.losses import LabelSetLoss
from sklearn_xc.search.protocol import Candidates, MipsIndex

#: Threads share the instances of a mini-batch that have this many scores together.
LEAST_WORK = 500_000
#: Labels with a larger gradient are active in message passing. Source: section 4 of the paper.
_ACTIVE_ABOVE = 1e-3


class RowBatch(NamedTuple):
    """Instances of a mini-batch.

    Attributes
    ----------
    V : ndarray of float of shape (n, dim)
        Scores are ``V @ W.T``.
    indptr : ndarray of int64 of shape (n + 1,)
        The labels of instance i are ``positives[indptr[i] : indptr[i + 1]]``.
    positives : ndarray of int32 of shape (indptr[-1],)
        At least one label per instance.
    weight : ndarray of float64 of shape (n,)
        Sample weights.
    """

    V: np.ndarray
    indptr: np.ndarray
    positives: np.ndarray
    weight: np.ndarray

    def part(self, first: int, last: int) -> "RowBatch":
        """Return a range of the instances."""
        indptr = self.indptr[first : last + 1]
        positives = self.positives[indptr[0] : indptr[-1]]
        return RowBatch(self.V[first:last], indptr - indptr[0], positives, self.weight[first:last])


class LabelGradient(NamedTuple):
    """Non-zero gradients with respect to the scores, times the sample weights.

    Attributes
    ----------
    labels : ndarray of int32 of shape (n, room)
        In row i, the first ``counts[i]`` are valid.
    values : ndarray of float of shape (n, room)
        Gradients of these labels.
    counts : ndarray of int64 of shape (n,)
        Number of labels of each instance.
    losses : ndarray of float64 of shape (n,)
        Losses over the labels considered.
    """

    labels: np.ndarray
    values: np.ndarray
    counts: np.ndarray
    losses: np.ndarray

    @classmethod
    def empty(cls, n: int, room: int, dtype: np.dtype) -> "LabelGradient":
        """Return uninitialised space for n instances with up to `room` labels each."""
        labels, values = np.empty((n, room), np.int32), np.empty((n, room), dtype)
        return cls(labels, values, np.empty(n, np.int64), np.empty(n))

    def part(self, first: int, last: int) -> "LabelGradient":
        """Return a view of a range of the instances."""
        return LabelGradient(*(array[first:last] for array in self))


@dataclass(frozen=True)
class SetLoss:
    """Losses and gradients of mini-batches.

    Attributes
    ----------
    gradient, support_floor : callable
        Functions of a `LabelSetLoss`.
    parameters : tuple of float
        Arguments that both receive.
    """

    gradient: Callable[..., Any]
    support_floor: Callable[..., Any]
    parameters: tuple[float, ...]

    @classmethod
    def of(cls, loss: LabelSetLoss) -> "SetLoss":
        """Return the set loss of a loss, with a copy of its parameters."""
        return cls(loss.gradient, loss.support_floor, tuple(map(float, loss.parameters)))

    def over_found(
        self, W: np.ndarray, batch: RowBatch, found: Candidates, is_exact: bool, out: LabelGradient
    ) -> np.ndarray:
        """Write the gradient over the positives and the labels found to `out`.

        `is_exact` is whether the scores of `found` are inner products, not estimates. Returns,
        for each instance, whether labels beyond the last one found may have a gradient.
        """
        wants_more = np.empty(len(batch.V), np.bool_)
        searched = label_gradient_kernels(self.gradient, self.support_floor).searched
        how = is_exact, self.parameters
        searched(W, tuple(batch), tuple(found), *how, tuple(out), wants_more)
        return wants_more

    def over_all(self, scores: np.ndarray, batch: RowBatch, out: LabelGradient) -> None:
        """Write the gradient over all labels to `out`; scores (n, n_labels) are overwritten."""
        label_gradient_kernels(self.gradient, self.support_floor).dense(
            scores, batch.indptr, batch.positives, batch.weight, self.parameters, *out
        )

    def by_messages(
        self,
        blocks: Sequence[Candidates],
        batch: RowBatch,
        scores: np.ndarray,
        n_rounds: int,
        out: LabelGradient,
    ) -> None:
        """Write the gradient after `n_rounds` of message passing between blocks of columns.

        `scores`, float64 (n_blocks, n_pairs), are those of the positives within each block.
        """
        found = tuple(np.stack(arrays) for arrays in zip(*blocks, strict=True))
        couple = message_passing_kernel(self.gradient)
        positives = batch.indptr, batch.positives, scores
        how = self.parameters, _ACTIVE_ABOVE, n_rounds
        couple(found, positives, batch.weight, *how, tuple(out))


@dataclass(frozen=True)
class GradientTask:
    """What a training asks of a gradient.

    Attributes
    ----------
    loss : SetLoss
        Gives losses and gradients with respect to scores.
    make_index : callable
        Returns a new index of the requested kind.
    n_candidates : int
        Number of labels that a search retrieves, or that are drawn.
    n_columns : int
        Number of columns of W, without intercepts.
    is_hidden : bool
        Whether instances are embedded by a hidden layer.
    seed : int
        Random seed.
    """

    loss: Any
    make_index: Callable[[], MipsIndex]
    n_candidates: int
    n_columns: int
    is_hidden: bool = False
    seed: int = 0


class GradientMethod(ABC):
    """Computes gradients at the current weights; holds the indexes that follow them.

    Attributes
    ----------
    looks_ahead : bool
        Whether the candidates that ``search`` finds serve for several steps, not only for the
        current weights.
    searches : bool
        Whether there is an index, of which ``recall(W, V, k)`` returns the recall.
    """

    looks_ahead: bool = False
    searches: bool = False

    def build(self, W: np.ndarray) -> None:  # noqa: B027
        """Prepare for W, (n_labels, dim), which moves in place; called again when it has moved far.

        The last column holds intercepts if there are any.
        """

    def search(self, W: np.ndarray, V: np.ndarray, team: Team) -> Candidates | None:
        """Return labels that may matter for the instances V, or None if nothing is searched."""
        return None

    @abstractmethod
    def of(
        self, W: np.ndarray, batch: RowBatch, found: Candidates | None, team: Team
    ) -> LabelGradient:
        """Return the gradient by the scores, given what ``search`` found for the batch."""

    def moved(self, rows: np.ndarray, lengths: np.ndarray) -> None:  # noqa: B027
        """Register that distinct rows of W have moved, and how far."""


class Gradient(Protocol):
    """Parameters of a gradient method.

    Attributes
    ----------
    default_index : str or MipsIndex
        The index, also for predictions, if the estimator's ``index`` is None.
    """

    @property
    def default_index(self) -> str | MipsIndex:
        """Return the index to use if the estimator has none."""

    def start(self, task: GradientTask) -> GradientMethod:
        """Return the method of one training; ValueError if the parameters do not suit the task."""


def share_instances(team: Team, n: int, n_labels: int, work: Callable[[int, int], Any]) -> None:
    """Call ``work(first, last)`` for ranges of n instances in all threads, or once if it is little.

    Results must not depend on the ranges.
    """
    if team.n_workers == 1 or n * n_labels < LEAST_WORK:
        work(0, n)
        return
    bounds = np.linspace(0, n, team.n_workers + 1).astype(int)

    def run(worker: int) -> None:
        if bounds[worker] < bounds[worker + 1]:
            work(bounds[worker], bounds[worker + 1])

    team.run(run)
