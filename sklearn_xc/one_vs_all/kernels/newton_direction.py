"""Newton direction of one label, by preconditioned conjugate gradients over its active rows.

The Hessian is ``I + sum_i h_i x_i x_i'``, a sum over the active rows. On features that no active
row has, it is the identity and the gradient is w itself, so all vectors of the iteration are
multiples of this untouched part of w, and one scalar represents it. Local vectors have ``n_local +
2`` entries: the features of the active rows, the intercept, and the coordinate along the untouched
part.

The gradient is computed in float64 from the current weights. Its norm is therefore a certificate:
the objective is 1-strongly convex, so it is at most ``|g|^2 / 2`` above its minimum
(``certified_norm``).
"""

import functools
import math
from types import ModuleType
from typing import Any

import numpy as np

from sklearn_xc._compile.jit import inlined
from sklearn_xc.one_vs_all.kernels.line_search import point_of, squared_norm, step_limit

#: A difference of squared norms below this share of them has lost too many digits.
_CANCELLED = 1e-8
#: Powers of two up to this exponent have an inverse in float64.
LARGEST_EXPONENT = 1000


@inlined
def certified_norm(objective, gap):
    """Return the gradient norm that certifies an objective to a relative gap."""
    return np.sqrt(2.0 * gap * objective)


@inlined
def inverse_power_of_two(norm):
    """Return a power of two that times `norm` is in [0.5, 1)."""
    exponent = math.frexp(norm)[1]
    return math.ldexp(1.0, -min(max(exponent, -LARGEST_EXPONENT), LARGEST_EXPONENT))


@functools.cache
def gradient_function(rows_of: ModuleType) -> Any:
    """Return ``add_gradient`` for ``sparse_rows`` or ``dense_rows``."""
    add_row_and_squares = rows_of.add_row_and_squares

    @inlined
    def add_gradient(X, rows, slopes, curvatures, gradient, diagonal):
        """Add the losses' part of gradient and Hessian diagonal over some rows.

        Parameters
        ----------
        X : tuple of ndarray
            Rows, as `rows_of` reads them.
        rows : ndarray of int32
            Row numbers.
        slopes, curvatures : ndarray of float64 of shape (>= len(rows),)
            First and second derivative of the loss by the row's score.
        gradient, diagonal : ndarray of float64 of shape (n_local + 2,)
            Added to; the intercept is last but one.
        """
        intercept = gradient.shape[0] - 2
        for r in range(rows.shape[0]):
            i = np.uint32(rows[r])
            add_row_and_squares(X, i, slopes[r], curvatures[r], gradient, diagonal)
            gradient[intercept] += slopes[r]
            diagonal[intercept] += curvatures[r]

    return add_gradient


@functools.cache
def product_function(rows_of: ModuleType) -> Any:
    """Return ``add_loss_product`` for ``sparse_rows`` or ``dense_rows``."""
    row_dot, add_row = rows_of.row_dot, rows_of.add_row

    @inlined
    def add_loss_product(X, rows, curvatures, intercept, vector, out):
        """Add the losses' part of ``H @ vector`` to `out`, and return its product with `vector`.

        Parameters
        ----------
        X, rows, curvatures
            As for ``add_gradient``.
        intercept : float
            1 or 0: whether there is an intercept.
        vector, out : ndarray of shape (n_local + 2,)
            Of the dtype of X.
        """
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
    def conjugate_gradients(X, rows, curvatures, intercept, gradient, diagonal, cg, work):
        """Solve ``H s = -gradient`` roughly; return the number of products with H.

        Stops when the last step's share of the decrease of the quadratic model is small: after the
        k-th step, ``k (Q_k - Q_{k-1}) / Q_k <= tolerance``.

        Parameters
        ----------
        X, rows, curvatures, intercept
            As for ``add_loss_product``.
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
            downhill[j] = -gradient[j]
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
def add_ridge_gradient(w, norm2, n_local, is_copy, scratch, gradient):
    """Add the ridge's part of the gradient, that of the untouched features as one coordinate."""
    d = w.shape[0] - 1
    untouched = 0.0
    if is_copy:
        local2 = np.float64(0.0)
        for j in range(n_local):
            weight = np.float64(w[np.uint32(scratch.touched[j])])
            gradient[j] += weight
            local2 += weight * weight
        untouched2 = norm2 - local2
        if untouched2 < _CANCELLED * norm2:
            untouched2 = 0.0
            for j in range(d):
                if scratch.position[j] < 0:
                    untouched2 += np.float64(w[j]) * np.float64(w[j])
        untouched = np.sqrt(untouched2)
    else:
        for j in range(n_local):
            gradient[j] += np.float64(w[j])
    gradient[n_local] += np.float64(w[d])
    gradient[n_local + 1] = untouched
    return untouched


