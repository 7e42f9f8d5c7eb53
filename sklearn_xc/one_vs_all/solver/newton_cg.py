"""Newton-CG with line search for a block of labels, in lockstep.

Each label's problem is solved on its own: its arithmetic does not depend on the other labels. They
share the one step that reads all of X, the screen, which costs little more for 64 labels than for
one. A label that has converged leaves its lane to the next one in the queue.

The steps of section 2 of Schultheis and Babbar (2022), after Galli and Lin (2021), and their
places:

==============================================  =================================================
start vector, such as mean-separating           ``_Block._begin``, ``starts.msi``
rows with a loss at the trial points            ``screening``, ``kernels.screen``
objective, line search, sufficient decrease     ``kernels.newton_step``: ``take_step``
gradient, certificate, Hessian products, CG     ``kernels.newton_direction``: ``find_direction``
stopping rule ``|g| <= eps |g(0)|``             ``_Block.finish_step``
pruning                                         ``_Block._retire``
==============================================  =================================================

``kernels.block_newton.advance`` runs the compiled steps for all lanes. ``working_sets`` solves
labels of large problems beforehand, ``shared_negatives`` those among them that end at the kink, and
``smooth_newton`` takes the place of ``advance`` for losses that are never zero.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._input.data import CsrRows, read_only
from sklearn_xc._parallel.memory import format_bytes
from sklearn_xc._parallel.progress import StopFlag
from sklearn_xc.one_vs_all.kernels.block_newton import (
    MAX_FLAT,
    Scratch,
    block_newton_kernel,
    list_weights,
    measure_start,
    norm_of_difference,
)
from sklearn_xc.one_vs_all.kernels.lanes import Lanes
from sklearn_xc.one_vs_all.problem import (
    FEWEST_ROWS,
    InstanceSums,
    OneVsAllProblem,
    sum_positives,
)
from sklearn_xc.one_vs_all.solver.screening import CsrScreen, list_length, make_screen
from sklearn_xc.one_vs_all.solver.shared_negatives import (
    KinkSolution,
    KinkSolver,
    SharedNegatives,
    response_of_negatives,
)
from sklearn_xc.one_vs_all.solver.smooth_newton import SmoothNewton, smooth_workspace_bytes
from sklearn_xc.one_vs_all.solver.working_sets import (
    Batch,
    WorkingSetSolver,
    labels_that_pay,
    weights_of,
    working_set_bytes,
)

#: Of conjugate gradients: tolerance, weight of the Hessian's diagonal in the preconditioner, and
#: the most iterations.
_CG = 0.5, 0.01, 100
#: A gradient at zero counts as zero up to this many times the rounding of its sum.
_ROUNDINGS = 8.0

#: Active rows are copied compactly if they have at most this many times d non-zeros.
_COPY_FEATURES = 8
#: Candidates of the lanes in a call of ``advance``: Ctrl-C waits for its end.
_CHUNK_ROWS = 2**20

#: Tolerance and certificate of the problem whose solution is the shared negatives.
_NEGATIVES_TOLERANCE, _NEGATIVES_GAP = 1e-3, 1e-4

CONVERGED, OUT_OF_ITERATIONS, STALLED = range(3)
STATUS_NAMES = ("converged", "max_iter", "stalled")

_LOCK = Lock()


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
    objective, gradient_norm, gradient_tolerance : ndarray of float64 (m,)
        Evaluated in float64 at the weights before pruning.
    pruned : ndarray of float64 of shape (m,)
        Share of the weights' squared norm that pruning has removed.
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
    pruned: np.ndarray
    seconds: np.ndarray


class LabelReport(NamedTuple):
    """How a label was solved: the numbers of ``BlockSolution`` of the same names."""

    n_iter: int
    n_products: int
    status: int
    objective: float
    gradient_norm: float
    gradient_tolerance: float
    pruned: float


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
        After the step.
    """

    label: int
    n_iter: int
    step_length: float
    active_share: float
    objective: float
    gradient_norm: float


