"""Embeddings of instances: dense rows themselves, or sums of trained feature vectors."""

from typing import NamedTuple

import numpy as np

from sklearn_xc._input.data import CsrRows, DenseRows, entry_places, read_only
from sklearn_xc._training.adam import Entries
from sklearn_xc._training.kernels.row_moves import squared_norms
from sklearn_xc.decomposition.moving_rows import MovingRows


class EmbeddedRows(NamedTuple):
    """Embedded instances of a mini-batch.

    Attributes
    ----------
    V : ndarray of float of shape (n, dim)
        The embeddings, in which scores are linear.
    entries : Entries or None
        Features that were not dropped, of a hidden layer.
    """

    V: np.ndarray
    entries: Entries | None

    def part(self, first: int, last: int) -> "EmbeddedRows":
        """Return a range of the instances."""
        entries = None if self.entries is None else self.entries.part(first, last)
        return EmbeddedRows(self.V[first:last], entries)


def make_layer(
    X: CsrRows | DenseRows, vectors: np.ndarray | None, dropout: float = 0.0
) -> "IdentityLayer | HiddenLayer":
    """Return the layer of some feature vectors; without any, instances are their own embeddings."""
    if vectors is None:
        return IdentityLayer(X)
    # A stored zero would take part in the draw of dropout, and in the rounding of sums.
    sparse = X.to_csr().astype(vectors.dtype).without_zeros()
    return HiddenLayer(sparse, MovingRows(vectors), dropout)


class IdentityLayer:
    """No hidden layer: the embeddings are the instances, as dense rows.

    Parameters
    ----------
    X : CsrRows or DenseRows of shape (n, dim)
    """

    moving: tuple[MovingRows, ...] = ()

    def __init__(self, X: CsrRows | DenseRows) -> None:
        self._X = X

    def begin_pass(self, rng: np.random.Generator) -> None:
        """Draw nothing: there is no dropout."""

    def forward(self, rows: np.ndarray) -> np.ndarray:
        """Return the embeddings of some rows, without dropout."""
        return self._X.take(rows).to_dense().values + 0  # no zeros are negative

    def embed(self, rows: np.ndarray) -> EmbeddedRows:
        """Return the embeddings of some rows, with dropout."""
        return EmbeddedRows(self.forward(rows), None)


class HiddenLayer:
    """Sums of trained feature vectors, weighted by the entries of sparse instances.

    Two things keep label and feature vectors from growing without bound: steps are divided by the
    squared norm of the instance where it is above 1 [1]_, and gradients are clipped at norm 1 [2]_.

    Parameters
    ----------
    X : CsrRows of shape (n, n_features)
    vectors : MovingRows of shape (n_features, dim)
    dropout : float
        Fraction of the features of an instance dropped at random at each visit [3]_. The others
        are scaled up, so that the sum is the same on average.

    Attributes
    ----------
    moving : tuple of MovingRows
        The vectors, which take steps.

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
        return HiddenLayer(self._X, MovingRows(vectors))

    def begin_pass(self, rng: np.random.Generator) -> None:
        """Set the generator of the dropout."""
        self._rng = rng

    def forward(self, rows: np.ndarray) -> np.ndarray:
        """Return the embeddings of some rows, without dropout."""
        return self.vectors.sums(self._entries(rows))

    def embed(self, rows: np.ndarray) -> EmbeddedRows:
        """Return the embeddings of some rows, with dropout."""
        entries = self._entries(rows)
        if self._dropout > 0.0:
            entries = self._with_dropout(entries)
        return EmbeddedRows(self.vectors.sums(entries), entries)

    def embed_again(self, embedded: EmbeddedRows) -> EmbeddedRows:
        """Return embeddings by the current vectors, and the same dropout."""
        assert embedded.entries is not None
        return EmbeddedRows(self.vectors.sums(embedded.entries), embedded.entries)

    def backward(self, embedded: EmbeddedRows, gradient: np.ndarray, rate: float) -> None:
        """Take a step, given the gradient with respect to the embeddings, (n, dim)."""
        assert embedded.entries is not None
        starts, counts, _, values = embedded.entries
        squares = squared_norms(starts, counts, read_only(values))
        norms = np.sqrt(np.einsum("ij,ij->i", gradient, gradient))
        factors = 1.0 / (np.maximum(squares, 1.0) * np.maximum(norms, 1.0))
        gradient = gradient * factors.astype(gradient.dtype)[:, None]
        self.vectors.step(embedded.entries, gradient, rate)

    def _entries(self, rows: np.ndarray) -> Entries:
        starts = self._X.indptr[rows]
        return Entries(starts, self._X.indptr[rows + 1] - starts, self._X.indices, self._X.data)

    def _with_dropout(self, entries: Entries) -> Entries:
        """Drop some entries at random, and scale the others."""
        starts, counts, ids, values = entries
        at, bounds = entry_places(starts, counts)
        is_kept = self._rng.random(len(at), np.float32) >= self._dropout
        kept_before = np.zeros(len(at) + 1, np.int64)
        np.cumsum(is_kept, out=kept_before[1:])
        bounds, at = kept_before[bounds], at[is_kept]
        scale = values.dtype.type(1.0 / (1.0 - self._dropout))
        return Entries(bounds[:-1], np.diff(bounds), ids[at], scale * values[at])
