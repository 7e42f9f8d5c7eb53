"""Rules of the methods that the unbiased ones are compared with; see ``softmax_rules``.

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

from sklearn_xc.kernels.arithmetic.vectors import sum_of
from sklearn_xc.kernels.compiling.jit import inlined


@inlined
def _sigmoid(z):
    """Return 1 / (1 + exp(-z)), without overflow."""
    if z < 0:
        e = math.exp(z)
        return e / (1.0 + e)
    return 1.0 / (1.0 + math.exp(-z))


@inlined
def one_vs_each_step(scale, alpha, squared_norm, s_y, q_y, c_y, s, q, c, u, p, setting):
    """Step along the gradient of one-vs-each."""
    for k in range(s.shape[0]):
        p[k] = scale * alpha[k] * _sigmoid(s[k] - s_y)
    return u, sum_of(p[: s.shape[0]])


@inlined
def noise_contrastive_step(scale, alpha, squared_norm, s_y, q_y, c_y, s, q, c, u, p, setting):
    """Step along the gradient of noise-contrastive estimation."""
    for k in range(s.shape[0]):
        p[k] = scale * _sigmoid(s[k] + math.log(alpha[k]))
    return u, scale * _sigmoid(-s_y - math.log(alpha[0]))


@inlined
def importance_sampling_step(scale, alpha, squared_norm, s_y, q_y, c_y, s, q, c, u, p, setting):
    """Step along the gradient of importance sampling."""
    largest = 0.0
    for k in range(s.shape[0]):
        p[k] = math.log(alpha[k]) + s[k] - s_y
        largest = max(largest, p[k])
    whole = math.exp(-largest)
    for k in range(s.shape[0]):
        whole += math.exp(p[k] - largest)
    for k in range(s.shape[0]):
        p[k] = scale * math.exp(p[k] - largest) / whole
    return u, sum_of(p[: s.shape[0]])


@inlined
def vanilla_step(scale, alpha, squared_norm, s_y, q_y, c_y, s, q, c, u, p, setting):
    """Step along the gradient of the double sum."""
    for k in range(s.shape[0]):
        p[k] = scale * alpha[k] * math.exp(s[k] - s_y - u)
    total = sum_of(p[: s.shape[0]])
    return u - scale * (1.0 - math.exp(-u)) + total, total


@inlined
def shifted_step(scale, alpha, squared_norm, s_y, q_y, c_y, s, q, c, u, p, setting):
    """Step along the gradient in v = u + a s_y; ``setting`` is (delta, a), and `u` holds v."""
    a = setting[1]
    largest = s_y
    for k in range(s.shape[0]):
        largest = max(largest, s[k])
    proven = math.exp(s_y - largest)
    for k in range(s.shape[0]):
        proven += math.exp(s[k] - largest)
    proven = largest + math.log(proven) - (1.0 - a) * s_y
    v = u
    if v < proven - setting[0]:
        v = proven
    for k in range(s.shape[0]):
        p[k] = scale * alpha[k] * math.exp(s[k] - (1.0 - a) * s_y - v)
    total = sum_of(p[: s.shape[0]])
    own = scale * math.exp(a * s_y - v)
    return v - scale + own + total, a * (scale - own) + (1.0 - a) * total
