"""Start vectors of one-vs-all training.

An initialiser is a small object with its parameters, and two methods:

* ``prepare(problem, sums)`` runs once before the labels are cut into blocks, and returns the plain
  data that ``start`` needs in a worker;
* ``start(prepared, problem, label, positive_sum)`` returns the start vector of one label, float64
  of shape (d + 1,) with the intercept last.

Three more may be left out: ``parents(problem, labels)`` lets labels start at the weights of others;
``mixtures(prepared, problem, positives)`` gives the starts of many labels as multiples of two
vectors, ``sparse_starts(prepared, problem, labels)`` as sparse ones: without one of these, labels
are not solved on working sets (``solvers.working_sets``).

To add one, write its file and give it a line in ``INITIALISERS``; the parameter check and the tests
read that table. ``OvALinearXC(init=...)`` takes a name or an object.
"""

from sklearn_xc.one_vs_all.starts.constant import Bias, Zero
from sklearn_xc.one_vs_all.starts.given import Given
from sklearn_xc.one_vs_all.starts.msi import MeanSeparating
from sklearn_xc.one_vs_all.starts.ovap import OneVsAllPrimal, OneVsAllPrimalPlusPlus
from sklearn_xc.one_vs_all.starts.protocol import Initialiser

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
