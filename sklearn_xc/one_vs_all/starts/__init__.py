"""Start vectors of one-vs-all training.

An initialiser is a small object with parameters and two methods:

* ``prepare(problem, sums)`` runs once before the labels are cut into blocks, and returns the data
  that ``start`` needs in a worker;
* ``start(prepared, problem, label, positive_sum)`` returns the start vector of one label, float64
  of shape (d + 1,) with the intercept last.

Three methods are optional: with ``parents(problem, labels)``, labels start at the weights of
others; ``mixtures(prepared, problem, positives)`` gives the starts of many labels as multiples of
two vectors, ``sparse_starts(prepared, problem, labels)`` as sparse ones. Without one of the latter
two, labels are not solved on working sets (``solver.working_sets``).

``msi`` has the mean-separating initialisation of the paper, ``ovap`` the two tree-structured ones,
``protocol`` the base class and simple starts. To add one, write its file and add a line to
``INITIALISERS``, which the parameter check and the tests read. ``OvALinearXC(init=...)`` takes a
name or an object.
"""

from sklearn_xc.one_vs_all.starts.msi import MeanSeparating
from sklearn_xc.one_vs_all.starts.ovap import OneVsAllPrimal, OneVsAllPrimalPlusPlus
from sklearn_xc.one_vs_all.starts.protocol import Bias, Given, Initialiser, Zero

__all__ = [
    "INITIALISERS",
    "Bias",
    "Given",
    "Initialiser",
    "MeanSeparating",
    "OneVsAllPrimal",
    "OneVsAllPrimalPlusPlus",
    "Zero",
]

INITIALISERS: dict[str, type[Initialiser]] = {
    "msi": MeanSeparating,
    "zero": Zero,
    "bias": Bias,
    "ovap": OneVsAllPrimal,
    "ovap++": OneVsAllPrimalPlusPlus,
}
