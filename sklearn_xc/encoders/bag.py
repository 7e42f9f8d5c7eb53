"""Sums of feature vectors, with a residual block, on the unit sphere."""

from collections.abc import Sequence
from numbers import Real
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_xc._data import CsrRows, read_only
from sklearn_xc._sklearn import Interval
from sklearn_xc.parallel.row_ranges import for_row_ranges, one_blas_thread
from sklearn_xc.parallel.team import Team
from sklearn_xc.solvers.adam import Adam, LazyAdam
from sklearn_xc.solvers.batch_sgd import Entries

#: Inputs that a thread encodes together: 512 kB of float32 at 128 dimensions.
_TOGETHER = 1024


class BagVisit(NamedTuple):
    """A mini-batch as a bag of embeddings sees it.

    Attributes
    ----------
    V : ndarray of float of shape (n, dim)
        Embeddings.
    entries : Entries
        Features of the n inputs, but for those that are left out.
    U : ndarray of float of shape (n, dim)
        Sums of the vectors of the features.
    H : ndarray of float of shape (n, dim) or None
        Hidden units of the residual block, if there is one.
    inverse_norms : ndarray of float of shape (n,)
        Of the vectors before they have norm 1; 0 for inputs without features.
    """

    V: np.ndarray
    entries: Entries
    U: np.ndarray
    H: np.ndarray | None
    inverse_norms: np.ndarray


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

    That by the vector of feature j is ``sum_i entries_ij by_sums_i``, which is never written out in
    training.

    Attributes
    ----------
    entries : Entries
        Of n inputs.
    by_sums : ndarray of float of shape (n, dim)
    by_block : Block or None
        By the residual block, if there is one.
    """

    entries: Entries
    by_sums: np.ndarray
    by_block: Block | None

    def by_embeddings(self, n_features: int) -> np.ndarray:
        """Return the gradient by the feature vectors, (n_features, dim): slow and large."""
        out = np.zeros((n_features, self.by_sums.shape[1]), self.by_sums.dtype)
        starts, counts, ids, values = self.entries
        for start, count, by_sum in zip(starts, counts, self.by_sums, strict=True):
            own = slice(start, start + count)
            np.add.at(out, ids[own], values[own, None] * by_sum)
        return out


class BagOfEmbeddings(BaseEstimator):
    """Encoder of sparse rows: the sum of the vectors of their features, scaled to norm 1.

    With x a row of features, tf-idf for instance, and E the vectors of all features::

        u = sum_j x_j E_j
        y = u + max(u A + a, 0) B       the residual block
        v = y / |y|

    The block is the identity at the start, where B = 0. All parameters learn by Adam; of E only the
    rows of features that occur in a mini-batch.

    Parameters
    ----------
    residual : bool, default=True
        Whether there is a residual block; otherwise y = u.
    dropout : float, default=0.0
        The share of the features of an input that are left out of a visit, at random [1]_; below 1.
        The others count so much more that u is the same on average.

    Attributes
    ----------
    embeddings_ : ndarray of float of shape (n_features, dim)
        E, of the dtype of the inputs at the start. Normal at random, such that u has norm 1 in the
        root mean square over these inputs.
    block_ : Block or None
        The residual block, if there is one.
    embedding_steps_, block_steps_ : LazyAdam and tuple of Adam
        What steps depend on besides gradients: twice the memory of the parameters.

    Notes
    -----
    An input with m features takes O(m dim) time, and the residual block O(dim ** 2).

    References
    ----------
    .. [1] N. Srivastava, G. Hinton, A. Krizhevsky, I. Sutskever and R. Salakhutdinov, "Dropout: a
       simple way to prevent neural networks from overfitting", JMLR 15, 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_xc._checks import DenseRows
    >>> from sklearn_xc.encoders import BagOfEmbeddings
    >>> inputs = DenseRows(np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0]])).to_csr()
    >>> encoder = BagOfEmbeddings()
    >>> encoder.start(inputs, dim=4, seed=0)
    >>> np.linalg.norm(encoder.encode(inputs), axis=1).round(6)
    array([1., 0.])
    """

    _parameter_constraints: dict = {  # noqa: RUF012
        "residual": ["boolean"],
        "dropout": [Interval(Real, 0, 1, closed="left")],
    }

    def __init__(self, residual: bool = True, dropout: float = 0.0) -> None:
        self.residual = residual
        self.dropout = dropout

    def start(self, inputs: CsrRows, dim: int, seed: int) -> None:
        """Make initial parameters; see `Encoder.start`."""
        from sklearn_xc.kernels.steps.row_moves import squared_norms

        self._validate_params()
        rng, dtype = np.random.default_rng(seed), inputs.dtype
        starts, counts = read_only(inputs.indptr[:-1]), np.diff(inputs.indptr)
        squares = squared_norms(starts, counts, inputs.data)
        squares = squares[squares > 0]
        mean_square = float(squares.mean()) if len(squares) else 1.0
        shape = inputs.shape[1], dim
        self.embeddings_ = rng.standard_normal(shape, dtype)  # type: ignore[arg-type]
        self.embeddings_ *= dtype.type((dim * mean_square) ** -0.5)
        self.embedding_steps_ = LazyAdam(shape, dtype)
        self.block_: Block | None = None
        self.block_steps_: tuple[Adam, ...] = ()
        if self.residual:
            A = rng.standard_normal((dim, dim), dtype)  # type: ignore[arg-type]
            A *= dtype.type(dim**-0.5)
            self.block_ = Block(A, np.zeros(dim, dtype), np.zeros((dim, dim), dtype))
            self.block_steps_ = tuple(Adam(part.shape, dtype) for part in self.block_)

    def parameter_shapes(self, n_features: int, dim: int) -> list[tuple[str, tuple[int, ...], int]]:
        """Return what ``start`` will make; see `Encoder.parameter_shapes`."""
        shapes: list[tuple[str, tuple[int, ...], int]]
        shapes = [("vectors of the features and means of their gradients", (n_features, dim), 3)]
        if self.residual:
            shapes.append(("the residual block and means of its gradients", (2, dim, dim), 3))
        return shapes

    def encode(
        self, inputs: CsrRows, rows: np.ndarray | None = None, n_jobs: int | None = None
    ) -> np.ndarray:
        """Return embeddings, (n, dim); see `Encoder.encode`."""
        whole = self._entries(inputs, rows)
        n, dim = len(whole.starts), self.embeddings_.shape[1]
        out = np.zeros((n, dim), self.embeddings_.dtype)

        def work(first: int, last: int) -> None:
            self._forward(whole.part(first, last), out[first:last])

        for_row_ranges(work, n, _TOGETHER, n_jobs)
        return out

    def visit(
        self, parts: Sequence[tuple[CsrRows, np.ndarray]], rng: np.random.Generator
    ) -> BagVisit:
        """Return the embeddings of a mini-batch in training; see `Encoder.visit`."""
        entries = self._joined([self._entries(inputs, rows) for inputs, rows in parts])
        if self.dropout > 0.0:
            self._thin(entries, rng)
        V = np.zeros((len(entries.starts), self.embeddings_.shape[1]), self.embeddings_.dtype)
        return BagVisit(V, entries, *self._forward(entries, V))

    def gradients(self, visit: BagVisit, gradient: np.ndarray) -> BagGradients:
        """Return the gradients by all parameters from that by ``visit.V``, (n, dim)."""
        from sklearn_xc.kernels.embedding.residual import (
            gradient_before_norms,
            gradient_before_rectifier,
        )

        V, entries, U, H, inverse_norms = visit
        G = read_only(np.ascontiguousarray(gradient, V.dtype))
        by_Y = np.zeros_like(V)
        gradient_before_norms(G, read_only(V), read_only(inverse_norms), by_Y)
        if H is None or self.block_ is None:
            return BagGradients(entries, by_Y, None)
        A, _, B = self.block_
        with one_blas_thread():
            by_H = by_Y @ B.T
            gradient_before_rectifier(by_H, read_only(H))
            by_block = Block(U.T @ by_H, by_H.sum(axis=0), H.T @ by_Y)
            by_sums = by_H @ A.T
        by_sums += by_Y
        return BagGradients(entries, by_sums, by_block)

    def learn(self, visit: BagVisit, gradient: np.ndarray, rate: float, team: Team) -> None:
        """Take a step; see `Encoder.learn`."""
        entries, by_sums, by_block = self.gradients(visit, gradient)
        self.embedding_steps_.step(self.embeddings_, entries, by_sums, rate, team)
        if self.block_ is not None and by_block is not None:
            for steps, values, by_values in zip(
                self.block_steps_, self.block_, by_block, strict=True
            ):
                steps.step(values, by_values, rate)

    def _forward(
        self, entries: Entries, V: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """Write embeddings to V, and return U, H and the inverse norms of a visit."""
        from sklearn_xc.kernels.embedding.residual import (
            multiply_rows,
            normalise_rows,
            rectify_rows,
        )
        from sklearn_xc.kernels.steps.row_moves import add_rows

        U, H, inverse_norms = np.zeros_like(V), None, np.zeros(len(V), V.dtype)
        add_rows(read_only(self.embeddings_), *(read_only(part) for part in entries), U)
        Y = U
        if self.block_ is not None:
            A, bias, B = (read_only(part) for part in self.block_)
            H, Y = np.zeros_like(V), np.zeros_like(V)
            multiply_rows(read_only(U), A, H)
            rectify_rows(H, bias)
            multiply_rows(read_only(H), B, Y)
        normalise_rows(read_only(U), read_only(Y), H is not None, V, inverse_norms)
        return U, H, inverse_norms

    def _entries(self, inputs: CsrRows, rows: np.ndarray | None) -> Entries:
        n_features, dtype = len(self.embeddings_), self.embeddings_.dtype
        if inputs.shape[1] != n_features:
            raise ValueError(
                f"{type(self).__name__}: inputs have {inputs.shape[1]} features, the encoder was "
                f"started with {n_features}."
            )
        starts, ends = inputs.indptr[:-1], inputs.indptr[1:]
        if rows is not None:
            starts, ends = starts[rows], ends[rows]
        return Entries(starts, ends - starts, inputs.indices, inputs.data.astype(dtype, copy=False))

    def _joined(self, parts: Sequence[Entries]) -> Entries:
        """Return copies of the entries of all parts, one row after another."""
        from sklearn_xc.kernels.rows.entries import copy_entries

        counts = np.concatenate([part.counts for part in parts])
        ends = np.cumsum(counts)
        n_entries = int(ends[-1]) if len(ends) else 0
        ids, values = np.zeros(n_entries, np.int32), np.zeros(n_entries, self.embeddings_.dtype)
        at = 0
        for part in parts:
            at = copy_entries(*(read_only(array) for array in part), at, ids, values)
        return Entries(ends - counts, counts, ids, values)

    def _thin(self, entries: Entries, rng: np.random.Generator) -> None:
        """Leave some entries out, and scale the others."""
        from sklearn_xc.kernels.rows.entries import thin_entries

        draws = rng.random(len(entries.ids), np.float32)
        scale = entries.values.dtype.type(1.0 / (1.0 - self.dropout))
        thin_entries(*entries, read_only(draws), np.float32(self.dropout), scale)
