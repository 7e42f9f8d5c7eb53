"""Solves the problems of all labels, in parallel over blocks of them.

::

    distinct problems -> blocks of labels -> one solution a block, and a C -> one weight matrix
                         engine: threads, Dask, Ray

Labels with equal problems share a solution. No result depends on the blocks or their order.
"""

import dataclasses
import itertools
from collections import deque
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.kernels.csr_order import copy_rows
from sklearn_xc._parallel.blocks import BlockPlan, plan_blocks
from sklearn_xc._parallel.engines import Engine, Workers
from sklearn_xc._parallel.interrupt import StopFlag
from sklearn_xc._parallel.progress import Fit
from sklearn_xc._parallel.row_ranges import one_blas_thread
from sklearn_xc._parallel.spill import Spill, maker, release
from sklearn_xc._parallel.tasks import Task
from sklearn_xc.exceptions import MemoryBudgetError
from sklearn_xc.one_vs_all.checkpoints import BlockStore
from sklearn_xc.one_vs_all.parents import BlockStarts, ParentStarts, parents_of
from sklearn_xc.one_vs_all.path import LABELS_PER_LANE, at_cost, path_bytes, solve_path
from sklearn_xc.one_vs_all.problem import held_bytes, weight_bytes
from sklearn_xc.one_vs_all.solver.newton_cg import (
    BlockSolution,
    largest_array,
    solve_block,
    workspace_bytes,
)
from sklearn_xc.one_vs_all.solver.problem import (
    InstanceSums,
    OneVsAllProblem,
    check_range,
    is_side_by_side,
    sum_instances,
)
from sklearn_xc.one_vs_all.starts import Given, Initialiser
from sklearn_xc.one_vs_all.warm_start import WarmStart, solve_warm

#: Time of a positive relative to that of its label without it, for the time left: 0.018 fits the
#: blocks of the Tate subjects best. The most frequent labels come first: with equal costs, the
#: first block would promise six times the time that is left.
POSITIVES_COST = 0.02
#: Weights are assembled so many at a time.
WEIGHTS_AT_A_TIME = 2**24


class _Shared(NamedTuple):
    """Input of all blocks, sent once to each process."""

    problem: OneVsAllProblem
    Cs: np.ndarray
    sums: InstanceSums
    initialiser: Initialiser
    prepared: Any
    n_lanes: int
    stop: StopFlag


def solve_all(
    problem: OneVsAllProblem,
    initialiser: Initialiser,
    *,
    max_memory: int | None,
    n_jobs: int | None,
    engine: Engine,
    Cs: Sequence[float] = (1.0,),
    fit: Fit | None = None,
    store: BlockStore | None = None,
) -> tuple[list[list[BlockSolution]], np.ndarray]:
    """Solve all distinct problems, for each factor on the loss weights.

    Parameters
    ----------
    problem : OneVsAllProblem
        The problems of all labels.
    initialiser : Initialiser
        Starts, for the largest of `Cs`.
    max_memory : int or None
        Bytes for everything that the fit holds.
    n_jobs : int or None
        Threads, where no cluster is at work.
    engine : Engine
        Where blocks are solved.
    Cs : sequence of float, default=(1.0,)
        Increasing factors on ``plus`` and ``minus`` of `problem`.
    fit : Fit, default=None
        Notified of the blocks, the stage "training" where there are several.
    store : BlockStore, default=None
        Finished blocks of an earlier call; receives further ones.

    Returns
    -------
    solutions : list of list of BlockSolution
        For each C, one for each block, over the features of the caller.
    row_of_label : ndarray of int64 of shape (n_labels,)
        The row of each label in the stacked solutions of a C.

    Raises
    ------
    ValueError
        If the numbers are too large or too small for the arithmetic of X.
    """
    factors = np.asarray(Cs, np.float64)
    group = group_equal_problems(problem, initialiser)
    distinct = np.unique(group)
    parents = parents_of(problem, initialiser, distinct)
    plan = _plan(problem, distinct, parents, max_memory, engine.count(n_jobs), len(Cs), store)
    if max_memory is not None:
        n_here = 0 if engine.is_cluster else plan.n_workers
        workspace = n_here * _block_bytes(problem, plan.n_lanes, len(Cs))
        max_memory = max(0, max_memory - held_bytes(problem) - workspace) // 2
    spill = Spill(max_memory, problem.owner)
    results: list[Any] = [None] * len(plan.blocks)
    if store is not None:
        for number, labels in enumerate(plan.blocks):
            found = store.get(number, labels, problem)
            results[number] = None if found is None else [spill_weights(found, spill)]
    known = {number for number, found in enumerate(results) if found is not None}
    progress = None if fit is None else _BlockProgress(fit, problem, group, plan, known)
    stop = StopFlag()
    with one_blas_thread():
        largest, sums = at_cost(problem, factors[-1]), sum_instances(problem)
        check_range(largest, sums)
        prepared = initialiser.prepare(largest, sums)
        starts = None
        if parents is not None:
            starts = ParentStarts(problem, initialiser, distinct, parents, plan.blocks, results)
        shared = _Shared(problem, factors, sums, initialiser, prepared, plan.n_lanes, stop)
        try:
            with engine.sharing(shared, problem.owner) as place:
                for wave in plan.waves:
                    tasks = (
                        (number, (None if starts is None else starts.of_block(number), labels))
                        for number, labels in ((i, plan.blocks[i]) for i in wave if i not in known)
                    )
                    done = place.run(_solve_block, tasks, plan.n_workers)
                    try:
                        for number, found in done:
                            if store is not None:
                                store.put(number, found[0])
                            results[number] = [spill_weights(one, spill) for one in found]
                            if progress is not None:
                                progress.end(number)
                    except BaseException as error:
                        stop.set()
                        done.throw(error)  # joblib would warn of blocks that it has to leave
                        raise
        finally:
            stop.set()
    if progress is not None:
        progress.progress.close()
    row_of_distinct = np.full(problem.n_labels, -1)
    row_of_distinct[np.concatenate(plan.blocks)] = np.arange(len(distinct))
    return [list(of_C) for of_C in zip(*results, strict=True)], row_of_distinct[group]


