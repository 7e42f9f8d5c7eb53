"""What instances that are negatives of some labels add to the objectives of these.

A score is the intercept alone where an instance has no feature with a weight: only instances with
one are looked at, by feature.
"""

import functools
from typing import Any

import numpy as np

from sklearn_xc.kernels.compiling.jit import kernel

_ONE = np.uint64(1)


@functools.cache
def negative_losses_kernel(loss: Any) -> Any:
    """Return ``add_up_losses`` for a ``CompiledLoss``."""
    value = loss.value

    @kernel
    def add_up_losses(by_feature, weight, total, weights, intercept, costs, labels, scores, met,
                      is_met, out):  # fmt: skip
        """Write for each label the loss that all instances have as its negatives.

        Parameters
        ----------
        by_feature : tuple of ndarray
            ``(indptr, rows, values)``: n instances by feature.
        weight : ndarray of float64 of shape (n,)
            Their weights.
        total : float
            The sum of these.
        weights : tuple of ndarray
            ``(indptr, features, values)``: of all labels, by label.
        intercept, costs : ndarray of float64 of shape (n_labels,)
            Intercepts, and weights of the loss of a negative.
        labels : ndarray of int64 of shape (m,)
            Which labels.
        scores, met, is_met : ndarray of float64, int32 and bool of shape (n,), (n + 1,) and (n,)
            Work space, `scores` and `is_met` all 0 and left so.
        out : ndarray of float64 of shape (m,)
            Overwritten.
        """
        indptr, rows, values = by_feature
        ends, features, of_label = weights
        for k in range(labels.shape[0]):
            label = labels[k]
            n_met = np.uint32(0)
            for s in range(ends[label], ends[label + 1]):
                j = np.uint32(features[s])
                w = np.float64(of_label[s])
                for t in range(np.uint64(indptr[j]), np.uint64(indptr[j + _ONE])):
                    i = np.uint32(rows[t])
                    met[n_met] = np.int32(i)
                    n_met += np.uint32(not is_met[i])  # a score may come back to 0
                    is_met[i] = True
                    scores[i] += w * np.float64(values[t])
            bias = intercept[label]
            of_met = 0.0
            found = 0.0
            for s in range(n_met):
                i = np.uint32(met[s])
                of_met += weight[i]
                found += weight[i] * value(-(bias + scores[i]))
                scores[i] = 0.0
                is_met[i] = False
            found += max(total - of_met, 0.0) * value(-bias)
            out[k] = costs[label] * found

    return add_up_losses
