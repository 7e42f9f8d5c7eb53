"""The certificate of a label, from one pass over all rows of a sparse X in their own order.

``block_newton`` certifies the points that its steps lead to, from the rows with a loss there. Here
a point may come from anywhere, with any number of such rows.
"""

import functools
import math
from typing import Any

import numpy as np

from sklearn_xc.kernels.compiling.jit import kernel

_ONE = np.uint64(1)


@functools.cache
def certificate_kernel(loss: Any) -> Any:
    """Return ``certify``, compiled for `loss` on its first call.

    Parameters
    ----------
    loss : CompiledLoss
        With a kink; see ``sklearn_xc.losses.margin``.
    """
    value, slope, active_below = loss.value, loss.slope, float(loss.active_below)

    @kernel
    def certify(X, weight, positives, costs, ridge, point, prune, sign, gradient):
        """Return the objective at a point, its gradient's norm, and the objective once pruned.

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
        prune : float
            Smaller weights become 0.
        sign : ndarray of float64 of shape (n,)
            Work space.
        gradient : ndarray of float64 of shape (d + 1,)
            Overwritten, intercept last.

        Returns
        -------
        objective, gradient_norm, pruned_objective : float
        """
        indptr, indices, data = X
        plus, minus = costs
        d = point.shape[0] - 1
        bias = np.float64(point[d])
        sign[:] = -1.0
        for r in range(positives.shape[0]):
            sign[np.uint32(positives[r])] = 1.0
        norm2, pruned_norm2 = 0.0, 0.0
        for j in range(d):
            w = np.float64(point[j])
            gradient[j] = w
            norm2 += w * w
            pruned_norm2 += w * w if abs(point[j]) >= prune else 0.0
        gradient[d] = ridge * bias
        f = 0.5 * (norm2 + ridge * bias * bias)
        pruned = 0.5 * (pruned_norm2 + ridge * bias * bias)
        for i in range(sign.shape[0]):
            start, stop = np.uint64(indptr[i]), np.uint64(indptr[np.uint64(i) + _ONE])
            score, pruned_score = bias, bias
            for t in range(start, stop):
                w = point[np.uint32(indices[t])]
                kept = w if abs(w) >= prune else w - w
                score += np.float64(data[t]) * np.float64(w)
                pruned_score += np.float64(data[t]) * np.float64(kept)
            cost = (plus if sign[i] > 0.0 else minus) * np.float64(weight[i])
            margin = sign[i] * score
            if margin < active_below:
                f += cost * value(margin)
                force = sign[i] * cost * slope(margin)
                gradient[d] += force
                for t in range(start, stop):
                    gradient[np.uint32(indices[t])] += force * np.float64(data[t])
            margin = sign[i] * pruned_score
            if margin < active_below:
                pruned += cost * value(margin)
        norm2 = 0.0
        for j in range(d + 1):
            norm2 += gradient[j] * gradient[j]
        return f, math.sqrt(norm2), pruned

    return certify
