"""Update rules of a step, in the scores of one instance.

A rule gets the scores s of the target and of the sampled classes, before and after the shrinkage by
the ridge (q). It writes the move p_k of each sampled class (``w_k = (w~_k - p_k x) / c_k``) and
returns the new u and the move of the target. Passes are compiled for one rule; any
:class:`StepRule` will do.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._compile.arithmetic.vectors import sum_of
from sklearn_xc._compile.jit import inlined
from sklearn_xc.softmax.kernels.implicit_batch import implicit_batch_step
from sklearn_xc.softmax.kernels.implicit_step import solve_step


class TargetClass(NamedTuple):
    """The class of the instance.

    Attributes
    ----------
    s : float
        Score.
    q : float
        Score after the shrinkage.
    c : float
        Divisor of the shrinkage.
    """

    s: float
    q: float
    c: float


class SampledClasses(NamedTuple):
    """The classes sampled for the instance.

    Attributes
    ----------
    alpha : ndarray of float64 of shape (m,)
        The inverse of the probability of each being sampled.
    s, q, c : ndarray of float64 of shape (m,)
        As of :class:`TargetClass`.
    """

    alpha: np.ndarray
    s: np.ndarray
    q: np.ndarray
    c: np.ndarray


class StepRule(NamedTuple):
    """The step of a method.

    Attributes
    ----------
    step : callable
        ``step(scale, squared_norm, target, sampled, u, p, settings) -> (new_u, gain)``, marked
        ``inlined``. `scale` is the learning rate times the weight of the instance, `squared_norm`
        that of the instance with the rate of intercepts, `p` of shape (m,) is overwritten.
    settings : tuple of float
        A NamedTuple of the step's settings; () for none.
    batch_step : callable or None
        ``batch_step(work, q, p, precision)``, marked ``inlined``: the step of a mini-batch, see
        ``implicit_batch_step``. None for a rule of single steps only.
    """

    step: Callable[..., Any]
    settings: tuple = ()
    batch_step: Callable[..., Any] | None = None


class UMaxSettings(NamedTuple):
    """Settings of ``umax_step``.

    Attributes
    ----------
    delta : float
        u is lifted where the sampled classes prove it too low by more than this.
    """

    delta: float = 1.0


@inlined
def umax_step(scale, squared_norm, target, sampled, u, p, settings):
    """Step along the gradient from a u that is at most delta below what the sample proves.

    `settings` are ``UMaxSettings``.

    Notes
    -----
    Source: algorithm 2 of [1]_; differs in that the sampled classes are distinct, so that u is
    never lifted above its optimum.

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
    return max(u, 0.0), total


@inlined
def implicit_step(scale, squared_norm, target, sampled, u, p, settings):
    """Solve the implicit update, see ``solve_step``. It has no settings."""
    return solve_step(
        scale, sampled.alpha, squared_norm, target.q, target.c, sampled.q, sampled.c, u, p
    )


#: The rules of the estimators, with default settings.
RULES = {
    "umax": StepRule(umax_step, UMaxSettings()),
    "implicit": StepRule(implicit_step, batch_step=implicit_batch_step),
}
