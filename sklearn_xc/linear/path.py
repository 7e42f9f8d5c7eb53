"""Weights for many values of C: each solution helps to start the next."""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from sklearn_xc._data import CsrRows
from sklearn_xc.initialisers import Initialiser
from sklearn_xc.linear.along_tree import Tree, parents_of
from sklearn_xc.linear.assembly import in_callers_features
from sklearn_xc.linear.checkpoints import BlockStore
from sklearn_xc.linear.memory import held_bytes
from sklearn_xc.linear.training import planned, solve_blocks
from sklearn_xc.parallel.blocks import BlockPlan, plan_blocks
from sklearn_xc.parallel.engines import Engine, Workers
from sklearn_xc.parallel.interrupt import StopFlag
from sklearn_xc.parallel.memory import format_bytes
from sklearn_xc.solvers.newton_cg import BlockSolution, Starter, solve_block, workspace_bytes
from sklearn_xc.solvers.problem import InstanceSums, OneVsAllProblem
from sklearn_xc.solvers.smooth_newton import is_side_by_side
from sklearn_xc.solvers.working_sets import FEWEST_ROWS

#: So many labels for each lane follow the path together, their weights unpruned and dense: more
#: take memory, fewer leave lanes idle while the last labels end. 1 to 16 took the same time.
LABELS_PER_LANE = 2
#: How far a start goes on along the line through the last two solutions, over log C. The paths
#: bend: on short texts 0.7 is worse than 0, as it activates negatives.
EXTRAPOLATION = 0.35
#: Steps in log C beyond this one are too long for it.
LONGEST_STEP = 1.0
#: The solutions at the end of a path are kept for one that goes on where they take no more bytes,
#: and no more than this share of ``max_memory``.
KEPT_BYTES, KEPT_SHARE = 2**28, 0.25


@dataclasses.dataclass(frozen=True)
class PathEnd:
    """Where a path has ended, so that another one goes on from there.

    Attributes
    ----------
    C : float
        The smallest C.
    points : dict of int to ndarray of shape (m, d + 1)
        For each block, by its first label, the solutions before pruning.
    """

    C: float
    points: dict[int, np.ndarray]


def solve_path(
    problem: OneVsAllProblem,
    Cs: np.ndarray,
    initialiser: Initialiser,
    group: np.ndarray,
    max_memory: int | None,
    n_jobs: int | None,
    engine: Engine,
    after: PathEnd | None = None,
    keep_end: bool = False,
    store: BlockStore | None = None,
    elsewhere: Callable[..., Iterator[Any]] | None = None,
) -> tuple[list[list[BlockSolution]], np.ndarray, PathEnd | None]:
    """Solve all distinct problems for each C, in parallel over blocks.

    A label begins at the largest C, from `initialiser`'s vector, and goes down from there: a small
    C, with a loss on nearly every instance, is slow from a cold start. Each further start lies on
    the line through the last two solutions before pruning. From pruned weights the way is as long
    as from a cold start: together, the many small ones hold the negatives below the kink.

    Parameters
    ----------
    problem : OneVsAllProblem
        The problems for C = 1.
    Cs : ndarray of float64 of shape (n_Cs,)
        Rising.
    initialiser : Initialiser
        Starts for the largest C.
    group : ndarray of int64 of shape (n_labels,)
        For each label, the label whose solution it shares.
    max_memory : int or None
        As ``plan_blocks`` takes it.
    n_jobs : int or None
        Threads, where no cluster is at work; no solution depends on their number.
    engine : Engine
        Where blocks are solved.
    after : PathEnd, optional
        Of the same problem, `group` and `max_memory`, at a larger C: where the path begins.
    keep_end : bool, default=False
        Whether to return where the path ends.
    store : BlockStore, optional
        Holds the blocks that are finished, gets others, and is cleared in the end.
    elsewhere : callable, optional
        Solves blocks where the problem is at hand already: called as ``elsewhere(tasks, n_workers,
        Cs, n_lanes, after, keep_end)``.

    Returns
    -------
    solutions : list of list of BlockSolution
        For each C, one for each block. Their ``pruned_objective`` is NaN: it was not computed.
    row_of_label : ndarray of int64 of shape (n_labels,)
        The row of each label in the stacked solutions of any C.
    end : PathEnd or None
        None if it was not asked for, or takes too much memory.
    """
    n, d, itemsize = problem.n_samples, problem.n_features, problem.dtype.itemsize
    side_by_side = is_side_by_side(problem)
    distinct = np.unique(group)
    parents = parents_of(problem, initialiser, distinct)
    end_bytes = len(distinct) * (d + 1) * itemsize
    keep_end = keep_end and end_bytes <= _most_to_keep(max_memory)
    if max_memory is not None and (keep_end or after is not None):
        max_memory -= end_bytes

    def cut_for(workers: Workers) -> BlockPlan:
        return plan_blocks(
            distinct,
            np.diff(problem.y_indptr)[distinct],
            lambda lanes: (
                workspace_bytes(n, d, lanes, itemsize, side_by_side)
                + _path_bytes(d, lanes, itemsize)
            ),
            lambda lanes: (
                f"the weights on a path of C, {LABELS_PER_LANE * lanes} labels x {d} features of "
                f"{itemsize} bytes ({format_bytes(LABELS_PER_LANE * lanes * d * itemsize)})"
            ),
            max_memory,
            workers.n,
            problem.owner,
            held=held_bytes(problem),
            labels_per_lane=LABELS_PER_LANE,
            parents=parents,
            n_processes=workers.n_processes,
        )

    plan = planned(cut_for, engine.count(n_jobs), store)
    known = {}
    for number, labels in enumerate(plan.blocks if store is not None else []):
        there = store.get(number, labels, problem, len(Cs), has_end=keep_end)  # type: ignore[union-attr]
        if there is not None:
            known[number] = there

    def keep(number: int, found: tuple) -> tuple:
        if store is not None:
            store.put(number, *found)
        return found

    by_block, row_of_label = solve_blocks(
        at_cost(problem, Cs[-1]), initialiser, group, plan,
        functools.partial(solve_block_path, problem, Cs, plan.n_lanes, after, keep_end),
        engine, along=None if parents is None else Tree(distinct, parents, _at_largest), keep=keep,
        known=known, elsewhere=None if elsewhere is None else functools.partial(
            elsewhere, Cs=Cs, n_lanes=plan.n_lanes, after=after, keep_end=keep_end
        ),
    )  # fmt: skip
    end = PathEnd(float(Cs[0]), {}) if keep_end else None
    if end is not None:
        end.points.update((int(of_C[0].labels[0]), last) for of_C, last in by_block)
    solutions = zip(*(of_C for of_C, _ in by_block), strict=True)
    return [list(of_C) for of_C in solutions], row_of_label, end


