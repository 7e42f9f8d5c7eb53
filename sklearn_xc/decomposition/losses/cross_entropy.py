"""Softmax cross-entropy of a set of labels: ``sum over positives k of log(sum exp(z)) - z_k``.

Source: eq. 2 of [1]_; the neighbourhood component loss, eq. 6, is the same.

References
----------
.. [1] I. E.-H. Yen, S. Kale, F. X. Yu, D. Holtmann-Rice, S. Kumar and P. Ravikumar, "Loss
   decomposition for fast learning in large output spaces", ICML 2018.
"""

import math
from dataclasses import dataclass

from sklearn.base import BaseEstimator

from sklearn_xc._compile.arithmetic.vector_math import vector_exp
from sklearn_xc._compile.arithmetic.vectors import largest_entry, sum_of
from sklearn_xc._compile.jit import inlined

#: Below the floor the gradient of another negative is less than this.
NEGLIGIBLE = 1e-3


@inlined
def gradient(scores, n_positive, n, parameters, out, work):
    """Write the gradient, and return the loss and the score up to which negatives hardly matter.

    Parameters
    ----------
    scores : ndarray of float64 of shape (>= n,)
        The positives, then the negatives. A NaN makes the loss NaN.
    n_positive, n : int
        At least one is positive; there need not be a negative.
    parameters : tuple
        Not used.
    out : ndarray of float64 of shape (>= n,)
        The leading n entries are overwritten.
    work : ndarray of float64 of shape (>= 2 n,)
        Not used.

    Returns
    -------
    loss, floor : float
        Another negative with a score up to `floor` would have a gradient of at most ``NEGLIGIBLE``,
        and change no other by more.
    """
    largest = largest_entry(scores[:n])
    for j in range(n):
        below = scores[j] - largest
        out[j] = vector_exp(below) if below <= 0.0 else below  # NaN stays NaN
    total = sum_of(out[:n])
    factor = n_positive / total
    for j in range(n):
        out[j] *= factor
    log_total = math.log(total)
    loss = 0.0
    for k in range(n_positive):
        out[k] -= 1.0
    for k in range(n_positive):
        loss += largest - scores[k] + log_total
    return loss, largest + log_total + math.log(NEGLIGIBLE / n_positive)


@inlined
def support_floor(largest_negative, smallest_positive, parameters):
    """Return -inf: every negative has a gradient."""
    return -math.inf


@dataclass
class CrossEntropy(BaseEstimator):
    """Softmax cross-entropy, summed over the labels of an instance.

    Examples
    --------
    >>> from sklearn_xc import DecompMIPSClassifier
    >>> from sklearn_xc.decomposition.losses import CrossEntropy
    >>> clf = DecompMIPSClassifier(loss=CrossEntropy())

    An instance with one label, whose score is 2, and two others: the gradient is the softmax of the
    scores, less 1 for the label.

    >>> import numpy as np
    >>> scores, out, work = np.array([2.0, 1.5, 0.0]), np.empty(3), np.empty(6)
    >>> loss = CrossEntropy()
    >>> value, floor = loss.gradient(scores, 1, 3, loss.parameters, out, work)
    >>> round(float(value), 4), out.round(3)
    (0.555, array([-0.426,  0.348,  0.078]))
    """

    gradient = staticmethod(gradient)
    support_floor = staticmethod(support_floor)
    parameters = ()
