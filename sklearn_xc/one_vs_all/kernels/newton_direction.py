"""The Newton direction of one label: gradient and conjugate gradients over its active rows.

The Hessian is ``R + sum_i h_i x_i x_i'``, the sum over the active rows, R the ridge. On features
that no active row touches the Hessian is the identity and the gradient is w itself, so that all
vectors of the iteration stay multiples of the untouched part of w, and one scalar stands for it.
Local vectors therefore have ``n_local + 2`` entries: the touched features, the intercept, and the
coordinate along the untouched part of w.
"""

import functools
from types import ModuleType, SimpleNamespace

import numpy as np

from sklearn_xc._compile.jit import inlined


@functools.cache
def direction_functions(rows_of: ModuleType) -> SimpleNamespace:
    """Return the functions of this file for one kind of rows: ``csr_rows`` or ``dense_rows``."""
    row_dot, add_row = rows_of.row_dot, rows_of.add_row
    add_row_and_squares = rows_of.add_row_and_squares

    @inlined
    def add_gradient(X, rows, slopes, curvatures, gradient, diagonal):
        """Add the loss's part of gradient and Hessian diagonal over some rows.

        Parameters
        ----------
        X : tuple of ndarray
            Rows, as `rows_of` reads them.
        rows : ndarray of int32
            Which of them.
        slopes, curvatures : ndarray of float64 of shape (>= len(rows),)
            First and second derivative of the loss by the row's score.
        gradient, diagonal : ndarray of float64 of shape (n_local + 2,)
            Added to; the intercept stands last but one.
        """
        intercept = gradient.shape[0] - 2
        for r in range(rows.shape[0]):
            i = np.uint32(rows[r])
            add_row_and_squares(X, i, slopes[r], curvatures[r], gradient, diagonal)
            gradient[intercept] += slopes[r]
            diagonal[intercept] += curvatures[r]

    @inlined
    def add_loss_product(X, rows, curvatures, intercept, vector, out):
        """Add the loss's part of ``H @ vector`` to `out`, and return its product with `vector`.

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

    @inlined
    def conjugate_gradients(X, rows, curvatures, intercept, ridge, gradient, diagonal, cg, work):
        """Solve ``H s = -gradient`` roughly; return the number of products with H.

        Stops when the last step's share of the decrease of the quadratic model is small: after the
        k-th step, ``k (Q_k - Q_{k-1}) / Q_k <= tolerance``.

        Parameters
        ----------
        X, rows, curvatures, intercept
            As for ``add_loss_product``.
        ridge : float
            1 or 0: whether the intercept is regularised; or its damping.
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
            shift = direction[m - 2]
            product[m - 2] = ridge * shift
            curved = squares - (1.0 - ridge) * np.float64(shift * shift)
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

    return SimpleNamespace(
        add_gradient=add_gradient,
        add_loss_product=add_loss_product,
        conjugate_gradients=conjugate_gradients,
    )
