"""Trains all labels: starts, memory, blocks in parallel, one weight matrix, and the report.

::

    distinct problems -> blocks of labels -> one solution per block and C -> one weight matrix
                         engine: threads, Dask, Ray

Labels with equal problems share a solution. No result depends on the blocks or their order.
"""

import dataclasses
import itertools
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from sklearn_xc._input.arguments import refuse_masks_and_dates
from sklearn_xc._input.data import CsrRows, DenseRows, Targets, check_sparse
from sklearn_xc._input.kernels.csr_rows import copy_rows
from sklearn_xc._parallel.engines import Engine, Workers
from sklearn_xc._parallel.memory import Spill, allocator, release, require_bytes
from sklearn_xc._parallel.progress import Fit, Progress, StopFlag
from sklearn_xc._parallel.threads import one_blas_thread
from sklearn_xc._warnings import warn
from sklearn_xc.exceptions import ConvergenceWarning, MemoryBudgetError, PruningWarning
from sklearn_xc.one_vs_all.blocks import MAX_LANES, MORE_ROOM, BlockPlan, plan_blocks
from sklearn_xc.one_vs_all.checkpoints import BlockStore
from sklearn_xc.one_vs_all.losses.margin import MarginLoss, check_margin_loss, compiled
from sklearn_xc.one_vs_all.problem import (
    FEWEST_ROWS,
    OneVsAllProblem,
    check_range,
    loss_of,
    pays_side_by_side,
    sum_instances,
)
from sklearn_xc.one_vs_all.solver.newton_cg import (
    STATUS_NAMES,
    BlockSolution,
    LabelReport,
    largest_array,
    solve_block,
    workspace_bytes,
)
from sklearn_xc.one_vs_all.starts import INITIALISERS, Given, Initialiser
from sklearn_xc.one_vs_all.warm_start import (
    PATH_LABELS_PER_LANE,
    BlockStarts,
    ParentStarts,
    check_parents,
    path_bytes,
    solve_path,
)

#: Time of a positive relative to that of its label without it, for the estimate of the time left:
#: 0.018 fits the blocks of the Tate subjects best. The most frequent labels come first: with equal
#: costs, the first block would promise six times the time that is left.
POSITIVES_COST = 0.02
#: Weights assembled at a time.
CHUNK_WEIGHTS = 2**24
#: Bytes for each row, feature, label and positive, at the peak.
_ROW_BYTES, _FEATURE_BYTES, _LABEL_BYTES, _POSITIVE_BYTES = 112, 64, 300, 48
#: Pruning is reported if it removes more than this share of the weights' squared norm. With the
#: defaults it was .002 to .025 on five sets; where X was 10 to 100 times as large, and pruning
#: raised objectives 17 times or more, .18 to .5.
_LARGE_SHARE = 0.1


def check_init(estimator: Any, problem: OneVsAllProblem) -> Initialiser:
    """Return the initialiser for the parameter `init`: a name, an object, or vectors."""
    init, caller = estimator.init, type(estimator).__name__
    if isinstance(init, (str, Initialiser)):
        initialiser = INITIALISERS[init]() if isinstance(init, str) else clone(init, safe=False)
        try:
            initialiser.check()
        except ValueError as error:
            raise ValueError(f"{caller}: {error}") from None
        if initialiser.needs_intercept and not estimator.fit_intercept:
            raise ValueError(f"{caller}: init={init!r} needs fit_intercept=True.")
        return initialiser
    n_labels, d = problem.n_labels, problem.n_features
    widths = (d, d + 1) if estimator.fit_intercept else (d,)
    expected = f"({n_labels}, {d})" + (
        f" or ({n_labels}, {d + 1}) with intercepts" if estimator.fit_intercept else ""
    )
    start = _start_vectors(init, expected, caller)
    if start.ndim != 2 or start.shape[0] != n_labels or start.shape[1] not in widths:
        raise ValueError(f"{caller}: init must have shape {expected}. Got shape {start.shape}.")
    values = start.data if sp.issparse(start) else start
    if not np.isfinite(values).all():
        raise ValueError(f"{caller}: init contains NaN or infinity.")
    # Features in the order of the problem; intercepts stay last.
    order = np.concatenate([problem.columns, np.arange(d, start.shape[1])])
    return Given(start[:, order])


def _start_vectors(init: Any, expected: str, caller: str) -> Any:
    """Return start vectors as a float64 array or CSR, of any shape."""
    check_sparse(init, "init", caller)
    refuse_masks_and_dates(init, f"{caller}: init")
    try:
        start = init if sp.issparse(init) else np.asarray(init)
    except (ValueError, TypeError) as error:  # rows of different lengths
        raise ValueError(f"{caller}: init is no array of shape {expected}.") from error
    if start.dtype.kind not in "biuf":
        raise ValueError(
            f"{caller}: init must be a name, an Initialiser, or numbers of shape {expected}. Got "
            f"{type(init).__name__} of dtype {start.dtype}."
        )
    return sp.csr_array(start, dtype=np.float64) if sp.issparse(start) else start.astype(np.float64)


