"""Newton direction of one label, by preconditioned conjugate gradients over its active rows.

The Hessian is ``I + sum_i h_i x_i x_i'``, a sum over the active rows. On features that no active
row has, it is the identity and the gradient is w itself, so all vectors of the iteration are
multiples of this untouched part of w, and one scalar represents it. Local vectors have ``n_local +
2`` entries: the features of the active rows, the intercept, and the coordinate along the untouched
part.

The gradient is computed in float64 from the current weights. Its norm is therefore a certificate:
the objective is 1-strongly convex, so it is at most ``|g|^2 / 2`` above its minimum.
"""

import functools
import math
from types import ModuleType
from typing import Any

import numpy as np

from sklearn_xc._compile.jit import inlined
from sklearn_xc.one_vs_all.kernels.newton_step import squared_norm

#: A Newton step may raise the mean score of all rows by this share of its distance from the kink:
#: others would give most rows a loss. It is shortened at most to LEAST_SHARE: the minimum may lie
#: beyond the kink.
APPROACH, LEAST_SHARE = 0.7, 0.06
#: A difference of squared norms below this share of them has lost too many digits.
_CANCELLED = 1e-8
#: Powers of two up to this exponent have an inverse in float64.
LARGEST_EXPONENT = 1000


@functools.cache
def product_function(rows_of: ModuleType) -> Any:
    """Return ``add_loss_product`` for ``sparse_rows`` or ``dense_rows``."""
    row_dot, add_row = rows_of.row_dot, rows_of.add_row

    @inlined
    def add_loss_product(X, rows, curvatures, intercept, vector, out):
        """Add the losses' part of ``H @ vector`` to `out`, and return its product with `vector`."""
        dtype = vector.dtype.type
        n_local = vector.shape[0] - 2
        shift = dtype(intercept) * vector[n_local]
        shift_sum = np.float64(0.0)
        total = np.float64(0.0)
        for r in range(rows.shape[0]):
            i = np.uint32(rows[r])
            score = row_dot(X, i, vector) + shift
            change = dtype(curvatures[r]) * score
            shift_sum += change
            total += np.float64(change) * np.float64(score)
            add_row(X, i, change, out)
        out[n_local] += intercept * shift_sum
        return total

    return add_loss_product


@functools.cache
def cg_function(rows_of: ModuleType) -> Any:
    """Return ``conjugate_gradients`` for ``sparse_rows`` or ``dense_rows``."""
    add_loss_product = product_function(rows_of)

    @inlined
    def conjugate_gradients(X, rows, curvatures, intercept, scale, gradient, diagonal, cg, work):
        """Solve ``H s = -scale * gradient`` roughly; return the number of products with H.

        Stops when the last step's share of the decrease of the quadratic model is small: after the
        k-th step, ``k (Q_k - Q_{k-1}) / Q_k <= tolerance``.

        Parameters
        ----------
        X, rows : tuple of ndarray, and ndarray of int32
            Active rows, as `rows_of` reads them.
        curvatures : ndarray of float64 of shape (>= len(rows),)
            Second derivative of the loss by the row's score.
        intercept : float
            1 or 0: whether there is an intercept.
        scale : float
            A power of two.
        gradient, diagonal : ndarray of float64 of shape (m,)
            Gradient and Hessian diagonal.
        cg : tuple of (float, float, int)
            Tolerance, weight of the diagonal in the preconditioner, and the most iterations.
        work : ndarray of shape (6, >= m)
            Of the dtype of X. On return ``work[0]`` is the step s.

        Notes
        -----
        Source: stopping rule of Nash and Sofer (1990), preconditioner ``(1 - a) I + a diag(H)`` of
        Hsia, Chiang and Lin (2018), both as in Galli and Lin (2021).
        """
        tolerance, diagonal_weight, max_iter = cg
        m = gradient.shape[0]
        dtype = work.dtype.type
        step, residual, direction = work[0, :m], work[1, :m], work[2, :m]
        product, condition, downhill = work[3, :m], work[4, :m], work[5, :m]
        # Each pass over the vectors does all that it can: they are half the work of short rows.
        rz = np.float64(0.0)
        squares = np.float64(0.0)
        for j in range(m):
            condition[j] = 1.0 / ((1.0 - diagonal_weight) + diagonal_weight * diagonal[j])
            downhill[j] = -scale * gradient[j]
            step[j] = 0
            residual[j] = downhill[j]
            p = condition[j] * residual[j]
            direction[j] = p
            product[j] = p
            rz += np.float64(residual[j] * p)
            squares += np.float64(p * p)
        model = 0.0
        for iteration in range(1, max_iter + 1):
            curved = squares
            curved += add_loss_product(X, rows, curvatures, intercept, direction, product)
            if not curved > 0.0:
                return iteration
            alpha = dtype(rz / curved)
            gained = np.float64(0.0)
            new_rz = np.float64(0.0)
            for j in range(m):
                s = step[j] + alpha * direction[j]
                r = residual[j] - alpha * product[j]
                step[j] = s
                residual[j] = r
                gained += np.float64(s * (r + downhill[j]))
                new_rz += np.float64(r * (condition[j] * r))
            new_model = -0.5 * gained
            if new_model >= model or iteration * (new_model - model) >= tolerance * new_model:
                return iteration
            model = new_model
            beta = dtype(new_rz / rz)
            rz = new_rz
            squares = np.float64(0.0)
            for j in range(m):
                p = condition[j] * residual[j] + beta * direction[j]
                direction[j] = p
                product[j] = p
                squares += np.float64(p * p)
        return max_iter

    return conjugate_gradients


