"""Solves the problems of all labels, in parallel over blocks of them."""

import functools
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc.exceptions import MemoryBudgetError
from sklearn_xc.initialisers import Given, Initialiser
from sklearn_xc.linear.along_tree import Starts, Tree, parents_of
from sklearn_xc.linear.assembly import group_identical_labels, in_callers_features
from sklearn_xc.linear.checkpoints import BlockStore
from sklearn_xc.linear.memory import held_bytes, weight_bytes
from sklearn_xc.parallel.blocks import BlockPlan, plan_blocks
from sklearn_xc.parallel.engines import Engine, Workers
from sklearn_xc.parallel.interrupt import StopFlag
from sklearn_xc.parallel.progress import Fit, Progress
from sklearn_xc.parallel.row_ranges import one_blas_thread
from sklearn_xc.parallel.spill import Spill
from sklearn_xc.parallel.tasks import Task
from sklearn_xc.solvers.newton_cg import BlockSolution, largest_array, solve_block, workspace_bytes
from sklearn_xc.solvers.problem import InstanceSums, OneVsAllProblem, check_range, sum_instances
from sklearn_xc.solvers.pruning import SampleScores, together
from sklearn_xc.solvers.smooth_newton import is_side_by_side

#: What a positive takes of the time that its label takes without it, for the time left: 0.018 fits
#: the blocks of the Tate subjects best. The most frequent labels come first: counted alike, the
#: first block would promise six times the time that is left.
POSITIVES_COST = 0.02


def solve_all(
    problem: OneVsAllProblem,
    initialiser: Initialiser,
    max_memory: int | None,
    n_jobs: int | None,
    engine: Engine,
    fit: Fit,
    store: BlockStore | None = None,
    labels: np.ndarray | None = None,
) -> tuple[list[BlockSolution], np.ndarray, SampleScores | None]:
    """Solve all distinct problems, in parallel over blocks.

    Parameters
    ----------
    problem : OneVsAllProblem
        The problems of all labels.
    initialiser : Initialiser
        Starts.
    max_memory : int or None
        Bytes for all that the fit holds.
    n_jobs : int or None
        Threads, where no cluster is at work; no solution depends on their number.
    engine : Engine
        Where blocks are solved.
    fit : Fit
        Is told of the blocks, the stage "training" where there are several.
    store : BlockStore, default=None
        Holds the blocks that are finished, and gets others.
    labels : ndarray of int64, default=None
        Labels to solve, None for all.

    Returns
    -------
    solutions : list of BlockSolution
        One for each block.
    row_of_label : ndarray of int64 of shape (n_labels,)
        The row of each label in the stacked solutions; of those that were to be solved.
    sample : SampleScores or None
        The scores of all labels before pruning and after, if they were taken.
    """
    group = same_problems(problem, initialiser)
    wanted = slice(None) if labels is None else labels
    distinct = np.unique(group[wanted])
    parents = parents_of(problem, initialiser, distinct)
    if parents is not None and labels is not None:
        raise ValueError(
            f"{problem.owner}: label_range must be None with init={initialiser!r}, which lets "
            f"labels start at the weights of others. Got {(int(labels[0]), int(labels[-1]) + 1)}."
        )
    n, d, itemsize = problem.n_samples, problem.n_features, problem.dtype.itemsize
    side_by_side, held = is_side_by_side(problem), held_bytes(problem)

    def cut_for(workers: Workers) -> BlockPlan:
        return plan_blocks(
            distinct,
            np.diff(problem.y_indptr)[distinct],
            lambda lanes: workspace_bytes(n, d, lanes, itemsize, side_by_side),
            lambda lanes: largest_array(n, d, lanes, itemsize),
            max_memory,
            workers.n,
            problem.owner,
            held=held,
            label_bytes=weight_bytes(d, itemsize),
            parents=parents,
            n_processes=workers.n_processes,
        )

    plan = planned(cut_for, engine.count(n_jobs), store)
    if max_memory is not None:
        workspace = workspace_bytes(n, d, plan.n_lanes, itemsize, side_by_side)
        n_here = 0 if engine.is_cluster else plan.n_workers
        max_memory = max(0, max_memory - held - n_here * workspace) // 2
    keeper = _Keeper(Spill(max_memory, problem.owner), store)
    known = keeper.known(plan, problem)
    watch = _Watch(fit, problem, group[wanted], plan, known)
    solutions, row_of_label = solve_blocks(
        problem, initialiser, group, plan, functools.partial(_solve_block, plan.n_lanes), engine,
        watch, along=None if parents is None else Tree(distinct, parents, _itself), keep=keeper,
        known=known,
    )  # fmt: skip
    watch.progress.close()
    return solutions, row_of_label[wanted], keeper.sample