def check_memory(estimator: Any, X: CsrRows | DenseRows, targets: Targets) -> bool:
    """Return whether copies of X go to files.

    Raises
    ------
    MemoryBudgetError
        If the fit does not fit into memory.
    ValueError, TypeError
        For a `loss` that cannot be minimised.
    """
    caller = type(estimator).__name__
    allowed = estimator._allowed_bytes()
    loss = loss_of(estimator)
    check_margin_loss(loss, f"{caller}: loss")
    (n, d), itemsize, n_labels = X.shape, X.dtype.itemsize, targets.n_problems
    n_positives = len(targets.rows) * (1 if targets.pair_weight is None else 2)
    needed = _fit_bytes(X, n_labels, n_positives, loss)
    held = needed.always + needed.shared
    is_sparse = isinstance(X, CsrRows) and len(X.data) > 0
    side_by_side = pays_side_by_side(is_sparse, compiled(loss).has_kink, n_labels)
    block = workspace_bytes(n, d, min(MAX_LANES, n_labels), itemsize, side_by_side)
    in_files = allowed is not None and is_sparse and held + needed.copies + block > allowed
    held += (0 if in_files else needed.copies) + workspace_bytes(n, d, 1, itemsize, side_by_side)
    require_bytes(held, allowed, largest_array(n, d, 1, itemsize), MORE_ROOM, caller)
    return in_files


class _FitBytes(NamedTuple):
    """Peak memory of a fit, without weights and the workspace of threads.

    Attributes
    ----------
    always : int
        Arrays by row, feature, label and positive, until the model is complete.
    shared : int
        Workspace of the problem that is solved once for all labels.
    copies : int
        Copies of X: rearranged, rounded, and by feature; in files if they do not fit.
    """

    always: int
    shared: int
    copies: int


def _fit_bytes(
    X: CsrRows | DenseRows, n_labels: int, n_positives: int, margin_loss: MarginLoss
) -> _FitBytes:
    (n, d), itemsize = X.shape, X.dtype.itemsize
    always = _ROW_BYTES * n + _FEATURE_BYTES * d
    always += _LABEL_BYTES * n_labels + _POSITIVE_BYTES * n_positives
    if not isinstance(X, CsrRows):
        return _FitBytes(always, 0, 0)
    entry = 4 + itemsize
    if not compiled(margin_loss).has_kink:
        return _FitBytes(always, 0, len(X.data) * entry)
    has_sets = n >= FEWEST_ROWS
    shared = workspace_bytes(n, d, 1, itemsize) if has_sets and len(X.data) else 0
    return _FitBytes(always, shared, len(X.data) * (entry + 2 + entry * has_sets))


def held_bytes(problem: OneVsAllProblem) -> int:
    """Return the bytes that a fit holds, without workspace and weights."""
    needed = _bytes_of(problem)
    return needed.always + needed.shared + (0 if problem.in_files else needed.copies)


def room_for_weights(problem: OneVsAllProblem, allowed: int | None) -> int | None:
    """Return the bytes that are left for weights once all problems are solved."""
    return None if allowed is None else allowed - _bytes_of(problem).always


def _bytes_of(problem: OneVsAllProblem) -> _FitBytes:
    n_positives = len(problem.y_rows) * (1 if problem.relevance is None else 2)
    return _fit_bytes(problem.instances, problem.n_labels, n_positives, problem.margin_loss)


def _block_bytes(problem: OneVsAllProblem, n_lanes: int, n_Cs: int) -> int:
    """Return the bytes of the workspace of a block."""
    n, d, itemsize = problem.n_samples, problem.n_features, problem.dtype.itemsize
    workspace = workspace_bytes(n, d, n_lanes, itemsize, problem.is_side_by_side)
    if problem.relevance is not None and not problem.is_side_by_side:
        workspace += n_lanes * n * itemsize  # row weights of each lane
    return workspace + (path_bytes(d, n_lanes, itemsize) if n_Cs > 1 else 0)


