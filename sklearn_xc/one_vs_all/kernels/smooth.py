"""Newton-CG of 16 labels side by side over all rows, for losses that are never zero.

Vectors are the columns of blocks of shape (d + 1, 16), intercepts last. ``add_losses`` reads X once
for losses, gradients and curvatures; scores, losses and gradients are computed in float64,
curvatures, which only affect the direction, in the type of X. The conjugate gradients are those of
``newton_direction``, in lockstep: the caller has the loop, and each kernel advances all labels by
one step. A label that is done has a factor of 0.
"""

import functools
from typing import Any

import numpy as np

from sklearn_xc._compile.arithmetic.vectors import inner_product
from sklearn_xc._compile.emitters.row_lanes import (
    LANES,
    add_row_multiples,
    add_row_squares,
    weigh_row,
    write_row_scores,
)
from sklearn_xc._compile.jit import inlined, kernel

#: Rows whose losses are computed together: four arrays of their margins fit into the L1 cache.
TILE = 32


@kernel
def measure_rows(X, intercept, squares):
    """Write the squared norm of each row, with a constant feature `intercept` at its end."""
    indptr, _, data = X
    for i in range(squares.shape[0]):
        row = data[indptr[i] : indptr[i + 1]]
        squares[i] = inner_product(row, row) + intercept


@inlined
def score_tile(X, at, n, point, bias, margins):
    """Write the margins of a tile's rows as negatives."""
    indptr, indices, data = X
    for r in range(n):
        start, stop = np.uint64(indptr[at + r]), np.uint64(indptr[at + r + 1])
        write_row_scores(indices, data, start, stop, point, margins, np.uint64(r))
        for c in range(LANES):
            margins[r, c] = -(margins[r, c] + bias[c])


@inlined
def flip_positives(positives, next_positive, end, at, n, begin, margins):
    """Change the sign of the margins of a tile's positives, and advance `next_positive`."""
    for c in range(LANES):
        begin[c] = next_positive[c]
        while next_positive[c] < end[c] and positives[next_positive[c]] < at + n:
            r = positives[next_positive[c]] - at
            margins[r, c] = -margins[r, c]
            next_positive[c] += 1


@inlined
def weigh_positives(positives, relevance, begin, next_positive, at, ratio, values, slopes, bends):
    """Give the positives of a tile their weight relative to negatives, and their sign."""
    for c in range(LANES):
        for p in range(begin[c], next_positive[c]):
            r = positives[p] - at
            factor = ratio[c]
            if relevance.shape[0] > 0:
                factor *= relevance[p]
            values[r, c] *= factor
            slopes[r, c] *= -factor
            bends[r, c] *= factor


@functools.cache
def _differentiation(loss: Any) -> Any:
    """Compile the losses of the margins of a tile, and their derivatives."""
    value, slope, curvature = loss.value, loss.slope, loss.curvature

    @inlined
    def differentiate(margins, values, slopes, bends):
        """Write the loss at each margin of a tile, and its derivatives."""
        for e in range(TILE * LANES):
            margin = margins[e]
            values[e] = value(margin)
            slopes[e] = slope(margin)
            bends[e] = curvature(margin)

    return differentiate


