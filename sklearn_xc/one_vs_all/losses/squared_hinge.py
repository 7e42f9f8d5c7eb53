"""Squared hinge, ``max(0, 1 - m)**2``: zero beyond margin 1, with a kink in the slope there.

Source: eq. 5 of Schultheis and Babbar, "Speeding-up one-versus-all training for extreme
classification via mean-separating initialization", Machine Learning 111, 2022.
"""

import numpy as np

from sklearn_xc._compile.jit import inlined
from sklearn_xc.one_vs_all.losses.margin import MarginLoss

_ZERO = np.float32(0.0)
_ONE = np.float32(1.0)
_TWO = np.float32(2.0)


@inlined
def value(margin):
    """Return the loss of one instance at `margin`."""
    gap = _ONE - margin
    return gap * gap if gap > _ZERO else _ZERO * gap


@inlined
def slope(margin):
    """Return the derivative of ``value``; at most 0."""
    gap = _ONE - margin
    return -_TWO * gap if gap > _ZERO else _ZERO * gap


@inlined
def curvature(margin):
    """Return the second derivative of ``value``; 0 is taken at the kink."""
    gap = _ONE - margin
    return _TWO if gap > _ZERO else _ZERO


class SquaredHinge(MarginLoss):
    """Squared hinge, ``max(0, 1 - m)**2``, the default of :class:`~sklearn_xc.OvALinearXC`.

    Examples
    --------
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.one_vs_all.losses import SquaredHinge
    >>> clf = OvALinearXC(loss=SquaredHinge())  # as loss="squared_hinge"

    It grows with the square of the distance to a margin of 1:

    >>> value, slope, curvature = SquaredHinge().functions()
    >>> [float(value(margin)) for margin in (-1.0, 0.0, 1.0)]
    [4.0, 1.0, 0.0]
    """

    active_below = 1.0
    msi_negative_score = -2.0

    def functions(self):
        """Return value, slope and curvature."""
        return value, slope, curvature