def _solve_block(
    shared: _Shared, starts: BlockStarts | None, labels: np.ndarray
) -> list[BlockSolution]:
    """Return a block's solution for each C; runs in a worker."""
    problem, Cs, sums, initialiser, prepared, n_lanes, stop = shared
    initialiser = initialiser if starts is None else starts
    if len(Cs) == 1:
        problem = at_cost(problem, Cs[0])
    if len(Cs) > 1:
        solve = solve_path(problem, Cs, sums, initialiser, prepared, labels, n_lanes, stop)
    elif isinstance(initialiser, WarmStart):
        solve = [solve_warm(problem, sums, initialiser, prepared, labels, n_lanes, stop)]
    else:
        solve = [solve_block(problem, sums, initialiser, prepared, labels, n_lanes, stop)]
    for solution in solve:
        _to_callers_features(solution, problem.columns)
    return solve


def _block_bytes(problem: OneVsAllProblem, n_lanes: int, n_Cs: int) -> int:
    """Return the bytes of the workspace of a block."""
    n, d, itemsize = problem.n_samples, problem.n_features, problem.dtype.itemsize
    workspace = workspace_bytes(n, d, n_lanes, itemsize, is_side_by_side(problem))
    return workspace + (path_bytes(d, n_lanes, itemsize) if n_Cs > 1 else 0)


def _plan(
    problem: OneVsAllProblem,
    distinct: np.ndarray,
    parents: np.ndarray | None,
    max_memory: int | None,
    workers: Workers,
    n_Cs: int,
    store: BlockStore | None,
) -> BlockPlan:
    """Cut labels into blocks: those of the call that began the fit, if there is one."""
    n, d, itemsize = problem.n_samples, problem.n_features, problem.dtype.itemsize

    def cut_for(workers: Workers) -> BlockPlan:
        return plan_blocks(
            distinct,
            np.diff(problem.y_indptr)[distinct],
            lambda lanes: _block_bytes(problem, lanes, n_Cs),
            lambda lanes: largest_array(n, d, lanes, itemsize),
            max_memory,
            workers.n,
            problem.owner,
            labels_per_lane=LABELS_PER_LANE if n_Cs > 1 else None,
            held=held_bytes(problem),
            label_bytes=weight_bytes(d, itemsize),
            parents=parents,
            n_processes=workers.n_processes,
        )

    plan = cut_for(workers)
    if store is None or store.workers == workers:
        return plan
    try:
        return dataclasses.replace(cut_for(store.workers), n_workers=plan.n_workers)
    except MemoryBudgetError:  # then blocks are solved again
        return plan


class _BlockProgress:
    """Notifies of blocks that begin and end; lines count labels.

    Blocks begin in their order, as many at a time as there are workers, one for each that ends. A
    cluster may take another order, which shows when a block ends. No callback can end the training:
    a label that was left out would have no weights.
    """

    def __init__(
        self,
        fit: Fit,
        problem: OneVsAllProblem,
        group: np.ndarray,
        plan: BlockPlan,
        known: Collection[int],
    ) -> None:
        labels_of = np.bincount(group, minlength=problem.n_labels)
        counts = np.diff(problem.y_indptr)
        self._n_labels, self._n_done, self._n_workers = len(group), 0, plan.n_workers
        self._sizes = [int(labels_of[block].sum()) for block in plan.blocks]
        costs = [len(block) + POSITIVES_COST * float(counts[block].sum()) for block in plan.blocks]
        self.progress = fit.parts(
            "label block",
            len(plan.blocks),
            stage="training",
            unit="label",
            sizes=self._sizes,
            costs=costs,
            in_order=False,
        )
        for number in known:
            self.progress.known(number)
            self._n_done += self._sizes[number]
        waves = ([number for number in wave if number not in known] for wave in plan.waves)
        self._waves = (wave for wave in waves if wave)
        self._due: deque[int] = deque()
        self._tasks: dict[int, Task] = {}
        self._begin_wave()

    def end(self, number: int) -> None:
        self._n_done += self._sizes[number]
        if number not in self._tasks:
            self._due.remove(number)
            self._begin(number)
        self._tasks.pop(number).end()
        share = f"{self._n_done / self._n_labels:.0%}"
        self.progress.ended(share, number)
        if self._due:
            self._begin(self._due.popleft())
        elif not self._tasks:
            self._begin_wave()

    def _begin(self, number: int) -> None:
        self._tasks[number] = self.progress.part(number).begin()

    def _begin_wave(self) -> None:
        self._due = deque(next(self._waves, []))
        for _ in range(min(self._n_workers, len(self._due))):
            self._begin(self._due.popleft())


