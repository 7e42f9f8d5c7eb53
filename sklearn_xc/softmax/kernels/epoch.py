"""A pass over (instance, class) pairs, one at a time: sample classes, score, step.

``softmax_kernels`` compiles the loop around the step of a rule. Weights are kept as ``scale[k] *
V[k]``, so that the ridge costs one multiplication for a class that was sampled and nothing for the
rest. The ridge leaves intercepts alone.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sklearn_xc._compile.arithmetic.sampling import draw_negatives
from sklearn_xc._compile.jit import inlined, kernel, scratch
from sklearn_xc._input.kernels.csr_rows import add_row, add_row_pair, row_dot, row_dot_pair
from sklearn_xc.softmax.kernels.rules import SampledClasses, TargetClass

#: A scale below this is multiplied into its row, before float32 weights grow beyond their range.
SMALLEST_SCALE = 1e-12


@kernel
def add_class_sums(X, rows, classes, weight, out):
    """Add ``weight[i] * x_rows[i]`` to ``out[classes[i]]``, for each pair i in turn.

    Parameters
    ----------
    X : tuple of ndarray
        CSR rows.
    rows, classes : ndarray of int32 of shape (n,)
        The pairs.
    weight : ndarray of float64 of shape (n,)
        Of each.
    out : ndarray of shape (n_classes, n_features)
        Added to.
    """
    for pair in range(np.uint64(rows.shape[0])):
        real = out.dtype.type(weight[pair])
        add_row(X, np.uint64(rows[pair]), real, out[np.uint64(classes[pair])])


@inlined
def apply_scale(V, scale, k):
    """Multiply the scale of class k into its weights if it has become small."""
    if scale[k] < SMALLEST_SCALE:
        for j in range(np.uint64(V.shape[1])):
            V[k, j] *= scale[k]
        scale[k] = 1.0


@kernel
def fold_scale(V, scale):
    """Multiply all scales into the weights."""
    for k in range(np.uint64(V.shape[0])):
        if scale[k] != 1.0:
            for j in range(np.uint64(V.shape[1])):
                V[k, j] *= scale[k]
            scale[k] = 1.0


@inlined
def sampled_objective(alpha, s_y, s, u):
    """Return the sampled term of the double sum less 1: in the mean at least the log-loss."""
    total = u + math.exp(-u) - 1.0
    for k in range(s.shape[0]):
        total += alpha[k] * math.exp(min(s[k] - s_y - u, 700.0))
    return total


@functools.cache
def softmax_kernels(take_step: Callable[..., Any]) -> Any:
    """Return the compiled pass of a rule, by its ``step``."""

    @kernel
    def run_steps(visits, first, last, model, rates, beta, draws, hard, settings):
        """Take the steps ``first`` to ``last`` of an epoch; return the weighted sum of objectives.

        Parameters
        ----------
        visits : Visits
            One for each step.
        first, last : int
            Steps.
        model : Model
            Moves.
        rates : Rates
            Learning rates.
        beta : ndarray of float64 of shape (n_classes,)
            The inverse of the probability that a step touches a class.
        draws : Draws
            Of classes besides the target; the hard ones among them are left.
        hard : ndarray of int32 of shape (n, h)
            Other classes that each pair's step always takes, distinct.
        settings : tuple of float
            Of the rule.
        """
        X, squared_norms = visits.X, visits.squared_norms
        V, scale, intercept, u = model
        n_hard = hard.shape[1]
        most = n_hard + draws.n_negatives
        all_drawn, all_alpha = scratch(most, np.int64), scratch(most, np.float64)
        all_s, all_q = scratch(most, np.float64), scratch(most, np.float64)
        all_c, all_p = scratch(most, np.float64), scratch(most, np.float64)
        objective = 0.0
        for t in range(first, last):
            pair = np.uint64(visits.order[t])
            i = np.uint64(visits.rows[pair])
            y = np.int64(visits.classes[pair])
            weight = visits.weight[pair]
            for j in range(n_hard):
                all_drawn[j], all_alpha[j] = hard[pair, j], 1.0
            m = draw_negatives(
                draws.sampler, draws.key, t, y, draws.n_negatives, all_drawn, all_alpha, n_hard
            )
            drawn, alpha = all_drawn[:m], all_alpha[:m]
            s, q, c, p = all_s[:m], all_q[:m], all_c[:m], all_p[:m]
            # 1. Scores, and what the shrinkage of their class makes of them.
            now = rates.start / (1.0 + rates.slowing * t)
            c_y = 1.0 + now * rates.ridge * beta[y]
            own = _score(X, i, V, scale, y, drawn, s)
            s_y, q_y = own + intercept[y], own / c_y + intercept[y]
            for j in range(m):
                b = intercept[drawn[j]]
                c[j] = 1.0 + now * rates.ridge * beta[drawn[j]]
                q[j] = s[j] / c[j] + b
                s[j] += b
            # 2. The step in scores.
            objective += weight * sampled_objective(alpha, s_y, s, u[pair])
            target = TargetClass(s_y, q_y, c_y)
            sampled = SampledClasses(alpha, s, q, c)
            squared_norm = squared_norms[i] + rates.intercept
            u[pair], gain = take_step(
                now * weight, squared_norm, target, sampled, u[pair], p, settings
            )
            # 3. The step in weights.
            _move(X, i, V, scale, y, gain, drawn, p)
            for j in range(m):
                k = drawn[j]
                _shrink(V, scale, k, c[j])
                intercept[k] -= rates.intercept * p[j] / c[j]
            _shrink(V, scale, y, c_y)
            intercept[y] += rates.intercept * gain / c_y
        return objective

    return run_steps


@inlined
def _score(X, i, V, scale, y, drawn, scores):
    """Write ``x_i.w_k`` of the sampled classes and return that of the target, two at a time."""
    m = drawn.shape[0]
    first, second = row_dot_pair(X, i, V[y], V[drawn[0]])
    scores[0] = np.float64(second) * scale[drawn[0]]
    for j in range(1, m - 1, 2):
        one, two = row_dot_pair(X, i, V[drawn[j]], V[drawn[j + 1]])
        scores[j] = np.float64(one) * scale[drawn[j]]
        scores[j + 1] = np.float64(two) * scale[drawn[j + 1]]
    if m > 1 and m % 2 == 0:
        k = drawn[m - 1]
        scores[m - 1] = np.float64(row_dot(X, i, V[k])) * scale[k]
    return np.float64(first) * scale[y]


@inlined
def _move(X, i, V, scale, y, gain, drawn, p):
    """Add ``gain * x_i`` to the target and ``-p[j] * x_i`` to the others, two at a time."""
    m = drawn.shape[0]
    real = V.dtype.type
    k = drawn[0]
    add_row_pair(X, i, real(gain / scale[y]), V[y], real(-p[0] / scale[k]), V[k])
    for j in range(1, m - 1, 2):
        k, other = drawn[j], drawn[j + 1]
        add_row_pair(X, i, real(-p[j] / scale[k]), V[k], real(-p[j + 1] / scale[other]), V[other])
    if m > 1 and m % 2 == 0:
        k = drawn[m - 1]
        add_row(X, i, real(-p[m - 1] / scale[k]), V[k])


@inlined
def _shrink(V, scale, k, c):
    """Divide ``w_k`` by c."""
    if c != 1.0:
        scale[k] /= c
        apply_scale(V, scale, k)