@inlined
def limit_step(lane, kink, mean, w, v):
    """Shorten a step from w to v that takes the mean of all rows too near to the kink, or beyond.

    `mean` has length d + 1, constant feature last. Returns the squared norm of the new v.
    """
    score = mean[mean.shape[0] - 1] * w[w.shape[0] - 1]
    rise = mean[mean.shape[0] - 1] * (v[v.shape[0] - 1] - w[w.shape[0] - 1])
    norm2 = np.float64(0.0)
    for j in range(mean.shape[0] - 1):
        score += mean[j] * w[j]
        rise += mean[j] * (v[j] - w[j])
        norm2 += np.float64(v[j]) * np.float64(v[j])
    room = APPROACH * (kink - score)
    if 0.0 < room < rise:
        share = max(room / rise, LEAST_SHARE)
        for j in range(mean.shape[0]):
            v[j] = w[j] + share * (v[j] - w[j])
        lane.slope *= share
        return squared_norm(v)
    return norm2


@inlined
def add_ridge(w, norm2, position, touched, gradient):
    """Add the ridge's part of the gradient; the norm of the untouched features comes last."""
    n_local = gradient.shape[0] - 2
    d = w.shape[0] - 1
    local2 = np.float64(0.0)
    for j in range(n_local):
        weight = np.float64(w[np.uint32(touched[j])])
        gradient[j] += weight
        local2 += weight * weight
    gradient[n_local] += np.float64(w[d])
    untouched2 = norm2 - local2 if n_local < d else 0.0
    if untouched2 < _CANCELLED * norm2 and n_local < d:
        untouched2 = 0.0
        for j in range(d):
            if position[j] < 0:
                untouched2 += np.float64(w[j]) * np.float64(w[j])
    gradient[n_local + 1] = math.sqrt(untouched2)


@inlined
def write_trial(w, v, touched, untouched, scale, intercept, step):
    """Write the trial point at the end of `step`, divided by `scale`."""
    n_local = step.shape[0] - 2
    d = w.shape[0] - 1
    dtype = w.dtype.type
    length = dtype(1.0 / scale)
    # The untouched coordinates move along w.
    factor = dtype(1.0)
    if dtype(scale * untouched) > 0.0:
        factor += step[n_local + 1] / dtype(scale * untouched)
    for j in range(d):
        v[j] = factor * w[j]
    for j in range(n_local):
        t = np.uint32(touched[j])
        v[t] = w[t] + length * step[j]
    v[d] = w[d] + dtype(intercept) * length * step[n_local]


@functools.cache
def direction_function(rows_of: ModuleType) -> Any:
    """Compile the Newton direction for a layout of rows."""
    add_row_and_squares, conjugate_gradients = rows_of.add_row_and_squares, cg_function(rows_of)

    @inlined
    def find_direction(X, rows, bends, lane, w, v, position, touched, cg, sums, work):
        """Compute the gradient; unless it certifies the label, set the next trial point.

        Parameters
        ----------
        X, rows : tuple of ndarray, and ndarray of int32
            Active rows, over their own n_local features.
        bends : ndarray of float64 of shape (2, >= len(rows))
            First and second derivatives of the loss by their scores.
        lane : record of LANE
        w, v : ndarray of shape (d + 1,)
            The current point, and the trial point to write.
        position, touched : ndarray of int32 of shape (d,) and (n_local,)
            The local number of each feature, or -1; the features.
        cg : tuple
            As for ``conjugate_gradients``.
        sums, work : ndarray of float64 of shape (2, n_local + 2), and of shape (6, >= n_local + 2)
            Work space.
        """
        slopes, curvatures, gradient, diagonal = bends[0], bends[1], sums[0], sums[1]
        m = gradient.shape[0]
        for j in range(m):
            gradient[j] = 0.0
            diagonal[j] = 1.0
        for r in range(rows.shape[0]):
            i = np.uint32(rows[r])
            add_row_and_squares(X, i, slopes[r], curvatures[r], gradient, diagonal)
            gradient[m - 2] += slopes[r]
            diagonal[m - 2] += curvatures[r]
        gradient[m - 2] *= lane.intercept
        add_ridge(w, lane.norm2, position, touched, gradient)
        norm2 = np.float64(0.0)
        for j in range(m):
            norm2 += gradient[j] * gradient[j]
        norm = math.sqrt(norm2)
        lane.gradient_norm = norm
        lane.threshold = min(lane.threshold, math.sqrt(2.0 * lane.gap * lane.objective))
        if norm <= lane.threshold:
            return
        # A power of two changes no digit, and squares of the scaled gradient fit into float32.
        exponent = min(max(math.frexp(norm)[1], -LARGEST_EXPONENT), LARGEST_EXPONENT)
        scale = math.ldexp(1.0, -exponent)
        lane.n_products += conjugate_gradients(
            X, rows, curvatures, lane.intercept, scale, gradient, diagonal, cg, work
        )
        step = work[0, :m]
        slope = np.float64(0.0)
        for j in range(m):
            slope += gradient[j] * np.float64(step[j])
        lane.slope = slope / scale
        write_trial(w, v, touched, gradient[m - 1], scale, lane.intercept, step)

    return find_direction
