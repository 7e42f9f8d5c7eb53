"""Newton-CG with line search for a block of labels, in lockstep.

Each label's problem is solved on its own: its arithmetic does not depend on the labels beside it.
They share the one step that reads all of X, the screen, which costs little more for 64 labels than
for one. A label that has converged leaves its lane to the next one in the queue.

The steps of section 2 of Schultheis and Babbar (2022), after Galli and Lin (2021), and their
places:

==============================================  =================================================
start vector, such as mean-separating           ``_Block._begin``, ``starts.msi``
rows with a loss at the trial points            ``screening``, ``kernels.screen``
objective, line search, sufficient decrease     ``kernels.line_search``: ``take_step``
gradient, certificate, Hessian products, CG     ``kernels.newton_direction``: ``find_direction``
stopping rule ``|g| <= eps |g(0)|``             ``_Block.finish_step``
pruning, and its effect on the objective        ``_Block._prune``
==============================================  =================================================

``kernels.block_newton.advance`` runs the compiled steps for all lanes. ``working_sets`` solves
labels of large problems beforehand, ``shared_negatives`` those among them that end at the kink, and
``smooth_newton`` takes the place of ``advance`` for losses that are never zero.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._input.data import CsrRows, read_only
from sklearn_xc._parallel.memory import format_bytes
from sklearn_xc._parallel.progress import StopFlag
from sklearn_xc.one_vs_all.kernels.block_newton import (
    MAX_FLAT,
    Lanes,
    Rows,
    Scratch,
    WorkingSets,
    block_newton_kernels,
    list_weights,
    make_lanes,
    measure_start,
    norm_of_difference,
    prune_point,
)
from sklearn_xc.one_vs_all.kernels.line_search import NEWTON, PRUNED
from sklearn_xc.one_vs_all.problem import (
    FEWEST_ROWS,
    InstanceSums,
    OneVsAllProblem,
    sample_of,
    sum_rows,
)
from sklearn_xc.one_vs_all.solver.screening import CsrScreen, make_screen
from sklearn_xc.one_vs_all.solver.shared_negatives import (
    KinkSolution,
    KinkSolver,
    shared_negatives_of,
)
from sklearn_xc.one_vs_all.solver.smooth_newton import SmoothNewton, smooth_workspace_bytes
from sklearn_xc.one_vs_all.solver.working_sets import (
    Batch,
    WorkingSetSolver,
    labels_that_pay,
    weights_of,
    working_set_bytes,
)

CG_TOLERANCE = 0.5
CG_MAX_ITER = 100
PRECONDITIONER_WEIGHT = 0.01
_CG = CG_TOLERANCE, PRECONDITIONER_WEIGHT, CG_MAX_ITER
#: A gradient at zero counts as zero up to this many times the rounding of its sum.
_ROUNDINGS = 8.0

#: Active rows are copied compactly if they have at most this many times d non-zeros.
_COPY_FEATURES = 8
#: Candidates of the lanes in a call of ``advance``: Ctrl-C waits for its end.
_ROWS_PER_CALL = 2**20

#: Sample of rows for ``limit_step``: share of all rows, least and largest number.
SAMPLE_SHARE = 0.01
SAMPLE_ROWS = (128, 512)

CONVERGED, OUT_OF_ITERATIONS, STALLED = range(3)
STATUS_NAMES = ("converged", "max_iter", "stalled")


@dataclass
class BlockSolution:
    """Weights of a block of labels, with their certificates.

    Attributes
    ----------
    labels : ndarray of int64 of shape (m,)
        Labels of the rows below.
    indptr, indices, values : ndarray
        Weights after pruning in CSR form, (m, d).
    intercepts : ndarray of shape (m,)
        Intercepts, of the dtype of X.
    n_iter, n_products, status : ndarray of int64 of shape (m,)
        Newton steps, products with the Hessian, and an index into ``STATUS_NAMES``.
    objective, gradient_norm, gradient_tolerance, pruned_objective : ndarray of float64 (m,)
        Evaluated in float64 at the weights before pruning (but the last).
    seconds : ndarray of float64 of shape (m,)
        The block's wall time, divided in proportion to Newton steps and Hessian products.
    """

    labels: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    intercepts: np.ndarray
    n_iter: np.ndarray
    n_products: np.ndarray
    status: np.ndarray
    objective: np.ndarray
    gradient_norm: np.ndarray
    gradient_tolerance: np.ndarray
    pruned_objective: np.ndarray
    seconds: np.ndarray


class NewtonStep(NamedTuple):
    """One step of one label, for observers.

    Attributes
    ----------
    label, n_iter : int
        Label, and Newton steps so far; 0 is the start vector.
    step_length : float
        Step length of the line search.
    active_share : float
        Share of the instances with a loss after the step.
    objective, gradient_norm : float
        After the step, in the arithmetic of X.
    """

    label: int
    n_iter: int
    step_length: float
    active_share: float
    objective: float
    gradient_norm: float


@dataclass
class _Label:
    """State of a label in a lane; -1 steps before its start is evaluated."""

    row: int
    tolerance: float
    starts_at_zero: bool = False
    n_iter: int = -1
    n_products: int = 0
    status: int = CONVERGED


def workspace_bytes(n: int, d: int, n_lanes: int, itemsize: int, side_by_side: bool = False) -> int:
    """Return about how many bytes a block's workspace takes besides X and the weights found.

    `side_by_side` is ``is_side_by_side`` of the problem.
    """
    if side_by_side:
        points = 2 * n_lanes * (d + 1) * itemsize
        smooth = smooth_workspace_bytes(n, d, itemsize)
        return points + smooth + 7 * (d + 2) * (8 + itemsize)
    points = (d + 1) * n_lanes * (2 * itemsize + 2)
    lists = 2 * n * n_lanes * 4
    vectors = n * (4 * 3 + 8 * 5) + (d + 2) * (4 * 2 + 8 * 3 + 6 * itemsize)
    copy = _COPY_FEATURES * d * (4 + itemsize)
    sets = 0 if n < FEWEST_ROWS else working_set_bytes(n, d, n_lanes, itemsize)
    return points + lists + vectors + copy + sets


def largest_array(n: int, d: int, n_lanes: int, itemsize: int) -> str:
    """Name the largest array of a block's workspace, with its shape and size."""
    points = 2 * n_lanes * (d + 1) * itemsize
    lists = 4 * n_lanes * n
    if points > lists:
        return f"the points of a block, 2 x {n_lanes} labels x {d + 1} ({format_bytes(points)})"
    return f"the candidate instances, {n_lanes} labels x up to {n} ({format_bytes(lists)})"


