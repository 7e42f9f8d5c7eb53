"""The shared negatives: their response to an intercept above the kink, solved once for all labels.

A positive with few features, or none, pulls the intercept up until the negatives hold it: at the
kink, where thousands of them have a loss of 1e-5 each. Their response is nearly the same for every
such label. With an intercept of e above the kink, and nothing else, the weights that minimise ::

    0.5 |w|^2 + sum_i c_i phi(-(w.x_i + b)),    b = kink + e

are e times those for e = 1, where the loss is a square, and the negatives then pull with e times
the force. So one problem, without positives and with the intercept held, is solved once. A share of
its solution is added to that of each such label on its working set, as much as makes the objective
over all rows smallest. Often that is good enough; else it is a start.
"""

import dataclasses
import math
from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.data import CsrRows
from sklearn_xc.one_vs_all.kernels.full_gradient import full_gradient_kernels
from sklearn_xc.one_vs_all.kernels.lanes import Scratch
from sklearn_xc.one_vs_all.kernels.shared_negatives import balance_kernel, score_alone
from sklearn_xc.one_vs_all.solver.problem import NO_POSITIVES, InstanceSums, OneVsAllProblem

#: How well the problem without positives is solved.
_TOLERANCE, _GAP = 1e-3, 1e-4
#: A label is balanced at most so often, and again only where its gradient is at most so many times
#: what it may be; features are free whose part is above this share of it.
_MAX_BALANCES, _NEAR, _FREE = 2, 3.0, 0.1
#: By so many roundings of its terms the score of a row may be off.
_ROUNDINGS = 8.0

_LOCK = Lock()


class SharedNegatives(NamedTuple):
    """Response of all instances, as negatives, to an intercept of 1 above the kink.

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


def shared_negatives_of(
    problem: OneVsAllProblem, sums: InstanceSums, solve_block: Callable[..., Any]
) -> SharedNegatives:
    """Return the shared negatives of a sparse problem; each process solves them once.

    Parameters
    ----------
    problem : OneVsAllProblem
    sums : InstanceSums
        Over its instances.
    solve_block : callable
        ``newton_cg.solve_block``.
    """
    with _LOCK:
        if "shared_negatives" not in vars(problem):
            vars(problem)["shared_negatives"] = _solve(problem, sums, solve_block)
        found: SharedNegatives = vars(problem)["shared_negatives"]
        return found


def _solve(
    problem: OneVsAllProblem, sums: InstanceSums, solve_block: Callable[..., Any]
) -> SharedNegatives:
    from sklearn_xc.one_vs_all.starts.constant import Zero

    held = dataclasses.replace(
        problem,
        y_indptr=np.zeros(2, np.int64),
        y_rows=NO_POSITIVES,
        plus=np.ones(1),
        minus=np.array([np.median(problem.minus)]),
        relative_tolerance=np.array([_TOLERANCE]),
        relative_gap=_GAP,
        prune=0.0,
        fit_intercept=False,
    )
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
    return SharedNegatives(weights, scores, weight)


class KinkSolution(NamedTuple):
    """Solution of a label with a share of the negatives' response.

    Attributes
    ----------
    point : ndarray of shape (d + 1,)
        Intercept last, of the dtype of X.
    own : ndarray of float64 of shape (d,)
        Its weights without that share.
    share : float
        Factor on the response.
    objective, gradient_norm : float
        At the point, over all rows.
    is_solved : bool
        Whether the stopping rule holds.
    """

    point: np.ndarray
    own: np.ndarray
    share: float
    objective: float
    gradient_norm: float
    is_solved: bool


class KinkSolver:
    """Solves labels with an intercept at the kink, one by one, without a screen of all rows.

    Instances are sparse and non-negative.

    Parameters
    ----------
    problem : OneVsAllProblem
    negatives : SharedNegatives
        Of the problem.
    scratch : Scratch
    check : callable
        Called now and then, so that Ctrl-C is heard.
    """

    def __init__(
        self,
        problem: OneVsAllProblem,
        negatives: SharedNegatives,
        scratch: Scratch,
        check: Callable[[], None],
    ) -> None:
        assert problem.postings is not None
        self.problem, self.negatives, self.scratch, self.check = problem, negatives, scratch, check
        self.by_feature, self.longest_row = problem.postings
        self.size_of_negatives = float(np.linalg.norm(negatives.weights))
        self.balance = balance_kernel(problem.loss)
        self.over_all_rows = full_gradient_kernels(problem.loss)
        self.gradient = np.empty(problem.n_features + 1)

    def solve(
        self, label: int, features: np.ndarray, weights: np.ndarray, height: float, tolerance: float
    ) -> KinkSolution:
        """Add the best share of the negatives' response to a label's solution.

        Parameters
        ----------
        label : int
        features, weights : ndarray of int32 and float
            Its solution without them.
        height : float
            Distance of its intercept above the kink.
        tolerance : float
            Gradient tolerance.
        """
        problem, negatives = self.problem, self.negatives
        positives, costs = self._positives(label)
        own, of_positives = np.zeros(problem.n_features), np.empty(len(positives))
        own[features] = weights
        scores = self.scratch.scores
        score_alone(self.by_feature, features, own, positives, scores, of_positives)
        # Features of the positives pull up: there the negatives respond otherwise.
        free, share = features[own[features] > 0], height
        for _ in range(_MAX_BALANCES):
            self.check()
            share, height = self.balance(
                self.by_feature,
                problem.weight,
                positives,
                costs,
                problem.ridge,
                free,
                own,
                negatives.weights,
                negatives.scores,
                share,
                height,
                tolerance,
                scores,
                of_positives,
            )
            point = own + share * negatives.weights
            point = np.append(point, height - problem.loss.active_below).astype(problem.dtype)
            size = float(np.linalg.norm(own)) + abs(share) * self.size_of_negatives
            slack = _ROUNDINGS * float(np.finfo(problem.dtype).eps) * self.longest_row * size
            objective, gradient_norm = self.over_all_rows.evaluate(
                problem.instances.arrays,
                problem.weight,
                positives,
                costs,
                problem.ridge,
                point,
                (scores, negatives.scores, share, slack),
                self.gradient,
            )
            enough = min(tolerance, math.sqrt(2.0 * problem.relative_gap * objective))
            if not _NEAR * enough >= gradient_norm > enough:
                break
            free = np.flatnonzero(np.abs(self.gradient[:-1]) > _FREE * enough).astype(np.int32)
        return KinkSolution(point, own, share, objective, gradient_norm, gradient_norm <= enough)

    def objective_of_few(
        self, label: int, features: np.ndarray, weights: np.ndarray, intercept: float
    ) -> float:
        """Return the objective over all rows where few weights are not 0, feature by feature.

        Parameters
        ----------
        label : int
        features, weights : ndarray of int32 and float
            What is not 0.
        intercept : float
        """
        problem, own = self.problem, np.zeros(self.problem.n_features)
        own[features] = weights
        positives, costs = self._positives(label)
        scores, of_positives = self.scratch.scores, np.empty(len(positives))
        score_alone(self.by_feature, features, own, positives, scores, of_positives)
        loss = self.over_all_rows.add_up_losses(
            problem.weight, positives, costs, intercept, scores, of_positives
        )
        return loss + 0.5 * float(np.dot(own, own) + problem.ridge * intercept**2)

    def _positives(self, label: int) -> tuple[np.ndarray, tuple[float, float]]:
        """Return the positive rows of a label, and what losses of positives and negatives cost."""
        problem = self.problem
        return problem.positives(label), (problem.plus[label], problem.minus[label])
