"""Newton directions of 16 labels side by side, by conjugate gradients over all rows.

Vectors are the columns of blocks of shape (d + 1, 16), intercepts last. The method is that of
``newton_direction``; here the caller has the loop, and every kernel takes all labels one step
further. A label that is done has the factor 0 in it.
"""

import numpy as np

from sklearn_xc._compile.arithmetic.vectors import inner_product
from sklearn_xc._compile.emitters.row_lanes import (
    LANES,
    add_row_multiples,
    add_row_squares,
    write_row_scores,
)
from sklearn_xc._compile.jit import kernel


@kernel
def gather_points(points, offsets, block):
    """Write points side by side: ``block[j, c] = points[offsets[c] + j]``, 0 for offsets < 0."""
    for c in range(LANES):
        if offsets[c] < 0:
            for j in range(block.shape[0]):
                block[j, c] = 0
        else:
            for j in range(block.shape[0]):
                block[j, c] = points[np.uint64(offsets[c] + j)]


@kernel
def add_ridge(point, intercept, ridge, gradient, norm2, gradient_norm2):
    """Add the ridge to the gradients and write squared norms, that of a point without intercept.

    `intercept` and `ridge` are 1 or 0: whether there is an intercept, and the ridge covers it.
    """
    d = point.shape[0] - 1
    for c in range(LANES):
        bias = np.float64(point[d, c])
        gradient[d, c] = intercept * gradient[d, c] + ridge * bias
        norm2[c] = 0.0
        gradient_norm2[c] = gradient[d, c] * gradient[d, c]
    for j in range(d):
        for c in range(LANES):
            weight = np.float64(point[j, c])
            derivative = gradient[j, c] + weight
            gradient[j, c] = derivative
            norm2[c] += weight * weight
            gradient_norm2[c] += derivative * derivative


@kernel
def add_squares(X, curvatures, first, last, diagonal):
    """Add the losses' part of the diagonals of the Hessians over some rows, without intercepts."""
    indptr, indices, data = X
    for i in range(first, last):
        start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        add_row_squares(indices, data, start, stop, curvatures, np.uint64(i), diagonal)


@kernel
def begin_directions(gradient, scale, diagonal, weight, vectors, rz, squares):
    """Begin conjugate gradients for ``H s = -scale gradient``.

    Parameters
    ----------
    gradient : ndarray of float64 of shape (d + 1, LANES)
    scale : ndarray of float64 of shape (LANES,)
        0 for labels that want none.
    diagonal : ndarray of shape (d + 1, LANES)
        Of the Hessians; overwritten with the preconditioner, the inverse of
        ``(1 - weight) + weight diagonal``.
    weight : float
    vectors : ndarray of shape (4, d + 1, LANES)
        Overwritten: step, residual, direction, and the ridge's part of its product with the
        Hessian.
    rz, squares : ndarray of float64 of shape (LANES,)
        Overwritten with residuals times preconditioned ones, and squared norms of the directions.
    """
    step, residual, direction, product = vectors[0], vectors[1], vectors[2], vectors[3]
    number = step.dtype.type
    for c in range(LANES):
        rz[c] = 0.0
        squares[c] = 0.0
    for j in range(gradient.shape[0]):
        for c in range(LANES):
            condition = number(1.0 / ((1.0 - weight) + weight * np.float64(diagonal[j, c])))
            downhill = number(-scale[c] * gradient[j, c])
            p = condition * downhill
            diagonal[j, c] = condition
            step[j, c] = 0
            residual[j, c] = downhill
            direction[j, c] = p
            product[j, c] = p
            rz[c] += np.float64(downhill * p)
            squares[c] += np.float64(p * p)


@kernel
def add_products(X, curvatures, first, last, intercept, direction, scores, shift, curved, product):
    """Add the losses' part of the products with the Hessians over some rows.

    Parameters
    ----------
    X, curvatures
        As ``add_losses`` takes and leaves them.
    first, last : int
        From which row to which.
    intercept : float
        1 or 0: whether there is an intercept.
    direction, product : ndarray of shape (d + 1, LANES)
        Vectors, and their products, which are added to without intercepts.
    scores : ndarray of shape (1, LANES)
        Work space of the type of X.
    shift, curved : ndarray of float64 of shape (LANES,)
        Added to: the intercepts of the products, and products of both.
    """
    indptr, indices, data = X
    d = direction.shape[0] - 1
    bias = np.empty(LANES, direction.dtype)
    for c in range(LANES):
        bias[c] = direction.dtype.type(intercept) * direction[d, c]
    for i in range(first, last):
        start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        write_row_scores(indices, data, start, stop, direction, scores, np.uint64(0))
        for c in range(LANES):
            score = scores[0, c] + bias[c]
            change = curvatures[i, c] * score
            shift[c] += np.float64(change)
            curved[c] += np.float64(change) * np.float64(score)
            scores[0, c] = change
        add_row_multiples(indices, data, start, stop, scores, np.uint64(0), product)


