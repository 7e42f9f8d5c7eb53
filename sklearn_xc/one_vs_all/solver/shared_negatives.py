"""Shared negatives: their response to an intercept above the kink, solved once for all labels.

A positive with few features, or none, pulls the intercept up until the negatives hold it: at the
kink, where thousands of them have a loss of 1e-5 each. Their response is nearly the same for every
such label. With an intercept of e above the kink, and nothing else, the weights that minimise ::

    0.5 |w|^2 + sum_i c_i phi(-(w.x_i + b)),    b = kink + e

are e times those for e = 1, where the loss is a square. So one problem, without positives and with
a fixed intercept, is solved once. A share of its solution is added to that of each such label on
its working set, the share that minimises the objective over all rows. Often the sum meets the
stopping rule; otherwise it is a start.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.data import CsrRows
from sklearn_xc.one_vs_all.kernels.block_newton import Scratch
from sklearn_xc.one_vs_all.kernels.shared_negatives import (
    balance_kernel,
    full_gradient_kernel,
    score_alone,
)
from sklearn_xc.one_vs_all.problem import OneVsAllProblem

#: Most balances of a label, the factor on the tolerance up to which another one may help, and the
#: share of the tolerance above which a feature's derivative makes it free.
_MAX_BALANCES, _NEAR, _FREE = 2, 3.0, 0.1
#: Bound on the rounding error of a score, in roundings of its terms.
_ROUNDINGS = 8.0


class SharedNegatives(NamedTuple):
    """Response of all instances, as negatives, to an intercept of 1 above the kink.

    Attributes
    ----------
    weights : ndarray of float64 of shape (d,)
        Weights of the features.
    scores : ndarray of float64 of shape (n,)
        Scores of the instances with these weights.
    weight : float
        Weight of an instance without features with the same force on the intercept.
    """

    weights: np.ndarray
    scores: np.ndarray
    weight: float


def response_of_negatives(
    problem: OneVsAllProblem, features: np.ndarray, values: np.ndarray
) -> SharedNegatives:
    """Return the shared negatives of a sparse problem.

    Parameters
    ----------
    problem : OneVsAllProblem
    features, values : ndarray of int32 and float
        The non-zero weights of the solution without positives and without an intercept.
    """
    weights = np.zeros(problem.n_features)
    # At zero, instances are as far above the kink as the kink is below 0: that is the unit.
    if problem.loss.active_below > 0:
        weights[features] = values / problem.loss.active_below
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


@dataclass
class KinkSolver:
    """Solves labels with an intercept at the kink, one by one, without a screen of all rows.

    Instances are sparse and non-negative, and there is an intercept.

    Parameters
    ----------
    problem : OneVsAllProblem
    negatives : SharedNegatives
    scratch : Scratch
    check : callable
        Called regularly, for Ctrl-C.
    """

    problem: OneVsAllProblem
    negatives: SharedNegatives
    scratch: Scratch
    check: Callable[[], None]

    def __post_init__(self) -> None:
        problem = self.problem
        assert problem.postings is not None
        self.by_feature, self.longest_row = problem.postings
        self.size_of_negatives = float(np.linalg.norm(self.negatives.weights))
        self.balance = balance_kernel(problem.loss)
        self.evaluate = full_gradient_kernel(problem.loss)
        self.gradient = np.empty(problem.n_features + 1)

    def solve(
        self, label: int, features: np.ndarray, weights: np.ndarray, height: float, tolerance: float
    ) -> KinkSolution:
        """Add the best share of the negatives' response to a label's solution.

        Parameters
        ----------
        label : int
        features, weights : ndarray of int32 and float
            Its solution on the working set.
        height : float
            Distance of its intercept above the kink.
        tolerance : float
            Gradient tolerance.
        """
        problem, negatives = self.problem, self.negatives
        positives, costs = problem.positives(label), (problem.plus[label], problem.minus[label])
        own, scores, of_positives = self._scores(positives, features, weights)
        weight = problem.weight_of(label)
        data = weight, positives, costs, negatives.scores
        # Where positives have features, the negatives respond differently.
        free = features[own[features] > 0]
        share = height
        for _ in range(_MAX_BALANCES):
            self.check()
            start = share, height
            share, height = self.balance(
                self.by_feature,
                data,
                free,
                own,
                negatives.weights,
                start,
                tolerance,
                scores,
                of_positives,
            )
            point = own + share * negatives.weights
            point = np.append(point, height - problem.loss.active_below).astype(problem.dtype)
            size = float(np.linalg.norm(own)) + abs(share) * self.size_of_negatives
            slack = _ROUNDINGS * float(np.finfo(problem.dtype).eps) * self.longest_row * size
            known = scores, negatives.scores, share, slack
            X = problem.instances.arrays
            objective, gradient_norm = self.evaluate(
                X, weight, positives, costs, point, known, self.gradient
            )
            enough = min(tolerance, math.sqrt(2.0 * problem.relative_gap * objective))
            if not _NEAR * enough >= gradient_norm > enough:
                break
            free = np.flatnonzero(np.abs(self.gradient[:-1]) > _FREE * enough).astype(np.int32)
        return KinkSolution(point, own, share, objective, gradient_norm, gradient_norm <= enough)

    def _scores(
        self, positives: np.ndarray, features: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return dense weights, and the scores of all rows and of the positives, as work space."""
        own = np.zeros(self.problem.n_features)
        own[features] = weights
        scores = self.scratch.numbers[1]
        of_positives = np.empty(len(positives))
        score_alone(self.by_feature, features, own, positives, scores, of_positives)
        return own, scores, of_positives
