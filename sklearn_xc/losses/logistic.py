"""Logistic loss, ``log(1 + exp(-m))``: never zero, so that no instance ever leaves the work.

Computed from ``exp(-|m|)``, which cannot overflow, in float64 and without a branch: loops over the
margins of many labels become vector code.
"""

import math

from sklearn_xc.kernels.arithmetic.vector_math import vector_exp, vector_log1p
from sklearn_xc.kernels.compiling.jit import inlined
from sklearn_xc.losses.margin import MarginLoss


@inlined
def value(margin):
    """Return the loss of one instance at `margin`."""
    loss = vector_log1p(vector_exp(-abs(margin))) + (-margin if margin < 0.0 else 0.0)
    return type(margin)(loss if margin == margin else margin)


@inlined
def slope(margin):
    """Return the derivative of ``value``, in (-1, 0)."""
    small = vector_exp(-abs(margin))
    fall = -(1.0 if margin < 0.0 else small) / (1.0 + small)
    return type(margin)(fall if margin == margin else margin)


@inlined
def curvature(margin):
    """Return the second derivative of ``value``, in (0, 1/4]."""
    small = vector_exp(-abs(margin))
    return type(margin)(small / ((1.0 + small) * (1.0 + small)))


class Logistic(MarginLoss):
    """Logistic loss."""

    active_below = math.inf
    #: Its minimum lies further out than that of the squared hinge (end of section 5 of the paper).
    msi_negative_score = -3.0

    def functions(self):
        """Return value, slope and curvature."""
        return value, slope, curvature
