"""Sums of feature vectors, with a residual block, on the unit sphere."""

from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from sklearn_xc._input.data import read_only
from sklearn_xc._input.given_vectors import GivenVectors
from sklearn_xc._parallel.threads import Team, count_threads, for_row_ranges, one_blas_thread
from sklearn_xc._state.schema import Array, Record, declares
from sklearn_xc._training.adam import Adam, Entries, LazyAdam, kept_steps, resume_steps
from sklearn_xc._training.kernels.row_moves import add_rows, squared_norms
from sklearn_xc.embedding.kernels.steps import (
    gradient_before_norms,
    gradient_before_rectifier,
    multiply_rows,
    normalise_rows,
    rectify_rows,
)

#: Inputs that a thread encodes together: 512 kB of float32 at 128 dimensions.
_CHUNK_ROWS = 1024
#: Products in a step of the feature vectors that are worth a second thread, started in 0.1 ms.
_LEAST_WORK = 2_000_000


class BagPass(NamedTuple):
    """A mini-batch after the forward pass.

    Attributes
    ----------
    V : ndarray of float of shape (n, dim)
        Embeddings.
    entries : Entries
        Features of the n inputs.
    U : ndarray of float of shape (n, dim)
        Sums of the vectors of the features.
    H : ndarray of float of shape (n, dim)
        Hidden units of the residual block.
    inverse_norms : ndarray of float of shape (n,)
        Inverse norms of the vectors before normalisation; 0 for inputs without features.
    """

    V: np.ndarray
    entries: Entries
    U: np.ndarray
    H: np.ndarray
    inverse_norms: np.ndarray


@declares(A=Array("real", "dim", "dim"), bias=Array("real", "dim"), B=Array("real", "dim", "dim"))
class Block(NamedTuple):
    """Parameters of a residual block ``u + max(u A + a, 0) B``, or gradients by them.

    Attributes
    ----------
    A, B : ndarray of float of shape (dim, dim)
    bias : ndarray of float of shape (dim,)
        The a above.
    """

    A: np.ndarray
    bias: np.ndarray
    B: np.ndarray


class BagGradients(NamedTuple):
    """Gradients by the parameters of a bag of embeddings.

    The gradient by the vector of feature j is ``sum_i entries_ij by_sums_i``, never written out in
    training.

    Attributes
    ----------
    entries : Entries
        Features of n inputs.
    by_sums : ndarray of float of shape (n, dim)
    by_block : Block
        Gradients by the residual block.
    """

    entries: Entries
    by_sums: np.ndarray
    by_block: Block