def planned(
    cut_for: Callable[[Workers], BlockPlan], workers: Workers, store: BlockStore | None
) -> BlockPlan:
    """Return the plan for some workers, its blocks those of the call that began, if there is one.

    Parameters
    ----------
    cut_for : callable
        Returns the plan for workers.
    workers : Workers
    store : BlockStore or None
    """
    plan = cut_for(workers)
    if store is None or store.workers == workers:
        return plan
    try:
        return replace(cut_for(store.workers), n_workers=plan.n_workers)
    except MemoryBudgetError:  # then blocks are solved again
        return plan


def same_problems(problem: OneVsAllProblem, initialiser: Initialiser) -> np.ndarray:
    """Return for each label the last label with the same problem and the same start."""
    if isinstance(initialiser, Given):
        return np.arange(problem.n_labels)
    return group_identical_labels(problem.y_indptr, problem.y_rows, problem.plus, problem.minus)


class _Watch:
    """Tells of blocks that begin and end; lines count labels.

    Blocks begin in their order, as many at a time as there are workers, one for each that ends;
    those of a wave once all before have ended. A cluster may take another order, of which is heard
    when a block ends. No callback can end the training: a label that was left out would have no
    weights.
    """

    def __init__(
        self, fit: Fit, problem: OneVsAllProblem, group: np.ndarray, plan: BlockPlan,
        known: Collection[int] = (),
    ) -> None:  # fmt: skip
        labels_of = np.bincount(group, minlength=problem.n_labels)
        counts = np.diff(problem.y_indptr)
        self._n_labels, self._n_done = len(group), 0
        self._sizes = [int(labels_of[block].sum()) for block in plan.blocks]
        costs = [len(block) + POSITIVES_COST * float(counts[block].sum()) for block in plan.blocks]
        self.progress: Progress = fit.parts(
            "label block", len(plan.blocks), stage="training", unit="label", sizes=self._sizes,
            costs=costs, in_order=False,
        )  # fmt: skip
        for number in known:  # from before
            self.progress.known(number)
            self._n_done += self._sizes[number]
        self._n_workers = plan.n_workers
        waves = ([number for number in wave if number not in known] for wave in plan.waves)
        self._waves = (wave for wave in waves if wave)
        self._due: deque[int] = deque()
        self._tasks: dict[int, Task] = {}
        self._begin_wave()

    def __call__(self, number: int) -> None:
        self._n_done += self._sizes[number]
        if number not in self._tasks:
            self._due.remove(number)
            self._tasks[number] = self.progress.part(number).begin()
        self._tasks.pop(number).end()  # whatever it answers
        share = f"{self._n_done / self._n_labels:.0%}"
        self.progress.ended(share, number, under_way=self._tasks)
        self._begin_next()

    def _begin_next(self) -> None:
        if self._due:
            number = self._due.popleft()
            self._tasks[number] = self.progress.part(number).begin()
        elif not self._tasks:
            self._begin_wave()

    def _begin_wave(self) -> None:
        self._due = deque(next(self._waves, []))
        for _ in range(min(self._n_workers, len(self._due))):
            self._begin_next()


def _itself(solution: BlockSolution) -> BlockSolution:
    return solution


class _Keeper:
    """Takes weights, nearly all of what a block found, out of the heap, and to the disk.

    Attributes
    ----------
    sample : SampleScores or None
        Of all blocks so far; theirs is gone then.
    """

    def __init__(self, spill: Spill, store: BlockStore | None) -> None:
        self.spill, self.store = spill, store
        self.sample: SampleScores | None = None

    def known(self, plan: BlockPlan, problem: OneVsAllProblem) -> dict[int, BlockSolution]:
        """Return the blocks that were finished before, by number."""
        found = {}
        for number, labels in enumerate(plan.blocks if self.store is not None else []):
            there = self.store.get(number, labels, problem)  # type: ignore[union-attr]
            if there is not None:
                found[number] = self._out_of_heap(there[0][0])
        return found

    def __call__(self, number: int, solution: BlockSolution) -> BlockSolution:
        if self.store is not None:
            self.store.put(number, [solution])
        return self._out_of_heap(solution)

    def _out_of_heap(self, solution: BlockSolution) -> BlockSolution:
        keep = self.spill.keep
        solution.indices, solution.values = keep(solution.indices), keep(solution.values)
        self.sample, solution.sample = together((self.sample, solution.sample)), None
        return solution


def _solve_block(
    n_lanes: int,
    problem: OneVsAllProblem,
    sums: InstanceSums,
    initialiser: Initialiser,
    prepared: Any,
    labels: np.ndarray,
    stop: StopFlag,
) -> BlockSolution:
    """Return a block's solution, as ``solve_blocks`` asks for it, over the caller's features."""
    solution = solve_block(problem, sums, initialiser, prepared, labels, n_lanes, stop)
    return in_callers_features(solution, problem.columns)


