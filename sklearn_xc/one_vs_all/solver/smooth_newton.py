"""Newton steps of a block's labels where every row has a loss, such as the logistic one.

What a hinge saves by its screen is not to be had here: each evaluation, gradient and product with
the Hessian reads all of X. So it is read once for 16 labels, which stand side by side in vector
registers, and whose conjugate gradients go in lock step. A step that does not lower the objective
enough is halved, and looked at in the next round: that costs no pass of its own.
"""

from collections.abc import Callable

import numpy as np

from sklearn_xc._compile.emitters.row_lanes import LANES
from sklearn_xc._compile.scratch import aligned_zeros
from sklearn_xc.one_vs_all.kernels.block_newton import (
    DAMPING,
    LARGEST_EXPONENT,
    MAX_HALVINGS,
    ROUNDING,
    SUFFICIENT_DECREASE,
)
from sklearn_xc.one_vs_all.kernels.lane_newton import (
    add_products,
    add_ridge,
    add_squares,
    begin_directions,
    gather_points,
    halve_step,
    place_trials,
    stop_steps,
    take_steps,
    turn_directions,
)
from sklearn_xc.one_vs_all.kernels.lanes import PRUNED, Lanes
from sklearn_xc.one_vs_all.kernels.smooth_loss import TILE, measure_rows, smooth_loss_kernels
from sklearn_xc.one_vs_all.solver.problem import OneVsAllProblem
from sklearn_xc.one_vs_all.solver.screening import row_ranges

#: Where the preconditioner ``(1 - a) I + a diag(H)`` is between I and twice I, I takes its place.
_LEAST_TRACE = 1.0


def smooth_workspace_bytes(n: int, d: int, itemsize: int) -> int:
    """Return about how many bytes ``SmoothNewton`` takes besides X."""
    return LANES * ((d + 1) * (8 + 6 * itemsize) + n * itemsize) + 8 * n


