"""The Newton direction of one label: gradient and conjugate gradients over its active rows.

The Hessian is ``R + sum_i h_i x_i x_i'``, the sum over the active rows, R the ridge. On features
that no active row touches the Hessian is the identity and the gradient is w itself, so that all
vectors of the iteration stay multiples of the untouched part of w, and one scalar stands for it.
Local vectors therefore have ``n_local + 2`` entries: the touched features, the intercept, and the
coordinate along the untouched part of w.
"""

import numpy as np

from sklearn_xc.kernels._jit import inlined

_ONE = np.uint64(1)


@inlined
def compact_rows(indptr, indices, data, rows, position, out_indptr, out_indices, out_data, touched):
    """Copy `rows` of a CSR matrix, renumber their features from 0, and return how many there are.

    Parameters
    ----------
    indptr, indices, data : ndarray
        The matrix.
    rows : ndarray of int32
        The rows to copy.
    position : ndarray of int32 of shape (d,)
        All -1; on return the new number of each touched feature.
    out_indptr, out_indices, out_data : ndarray
        Large enough for the copy; overwritten.
    touched : ndarray of int32 of shape (d,)
        On return its head lists the touched features by their new number.
    """
    n_local = 0
    end = np.uint64(0)
    out_indptr[0] = 0
    for r in range(rows.shape[0]):
        i = np.uint32(rows[r])
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + _ONE])):
            j = np.uint32(indices[t])
            p = position[j]
            if p < 0:
                p = np.int32(n_local)
                position[j] = p
                touched[n_local] = np.int32(j)
                n_local += 1
            out_indices[end] = p
            out_data[end] = data[t]
            end += _ONE
        out_indptr[r + 1] = end
    return n_local


@inlined
def add_gradient(indptr, indices, data, slopes, curvatures, gradient, diagonal):
    """Add the loss's part of gradient and Hessian diagonal over all rows with a slope.

    Parameters
    ----------
    indptr, indices, data : ndarray
        CSR rows.
    slopes, curvatures : ndarray of float64 of shape (n_rows,)
        First and second derivative of the loss by the row's score.
    gradient, diagonal : ndarray of float64 of shape (n_local + 2,)
        Added to; the intercept stands last but one.
    """
    intercept = gradient.shape[0] - 2
    for r in range(slopes.shape[0]):
        slope = slopes[r]
        if slope == 0.0:
            continue
        curvature = curvatures[r]
        for t in range(np.uint64(indptr[r]), np.uint64(indptr[r + 1])):
            j = np.uint32(indices[t])
            v = np.float64(data[t])
            gradient[j] += slope * v
            diagonal[j] += curvature * v * v
        gradient[intercept] += slope
        diagonal[intercept] += curvature


@inlined
def hessian_product(indptr, indices, data, curvatures, intercept, ridge, vector, out):
    """Write ``H @ vector`` into `out`.

    Parameters
    ----------
    indptr, indices, data : ndarray
        CSR rows.
    curvatures : ndarray of float64 of shape (n_rows,)
        Weight of each row.
    intercept, ridge : float
        1 or 0: whether there is an intercept, and whether it is regularised.
    vector, out : ndarray of shape (n_local + 2,)
        Of the dtype of `data`.
    """
    n_local = vector.shape[0] - 2
    for j in range(n_local):
        out[j] = vector[j]
    out[n_local + 1] = vector[n_local + 1]
    shift = intercept * vector[n_local]
    shift_sum = np.float64(0.0)
    for r in range(curvatures.shape[0]):
        weight = data.dtype.type(curvatures[r])
        if weight == 0:
            continue
        start = np.uint64(indptr[r])
        stop = np.uint64(indptr[r + 1])
        dot = data.dtype.type(shift)
        for t in range(start, stop):
            dot += data[t] * vector[np.uint32(indices[t])]
        dot *= weight
        shift_sum += dot
        for t in range(start, stop):
            out[np.uint32(indices[t])] += dot * data[t]
    out[n_local] = ridge * vector[n_local] + intercept * shift_sum


@inlined
def _dot(a, b):
    total = np.float64(0.0)
    for j in range(a.shape[0]):
        total += np.float64(a[j]) * np.float64(b[j])
    return total


@inlined
def conjugate_gradients(
    indptr, indices, data, curvatures, intercept, ridge, gradient, diagonal, cg, work
):
    """Solve ``H s = -gradient`` roughly; return the number of products with H.

    Stops when the last step's share of the decrease of the quadratic model is small: after the
    k-th step, ``k (Q_k - Q_{k-1}) / Q_k <= tolerance``.

    Parameters
    ----------
    indptr, indices, data, curvatures, intercept, ridge
        As for ``hessian_product``.
    gradient, diagonal : ndarray of float64 of shape (m,)
        Gradient and Hessian diagonal.
    cg : tuple of (float, float, int)
        Tolerance, weight of the diagonal in the preconditioner, and the most iterations.
    work : ndarray of shape (5, m)
        Of the dtype of `data`. On return ``work[0]`` is the step s.

    Notes
    -----
    Source: stopping rule of Nash and Sofer (1990), preconditioner ``(1 - a) I + a diag(H)`` of
    Hsia, Chiang and Lin (2018), both as in Galli and Lin (2021).
    """
    tolerance, diagonal_weight, max_iter = cg
    m = gradient.shape[0]
    step = work[0, :m]
    residual = work[1, :m]
    conditioned = work[2, :m]
    direction = work[3, :m]
    product = work[4, :m]
    for j in range(m):
        scale = (1.0 - diagonal_weight) + diagonal_weight * diagonal[j]
        step[j] = 0
        residual[j] = -gradient[j]
        conditioned[j] = residual[j] / scale
        direction[j] = conditioned[j]
    rz = _dot(residual, conditioned)
    model = 0.0
    for iteration in range(1, max_iter + 1):
        hessian_product(indptr, indices, data, curvatures, intercept, ridge, direction, product)
        curved = _dot(direction, product)
        if not curved > 0.0:
            return iteration
        alpha = rz / curved
        s_r = 0.0
        s_g = 0.0
        new_rz = 0.0
        for j in range(m):
            s = step[j] + alpha * direction[j]
            r = residual[j] - alpha * product[j]
            z = r / ((1.0 - diagonal_weight) + diagonal_weight * diagonal[j])
            step[j] = s
            residual[j] = r
            conditioned[j] = z
            s_r += s * r
            s_g += s * gradient[j]
            new_rz += r * z
        new_model = 0.5 * (s_g - s_r)
        if new_model >= model or iteration * (new_model - model) >= tolerance * new_model:
            return iteration
        model = new_model
        beta = new_rz / rz
        rz = new_rz
        for j in range(m):
            direction[j] = conditioned[j] + beta * direction[j]
    return max_iter