def group_equal_problems(problem: OneVsAllProblem, initialiser: Initialiser) -> np.ndarray:
    """Return for each label the last label with the same problem and start, int64 (n_labels,).

    On long-tailed data many labels occur on the same single instance, or on none: a quarter of the
    Tate subjects' columns repeat another one.
    """
    if isinstance(initialiser, Given):
        return np.arange(problem.n_labels)
    last: dict[tuple[bytes, float, float], int] = {}
    group = np.empty(problem.n_labels, np.int64)
    for label in range(problem.n_labels - 1, -1, -1):
        rows = problem.positives(label).tobytes()
        group[label] = last.setdefault((rows, problem.plus[label], problem.minus[label]), label)
    return group


def spill_weights(solution: BlockSolution, spill: Spill) -> BlockSolution:
    """Move the weights of a solution out of the heap, or to a file."""
    solution.indices, solution.values = spill.keep(solution.indices), spill.keep(solution.values)
    return solution


def _to_callers_features(solution: BlockSolution, columns: np.ndarray) -> None:
    """Renumber the features of a solution to those of the caller's X, in rising order."""
    shape = len(solution.labels), len(columns)
    arrays = solution.values, columns[solution.indices], solution.indptr
    # Two transpositions sort the features of each label.
    rows = sp.csr_array(arrays, shape=shape).tocsc().tocsr()
    solution.indptr, solution.indices = rows.indptr.astype(np.int64), rows.indices.astype(np.int32)
    solution.values = rows.data


def assemble_weights(
    solutions: list[BlockSolution],
    row_of_label: np.ndarray,
    n_features: int,
    room: int | None = None,
    owner: str = "",
) -> sp.csr_array:
    """Stack the rows of all blocks in the order of the labels; the blocks are emptied on the way.

    Weights are written from the first label to the last, and rows that no later label needs are
    given back on the way, so that weights are held about once: blocks have their labels in rising
    order, and of labels that share a row the last stands for all.

    Parameters
    ----------
    solutions : list of BlockSolution
        Emptied.
    row_of_label : ndarray of int64 of shape (n_labels,)
        Each label's row in the stacked solutions.
    n_features : int
        Columns.
    room : int or None, default=None
        Weights of more bytes go to files.
    owner : str, default=""
        Name of the estimator, for messages.

    Returns
    -------
    csr_array of shape (n_labels, n_features)
        With sorted indices.
    """
    lengths = np.concatenate([np.diff(s.indptr) for s in solutions])[row_of_label]
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    indices, values = empty_weights(int(indptr[-1]), solutions[0].values.dtype, room, owner)
    edges = np.cumsum([0] + [len(block.labels) for block in solutions])
    # The last label that needs each row of a block, or a row before it.
    last = np.full(edges[-1], -1)
    np.maximum.at(last, row_of_label, np.arange(len(row_of_label)))
    needed = [np.maximum.accumulate(last[a:b]) for a, b in itertools.pairwise(edges)]
    cuts = np.searchsorted(indptr, np.arange(WEIGHTS_AT_A_TIME, indptr[-1], WEIGHTS_AT_A_TIME))
    for first, stop in itertools.pairwise(np.unique([0, *cuts, len(row_of_label)])):
        order = first + np.argsort(row_of_label[first:stop], kind="stable")
        limits = np.searchsorted(row_of_label[first:stop], edges, sorter=order - first)
        for b, block in enumerate(solutions):
            labels = order[limits[b] : limits[b + 1]]
            rows = row_of_label[labels] - edges[b]
            copy_rows(
                block.indptr, block.indices, block.values, rows, labels, indptr, indices, values
            )
            n_gone = int(block.indptr[np.searchsorted(needed[b], stop)])
            release(block.indices, n_gone)
            release(block.values, n_gone)
    solutions.clear()
    return as_csr(values, indices, indptr, (len(row_of_label), n_features))


def empty_weights(
    n: int, dtype: np.dtype, room: int | None, owner: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return arrays for the features and values of n weights, in files if they exceed `room`."""
    empty = maker(room is not None and n * (4 + dtype.itemsize) > room, owner)
    return empty(n, np.int32), empty(n, dtype)


def as_csr(
    values: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]
) -> sp.csr_array:
    """Return a CSR over the arrays, with narrow indices where they do."""
    if indptr[-1] <= np.iinfo(np.int32).max:  # else scipy makes indices as wide as indptr
        indptr = indptr.astype(np.int32)
    return sp.csr_array((values, indices, indptr), shape=shape)
