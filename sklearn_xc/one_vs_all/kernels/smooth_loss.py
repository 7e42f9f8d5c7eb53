"""Loss, gradient and curvatures of 16 labels in one pass over X, where every row has a loss.

Scores, losses and gradient are taken in float64 from the weights as they stand; curvatures, which
only give a direction, are kept in the type of X.
"""

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np

from sklearn_xc._compile.arithmetic.vectors import inner_product
from sklearn_xc._compile.emitters.row_lanes import (
    LANES,
    add_row_multiples,
    weigh_row,
    write_row_scores,
)
from sklearn_xc._compile.jit import inlined, kernel

#: Rows whose losses are taken together: four arrays of their margins stay in the first cache.
TILE = 32


@kernel
def measure_rows(X, intercept, squares):
    """Write the squared norm of each row, with a constant feature `intercept` behind it."""
    indptr, _, data = X
    for i in range(squares.shape[0]):
        row = data[indptr[i] : indptr[i + 1]]
        squares[i] = inner_product(row, row) + intercept


@functools.cache
def smooth_loss_kernels(loss: Any) -> SimpleNamespace:
    """Return ``add_losses`` and ``sum_losses``, compiled for `loss` on their first calls.

    Parameters
    ----------
    loss : CompiledLoss
        See ``sklearn_xc.one_vs_all.losses.margin``.
    """
    value, slope, curvature = loss.value, loss.slope, loss.curvature

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
    def turn_positives(positives, next_positive, end, at, n, begin, margins):
        """Turn the signs of those margins of a tile that are of positives, and move on behind."""
        for c in range(LANES):
            begin[c] = next_positive[c]
            while next_positive[c] < end[c] and positives[next_positive[c]] < at + n:
                r = positives[next_positive[c]] - at
                margins[r, c] = -margins[r, c]
                next_positive[c] += 1

    @inlined
    def differentiate(margins, values, slopes, bends):
        """Write the loss of each margin of a tile, and its derivatives."""
        for e in range(TILE * LANES):
            margin = margins[e]
            values[e] = value(margin)
            slopes[e] = slope(margin)
            bends[e] = curvature(margin)

    @kernel
    def add_losses(
        rows,
        first,
        last,
        positives,
        next_positive,
        end,
        costs,
        point,
        tile,
        loss,
        gradient,
        trace,
        curvatures,
    ):
        """Add the losses of some rows for a block of labels, and what follows from them.

        Parameters
        ----------
        rows : tuple
            ``(X, weight, squares)``: CSR rows ``(indptr, indices, data)``, their weights, and their
            squared norms with the constant feature, in float64.
        first, last : int
            From which row to which.
        positives : ndarray of int32
            Positive rows of all labels, rising for each.
        next_positive, end : ndarray of int64 of shape (LANES,)
            Which of them are those of a lane that do not come before `first`. Moved on.
        costs : tuple of ndarray of float64 of shape (LANES,)
            Weights of the losses of positives and negatives.
        point : ndarray of shape (d + 1, LANES)
            Weights, of the type of X, intercepts last.
        tile : ndarray of float64 of shape (4, TILE, LANES)
            Work space.
        loss, trace : ndarray of float64 of shape (LANES,)
            Added to: losses, and the trace of the Hessian.
        gradient : ndarray of float64 of shape (d + 1, LANES)
            Added to.
        curvatures : ndarray of shape (n, LANES)
            Overwritten from `first` to `last`, of the type of X.
        """
        X, weight, squares = rows
        plus, minus = costs
        indptr, indices, data = X
        d = point.shape[0] - 1
        margins, values, slopes, bends = tile[0], tile[1], tile[2], tile[3]
        tile[:] = 0.0
        flat = tile.reshape((4, TILE * LANES))
        bias, ratio = np.empty(LANES), np.empty(LANES)
        of_tile, shift = np.empty(LANES), np.empty(LANES)
        begin = np.empty(LANES, np.int64)
        for c in range(LANES):
            bias[c] = point[d, c]
            ratio[c] = plus[c] / minus[c]
        for at in range(first, last, TILE):
            n = min(TILE, last - at)
            score_tile(X, at, n, point, bias, margins)
            turn_positives(positives, next_positive, end, at, n, begin, margins)
            differentiate(flat[0], flat[1], flat[2], flat[3])
            for c in range(LANES):
                of_tile[c] = 0.0
                shift[c] = 0.0
                for p in range(begin[c], next_positive[c]):
                    r = positives[p] - at
                    values[r, c] *= ratio[c]
                    slopes[r, c] *= -ratio[c]
                    bends[r, c] *= ratio[c]
            for r in range(n):
                weigh_row(
                    values,
                    slopes,
                    bends,
                    np.uint64(r),
                    np.float64(weight[at + r]),
                    squares[at + r],
                    minus,
                    of_tile,
                    shift,
                    trace,
                    curvatures,
                    np.uint64(at + r),
                )
            for c in range(LANES):
                loss[c] += of_tile[c]
                gradient[d, c] += shift[c]
            for r in range(n):
                start, stop = np.uint64(indptr[at + r]), np.uint64(indptr[at + r + 1])
                add_row_multiples(indices, data, start, stop, slopes, np.uint64(r), gradient)

    @kernel
    def sum_losses(
        X, weight, first, last, positives, next_positive, end, plus, minus, point, tile, loss
    ):
        """Add the losses of some rows for a block of labels, as ``add_losses`` does, alone."""
        d = point.shape[0] - 1
        margins, values = tile[0], tile[1]
        tile[:] = 0.0
        flat = tile.reshape((4, TILE * LANES))
        bias, ratio, of_tile = np.empty(LANES), np.empty(LANES), np.empty(LANES)
        begin = np.empty(LANES, np.int64)
        for c in range(LANES):
            bias[c] = point[d, c]
            ratio[c] = plus[c] / minus[c]
        for at in range(first, last, TILE):
            n = min(TILE, last - at)
            score_tile(X, at, n, point, bias, margins)
            turn_positives(positives, next_positive, end, at, n, begin, margins)
            for e in range(TILE * LANES):
                flat[1, e] = value(flat[0, e])
            for c in range(LANES):
                of_tile[c] = 0.0
                for p in range(begin[c], next_positive[c]):
                    values[positives[p] - at, c] *= ratio[c]
            for r in range(n):
                for c in range(LANES):
                    of_tile[c] += minus[c] * np.float64(weight[at + r]) * values[r, c]
            for c in range(LANES):
                loss[c] += of_tile[c]

    return SimpleNamespace(add_losses=add_losses, sum_losses=sum_losses)
