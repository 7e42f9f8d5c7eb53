"""Newton-CG steps for the labels of a block, compiled once for each loss and kind of rows.

A label of the block has a lane: its current point, and the trial point of its next step. One
iteration of the solver screens all rows for all trial points (``screen``), which gives each lane
the few rows that may have a loss there, and calls ``advance``, which for each lane

1. evaluates the objective at the trial point in float64, and takes the step or a part of it
   (``newton_step``);
2. computes gradient and certificate in float64, and the Newton direction, from the rows with a loss
   (``newton_direction``);
3. sets the next trial point.

The arithmetic of a lane never depends on the other lanes.
"""

import functools
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._compile.jit import kernel
from sklearn_xc.one_vs_all.kernels.newton_direction import direction_function, limit_step
from sklearn_xc.one_vs_all.kernels.newton_step import squared_norm, step_function

#: A label ends after more steps than this that did not lower the objective.
MAX_FLAT = 5


class Scratch(NamedTuple):
    """Work space for one lane at a time.

    Attributes
    ----------
    rows, every_row : ndarray of int32 of shape (n,)
        Row numbers; 0, 1, 2, ...
    numbers : ndarray of float64 of shape (4, n)
        Of the rows: 1 or -1 for positives and negatives, scores, and derivatives of the loss by the
        score.
    position, touched, every_feature : ndarray of int32 of shape (d,), (d + 1,) and (d + 1,)
        `position` is -1 everywhere between calls; 0, 1, 2, ...
    local : tuple of ndarray
        Room for a compact copy of rows.
    room : int
        Its capacity in non-zeros.
    derivatives : ndarray of float64 of shape (2, d + 2)
    work : ndarray of shape (6, d + 2)
        Of the dtype of X.
    """

    rows: np.ndarray
    every_row: np.ndarray
    numbers: np.ndarray
    position: np.ndarray
    touched: np.ndarray
    every_feature: np.ndarray
    local: Any
    room: int
    derivatives: np.ndarray
    work: np.ndarray


@kernel
def list_weights(point, prune, indices, values):
    """Write the weights of a point from `prune` on in magnitude, and their features.

    Returns their number, and the share of the squared norm of the others.
    """
    n = np.uint32(0)
    removed = np.float64(0.0)
    total = np.float64(0.0)
    for j in range(point.shape[0] - 1):
        w = point[j]
        is_kept = abs(w) >= prune and w != 0
        indices[n] = j
        values[n] = w
        n += np.uint32(is_kept)
        square = np.float64(w) * np.float64(w)
        total += square
        removed += 0.0 if is_kept else square
    return np.int64(n), removed / total if total > 0.0 else 0.0


@kernel
def measure_start(point):
    """Return the squared norm of a start vector without its intercept."""
    return squared_norm(point)


