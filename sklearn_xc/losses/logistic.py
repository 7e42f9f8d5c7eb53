"""Logistic loss, ``log(1 + exp(-m))``: never zero, so that no instance ever leaves the work.

Computed from ``exp(-|m|)``, which cannot overflow.
"""

import math

import numpy as np

from sklearn_xc.kernels.compiling.jit import inlined
from sklearn_xc.losses.margin import MarginLoss

_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)


@inlined
def value(margin):
    """Return the loss of one instance at `margin`."""
    tail = math.log1p(math.exp(-abs(margin)))
    if margin < _ZERO:
        return tail - margin
    return tail


@inlined
def slope(margin):
    """Return the derivative of ``value``, in (-1, 0)."""
    small = math.exp(-abs(margin))
    if margin < _ZERO:
        return -_ONE / (_ONE + small)
    return -small / (_ONE + small)


@inlined
def curvature(margin):
    """Return the second derivative of ``value``, in (0, 1/4]."""
    small = math.exp(-abs(margin))
    return small / ((_ONE + small) * (_ONE + small))


class Logistic(MarginLoss):
    """Logistic loss."""

    active_below = math.inf
    #: Its minimum lies further out than that of the squared hinge (end of section 5 of the paper).
    msi_negative_score = -3.0

    def functions(self):
        """Return value, slope and curvature."""
        return value, slope, curvature