def solve_block(
    problem: OneVsAllProblem,
    sums: InstanceSums,
    initialiser: Any,
    prepared: Any,
    labels: np.ndarray,
    n_lanes: int,
    stop: StopFlag | None = None,
    observe: Callable[[NewtonStep], None] | None = None,
    ends: np.ndarray | None = None,
) -> BlockSolution:
    """Solve some labels' problems and return their pruned weights and certificates.

    Parameters
    ----------
    problem : OneVsAllProblem
        The problems of all labels.
    sums : InstanceSums
        Sums over its instances.
    initialiser : Initialiser
        See ``sklearn_xc.one_vs_all.starts``.
    prepared : object
        Result of ``initialiser.prepare``.
    labels : ndarray of int64
        The labels to solve.
    n_lanes : int
        Labels solved side by side, at most 64.
    stop : StopFlag, optional
        Once set, KeyboardInterrupt is raised.
    observe : callable, optional
        Called with a ``NewtonStep`` after every step of every label, starts included.
    ends : ndarray of shape (len(labels), d + 1), optional
        Filled with the weights and intercepts before pruning, of the dtype of X. Pruning is then
        not measured: ``pruned_objective`` is NaN. A row is written once its label is solved, so the
        array may hold the starts.

    Returns
    -------
    BlockSolution
        Rows in the order of `labels`.
    """
    block = _Block(problem, sums, initialiser, prepared, labels, n_lanes, stop, observe, ends)
    began = perf_counter()
    with np.errstate(over="ignore", invalid="ignore"):  # points that are not finite are rejected
        if problem.n_samples >= FEWEST_ROWS and block.parents is None and observe is None:
            block.solve_on_working_sets()
        while True:
            block.fill_lanes()
            occupied = [k for k, label in enumerate(block.occupants) if label is not None]
            if not occupied:
                return block.solution(perf_counter() - began)
            block.advance_lanes(np.array(occupied))
            for k in occupied:
                block.finish_step(k)


