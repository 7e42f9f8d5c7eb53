"""Mini-batch steps of scores that are linear in the instances or in a hidden layer.

The way of the data, for the rows of a few mini-batches::

    rows -> layer.visit -> V -> labels that may matter, of all           gradients
    and for each mini-batch
        layer.again -> V -> gradient by the scores of those labels       gradients
                              |-> gradient by V -> layer.backward
                              '-> rows of W take a step -> the index is told
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sklearn_xc.gradients import Batch, GradientMethod
from sklearn_xc.parallel.team import Team
from sklearn_xc.solvers.layers import HiddenLayer, IdentityLayer
from sklearn_xc.solvers.moving_rows import Entries, MovingRows, entry_places


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

    def batch(self, rows: np.ndarray, V: np.ndarray) -> Batch:
        """Return some of the instances."""
        starts = self.indptr[rows]
        at, bounds = entry_places(starts, self.indptr[rows + 1] - starts)
        return Batch(V, bounds, self.labels[at], self.weight[rows])


class Step(NamedTuple):
    """What a mini-batch has done.

    Attributes
    ----------
    n : int
        Its instances.
    loss : float
        Summed over them, before the step, over the labels that the method considers.
    n_moved : int
        Rows of W that moved.
    """

    n: int
    loss: float
    n_moved: int


def take_steps(
    layer: IdentityLayer | HiddenLayer,
    weights: MovingRows,
    sets: LabelSets,
    method: GradientMethod,
    rows: np.ndarray,
    batch_size: int,
    rate: Callable[[], float],
    ridge: float,
    team: Team,
) -> Iterator[Step]:
    """Take steps along the summed gradients of mini-batches, one after another.

    Parameters
    ----------
    layer : IdentityLayer or HiddenLayer
        Gives V; a hidden layer moves.
    weights : MovingRows of shape (n_labels, dim)
        W, with a further column if there is an intercept; moves.
    sets : LabelSets
        The labels of all instances.
    method : GradientMethod
        Where the gradient by the scores comes from. It searches for the labels of all mini-batches
        at the beginning.
    rows : ndarray of int64 of shape (n,)
        The instances.
    batch_size : int
        Of the mini-batches that they are cut into.
    rate : callable
        Returns, before each step, the factor of the gradient of the summed loss.
    ridge : float
        Half of it, times the squared norms of W, without intercepts, and of the layer's vectors, is
        added to the loss of each instance. That part of a step is implicit: it is stable at any
        rate.
    team : Team
        Threads, on which nothing depends.

    Yields
    ------
    Step
        After each.
    """
    whole = layer.visit(rows)
    batches = sets.batch(rows, whole.V)
    found = method.search(weights.values, weights.scaled(whole.V), team)
    for first in range(0, len(rows), batch_size):
        last = min(first + batch_size, len(rows))
        visit, batch = whole.part(first, last), batches.part(first, last)
        if first > 0 and layer.moving:
            visit = layer.again(visit)
        batch = batch._replace(V=weights.scaled(visit.V))
        own = None if found is None else found.part(first, last)
        gradient = method.of(weights.values, batch, own, team)
        n, room = gradient.labels.shape
        starts = np.arange(0, n * room, room)
        entries = Entries(starts, gradient.counts, gradient.labels.ravel(), gradient.values.ravel())
        by_V = weights.sums(entries) if layer.moving else None
        step = rate()
        moved, lengths = weights.step(entries, visit.V, step)
        method.moved(moved, lengths)
        if by_V is not None:
            layer.backward(visit, by_V, step)
        for matrix in (weights, *layer.moving):
            matrix.shrink(step * ridge * n)
        yield Step(n, float(gradient.losses.sum()), len(moved))
