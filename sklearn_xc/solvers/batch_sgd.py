"""Mini-batch steps of scores that are linear in the instances or in a hidden layer.

The way of the data, for the rows of a few mini-batches::

    rows -> layer.visit -> V -> labels that may matter, of all           label_gradients.py
    and for each mini-batch
        layer.again -> V -> gradient by the scores of those labels       label_gradients.py
                              |-> gradient by V -> layer.backward
                              '-> rows of W take a step -> the index is told
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sklearn_xc._data import CsrRows, DenseRows, read_only
from sklearn_xc.parallel.team import Team
from sklearn_xc.solvers.label_gradients import Batch, GradientMethod


class Entries(NamedTuple):
    """The non-zeros of n sparse rows, in flat arrays with gaps.

    Attributes
    ----------
    starts, counts : ndarray of int64 of shape (n,)
        Where those of each row begin, and how many there are.
    ids : ndarray of int32
        Their columns.
    values : ndarray of float
    """

    starts: np.ndarray
    counts: np.ndarray
    ids: np.ndarray
    values: np.ndarray

    def part(self, first: int, last: int) -> "Entries":
        """Return some of the rows."""
        return self._replace(starts=self.starts[first:last], counts=self.counts[first:last])


def entry_places(starts: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where entries of rows are that begin there, and where those of each row end up."""
    bounds = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=bounds[1:])
    return np.arange(bounds[-1]) + np.repeat(starts - bounds[:-1], counts), bounds


#: Rows are multiplied by their scale when it has come down to this: steps are divided by it.
_LEAST_SCALE = 1e-3


class MovingRows:
    """A matrix of which a few rows take a step at a time, while all of them may shrink.

    The matrix is ``scale * values``: to shrink is one multiplication.

    Parameters
    ----------
    values : ndarray of float of shape (n_rows, dim)
        Changed in place.
    squares : ndarray of float of shape (n_rows, dim) or None
        Sums of squared gradients, by whose roots steps are divided (Adagrad [1]_); changed in
        place. None is for plain steps.
    scale : float
        See above.
    intercept_rate : float or None
        None, unless the last column is an intercept: it takes steps for an instance's 1, at this
        share of the rate of the others, and neither shrinks nor is scaled.

    Attributes
    ----------
    vectors : ndarray of float
        A view of the values, but for the intercept.

    References
    ----------
    .. [1] J. Duchi, E. Hazan and Y. Singer, "Adaptive subgradient methods for online learning and
       stochastic optimization", JMLR 12, 2011.
    """

    def __init__(
        self,
        values: np.ndarray,
        squares: np.ndarray | None,
        scale: float = 1.0,
        intercept_rate: float | None = None,
    ) -> None:
        self.values, self.scale, self._intercept_rate = values, scale, intercept_rate
        self.vectors = values if intercept_rate is None else values[:, :-1]
        self._squares = np.empty((0, 0), values.dtype) if squares is None else squares
        self._slots = np.full(len(values), -1, np.int32)

    def scaled(self, V: np.ndarray) -> np.ndarray:
        """Return queries: their inner products with the values are the scores of the rows.

        That is V times the scale, and beside it a 1 for an intercept.
        """
        if self._intercept_rate is not None:
            queries = np.empty((len(V), self.values.shape[1]), V.dtype)
            np.multiply(V, V.dtype.type(self.scale), out=queries[:, :-1])
            queries[:, -1] = 1
            return queries
        return V if self.scale == 1.0 else V * V.dtype.type(self.scale)

    def shrink(self, by: float) -> None:
        """Divide all rows by ``1 + by``."""
        self.scale /= 1.0 + by
        if self.scale < _LEAST_SCALE:
            self.apply_scale()

    def apply_scale(self) -> None:
        """Multiply the values by the scale, which rises to 1."""
        if self.scale != 1.0:
            self.vectors *= self.values.dtype.type(self.scale)
            self.scale = 1.0

    def sums(self, entries: Entries) -> np.ndarray:
        """Return ``sum_k entries_ik row_k`` for each row i of the entries, without intercepts."""
        from sklearn_xc.kernels.steps.row_moves import add_rows

        out = np.empty((len(entries.starts), self.values.shape[1]), self.values.dtype)
        add_rows(read_only(self.values), *(read_only(part) for part in entries), out)
        out = out[:, : self.vectors.shape[1]]
        return out * out.dtype.type(self.scale) if self.scale != 1.0 else np.ascontiguousarray(out)

    def step(self, entries: Entries, V: np.ndarray, rate: float) -> tuple[np.ndarray, np.ndarray]:
        """Take a step with the gradients ``sum_i entries_ik V_i``, and return what moved how far.

        Parameters
        ----------
        entries : Entries
            n rows, with columns that are rows of this matrix.
        V : ndarray of float of shape (n, dim)
        rate : float

        Returns
        -------
        rows : ndarray of int32 of shape (m,)
            Distinct.
        lengths : ndarray of float of shape (m,)
            Of the moves of their values.
        """
        from sklearn_xc.kernels.steps.row_moves import group_entries, move_rows

        n_entries = int(entries.counts.sum())
        rows = np.empty(min(n_entries, len(self.values)), np.int32)
        bounds = np.empty(len(rows) + 1, np.int64)
        order, owners = np.empty(n_entries, np.int64), np.empty(n_entries, np.int64)
        starts, counts, ids, values = entries
        n = group_entries(starts, counts, ids, self._slots, rows, bounds, order, owners)
        number = self.values.dtype.type
        rates = number(rate / self.scale), number(rate * (self._intercept_rate or 0.0))
        lengths = np.empty(n, self.values.dtype)
        move_rows(
            self.values, rows, bounds, order, owners, values, V, *rates, self._squares, lengths
        )
        return rows[:n], lengths


