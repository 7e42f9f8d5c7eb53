"""Smoothed max-margin loss of a set of labels: negatives below the positives by a margin of 1.

Unsmoothed it is ``max(0, max(z_j - z_k + 1))`` over the negatives j and the positives k. Smoothed::

    L(z) = max_a  <a, z + 1_N> - mu/2 |a|^2        a_N >= 0, a_P <= 0, sum a_N = -sum a_P <= 1

with 1_N one on the negatives and zero on the positives. The maximiser is the gradient: the
projection of ``(z + 1_N) / mu`` on the bi-simplex. Written in heights above the smallest positive
and in depths below the largest negative it is a matter of water levels: two pools with the depths
as their floors are filled up to levels r and s, and ``mu a`` is the water above each label. They
hold the same volume, at most mu, and ``r + s <= gap = max z_N + 1 - min z_P``, where

1. both are full at mu, if their levels then leave a part of the gap between them;
2. otherwise ``r + s = gap``.

As only differences of scores enter, large scores lose no digits.

Source: eq. 10 and 11 of [1]_, eq. 3 with its misprint corrected: the printed ``z_k - z_j + 1`` has
the positive and the negative exchanged. Case 1 is the projection on a simplex of [2]_, for each of
the two.

References
----------
.. [1] I. E.-H. Yen, S. Kale, F. X. Yu, D. Holtmann-Rice, S. Kumar and P. Ravikumar, "Loss
   decomposition for fast learning in large output spaces", ICML 2018.
.. [2] C. Michelot, "A finite algorithm for finding the projection of a point onto the canonical
   simplex of R^n", Journal of Optimization Theory and Applications 50, 1986.
"""

import math
from dataclasses import dataclass
from typing import Any

from sklearn.base import BaseEstimator

from sklearn_xc._compile.arithmetic.vectors import largest_entry
from sklearn_xc._compile.jit import inlined
from sklearn_xc._input.arguments import is_number

#: From this step on, every other one halves the bracket.
_NEWTON_STEPS = 16


@inlined
def gradient(scores, n_positive, n, parameters, out, work):
    """Write the gradient, and return the loss and the score up to which negatives do not matter.

    A few passes over the labels; one positive is the fastest.

    Parameters
    ----------
    scores : ndarray of float64 of shape (>= n,)
        The positives, then the negatives. A NaN makes the loss NaN.
    n_positive, n : int
        At least one is positive; there need not be a negative.
    parameters : tuple of one float
        mu.
    out : ndarray of float64 of shape (>= n,)
        The leading n entries are overwritten.
    work : ndarray of float64 of shape (>= 2 n,)
        Work space, of which the leading n entries are used.

    Returns
    -------
    loss, floor : float
        Another negative with a score up to `floor` would have gradient zero, and change no other.
    """
    smoothing = parameters[0]
    z_p, z_n = scores[:n_positive], scores[n_positive:n]
    out_p, out_n = out[:n_positive], out[n_positive:n]
    wet_p, wet_n = work[:n_positive], work[n_positive:n]
    smallest = z_p[0]
    for k in range(z_p.shape[0]):
        smallest = min(smallest, z_p[k])
    largest = largest_entry(z_n)
    # Sums may be reordered in one expression, but not across the memory that holds the depths.
    for k in range(z_p.shape[0]):
        out_p[k] = z_p[k] - smallest
    for j in range(z_n.shape[0]):
        out_n[j] = largest - z_n[j]

    gap = largest - smallest + 1.0
    rise, fall, between = 0.0, 0.0, 0.0
    if gap > 0.0:
        highest = min(smoothing, gap)
        fall, n_fall = _fill(out_p, highest, smoothing, wet_p)
        rise, n_rise = _fill(out_n, highest, smoothing, wet_n)
        between = gap - rise - fall
        if between <= 0.0:
            rise = _meet(wet_n[:n_rise], wet_p[:n_fall], gap, gap - fall, min(rise, gap))
            fall = gap - rise
            between = 0.0

    scale = 1.0 / smoothing
    squares = 0.0
    for k in range(z_p.shape[0]):
        share = scale * (fall - out_p[k])
        share = 0.0 if share <= 0.0 else share  # NaN stays NaN
        out_p[k] = -share
        squares += share * share
    for j in range(z_n.shape[0]):
        share = scale * (rise - out_n[j])
        share = 0.0 if share <= 0.0 else share
        out_n[j] = share
        squares += share * share
    floor = largest - rise if gap > 0.0 else smallest - 1.0
    return 0.5 * smoothing * squares + between, floor


