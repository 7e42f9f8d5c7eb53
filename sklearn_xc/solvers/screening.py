"""Finds, for all lanes of a block at a time, the rows that may have a loss at their trial points.

A screen lists candidates: all rows with a loss, and a few more whose exact scores tell.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sklearn_xc._validation import read_only
from sklearn_xc.kernels.block_newton import Lanes
from sklearn_xc.kernels.screen import WIDTHS, round_points, screen_kernel, screening_reach
from sklearn_xc.solvers.problem import OneVsAllProblem

#: A call of a compiled screen takes at most so many rows and non-zeros, so that Ctrl-C is heard.
_ROWS_PER_CALL = 2**16
_NONZEROS_PER_CALL = 2**25


def make_screen(problem: OneVsAllProblem, n_lanes: int) -> Any:
    """Return the screen for a problem: none where every row has a loss everywhere."""
    if not math.isfinite(problem.loss.ACTIVE_BELOW):
        return NoScreen(n_lanes)
    return CsrScreen(problem, n_lanes)


class NoScreen:
    """Lists nothing, for losses that are never zero: every row is at work anyway."""

    def __init__(self, n_lanes: int) -> None:
        self.candidates = np.empty((n_lanes, 0), np.int32)

    def list_candidates(
        self, lanes: Lanes, occupied: np.ndarray, spare: int, check: Callable[[], None]
    ) -> np.ndarray:
        """Return zeros."""
        return np.zeros(len(occupied), np.int64)


class CsrScreen:
    """Screens sparse rows against trial points that are rounded to int16.

    Parameters
    ----------
    problem : OneVsAllProblem
        The instances and the loss.
    n_lanes : int
        The most trial points at a time.

    Attributes
    ----------
    candidates : ndarray of int32 of shape (width, capacity)
        The rows listed for each trial point, in rising order; it grows when needed.
    """

    def __init__(self, problem: OneVsAllProblem, n_lanes: int) -> None:
        self.problem = problem
        self.width = _width(n_lanes)
        self.block = np.zeros(problem.n_features * self.width, np.int16)
        reach = np.empty(problem.n_samples, np.float32)
        screening_reach(problem.indptr, problem.data, reach)
        self.reach = read_only(reach)
        self.ranges = _ranges(problem.indptr)
        self.candidates = np.empty((self.width, 0), np.int32)

    def list_candidates(
        self, lanes: Lanes, occupied: np.ndarray, spare: int, check: Callable[[], None]
    ) -> np.ndarray:
        """List the rows that may have a loss at the trial point of each occupied lane.

        Parameters
        ----------
        lanes : Lanes
            Whose trial points are read.
        occupied : ndarray of int64
            Which of them.
        spare : int
            Free places that every list must keep.
        check : callable
            Called between the calls of compiled code.

        Returns
        -------
        ndarray of int64 of shape (>= len(occupied),)
            How many are listed for each.
        """
        problem = self.problem
        width = _width(len(occupied))
        d = problem.n_features
        block = self.block[: d * width].reshape(d, width)
        threshold = np.empty(width, np.float32)
        offsets = (2 * occupied + 1 - lanes.current[occupied]) * (d + 1)
        kink = -problem.loss.ACTIVE_BELOW
        points = lanes.points.reshape(-1)
        round_points(points, offsets, lanes.largest[occupied], kink, block, threshold)
        counts = np.zeros(width, np.int64)
        screen_rows = screen_kernel(width)
        for first, last in self.ranges:
            self._reserve(int(counts.max()) + last - first + spare)
            screen_rows(
                problem.indptr, problem.indices, problem.data, self.reach, block, threshold,
                first, last, self.candidates, counts,
            )  # fmt: skip
            check()
        return counts

    def _reserve(self, capacity: int) -> None:
        held = self.candidates.shape[1]
        if held < capacity:
            grown = np.empty((self.width, max(capacity, 3 * held // 2)), np.int32)
            grown[:, :held] = self.candidates
            self.candidates = grown


def _width(n_points: int) -> int:
    """Return the narrowest compiled width for some trial points."""
    return next(width for width in WIDTHS if width >= n_points)


def _ranges(indptr: np.ndarray) -> list[tuple[int, int]]:
    """Cut the rows into ranges for one call each."""
    n = len(indptr) - 1
    cuts = [0]
    while cuts[-1] < n:
        first = cuts[-1]
        last = int(np.searchsorted(indptr, indptr[first] + _NONZEROS_PER_CALL, side="right")) - 1
        cuts.append(min(max(last, first + 1), first + _ROWS_PER_CALL, n))
    return list(zip(cuts[:-1], cuts[1:], strict=True))
