"""Adam, for all entries of an array or only for the rows that have a gradient.

Adam divides steps by the root of the mean squared gradient, entry by entry [1]_.

References
----------
.. [1] D. P. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR 2015.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._input.data import read_only
from sklearn_xc._parallel.threads import Team
from sklearn_xc._state.checkpoints import restore
from sklearn_xc._state.schema import Array, Number, declares
from sklearn_xc._training.kernels.row_moves import adam_rows, adam_step, group_entries

#: Decay rates of the two means. Source: the paper.
_KEPT_FIRST, _KEPT_SECOND = 0.9, 0.999
_EPSILON = 1e-8


class Entries(NamedTuple):
    """The non-zeros of n sparse rows, in flat arrays with gaps.

    Attributes
    ----------
    starts, counts : ndarray of int64 of shape (n,)
        Where the entries of each row begin, and how many there are.
    ids : ndarray of int32
        Columns.
    values : ndarray of float
    """

    starts: np.ndarray
    counts: np.ndarray
    ids: np.ndarray
    values: np.ndarray

    def part(self, first: int, last: int) -> "Entries":
        """Return a range of the rows."""
        return self._replace(starts=self.starts[first:last], counts=self.counts[first:last])


def group_by_row(
    entries: Entries, n_rows: int, slots: np.ndarray
) -> tuple[int, tuple[np.ndarray, ...]]:
    """Return how many rows of a matrix have entries, and what ``group_entries`` writes of them.

    `slots` is int32 of shape (n_rows,) and holds -1, also afterwards.
    """
    n_entries = int(entries.counts.sum())
    rows = np.zeros(min(n_entries, n_rows), np.int32)
    bounds = np.zeros(len(rows) + 1, np.int64)
    order, owners = np.zeros(n_entries, np.int64), np.zeros(n_entries, np.int64)
    starts, counts, ids, _ = (read_only(part) for part in entries)
    n = group_entries(starts, counts, ids, slots, rows, bounds, order, owners)
    return n, (rows, bounds, order, owners)


class _Steps:
    """The means that both classes below keep, and the factors of their next step."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.first, self.second = np.zeros(shape, dtype), np.zeros(shape, dtype)
        self.n_steps = 0

    def _next(self, rate: float) -> tuple[tuple[Any, Any], float, float]:
        """Return the shares of the gradient in the means, the step, and the root of a correction.

        The means start at 0. The step is the rate, corrected for this.
        """
        self.n_steps += 1
        number = self.first.dtype.type
        root = (1.0 - _KEPT_SECOND**self.n_steps) ** 0.5
        shares = number(1.0 - _KEPT_FIRST), number(1.0 - _KEPT_SECOND)
        return shares, rate * root / (1.0 - _KEPT_FIRST**self.n_steps), root


@declares(first=Array("real", ...), second=Array("real", ...), n_steps=Number("int", least=0))
class Adam(_Steps):
    """Steps of a dense array.

    Parameters
    ----------
    shape : tuple of int
    dtype : dtype
        Of the array: float32 or float64.

    Attributes
    ----------
    first, second : ndarray
        Means of the gradients and of their squares, from 0 on.
    n_steps : int
        So far.

    Notes
    -----
    Source: algorithm 1 of [1]_ with its settings, 0.9, 0.999 and 1e-8.

    References
    ----------
    .. [1] D. P. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR 2015.
    """

    def step(self, values: np.ndarray, gradient: np.ndarray, rate: float) -> None:
        """Take a step.

        Parameters
        ----------
        values : ndarray of float
            The array, C-contiguous; changed in place.
        gradient : ndarray of float
            C-contiguous.
        rate : float
        """
        shares, step, root = self._next(rate)
        number = values.dtype.type
        arrays = (array.reshape(-1) for array in (values, self.first, self.second))
        gradient = read_only(gradient.reshape(-1))
        # Both sides of the paper's ratio times the root of the correction of the squares.
        adam_step(*arrays, gradient, shares, number(step), number(_EPSILON * root))


@declares(
    first=Array("real", "rows", "dim"),
    second=Array("real", "rows", "dim"),
    n_steps=Number("int", least=0),
    _slots=Array("int32", "rows", least=-1, below=0),
)
class LazyAdam(_Steps):
    """Steps of a matrix in which few rows have a gradient at a time.

    Only those rows and their means move: the means of a row are over the steps at which it had a
    gradient, while the bias correction counts all steps, as in torch's ``SparseAdam``.

    Parameters
    ----------
    shape : tuple of int
        (n_rows, dim).
    dtype : dtype
        Of the matrix: float32 or float64.

    Attributes
    ----------
    first, second : ndarray of shape (n_rows, dim)
        Means of the gradients and of their squares, from 0 on.
    n_steps : int
        So far.

    Notes
    -----
    Source: the order of computation at the end of section 2 of [1]_, whose epsilon is not
    corrected; its settings, 0.9, 0.999 and 1e-8. Differs from it in that rows are passed over.

    References
    ----------
    .. [1] D. P. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR 2015.
    """

    def __init__(self, shape: tuple[int, int], dtype: np.dtype) -> None:
        super().__init__(shape, dtype)
        self._slots = np.full(shape[0], -1, np.int32)

    def step(
        self, values: np.ndarray, entries: Entries, V: np.ndarray, rate: float, team: Team
    ) -> None:
        """Take a step with the gradients ``sum_i entries_ik V_i`` of rows k.

        Parameters
        ----------
        values : ndarray of float of shape (n_rows, dim)
            The matrix, C-contiguous; changed in place. Rows without an entry stay.
        entries : Entries
            n rows, with columns that are rows of the matrix, and values of its type.
        V : ndarray of float of shape (n, dim)
            C-contiguous, of the same type.
        rate : float
        team : Team
            Threads, on which nothing depends.
        """
        shares, step, _ = self._next(rate)
        n, groups = group_by_row(entries, len(values), self._slots)
        bounds = groups[1]
        groups = tuple(map(read_only, groups))
        factors, V = read_only(entries.values), read_only(V)
        matrices = values, self.first, self.second
        numbers = values.dtype.type(step), values.dtype.type(_EPSILON)
        # Each thread gets about equally many entries and rows; a row belongs to one thread.
        work = bounds[: n + 1] + np.arange(n + 1)
        cuts = np.searchsorted(work, work[-1] * np.arange(team.n_workers + 1) / team.n_workers)

        def move(worker: int) -> None:
            begin, end = int(cuts[worker]), int(cuts[worker + 1])
            adam_rows(*matrices, groups, begin, end, factors, V, shares, *numbers)

        team.run(move)


def kept_steps(
    values: Sequence[np.ndarray], steps: Sequence[Adam | LazyAdam]
) -> dict[str, np.ndarray]:
    """Return the checkpoint of arrays that take their steps together."""
    named = {
        f"{name}.{i}": array
        for i, (value, step) in enumerate(zip(values, steps, strict=True))
        for name, array in (("values", value), ("first", step.first), ("second", step.second))
    }
    return {**named, "n_steps": np.array(steps[0].n_steps)}


def resume_steps(
    values: Sequence[np.ndarray], steps: Sequence[Adam | LazyAdam], found: Mapping[str, np.ndarray]
) -> None:
    """Continue from what ``kept_steps`` returned, in place.

    Raises
    ------
    SavedModelError
        If it does not fit the arrays.
    """
    arrays = kept_steps(values, steps)
    restore(arrays, found)
    for step in steps:
        step.n_steps = int(arrays["n_steps"])
