"""Screens: the rows that may have a loss at the trial points of a block.

A screen lists candidates: all rows with a loss, and a few more that exact scores exclude later.
"""

import itertools
from collections.abc import Callable

import numpy as np

from sklearn_xc._compile.jit import aligned_zeros
from sklearn_xc._input.data import CsrRows, DenseRows
from sklearn_xc.one_vs_all.kernels.lanes import Lanes
from sklearn_xc.one_vs_all.kernels.screen import (
    WIDTHS,
    clear_points,
    list_above,
    round_points,
    round_sparse_points,
    screen_kernel,
)
from sklearn_xc.one_vs_all.problem import OneVsAllProblem

#: Rows and non-zeros of a call of a compiled screen: Ctrl-C waits for its end.
_CHUNK_ROWS = 2**16
_CHUNK_NONZEROS = 2**25
#: Up to as many non-zeros of X, all rows are scored instead: a screen saves nothing then, and takes
#: a second to compile.
FEWEST_NONZEROS = 2**14
#: Rows of a dense X that are scored at a time: with 64 lanes they stay in the cache.
_CHUNK_DENSE_ROWS = 1024
#: A list has room for one row in _SHARE, and for _SHORT rows at least. Of more candidates, to read
#: all rows is as fast; 64 lists with room for ten million rows would take 2.6 GB.
_SHARE, _SHORT = 8, 2**16


