"""Mini-batch steps of scores that are linear in the instances or in a hidden layer.

The way of the data, for a mini-batch of rows::

    rows -> layer.forward -> V -> gradient by the scores of some labels    label_gradients.py
                                    |-> gradient by V -> layer.backward
                                    '-> rows of W take a step -> the index is told
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sklearn_xc._validation import CsrRows, DenseRows, read_only
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


class MovingRows:
    """A matrix of which a few rows take a step at a time.

    Parameters
    ----------
    values : ndarray of float of shape (n_rows, dim)
        Changed in place.
    squares : ndarray of float of shape (n_rows, dim) or None
        Sums of squared gradients, by whose roots steps are divided (Adagrad [1]_); changed in
        place. None is for plain steps.

    References
    ----------
    .. [1] J. Duchi, E. Hazan and Y. Singer, "Adaptive subgradient methods for online learning and
       stochastic optimization", JMLR 12, 2011.
    """

    def __init__(self, values: np.ndarray, squares: np.ndarray | None) -> None:
        self.values = values
        self._squares = np.empty((0, 0), values.dtype) if squares is None else squares
        self._slots = np.full(len(values), -1, np.int32)

    def sums(self, entries: Entries) -> np.ndarray:
        """Return ``sum_k entries_ik values_k`` for each row i of the entries, (n, dim)."""
        from sklearn_xc.kernels.row_moves import add_rows

        out = np.empty((len(entries.starts), self.values.shape[1]), self.values.dtype)
        add_rows(read_only(self.values), *(read_only(part) for part in entries), out)
        return out

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
            Of their moves.
        """
        from sklearn_xc.kernels.row_moves import group_entries, move_rows

        n_entries = int(entries.counts.sum())
        rows = np.empty(min(n_entries, len(self.values)), np.int32)
        bounds = np.empty(len(rows) + 1, np.int64)
        order, owners = np.empty(n_entries, np.int64), np.empty(n_entries, np.int64)
        starts, counts, ids, values = entries
        n = group_entries(starts, counts, ids, self._slots, rows, bounds, order, owners)
        rate, lengths = self.values.dtype.type(rate), np.empty(n, self.values.dtype)
        move_rows(self.values, rows, bounds, order, owners, values, V, rate, self._squares, lengths)
        return rows[:n], lengths


class IdentityLayer:
    """The instances themselves."""

    def __init__(self, X: DenseRows) -> None:
        self._X = X

    def forward(self, rows: np.ndarray) -> np.ndarray:
        """Return what the scores of some instances are linear in, (len(rows), dim)."""
        return self._X.values[rows]


class HiddenLayer:
    """Sums of the trained vectors of the features of sparse instances.

    Label and feature vectors can drive each other up without end. A step along the gradient by a
    sum moves that sum by the squared norm of the instance times as much: where this is above 1, it
    is divided out [1]_. And the gradient is cut at norm 1 [2]_.

    References
    ----------
    .. [1] S. Haykin, "Adaptive filter theory", chapter 6 (normalised least mean squares), 4th
       edition, 2002.
    .. [2] R. Pascanu, T. Mikolov and Y. Bengio, "On the difficulty of training recurrent neural
       networks", ICML 2013.
    """

    def __init__(self, X: CsrRows, vectors: MovingRows) -> None:
        self._X, self._vectors = X, vectors
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        squares = np.bincount(
            row, weights=np.square(X.data, dtype=np.float64), minlength=X.shape[0]
        )
        self._factors = (1.0 / np.maximum(1.0, squares)).astype(X.dtype)

    def forward(self, rows: np.ndarray) -> np.ndarray:
        """Return what the scores of some instances are linear in, (len(rows), dim)."""
        return self._vectors.sums(self._entries(rows))

    def backward(self, rows: np.ndarray, gradient: np.ndarray, rate: float) -> None:
        """Take a step with the gradient by what ``forward`` returned."""
        norms = np.sqrt(np.einsum("ij,ij->i", gradient, gradient))
        factors = self._factors[rows] / np.maximum(norms, 1.0)
        self._vectors.step(self._entries(rows), gradient * factors[:, None], rate)

    def _entries(self, rows: np.ndarray) -> Entries:
        starts = self._X.indptr[rows]
        return Entries(starts, self._X.indptr[rows + 1] - starts, self._X.indices, self._X.data)


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
        bounds = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(self.indptr[rows + 1] - starts, out=bounds[1:])
        at = np.arange(bounds[-1]) + np.repeat(starts - bounds[:-1], np.diff(bounds))
        return Batch(V, bounds, self.labels[at], self.weight[rows])


def take_step(
    layer: IdentityLayer | HiddenLayer,
    weights: MovingRows,
    sets: LabelSets,
    method: GradientMethod,
    rows: np.ndarray,
    rate: float,
    team: Team,
) -> tuple[float, int]:
    """Take a step along the summed gradient of a mini-batch.

    Parameters
    ----------
    layer : IdentityLayer or HiddenLayer
        Gives V; a hidden layer moves.
    weights : MovingRows of shape (n_labels, dim)
        W; moves.
    sets : LabelSets
        The labels of all instances.
    method : GradientMethod
        Where the gradient by the scores comes from.
    rows : ndarray of int64 of shape (n,)
        The instances of the mini-batch.
    rate : float
        The step is this times the gradient of the summed loss.
    team : Team
        Threads, on which nothing depends.

    Returns
    -------
    loss : float
        Summed over the instances, before the step, over the labels that the method considers.
    n_moved : int
        Rows of W that moved.
    """
    V = layer.forward(rows)
    gradient = method.of(weights.values, sets.batch(rows, V), team)
    n, room = gradient.labels.shape
    starts = np.arange(0, n * room, room)
    entries = Entries(starts, gradient.counts, gradient.labels.ravel(), gradient.values.ravel())
    by_V = weights.sums(entries) if isinstance(layer, HiddenLayer) else None
    moved, lengths = weights.step(entries, V, rate)
    method.moved(moved, lengths)
    if isinstance(layer, HiddenLayer) and by_V is not None:
        layer.backward(rows, by_V, rate)
    return float(gradient.losses.sum()), len(moved)
