"""What a step does to the scores of one instance: a rule for each method.

A rule is given the scores of the target and of the sampled classes, and what the shrinkage of each
class alone makes of them; they are the same without a ridge. It writes how far each sampled class
moves away from the instance (``w_k = (w~_k - p_k x) / c_k``) and returns the new u and how far the
target moves towards it. Passes are compiled for one rule; any :class:`StepRule` will do.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc.kernels.arithmetic.vectors import sum_of
from sklearn_xc.kernels.compiling.jit import inlined
from sklearn_xc.kernels.softmax.implicit_step import LAST_STEP, solve_step


class Target(NamedTuple):
    """The class of the instance.

    Attributes
    ----------
    s : float
        Its score.
    q : float
        What shrinkage alone makes of the score.
    c : float
        What shrinkage divides its weights by.
    """

    s: float
    q: float
    c: float


class Sampled(NamedTuple):
    """The classes sampled for the instance.

    Attributes
    ----------
    alpha : ndarray of float64 of shape (m,)
        The inverse of the probability of each being sampled.
    s, q, c : ndarray of float64 of shape (m,)
        As of :class:`Target`.
    """

    alpha: np.ndarray
    s: np.ndarray
    q: np.ndarray
    c: np.ndarray


class StepRule(NamedTuple):
    """A method's step.

    Attributes
    ----------
    name : str
        Of the method.
    step : callable
        ``step(scale, squared_norm, target, sampled, u, p, settings) -> (new_u, gain)``, marked
        ``inlined``. `scale` is the learning rate times the weight of the instance, `squared_norm`
        that of the instance with the rate of intercepts, `p` of shape (m,) is overwritten.
    settings : tuple of float
        A NamedTuple of what the step can be told; () for nothing.
    is_implicit : bool
        Whether a mini-batch takes the implicit step of all its instances together. Others follow
        `step` for each instance, from the same weights.
    """

    name: str
    step: Callable[..., Any]
    settings: tuple = ()
    is_implicit: bool = False


class UMaxSettings(NamedTuple):
    """Settings of ``umax_step``.

    Attributes
    ----------
    delta : float
        u is lifted where it is lower by more than this than the sample proves.
    largest_u : float
        u ends between 0 and this.
    """

    delta: float = 1.0
    largest_u: float = np.inf


@inlined
def umax_step(scale, squared_norm, target, sampled, u, p, settings):
    """Step along the gradient from a u that is at most delta below what the sample proves.

    `settings` are ``UMaxSettings``.

    Notes
    -----
    Source: algorithm 2 of [1]_; differs in that the sampled classes are distinct, so that u is
    never lifted above its optimum, and in the projection, which the algorithm leaves out.

    References
    ----------
    .. [1] F. Fagan and G. Iyengar, "Unbiased scalable softmax optimization", arXiv:1803.08577,
       2018.
    """
    m = sampled.s.shape[0]
    largest = 0.0
    for k in range(m):
        p[k] = sampled.s[k] - target.s
        largest = max(largest, p[k])
    proven = math.exp(-largest)
    for k in range(m):
        proven += math.exp(p[k] - largest)
    proven = largest + math.log(proven)
    if u < proven - settings.delta:
        u = proven
    for k in range(m):
        p[k] = scale * sampled.alpha[k] * math.exp(p[k] - u)
    total = sum_of(p[:m])
    u = u - scale * (1.0 - math.exp(-u)) + total
    return min(max(u, 0.0), settings.largest_u), total


@inlined
def implicit_step(scale, squared_norm, target, sampled, u, p, settings):
    """Solve the implicit update; see ``solve_step``. There are no settings."""
    return solve_step(
        scale, sampled.alpha, squared_norm, target.q, target.c, sampled.q, sampled.c, u, p,
        LAST_STEP,
    )  # fmt: skip


#: The rules of the estimators, by name, with settings as they are by default.
RULES = {
    rule.name: rule
    for rule in (
        StepRule("umax", umax_step, UMaxSettings()),
        StepRule("implicit", implicit_step, is_implicit=True),
    )
}