def list_length(n: int) -> int:
    """Return the number of rows that the list of a trial point has room for."""
    return min(n, max(n // _SHARE, _SHORT))


def make_screen(problem: OneVsAllProblem, n_lanes: int) -> "Screen":
    """Return the screen for a problem."""
    if not problem.loss.has_kink or problem.instances.arrays[-1].size <= FEWEST_NONZEROS:
        return Screen(n_lanes, 0)
    if isinstance(problem.instances, DenseRows):
        return DenseScreen(problem, n_lanes)
    return CsrScreen(problem, problem.instances, n_lanes)


class Screen:
    """Lists no rows but -1, for all: where all have a loss. Base class of the others.

    Attributes
    ----------
    candidates : ndarray of int32 of shape (>= n_lanes, list_length(n))
        Rows listed for each trial point, ascending. Pages that are never written take no memory.
    """

    def __init__(self, n_lanes: int, n_samples: int) -> None:
        self.candidates = np.empty((n_lanes, list_length(n_samples)), np.int32)

    def list_candidates(
        self, lanes: Lanes, occupied: np.ndarray, check: Callable[[], None]
    ) -> np.ndarray:
        """List the rows that may have a loss at the trial point of each occupied lane.

        Parameters
        ----------
        lanes : Lanes
            Only the trial points are read.
        occupied : ndarray of int64
            Numbers of the lanes.
        check : callable
            Called between the calls of compiled code.

        Returns
        -------
        ndarray of int64 of shape (>= len(occupied),)
            Number of rows listed for each; -1 for all rows, if there is no room for a list.
        """
        return np.full(len(occupied), -1)


class CsrScreen(Screen):
    """Screens sparse rows against trial points that are rounded to int16."""

    def __init__(self, problem: OneVsAllProblem, instances: CsrRows, n_lanes: int) -> None:
        super().__init__(_width(n_lanes), problem.n_samples)
        self.problem = problem
        self.block = aligned_zeros((problem.n_features * _width(n_lanes),), np.int16)
        self.ranges = row_ranges(instances.indptr)

    def list_candidates(
        self, lanes: Lanes, occupied: np.ndarray, check: Callable[[], None]
    ) -> np.ndarray:
        """Return the numbers of rows listed."""
        d = self.problem.n_features
        width = _width(len(occupied))
        block = self.block[: d * width].reshape(d, width)
        to_pass = np.empty(width)
        offsets = lanes.first[occupied] + (1 - lanes.current[occupied]) * lanes.width[occupied]
        kink = -self.problem.loss.active_below
        round_points(lanes.points, offsets, lanes.trial_norm2[occupied], kink, block, to_pass)
        return self._list(block, to_pass, check)

    def list_above(
        self,
        which: np.ndarray,
        points: tuple[np.ndarray, ...],
        kinks: np.ndarray,
        check: Callable[[], None],
    ) -> np.ndarray:
        """List the rows whose score at some sparse points may be above a number.

        Not after ``list_candidates``: the block must hold zeros, and does again on return.

        Parameters
        ----------
        which : ndarray of int64
            Numbers of at most 64 points.
        points : tuple of ndarray of int64, int32 and float
            Sparse points, as in ``kernels.working_set``.
        kinks : ndarray of float64
            The number for each.
        check : callable
            Called between the calls of compiled code.

        Returns
        -------
        ndarray of int64 of shape (>= len(which),)
            Number of rows listed for each, -1 if there is no room.
        """
        d = self.problem.n_features
        width = _width(len(which))
        block = self.block[: d * width].reshape(d, width)
        to_pass = np.empty(width)
        round_sparse_points(which, points, kinks, block, to_pass)
        counts = self._list(block, to_pass, check)
        clear_points(which, points, block)
        return counts

    def _list(
        self, block: np.ndarray, to_pass: np.ndarray, check: Callable[[], None]
    ) -> np.ndarray:
        width = len(to_pass)
        counts = np.zeros(width, np.int64)
        screen_rows = screen_kernel(width)
        rounded = self.problem.rounded
        for first, last in self.ranges:
            screen_rows(rounded, block, to_pass, first, last, self.candidates, counts)
            check()
        return counts


class DenseScreen(Screen):
    """Screens dense rows by a matrix product (BLAS-3), with a bound on its rounding."""

    def __init__(self, problem: OneVsAllProblem, n_lanes: int) -> None:
        super().__init__(n_lanes, problem.n_samples)
        self.problem = problem
        self.values = problem.instances.arrays[0]
        self.norms = np.sqrt(np.einsum("ij,ij->i", self.values, self.values, dtype=np.float64))
        self.scores = np.empty((_CHUNK_DENSE_ROWS, n_lanes), problem.dtype)

    def list_candidates(
        self, lanes: Lanes, occupied: np.ndarray, check: Callable[[], None]
    ) -> np.ndarray:
        """Return the numbers of rows listed."""
        n, d = self.values.shape
        points = np.stack([lanes.trial(k) for k in occupied.tolist()])
        weights = np.ascontiguousarray(points[:, :-1].T)
        threshold = -self.problem.loss.active_below - points[:, -1].astype(np.float64)
        # |fl(x.w) - x.w| <= d eps |x| |w| in any order of summation; and the comparison's own.
        slack = 2 * (d + 8) * np.finfo(self.values.dtype).eps * np.sqrt(lanes.trial_norm2[occupied])
        counts = np.zeros(len(occupied), np.int64)
        for first in range(0, n, _CHUNK_DENSE_ROWS):
            last = min(first + _CHUNK_DENSE_ROWS, n)
            scores = self.scores.reshape(-1)[: (last - first) * len(occupied)]
            scores = scores.reshape(last - first, len(occupied))
            np.matmul(self.values[first:last], weights, out=scores)
            list_above(
                scores, self.norms[first:last], slack, threshold, first, self.candidates, counts
            )
            check()
        return counts


def _width(n_points: int) -> int:
    """Return the smallest compiled width that holds some trial points."""
    return next(width for width in WIDTHS if width >= n_points)


def row_ranges(indptr: np.ndarray) -> list[tuple[int, int]]:
    """Cut the rows into ranges for one call each."""
    n = len(indptr) - 1
    cuts = [0]
    while cuts[-1] < n:
        first = cuts[-1]
        last = int(np.searchsorted(indptr, indptr[first] + _CHUNK_NONZEROS, side="right")) - 1
        cuts.append(min(max(last, first + 1), first + _CHUNK_ROWS, n))
    return list(itertools.pairwise(cuts))
