"""Newton-CG for losses that are never zero, such as the logistic one.

No screen helps here: each evaluation, gradient and product with the Hessian reads all of X. So X is
read once for 16 labels, side by side in vector registers, whose conjugate gradients run in
lockstep. A step that does not lower the objective enough is halved and evaluated again in the next
round, which costs no pass of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sklearn_xc._compile.emitters.row_lanes import LANES
from sklearn_xc._compile.jit import aligned_zeros
from sklearn_xc._input.data import read_only
from sklearn_xc.one_vs_all.kernels.lanes import Lanes
from sklearn_xc.one_vs_all.kernels.newton_direction import LARGEST_EXPONENT
from sklearn_xc.one_vs_all.kernels.newton_step import MAX_HALVINGS, ROUNDING, SUFFICIENT_DECREASE
from sklearn_xc.one_vs_all.kernels.smooth import (
    TILE,
    add_products,
    add_ridge,
    add_squares,
    begin_directions,
    gather_points,
    halve_step,
    measure_rows,
    place_trials,
    smooth_loss_kernel,
    stop_steps,
    take_steps,
    update_directions,
)
from sklearn_xc.one_vs_all.problem import OneVsAllProblem
from sklearn_xc.one_vs_all.solver.screening import row_ranges

#: Largest trace of ``a diag(H)`` for which the preconditioner ``(1 - a) I + a diag(H)`` is just I.
_LEAST_TRACE = 1.0


def smooth_workspace_bytes(n: int, d: int, itemsize: int) -> int:
    """Return about how many bytes ``SmoothNewton`` takes in addition to X."""
    return LANES * ((d + 1) * (8 + 6 * itemsize) + n * itemsize) + 8 * n


@dataclass
class SmoothNewton:
    """Takes the lanes of a block to their trial points and sets their next ones.

    Parameters
    ----------
    problem : OneVsAllProblem
        With ``is_side_by_side``.
    cg : tuple
        As for ``conjugate_gradients`` of ``newton_direction``.
    check : callable
        Called between the calls of compiled code.
    """

    problem: OneVsAllProblem
    cg: tuple[float, float, int]
    check: Callable[[], None]

    def __post_init__(self) -> None:
        problem = self.problem
        n, d, dtype = problem.n_samples, problem.n_features, problem.dtype
        self.rows = problem.instances.arrays
        self.ranges = row_ranges(self.rows[0])
        self.squares = np.empty(n)
        measure_rows(self.rows, problem.intercept, self.squares)
        self.add_losses = smooth_loss_kernel(problem.loss)
        self.tile = aligned_zeros((4, TILE, LANES), np.float64)
        self.gradient = aligned_zeros((d + 1, LANES), np.float64)
        self.curvatures = aligned_zeros((n, LANES), dtype)
        self.point = aligned_zeros((d + 1, LANES), dtype)
        self.condition = aligned_zeros((d + 1, LANES), dtype)
        self.vectors = aligned_zeros((4, d + 1, LANES), dtype)
        self.scores = aligned_zeros((1, LANES), dtype)

    def advance(self, lanes: Lanes, occupied: np.ndarray) -> None:
        """Take each occupied lane to its trial point, and set its next one.

        Parameters
        ----------
        lanes : Lanes
            Changed in place, as by ``advance`` of ``block_newton``.
        occupied : ndarray of int64
            Numbers of the lanes.
        """
        for k in np.split(occupied, range(LANES, len(occupied), LANES)):
            self._advance(lanes, k)

    def _advance(self, lanes: Lanes, k: np.ndarray) -> None:
        """Advance at most 16 lanes; below, c is the position of a lane among them."""
        lanes.n_products[k] = 0
        objective, norm2, gradient_norm, trace = self._evaluate(lanes, k)
        before = lanes.objective[k]
        allowed = before + SUFFICIENT_DECREASE * lanes.slope[k] + ROUNDING * np.abs(objective)
        is_taken = objective <= allowed
        for c in np.flatnonzero(~is_taken).tolist():
            self._halve(lanes, int(k[c]))
        taken = k[is_taken]
        lanes.step_length[taken] = 0.5 ** lanes.n_halved[taken]
        lanes.n_halved[taken] = 0
        lanes.n_flat[taken] += ~(objective < before)[is_taken]
        lanes.objective[taken] = objective[is_taken]
        lanes.norm2[taken] = norm2[is_taken]
        lanes.current[taken] = 1 - lanes.current[taken]
        lanes.n_active[taken] = self.problem.n_samples
        lanes.gradient_norm[taken] = gradient_norm[is_taken]
        certified = np.sqrt(2.0 * self.problem.relative_gap * lanes.objective[taken])
        lanes.threshold[taken] = np.fmin(lanes.threshold[taken], certified)

        moves = np.zeros(LANES, bool)
        is_above = (gradient_norm > lanes.threshold[k]) & np.isfinite(gradient_norm)
        moves[: len(k)] = is_taken & is_above
        if moves.any():
            self._find_directions(lanes, k, moves, gradient_norm, trace)

    def _evaluate(self, lanes: Lanes, k: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return objectives, squared norms, gradient norms and traces at the trial points."""
        problem = self.problem
        m = len(k)
        gather_points(lanes.points, _offsets(lanes, k, 1 - lanes.current[k]), self.point)
        # A lane that is not in use has the weights zero, and no positives.
        positive = np.zeros((2, LANES), np.int64)
        costs = np.ones((2, LANES))
        y_indptr = problem.y_indptr
        positive[:, :m] = y_indptr[lanes.label[k]], y_indptr[lanes.label[k] + 1]
        costs[:, :m] = lanes.plus[k], lanes.minus[k]
        self.gradient[:] = 0.0
        loss, trace, norm2, gradient2 = np.zeros((4, LANES))
        rows = self.rows, problem.weight, self.squares
        relevance = read_only(np.zeros(0)) if problem.relevance is None else problem.relevance
        targets = problem.y_rows, relevance, positive[0], positive[1]
        sums = loss, self.gradient, trace, self.curvatures
        for first, last in self.ranges:
            self.add_losses(
                rows, first, last, targets, (costs[0], costs[1]), self.point, self.tile, sums
            )
            self.check()
        add_ridge(self.point, problem.intercept, self.gradient, norm2, gradient2)
        objective = loss + 0.5 * (norm2 + self.point[-1].astype(np.float64) ** 2)
        return objective[:m], norm2[:m], np.sqrt(gradient2)[:m], trace[:m]

    def _halve(self, lanes: Lanes, k: int) -> None:
        """Halve the step, or give it up."""
        is_start = lanes.objective[k] == np.inf
        lanes.n_halved[k] += 1
        if is_start or lanes.n_halved[k] > MAX_HALVINGS or not np.isfinite(lanes.trial_norm2[k]):
            lanes.step_length[k] = 0.0
            lanes.n_halved[k] = 0
            return
        lanes.trial_norm2[k] = halve_step(lanes.iterate(k), lanes.trial(k))
        lanes.slope[k] *= 0.5
        lanes.step_length[k] = -1.0

    def _find_directions(
        self,
        lanes: Lanes,
        k: np.ndarray,
        moves: np.ndarray,
        gradient_norm: np.ndarray,
        trace: np.ndarray,
    ) -> None:
        """Find the Newton directions of the lanes that move, and set their trial points."""
        problem = self.problem
        m = len(k)
        scale = np.zeros(LANES)
        exponents = np.clip(np.frexp(gradient_norm)[1], -LARGEST_EXPONENT, LARGEST_EXPONENT)
        # A power of two changes no digit, and squares of the scaled gradient fit into float32.
        scale[:m] = np.where(moves[:m], np.ldexp(1.0, -exponents), 0.0)
        self._write_diagonals(moves, trace)
        n_products = self._solve(moves, scale)
        lanes.n_products[k] = n_products[:m]
        origins, ends = (
            _offsets(lanes, k, which) for which in (lanes.current[k], 1 - lanes.current[k])
        )
        origins[~moves] = -1
        norm2, slope = np.zeros((2, LANES))
        place_trials(
            lanes.points,
            origins,
            ends,
            scale,
            problem.intercept,
            self.gradient,
            self.vectors[0],
            norm2,
            slope,
        )
        moved = k[moves[:m]]
        lanes.trial_norm2[moved] = norm2[moves]
        # The gradient is not scaled here, the step is.
        lanes.slope[moved] = slope[moves]

    def _write_diagonals(self, moves: np.ndarray, trace: np.ndarray) -> None:
        """Write the diagonals of the Hessians; 1 where that suffices for a preconditioner."""
        diagonal = self.condition
        diagonal[:] = 1.0
        needs = np.zeros(LANES, bool)
        needs[: len(trace)] = self.cg[1] * trace > _LEAST_TRACE
        needs &= moves
        if not needs.any():
            return
        for first, last in self.ranges:
            add_squares(self.rows, self.curvatures, first, last, diagonal)
            self.check()
        if self.problem.intercept:
            diagonal[-1] += self.curvatures.sum(axis=0, dtype=np.float64)
        diagonal[:, ~needs] = 1.0

    def _solve(self, moves: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Compute the scaled steps in ``vectors[0]``; return the number of products of each lane.

        ``conjugate_gradients`` of ``newton_direction`` is the same for one label.
        """
        problem = self.problem
        direction = self.vectors[2]
        product = self.vectors[3]
        rz, new_rz, squares, gained, shift, curved = np.zeros((6, LANES))
        alpha, beta, model = np.zeros((3, LANES))
        n_products = np.zeros(LANES, np.int64)
        begin_directions(
            self.gradient, scale, self.condition, self.cg[1], self.vectors, rz, squares
        )
        going = moves.copy()
        for iteration in range(1, self.cg[2] + 1):
            n_products += going
            bias = direction[-1].astype(np.float64)
            product[-1] = 0.0
            shift[:] = 0.0
            curved[:] = squares
            for first, last in self.ranges:
                add_products(
                    self.rows,
                    self.curvatures,
                    first,
                    last,
                    problem.intercept,
                    direction,
                    self.scores,
                    shift,
                    curved,
                    product,
                )
                self.check()
            product[-1] = bias + problem.intercept * shift
            stopped = going & ~(curved > 0.0)
            if stopped.any():
                stop_steps(stopped, self.vectors)
                going &= ~stopped
            alpha[:] = 0.0
            np.divide(rz, curved, out=alpha, where=going)
            take_steps(alpha, self.gradient, scale, self.condition, self.vectors, gained, new_rz)
            new_model = -0.5 * gained
            gain = new_model - model
            going &= ~((gain >= 0.0) | (iteration * gain >= self.cg[0] * new_model))
            if not going.any():
                break
            model = new_model
            beta[:] = 0.0
            np.divide(new_rz, rz, out=beta, where=going)
            rz[:] = new_rz
            update_directions(going, beta, self.condition, self.vectors, squares)
        return n_products


def _offsets(lanes: Lanes, k: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Return the position of one of the two points of each lane, -1 for none."""
    out = np.full(LANES, -1)
    out[: len(k)] = lanes.first[k] + which * lanes.width[k]
    return out
