"""Newton with conjugate gradients for a block of labels in lock step.

Each label's problem is solved on its own: its arithmetic does not depend on the labels beside it.
They share the one step that reads all of X, the product with the Newton steps, because a product
with 32 vectors costs hardly more than one with a single vector. A label that has converged leaves
its lane to the next one in the queue; it is then certified in float64 from its weights alone, and
comes back if rounding had let it stop too early.

Method: section 2 of Schultheis and Babbar (2022), after Galli and Lin (2021): backtracking line
search with sufficient decrease, stopping rule ``|g| <= eps |g(0)|``.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np

from sklearn_xc.kernels.block_newton import CHUNK, block_newton_kernels
from sklearn_xc.parallel.interrupt import StopFlag
from sklearn_xc.solvers.problem import InstanceSums, OneVsAllProblem, dot, sum_rows

CG_TOLERANCE = 0.5
CG_MAX_ITER = 100
PRECONDITIONER_WEIGHT = 0.01
BACKTRACKING = 0.5
SUFFICIENT_DECREASE = 0.01
MAX_HALVINGS = 20

#: Labels certified together: the float64 block has twice as many columns.
CERTIFIED_TOGETHER = 16
#: A label that fails its certificate goes on with its tolerance times this, at most so often.
RETRY_FACTOR = 0.3
MAX_RETRIES = 3

CONVERGED, OUT_OF_ITERATIONS, STALLED = range(3)
STATUS_NAMES = ("converged", "max_iter", "stalled")


@dataclass
class BlockSolution:
    """The weights of a block of labels, and what is known about them.

    Attributes
    ----------
    labels : ndarray of int64 of shape (m,)
        The labels, in the order of the rows below.
    indptr, indices, values : ndarray
        Weights after pruning in CSR form, (m, d).
    intercepts : ndarray of shape (m,)
        Intercepts, of the dtype of X.
    n_iter, n_products, status : ndarray of int64 of shape (m,)
        Newton steps, products with the Hessian, and an index into ``STATUS_NAMES``.
    objective, gradient_norm, gradient_tolerance, pruned_objective : ndarray of float64 (m,)
        Evaluated in float64 at the weights before pruning (but the last).
    seconds : ndarray of float64 of shape (m,)
        The block's wall time, shared out by Newton steps and Hessian products.
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


class Starter(Protocol):
    """The part of an initialiser that is used here."""

    def start(
        self, prepared: Any, problem: OneVsAllProblem, label: int, positive_sum: np.ndarray
    ) -> np.ndarray:
        """Return the start vector of a label, float64 of shape (d + 1,)."""


class NewtonStep(NamedTuple):
    """One step of one label, for those who watch.

    Attributes
    ----------
    label, n_iter : int
        Label, and Newton steps so far; 0 is the start vector.
    step_length : float
        What the line search took of the Newton step.
    active_share : float
        Share of the instances with a loss after the step, all taken as negatives.
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
    """One label on its way through the block."""

    row: int
    label: int
    start: np.ndarray
    tolerance: float
    target: float
    n_iter: int = 0
    n_products: int = 0
    retries: int = 0
    status: int = CONVERGED


@dataclass
class _Workspace:
    """Everything that moves, allocated once for a block."""

    problem: OneVsAllProblem
    n_lanes: int
    lists: np.ndarray = field(default_factory=lambda: np.empty(0, np.int32))
    local_indices: np.ndarray = field(default_factory=lambda: np.empty(0, np.int32))

    def __post_init__(self) -> None:
        n, d, lanes = self.problem.n_samples, self.problem.n_features, self.n_lanes
        dtype = self.problem.data.dtype
        self.W = np.zeros((d + 1, lanes), dtype)
        self.P = np.zeros((d + 1, lanes), dtype)
        self.S = np.zeros((n, lanes), dtype)
        self.XP = np.zeros((n, lanes), dtype)
        self.labels = np.full(lanes, -1, np.int64)
        self.plus = np.zeros(lanes)
        self.minus = np.zeros(lanes)
        self.objective = np.full(lanes, np.inf)
        self.norm2 = np.zeros(lanes)
        self.loss_sum = np.zeros(lanes)
        self.n_active = np.zeros(lanes, np.int64)
        self.list_stop = np.zeros(lanes, np.int64)
        self.threshold = np.zeros(lanes)
        #: gradient norm, g.p, w.p, p.p, Hessian products
        self.direction = np.zeros((5, lanes))
        self.sign = np.zeros(n, np.int8)
        self.position = np.full(d, -1, np.int32)
        self.touched = np.empty(d, np.int32)
        self.rows = np.empty(n, np.int32)
        self.local_indptr = np.empty(n + 1, np.int64)
        self.local_data = np.empty(0, dtype)
        self.derivatives = np.empty((2, n))
        self.local_derivatives = np.empty((2, d + 2))
        self.work = np.empty((5, d + 2), dtype)

    def reserve_lists(self, size: int) -> None:
        """Make room for `size` listed rows."""
        if self.lists.shape[0] < size:
            self.lists = np.empty(int(1.2 * size), np.int32)

    def reserve_local(self, size: int) -> None:
        """Make room for the non-zeros of the active rows of one lane."""
        if self.local_indices.shape[0] < size:
            self.local_indices = np.empty(int(1.2 * size), np.int32)
            self.local_data = np.empty(int(1.2 * size), self.problem.data.dtype)


def workspace_bytes(n: int, d: int, n_lanes: int, itemsize: int) -> int:
    """Return about how many bytes a block's workspace takes besides X and the weights found."""
    blocks = 2 * (n + d + 1) * n_lanes * itemsize
    certificate = (d + 1) * 3 * CERTIFIED_TOGETHER * 8
    vectors = n * (1 + 4 + 8 + 16) + (d + 2) * (8 + 16 + 5 * itemsize)
    lists = n * n_lanes * 2
    return blocks + certificate + vectors + lists