def _most_to_keep(max_memory: int | None) -> float:
    """Return how many bytes the end of a path may take."""
    return KEPT_BYTES if max_memory is None else min(KEPT_BYTES, KEPT_SHARE * max_memory)


def _at_largest(of_block: tuple[list[BlockSolution], np.ndarray | None]) -> BlockSolution:
    """Return a block's solution for the largest C, from what `solve_block_path` returned."""
    return of_block[0][-1]


class _Continued(Initialiser):
    """Starts at the rows of an array, which are those of some labels."""

    def __init__(self, labels: np.ndarray, points: np.ndarray) -> None:
        self.row_of = {int(label): row for row, label in enumerate(labels)}
        self.points = points

    def start(
        self, prepared: None, problem: OneVsAllProblem, label: int, positive_sum: np.ndarray
    ) -> np.ndarray:
        """Return the label's row."""
        return self.points[self.row_of[label]]


def solve_block_path(
    problem: OneVsAllProblem,
    Cs: np.ndarray,
    n_lanes: int,
    after: PathEnd | None,
    keep_end: bool,
    _problem_at_largest: OneVsAllProblem,
    sums: InstanceSums,
    initialiser: Starter,
    prepared: object,
    labels: np.ndarray,
    stop: StopFlag,
) -> tuple[list[BlockSolution], np.ndarray | None]:
    """Return the solutions of a block's labels for each C, and the last before pruning, if wanted.

    `problem` is that for C = 1, from which the others follow; `solve_blocks` adds that for the
    largest C, which `prepared` was made for.
    """
    solutions: list[BlockSolution] = []
    shape = (len(labels), problem.n_features + 1)
    before, last = np.empty(shape, problem.dtype), np.empty(shape, problem.dtype)
    falling, n_solved = Cs[::-1], 0
    if after is not None:
        last[:] = after.points[int(labels[0])]
        falling, n_solved = np.append(after.C, falling), 1
    for c in range(n_solved, len(falling)):
        before, last = last, before
        if c > 0:
            # The start takes the place of the last solution but one, and its solution that of both.
            _write_start(before, last, falling[max(c - 2, 0) : c + 1])
            initialiser, prepared = _Continued(labels, last), None
        at_C = at_cost(problem, falling[c])
        solution = solve_block(at_C, sums, initialiser, prepared, labels, n_lanes, stop, ends=last)
        solutions.append(in_callers_features(solution, problem.columns))
    return solutions[::-1], last if keep_end else None


def at_cost(problem: OneVsAllProblem, C: float) -> OneVsAllProblem:
    """Return the problem for a C; both read the same instances."""
    at_C = dataclasses.replace(problem, plus=C * problem.plus, minus=C * problem.minus)
    if isinstance(problem.instances, CsrRows) and math.isfinite(problem.loss.active_below):
        # Not once more for each block and C.
        vars(at_C)["rounded"] = problem.rounded
        if problem.n_samples >= FEWEST_ROWS:
            vars(at_C)["postings"] = problem.postings
    return at_C


def _write_start(last: np.ndarray, out: np.ndarray, Cs: np.ndarray) -> None:
    """Write the start for the last of `Cs` over the solution for the C two before it, if any.

    Parameters
    ----------
    last : ndarray of shape (m, d + 1)
        The solutions for the C before.
    out : ndarray of shape (m, d + 1)
        Those for the C before that one. Overwritten by the starts.
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


def _path_bytes(d: int, n_lanes: int, itemsize: int) -> int:
    """Return about how many bytes a block's path takes beside the solver's workspace."""
    # The last two solutions, of which one becomes the start, and the new one as CSR.
    return LABELS_PER_LANE * n_lanes * (d + 1) * (3 * itemsize + 4)
