"""Best scores of a label if all rows, or all positives and all negatives, had equal features.

``constant_scores`` gives the score of rows without features; ``solve_two_means`` the start of
mean-separating initialisation for losses that are never zero.
"""

import functools
from typing import Any

import numpy as np

from sklearn_xc._compile.arithmetic.vectors import inner_product
from sklearn_xc._compile.jit import inlined, kernel

#: No score that minimises ridge and loss is as large: the logistic loss of a weight of 1e308 is
#: flat enough at 700.
_BOUND = 1024.0
#: Newton's method stops at a step that promises a smaller share of the objective.
_ENOUGH = 1e-4
#: From zero, a logistic loss of 1e9 negatives takes about 20 steps, and no step many halvings.
_MAX_STEPS, _MAX_HALVINGS = 100, 60


@functools.cache
def constant_scores_kernel(loss: Any) -> Any:
    """Return ``constant_scores`` for a ``CompiledLoss``."""
    slope = loss.slope

    @kernel
    def constant_scores(positive, negative, out):
        """Write the constant score m of each label that minimises its regularised loss.

        It is the minimum of ``0.5 m**2 + positive * phi(m) + negative * phi(-m)``, found by
        bisection of the slope; with equal factors it rises with the label's share of positives.

        Parameters
        ----------
        positive, negative : ndarray of float64 of shape (n_labels,)
            Summed weights of the loss of positives and of negatives.
        out : ndarray of float64 of shape (n_labels,)
            Overwritten.
        """
        for label in range(out.shape[0]):
            low = -_BOUND
            high = _BOUND
            middle = 0.0
            while low < middle < high:
                rise = middle + positive[label] * slope(middle) - negative[label] * slope(-middle)
                if rise == 0.0:
                    break
                if rise > 0.0:
                    high = middle
                else:
                    low = middle
                middle = 0.5 * (low + high)
            out[label] = middle

    return constant_scores


@functools.cache
def two_means_kernel(loss: Any) -> Any:
    """Return ``solve_two_means`` for a ``CompiledLoss``."""
    value, slope, curvature = loss.value, loss.slope, loss.curvature

    @inlined
    def objective(a, b, pp, pq, qq, plus, minus):
        """Return the objective of ``a p + b q``, and its scores at p and q."""
        s, t = a * pp + b * pq, a * pq + b * qq
        return 0.5 * (a * s + b * t) + plus * value(s) + minus * value(-t), s, t

    @kernel
    def solve_two_means(pp, pq, qq, plus, minus):
        """Return a and b for which ``a p + b q`` minimises the regularised loss at two points.

        The loss is ``0.5 |w|**2 + plus phi(w.p) + minus phi(-w.q)``, whose minimum over all w is
        such a combination.

        Parameters
        ----------
        pp, pq, qq : float
            Inner products of p, the mean of the positives, and q, the mean of the negatives.
        plus, minus : float
            Summed weights of their losses.
        """
        a, b = 0.0, 0.0
        f, s, t = objective(a, b, pp, pq, qq, plus, minus)
        for _ in range(_MAX_STEPS):
            # The gradient is the Gram matrix G times (u, v), the Hessian G + G diag(h, k) G.
            u, v = a + plus * slope(s), b - minus * slope(-t)
            h, k = plus * curvature(s), minus * curvature(-t)
            determinant = (1.0 + h * pp) * (1.0 + k * qq) - h * k * pq * pq
            da = (h * pq * v - (1.0 + k * qq) * u) / determinant
            db = (k * pq * u - (1.0 + h * pp) * v) / determinant
            rise = da * (u * pp + v * pq) + db * (u * pq + v * qq)
            if not rise < -_ENOUGH * f:
                break
            lam = 1.0
            for _ in range(_MAX_HALVINGS):
                new_f, new_s, new_t = objective(a + lam * da, b + lam * db, pp, pq, qq, plus, minus)
                if new_f <= f + 0.01 * lam * rise:
                    break
                lam *= 0.5
            if not new_f < f:
                break
            a, b, f, s, t = a + lam * da, b + lam * db, new_f, new_s, new_t
        return a, b

    return solve_two_means


@kernel
def dot(a, b):
    """Return the inner product of two vectors, summed in float64."""
    return inner_product(a, b)


@kernel
def combination(alpha, a, beta, b):
    """Return ``alpha * a + beta * b``."""
    out = np.empty(a.shape[0])
    for j in range(a.shape[0]):
        out[j] = alpha * a[j] + beta * b[j]
    return out