def workspace_bytes(n: int, d: int, n_lanes: int, itemsize: int, side_by_side: bool = False) -> int:
    """Return about how many bytes a block's workspace takes, without X and the weights found.

    `side_by_side` is ``is_side_by_side`` of the problem.
    """
    if side_by_side:
        points = 2 * n_lanes * (d + 1) * itemsize
        smooth = smooth_workspace_bytes(n, d, itemsize)
        return points + smooth + 7 * (d + 2) * (8 + itemsize)
    points = (d + 1) * n_lanes * (2 * itemsize + 2)
    lists = list_length(n) * n_lanes * 4
    vectors = n * (4 * 2 + 8 * 4) + (d + 2) * (4 * 3 + 8 * 3 + 7 * itemsize)
    copy = _COPY_FEATURES * d * (4 + itemsize)
    sets = 0 if n < FEWEST_ROWS else working_set_bytes(n, d, n_lanes, itemsize)
    return points + lists + vectors + copy + sets


def largest_array(n: int, d: int, n_lanes: int, itemsize: int) -> str:
    """Name the largest array of a block's workspace, with its shape and size."""
    points = 2 * n_lanes * (d + 1) * itemsize
    lists = 4 * n_lanes * list_length(n)
    if points > lists:
        return f"the points of a block, 2 x {n_lanes} labels x {d + 1} ({format_bytes(points)})"
    length = list_length(n)
    return f"the candidate instances, {n_lanes} labels x up to {length} ({format_bytes(lists)})"


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
    initialiser : Initialiser or None
        See ``sklearn_xc.one_vs_all.starts``; None starts at zero.
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
        Filled with the weights and intercepts before pruning, of the dtype of X. A row is written
        once its label is solved, so the array may hold the starts.

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
        while len(occupied := block.fill_lanes()):
            block.advance_lanes(occupied)
            block.finish_steps(occupied)
    return block.results.solution(perf_counter() - began)


def solve_all_negative(
    problem: OneVsAllProblem, sums: InstanceSums, **changes: Any
) -> BlockSolution:
    """Solve the problem of a label without positives, with further changes, from zero."""
    all_negative = problem.all_negative(**changes)
    return solve_block(all_negative, sums, None, None, np.zeros(1, np.int64), n_lanes=1)


def shared_negatives_of(problem: OneVsAllProblem, sums: InstanceSums) -> SharedNegatives:
    """Return the shared negatives of a sparse problem; each process computes them once."""
    with _LOCK:
        if "shared_negatives" not in vars(problem):
            solution = solve_all_negative(
                problem,
                sums,
                relative_tolerance=np.array([_NEGATIVES_TOLERANCE]),
                relative_gap=_NEGATIVES_GAP,
                fit_intercept=False,
            )
            found = response_of_negatives(problem, solution.indices, solution.values)
            vars(problem)["shared_negatives"] = found
        return vars(problem)["shared_negatives"]


class _Results:
    """Weights and reports of the labels of a block that are solved.

    Parameters
    ----------
    labels : ndarray of int64 of shape (m,)
    dtype : dtype
        Of X.

    Attributes
    ----------
    weights : list of (ndarray, ndarray) or None
        Features and values of each label's weights after pruning.
    intercepts : ndarray of shape (m,)
    reports : list of LabelReport or None
    """

    def __init__(self, labels: np.ndarray, dtype: np.dtype) -> None:
        self.labels = labels
        self.weights: list[Any] = [None] * len(labels)
        self.intercepts = np.zeros(len(labels), dtype)
        self.reports: list[Any] = [None] * len(labels)

    def keep(
        self,
        place: int,
        features: np.ndarray,
        values: np.ndarray,
        intercept: float,
        report: LabelReport,
    ) -> None:
        """Keep the result of the label at a position."""
        self.weights[place] = features, values
        self.intercepts[place] = intercept
        self.reports[place] = report

    def solution(self, wall: float) -> BlockSolution:
        """Return the results; `wall` is the time that they took, in seconds."""
        features, values = zip(*self.weights, strict=True)
        columns = map(np.array, zip(*self.reports, strict=True))
        report = dict(zip(LabelReport._fields, columns, strict=True))
        share = 1.0 + report["n_iter"] + report["n_products"]
        lengths = [len(one) for one in features]
        return BlockSolution(
            labels=self.labels,
            indptr=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
            indices=np.concatenate(features),
            values=np.concatenate(values),
            intercepts=self.intercepts,
            **report,
            seconds=wall * share / share.sum(),
        )


