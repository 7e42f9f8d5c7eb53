"""The implicit update of one instance and several classes: one equation in one unknown.

For an instance x with target y, scale A (the learning rate times the number of instances times the
instance's weight), sampled classes k with factors alpha_k (the inverse probability of being
sampled) and previous values u~, w~, the update is the minimiser over u, w_y and all w_k of::

    A (u + exp(-u) + sum_k alpha_k exp(x.(w_k - w_y) - u))
        + (u - u~)^2 / 2 + sum_j (|w_j - w~_j|^2 + r_j |w_j|^2) / 2        j = y and all k

With c_j = 1 + r_j and p_k = A alpha_k exp(x.(w_k - w_y) - u) the optimality conditions are::

    w_k = (w~_k - p_k x) / c_k        w_y = (w~_y + P x) / c_y        P = sum_k p_k
    A (1 - exp(-u)) + u = u~ + P

Intercepts b_j, added to every x.w_j, have the term ``c_j (b_j - b~_j)^2 / (2 h)`` under the last
sum, with h their rate: there is no ridge on them. So ``b_k = b~_k - h p_k / c_k`` and ``b_y = b~_y
+ h P / c_y``, and all that changes below is that x.w~_j / c_j has b~_j added, and |x|^2 has h.

Written with v = u + x.w_y, every p_k is a Wright omega of v alone, and u is a function of P. What
is left is ``v = u(P(v)) + q_y + P(v) |x|^2 / c_y`` with q_j = x.w~_j / c_j. Its left side minus its
right side is increasing and concave in v, so that Newton's method climbs to the root from the left
without ever passing it, and from the right is on the left after one step. No exponential of a score
is formed: nothing overflows at any learning rate.

Source: appendix E.1 and E.3 of [1]_; differs in the unknown (E.1 solves for u, E.3 for v with a
second Lambert W in place of u(P)) and in Newton's method for Brent's.

The Wright omega of z, the w > 0 with ``w + log(w) = z``, is Lambert's W of exp(z) without the
overflow. Relative error below 1e-14 for all finite z (0 where exp(z) underflows). Source: the
iteration of [2]_, section 3, on the real line; the starts are our own.

References
----------
.. [1] F. Fagan and G. Iyengar, "Unbiased scalable softmax optimization", arXiv:1803.08577, 2018.
.. [2] P. W. Lawrence, R. M. Corless and D. J. Jeffrey, "Algorithm 917: complex double-precision
   evaluation of the Wright omega function", ACM Transactions on Mathematical Software 38, 2012.
"""

import math

from sklearn_xc._compile.arithmetic.vectors import sum_of
from sklearn_xc._compile.jit import inlined

#: Newton's method stops at steps below this share of what it moves.
_ROUNDING = 4e-16
#: The last step of v is below this: by the derivative, it leaves rounding errors only.
_LAST_STEP = 1e-8
_MAX_STEPS = 200
#: After a step of u below this, Newton's next error is negligible next to that of v.
_SMALL = 1e-5
#: Scores of rows without features are not further apart than this.
_LARGEST_GAP = 500.0
#: Below this squared norm, a row moves scores by less than float64 resolves.
TINY_NORM = 1e-200


@inlined
def wright_omega(z):
    """Return the w with ``w + log(w) = z``, for a float64 z."""
    if z < -20.0:  # further terms of the series in exp(z) are below rounding
        w = math.exp(z)
        return w * (1.0 - w)
    if z > 1e50:  # log(z) is below rounding, and squares of z would overflow
        return z
    if z < 1.0:
        w = math.exp(z)
        w = w / (1.0 + w)
    else:
        w = z - math.log(z)
    for _ in range(2):  # of fourth order: two steps reach rounding from these starts
        residual = z - w - math.log(w)
        w1 = 1.0 + w
        t = w1 * (w1 + residual * (2.0 / 3.0))
        w *= 1.0 + residual / w1 * (t - 0.5 * residual) / (t - residual)
    return w


