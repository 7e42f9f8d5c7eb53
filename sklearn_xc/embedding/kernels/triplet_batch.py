"""The triplet loss of a mini-batch over the labels of its pool, from all scores."""

import numpy as np

from sklearn_xc._compile.jit import kernel


@kernel
def triplet_gradient(
    scores, own, indptr, positives, columns, weight, margin, begin, end, losses, n_violations
):
    """Overwrite scores with the gradient of the triplet loss by them, for some of the instances.

    The loss of an instance is ``sum_k [z_k - z_own + margin]_+`` over the labels k of the pool that
    are not its own.

    Parameters
    ----------
    scores : ndarray of float of shape (n, m)
        Of the instances with the labels of the pool. Overwritten in rows `begin` to `end`.
    own : ndarray of int64 of shape (n,)
        The column of a positive of each instance.
    indptr : ndarray of int64 of shape (n + 1,)
        Bounds of the labels of each instance in `positives`.
    positives : ndarray of int32
        All labels of each instance; they are no negatives.
    columns : ndarray of int32 of shape (n_labels,)
        The column of each label in the pool, or -1.
    weight : ndarray of float of shape (n,)
        Of the instances: gradient and loss are multiplied by it.
    margin : float
    begin, end : int
        Range of instances.
    losses : ndarray of float64 of shape (n,)
        Overwritten from `begin` to `end`.
    n_violations : ndarray of int64 of shape (n,)
        Overwritten from `begin` to `end`: the negatives within the margin, which have a gradient.
    """
    zero = scores.dtype.type(0)
    lowest = scores.dtype.type(-np.inf)
    for i in range(begin, end):
        row = scores[i]
        at = own[i]
        limit = row[at] - scores.dtype.type(margin)
        for t in range(indptr[i], indptr[i + 1]):
            if columns[positives[t]] >= 0:
                row[columns[positives[t]]] = lowest
        one = scores.dtype.type(weight[i])
        total, n = np.float64(0.0), 0
        for k in range(np.uint64(row.shape[0])):
            is_violation = row[k] > limit
            n += is_violation
            total += np.float64(row[k] - limit) if is_violation else 0.0
            row[k] = one if is_violation else zero
        row[at] = -scores.dtype.type(n) * one
        losses[i] = np.float64(weight[i]) * total
        n_violations[i] = n
