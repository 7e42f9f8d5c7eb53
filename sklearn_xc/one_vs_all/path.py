"""Weights for several values of C: each solution helps to start the next."""

import dataclasses
import math
from typing import Any

import numpy as np

from sklearn_xc._input.data import CsrRows
from sklearn_xc._parallel.interrupt import StopFlag
from sklearn_xc.one_vs_all.solver.newton_cg import BlockSolution, Starter, solve_block
from sklearn_xc.one_vs_all.solver.problem import InstanceSums, OneVsAllProblem
from sklearn_xc.one_vs_all.solver.working_sets import FEWEST_ROWS
from sklearn_xc.one_vs_all.starts import Initialiser

#: Labels for each lane that follow the path together, their weights unpruned and dense: more take
#: memory, fewer leave lanes idle while the last labels end. 1 to 16 took the same time.
LABELS_PER_LANE = 2
#: How far a start extends the line through the last two solutions, over log C. The paths bend: on
#: short texts 0.7 is worse than 0, as it activates negatives.
EXTRAPOLATION = 0.35
#: Steps in log C beyond this one are too long for it.
LONGEST_STEP = 1.0


class _Continued(Initialiser):
    """Starts at the rows of an array, in the order of some labels."""

    def __init__(self, labels: np.ndarray, points: np.ndarray) -> None:
        self.row_of = {int(label): row for row, label in enumerate(labels)}
        self.points = points

    def start(
        self, prepared: None, problem: OneVsAllProblem, label: int, positive_sum: np.ndarray
    ) -> np.ndarray:
        """Return the label's row."""
        return self.points[self.row_of[label]]


def solve_path(
    problem: OneVsAllProblem,
    Cs: np.ndarray,
    sums: InstanceSums,
    initialiser: Starter,
    prepared: Any,
    labels: np.ndarray,
    n_lanes: int,
    stop: StopFlag,
) -> list[BlockSolution]:
    """Return the solutions of a block's labels for each C, from the largest one downwards.

    A small C, with a loss on nearly every instance, is slow from a cold start. Each further start
    lies on the line through the last two solutions before pruning; pruned weights are as far from
    the next solution as a cold start.
    """
    solutions: list[BlockSolution] = []
    shape = (len(labels), problem.n_features + 1)
    before, last = np.empty(shape, problem.dtype), np.empty(shape, problem.dtype)
    falling = Cs[::-1]
    for c, C in enumerate(falling):
        before, last = last, before
        if c > 0:  # the start takes the place of the last solution but one
            _write_start(before, last, falling[max(c - 2, 0) : c + 1])
            initialiser, prepared = _Continued(labels, last), None
        at_C = at_cost(problem, C)
        solutions.append(
            solve_block(at_C, sums, initialiser, prepared, labels, n_lanes, stop, ends=last)
        )
    return solutions[::-1]


def at_cost(problem: OneVsAllProblem, C: float) -> OneVsAllProblem:
    """Return the problem with C times the loss weights, over the same instances."""
    if C == 1.0:
        return problem
    at_C = dataclasses.replace(problem, plus=C * problem.plus, minus=C * problem.minus)
    if isinstance(problem.instances, CsrRows) and math.isfinite(problem.loss.active_below):
        # Not once more for each block and C.
        vars(at_C)["rounded"] = problem.rounded
        if problem.n_samples >= FEWEST_ROWS:
            vars(at_C)["postings"] = problem.postings
    return at_C


def _write_start(last: np.ndarray, out: np.ndarray, Cs: np.ndarray) -> None:
    """Write the start for the last of `Cs`.

    Parameters
    ----------
    last : ndarray of shape (m, d + 1)
        The solutions for the C before.
    out : ndarray of shape (m, d + 1)
        Those for the C before that one; overwritten.
    Cs : ndarray of float64 of shape (2,) or (3,)
        The values of C of both, and that of the start; without the first if there is none.
    """
    steps = np.diff(np.log(Cs))
    if len(steps) < 2 or np.abs(steps).max() > LONGEST_STEP:
        out[:] = last
        return
    np.subtract(last, out, out=out)
    out *= out.dtype.type(EXTRAPOLATION * steps[1] / steps[0])
    out += last


def path_bytes(d: int, n_lanes: int, itemsize: int) -> int:
    """Return the bytes of a block's path besides the solver's workspace."""
    # The last two solutions, one of which becomes the start, and the new one as CSR.
    return LABELS_PER_LANE * n_lanes * (d + 1) * (3 * itemsize + 4)