class Visit(NamedTuple):
    """Instances as a layer sees them.

    Attributes
    ----------
    V : ndarray of float of shape (n, dim)
        What their scores are linear in.
    entries : Entries or None
        Their features, of a hidden layer those that are not left out.
    """

    V: np.ndarray
    entries: Entries | None

    def part(self, first: int, last: int) -> "Visit":
        """Return some of the instances."""
        entries = None if self.entries is None else self.entries.part(first, last)
        return Visit(self.V[first:last], entries)


class IdentityLayer:
    """The instances themselves, of a sparse X some at a time as dense rows.

    Parameters
    ----------
    X : CsrRows or DenseRows of shape (n, dim)

    Attributes
    ----------
    moving : tuple of MovingRows
        What takes steps: nothing.
    """

    moving: tuple[MovingRows, ...] = ()

    def __init__(self, X: CsrRows | DenseRows) -> None:
        self._X = X

    def begin_pass(self, rng: np.random.Generator) -> None:
        """Nothing is drawn."""

    def forward(self, rows: np.ndarray) -> np.ndarray:
        """Return what the scores of some instances are linear in, (len(rows), dim)."""
        return self._X.take(rows).to_dense().values + 0  # no zeros are negative

    def visit(self, rows: np.ndarray) -> Visit:
        """Return some instances as they are seen in training."""
        return Visit(self.forward(rows), None)

    def again(self, visit: Visit) -> Visit:
        """Return the same."""
        return visit

    def backward(self, visit: Visit, gradient: np.ndarray, rate: float) -> None:
        """Nothing learns."""


class HiddenLayer:
    """Sums of the trained vectors of the features of sparse instances.

    Label and feature vectors can drive each other up without end. A step along the gradient by a
    sum moves that sum by the squared norm of the instance times as much: where this is above 1, it
    is divided out [1]_. And the gradient is cut at norm 1 [2]_. The intercepts of labels have no
    part in either: they are beside the sums, bounded by themselves.

    Parameters
    ----------
    X : CsrRows of shape (n, n_features)
    vectors : MovingRows of shape (n_features, dim)
    dropout : float
        The share of the features of an instance that are left out at each visit, at random [3]_.
        The others count so much more that the sum is the same on average.

    Attributes
    ----------
    moving : tuple of MovingRows
        What takes steps: the vectors.

    References
    ----------
    .. [1] S. Haykin, "Adaptive filter theory", chapter 6 (normalised least mean squares), 4th
       edition, 2002.
    .. [2] R. Pascanu, T. Mikolov and Y. Bengio, "On the difficulty of training recurrent neural
       networks", ICML 2013.
    .. [3] N. Srivastava, G. Hinton, A. Krizhevsky, I. Sutskever and R. Salakhutdinov, "Dropout: a
       simple way to prevent neural networks from overfitting", JMLR 15, 2014.
    """

    def __init__(self, X: CsrRows, vectors: MovingRows, dropout: float = 0.0) -> None:
        self._X, self.vectors, self._dropout = X, vectors, dropout
        self.moving = (vectors,)
        self._rng = np.random.default_rng(0)

    def begin_pass(self, rng: np.random.Generator) -> None:
        """Draw what is left out from here on."""
        self._rng = rng

    def forward(self, rows: np.ndarray) -> np.ndarray:
        """Return what the scores of some instances are linear in, (len(rows), dim)."""
        return self.vectors.sums(self._entries(rows))

    def visit(self, rows: np.ndarray) -> Visit:
        """Return some instances as they are seen in training."""
        entries = self._entries(rows)
        if self._dropout > 0.0:
            entries = self._thinned(entries)
        return Visit(self.vectors.sums(entries), entries)

    def again(self, visit: Visit) -> Visit:
        """Return a visit with the vectors as they stand now."""
        assert visit.entries is not None
        return Visit(self.vectors.sums(visit.entries), visit.entries)

    def backward(self, visit: Visit, gradient: np.ndarray, rate: float) -> None:
        """Take a step with the gradient by the V of a visit, (n, dim)."""
        from sklearn_xc.kernels.steps.row_moves import squared_norms

        assert visit.entries is not None
        starts, counts, _, values = visit.entries
        squares = squared_norms(starts, counts, read_only(values))
        norms = np.sqrt(np.einsum("ij,ij->i", gradient, gradient))
        factors = 1.0 / (np.maximum(squares, 1.0) * np.maximum(norms, 1.0))
        gradient = gradient * factors.astype(gradient.dtype)[:, None]
        self.vectors.step(visit.entries, gradient, rate)

    def _entries(self, rows: np.ndarray) -> Entries:
        starts = self._X.indptr[rows]
        return Entries(starts, self._X.indptr[rows + 1] - starts, self._X.indices, self._X.data)

    def _thinned(self, entries: Entries) -> Entries:
        """Leave some entries out, and scale the others."""
        starts, counts, ids, values = entries
        at, bounds = entry_places(starts, counts)
        is_kept = self._rng.random(len(at), np.float32) >= self._dropout
        kept_before = np.zeros(len(at) + 1, np.int64)
        np.cumsum(is_kept, out=kept_before[1:])
        bounds, at = kept_before[bounds], at[is_kept]
        scale = values.dtype.type(1.0 / (1.0 - self._dropout))
        return Entries(bounds[:-1], np.diff(bounds), ids[at], scale * values[at])


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
