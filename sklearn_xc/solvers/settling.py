"""Brings labels to rest that the crowd holds at the kink, without a screen of all rows.

A label's solution on its working set and the crowd's answer (``solvers.crowd``) are added, as much
of it as makes the objective over all rows smallest. Often that is good enough; else it is a start.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sklearn_xc.kernels.one_vs_all.certificate import certificate_kernels
from sklearn_xc.kernels.one_vs_all.crowd import balance_kernel, score_alone
from sklearn_xc.kernels.one_vs_all.lanes import Scratch
from sklearn_xc.solvers.crowd import Crowd
from sklearn_xc.solvers.problem import OneVsAllProblem

#: A label is balanced at most so often, and again only where its gradient is at most so many times
#: what it may be; features are free whose part is above this share of it.
_MAX_BALANCES, _NEAR, _FREE = 2, 3.0, 0.1
#: By so many roundings of its terms the score of a row may be off.
_ROUNDINGS = 8.0


class Settled(NamedTuple):
    """Where a label came to rest with the crowd.

    Attributes
    ----------
    point : ndarray of shape (d + 1,)
        Intercept last, of the dtype of X.
    own : ndarray of float64 of shape (d,)
        Its weights without the crowd's.
    share : float
        How much of the crowd's answer was added.
    objective, gradient_norm : float
        There, over all rows.
    is_solved : bool
        Whether the stopping rule holds.
    """

    point: np.ndarray
    own: np.ndarray
    share: float
    objective: float
    gradient_norm: float
    is_solved: bool


class Settler:
    """Settles labels of a problem with non-negative sparse instances, one after the other.

    Parameters
    ----------
    problem : OneVsAllProblem
    crowd : Crowd
        Of the problem.
    scratch : Scratch
    check : callable
        Called now and then, so that Ctrl-C is heard.
    """

    def __init__(
        self, problem: OneVsAllProblem, crowd: Crowd, scratch: Scratch, check: Callable[[], None]
    ) -> None:
        assert problem.postings is not None
        self.problem, self.crowd, self.scratch, self.check = problem, crowd, scratch, check
        self.by_feature, self.longest_row = problem.postings
        self.size_of_crowd = float(np.linalg.norm(crowd.weights))
        self.balance = balance_kernel(problem.loss)
        self.certificate = certificate_kernels(problem.loss)
        self.gradient = np.empty(problem.n_features + 1)

    def settle(
        self, label: int, features: np.ndarray, weights: np.ndarray, height: float,
        tolerance: float,
    ) -> Settled:  # fmt: skip
        """Add the crowd to a label's solution.

        Parameters
        ----------
        label : int
        features, weights : ndarray of int32 and float
            Where it stands without the crowd.
        height : float
            How far its intercept is above the kink.
        tolerance : float
            Gradient norm at which it rests.
        """
        problem, crowd = self.problem, self.crowd
        positives, costs = self._positives(label)
        own, of_positives = np.zeros(problem.n_features), np.empty(len(positives))
        own[features] = weights
        scores = self.scratch.scores
        score_alone(self.by_feature, features, own, positives, scores, of_positives)
        # What pulls up are features of the positives: there the crowd answers otherwise.
        free, share = features[own[features] > 0], height
        for _ in range(_MAX_BALANCES):
            self.check()
            share, height = self.balance(
                self.by_feature, problem.weight, positives, costs, problem.ridge, free, own,
                crowd.weights, crowd.scores, share, height, tolerance, scores, of_positives,
            )  # fmt: skip
            point = own + share * crowd.weights
            point = np.append(point, height - problem.loss.active_below).astype(problem.dtype)
            size = float(np.linalg.norm(own)) + abs(share) * self.size_of_crowd
            slack = _ROUNDINGS * float(np.finfo(problem.dtype).eps) * self.longest_row * size
            objective, gradient_norm = self.certificate.certify(
                problem.instances.arrays, problem.weight, positives, costs, problem.ridge, point,
                (scores, crowd.scores, share, slack), self.gradient,
            )  # fmt: skip
            enough = min(tolerance, math.sqrt(2.0 * problem.relative_gap * objective))
            if not _NEAR * enough >= gradient_norm > enough:
                break
            free = np.flatnonzero(np.abs(self.gradient[:-1]) > _FREE * enough).astype(np.int32)
        return Settled(point, own, share, objective, gradient_norm, gradient_norm <= enough)

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
        loss = self.certificate.add_up_losses(
            problem.weight, positives, costs, intercept, scores, of_positives
        )
        return loss + 0.5 * float(np.dot(own, own) + problem.ridge * intercept**2)

    def _positives(self, label: int) -> tuple[np.ndarray, tuple[float, float]]:
        """Return the positive rows of a label, and what losses of positives and negatives cost."""
        problem = self.problem
        return problem.positives(label), (problem.plus[label], problem.minus[label])
