"""How the many negatives answer to a label at whose optimum they have a loss, if a tiny one.

A positive with few features, or none, pulls the intercept up until the negatives hold it: at the
kink, where thousands of them have a loss of 1e-5 each. How they answer to a pull is nearly the same
for every such label. With an intercept of e above the kink, and nothing else, the weights that
minimise ::

    0.5 |w|^2 + sum_i c_i phi(-(w.x_i + b)),    b = kink + e

are e times those for e = 1, where the loss is a square, and the negatives then pull with e times
the force. So one problem, without positives and with the intercept held, is solved once, and its
solution is added to that of each such label, as much of it as balances the pull.
"""

import dataclasses
from threading import Lock
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from sklearn_xc._data import CsrRows
from sklearn_xc.solvers.problem import NO_POSITIVES, InstanceSums, OneVsAllProblem

#: How well the problem without positives is solved.
_TOLERANCE, _GAP = 1e-3, 1e-4

_LOCK = Lock()


class Crowd(NamedTuple):
    """How all instances answer, as negatives, to an intercept of 1 above the kink.

    Attributes
    ----------
    weights : ndarray of float64 of shape (d,)
        Of the features.
    scores : ndarray of float64 of shape (n,)
        Of the instances at these weights.
    weight : float
        The weight of an instance without features that would pull at the intercept as they do.
    """

    weights: np.ndarray
    scores: np.ndarray
    weight: float


def crowd_of(problem: OneVsAllProblem, sums: InstanceSums) -> Crowd:
    """Return the crowd of a problem with sparse instances; each process finds it once.

    Parameters
    ----------
    problem : OneVsAllProblem
    sums : InstanceSums
        Over its instances.
    """
    with _LOCK:
        if "crowd" not in vars(problem):
            vars(problem)["crowd"] = _solve(problem, sums)
        found: Crowd = vars(problem)["crowd"]
        return found


def _solve(problem: OneVsAllProblem, sums: InstanceSums) -> Crowd:
    from sklearn_xc.initialisers.zero import Zero
    from sklearn_xc.solvers.newton_cg import solve_block

    held = dataclasses.replace(
        problem, y_indptr=np.zeros(2, np.int64), y_rows=NO_POSITIVES, plus=np.ones(1),
        minus=np.array([np.median(problem.minus)]), relative_tolerance=np.array([_TOLERANCE]),
        relative_gap=_GAP, prune=0.0, fit_intercept=False,
    )  # fmt: skip
    vars(held)["rounded"] = problem.rounded
    solution = solve_block(held, sums, Zero(), None, np.zeros(1, np.int64), 1)
    weights = np.zeros(problem.n_features)
    # Zero has a loss in this problem as far as the kink is below it: that is the unit.
    if problem.loss.active_below > 0:
        weights[solution.indices] = solution.values / problem.loss.active_below
    assert isinstance(problem.instances, CsrRows)
    indptr, indices, data = problem.instances.arrays
    scores = sp.csr_array((data, indices, indptr), shape=problem.instances.shape) @ weights
    weight = float(np.dot(problem.weight, np.maximum(scores + 1.0, 0.0)))
    return Crowd(weights, scores, weight)
