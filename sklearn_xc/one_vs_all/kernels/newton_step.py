"""A Newton step of one label: is its end accepted, or the step to be halved?

``take_step`` evaluates the trial point at the end of a step, in float64. It accepts the point if
the objective falls by ``SUFFICIENT_DECREASE`` of what the slope promises. Otherwise it halves the
step, for the next call.

Source: section 2 of Schultheis and Babbar (2022), after Galli and Lin (2021).
"""

import functools
from types import ModuleType
from typing import Any

import numpy as np

from sklearn_xc._compile.arithmetic.vectors import inner_product
from sklearn_xc._compile.jit import inlined
from sklearn_xc.one_vs_all.kernels.sparse_rows import ROWS_AHEAD

#: Share of the promised decrease that a step must reach, and the most halvings of a step.
SUFFICIENT_DECREASE = 0.01
MAX_HALVINGS = 20
#: Relative rounding error of an objective.
ROUNDING = 16 * np.finfo(np.float64).eps


@inlined
def list_rows(others, positives, rows, sign):
    """List the union of two ascending lists, and 1 for positives and -1 for others; count them."""
    n_others, n_positives = others.shape[0], positives.shape[0]
    i = 0
    j = 0
    n = 0
    while i < n_others or j < n_positives:
        if j >= n_positives or (i < n_others and others[i] < positives[j]):
            rows[n] = others[i]
            sign[n] = -1.0
            i += 1
        else:
            if i < n_others and others[i] == positives[j]:
                i += 1
            rows[n] = positives[j]
            sign[n] = 1.0
            j += 1
        n += 1
    return n


@inlined
def squared_norm(point):
    """Return the squared norm of a point without its intercept."""
    weights = point[: point.shape[0] - 1]
    return inner_product(weights, weights)


@functools.cache
def step_function(loss: Any, rows_of: ModuleType) -> Any:
    """Compile the step to a trial point for a loss and a layout of rows."""
    value, slope, curvature = loss.value, loss.slope, loss.curvature
    active_below = float(loss.active_below)
    row_dot_double, prefetch_row = rows_of.row_dot_double, rows_of.prefetch_row

    @inlined
    def evaluate(X, weight, lane, v, rows, sign, scores):
        """Write the scores of some rows, the only ones with a loss; return the objective."""
        bias, plus, minus = np.float64(v[v.shape[0] - 1]), lane.plus, lane.minus
        total = 0.5 * (lane.trial_norm2 + bias * bias)
        for r in range(rows.shape[0]):
            prefetch_row(X, np.uint32(rows[min(r + ROWS_AHEAD, rows.shape[0] - 1)]))
            i = np.uint32(rows[r])
            scores[r] = row_dot_double(X, i, v) + bias
            cost = (plus if sign[r] > 0 else minus) * np.float64(weight[i])
            total += cost * value(sign[r] * scores[r])
        return total

    @inlined
    def keep_active(weight, lane, rows, numbers):
        """Keep the rows with a loss, write its derivatives, return how many there are."""
        sign, scores, slopes, curvatures = numbers[0], numbers[1], numbers[2], numbers[3]
        plus, minus = lane.plus, lane.minus
        n = 0
        for r in range(rows.shape[0]):
            margin = sign[r] * scores[r]
            if margin < active_below:
                i = rows[r]
                cost = (plus if sign[r] > 0 else minus) * np.float64(weight[np.uint32(i)])
                slopes[n] = sign[r] * cost * slope(margin)
                curvatures[n] = cost * curvature(margin)
                rows[n] = i
                n += 1
        return n

    @inlined
    def take_step(X, weight, positives, others, lane, w, v, rows, numbers):
        """Take the step from w to v, or halve it; return the number of rows with a loss.

        Parameters
        ----------
        X, weight : tuple of ndarray, and ndarray of shape (n_rows,)
        positives, others : ndarray of int32
            Rows of the label, and those that may have a loss at v as negatives; both ascend.
        lane : record of LANE
        w, v : ndarray of shape (d + 1,)
        rows, numbers : ndarray of int32 of shape (n_rows,) and float64 of shape (4, n_rows)
            Overwritten: the rows with a loss, and their signs, scores, slopes and curvatures.

        Returns
        -------
        int
            -1 if v is not accepted.
        """
        n = list_rows(others, positives, rows, numbers[0])
        f = evaluate(X, weight, lane, v, rows[:n], numbers[0], numbers[1])
        enough = lane.objective + SUFFICIENT_DECREASE * lane.slope
        if not f <= enough + ROUNDING * abs(f):
            lane.n_halved += 1
            lane.step_length = -1.0
            if lane.objective == np.inf or lane.n_halved > MAX_HALVINGS:
                lane.step_length = 0.0
            for j in range(v.shape[0]):
                v[j] = w[j] + w.dtype.type(0.5) * (v[j] - w[j])
            lane.trial_norm2 = squared_norm(v)
            lane.slope *= 0.5
            return -1
        n = keep_active(weight, lane, rows[:n], numbers)
        lane.n_active = n
        lane.n_flat += not f < lane.objective
        lane.objective = f
        lane.norm2 = lane.trial_norm2
        lane.current = 1 - lane.current
        lane.step_length = 0.5**lane.n_halved
        lane.n_halved = 0
        return n

    return take_step
