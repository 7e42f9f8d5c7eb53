"""Losses, one file each: of a margin, and of the scores of a set of labels.

``LOSSES`` are of a margin: ``value``, ``slope``, ``curvature``, and where they are zero.

From the margin ``ACTIVE_BELOW`` on, an instance has no loss and no derivative; it is infinity for a
loss that is never zero. ``MSI_NEGATIVE_SCORE`` is for mean-separating initialisation.

The functions are plain Python that :mod:`numba` compiles into the kernels which close over them.
Constants are written as ``np.float32``, so that float32 margins stay float32 (an integer literal
would promote them) while float64 margins stay float64. To add a loss, write its file and give it a
line in its table: the parameter checks, the derivative tests and the docs read these tables.

``LABEL_SET_LOSSES`` are losses of all scores of one instance at once, positives first, in float64:
``gradient`` writes the gradient and returns the loss, and a score up to which further negatives
would change next to nothing; ``support_floor`` bounds that score before the others are known;
``SMOOTHED`` says whether a smoothing parameter is used. So a few large scores can stand for all.
"""

from types import ModuleType

from sklearn_xc.losses import (
    cross_entropy,
    huber_hinge,
    logistic,
    max_margin,
    squared_hinge,
    triplet,
)

__all__ = ["LABEL_SET_LOSSES", "LOSSES"]

LOSSES: dict[str, ModuleType] = {
    "squared_hinge": squared_hinge,
    "logistic": logistic,
    "huber_hinge": huber_hinge,
}

LABEL_SET_LOSSES: dict[str, ModuleType] = {
    "margin": max_margin,
    "softmax": cross_entropy,
    "triplet": triplet,
}