@functools.cache
def smooth_loss_kernel(loss: Any) -> Any:
    """Return ``add_losses`` for a ``CompiledLoss``."""
    differentiate = _differentiation(loss)

    @kernel
    def add_losses(rows, first, last, targets, costs, point, tile, sums):
        """Add the losses of some rows for a block of labels, with their derivatives.

        Parameters
        ----------
        rows : tuple
            ``(X, weight, squares)``: CSR rows ``(indptr, indices, data)``, their weights, and their
            squared norms with the constant feature, in float64.
        first, last : int
            Range of the rows.
        targets : tuple of ndarray
            ``(positives, relevance, next_positive, end)``: positive rows of all labels, ascending
            for each, factors on their losses or none, and for each lane the range of its positives
            from `first` on. `next_positive` is advanced.
        costs : tuple of ndarray of float64 of shape (LANES,)
            Weights of the losses of positives and negatives.
        point : ndarray of shape (d + 1, LANES)
            Weights, of the type of X, intercepts last.
        tile : ndarray of float64 of shape (4, TILE, LANES)
            Work space.
        sums : tuple of ndarray
            ``(loss, gradient, trace, curvatures)``: losses, gradients and traces of the Hessians
            are added to, float64 of shape (LANES,), (d + 1, LANES) and (LANES,); curvatures, of
            shape (n, LANES) and of the type of X, are overwritten from `first` to `last`.
        """
        X, weight, squares = rows
        plus, minus = costs
        positives, relevance, next_positive, end = targets
        loss, gradient, trace, curvatures = sums
        indptr, indices, data = X
        d = point.shape[0] - 1
        margins, values, slopes, bends = tile[0], tile[1], tile[2], tile[3]
        tile[:] = 0.0
        flat = tile.reshape((4, TILE * LANES))
        bias, ratio = np.empty(LANES), np.empty(LANES)
        tile_loss, shift = np.empty(LANES), np.empty(LANES)
        begin = np.empty(LANES, np.int64)
        for c in range(LANES):
            bias[c] = point[d, c]
            ratio[c] = plus[c] / minus[c]
        for at in range(first, last, TILE):
            n = min(TILE, last - at)
            score_tile(X, at, n, point, bias, margins)
            flip_positives(positives, next_positive, end, at, n, begin, margins)
            differentiate(flat[0], flat[1], flat[2], flat[3])
            weigh_positives(
                positives, relevance, begin, next_positive, at, ratio, values, slopes, bends
            )
            tile_loss[:] = 0.0
            shift[:] = 0.0
            for r in range(n):
                at_r = np.uint64(at + r)
                w = np.float64(weight[at + r])
                u = np.uint64(r)
                square = squares[at + r]
                weigh_row(
                    values,
                    slopes,
                    bends,
                    u,
                    w,
                    square,
                    minus,
                    tile_loss,
                    shift,
                    trace,
                    curvatures,
                    at_r,
                )
            for c in range(LANES):
                loss[c] += tile_loss[c]
                gradient[d, c] += shift[c]
            for r in range(n):
                start, stop = np.uint64(indptr[at + r]), np.uint64(indptr[at + r + 1])
                add_row_multiples(indices, data, start, stop, slopes, np.uint64(r), gradient)

    return add_losses


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
def add_ridge(point, intercept, gradient, norm2, gradient_norm2):
    """Add the ridge to the gradients and write squared norms, that of a point without intercept.

    `intercept` is 1 or 0: whether there is an intercept.
    """
    d = point.shape[0] - 1
    for c in range(LANES):
        gradient[d, c] = intercept * gradient[d, c] + np.float64(point[d, c])
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
        0 for labels without a step.
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
        Range of the rows.
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
def update_directions(going, beta, condition, vectors, squares):
    """Update the directions of labels with `going`; set those of the others to 0."""
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
    """Set the directions of some labels and their products to zero."""
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
        All points, one after the other.
    offsets, targets : ndarray of int64 of shape (LANES,)
        Positions of the current points, below 0 for none, and of the new ones.
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
        w = points[offsets[c] : offsets[c] + d + 1]
        trial = points[targets[c] : targets[c] + d + 1]
        for j in range(d):
            trial[j] = w[j] + length * step[j, c]
        trial[d] = w[d] + number(intercept) * length * step[d, c]
        slope[c] /= scale[c]
        norm2[c] = inner_product(trial[:d], trial[:d])


@kernel
def halve_step(w, trial):
    """Halve a step; return the squared norm of its end without the intercept."""
    d = w.shape[0] - 1
    half = w.dtype.type(0.5)
    for j in range(d + 1):
        trial[j] = w[j] + half * (trial[j] - w[j])
    return inner_product(trial[:d], trial[:d])
