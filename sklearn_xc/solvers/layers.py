"""What scores are linear in: dense instances themselves, or trained sums over their features."""

from typing import NamedTuple

import numpy as np

from sklearn_xc._data import CsrRows, DenseRows, read_only
from sklearn_xc.kernels.steps.row_moves import squared_norms
from sklearn_xc.solvers.moving_rows import Entries, MovingRows, entry_places


class EmbeddedRows(NamedTuple):
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

    def part(self, first: int, last: int) -> "EmbeddedRows":
        """Return some of the instances."""
        entries = None if self.entries is None else self.entries.part(first, last)
        return EmbeddedRows(self.V[first:last], entries)


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

    def visit(self, rows: np.ndarray) -> EmbeddedRows:
        """Return some instances as they are seen in training."""
        return EmbeddedRows(self.forward(rows), None)

    def again(self, visit: EmbeddedRows) -> EmbeddedRows:
        """Return the same."""
        return visit

    def backward(self, visit: EmbeddedRows, gradient: np.ndarray, rate: float) -> None:
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

    def with_vectors(self, vectors: np.ndarray) -> "HiddenLayer":
        """Return a layer over the same instances with other vectors, and without dropout."""
        return HiddenLayer(self._X, MovingRows(vectors, None))

    def begin_pass(self, rng: np.random.Generator) -> None:
        """Draw what is left out from here on."""
        self._rng = rng

    def forward(self, rows: np.ndarray) -> np.ndarray:
        """Return what the scores of some instances are linear in, (len(rows), dim)."""
        return self.vectors.sums(self._entries(rows))

    def visit(self, rows: np.ndarray) -> EmbeddedRows:
        """Return some instances as they are seen in training."""
        entries = self._entries(rows)
        if self._dropout > 0.0:
            entries = self._thinned(entries)
        return EmbeddedRows(self.vectors.sums(entries), entries)

    def again(self, visit: EmbeddedRows) -> EmbeddedRows:
        """Return a visit with the vectors as they stand now."""
        assert visit.entries is not None
        return EmbeddedRows(self.vectors.sums(visit.entries), visit.entries)

    def backward(self, visit: EmbeddedRows, gradient: np.ndarray, rate: float) -> None:
        """Take a step with the gradient by the V of a visit, (n, dim)."""
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