@inlined
def refine_normaliser(u, right, scale):
    """Return the u with ``scale (1 - exp(-u)) + u = right`` from one that is near."""
    for _ in range(100):
        step = _normaliser_step(u, right, scale)
        u = max(u + step, 0.0)
        if abs(step) <= 1e-9 * u:
            break
    return u


@inlined
def _normaliser_step(u, right, scale):
    """Return Newton's step for ``scale (1 - exp(-u)) + u = right``."""
    decay = math.exp(-u) - 1.0 if u > 1.0 else math.expm1(-u)
    return (scale * decay - u + right) / (1.0 + scale * (1.0 + decay))


@inlined
def solve_step(scale, alpha, squared_norm, q_y, c_y, q, c, u, p):
    """Solve the update; return the new u and P.

    Parameters
    ----------
    scale : float
        A, positive.
    alpha : ndarray of float64 of shape (m,)
        Factors of the sampled classes.
    squared_norm : float
        ``|x|^2``, and the rate of intercepts.
    q_y, c_y : float
        Score ``x.w~_y / c_y + b~_y`` of the target and its shrinkage.
    q, c : ndarray of float64 of shape (m,)
        The same of the sampled classes.
    u : float
        u~.
    p : ndarray of float64 of shape (m,)
        Overwritten.
    """
    m = q.shape[0]
    if squared_norm < TINY_NORM:
        return _solve_empty(scale, alpha, q_y, q, u, p)
    new_u = u
    v = new_u + q_y  # if this is on the right of the root, one step leads to its left
    gain = squared_norm / c_y
    log_factor = math.log(scale * alpha[0] * squared_norm)
    total = 0.0
    for _ in range(_MAX_STEPS):
        total, slope = 0.0, 0.0
        for k in range(m):
            per = c[k] / squared_norm
            z = log_factor + q[k] - v
            if alpha[k] != alpha[0] or c[k] != 1.0:
                z += math.log(alpha[k] / alpha[0]) - math.log(c[k])
            w = wright_omega(z)
            p[k] = per * w
            total += p[k]
            slope += per * (w / (1.0 + w))
        step_u = _normaliser_step(new_u, u + total, scale)
        new_u += step_u
        if abs(step_u) > _SMALL:  # far from it, u is found for itself
            new_u = refine_normaliser(max(new_u, 0.0), u + total, scale)
        slope_u = 1.0 / (1.0 + scale * math.exp(-new_u))
        step = (new_u + q_y + total * gain - v) / (1.0 + slope * (slope_u + gain))
        v += step
        new_u = max(new_u - slope_u * slope * step, 0.0)  # it follows P, which follows v
        if abs(step) <= _LAST_STEP + _ROUNDING * abs(v) and abs(step_u) <= _SMALL:
            for k in range(m):  # the last step, by the derivative
                p[k] -= step * p[k] / (1.0 + p[k] * squared_norm / c[k])
            total = sum_of(p[:m])
            new_u = refine_normaliser(max(new_u, 0.0), u + total, scale)
            break
    return new_u, total


@inlined
def _solve_empty(scale, alpha, q_y, q, u, p):
    """Solve the update of a row without features, whose scores cannot move: they are intercepts."""
    factor = 0.0  # 1 + factor is sum_k alpha_k exp(q_k - q_y), the target among the classes
    for k in range(q.shape[0]):
        factor += alpha[k] * math.exp(min(q[k] - q_y, _LARGEST_GAP))
    # A (1 - (1 + factor) exp(-u)) + u = u~, solved as for P, with exp(-u) counted more often.
    right = u - scale
    new_u = right + wright_omega(math.log(scale * (1.0 + factor)) - right)
    for _ in range(3):
        e = (1.0 + factor) * math.exp(-new_u)
        step = (u - new_u - scale * (1.0 - e)) / (1.0 + scale * e)
        new_u += step
        if abs(step) <= _ROUNDING * abs(new_u):
            break
    new_u = max(new_u, 0.0)
    for k in range(q.shape[0]):
        p[k] = scale * alpha[k] * math.exp(min(q[k] - q_y, _LARGEST_GAP) - new_u)
    return new_u, sum_of(p[: q.shape[0]])
