"""Where a label starts if all of its positives are at their mean, and all negatives at theirs."""

import functools
from typing import Any

from sklearn_xc._compile.jit import inlined, kernel

#: A Newton step that promises a smaller share of the objective is the last one.
_ENOUGH = 1e-4
#: From zero, a logistic loss of 1e9 negatives takes about 20 steps, and no step many halvings.
_MAX_STEPS, _MAX_HALVINGS = 100, 60


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
        """Return a and b that minimise the regularised loss of ``a p + b q`` at two points.

        It is ``0.5 |w|**2 + plus phi(w.p) + minus phi(-w.q)``, whose minimum over all w is such a
        combination.

        Parameters
        ----------
        pp, pq, qq : float
            Products of p, the mean of positives, and q, the mean of negatives.
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
