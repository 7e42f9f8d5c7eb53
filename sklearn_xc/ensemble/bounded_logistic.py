"""Logistic regression with few coefficients, lower bounds, and a penalty towards given values.

Maps from scores to probabilities are of this kind: they must not fall, and stay near the identity
with few rows. Projected Newton steps on a handful of coefficients take some tens of passes over the
rows. No BLAS: its threads would cost more than the work, and its sums depend on their number.

References
----------
.. [1] D. P. Bertsekas, "Projected Newton methods for optimization problems with simple
   constraints", SIAM Journal on Control and Optimization 20, 1982.
"""

import numpy as np

_MOST_STEPS, _MOST_HALVINGS = 200, 60
#: Relative decrease of the loss at which steps end.
_TOLERANCE = 1e-12


def fit_bounded_logistic(
    features: np.ndarray,
    right: np.ndarray,
    weight: np.ndarray,
    target: np.ndarray,
    pull: np.ndarray,
    lower: np.ndarray,
) -> tuple[np.ndarray, float]:
    """Return the coefficients with the least penalised log-loss, and this loss.

    Parameters
    ----------
    features : ndarray of float64 of shape (n, d)
        Finite; d is a handful.
    right : ndarray of float64 of shape (n,)
        Summed weights of positives in each row, from 0 to `weight`.
    weight : ndarray of float64 of shape (n,)
        A weight of two is a repeated row.
    target : ndarray of float64 of shape (d,)
        Where coefficients start; the penalty is on the distance from it. Not below `lower`.
    pull : ndarray of float64 of shape (d,)
        Half of this times the squared distance from `target` is added to the summed log-loss.
    lower : ndarray of float64 of shape (d,)
        Lower bounds, -inf for none.

    Notes
    -----
    Source: [1]_, with the exact Hessian of the coefficients that no bound holds.
    """
    coef = np.array(target, np.float64)
    value, odds = _loss(features, right, weight, target, pull, coef)
    for _ in range(_MOST_STEPS):
        chances = 0.5 * (1.0 + np.tanh(0.5 * odds))
        slope = _sums(features, weight * chances - right) + pull * (coef - target)
        free = np.flatnonzero((coef > lower) | (slope < 0.0))
        if not free.size:
            break
        own = features[:, free]
        curvature = np.einsum("ni,n,nj->ij", own, weight * chances * (1.0 - chances), own)
        diagonal = np.diagonal(curvature) + pull[free]
        curvature += np.diag(pull[free] + 1e-12 * max(1.0, float(diagonal.max())))
        step = np.zeros(len(coef))
        step[free] = np.linalg.solve(curvature, slope[free])
        size = 1.0
        for _ in range(_MOST_HALVINGS):
            moved = np.maximum(coef - size * step, lower)
            new, new_odds = _loss(features, right, weight, target, pull, moved)
            if new <= value - 1e-4 * float(np.sum(slope * (coef - moved))):
                break
            size *= 0.5
        else:
            break
        fell, coef, value, odds = value - new, moved, new, new_odds
        if fell <= _TOLERANCE * max(1.0, abs(value)):
            break
    return coef, value


def _loss(
    features: np.ndarray,
    right: np.ndarray,
    weight: np.ndarray,
    target: np.ndarray,
    pull: np.ndarray,
    coef: np.ndarray,
) -> tuple[float, np.ndarray]:
    odds = np.einsum("nj,j->n", features, coef)
    value = np.sum(weight * np.logaddexp(0.0, odds) - right * odds)
    return float(value + 0.5 * np.sum(pull * (coef - target) ** 2)), odds


def _sums(features: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.array([np.sum(column * values) for column in features.T])
