"""Logistic regression with few coefficients, lower bounds, and a penalty towards given values.

Maps from scores to probabilities are of this kind: they must not fall, and stay near the identity
with few rows. No BLAS: its sums depend on the number of its threads.
"""

import numpy as np
from scipy.optimize import minimize

_PRECISION = {"ftol": 1e-14, "gtol": 1e-9, "maxiter": 10_000, "maxfun": 20_000}


def fit_bounded_logistic(
    features: np.ndarray,
    right: np.ndarray,
    weight: np.ndarray,
    target: np.ndarray,
    pull: np.ndarray,
    lower: np.ndarray,
) -> tuple[np.ndarray, float, float]:
    """Return the coefficients with the least penalised log-loss, and this loss before and after.

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
    """

    def loss(coef: np.ndarray) -> tuple[float, np.ndarray]:
        odds = (features * coef).sum(axis=1)
        distance = coef - target
        value = np.sum(weight * np.logaddexp(0.0, odds) - right * odds)
        slopes = weight * 0.5 * (1.0 + np.tanh(0.5 * odds)) - right
        gradient = (features * slopes[:, None]).sum(axis=0) + pull * distance
        return float(value + 0.5 * np.sum(pull * distance**2)), gradient

    bounds = [(low, None) for low in lower]
    found = minimize(loss, target, jac=True, method="L-BFGS-B", bounds=bounds, options=_PRECISION)
    return found.x, loss(target)[0], float(found.fun)