class _Block:
    """A block of labels: the methods follow in the order of their calls by ``solve_block``."""

    def __init__(self, problem, sums, initialiser, prepared, labels, n_lanes, stop, observe, ends):
        self.problem, self.sums = problem, sums
        self.initialiser, self.prepared = initialiser, prepared
        self.stop, self.observe, self.ends = stop, observe, ends
        self.labels = np.asarray(labels, np.int64)
        self.n_lanes = n_lanes
        n_lanes = min(n_lanes, max(1, len(self.labels)))
        self.advance = block_newton_kernels(problem.loss, problem.rows_of).advance
        self.smooth = None
        if problem.is_side_by_side:
            self.smooth = SmoothNewton(problem, _CG, self._check_stop)
        self.screen = make_screen(problem, n_lanes)
        self.data = Rows(
            problem.instances.arrays,
            problem.weight,
            sums.weight,
            _sample(problem.n_samples),
            problem.y_indptr,
            problem.y_rows,
            problem.intercept,
            problem.relative_gap,
        )
        self.state = _lanes(problem, n_lanes)
        self.scratch = _make_scratch(problem, self.smooth is not None)
        self.no_sets = _no_working_sets(problem, n_lanes)
        self.occupants: list[_Label | None] = [None] * n_lanes
        self.parents = initialiser.parents(problem, self.labels)
        size = sums.squares**0.5 * sums.weight**0.5
        spread = -float(problem.loss.slope(0.0)) * (1.0 + problem.n_samples**0.5)
        self.rounding = _ROUNDINGS * np.finfo(np.float64).eps * spread * size
        self.children: dict[int, list[int]] = {}
        self.waiting = deque(self._without_parents())
        self.at_kink: dict[int, tuple[np.ndarray, np.ndarray, float, float]] = {}
        self.weights: list[Any] = [None] * len(self.labels)
        self.report = np.zeros((7, len(self.labels)))
        self.intercepts = np.zeros(len(self.labels), problem.dtype)

    def solve_on_working_sets(self) -> None:
        """Solve the waiting labels for which working sets pay; keep starts of some others."""
        rows = np.array(self.waiting, np.int64)
        rows = rows[labels_that_pay(self.problem, self.screen, self.labels[rows])]
        if not len(rows):
            return
        assert isinstance(self.screen, CsrScreen)
        negatives = shared_negatives_of(self.problem, self.sums, solve_block)
        at_kink = KinkSolver(self.problem, negatives, self.scratch, self._check_stop)
        solver = WorkingSetSolver(
            self.problem,
            self.data,
            self.screen,
            negatives.weight,
            self.advance,
            _CG,
            self.scratch,
            self.n_lanes,
            self._check_stop,
        )
        solved: set[int] = set()
        for initialiser, chosen in self.initialiser.groups(self.labels[rows]):
            some = rows[chosen]
            if not len(some):
                continue
            found = solver.solve(
                self.labels[some], initialiser, self.prepared, self.sums, self.rounding
            )
            for batch, is_solved in found:
                places = some[batch.place]
                if is_solved:
                    self._keep(batch, places)
                    solved.update(places.tolist())
                else:
                    solved.update(self._add_shared_negatives(at_kink, batch, places))
        self.waiting = deque(row for row in self.waiting if row not in solved)

    def _add_shared_negatives(
        self, solver: KinkSolver, batch: Batch, places: np.ndarray
    ) -> list[int]:
        """Add the shared negatives to labels at the kink; return the positions of those solved.

        The others start at the result.
        """
        above = batch.intercept + self.problem.loss.active_below
        solved = []
        is_at_kink = batch.is_tight & (above > 0) & np.isfinite(batch.objective)
        for c in np.flatnonzero(is_at_kink).tolist():
            label = int(batch.label[c])
            place = int(places[c])
            tolerance = batch.tolerance[c]
            first, last = batch.indptr[c], batch.indptr[c + 1]
            features, weights = batch.features[first:last], batch.weights[first + c : last + c]
            found = solver.solve(label, features, weights, above[c], tolerance)
            if found.is_solved:
                self.report[:, place] = (
                    batch.n_iter[c],
                    batch.n_products[c],
                    CONVERGED,
                    found.objective,
                    found.gradient_norm,
                    tolerance,
                    self._keep_point(solver, label, place, found),
                )
                solved.append(place)
            elif np.isfinite(found.point).all():
                changed = np.flatnonzero(found.own).astype(np.int32)
                intercept = float(found.point[-1])
                self.at_kink[place] = changed, found.own[changed], found.share, intercept
        return solved

    def _keep_point(self, solver: KinkSolver, label: int, place: int, found: KinkSolution) -> float:
        """Keep the weights of a label at the kink; return the pruned objective."""
        point, prune = found.point, self.problem.prune
        pruned = np.empty_like(point)
        prune_point(point, prune, pruned)
        indices = np.flatnonzero(pruned[:-1]).astype(np.int32)
        self.weights[place] = indices, pruned[indices]
        self.intercepts[place] = point[-1]
        if self.ends is not None:
            self.ends[place] = point
            return math.nan
        if prune == 0:
            return found.objective
        return solver.objective_of_few(label, indices, pruned[indices], float(point[-1]))

    def _keep(self, batch: Batch, places: np.ndarray) -> None:
        """Keep the results of labels that were solved on working sets."""
        status = np.full(len(batch), STALLED)
        status[batch.n_iter >= self.problem.max_iter] = OUT_OF_ITERATIONS
        met = batch.gradient_norm <= np.maximum(
            batch.threshold, np.where(batch.n_iter > 0, batch.tolerance, 0.0)
        )
        status[met] = CONVERGED
        indptr, features, values = weights_of(batch, self.problem.prune)
        for c, row in enumerate(places.tolist()):
            own = slice(indptr[c], indptr[c + 1])
            self.weights[row] = features[own], values[own]
        self.intercepts[places] = batch.intercept
        pruned_objective = batch.pruned_objective
        if self.ends is not None:
            pruned_objective = np.full(len(batch), np.nan)
            for c, row in enumerate(places.tolist()):
                first, last = batch.indptr[c], batch.indptr[c + 1]
                self.ends[row] = 0.0
                self.ends[row, batch.features[first:last]] = batch.weights[first + c : last + c]
                self.ends[row, -1] = batch.weights[last + c]
        elif self.problem.prune == 0:
            pruned_objective = batch.objective
        self.report[:, places] = (
            batch.n_iter,
            batch.n_products,
            status,
            batch.objective,
            batch.gradient_norm,
            batch.tolerance,
            pruned_objective,
        )

    def _without_parents(self) -> list[int]:
        """Store each label's children; return the labels without a parent.

        Labels with similar numbers of positives are solved together: their steps cost the same.
        """
        if self.parents is None:
            n_positives = np.diff(self.problem.y_indptr)[self.labels]
            return np.argsort(-n_positives, kind="stable").tolist()
        for row, parent in enumerate(self.parents):
            if parent >= 0:
                self.children.setdefault(int(parent), []).append(row)
        return [row for row, parent in enumerate(self.parents) if parent < 0]

    def _check_stop(self) -> None:
        if self.stop is not None and self.stop.is_set():
            raise KeyboardInterrupt

    def fill_lanes(self) -> None:
        """Give each empty lane the next label, whose first trial point is its start vector."""
        for k, occupant in enumerate(self.occupants):
            if occupant is None and self.waiting:
                self._check_stop()
                self.occupants[k] = self._begin(k, self.waiting.popleft())

    def _begin(self, k: int, row: int) -> _Label:
        problem = self.problem
        state = self.state
        label = int(self.labels[row])
        positive = sum_rows(problem, problem.positives(label))
        at_zero = -float(problem.loss.slope(0.0)) * norm_of_difference(
            problem.plus[label] + problem.minus[label],
            positive,
            problem.minus[label],
            self.sums.total,
        )
        tolerance = float(problem.relative_tolerance[label]) * at_zero
        # Where the gradients of positives and negatives cancel, zero is the optimum.
        rounding = self.rounding * (problem.plus[label] + problem.minus[label])
        zero_is_optimal = at_zero <= rounding
        state.label[k] = label
        state.plus[k] = problem.plus[label]
        state.minus[k] = problem.minus[label]
        state.purpose[k] = NEWTON
        state.objective[k] = np.inf
        for counter in (state.n_active, state.n_halved, state.n_flat, state.slope):
            counter[k] = 0
        # The first step is always taken, even from a start that meets the stopping rule.
        state.threshold[k] = rounding if zero_is_optimal else 0.0
        self._start_at(k, None if zero_is_optimal else self._start(row, label, positive))
        if zero_is_optimal:
            return _Label(row, rounding, starts_at_zero=True)
        return _Label(row, tolerance)

    def _start(self, row: int, label: int, positive: np.ndarray) -> np.ndarray:
        """Return the start vector of a label."""
        if row in self.at_kink:
            features, weights, share, intercept = self.at_kink.pop(row)
            negatives = shared_negatives_of(self.problem, self.sums, solve_block)
            start = np.append(share * negatives.weights, intercept)
            start[features] += weights
            return start
        if self.parents is None or self.parents[row] < 0:
            return self.initialiser.start(self.prepared, self.problem, label, positive)
        start = np.zeros(self.problem.n_features + 1, self.problem.dtype)
        indices, values = self.weights[self.parents[row]]
        start[indices] = values
        start[-1] = self.intercepts[self.parents[row]]
        return start

    def _start_at(self, k: int, start: np.ndarray | None) -> None:
        """Set a lane's trial point to a start vector, or to zero if that is None or not finite."""
        state = self.state
        trial = state.trial(k)
        if start is not None and np.shape(start) != trial.shape:
            raise ValueError(
                f"{self.problem.owner}: init: {self.initialiser!r} must start at vectors of shape "
                f"{trial.shape}. Got shape {np.shape(start)}."
            )
        trial[:] = 0.0 if start is None else start
        trial[-1] *= self.problem.intercept
        norm2 = measure_start(trial)
        if not math.isfinite(norm2 + float(trial[-1])):
            trial[:] = norm2 = 0.0
        state.trial_norm2[k] = norm2

    def advance_lanes(self, occupied: np.ndarray) -> None:
        """Advance the occupied lanes by one step, some lanes in each call."""
        if self.smooth is not None:
            self.smooth.advance(self.state, occupied)
            return
        problem, y_indptr = self.problem, self.problem.y_indptr
        labels = self.state.label[occupied]
        n_positives = y_indptr[labels + 1] - y_indptr[labels]
        n_candidates = self.screen.list_candidates(self.state, occupied, self._check_stop)
        candidates = self.screen.candidates
        work = n_candidates[: len(occupied)] + n_positives
        if not problem.loss.has_kink:
            work[:] = problem.n_samples
        first = 0
        while first < len(occupied):
            last = first + max(1, int((np.cumsum(work[first:]) <= _ROWS_PER_CALL).sum()))
            self.advance(
                self.data,
                self.no_sets,
                self.state,
                occupied[first:last],
                candidates[first:last],
                n_candidates[first:last],
                _CG,
                self.scratch,
            )
            first = last
            self._check_stop()

    def finish_step(self, k: int) -> None:
        """Apply the stopping rule to a lane: continue, prune the label, or retire it."""
        state = self.state
        label = self.occupants[k]
        assert label is not None
        if state.purpose[k] == PRUNED:
            self._retire(k, label)
            return
        if state.step_length[k] < 0:
            return
        if label.n_iter < 0 and not (label.starts_at_zero or math.isfinite(state.objective[k])):
            label.starts_at_zero = True
            state.objective[k] = np.inf
            self._start_at(k, None)
            return
        label.n_iter += 1
        label.n_products += int(state.n_products[k])
        if self.observe is not None:
            self.observe(self._step_taken(k, label))
        if state.gradient_norm[k] <= state.threshold[k]:
            label.status = CONVERGED
        elif state.step_length[k] == 0 or state.n_flat[k] > MAX_FLAT:
            label.status = STALLED
        elif label.n_iter >= self.problem.max_iter:
            label.status = OUT_OF_ITERATIONS
        else:
            if label.n_iter == 0:  # ``find_direction`` lowers it to the certificate
                state.threshold[k] = label.tolerance
            return
        if label.n_iter > 0 and state.gradient_norm[k] <= label.tolerance:
            label.status = CONVERGED  # the rule holds, but precision allows no certificate
        self._prune(k, label)

    def _prune(self, k: int, label: _Label) -> None:
        """Prune the weights of a lane; the next step evaluates their objective, if needed."""
        state = self.state
        point = self.state.iterate(k)
        state.trial_norm2[k] = prune_point(point, self.problem.prune, state.trial(k))
        state.purpose[k] = PRUNED
        if self.ends is not None:
            self.ends[label.row] = point
            state.pruned_objective[k] = math.nan
            self._retire(k, label)
        elif self.problem.prune == 0:
            state.pruned_objective[k] = state.objective[k]
            self._retire(k, label)

    def _step_taken(self, k: int, label: _Label) -> NewtonStep:
        state = self.state
        return NewtonStep(
            int(state.label[k]),
            label.n_iter,
            float(state.step_length[k]),
            float(state.n_active[k] / self.problem.n_samples),
            float(state.objective[k]),
            float(state.gradient_norm[k]),
        )

    def _retire(self, k: int, label: _Label) -> None:
        """Keep the results of a label and empty its lane."""
        state = self.state
        pruned = state.trial(k)
        indices = self.scratch.touched
        values = self.scratch.work[0]
        n_kept = list_weights(pruned, indices, values)
        self.weights[label.row] = indices[:n_kept].copy(), values[:n_kept].copy()
        self.intercepts[label.row] = pruned[-1]
        self.report[:, label.row] = (
            label.n_iter,
            label.n_products,
            label.status,
            state.objective[k],
            state.gradient_norm[k],
            label.tolerance,
            state.pruned_objective[k],
        )
        self.waiting.extend(self.children.pop(label.row, ()))
        self.occupants[k] = None

    def solution(self, wall: float) -> BlockSolution:
        n_iter, n_products, status, objective, norm, tolerance, pruned = self.report
        lengths = [len(indices) for indices, _ in self.weights]
        share = 1.0 + n_iter + n_products
        return BlockSolution(
            labels=self.labels,
            indptr=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
            indices=np.concatenate([indices for indices, _ in self.weights]),
            values=np.concatenate([values for _, values in self.weights]),
            intercepts=self.intercepts,
            n_iter=n_iter.astype(np.int64),
            n_products=n_products.astype(np.int64),
            status=status.astype(np.int64),
            objective=objective,
            gradient_norm=norm,
            gradient_tolerance=tolerance,
            pruned_objective=pruned,
            seconds=wall * share / share.sum(),
        )


