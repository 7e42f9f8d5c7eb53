"""Mean-separating initialisation: a small vector that separates the means."""

import math
from typing import Any

import numpy as np

from sklearn_xc.one_vs_all.kernels.mean_scores import combination, dot, two_means_kernel
from sklearn_xc.one_vs_all.problem import InstanceSums, OneVsAllProblem, PositiveSums
from sklearn_xc.one_vs_all.starts.protocol import Initialiser

#: Below this share of <p,p><x,x> the determinant counts as rounding.
_SINGULAR = 1e-10
#: Limits of the scores of two means. Of s from 0 to inf and t from -3 to -inf, these took the
#: fewest Hessian products for the frequent labels of Tate and for dense X.
_HIGHEST_POSITIVE = 0.0
_LOWEST_NEGATIVE = -2.0


class MeanSeparating(Initialiser):
    """Start at the vector of minimal norm with given mean scores on positives and negatives.

    With pbar the mean of the positives and xbar the mean of all instances, the vector lies in
    their span::

        w = u pbar + v xbar
        u = (s <x,x> - tau <p,x>) / det,   v = (tau <p,p> - s <p,x>) / det
        tau = t + (s - t) |P| / n,         det = <p,p> <x,x> - <p,x>^2

    If no score is given and the loss is never zero, such as the logistic loss, the scores are
    those that would minimise the objective if all positives were at their mean and all negatives
    at theirs. With such a loss no instance drops out, so a start farther out gains nothing, and at
    the optimum for few positives among many negatives, both have scores near their log odds.
    Instances of frequent labels are spread about their means: s is at most 0, and t at least
    the smaller of -2 and the log odds.

    Parameters
    ----------
    positive_score : float, default=None
        s, the mean score of the positives. None is 1, but see above for a loss that is never zero
        where neither score is given.
    negative_score : float, default=None
        t, the mean score of the negatives. None is the loss's ``msi_negative_score``: -2 for the
        squared hinge, so that most negatives start without a loss.

    Notes
    -----
    Source: section 4 of Schultheis and Babbar (2022), eqs. 21-24, solved without dividing by
    ``<xbar, pbar>``, which can vanish. It differs in that xbar is the mean (the paper prints the
    sum), and in that a system that is singular up to rounding (a label on every instance or on
    none, pbar parallel to xbar) is solved in the least-squares sense with minimal norm.

    Examples
    --------
    If weights grow large, a fit takes fewer Newton steps than from zero:

    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> from sklearn_xc.one_vs_all.starts import MeanSeparating, Zero
    >>> X, Y = make_xc_classification(
    ...     n_samples=500, n_features=300, n_labels=50, random_state=0, return_X_y=True
    ... )
    >>> near = OvALinearXC(C=10.0, init=MeanSeparating()).fit(X, Y)
    >>> far = OvALinearXC(C=10.0, init=Zero()).fit(X, Y)
    >>> bool(near.n_iter_.sum() < 0.9 * far.n_iter_.sum())
    True
    """

    def __init__(
        self, positive_score: float | None = None, negative_score: float | None = None
    ) -> None:
        self.positive_score = positive_score
        self.negative_score = negative_score

    def prepare(
        self, problem: OneVsAllProblem, sums: InstanceSums
    ) -> tuple[np.ndarray, float, float]:
        """Return xbar, its squared norm and the sum of the row weights."""
        mean = sums.total / sums.weight
        return mean, dot(mean, mean), sums.weight

    def mixtures(
        self,
        prepared: tuple[np.ndarray, float, float],
        problem: OneVsAllProblem,
        positives: PositiveSums,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Return the multiples of the sums of the positives, and of the mean."""
        xbar, xx, total = prepared
        s, t = self._scores(problem)
        constant = problem.intercept
        with np.errstate(all="ignore"):  # starts that are not finite are computed by ``start``
            pp = positives.squares / positives.weight**2 + constant
            px = positives.with_mean / positives.weight + constant
            tau = t + (s - t) * positives.weight / total
            is_regular, u, v = _solve(pp, px, xx, s, tau)
            u[~is_regular] = v[~is_regular] = np.nan
            return u / positives.weight, v, xbar

    def _scores(self, problem: OneVsAllProblem) -> tuple[float, float]:
        """Return s and t."""
        s, t = self.positive_score, self.negative_score
        return 1.0 if s is None else s, problem.loss.msi_negative_score if t is None else t

    def start(
        self,
        prepared: tuple[np.ndarray, float, float],
        problem: OneVsAllProblem,
        label: int,
        positive_sum: np.ndarray,
    ) -> np.ndarray:
        """Return the mean-separating vector of the label."""
        xbar, xx, total = prepared
        s, t = self._scores(problem)
        positive_weight = problem.weight[problem.positives(label)].sum(dtype=np.float64)
        # If squares of X or of weights overflow, so does the start, and the solver takes zero.
        with np.errstate(all="ignore"):
            if self.positive_score is self.negative_score is None and not problem.loss.has_kink:
                return _between_two_means(problem, label, positive_sum, positive_weight, prepared)
            if positive_weight == 0.0:
                return (t / xx) * xbar if xx > 0.0 else np.zeros_like(xbar)
            pp = dot(positive_sum, positive_sum) / positive_weight**2
            px = dot(positive_sum, xbar) / positive_weight
            tau = t + (s - t) * positive_weight / total
            is_regular, u, v = _solve(pp, px, xx, s, tau)
            if not is_regular:
                u, v = _least_squares(pp, px, xx, s, tau)
            return combination(u / positive_weight, positive_sum, v, xbar)


def _between_two_means(
    problem: OneVsAllProblem,
    label: int,
    positive_sum: np.ndarray,
    positive_weight: float,
    prepared: tuple[np.ndarray, float, float],
) -> np.ndarray:
    """Return the smallest vector with the optimal scores of the two means, within limits."""
    xbar, xx, total = prepared
    negative_weight = max(total - positive_weight, 0.0)
    # Without negatives, rounding errors are no mean.
    per_negative = 1.0 / negative_weight if negative_weight > _SINGULAR * total else 0.0
    per_positive = 1.0 / positive_weight if positive_weight > 0.0 else 0.0
    sum_squared = dot(positive_sum, positive_sum)
    with_sum = total * dot(positive_sum, xbar)
    plus = float(problem.plus[label]) * positive_weight
    minus = float(problem.minus[label]) * negative_weight
    pp = per_positive**2 * sum_squared
    pq = per_positive * per_negative * (with_sum - sum_squared)
    qq = per_negative**2 * (total**2 * xx - 2.0 * with_sum + sum_squared)
    a, b = two_means_kernel(problem.loss)(pp, pq, qq, plus, minus)
    det = pp * qq - pq * pq
    if det > _SINGULAR * pp * qq and plus > 0.0 and minus > 0.0:
        s = min(a * pp + b * pq, _HIGHEST_POSITIVE)
        t = max(a * pq + b * qq, min(math.log(plus) - math.log(minus), _LOWEST_NEGATIVE))
        a, b = (s * qq - t * pq) / det, (t * pp - s * pq) / det
    of_sum = a * per_positive - b * per_negative
    return combination(of_sum, positive_sum, b * per_negative * total, xbar)


def _solve(pp: Any, px: Any, xx: Any, s: float, tau: Any) -> tuple[Any, Any, Any]:
    """Return whether the system for u and v is regular, u and v, for one label or for many."""
    det = pp * xx - px * px
    return det > _SINGULAR * pp * xx, (s * xx - tau * px) / det, (tau * pp - s * px) / det


def _least_squares(pp: float, px: float, xx: float, s: float, tau: float) -> np.ndarray:
    """Solve the singular system for u and v, with the smallest norm of both."""
    gram = np.array([[pp, px], [px, xx]])
    if not np.isfinite(gram).all():
        return np.full(2, np.nan)
    return np.linalg.lstsq(gram, np.array([s, tau]), rcond=_SINGULAR)[0]
