"""Triplet loss of a set of labels: ``max(0, z_j - z_k + 1)``, summed over negatives j, positives k.

Source: eq. 7 of [1]_ with its misprint corrected: the printed ``z_k - z_j + 1`` has the positive
and the negative exchanged.

References
----------
.. [1] I. E.-H. Yen, S. Kale, F. X. Yu, D. Holtmann-Rice, S. Kumar and P. Ravikumar, "Loss
   decomposition for fast learning in large output spaces", ICML 2018.
"""

from dataclasses import dataclass

from sklearn.base import BaseEstimator

from sklearn_xc._compile.jit import inlined


@inlined
def gradient(scores, n_positive, n, parameters, out, work):
    """Write a subgradient, and return the loss and the score up to which negatives do not matter.

    At a kink it is that of the side without a loss. A vectorised pass over the negatives for each
    positive.

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
        Another negative with a score up to `floor` would have gradient zero, and change no other.
    """
    for j in range(n):
        out[j] = 0.0
    z_n, out_n = scores[n_positive:n], out[n_positive:n]
    loss = 0.0
    smallest = scores[0]
    for k in range(n_positive):
        smallest = min(smallest, scores[k])
        limit = scores[k] - 1.0
        n_violations = 0.0
        for j in range(z_n.shape[0]):
            # A comparison of scores, not of a sum with 0, so that the floor is exact.
            violation = 0.0 if z_n[j] <= limit else 1.0
            loss += 0.0 if z_n[j] <= limit else z_n[j] - limit
            out_n[j] += violation
            n_violations += violation
        out[k] = -n_violations
    return loss, smallest - 1.0


@inlined
def support_floor(largest_negative, smallest_positive, parameters):
    """Return the score up to which negatives have gradient zero: 1 below the smallest positive."""
    return smallest_positive - 1.0


@dataclass
class Triplet(BaseEstimator):
    """The violations of ``z_own >= z_other + 1``, summed over all pairs of labels.

    Examples
    --------
    >>> from sklearn_xc import DecompMIPSClassifier
    >>> from sklearn_xc.decomposition.losses import Triplet
    >>> clf = DecompMIPSClassifier(loss=Triplet())

    An instance with one label, whose score is 2, and two others, one of which comes within 1 of it:

    >>> import numpy as np
    >>> scores, out, work = np.array([2.0, 1.5, 0.0]), np.empty(3), np.empty(6)
    >>> loss = Triplet()
    >>> value, floor = loss.gradient(scores, 1, 3, loss.parameters, out, work)
    >>> round(float(value), 4), out.round(3)
    (0.5, array([-1.,  1.,  0.]))
    """

    gradient = staticmethod(gradient)
    support_floor = staticmethod(support_floor)
    parameters = ()