@inlined
def write_trial(w, v, n_local, is_copy, scratch, scale, untouched, intercept):
    """Write the trial point at the end of the step in ``work[0]``, divided by `scale`."""
    step = scratch.work[0]
    dtype = w.dtype.type
    length = 1.0 / scale
    d = w.shape[0] - 1
    if is_copy:
        # The untouched coordinates move along w.
        factor = dtype(1.0)
        if dtype(scale * untouched) > 0.0:
            factor += step[n_local + 1] / dtype(scale * untouched)
        for j in range(d):
            v[j] = factor * w[j]
        for j in range(n_local):
            t = np.uint32(scratch.touched[j])
            v[t] = w[t] + dtype(length) * step[j]
    else:
        for j in range(d):
            v[j] = w[j] + dtype(length) * step[j]
    v[d] = w[d] + dtype(intercept * length) * step[n_local]


@functools.cache
def direction_function(loss: Any, rows_of: ModuleType) -> Any:
    """Compile the Newton direction for a loss and a layout of rows."""
    add_gradient = gradient_function(rows_of)
    conjugate_gradients = cg_function(rows_of)
    limit_step = step_limit(loss, rows_of)
    has_kink = loss.has_kink

    @inlined
    def find_direction(data, lanes, k, X, rows, n_local, is_copy, cg, scratch):
        """Compute the gradient; unless it certifies the label, set the next trial point.

        Parameters
        ----------
        X, rows, n_local, is_copy
            Active rows, where `is_copy` in a copy over their own `n_local` features.
        """
        w = point_of(lanes, k, lanes.current[k])
        v = point_of(lanes, k, 1 - lanes.current[k])
        m = n_local + 2
        gradient = scratch.derivatives[0, :m]
        diagonal = scratch.derivatives[1, :m]
        for j in range(m):
            gradient[j] = 0.0
            diagonal[j] = 1.0
        add_gradient(X, rows, scratch.slopes, scratch.curvatures, gradient, diagonal)
        gradient[n_local] *= data.intercept
        untouched = add_ridge_gradient(w, lanes.norm2[k], n_local, is_copy, scratch, gradient)
        norm2 = np.float64(0.0)
        for j in range(m):
            norm2 += gradient[j] * gradient[j]
        lanes.gradient_norm[k] = np.sqrt(norm2)
        certified = certified_norm(lanes.objective[k], data.gap)
        lanes.threshold[k] = min(lanes.threshold[k], certified)
        if lanes.gradient_norm[k] <= lanes.threshold[k]:
            return
        # A power of two changes no digit, and squares of the scaled gradient fit into float32.
        scale = inverse_power_of_two(lanes.gradient_norm[k])
        for j in range(m):
            gradient[j] *= scale
        curvatures, work = scratch.curvatures, scratch.work
        lanes.n_products[k] += conjugate_gradients(
            X, rows, curvatures, data.intercept, gradient, diagonal, cg, work
        )
        slope = np.float64(0.0)
        for j in range(m):
            slope += gradient[j] * np.float64(work[0, j])
        length = 1.0 / scale
        lanes.slope[k] = slope * length * length
        write_trial(w, v, n_local, is_copy, scratch, scale, untouched, data.intercept)
        if has_kink and data.sample.shape[0] > 0:
            limit_step(data, lanes, k, w, v, scratch)
        lanes.trial_norm2[k] = squared_norm(v)

    return find_direction