@dataclass
class _Label:
    """The label in a lane; `place` is its position in the block."""

    place: int
    tolerance: float
    starts_at_zero: bool = False


@dataclass
class _Block:
    """A block of labels: the methods follow in the order of their calls by ``solve_block``.

    Its parameters are those of ``solve_block``. A `place` is the position of a label in `labels`,
    `k` the number of a lane.

    Attributes
    ----------
    results : _Results
    waiting : deque of int
        Places of the labels that may begin, in this order.
    occupants : list of _Label or None
        The label in each lane.
    n_iter, n_products : ndarray of int64 of shape (n_lanes,)
        Steps and Hessian products of each so far; -1 steps before its start is evaluated.
    parents, children : ndarray of int64 or None, and dict of int to list of int
        With ``initialiser.parents``, the place at whose weights each label starts, and the labels
        that begin once a label is solved.
    at_kink : dict
        Starts of labels that working sets have left at the kink, as ``_start`` reads them.
    rounding : float
        Up to this, times the label's loss weights, a gradient at zero counts as zero.
    weight : ndarray of shape (n,) or (n_lanes * n,)
        Row weights, with a relevance of pairs those of each lane.
    screen : Screen
        Lists the candidates of each lane.
    smooth : SmoothNewton or None
        Takes the place of `screen` and `advance` for losses that are never zero.
    advance : callable
        The kernel, which moves `lanes`, with `scratch` as work space.
    mean : ndarray of shape (d + 1,)
        Mean of the instances, of their dtype, which limits the length of steps; empty without a
        kink.
    """

    problem: OneVsAllProblem
    sums: InstanceSums
    initialiser: Any
    prepared: Any
    labels: np.ndarray
    n_lanes: int
    stop: StopFlag | None
    observe: Callable[[NewtonStep], None] | None
    ends: np.ndarray | None

    def __post_init__(self) -> None:
        problem, sums = self.problem, self.sums
        self.labels = np.asarray(self.labels, np.int64)
        n_lanes = min(self.n_lanes, max(1, len(self.labels)))
        self.results = _Results(self.labels, problem.dtype)
        self.advance = block_newton_kernel(problem.loss, problem.rows_of)
        self.smooth = None
        if problem.is_side_by_side:
            self.smooth = SmoothNewton(problem, _CG, self._check_stop)
        self.screen = make_screen(problem, n_lanes)
        mean = sums.total / sums.weight if problem.loss.has_kink else np.zeros(0)
        self.mean = read_only(mean.astype(problem.dtype))
        self.lanes = _lanes(problem, n_lanes)
        self.weight = problem.weight
        if problem.relevance is not None and self.smooth is None:
            self.weight = np.tile(problem.weight, n_lanes)
            self.lanes.first_row[:] = problem.n_samples * np.arange(n_lanes)
        self.scratch = _make_scratch(problem, self.smooth is not None)
        self.occupants: list[_Label | None] = [None] * n_lanes
        self.n_iter, self.n_products = np.zeros((2, n_lanes), np.int64)
        self.parents = None
        if self.initialiser is not None:
            self.parents = self.initialiser.parents(problem, self.labels)
        size = sums.squares**0.5 * sums.weight**0.5
        spread = -float(problem.loss.slope(0.0)) * (1.0 + problem.n_samples**0.5)
        self.rounding = _ROUNDINGS * np.finfo(np.float64).eps * spread * size
        self.children: dict[int, list[int]] = {}
        self.waiting = deque(self._without_parents())
        self.at_kink: dict[int, tuple[np.ndarray, np.ndarray, float, float]] = {}

    def _without_parents(self) -> list[int]:
        """Store each label's children; return the places of the labels without a parent.

        Labels with similar numbers of positives are solved together: their steps cost the same.
        """
        if self.parents is None:
            n_positives = np.diff(self.problem.y_indptr)[self.labels]
            return np.argsort(-n_positives, kind="stable").tolist()
        for place, parent in enumerate(self.parents):
            if parent >= 0:
                self.children.setdefault(int(parent), []).append(place)
        return np.flatnonzero(self.parents < 0).tolist()

    def solve_on_working_sets(self) -> None:
        """Solve the waiting labels for which working sets pay; keep starts of some others."""
        waiting = np.array(self.waiting, np.int64)
        waiting = waiting[labels_that_pay(self.problem, self.screen, self.labels[waiting])]
        if not len(waiting):
            return
        assert isinstance(self.screen, CsrScreen)
        negatives = shared_negatives_of(self.problem, self.sums)
        at_kink = KinkSolver(self.problem, negatives, self.scratch, self._check_stop)
        solver = WorkingSetSolver(
            self.problem,
            self.screen,
            negatives.weight,
            self.advance,
            _CG,
            self.scratch,
            self.n_lanes,
            self._check_stop,
        )
        for initialiser, chosen in self.initialiser.groups(self.labels[waiting]):
            places = waiting[chosen]
            if not len(places):
                continue
            found = solver.solve(
                self.labels[places], initialiser, self.prepared, self.sums, self.rounding
            )
            for batch, is_solved in found:
                if is_solved:
                    self._keep(batch, places[batch.place])
                else:
                    self._add_shared_negatives(at_kink, batch, places[batch.place])
        self.waiting = deque(p for p in self.waiting if self.results.reports[p] is None)

    def _keep(self, batch: Batch, places: np.ndarray) -> None:
        """Keep the results of labels that were solved on working sets."""
        status = np.full(len(batch), STALLED)
        status[batch.n_iter >= self.problem.max_iter] = OUT_OF_ITERATIONS
        met = batch.gradient_norm <= np.maximum(
            batch.threshold, np.where(batch.n_iter > 0, batch.tolerance, 0.0)
        )
        status[met] = CONVERGED
        certified = np.sqrt(2.0 * self.problem.relative_gap * batch.objective)
        tolerance = np.maximum(batch.tolerance, np.where(certified < np.inf, certified, 0.0))
        (indptr, features, values), pruned = weights_of(batch, self.problem.prune)
        intercept = batch.intercept
        for c, place in enumerate(places.tolist()):
            own = slice(indptr[c], indptr[c + 1])
            report = LabelReport(
                n_iter=batch.n_iter[c],
                n_products=batch.n_products[c],
                status=status[c],
                objective=batch.objective[c],
                gradient_norm=batch.gradient_norm[c],
                gradient_tolerance=tolerance[c],
                pruned=pruned[c],
            )
            self.results.keep(place, features[own], values[own], intercept[c], report)
            if self.ends is not None:
                self.ends[place] = 0.0
                self.ends[place, np.append(batch.features[c], -1)] = batch.weights[c]

    def _add_shared_negatives(self, solver: KinkSolver, batch: Batch, places: np.ndarray) -> None:
        """Add the shared negatives to labels at the kink; those not solved start at the result."""
        above = batch.intercept + self.problem.loss.active_below
        is_at_kink = (above > 0) & np.isfinite(batch.objective)
        for c in np.flatnonzero(is_at_kink).tolist():
            place = int(places[c])
            features, weights = batch.features[c], batch.weights[c][:-1]
            found = solver.solve(
                int(batch.label[c]), features, weights, above[c], batch.tolerance[c]
            )
            if found.is_solved:
                self._keep_at_kink(batch, c, place, found)
            elif np.isfinite(found.point).all():
                changed = np.flatnonzero(found.own).astype(np.int32)
                intercept = float(found.point[-1])
                self.at_kink[place] = changed, found.own[changed], found.share, intercept

    def _keep_at_kink(self, batch: Batch, c: int, place: int, found: KinkSolution) -> None:
        """Keep the result of label c of a batch, which is solved at the kink."""
        features, values, pruned = self._pruned(found.point)
        report = LabelReport(
            n_iter=batch.n_iter[c],
            n_products=batch.n_products[c],
            status=CONVERGED,
            objective=found.objective,
            gradient_norm=found.gradient_norm,
            gradient_tolerance=batch.tolerance[c],
            pruned=pruned,
        )
        self.results.keep(place, features, values, float(found.point[-1]), report)
        if self.ends is not None:
            self.ends[place] = found.point

    def _pruned(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the weights that pruning leaves, with their features, and the share removed."""
        features, values = self.scratch.touched, self.scratch.work[0]
        n_kept, removed = list_weights(point, self.problem.prune, features, values)
        return features[:n_kept].copy(), values[:n_kept].copy(), removed

    def _check_stop(self) -> None:
        if self.stop is not None and self.stop.is_set():
            raise KeyboardInterrupt

    def fill_lanes(self) -> np.ndarray:
        """Give each empty lane the next label, at its start; return the occupied lanes."""
        for k, occupant in enumerate(self.occupants):
            if occupant is None and self.waiting:
                self._check_stop()
                self.occupants[k] = self._begin(k, self.waiting.popleft())
        return np.flatnonzero([occupant is not None for occupant in self.occupants])

    def _begin(self, k: int, place: int) -> _Label:
        """Set a lane's first trial point: the start of the label."""
        problem, lanes = self.problem, self.lanes
        label = int(self.labels[place])
        plus, minus = problem.plus[label], problem.minus[label]
        weight = problem.weight_of(label)
        positive_sum = sum_positives(problem, label, weight)
        if self.weight is not problem.weight:
            self.weight[lanes.first_row[k] :][: len(weight)] = weight
        at_zero = -float(problem.loss.slope(0.0)) * norm_of_difference(
            plus + minus, positive_sum, minus, self.sums.total
        )
        # Where the gradients of positives and negatives cancel, zero is the optimum.
        rounding = self.rounding * (plus + minus)
        zero_is_optimal = at_zero <= rounding
        lanes.label[k] = label
        lanes.plus[k] = plus
        lanes.minus[k] = minus
        first, last = problem.y_indptr[label : label + 2]
        lanes.first_positive[k], lanes.n_positives[k] = first, last - first
        lanes.objective[k] = np.inf
        for counter in (lanes.n_active, lanes.n_halved, lanes.n_flat, lanes.slope):
            counter[k] = 0
        self.n_iter[k], self.n_products[k] = -1, 0
        # The first step is always taken, even from a start that meets the stopping rule.
        lanes.threshold[k] = rounding if zero_is_optimal else 0.0
        self._start_at(k, None if zero_is_optimal else self._start(place, label, positive_sum))
        if zero_is_optimal:
            return _Label(place, rounding, starts_at_zero=True)
        return _Label(place, float(problem.relative_tolerance[label]) * at_zero)

    def _start(self, place: int, label: int, positive_sum: np.ndarray) -> np.ndarray | None:
        """Return the start vector of a label; None for zero."""
        if place in self.at_kink:
            features, weights, share, intercept = self.at_kink.pop(place)
            negatives = shared_negatives_of(self.problem, self.sums)
            start = np.append(share * negatives.weights, intercept)
            start[features] += weights
            return start
        if self.initialiser is None:
            return None
        if self.parents is None or self.parents[place] < 0:
            return self.initialiser.start(self.prepared, self.problem, label, positive_sum)
        parent = self.parents[place]
        return self.problem.point(*self.results.weights[parent], self.results.intercepts[parent])

    def _start_at(self, k: int, start: np.ndarray | None) -> None:
        """Set a lane's trial point to a start vector, or to zero if that is None or not finite."""
        trial = self.lanes.trial(k)
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
        self.lanes.trial_norm2[k] = norm2

    def advance_lanes(self, occupied: np.ndarray) -> None:
        """Advance the occupied lanes by one step, some lanes in each call."""
        if self.smooth is not None:
            self.smooth.advance(self.lanes, occupied)
            return
        problem, lanes = self.problem, self.lanes
        n_candidates = self.screen.list_candidates(lanes, occupied, self._check_stop)
        n_listed = n_candidates[: len(occupied)]
        n_listed = np.where(n_listed < 0, problem.n_samples, n_listed)
        work = n_listed + lanes.n_positives[occupied]
        first = 0
        while first < len(occupied):
            last = first + max(1, int((np.cumsum(work[first:]) <= _CHUNK_ROWS).sum()))
            self.advance(
                problem.instances.arrays,
                read_only(self.weight),
                problem.y_rows,
                lanes.state,
                lanes.points,
                occupied[first:last],
                self.screen.candidates[first:last],
                n_candidates[first:last],
                self.mean,
                _CG,
                self.scratch,
            )
            first = last
            self._check_stop()

    def finish_steps(self, occupied: np.ndarray) -> None:
        """Apply the stopping rule to the lanes: continue, or retire the label."""
        lanes = self.lanes
        step = lanes.step_length[occupied]
        # Most steps are neither the first nor the last one, and were not halved.
        goes_on = (step > 0) & (lanes.gradient_norm[occupied] > lanes.threshold[occupied])
        goes_on &= (lanes.n_flat[occupied] <= MAX_FLAT) & (self.n_iter[occupied] >= 0)
        goes_on &= self.n_iter[occupied] + 1 < self.problem.max_iter
        if self.observe is not None:
            goes_on[:] = False
        self.n_iter[occupied] += goes_on
        self.n_products[occupied] += np.where(goes_on, lanes.n_products[occupied], 0)
        for k in occupied[~goes_on & (step >= 0)].tolist():
            self._finish_step(k)

    def _finish_step(self, k: int) -> None:
        lanes = self.lanes
        label = self.occupants[k]
        assert label is not None
        is_start = self.n_iter[k] < 0
        if is_start and not (label.starts_at_zero or math.isfinite(lanes.objective[k])):
            label.starts_at_zero = True
            lanes.objective[k] = np.inf
            self._start_at(k, None)
            return
        self.n_iter[k] += 1
        self.n_products[k] += lanes.n_products[k]
        if self.observe is not None:
            self.observe(self._step_taken(k))
        status = self._status(k, label)
        if status is not None:
            self._retire(k, label, status)
        elif is_start:  # ``find_direction`` lowers it, as the objective falls
            certified = math.sqrt(2.0 * self.problem.relative_gap * lanes.objective[k])
            lanes.threshold[k] = certified if certified < math.inf else label.tolerance

    def _step_taken(self, k: int) -> NewtonStep:
        lanes = self.lanes
        return NewtonStep(
            label=int(lanes.label[k]),
            n_iter=int(self.n_iter[k]),
            step_length=float(lanes.step_length[k]),
            active_share=float(lanes.n_active[k] / self.problem.n_samples),
            objective=float(lanes.objective[k]),
            gradient_norm=float(lanes.gradient_norm[k]),
        )

    def _status(self, k: int, label: _Label) -> int | None:
        """Return the status of a label that is done; None where it continues."""
        lanes = self.lanes
        norm = lanes.gradient_norm[k]
        if norm <= lanes.threshold[k]:
            return CONVERGED
        is_stalled = lanes.step_length[k] == 0 or lanes.n_flat[k] > MAX_FLAT
        if not is_stalled and self.n_iter[k] < self.problem.max_iter:
            return None
        if self.n_iter[k] > 0 and norm <= label.tolerance:
            return CONVERGED  # the rule holds, but precision allows no certificate
        return STALLED if is_stalled else OUT_OF_ITERATIONS

    def _retire(self, k: int, label: _Label, status: int) -> None:
        """Prune the weights of a label, keep its results and empty its lane."""
        lanes = self.lanes
        point = lanes.iterate(k)
        features, values, pruned = self._pruned(point)
        report = LabelReport(
            n_iter=int(self.n_iter[k]),
            n_products=int(self.n_products[k]),
            status=status,
            objective=lanes.objective[k],
            gradient_norm=lanes.gradient_norm[k],
            gradient_tolerance=max(label.tolerance, lanes.threshold[k]),
            pruned=pruned,
        )
        self.results.keep(label.place, features, values, point[-1], report)
        if self.ends is not None:
            self.ends[label.place] = point
        self.waiting.extend(self.children.pop(label.place, ()))
        self.occupants[k] = None


def _lanes(problem: OneVsAllProblem, n_lanes: int) -> Lanes:
    """Return lanes that read all of X."""
    d = problem.n_features
    return Lanes(
        np.zeros(n_lanes * 2 * (d + 1), problem.dtype),
        np.zeros(n_lanes, np.int64),
        intercept=problem.intercept,
        gap=problem.relative_gap,
        first=2 * (d + 1) * np.arange(n_lanes),
        width=d + 1,
        n_rows=problem.n_samples,
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
        every_row=np.arange(n, dtype=np.int32),
        numbers=np.empty((4, n)),
        position=np.full(d, -1, np.int32),
        touched=np.empty(d + 1, np.int32),
        every_feature=np.arange(d + 1, dtype=np.int32),
        local=local,
        room=room,
        derivatives=np.empty((2, d + 2)),
        work=np.empty((6, d + 2), dtype),
    )
