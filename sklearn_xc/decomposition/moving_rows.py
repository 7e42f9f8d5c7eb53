"""Matrices of which some rows take a gradient step at a time."""

import numpy as np

from sklearn_xc._input.data import read_only
from sklearn_xc._training.adam import Entries, group_by_row
from sklearn_xc._training.kernels.row_moves import add_rows, move_proxies, move_rows


def with_intercepts(vectors: np.ndarray, intercepts: np.ndarray) -> np.ndarray:
    """Return vectors with intercepts in a last column."""
    rows = np.empty((len(vectors), vectors.shape[1] + 1), vectors.dtype)
    rows[:, :-1], rows[:, -1] = vectors, intercepts
    return rows


class MovingRows:
    """A matrix of which some rows take a step at a time.

    Parameters
    ----------
    values : ndarray of float of shape (n_rows, dim)
        Changed in place.
    intercept_rate : float or None
        If not None, the last column is an intercept. It takes steps at this fraction of the rate
        of the other columns.

    Attributes
    ----------
    vectors : ndarray of float
        A view of the values, without the intercept.
    """

    def __init__(self, values: np.ndarray, intercept_rate: float | None = None) -> None:
        self.values, self._intercept_rate = values, intercept_rate
        self.vectors = values if intercept_rate is None else values[:, :-1]
        self._slots = np.full(len(values), -1, np.int32)

    def queries(self, V: np.ndarray) -> np.ndarray:
        """Return V with a 1 appended for an intercept: inner products with `values` are scores."""
        if self._intercept_rate is None:
            return V
        return with_intercepts(V, np.ones(len(V), V.dtype))

    def sums(self, entries: Entries) -> np.ndarray:
        """Return ``sum_k entries_ik row_k`` for each row i of the entries, without intercepts."""
        out = np.empty((len(entries.starts), self.values.shape[1]), self.values.dtype)
        add_rows(read_only(self.values), *(read_only(part) for part in entries), out)
        return np.ascontiguousarray(out[:, : self.vectors.shape[1]])

    def step(self, entries: Entries, V: np.ndarray, rate: float) -> tuple[np.ndarray, np.ndarray]:
        """Take a step along the gradients ``sum_i entries_ik V_i`` of rows k.

        Parameters
        ----------
        entries : Entries
            n rows, whose columns are rows of this matrix.
        V : ndarray of float of shape (n, dim)
        rate : float

        Returns
        -------
        rows : ndarray of int32 of shape (m,)
            The rows that moved, distinct.
        lengths : ndarray of float of shape (m,)
            How far their values moved.
        """
        n, groups = group_by_row(entries, len(self.values), self._slots)
        lengths = np.empty(n, self.values.dtype)
        self._move(groups, entries.values, V, rate, lengths)
        return groups[0][:n], lengths

    def _move(
        self,
        groups: tuple[np.ndarray, ...],
        values: np.ndarray,
        V: np.ndarray,
        rate: float,
        lengths: np.ndarray,
    ) -> None:
        """Take the step of ``step``, given the entries grouped by row."""
        number = self.values.dtype.type
        rates = number(rate), number(rate * (self._intercept_rate or 0.0))
        move_rows(self.values, *groups, values, V, *rates, lengths)


class MovingProxies(MovingRows):
    """Proxies [1]_, points that take steps, as rows whose inner products rank by distance.

    The row of a proxy y is ``(2 y, -||y||^2)``: its inner product with ``(v, 1)`` is ``||v||^2 -
    ||v - y||^2``. Steps follow the gradient with respect to y; see ``move_proxies``.

    Parameters
    ----------
    vectors : ndarray of float of shape (n_rows, dim)
        Twice the proxies.

    References
    ----------
    .. [1] Y. Movshovitz-Attias, A. Toshev, T. K. Leung, S. Ioffe and S. Singh, "No fuss distance
       metric learning using proxies", ICCV 2017.
    """

    def __init__(self, vectors: np.ndarray) -> None:
        super().__init__(with_intercepts(vectors, self.offsets_of(vectors)), intercept_rate=0.0)

    @staticmethod
    def offsets_of(vectors: np.ndarray) -> np.ndarray:
        """Return ``-||y||^2`` of proxies, given ``2 y``."""
        squares = np.einsum("kj,kj->k", vectors, vectors, dtype=np.float64)
        return (-0.25 * squares).astype(vectors.dtype)

    def _move(
        self,
        groups: tuple[np.ndarray, ...],
        values: np.ndarray,
        V: np.ndarray,
        rate: float,
        lengths: np.ndarray,
    ) -> None:
        move_proxies(self.values, *groups, values, V, self.values.dtype.type(rate), lengths)
