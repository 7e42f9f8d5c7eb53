"""Losses, one file each: of a margin, and of the scores of a set of labels.

``LOSSES`` are losses of a margin, for ``OvALinearXC(loss=...)``, which takes a name or an object.
`MarginLoss` says what one is, and how to write another.

The functions are plain Python that :mod:`numba` compiles into the kernels which close over them.
Constants are written as ``np.float32``, so that float32 margins stay float32 (an integer literal
would promote them) while float64 margins stay float64. To add a loss to the package, write its file
and give it a line in its table: the derivative tests and the docs read these tables.

``LABEL_SET_LOSSES`` are losses of all scores of one instance at once, small objects that
hold functions and parameters; see ``LabelSetLoss``. A few large scores can stand for all.
"""

from sklearn_xc.losses.cross_entropy import CrossEntropy
from sklearn_xc.losses.huber_hinge import HuberHinge
from sklearn_xc.losses.label_sets import LABEL_SET_LOSSES, LabelSetLoss, make_label_set_loss
from sklearn_xc.losses.logistic import Logistic
from sklearn_xc.losses.margin import MarginLoss
from sklearn_xc.losses.max_margin import MaxMargin
from sklearn_xc.losses.squared_hinge import SquaredHinge
from sklearn_xc.losses.triplet import Triplet

__all__ = [
    "LABEL_SET_LOSSES",
    "LOSSES",
    "CrossEntropy",
    "HuberHinge",
    "LabelSetLoss",
    "Logistic",
    "MarginLoss",
    "MaxMargin",
    "SquaredHinge",
    "Triplet",
    "make_label_set_loss",
]

LOSSES: dict[str, type[MarginLoss]] = {
    "squared_hinge": SquaredHinge,
    "logistic": Logistic,
    "huber_hinge": HuberHinge,
}