@kernel
def take_steps(alpha, gradient, scale, condition, vectors, gained, rz):
    """Move the steps by `alpha` times the directions.

    `gained` is overwritten with the products of steps and ``residual - scale gradient``, minus
    twice the quadratic model; `rz` with those of residuals and preconditioned ones.
    """
    step, residual, direction, product = vectors[0], vectors[1], vectors[2], vectors[3]
    number = step.dtype.type
    for c in range(LANES):
        gained[c] = 0.0
        rz[c] = 0.0
    for j in range(gradient.shape[0]):
        for c in range(LANES):
            a = number(alpha[c])
            s = step[j, c] + a * direction[j, c]
            r = residual[j, c] - a * product[j, c]
            step[j, c] = s
            residual[j, c] = r
            gained[c] += np.float64(s * (r - number(scale[c] * gradient[j, c])))
            rz[c] += np.float64(r * (condition[j, c] * r))


@kernel
def turn_directions(going, beta, condition, vectors, squares):
    """Turn the directions of labels with the factor `going` 1; those with 0 get zero."""
    residual, direction, product = vectors[1], vectors[2], vectors[3]
    number = residual.dtype.type
    for c in range(LANES):
        squares[c] = 0.0
    for j in range(residual.shape[0]):
        for c in range(LANES):
            p = condition[j, c] * residual[j, c] + number(beta[c]) * direction[j, c]
            p = p if going[c] else number(0.0)
            direction[j, c] = p
            product[j, c] = p
            squares[c] += np.float64(p * p)


@kernel
def stop_steps(stopped, vectors):
    """Set the directions of some labels, and what was multiplied with them, to zero."""
    direction, product = vectors[2], vectors[3]
    for j in range(direction.shape[0]):
        for c in range(LANES):
            if stopped[c]:
                direction[j, c] = 0
                product[j, c] = 0


@kernel
def place_trials(points, offsets, targets, scale, intercept, gradient, step, norm2, slope):
    """Write the points at the end of the steps, and measure them.

    Parameters
    ----------
    points : ndarray of float
        All points, one behind the other.
    offsets, targets : ndarray of int64 of shape (LANES,)
        Where those begin from which the steps are taken, and where the new ones are written; below
        0 for none.
    scale : ndarray of float64 of shape (LANES,)
        The steps are `scale` times too long.
    intercept : float
        1 or 0: whether there is an intercept.
    gradient, step : ndarray of shape (d + 1, LANES)
    norm2, slope : ndarray of float64 of shape (LANES,)
        Overwritten with the squared norms of the new points, without intercepts, and the products
        of gradients and steps.
    """
    d = step.shape[0] - 1
    number = step.dtype.type
    for c in range(LANES):
        slope[c] = 0.0
    for j in range(d + 1):
        for c in range(LANES):
            slope[c] += gradient[j, c] * np.float64(step[j, c])
    for c in range(LANES):
        if offsets[c] < 0:
            continue
        length = number(1.0 / scale[c])
        stand = points[offsets[c] : offsets[c] + d + 1]
        trial = points[targets[c] : targets[c] + d + 1]
        for j in range(d):
            trial[j] = stand[j] + length * step[j, c]
        trial[d] = stand[d] + number(intercept) * length * step[d, c]
        slope[c] /= scale[c]
        norm2[c] = inner_product(trial[:d], trial[:d])


@kernel
def halve_step(stand, trial):
    """Move a trial point half the way back; return its squared norm without the intercept."""
    d = stand.shape[0] - 1
    half = stand.dtype.type(0.5)
    for j in range(d + 1):
        trial[j] = stand[j] + half * (trial[j] - stand[j])
    return inner_product(trial[:d], trial[:d])
