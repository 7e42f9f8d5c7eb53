"""Losses, one file each: of a margin, and of the scores of a set of labels.

``LOSSES`` are losses of a margin, for ``OvALinearXC(loss=...)``, which takes a name or an object.
`MarginLoss` says what one is, and how to write another.

The functions are plain Python that :mod:`numba` compiles into the kernels which close over them.
Constants are written as ``np.float32``, so that float32 margins stay float32 (an integer literal
would promote them) while float64 margins stay float64. To add a loss to the package, write its file
and give it a line in its table: the derivative tests and the docs read these tables.

``LABEL_SET_LOSSES`` are losses of all scores of one instance at once, positives first, in float64:
``gradient`` writes the gradient and returns the loss, and a score up to which further negatives
would change next to nothing; ``support_floor`` bounds that score before the others are known;
``SMOOTHED`` says whether a smoothing parameter is used. So a few large scores can stand for all.
"""

from types import ModuleType

from sklearn_xc.losses import cross_entropy, max_margin, triplet
from sklearn_xc.losses.huber_hinge import HuberHinge
from sklearn_xc.losses.logistic import Logistic
from sklearn_xc.losses.margin import MarginLoss
from sklearn_xc.losses.squared_hinge import SquaredHinge

__all__ = [
    "LABEL_SET_LOSSES",
    "LOSSES",
    "HuberHinge",
    "Logistic",
    "MarginLoss",
    "SquaredHinge",
]

LOSSES: dict[str, type[MarginLoss]] = {
    "squared_hinge": SquaredHinge,
    "logistic": Logistic,
    "huber_hinge": HuberHinge,
}

LABEL_SET_LOSSES: dict[str, ModuleType] = {
    "margin": max_margin,
    "softmax": cross_entropy,
    "triplet": triplet,
}