@functools.cache
def block_newton_kernel(loss: Any, rows_of: ModuleType) -> Any:
    """Return ``advance``, compiled on its first call.

    Parameters
    ----------
    loss : CompiledLoss
        See ``sklearn_xc.one_vs_all.losses.margin``.
    rows_of : module
        ``sparse_rows`` or ``dense_rows``.
    """
    is_compactable, compact = rows_of.is_compactable, rows_of.compact
    rows_of_lane, kink = rows_of.rows_of_lane, -float(loss.active_below)
    take_step, find_direction = step_function(loss, rows_of), direction_function(rows_of)

    @kernel
    def advance(X, weight, y_rows, lanes, points, occupied, listed, n_listed, mean, cg, spaces):
        """Take each occupied lane to its trial point, and set its next one.

        Parameters
        ----------
        X, weight : tuple of ndarray, and ndarray of shape (n_rows,)
            Rows of all lanes, as `rows_of` reads them, and their weights.
        y_rows : ndarray of int32
            Positives of all lanes, ascending in each.
        lanes, points
            `state` and `points` of ``Lanes``. Changed in place.
        occupied : ndarray of int64
            Numbers of the lanes. Those with `max_iter` take all of their steps.
        listed, n_listed : ndarray of int32 and int64
            For each of `occupied`, the rows that may have a loss at the trial point, ascending, and
            their number, -1 for all rows.
        mean : ndarray of shape (d + 1,)
            Mean of the rows, for ``limit_step``, of the dtype of X; may be empty.
        cg : tuple
            As for ``conjugate_gradients``.
        spaces : Scratch
            Work space.
        """
        rows, every_row, numbers, position, touched, every_feature = spaces[:6]
        local, room, derivatives, work = spaces[6:]
        for c in range(occupied.shape[0]):
            lane = lanes[occupied[c]]
            n_rows, width = lane.n_rows, lane.width
            own = rows_of_lane(X, lane)
            own_weight = weight[lane.first_row : lane.first_row + n_rows]
            positives = y_rows[lane.first_positive : lane.first_positive + lane.n_positives]
            others = every_row[:n_rows] if n_listed[c] < 0 else listed[c, : n_listed[c]]
            lane.n_products = 0
            while True:
                ends = points[lane.first : lane.first + 2 * width]
                w, v = ends[:width], ends[width:]
                if lane.current == 1:
                    w, v = v, w
                n = take_step(own, own_weight, positives, others, lane, w, v, rows, numbers)
                if n >= 0:  # v is the current point now
                    X_of, active, features, n_local = own, rows[:n], every_feature, width - 1
                    is_copy = is_compactable(own, active, room)
                    if is_copy:
                        n_local = compact(own, active, position, touched, local)
                        X_of, active, features = local, every_row[:n], touched
                    find_direction(
                        X_of,
                        active,
                        numbers[2:],
                        lane,
                        v,
                        w,
                        position,
                        features[:n_local],
                        cg,
                        derivatives[:, : n_local + 2],
                        work,
                    )
                    if is_copy:
                        for j in range(n_local):
                            position[np.uint32(touched[j])] = -1
                    if mean.shape[0] > 0:
                        lane.trial_norm2 = limit_step(lane, kink, mean, v, w)
                    else:
                        lane.trial_norm2 = squared_norm(w)
                if lane.max_iter == 0:
                    break
                if lane.step_length < 0:
                    continue
                lane.n_iter += 1
                is_done = lane.gradient_norm <= lane.threshold or lane.n_flat > MAX_FLAT
                is_done |= lane.step_length == 0 or not lane.objective < np.inf
                if is_done or lane.n_iter >= lane.max_iter:
                    break

    return advance


@functools.cache
def row_sums_kernel(rows_of: ModuleType) -> Any:
    """Return ``add_rows`` for one kind of rows: ``sparse_rows`` or ``dense_rows``."""
    add_row = rows_of.add_row

    @kernel
    def add_rows(X, rows, weight, out):
        """Add the weighted sum of some rows, and of a constant feature behind them, to `out`.

        Parameters
        ----------
        X : tuple of ndarray
            Rows of length d, as `rows_of` reads them.
        rows : ndarray of int32
            Which of them.
        weight : ndarray of shape (n,)
            Weight of each row of X.
        out : ndarray of float64 of shape (d + 1,)
            Added to.
        """
        d = out.shape[0] - 1
        for r in range(rows.shape[0]):
            i = np.uint32(rows[r])
            w = np.float64(weight[i])
            add_row(X, i, w, out[:d])
            out[d] += w

    return add_rows


@functools.cache
def square_sums_kernel(rows_of: ModuleType) -> Any:
    """Return ``add_squares`` for one kind of rows: ``sparse_rows`` or ``dense_rows``."""
    add_row_and_squares = rows_of.add_row_and_squares

    @kernel
    def add_squares(X, weight, sums, squares):
        """Add the weighted sum of all rows, and of their squares, to `sums` and `squares`.

        Parameters
        ----------
        X : tuple of ndarray
            Rows of length d, as `rows_of` reads them.
        weight : ndarray of shape (n,)
            Weight of each row.
        sums, squares : ndarray of float64 of shape (d,)
            Added to.
        """
        for i in range(np.uint32(weight.shape[0])):
            w = np.float64(weight[i])
            add_row_and_squares(X, i, w, w, sums, squares)

    return add_squares


@kernel
def norm_of_difference(alpha, a, beta, b):
    """Return the norm of ``alpha * a - beta * b``."""
    total = np.float64(0.0)
    for j in range(a.shape[0]):
        x = alpha * a[j] - beta * b[j]
        total += x * x
    return np.sqrt(total)
