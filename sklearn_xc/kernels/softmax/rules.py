"""What a step does to the scores of one instance: one function per method.

A rule is given the scores of the target and of the sampled classes, ``s``, and what the shrinkage
of each class alone makes of them, ``q``; they are the same without a ridge. It writes how far each
sampled class moves away from the instance (``w_k = (w~_k - p_k x) / c_k``) and returns the new u
and how far the target moves towards it.
"""

import math

from sklearn_xc.kernels.arithmetic.vectors import sum_of
from sklearn_xc.kernels.compiling.jit import inlined
from sklearn_xc.kernels.softmax.implicit_step import LAST_STEP, solve_step


@inlined
def umax_step(scale, alpha, squared_norm, s_y, q_y, c_y, s, q, c, u, p, setting):
    """Step along the gradient from a u that is at most delta below what the sample proves.

    ``setting`` is (delta, B_u): u ends in [0, B_u].

    Notes
    -----
    Source: algorithm 2 of [1]_; differs in that the sampled classes are distinct, so that u is
    never lifted above its optimum, and in the projection, which the algorithm leaves out.

    References
    ----------
    .. [1] F. Fagan and G. Iyengar, "Unbiased scalable softmax optimization", arXiv:1803.08577,
       2018.
    """
    m = s.shape[0]
    largest = 0.0
    for k in range(m):
        p[k] = s[k] - s_y
        largest = max(largest, p[k])
    proven = math.exp(-largest)
    for k in range(m):
        proven += math.exp(p[k] - largest)
    proven = largest + math.log(proven)
    if u < proven - setting[0]:
        u = proven
    for k in range(m):
        p[k] = scale * alpha[k] * math.exp(p[k] - u)
    total = sum_of(p[:m])
    u = u - scale * (1.0 - math.exp(-u)) + total
    return min(max(u, 0.0), setting[1]), total


@inlined
def implicit_step(scale, alpha, squared_norm, s_y, q_y, c_y, s, q, c, u, p, setting):
    """Solve the implicit update; see ``solve_step``. ``setting`` is not used."""
    return solve_step(scale, alpha, squared_norm, q_y, c_y, q, c, u, p, LAST_STEP)