class _Shared(NamedTuple):
    """Input of all blocks, sent once to each process."""

    problem: OneVsAllProblem
    Cs: np.ndarray
    sums: Any
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
        Threads, if there is no cluster.
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
        For each C, one for each block, over the original features.
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
    parents = initialiser.parents(problem, distinct)
    if parents is not None:
        parents = check_parents(problem, initialiser, parents, len(distinct))
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
    labels_of = np.bincount(group, minlength=problem.n_labels)
    sizes = [int(labels_of[block].sum()) for block in plan.blocks]
    progress = None if fit is None else _begin_progress(fit, problem, sizes, plan, known)

    def keep(number: int, found: list[BlockSolution]) -> None:
        if store is not None:
            store.put(number, found[0])
        results[number] = [spill_weights(one, spill) for one in found]
        if progress is not None:
            progress.part(number).begin().end()
            n_done = sum(sizes[i] for i, one in enumerate(results) if one is not None)
            progress.ended(f"{n_done / problem.n_labels:.0%}", number)

    with one_blas_thread():
        largest = problem.at_cost(factors[-1])
        sums = sum_instances(problem)
        check_range(largest, sums)
        prepared = initialiser.prepare(largest, sums)
        starts = None
        if parents is not None:
            starts = ParentStarts(problem, initialiser, distinct, parents, plan.blocks, results)
        shared = _Shared(problem, factors, sums, initialiser, prepared, plan.n_lanes, StopFlag())
        _solve_blocks(shared, plan, known, starts, engine, keep)
    if progress is not None:
        progress.close()
    row_of_distinct = np.full(problem.n_labels, -1)
    row_of_distinct[np.concatenate(plan.blocks)] = np.arange(len(distinct))
    return [list(of_C) for of_C in zip(*results, strict=True)], row_of_distinct[group]


def _solve_blocks(
    shared: _Shared,
    plan: BlockPlan,
    known: Collection[int],
    starts: ParentStarts | None,
    engine: Engine,
    keep: Callable[[int, list[BlockSolution]], None],
) -> None:
    """Solve the blocks that are not known, wave by wave, and keep their solutions."""
    try:
        with engine.sharing(shared, shared.problem.owner) as place:
            for wave in plan.waves:
                tasks = (
                    (number, (None if starts is None else starts.of_block(number), labels))
                    for number, labels in ((i, plan.blocks[i]) for i in wave if i not in known)
                )
                done = place.run(_solve_block, tasks, plan.n_workers)
                try:
                    for number, found in done:
                        keep(number, found)
                except BaseException as error:
                    shared.stop.set()
                    done.throw(error)  # joblib would warn of unfinished blocks
                    raise
    finally:
        shared.stop.set()


def _solve_block(
    shared: _Shared, starts: BlockStarts | None, labels: np.ndarray
) -> list[BlockSolution]:
    """Return a block's solution for each C; runs in a worker."""
    problem, Cs, sums, initialiser, prepared, n_lanes, stop = shared
    initialiser = initialiser if starts is None else starts
    if len(Cs) > 1:
        solutions = solve_path(problem, Cs, sums, initialiser, prepared, labels, n_lanes, stop)
    else:
        at_C = problem.at_cost(Cs[0])
        solutions = [solve_block(at_C, sums, initialiser, prepared, labels, n_lanes, stop)]
    for solution in solutions:
        _restore_features(solution, problem.columns)
    return solutions


def _plan(
    problem: OneVsAllProblem,
    distinct: np.ndarray,
    parents: np.ndarray | None,
    max_memory: int | None,
    workers: Workers,
    n_Cs: int,
    store: BlockStore | None,
) -> BlockPlan:
    """Cut labels into blocks: those of the interrupted fit, if there is one."""
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
            labels_per_lane=PATH_LABELS_PER_LANE if n_Cs > 1 else None,
            held=held_bytes(problem),
            # How many weights pruning leaves is unknown: most labels have fewer than 2,048.
            label_bytes=4 * min(d, 2048) * (4 + itemsize),
            parents=parents,
            n_processes=workers.n_processes,
        )

    plan = cut_for(workers)
    if store is None or store.workers == workers:
        return plan
    try:
        return dataclasses.replace(cut_for(store.workers), n_workers=plan.n_workers)
    except MemoryBudgetError:  # solve the blocks again
        return plan


def _begin_progress(
    fit: Fit, problem: OneVsAllProblem, sizes: list[int], plan: BlockPlan, known: Collection[int]
) -> Progress:
    """Return the progress of the blocks, whose lines count labels; `sizes` are those of blocks."""
    counts = np.diff(problem.y_indptr)
    costs = [len(block) + POSITIVES_COST * float(counts[block].sum()) for block in plan.blocks]
    progress = fit.parts(
        "label block",
        len(plan.blocks),
        stage="training",
        unit="label",
        sizes=sizes,
        costs=costs,
        in_order=False,
    )
    for number in known:
        progress.known(number)
    return progress


