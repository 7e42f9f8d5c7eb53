"""Losses, one file each: of a margin, and of the scores of a set of labels.

``LOSSES`` are of a margin: ``value``, ``slope``, ``curvature``, and where they are zero.

From the margin ``ACTIVE_BELOW`` on, an instance has no loss and no derivative; it is infinity for a
loss that is never zero. ``MSI_NEGATIVE_SCORE`` is for mean-separating initialisation.

The functions are plain Python that :mod:`numba` compiles into the kernels which close over them.
Constants are written as ``np.float32``, so that float32 margins stay float32 (an integer literal
would promote them) while float64 margins stay float64. To add a loss, write its file and give it a
line in its table: the parameter checks, the derivative tests and the docs read these tables.

``LABEL_SET_LOSSES`` are losses of all scores of one instance at once, small frozen objects that
hold functions and parameters; see ``LabelSetLoss``. A few large scores can stand for all.
"""

from types import ModuleType

from sklearn_xc.losses import huber_hinge, logistic, squared_hinge
from sklearn_xc.losses.cross_entropy import CrossEntropy
from sklearn_xc.losses.label_sets import LABEL_SET_LOSSES, LabelSetLoss, make_label_set_loss
from sklearn_xc.losses.max_margin import MaxMargin
from sklearn_xc.losses.triplet import Triplet

__all__ = [
    "LABEL_SET_LOSSES",
    "LOSSES",
    "CrossEntropy",
    "LabelSetLoss",
    "MaxMargin",
    "Triplet",
    "make_label_set_loss",
]

LOSSES: dict[str, ModuleType] = {
    "squared_hinge": squared_hinge,
    "logistic": logistic,
    "huber_hinge": huber_hinge,
}
