"""Update rules of a step, in the scores of one instance.

A rule gets the scores s of the target and of the sampled classes, before and after the shrinkage by
the ridge (q). It writes the move p_k of each sampled class (``w_k = (w~_k - p_k x) / c_k``) and
returns the new u and the move of the target. Passes are compiled for one rule; any
:class:`StepRule` will do.

Rules of the double sum of [1]_, with alpha the inverse of the share of classes that was sampled:

* implicit, U-max, and vanilla, which is U-max that never lifts u;
* SCENT [2]_: ``exp(u)`` becomes the mean of itself and of the step's estimate of its optimum,
  ``1 + sum_k alpha_k exp(s_k - s_y)``, before the weights move;
* that of Raman et al. (appendix A of [1]_): U-max in ``v = u + s_y``.

Rules that follow the gradient of another loss of an instance:

* one-vs-each [3]_: ``sum_k alpha_k log(1 + exp(s_k - s_y))``;
* noise-contrastive estimation [4]_, uniform noise, each of m noise classes expected 1 / alpha
  times: ``log(1 + exp(-s_y - log alpha)) + sum_k log(1 + exp(s_k + log alpha))``;
* importance sampling [5]_: ``log(1 + sum_k alpha_k exp(s_k - s_y))``.

References
----------
.. [1] F. Fagan and G. Iyengar, "Unbiased scalable softmax optimization", arXiv:1803.08577, 2018.
.. [2] X. Wei, L. Zhou, B. Wang, C.-J. Lin and T. Yang, "A geometry-aware efficient algorithm for
   compositional entropic risk minimization", arXiv:2602.02877, 2026.
.. [3] M. K. Titsias, "One-vs-each approximation to softmax for scalable estimation of
   probabilities", NIPS 2016.
.. [4] A. Mnih and Y. W. Teh, "A fast and simple algorithm for training neural probabilistic
   language models", ICML 2012.
.. [5] Y. Bengio and J.-S. Senecal, "Adaptive importance sampling to accelerate training of a neural
   probabilistic language model", IEEE Transactions on Neural Networks 19, 2008.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._compile.arithmetic.vectors import sum_of
from sklearn_xc._compile.jit import inlined
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
    """

    step: Callable[..., Any]
    settings: tuple = ()


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


@inlined
def raman_step(scale, squared_norm, target, sampled, u, p, settings):
    """Step along the gradient in v = u + s_y, lifted as u is by U-max; `u` holds v."""
    m = sampled.s.shape[0]
    largest = target.s
    for k in range(m):
        largest = max(largest, sampled.s[k])
    proven = math.exp(target.s - largest)
    for k in range(m):
        proven += math.exp(sampled.s[k] - largest)
    proven = largest + math.log(proven)
    v = u
    if v < proven - settings.delta:
        v = proven
    for k in range(m):
        p[k] = scale * sampled.alpha[k] * math.exp(sampled.s[k] - v)
    own = scale * math.exp(target.s - v)
    return v - scale + own + sum_of(p[:m]), scale - own


@inlined
def scent_step(scale, squared_norm, target, sampled, u, p, settings):
    """Move u half of the way to what the sample says, in exp(u), and step along the gradient."""
    estimate = _estimate(target, sampled, p)
    largest = max(u, estimate)
    u = largest + math.log(0.5 * (math.exp(u - largest) + math.exp(estimate - largest)))
    return u, _weighted(scale, u, p[: sampled.s.shape[0]])


@inlined
def importance_sampling_step(scale, squared_norm, target, sampled, u, p, settings):
    """Step along the gradient of importance sampling."""
    estimate = _estimate(target, sampled, p)
    return u, _weighted(scale, estimate, p[: sampled.s.shape[0]])


@inlined
def _estimate(target, sampled, p):
    """Return ``log(1 + sum_k alpha_k exp(s_k - s_y))``, and write its exponents."""
    m = sampled.s.shape[0]
    largest = 0.0
    for k in range(m):
        p[k] = math.log(sampled.alpha[k]) + sampled.s[k] - target.s
        largest = max(largest, p[k])
    total = math.exp(-largest)
    for k in range(m):
        total += math.exp(p[k] - largest)
    return largest + math.log(total)


@inlined
def _weighted(scale, u, p):
    """Replace exponents by ``scale * exp(p - u)``, and return the sum."""
    for k in range(p.shape[0]):
        p[k] = scale * math.exp(p[k] - u)
    return sum_of(p)


@inlined
def one_vs_each_step(scale, squared_norm, target, sampled, u, p, settings):
    """Step along the gradient of one-vs-each."""
    for k in range(sampled.s.shape[0]):
        p[k] = scale * sampled.alpha[k] * _sigmoid(sampled.s[k] - target.s)
    return u, sum_of(p[: sampled.s.shape[0]])


@inlined
def noise_contrastive_step(scale, squared_norm, target, sampled, u, p, settings):
    """Step along the gradient of noise-contrastive estimation."""
    for k in range(sampled.s.shape[0]):
        p[k] = scale * _sigmoid(sampled.s[k] + math.log(sampled.alpha[k]))
    return u, scale * _sigmoid(-target.s - math.log(sampled.alpha[0]))


@inlined
def _sigmoid(z):
    """Return 1 / (1 + exp(-z)), without overflow."""
    if z < 0:
        e = math.exp(z)
        return e / (1.0 + e)
    return 1.0 / (1.0 + math.exp(-z))


#: The rules of the estimators, with default settings.
RULES = {
    "implicit": StepRule(implicit_step),
    "umax": StepRule(umax_step, UMaxSettings()),
    "scent": StepRule(scent_step),
    "vanilla": StepRule(umax_step, UMaxSettings(math.inf)),
    "raman": StepRule(raman_step, UMaxSettings()),
    "ove": StepRule(one_vs_each_step),
    "nce": StepRule(noise_contrastive_step),
    "is": StepRule(importance_sampling_step),
}