@inlined
def support_floor(largest_negative, smallest_positive, parameters):
    """Return a score up to which negatives have gradient zero, of these two scores alone."""
    # Negatives have water where their depth below the largest is less than the level r. The largest
    # alone has r of it, so that r <= mu; and r <= gap, for s >= 0. The floor rises with the largest
    # negative: that of a part of the negatives is valid for all.
    return max(largest_negative - parameters[0], smallest_positive - 1.0)


@inlined
def _fill(depths, highest, volume, wet):
    """Return the level of a pool that holds `volume`, and how many depths are below it.

    They are written to `wet`. Depths from `highest` on are taken to be above the level; if they are
    not, the level returned is at least `highest`, or above.
    """
    # The level over the depths so far is never below that over all, and sorts most of them out.
    level = highest
    m = 0
    total = 0.0
    for i in range(depths.shape[0]):
        depth = depths[i]
        if depth < level:
            wet[m] = depth
            m += 1
            total += depth
            level = min(level, (volume + total) / m)
    while True:
        level = (volume + total) / m
        kept = 0
        total = 0.0
        for i in range(m):
            depth = wet[i]
            if depth < level:
                wet[kept] = depth
                kept += 1
                total += depth
        if kept == m:
            return level, m
        m = kept


@inlined
def _meet(negatives, positives, gap, low, high):
    """Return the level between `low` and `high` at which two pools hold the same.

    The levels add up to `gap`; the one returned is of the pool of the negatives. The difference of
    the volumes is piecewise linear and rises. Newton's method is exact on the last piece, and with
    one positive it comes down from `high` without a miss.
    """
    level = high
    n_before, p_before = -1, -1
    step = 0
    while True:
        n_wet, p_wet = 0, 0
        floors = 0.0
        for i in range(negatives.shape[0]):
            is_wet = negatives[i] < level
            n_wet += is_wet
            floors += negatives[i] if is_wet else 0.0
        for i in range(positives.shape[0]):
            is_wet = positives[i] < gap - level
            p_wet += is_wet
            floors -= positives[i] if is_wet else 0.0
        root = (floors + p_wet * gap) / (n_wet + p_wet)
        if root == level or (n_wet == n_before and p_wet == p_before):
            return level
        if root < level:
            high = level
        else:
            low = level
        step += 1
        if low < root < high and (step < _NEWTON_STEPS or step % 2 == 0):
            level = root
            n_before, p_before = n_wet, p_wet
        else:
            level = low + 0.5 * (high - low)
            n_before, p_before = -1, -1
            if not low < level < high:
                return level


@dataclass
class MaxMargin(BaseEstimator):
    """The largest violation of ``z_own >= z_other + 1``, smoothed.

    Parameters
    ----------
    smoothing : float, default=1.0
        mu, positive: larger values spread the gradient over more labels. [1]_ has 1 for one class
        per instance, and 5 for several labels, with which steps are smaller and no answer was
        better here.

    References
    ----------
    .. [1] I. E.-H. Yen, S. Kale, F. X. Yu, D. Holtmann-Rice, S. Kumar and P. Ravikumar, "Loss
       decomposition for fast learning in large output spaces", ICML 2018.

    Examples
    --------
    >>> from sklearn_xc import DecompMIPSClassifier
    >>> from sklearn_xc.decomposition.losses import MaxMargin
    >>> clf = DecompMIPSClassifier(loss=MaxMargin(smoothing=5.0))

    An instance with one label, whose score is 2, and two others, one of which comes within 1 of it:

    >>> import numpy as np
    >>> scores, out, work = np.array([2.0, 1.5, 0.0]), np.empty(3), np.empty(6)
    >>> loss = MaxMargin()
    >>> value, floor = loss.gradient(scores, 1, 3, loss.parameters, out, work)
    >>> round(float(value), 4), out.round(3)
    (0.0625, array([-0.25,  0.25,  0.  ]))
    """

    smoothing: float = 1.0

    gradient = staticmethod(gradient)
    support_floor = staticmethod(support_floor)

    @property
    def parameters(self) -> tuple[float, ...]:
        """What the functions are given: mu.

        Raises
        ------
        ValueError
            If `smoothing` is not a positive number.
        """
        mu: Any = self.smoothing
        if not is_number(mu) or not 0.0 < float(mu) < math.inf:
            raise ValueError(f"MaxMargin: smoothing must be a positive number. Got {mu!r}.")
        return (float(mu),)