@declares(
    embeddings_=Array("real", "features", "dim"),
    is_given_=Array("bool", "features", optional=True),
    block_=Record("Block"),
)
class BagOfEmbeddings(BaseEstimator):
    """Encoder of sparse rows: the sum of their feature vectors, scaled to norm 1.

    With x a row of features, such as tf-idf, and E the vectors of all features::

        u = sum_j x_j E_j
        y = u + max(u A + a, 0) B       the residual block
        v = y / |y|

    At the start, B = 0 and the block is the identity. All parameters are trained by Adam; of E,
    only the rows of features that occur in a mini-batch.

    Parameters
    ----------
    embedding_init : array-like of shape (n_features, dim), tuple of (words, vectors), fitted \
            DecompMIPSSkipGram, or None, default=None
        Vectors of features from which training starts; None is for random ones. Features that are
        not among the words, or whose row is zero, start at random. The others are scaled such that
        their root-mean-square norm is that of random ones. Words are matched with feature names
        of a data frame. A fit clones the encoder, and clones are not
        fitted: pass ``(model.words_, model.vectors_)``, or scikit-learn's
        ``FrozenEstimator(model)``. This helps with few instances and labels without texts: see
        ``docs/word_vectors.md``.

    Attributes
    ----------
    embeddings_ : ndarray of float of shape (n_features, dim)
        E, in the dtype of the inputs at the start. Drawn from a normal distribution such that the
        root mean square of the norm of u over these inputs is 1; or from `embedding_init`.
    is_given_ : ndarray of bool of shape (n_features,) or None
        Which features have a vector in `embedding_init`: these are meaningful without training.
    block_ : Block
        The residual block.

    Notes
    -----
    An input with m features takes O(m dim) time, and the residual block O(dim ** 2).

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc.embedding.encoders import BagOfEmbeddings
    >>> inputs = csr_array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    >>> encoder = BagOfEmbeddings()
    >>> encoder.start(inputs, dim=4, seed=0)
    >>> np.linalg.norm(encoder.encode(inputs), axis=1).round(6)
    array([1., 1., 0.])

    Train the first two to become alike: the gradient of each is minus the embedding of the other.

    >>> rng = np.random.default_rng(0)
    >>> for _ in range(30):
    ...     passed = encoder.forward(inputs[:2], rng)
    ...     encoder.learn(passed, -passed.V[::-1], rate=0.05)
    >>> V = encoder.encode(inputs)
    >>> bool(V[0] @ V[1] > 0.9)
    True
    """

    reads: Literal["rows"] = "rows"

    def __init__(self, embedding_init: Any = None) -> None:
        self.embedding_init = embedding_init  # checked by GivenVectors

    def name_features(self, names: Any) -> None:
        """Receive the names of the features; see `Encoder.name_features`."""
        self._feature_names = names

    def start(self, inputs: sp.csr_array, dim: int, seed: int) -> None:
        """Make initial parameters; see `Encoder.start`."""
        rng = np.random.default_rng(seed)
        dtype = inputs.dtype
        indptr = inputs.indptr.astype(np.int64)
        squares = squared_norms(read_only(indptr[:-1]), np.diff(indptr), read_only(inputs.data))
        squares = squares[squares > 0]
        mean_square = float(squares.mean()) if len(squares) else 1.0
        shape = inputs.shape[1], dim
        self.embeddings_ = rng.standard_normal(shape, dtype)  # type: ignore[arg-type]
        self.embeddings_ *= dtype.type((dim * mean_square) ** -0.5)
        names = self.__dict__.pop("_feature_names", None)
        given = self._given()
        self.is_given_ = (
            None if given is None else given.replace(self.embeddings_, names, mean_square**-0.5)
        )
        A = rng.standard_normal((dim, dim), dtype)  # type: ignore[arg-type]
        A *= dtype.type(dim**-0.5)
        self.block_ = Block(A, np.zeros(dim, dtype), np.zeros((dim, dim), dtype))
        self._lazy_steps = LazyAdam(shape, dtype)
        self._block_steps = [Adam(part.shape, dtype) for part in self.block_]

    def finish(self) -> None:
        """Drop the optimiser's state; see `Encoder.finish`."""
        self.__dict__.pop("_lazy_steps", None)
        self.__dict__.pop("_block_steps", None)

    def _given(self) -> GivenVectors | None:
        """Return the vectors to start from, if there are some."""
        if self.embedding_init is None:
            return None
        return GivenVectors.read(self.embedding_init, f"{type(self).__name__}: embedding_init")

    def _kept(self) -> dict[str, np.ndarray]:
        """Return the arrays of a checkpoint."""
        return kept_steps(*self._learning())

    def _resume(self, found: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint after ``start`` with the same arguments, in place."""
        resume_steps(*self._learning(), found)

    def _learning(self) -> tuple[list[np.ndarray], list[Adam | LazyAdam]]:
        return [self.embeddings_, *self.block_], [self._lazy_steps, *self._block_steps]

    def parameter_shapes(self, n_features: int, dim: int) -> list[tuple[str, tuple[int, ...], int]]:
        """Return what ``start`` will allocate; see `Encoder.parameter_shapes`."""
        shapes = [
            ("vectors of the features and means of their gradients", (n_features, dim), 3),
            ("the residual block and means of its gradients", (2, dim, dim), 3),
        ]
        if (given := self._given()) is not None:
            shapes.append(("vectors to start from", given.values.shape, 1))
        return shapes

    def encode(self, inputs: sp.csr_array, n_jobs: int | None = None) -> np.ndarray:
        """Return embeddings, (n, dim); see `Encoder.encode`."""
        whole = self._entries(inputs)
        n = len(whole.starts)
        dim = self.embeddings_.shape[1]
        out = np.zeros((n, dim), self.embeddings_.dtype)

        def work(first: int, last: int) -> None:
            self._forward(whole.part(first, last), out[first:last])

        for_row_ranges(work, n, _CHUNK_ROWS, n_jobs)
        return out

    def forward(
        self, inputs: sp.csr_array, rng: np.random.Generator, n_jobs: int | None = None
    ) -> BagPass:
        """Return the embeddings of a mini-batch in training; see `Encoder.forward`."""
        entries = self._entries(inputs)
        V = np.zeros((len(entries.starts), self.embeddings_.shape[1]), self.embeddings_.dtype)
        return BagPass(V, entries, *self._forward(entries, V))

    def gradients(self, passed: BagPass, gradient: np.ndarray) -> BagGradients:
        """Return the gradients with respect to all parameters.

        Parameters
        ----------
        passed : BagPass
            From ``forward``.
        gradient : ndarray of float of shape (n, dim)
            With respect to ``passed.V``.

        Returns
        -------
        BagGradients
        """
        V, entries, U, H, inverse_norms = passed
        G = read_only(np.ascontiguousarray(gradient, V.dtype))
        by_Y = np.zeros_like(V)
        gradient_before_norms(G, read_only(V), read_only(inverse_norms), by_Y)
        A, _, B = self.block_
        with one_blas_thread():
            by_H = by_Y @ B.T
            gradient_before_rectifier(by_H, read_only(H))
            by_block = Block(U.T @ by_H, by_H.sum(axis=0), H.T @ by_Y)
            by_sums = by_H @ A.T
        by_sums += by_Y
        return BagGradients(entries, by_sums, by_block)

    def learn(
        self, passed: BagPass, gradient: np.ndarray, rate: float, n_jobs: int | None = None
    ) -> None:
        """Take a step; see `Encoder.learn`."""
        entries, by_sums, by_block = self.gradients(passed, gradient)
        n_products = int(entries.counts.sum()) * by_sums.shape[1]
        with Team(count_threads(n_jobs) if n_products >= _LEAST_WORK else 1) as team:
            self._lazy_steps.step(self.embeddings_, entries, by_sums, rate, team)
        for steps, values, by in zip(self._block_steps, self.block_, by_block, strict=True):
            steps.step(values, by, rate)

    def _forward(
        self, entries: Entries, V: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Write embeddings to V, and return U, H and the inverse norms."""
        U, H, Y, inverse_norms = *(np.zeros_like(V) for _ in range(3)), np.zeros(len(V), V.dtype)
        add_rows(read_only(self.embeddings_), *(read_only(part) for part in entries), U)
        A, bias, B = (read_only(part) for part in self.block_)
        multiply_rows(read_only(U), A, H)
        rectify_rows(H, bias)
        multiply_rows(read_only(H), B, Y)
        normalise_rows(read_only(U), read_only(Y), V, inverse_norms)
        return U, H, inverse_norms

    def _entries(self, inputs: sp.csr_array) -> Entries:
        """Return the features of the inputs, in the types that kernels read."""
        n_features = len(self.embeddings_)
        dtype = self.embeddings_.dtype
        if inputs.shape[1] != n_features:
            raise ValueError(
                f"{type(self).__name__}: inputs must have {n_features} features, as in start. Got "
                f"{inputs.shape[1]}."
            )
        indptr = inputs.indptr.astype(np.int64)
        ids = inputs.indices.astype(np.int32, copy=False)
        values = inputs.data.astype(dtype, copy=False)
        return Entries(indptr[:-1], np.diff(indptr), ids, values)
