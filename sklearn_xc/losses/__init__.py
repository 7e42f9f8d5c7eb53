"""Margin losses, one file each: ``value``, ``slope``, ``curvature``, and where they are zero.

From the margin ``ACTIVE_BELOW`` on, an instance has no loss and no derivative; it is infinity for a
loss that is never zero. ``MSI_NEGATIVE_SCORE`` is for mean-separating initialisation.

The functions are plain Python that :mod:`numba` compiles into the kernels which close over them.
Constants are written as ``np.float32``, so that float32 margins stay float32 (an integer literal
would promote them) while float64 margins stay float64. To add a loss, write its file and give it a
line in ``LOSSES``: the parameter checks, the derivative tests and the docs read that table.
"""

from types import ModuleType

from sklearn_xc.losses import huber_hinge, logistic, squared_hinge

__all__ = ["LOSSES"]

LOSSES: dict[str, ModuleType] = {
    "squared_hinge": squared_hinge,
    "logistic": logistic,
    "huber_hinge": huber_hinge,
}
