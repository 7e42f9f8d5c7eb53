"""Rules of the methods that the unbiased ones are compared with.

They are ``StepRule`` of ``sklearn_xc.softmax.kernels.rules``, compiled into the package's passes.

With s_j = x.w_j + b_j, and alpha the inverse of the share of classes that was sampled, they follow
the gradient of these losses of one instance:

* one-vs-each [1]_: ``alpha sum_k log(1 + exp(s_k - s_y))``;
* noise-contrastive estimation [2]_, uniform noise, m noise classes each expected 1 / alpha times:
  ``log(1 + exp(-s_y - log alpha)) + sum_k log(1 + exp(s_k + log alpha))``;
* importance sampling [3]_: ``log(1 + alpha sum_k exp(s_k - s_y))``;
* vanilla: the double sum of [4]_, unbiased, without a guard against u far too small;
* another parameterisation of u, ``v = u + a s_y`` (appendix A of [4]_; a = 1 is that of Raman et
  al.), with the lift of U-max.

References
----------
.. [1] M. K. Titsias, "One-vs-each approximation to softmax for scalable estimation of
   probabilities", NIPS 2016.
.. [2] A. Mnih and Y. W. Teh, "A fast and simple algorithm for training neural probabilistic
   language models", ICML 2012.
.. [3] Y. Bengio and J.-S. Senecal, "Adaptive importance sampling to accelerate training of a neural
   probabilistic language model", IEEE Transactions on Neural Networks 19, 2008.
.. [4] F. Fagan and G. Iyengar, "Unbiased scalable softmax optimization", arXiv:1803.08577, 2018.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._compile.arithmetic.vectors import sum_of
from sklearn_xc._compile.jit import inlined, scratch
from sklearn_xc.softmax.kernels.batch import unshrunk
from sklearn_xc.softmax.kernels.rules import SampledClasses, StepRule, TargetClass


@inlined
def _sigmoid(z):
    """Return 1 / (1 + exp(-z)), without overflow."""
    if z < 0:
        e = math.exp(z)
        return e / (1.0 + e)
    return 1.0 / (1.0 + math.exp(-z))


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
def importance_sampling_step(scale, squared_norm, target, sampled, u, p, settings):
    """Step along the gradient of importance sampling."""
    largest = 0.0
    for k in range(sampled.s.shape[0]):
        p[k] = math.log(sampled.alpha[k]) + sampled.s[k] - target.s
        largest = max(largest, p[k])
    whole = math.exp(-largest)
    for k in range(sampled.s.shape[0]):
        whole += math.exp(p[k] - largest)
    for k in range(sampled.s.shape[0]):
        p[k] = scale * math.exp(p[k] - largest) / whole
    return u, sum_of(p[: sampled.s.shape[0]])


@inlined
def vanilla_step(scale, squared_norm, target, sampled, u, p, settings):
    """Step along the gradient of the double sum."""
    for k in range(sampled.s.shape[0]):
        p[k] = scale * sampled.alpha[k] * math.exp(sampled.s[k] - target.s - u)
    total = sum_of(p[: sampled.s.shape[0]])
    return u - scale * (1.0 - math.exp(-u)) + total, total


class ShiftedSettings(NamedTuple):
    """Settings of ``shifted_step``.

    Attributes
    ----------
    delta : float
        u is lifted where it is lower by more than this than the sample proves.
    a : float
        Of the parameterisation; 0 is that of U-max.
    """

    delta: float = 1.0
    a: float = 1.0


@inlined
def shifted_step(scale, squared_norm, target, sampled, u, p, settings):
    """Step along the gradient in v = u + a s_y; `u` holds v."""
    a = settings.a
    largest = target.s
    for k in range(sampled.s.shape[0]):
        largest = max(largest, sampled.s[k])
    proven = math.exp(target.s - largest)
    for k in range(sampled.s.shape[0]):
        proven += math.exp(sampled.s[k] - largest)
    proven = largest + math.log(proven) - (1.0 - a) * target.s
    v = u
    if v < proven - settings.delta:
        v = proven
    for k in range(sampled.s.shape[0]):
        p[k] = scale * sampled.alpha[k] * math.exp(sampled.s[k] - (1.0 - a) * target.s - v)
    total = sum_of(p[: sampled.s.shape[0]])
    own = scale * math.exp(a * target.s - v)
    return v - scale + own + total, a * (scale - own) + (1.0 - a) * total


def explicit_batch_step(take_step: Callable[..., Any]) -> Any:
    """Return the ``batch_step`` that takes a step for each pair, all from the same weights."""

    @inlined
    def take_batch_step(work, q, p, precision):
        size, m = q.shape
        alpha, s_of = scratch(m, np.float64), scratch(m, np.float64)
        q_of, c_of = scratch(m, np.float64), scratch(m, np.float64)
        p_of = scratch(m, np.float64)
        for i in range(size):
            place = work.place[i]
            n = 0
            for k in range(m):
                if k != place:
                    alpha[n], q_of[n], c_of[n] = work.alpha[k], q[i, k], work.c[k]
                    s_of[n] = unshrunk(q[i, k], work.c[k], work.b[k])
                    n += 1
            own, c_y = work.own[i], work.c_y[i]
            target = TargetClass(unshrunk(own, c_y, work.b_y[i]), own, c_y)
            sampled = SampledClasses(alpha[:n], s_of[:n], q_of[:n], c_of[:n])
            work.u[i], work.totals[i] = take_step(
                work.scale[i],
                work.gram[i * size + i],
                target,
                sampled,
                work.u[i],
                p_of[:n],
                (),
            )
            n = 0
            for k in range(m):
                p[i, k] = 0.0
                if k != place:
                    p[i, k] = p_of[n]
                    n += 1

    return take_batch_step


#: All of them, by name.
BIASED_RULES = {
    "ove": StepRule(one_vs_each_step, (), explicit_batch_step(one_vs_each_step)),
    "nce": StepRule(noise_contrastive_step, (), explicit_batch_step(noise_contrastive_step)),
    "is": StepRule(importance_sampling_step, (), explicit_batch_step(importance_sampling_step)),
    "vanilla": StepRule(vanilla_step),
    "raman": StepRule(shifted_step, ShiftedSettings()),
}
