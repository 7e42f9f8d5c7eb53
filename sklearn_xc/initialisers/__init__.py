"""Start vectors of one-vs-all training, one file each.

An initialiser has ``prepare(problem, sums)``, called once before the labels are cut into blocks,
which returns the plain data that ``start`` needs in a worker, and
``start(prepared, problem, label, positive_sum)``, which returns a float64 vector of shape (d + 1,)
with the intercept last. To add one, write its file and give it a line in ``INITIALISERS``.
"""

from types import ModuleType

from sklearn_xc.initialisers import bias, given, msi, ovap, zero

__all__ = ["INITIALISERS"]

INITIALISERS: dict[str, ModuleType] = {
    "msi": msi,
    "zero": zero,
    "bias": bias,
    "ovap": ovap,
}