def _sample(n: int) -> np.ndarray:
    return sample_of(n, min(max(int(SAMPLE_SHARE * n), SAMPLE_ROWS[0]), SAMPLE_ROWS[1]))


def _lanes(problem: OneVsAllProblem, n_lanes: int) -> Lanes:
    d = problem.n_features
    return make_lanes(
        np.zeros(n_lanes, np.int64),
        problem.n_samples if problem.loss.has_kink else 0,
        points=np.zeros(n_lanes * 2 * (d + 1), problem.dtype),
        first=2 * (d + 1) * np.arange(n_lanes),
        width=np.full(n_lanes, d + 1),
    )


def _no_working_sets(problem: OneVsAllProblem, n_lanes: int) -> WorkingSets:
    none = read_only(np.zeros(0, np.int64))
    return WorkingSets(
        np.full(n_lanes, -1),
        np.zeros(n_lanes, int),
        np.zeros(n_lanes, int),
        none,
        read_only(np.zeros(0, np.int32)),
        read_only(np.zeros(0, problem.dtype)),
        read_only(np.zeros(0, problem.dtype)),
        none,
        read_only(np.zeros(0, np.int32)),
        np.zeros(n_lanes),
        0,
    )


def _make_scratch(problem: OneVsAllProblem, is_smooth: bool) -> Scratch:
    n, d, dtype = problem.n_samples, problem.n_features, problem.dtype
    room = _COPY_FEATURES * d
    if is_smooth:
        n = room = 0
    if isinstance(problem.instances, CsrRows):
        local = np.empty(n + 1, np.int64), np.empty(room, np.int32), np.empty(room, dtype)
    else:
        local = (np.empty((0, 0), dtype),)  # dense rows are never copied
    return Scratch(
        rows=np.empty(n, np.int32),
        sign=np.empty(n),
        scores=np.empty(n),
        changes=np.empty(n),
        slopes=np.empty(n),
        curvatures=np.empty(n),
        every_row=np.arange(n, dtype=np.int32),
        position=np.full(d, -1, np.int32),
        touched=np.empty(d + 1, np.int32),
        local=local,
        room=room,
        derivatives=np.empty((2, d + 2)),
        work=np.empty((6, d + 2), dtype),
    )