class SmoothNewton:
    """Takes the lanes of a block to their trial points and sets their next ones.

    Parameters
    ----------
    problem : OneVsAllProblem
        See ``is_side_by_side``.
    cg : tuple of (float, float, int)
        Tolerance, weight of the diagonal in the preconditioner, and the most iterations.
    check : callable
        Called between the calls of compiled code.
    """

    def __init__(
        self,
        problem: OneVsAllProblem,
        cg: tuple[float, float, int],
        check: Callable[[], None],
    ) -> None:
        n, d, dtype = problem.n_samples, problem.n_features, problem.dtype
        self.problem, self.cg, self.check = problem, cg, check
        self.rows = problem.instances.arrays
        self.ranges = row_ranges(self.rows[0])
        self.squares = np.empty(n)
        measure_rows(self.rows, problem.intercept, self.squares)
        self.kernels = smooth_loss_kernels(problem.loss)
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
            The lanes to work on.
        """
        is_pruned = lanes.purpose[occupied] == PRUNED
        for k, go in ((occupied[~is_pruned], self._advance), (occupied[is_pruned], self._sum_up)):
            for first in range(0, len(k), LANES):
                go(lanes, k[first : first + LANES])

    def _advance(self, lanes: Lanes, k: np.ndarray) -> None:
        """Do so with at most 16 lanes; below, c is the place of a lane among them."""
        problem, m = self.problem, len(k)
        lanes.n_products[k] = 0
        objective, norm2, gradient_norm, trace = self._evaluate(lanes, k)
        before = lanes.objective[k]
        allowed = before + SUFFICIENT_DECREASE * lanes.slope[k] + ROUNDING * np.abs(objective)
        is_taken = objective <= allowed
        for c in np.flatnonzero(~is_taken).tolist():
            self._halve(lanes, int(k[c]))
        taken = k[is_taken]
        lanes.step_length[taken] = 0.5 ** lanes.n_unseen[taken]
        lanes.n_unseen[taken] = 0
        lanes.n_flat[taken] += ~(objective < before)[is_taken]
        lanes.objective[taken] = objective[is_taken]
        lanes.norm2[taken] = norm2[is_taken]
        lanes.current[taken] = 1 - lanes.current[taken]
        lanes.n_active[taken] = problem.n_samples
        lanes.gradient_norm[taken] = gradient_norm[is_taken]
        certified = np.sqrt(2.0 * problem.relative_gap * lanes.objective[taken])
        lanes.threshold[taken] = np.fmin(lanes.threshold[taken], certified)

        moves = np.zeros(LANES, bool)
        moves[:m] = is_taken & (gradient_norm > lanes.threshold[k]) & np.isfinite(gradient_norm)
        if moves.any():
            self._find_directions(lanes, k, moves, gradient_norm, trace)

    def _evaluate(self, lanes: Lanes, k: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return objectives, squared norms, gradient norms and traces at the trial points."""
        problem, m = self.problem, len(k)
        (next_positive, end), costs = self._look_at(lanes, k)
        self.gradient[:] = 0.0
        loss, trace, norm2, gradient2 = np.zeros((4, LANES))
        for first, last in self.ranges:
            self.kernels.add_losses(
                (self.rows, problem.weight, self.squares),
                first,
                last,
                problem.y_rows,
                next_positive,
                end,
                (costs[0], costs[1]),
                self.point,
                self.tile,
                loss,
                self.gradient,
                trace,
                self.curvatures,
            )
            self.check()
        add_ridge(self.point, problem.intercept, problem.ridge, self.gradient, norm2, gradient2)
        objective = loss + 0.5 * (norm2 + problem.ridge * self.point[-1].astype(np.float64) ** 2)
        return objective[:m], norm2[:m], np.sqrt(gradient2)[:m], trace[:m]

    def _sum_up(self, lanes: Lanes, k: np.ndarray) -> None:
        """Evaluate the objectives of at most 16 lanes at pruned points, and nothing else."""
        problem, m = self.problem, len(k)
        lanes.n_products[k] = 0
        (next_positive, end), costs = self._look_at(lanes, k)
        loss = np.zeros(LANES)
        for first, last in self.ranges:
            self.kernels.sum_losses(
                self.rows,
                problem.weight,
                first,
                last,
                problem.y_rows,
                next_positive,
                end,
                costs[0],
                costs[1],
                self.point,
                self.tile,
                loss,
            )
            self.check()
        bias = self.point[-1, :m].astype(np.float64)
        ridge = lanes.trial_norm2[k] + problem.ridge * bias**2
        lanes.pruned_objective[k] = loss[:m] + 0.5 * ridge

    def _look_at(self, lanes: Lanes, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Write trial points side by side; return positives and costs as ``add_losses`` has them.

        A lane that is not in use has the weights zero, and no positives.
        """
        y_indptr, m = self.problem.y_indptr, len(k)
        gather_points(lanes.points, _offsets(lanes, k, 1 - lanes.current[k]), self.point)
        positive, costs = np.zeros((2, LANES), np.int64), np.ones((2, LANES))
        positive[:, :m] = y_indptr[lanes.label[k]], y_indptr[lanes.label[k] + 1]
        costs[:, :m] = lanes.plus[k], lanes.minus[k]
        return positive, costs

    def _halve(self, lanes: Lanes, k: int) -> None:
        """Move the trial point half the way back, or give the step up."""
        is_start = lanes.objective[k] == np.inf
        lanes.n_unseen[k] += 1
        if is_start or lanes.n_unseen[k] > MAX_HALVINGS or not np.isfinite(lanes.trial_norm2[k]):
            lanes.step_length[k] = 0.0
            lanes.n_unseen[k] = 0
            return
        lanes.trial_norm2[k] = halve_step(lanes.stand(k), lanes.trial(k))
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
        problem, m = self.problem, len(k)
        scale = np.zeros(LANES)
        exponents = np.clip(np.frexp(gradient_norm)[1], -LARGEST_EXPONENT, LARGEST_EXPONENT)
        # A power of two changes no digit, and squares of the scaled gradient fit into float32.
        scale[:m] = np.where(moves[:m], np.ldexp(1.0, -exponents), 0.0)
        damping = np.full(LANES, problem.ridge)
        if problem.ridge == 0.0:
            damping = problem.intercept * DAMPING * np.abs(self.gradient[-1])
        self._write_diagonals(moves, trace, damping)
        n_products = self._solve(moves, scale, damping)
        lanes.n_products[k] = n_products[:m]
        stands, targets = (
            _offsets(lanes, k, lanes.current[k]),
            _offsets(lanes, k, 1 - lanes.current[k]),
        )
        stands[~moves] = -1
        norm2, slope = np.zeros((2, LANES))
        place_trials(
            lanes.points,
            stands,
            targets,
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

    def _write_diagonals(self, moves: np.ndarray, trace: np.ndarray, damping: np.ndarray) -> None:
        """Write the diagonals of the Hessians; that of I where it does for a preconditioner."""
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
        diagonal[-1] = damping
        if self.problem.intercept:
            diagonal[-1] += self.curvatures.sum(axis=0, dtype=np.float64)
        diagonal[:, ~needs] = 1.0

    def _solve(self, moves: np.ndarray, scale: np.ndarray, damping: np.ndarray) -> np.ndarray:
        """Leave the scaled steps in ``vectors[0]``; return the number of products of each lane.

        ``conjugate_gradients`` of ``newton_direction`` is the same for one label.
        """
        tolerance, diagonal_weight, max_iter = self.cg
        problem, direction, product = self.problem, self.vectors[2], self.vectors[3]
        rz, new_rz, squares, gained, shift, curved = np.zeros((6, LANES))
        alpha, beta, model = np.zeros((3, LANES))
        n_products = np.zeros(LANES, np.int64)
        begin_directions(
            self.gradient, scale, self.condition, diagonal_weight, self.vectors, rz, squares
        )
        going = moves.copy()
        for iteration in range(1, max_iter + 1):
            n_products += going
            bias = direction[-1].astype(np.float64)
            product[-1] = 0.0
            shift[:] = 0.0
            curved[:] = squares - (1.0 - damping) * bias**2
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
            product[-1] = damping * bias + problem.intercept * shift
            stopped = going & ~(curved > 0.0)
            if stopped.any():
                stop_steps(stopped, self.vectors)
                going &= ~stopped
            alpha[:] = 0.0
            np.divide(rz, curved, out=alpha, where=going)
            take_steps(alpha, self.gradient, scale, self.condition, self.vectors, gained, new_rz)
            new_model = -0.5 * gained
            going &= ~(
                (new_model >= model) | (iteration * (new_model - model) >= tolerance * new_model)
            )
            if not going.any():
                break
            model = new_model
            beta[:] = 0.0
            np.divide(new_rz, rz, out=beta, where=going)
            rz[:] = new_rz
            turn_directions(going, beta, self.condition, self.vectors, squares)
        return n_products


def _offsets(lanes: Lanes, k: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Return where one of the two points of each lane begins, -1 for none."""
    out = np.full(LANES, -1)
    out[: len(k)] = lanes.first[k] + which * lanes.width[k]
    return out