def solve_block(
    problem: OneVsAllProblem,
    sums: InstanceSums,
    initialiser: Starter,
    prepared: Any,
    labels: np.ndarray,
    n_lanes: int,
    stop: StopFlag | None = None,
    observe: Callable[[NewtonStep], None] | None = None,
) -> BlockSolution:
    """Solve some labels' problems and return their pruned weights and certificates.

    Parameters
    ----------
    problem : OneVsAllProblem
        The problems of all labels.
    sums : InstanceSums
        Sums over its instances.
    initialiser : Starter
        One of ``sklearn_xc.initialisers``.
    prepared : object
        What ``initialiser.prepare`` returned.
    labels : ndarray of int64
        The labels to solve.
    n_lanes : int
        How many are worked on at a time.
    stop : StopFlag, optional
        Once set, the block is left at the next Newton step with KeyboardInterrupt.
    observe : callable, optional
        Called with a ``NewtonStep`` after every step of every label, starts included.

    Returns
    -------
    BlockSolution
        Rows in the order of `labels`.
    """
    block = _Block(problem, sums, initialiser, prepared, labels, n_lanes, observe)
    return block.solve(stop)


class _Block:
    """A block on its way: `solve` is the loop, its steps follow in the order of their calls."""

    def __init__(self, problem, sums, initialiser, prepared, labels, n_lanes, observe):
        self.problem, self.sums = problem, sums
        self.initialiser, self.prepared, self.observe = initialiser, prepared, observe
        self.labels = np.asarray(labels, np.int64)
        self.kernels = block_newton_kernels(problem.loss)
        self.space = _Workspace(problem, min(n_lanes, max(1, len(labels))))
        self.lanes: list[_Label | None] = [None] * self.space.n_lanes
        self.waiting = deque(range(len(self.labels)))
        self.retrying: deque[_Label] = deque()
        self.finished: list[tuple[_Label, np.ndarray]] = []
        self.weights: list[Any] = [None] * len(self.labels)
        self.report = np.zeros((7, len(self.labels)))
        self.intercepts = np.zeros(len(self.labels), problem.data.dtype)

    def solve(self, stop: StopFlag | None) -> BlockSolution:
        began = perf_counter()
        while True:
            if stop is not None and stop.is_set():
                raise KeyboardInterrupt
            starting = self._fill_lanes()
            if not any(self.lanes):
                if not self.finished:
                    break
                self._certify()
                continue
            lam = self._search_lines(starting)
            fill = self._accept(lam)
            self._find_directions(fill)
            self._retire(lam, starting)
            if len(self.finished) >= CERTIFIED_TOGETHER:
                self._certify()
        return self._solution(perf_counter() - began)

    def _fill_lanes(self) -> np.ndarray:
        """Give each empty lane the next label; its start vector is a full step from zero."""
        space = self.space
        starting = np.zeros(space.n_lanes, bool)
        for k, occupant in enumerate(self.lanes):
            if occupant is not None:
                continue
            if self.retrying:
                label = self.retrying.popleft()
            elif self.waiting:
                label = self._begin(self.waiting.popleft())
            else:
                continue
            starting[k] = True
            self.lanes[k] = label
            space.labels[k] = label.label
            space.plus[k] = self.problem.plus[label.label]
            space.minus[k] = self.problem.minus[label.label]
            space.threshold[k] = label.target if label.n_iter else 0.0
            space.W[:, k] = 0
            space.P[:, k] = label.start
            space.direction[:, k] = 0.0
            space.objective[k] = np.inf
        return starting

    def _begin(self, row: int) -> _Label:
        problem, label = self.problem, int(self.labels[row])
        positive = sum_rows(problem, problem.positives(label))
        slope_at_zero = problem.loss.slope(0.0)
        at_zero = slope_at_zero * (
            (problem.plus[label] + problem.minus[label]) * positive
            - problem.minus[label] * self.sums.total
        )
        tolerance = float(problem.relative_tolerance[label]) * math.sqrt(dot(at_zero, at_zero))
        start = self.initialiser.start(self.prepared, problem, label, positive)
        return _Label(row, label, start, tolerance, tolerance)

    def _search_lines(self, starting: np.ndarray) -> np.ndarray:
        """Return each lane's step length: the first of 1, 1/2, 1/4, ... with enough decrease."""
        problem, space, kernels = self.problem, self.space, self.kernels
        dtype = space.S.dtype
        occupied = np.array([lane is not None for lane in self.lanes])
        lam = occupied.astype(dtype)
        kernels.try_full_step(
            problem.indptr, problem.indices, problem.data, problem.weight,
            (~starting).astype(dtype), space.S, space.P, space.XP, space.loss_sum, space.n_active,
        )  # fmt: skip
        # What rounding may add: to the objective, and to the sum that the positives are taken from.
        slack = 4 * np.finfo(dtype).eps * np.abs(space.objective)
        slack += 4 * np.finfo(np.float64).eps * space.minus * space.loss_sum
        _, g_p, w_p, p_p, _ = space.direction
        norm2 = self._regularized_norm2()
        for _ in range(MAX_HALVINGS):
            self._correct_positives(lam)
            objective = space.loss_sum + 0.5 * (norm2 + lam * (2.0 * w_p + lam * p_p))
            enough = space.objective + SUFFICIENT_DECREASE * lam * g_p + slack
            failing = occupied & ~starting & ~(objective <= enough)
            if not failing.any():
                return lam
            lam[failing] *= dtype.type(BACKTRACKING)
            kernels.try_step(problem.weight, space.S, space.XP, lam, space.loss_sum, space.n_active)
        lam[failing] = 0
        kernels.try_step(problem.weight, space.S, space.XP, lam, space.loss_sum, space.n_active)
        self._correct_positives(lam)
        return lam

    def _correct_positives(self, lam: np.ndarray) -> None:
        problem, space = self.problem, self.space
        self.kernels.correct_positives(
            problem.y_indptr, problem.y_rows, space.labels, problem.weight, space.S, space.XP,
            lam, space.plus, space.minus, space.loss_sum,
        )  # fmt: skip

    def _regularized_norm2(self) -> np.ndarray:
        return self.space.norm2 + self.problem.ridge * self.space.W[-1].astype(np.float64) ** 2

    def _accept(self, lam: np.ndarray) -> np.ndarray:
        """Move, and list the active rows of the lanes where they are a minority."""
        problem, space = self.problem, self.space
        fill = 2 * space.n_active <= problem.n_samples
        list_start = np.concatenate(([0], np.cumsum(np.where(fill, space.n_active, 0))))
        space.reserve_lists(int(list_start[-1]))
        self.kernels.accept_step(
            space.S, space.XP, space.W, space.P, lam, list_start, space.list_stop, space.lists,
            space.norm2,
        )  # fmt: skip
        space.objective = space.loss_sum + 0.5 * self._regularized_norm2()
        self.list_start = list_start
        return fill

    def _find_directions(self, fill: np.ndarray) -> None:
        problem, space = self.problem, self.space
        running = np.array([lane is not None for lane in self.lanes])
        space.reserve_local(self._largest_local(running & fill))
        self.kernels.newton_directions(
            problem.indptr, problem.indices, problem.data, problem.y_indptr, problem.y_rows,
            space.labels, problem.weight, space.W, space.S, space.P, space.norm2, running, fill,
            self.list_start, space.list_stop, space.lists, space.plus, space.minus,
            problem.intercept, problem.ridge,
            (CG_TOLERANCE, PRECONDITIONER_WEIGHT, CG_MAX_ITER), space.threshold, space.sign,
            space.position, space.touched, space.rows, space.local_indptr, space.local_indices,
            space.local_data, space.derivatives, space.local_derivatives, space.work,
            space.direction,
        )  # fmt: skip

    def _largest_local(self, listed: np.ndarray) -> int:
        """Return a bound on the non-zeros in the active rows of any lane."""
        lengths = np.diff(self.problem.indptr)
        largest = 0
        for k in np.flatnonzero(listed):
            rows = self.space.lists[self.list_start[k] : self.space.list_stop[k]]
            positives = self.problem.positives(self.space.labels[k])
            largest = max(largest, int(lengths[rows].sum() + lengths[positives].sum()))
        return largest

    def _retire(self, lam: np.ndarray, starting: np.ndarray) -> None:
        """Move the labels that have converged, or cannot go on, out of their lanes."""
        space = self.space
        for k, label in enumerate(self.lanes):
            if label is None:
                continue
            label.n_iter += not starting[k]
            label.n_products += int(space.direction[4, k])
            if self.observe is not None:
                self.observe(self._step_taken(k, label, float(lam[k])))
            if space.direction[0, k] <= space.threshold[k]:
                label.status = CONVERGED
            elif lam[k] == 0:
                label.status = STALLED
            elif label.n_iter >= self.problem.max_iter:
                label.status = OUT_OF_ITERATIONS
            else:
                space.threshold[k] = label.target
                continue
            self.finished.append((label, space.W[:, k].copy()))
            self.lanes[k] = None
            space.labels[k] = -1
            space.plus[k] = space.minus[k] = 0.0
            space.P[:, k] = 0

    def _step_taken(self, k: int, label: _Label, lam: float) -> NewtonStep:
        space = self.space
        return NewtonStep(
            label.label,
            label.n_iter,
            lam,
            float(space.n_active[k] / self.problem.n_samples),
            float(space.objective[k]),
            float(space.direction[0, k]),
        )

    def _certify(self) -> None:
        """Evaluate finished labels in float64; keep them, or send them back to work."""
        problem = self.problem
        batch, self.finished = (
            self.finished[:CERTIFIED_TOGETHER],
            self.finished[CERTIFIED_TOGETHER:],
        )
        m = len(batch)
        V = np.zeros((problem.n_features + 1, 2 * m))
        for c, (_, w) in enumerate(batch):
            V[:, c] = w
        V[:, m:] = V[:, :m]
        V[:-1, m:][np.abs(V[:-1, m:]) < problem.prune] = 0.0
        labels = np.array([label.label for label, _ in batch])
        out = np.zeros((3, m))
        self.kernels.certify(
            problem.indptr, problem.indices, problem.data, problem.y_indptr, problem.y_rows,
            labels, problem.weight, V, problem.plus[labels], problem.minus[labels],
            problem.intercept, problem.ridge, np.empty((CHUNK, 2 * m)),
            np.empty((problem.n_features + 1, m)), out,
        )  # fmt: skip
        for c, (label, w) in enumerate(batch):
            objective, gradient_norm, pruned_objective = out[:, c]
            if gradient_norm <= label.tolerance:
                label.status = CONVERGED
            elif label.status != OUT_OF_ITERATIONS:
                if label.retries < MAX_RETRIES and label.n_iter < problem.max_iter:
                    label.retries += 1
                    label.target *= RETRY_FACTOR
                    label.start = w
                    self.retrying.append(label)
                    continue
                label.status = STALLED
            kept = np.flatnonzero(V[:-1, m + c])
            self.weights[label.row] = (kept.astype(np.int32), w[kept])
            self.intercepts[label.row] = w[-1]
            self.report[:, label.row] = (
                label.n_iter,
                label.n_products,
                label.status,
                objective,
                gradient_norm,
                label.tolerance,
                pruned_objective,
            )

    def _solution(self, wall: float) -> BlockSolution:
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
