"""Mini-batch steps of label vectors, and of the hidden layer below them.

The rows of a few mini-batches are searched for together::

    rows -> layer.embed -> V -> candidate labels of all                     gradients
    for each mini-batch
        layer.embed_again -> V -> gradient by the scores of the candidates  gradients
                             |-> gradient by V -> layer.backward
                             '-> rows of W take a step -> the index is updated
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from sklearn_xc._parallel.threads import Team
from sklearn_xc._training.adam import Entries
from sklearn_xc.decomposition._training_set import LabelSets
from sklearn_xc.decomposition.gradients.protocol import GradientMethod
from sklearn_xc.decomposition.layers import HiddenLayer, IdentityLayer
from sklearn_xc.decomposition.moving_rows import MovingRows


class Step(NamedTuple):
    """Result of a mini-batch.

    Attributes
    ----------
    n : int
        Number of instances.
    loss : float
        Sum over the instances before the step, over the labels that the method considers.
    n_moved : int
        Number of rows of W that moved.
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
    team: Team,
) -> Iterator[Step]:
    """Take a step along the summed gradient of each mini-batch, one after another.

    Parameters
    ----------
    layer : IdentityLayer or HiddenLayer
        Embeds the instances; a hidden layer moves.
    weights : MovingRows of shape (n_labels, dim)
        W, with a further column if there are intercepts; moves.
    sets : LabelSets
        The labels of all instances.
    method : GradientMethod
        Gives the gradient by the scores; searches once for all mini-batches.
    rows : ndarray of int64 of shape (n,)
        The instances, cut into mini-batches of `batch_size`.
    rate : callable
        Returns the learning rate of the next step, the factor of the gradient of the summed loss.
    team : Team
        Threads; they do not affect the result.

    Yields
    ------
    Step
    """
    hidden = layer if isinstance(layer, HiddenLayer) else None
    whole = layer.embed(rows)
    batches = sets.batch(rows, whole.V)
    found = method.search(weights.values, weights.queries(whole.V), team)
    for first in range(0, len(rows), batch_size):
        last = min(first + batch_size, len(rows))
        embedded = whole.part(first, last)
        batch = batches.part(first, last)
        if first > 0 and hidden is not None:
            embedded = hidden.embed_again(embedded)
        batch = batch._replace(V=weights.queries(embedded.V))
        own = None if found is None else found.part(first, last)
        gradient = method.of(weights.values, batch, own, team)
        n, room = gradient.labels.shape
        starts = np.arange(0, n * room, room)
        entries = Entries(starts, gradient.counts, gradient.labels.ravel(), gradient.values.ravel())
        by_V = None if hidden is None else weights.sums(entries)
        step = rate()
        moved, lengths = weights.step(entries, embedded.V, step)
        method.moved(moved, lengths)
        if hidden is not None and by_V is not None:
            hidden.backward(embedded, by_V, step)
        yield Step(n, float(gradient.losses.sum()), len(moved))
