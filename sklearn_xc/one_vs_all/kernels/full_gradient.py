"""Objective and gradient over all rows of a label at the kink.

``block_newton`` evaluates the points that its steps lead to from the rows that a screen lists. Here
the scores of all rows are known but for the rounding of the point to the dtype of X: only rows that
may have a loss are read. Pruned points have few weights, and are scored feature by feature.
"""

import functools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from sklearn_xc._compile.jit import inlined, kernel

_ONE = np.uint64(1)


@functools.cache
def full_gradient_kernels(loss: Any) -> Any:
    """Return ``evaluate`` and ``add_up_losses``, compiled for `loss` on their first calls.

    Parameters
    ----------
    loss : CompiledLoss
        With a kink; see ``sklearn_xc.one_vs_all.losses.margin``.
    """
    value, slope, kink = loss.value, loss.slope, -float(loss.active_below)

    @inlined
    def add_row(i, sign, cost, X, point, gradient):
        """Add the pull of a row, if it has a loss, to the gradient; return its loss."""
        indptr, indices, data = X
        start, stop = np.uint64(indptr[i]), np.uint64(indptr[np.uint64(i) + _ONE])
        d = point.shape[0] - 1
        score = np.float64(point[d])
        for t in range(start, stop):
            score += np.float64(data[t]) * np.float64(point[np.uint32(indices[t])])
        margin = sign * score
        if margin >= -kink:
            return 0.0
        force = sign * cost * slope(margin)
        gradient[d] += force
        for t in range(start, stop):
            gradient[np.uint32(indices[t])] += force * np.float64(data[t])
        return cost * value(margin)

    @kernel
    def evaluate(X, weight, positives, costs, ridge, point, about, gradient):
        """Return the objective at a point, and the norm of its gradient.

        Parameters
        ----------
        X, weight
            All rows and their weights.
        positives : ndarray of int32
            Rows of the label.
        costs : tuple of float
            Weight of the loss of a positive, and of a negative.
        ridge : float
            1 or 0: whether the intercept is regularised.
        point : ndarray of shape (d + 1,)
            Intercept last.
        about : tuple
            ``(alone, answer, share, slack)``: without its intercept the point scores row i at
            ``alone[i] + share * answer[i]``, float64, to within `slack`. Positives have -inf.
        gradient : ndarray of float64 of shape (d + 1,)
            Overwritten, intercept last.

        Returns
        -------
        objective, gradient_norm : float
        """
        plus, minus = costs
        alone, answer, share, slack = about
        d = point.shape[0] - 1
        bias = np.float64(point[d])
        norm2 = 0.0
        for j in range(d):
            w = np.float64(point[j])
            gradient[j] = w
            norm2 += w * w
        gradient[d] = ridge * bias
        f = 0.5 * (norm2 + ridge * bias * bias)
        least = kink - bias - slack
        for i in range(alone.shape[0]):
            if not alone[i] + share * answer[i] <= least:
                f += add_row(i, -1.0, minus * np.float64(weight[i]), X, point, gradient)
        for r in range(positives.shape[0]):
            row = np.uint32(positives[r])
            f += add_row(row, 1.0, plus * np.float64(weight[row]), X, point, gradient)
        norm2 = 0.0
        for j in range(d + 1):
            norm2 += gradient[j] * gradient[j]
        return f, math.sqrt(norm2)

    @kernel
    def add_up_losses(weight, positives, costs, bias, alone, of_positives):
        """Return the loss of all rows at a point, from their scores.

        Parameters
        ----------
        weight, positives, costs
            As ``evaluate`` takes them.
        bias : float
            The intercept.
        alone, of_positives : ndarray of float64
            Scores without it, as ``score_alone`` writes them.
        """
        plus, minus = costs
        f = 0.0
        for i in range(alone.shape[0]):
            score = bias + alone[i]
            if score > kink:
                f += minus * np.float64(weight[i]) * value(-score)
        for r in range(positives.shape[0]):
            margin = bias + of_positives[r]
            if margin < -kink:
                f += plus * np.float64(weight[np.uint32(positives[r])]) * value(margin)
        return f

    return SimpleNamespace(evaluate=evaluate, add_up_losses=add_up_losses)