def group_equal_problems(problem: OneVsAllProblem, initialiser: Initialiser) -> np.ndarray:
    """Return for each label the last label with the same problem and start, int64 (n_labels,).

    On long-tailed data many labels occur on the same single instance, or on none: a quarter of the
    Tate subjects' columns repeat another one.
    """
    if isinstance(initialiser, Given):
        return np.arange(problem.n_labels)
    last: dict[tuple[Any, ...], int] = {}
    group = np.empty(problem.n_labels, np.int64)
    for label in range(problem.n_labels - 1, -1, -1):
        own = slice(problem.y_indptr[label], problem.y_indptr[label + 1])
        relevance = b"" if problem.relevance is None else problem.relevance[own].tobytes()
        key = problem.y_rows[own].tobytes(), relevance, problem.plus[label], problem.minus[label]
        group[label] = last.setdefault(key, label)
    return group


def spill_weights(solution: BlockSolution, spill: Spill) -> BlockSolution:
    """Move the weights of a solution out of the heap, or to a file."""
    solution.indices, solution.values = spill.keep(solution.indices), spill.keep(solution.values)
    return solution


def _restore_features(solution: BlockSolution, columns: np.ndarray) -> None:
    """Give the features of a solution their original numbers, sorted."""
    shape = len(solution.labels), len(columns)
    arrays = solution.values, columns[solution.indices], solution.indptr
    # Two transpositions sort the features of each label.
    rows = sp.csr_array(arrays, shape=shape).tocsc().tocsr()
    solution.indptr = rows.indptr.astype(np.int64)
    solution.indices = rows.indices.astype(np.int32)
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
    released, so that weights are held about once. Blocks have their labels in ascending order, and
    labels that share a row are represented by the last one.

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
    n_weights = int(indptr[-1])
    dtype = solutions[0].values.dtype
    empty = allocator(room is not None and n_weights * (4 + dtype.itemsize) > room, owner)
    indices, values = empty(n_weights, np.int32), empty(n_weights, dtype)
    edges = np.cumsum([0] + [len(block.labels) for block in solutions])
    # The last label that needs each row of a block, or a row before it.
    last = np.full(edges[-1], -1)
    np.maximum.at(last, row_of_label, np.arange(len(row_of_label)))
    needed = [np.maximum.accumulate(last[a:b]) for a, b in itertools.pairwise(edges)]
    cuts = np.searchsorted(indptr, np.arange(CHUNK_WEIGHTS, indptr[-1], CHUNK_WEIGHTS))
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
    if n_weights <= np.iinfo(np.int32).max:  # otherwise scipy makes indices as wide as indptr
        indptr = indptr.astype(np.int32)
    return sp.csr_array((values, indices, indptr), shape=(len(row_of_label), n_features))


def stacked(solutions: list[BlockSolution], row_of_label: np.ndarray, name: str) -> np.ndarray:
    """Return an attribute of the solutions for all labels."""
    return np.concatenate([getattr(s, name) for s in solutions])[row_of_label]


def fit_report(solutions: list[BlockSolution], row_of_label: np.ndarray) -> dict[str, np.ndarray]:
    """Return ``fit_report_``; `row_of_label` is the row of each label in the stacked solutions."""
    names = (*LabelReport._fields, "seconds")
    columns = {name: stacked(solutions, row_of_label, name) for name in names}
    return {
        **columns,
        "status": np.array(STATUS_NAMES)[columns["status"]],
        "suboptimality": 0.5 * columns["gradient_norm"] ** 2,  # of a 1-strongly convex objective
        "seconds": columns["seconds"] / np.bincount(row_of_label)[row_of_label],
    }


def warn_of_fit(estimator: Any) -> None:
    """Warn of labels that did not converge, and of a loss in accuracy by pruning."""
    name, report = type(estimator).__name__, estimator.fit_report_
    is_trained = np.ones(len(report["status"]), bool)
    if not estimator._is_binary:  # the weights of an unseen label do not matter
        is_trained[estimator._unseen_labels] = False
    for status, text in (
        (
            "max_iter",
            f"did not converge within max_iter={estimator.max_iter} Newton steps (labels {{}}). "
            "Raise max_iter or tol, or lower C; fit_report_ holds a bound on the error of each.",
        ),
        (
            "stalled",
            f"stopped at the precision of {estimator.intercept_.dtype} before their stopping rule "
            "held (labels {}). Raise tol, scale X to rows of about unit length, or pass X as "
            "float64 if it is not.",
        ),
    ):
        labels = np.flatnonzero((report["status"] == status) & is_trained)
        if labels.size:
            some = ", ".join(map(str, labels[:5])) + (", ..." if len(labels) > 5 else "")
            warn(
                f"{name}: {labels.size} of {len(is_trained)} labels {text.format(some)}",
                ConvergenceWarning,
            )
    removed = report["pruned"][is_trained]
    if removed.size and removed.mean() > _LARGE_SHARE:
        warn(
            f"{name}: prune={estimator.prune} removed weights with {removed.mean():.0%} of their "
            "squared norm, in the mean over the labels: predictions need them. Lower it: weights "
            "are the smaller, the larger X is.",
            PruningWarning,
        )
