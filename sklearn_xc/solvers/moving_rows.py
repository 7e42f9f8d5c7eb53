"""A matrix of which a few rows take a step at a time."""

from typing import NamedTuple

import numpy as np

from sklearn_xc._data import read_only
from sklearn_xc.kernels.steps.proxy_moves import move_proxies, write_squares
from sklearn_xc.kernels.steps.row_moves import add_rows, group_entries, move_rows

#: Rows are multiplied by their scale when it has come down to this: steps are divided by it.
_LEAST_SCALE = 1e-3


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
        A view of the values, without the intercept.

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
        n_entries = int(entries.counts.sum())
        rows = np.empty(min(n_entries, len(self.values)), np.int32)
        bounds = np.empty(len(rows) + 1, np.int64)
        order, owners = np.empty(n_entries, np.int64), np.empty(n_entries, np.int64)
        starts, counts, ids, values = entries
        n = group_entries(starts, counts, ids, self._slots, rows, bounds, order, owners)
        lengths = np.empty(n, self.values.dtype)
        self._move((rows, bounds, order, owners), values, V, rate, lengths)
        return rows[:n], lengths

    def _move(
        self, groups: tuple[np.ndarray, ...], values: np.ndarray, V: np.ndarray, rate: float,
        lengths: np.ndarray,
    ) -> None:  # fmt: skip
        """Take the step of ``step``, with entries grouped by row."""
        number = self.values.dtype.type
        rates = number(rate / self.scale), number(rate * (self._intercept_rate or 0.0))
        move_rows(self.values, *groups, values, V, *rates, self._squares, lengths)


class MovingProxies(MovingRows):
    """Proxies [1]_, points of which a few take a step at a time, as rows that score by distance.

    The row of a proxy y is ``(2 y, -||y||^2)``, and its inner product with ``(v, 1)`` is ``||v||^2
    - ||v - y||^2``: where the largest inner products are, the nearest proxies are. So what searches
    and scores rows with an intercept does so with proxies. What differs is the step, along the
    gradient by y. A step of plain gradients is damped where they are large, see ``move_proxies``.

    Parameters
    ----------
    values : ndarray of float of shape (n_rows, dim + 1)
        Twice the proxies, and their negative squared norms, both divided by the scale: the latter
        twice. Changed in place.
    squares : ndarray of float of shape (n_rows, dim + 1) or None
        As in `MovingRows`; the last column stays as it is.
    scale : float
        What proxies are to be multiplied by.

    References
    ----------
    .. [1] Y. Movshovitz-Attias, A. Toshev, T. K. Leung, S. Ioffe and S. Singh, "No fuss distance
       metric learning using proxies", ICCV 2017.
    """

    def __init__(self, values: np.ndarray, squares: np.ndarray | None, scale: float = 1.0) -> None:
        super().__init__(values, squares, scale, intercept_rate=0.0)

    @staticmethod
    def rows_of(proxies: np.ndarray) -> np.ndarray:
        """Return the rows of some proxies, (n_rows, dim), which have a further column."""
        values = np.empty((len(proxies), proxies.shape[1] + 1), proxies.dtype)
        np.multiply(proxies, 2, out=values[:, :-1])
        write_squares(values)
        return values

    @staticmethod
    def offsets_of(vectors: np.ndarray) -> np.ndarray:
        """Return ``-||y||^2`` of proxies, given ``2 y``, (n_rows, dim)."""
        squares = np.einsum("kj,kj->k", vectors, vectors, dtype=np.float64)
        return (-0.25 * squares).astype(vectors.dtype)

    def scaled(self, V: np.ndarray) -> np.ndarray:
        """Return queries: their inner products with the values are ``||v||^2 - ||v - y||^2``.

        That is V times the scale, and beside it the square of the scale.
        """
        queries = super().scaled(V)
        queries[:, -1] = self.scale**2
        return queries

    def apply_scale(self) -> None:
        """Multiply the proxies by the scale, which rises to 1."""
        if self.scale != 1.0:
            super().apply_scale()
            write_squares(self.values)

    def _move(
        self, groups: tuple[np.ndarray, ...], values: np.ndarray, V: np.ndarray, rate: float,
        lengths: np.ndarray,
    ) -> None:  # fmt: skip
        number = self.values.dtype.type
        how = number(rate), number(self.scale)
        move_proxies(self.values, *groups, values, V, *how, self._squares, lengths)