class _Shared(NamedTuple):
    """What all blocks need."""

    solve: Callable[..., Any]
    problem: OneVsAllProblem
    sums: InstanceSums
    initialiser: Initialiser
    prepared: Any
    stop: StopFlag


def solve_blocks(
    problem: OneVsAllProblem,
    initialiser: Initialiser,
    group: np.ndarray,
    plan: BlockPlan,
    solve: Callable[..., Any],
    engine: Engine,
    watch: Callable[[int], None] | None = None,
    along: Tree | None = None,
    keep: Callable[[int, Any], Any] | None = None,
    known: Mapping[int, Any] | None = None,
    elsewhere: Callable[..., Iterator[Any]] | None = None,
) -> tuple[list[Any], np.ndarray]:
    """Call `solve` for each block of labels, wave after wave.

    Parameters
    ----------
    problem : OneVsAllProblem
        The problems of all labels.
    initialiser : Initialiser
        Starts.
    group : ndarray of int64 of shape (n_labels,)
        For each label, the label whose solution it shares.
    plan : BlockPlan
        Blocks of labels, together the members of `group`. No result depends on the cut.
    solve : callable
        Called as ``solve(problem, sums, initialiser, prepared, labels, stop)``: what `solve_block`
        takes. A function of a module, or a ``functools.partial`` of one: it may be sent to another
        process.
    engine : Engine
        Where it is called.
    watch : callable, optional
        Called with the number of each block once it is done.
    along : Tree, optional
        Says which labels start at the weights of others, in the same block or in an earlier wave.
    keep : callable, optional
        Called with a block's number and what `solve` returned, as soon as it is there; what it
        returns is kept instead.
    known : dict, optional
        What was returned for some blocks before, by number: these are not solved.
    elsewhere : callable, optional
        Works on tasks in place of `solve`, where the problem is at hand already: called as
        ``elsewhere(tasks, n_workers)``, yields what `engine` would.

    Returns
    -------
    results : list
        What `solve` returned for each block, or `keep`.
    row_of_label : ndarray of int64 of shape (n_labels,)
        The place of each label, or of the one whose solution it shares, among all blocks' labels;
        -1 of those that are in none.

    Raises
    ------
    ValueError
        If the numbers are too large or too small for the arithmetic of X.
    """
    known = known or {}
    results: list[Any] = [known.get(number) for number in range(len(plan.blocks))]
    stop = StopFlag()
    with one_blas_thread():
        sums = sum_instances(problem)
        check_range(problem, sums)
        prepared = None if elsewhere else initialiser.prepare(problem, sums)
        starts = None if along is None else Starts(problem, initialiser, along, plan, results)
        shared = _Shared(solve, problem, sums, initialiser, prepared, stop)
        try:
            with _near(engine, shared, elsewhere) as run:
                for wave in plan.waves:
                    tasks = (
                        (number, (_starts_of(starts, number), plan.blocks[number]))
                        for number in wave
                        if number not in known
                    )
                    _take(run(tasks, plan.n_workers), results, watch, stop, keep)
        finally:
            stop.set()
    row_of_distinct = np.full(problem.n_labels, -1)  # of labels that were not asked for
    row_of_distinct[np.concatenate(plan.blocks)] = np.arange(sum(map(len, plan.blocks)))
    return results, row_of_distinct[group]


@contextmanager
def _near(
    engine: Engine, shared: _Shared, elsewhere: Callable[..., Iterator[Any]] | None
) -> Iterator[Callable[..., Iterator[Any]]]:
    """Return what works on tasks where the problem is."""
    if elsewhere is not None:
        yield elsewhere
        return
    with engine.sharing(shared, shared.problem.owner) as place:
        yield functools.partial(place.run, _solve)


def _starts_of(starts: Starts | None, number: int) -> Any:
    return None if starts is None else starts.of_block(number)


def _solve(shared: _Shared, starts: Any, labels: np.ndarray) -> Any:
    """Solve a block, in a worker."""
    initialiser = shared.initialiser if starts is None else starts
    return shared.solve(
        shared.problem, shared.sums, initialiser, shared.prepared, labels, shared.stop
    )


def _take(
    done: Any,
    results: list[Any],
    watch: Callable[[int], None] | None,
    stop: StopFlag,
    keep: Callable[[int, Any], Any] | None,
) -> None:
    """Put what a generator gives into its place; if that fails, stop what still runs."""
    try:
        for number, result in done:
            results[number] = result if keep is None else keep(number, result)
            if watch is not None:
                watch(number)
    except BaseException as error:
        stop.set()
        done.throw(error)  # joblib would warn of blocks that it has to leave
        raise
