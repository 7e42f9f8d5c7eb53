"""Losses of a margin, one file each.

``LOSSES`` has their names for ``OvALinearXC(loss=...)``, which also takes an object. `MarginLoss`
is the base class, whose docstring shows how to write another.

The functions are plain Python that :mod:`numba` compiles into the kernels which close over them.
Constants are written as ``np.float32``, so that float32 margins stay float32 (an integer literal
would promote them) while float64 margins stay float64. To add a loss to the package, write its file
and add a line to ``LOSSES``: the derivative tests read this table.
"""

from sklearn_xc.one_vs_all.losses.huber_hinge import HuberHinge
from sklearn_xc.one_vs_all.losses.logistic import Logistic
from sklearn_xc.one_vs_all.losses.margin import MarginLoss
from sklearn_xc.one_vs_all.losses.squared_hinge import SquaredHinge

__all__ = [
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
