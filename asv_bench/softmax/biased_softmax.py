"""The softmax estimators under the protocol of the authors of U-max: u from 0, mini-batches."""

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax
from sklearn_xc._compile.jit import inlined, scratch
from sklearn_xc._input.sklearn_private import Interval
from sklearn_xc.softmax.kernels.batch import unshrunk
from sklearn_xc.softmax.kernels.rules import RULES, SampledClasses, TargetClass
from sklearn_xc.softmax.problem import SoftmaxProblem
from sklearn_xc.softmax.sgd import SgdSettings

#: Rules and their names in tables.
METHODS = {
    "ove": "one-vs-each",
    "nce": "noise-contrastive",
    "is": "importance sampling",
    "vanilla": "vanilla",
    "raman": "Raman et al., lifted",
}


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


class SampledSoftmax(SoftmaxUMax):
    """``SoftmaxUMax`` with the defaults of the authors, and mini-batches of explicit steps.

    Parameters
    ----------
    rule, sampling, init, fit_intercept, n_hard_negatives, n_negatives, early_stopping, tol
    max_iter, learning_rate, random_state, n_jobs
        As of :class:`sklearn_xc.SoftmaxUMax`.
    batch_size : int, default=1
        Instances of a step; more than 1 for the rules "ove", "nce" and "is" alone.
    """

    _parameter_constraints: dict = {  # noqa: RUF012
        **SoftmaxUMax._parameter_constraints,
        "batch_size": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        rule="is",
        *,
        sampling="uniform",
        init="zero",
        fit_intercept=False,
        n_hard_negatives=0,
        n_negatives=5,
        batch_size=1,
        early_stopping="auto",
        tol=1e-3,
        max_iter=50,
        learning_rate="auto",
        random_state=None,
        n_jobs=None,
    ):
        super().__init__(
            rule=rule,
            sampling=sampling,
            init=init,
            fit_intercept=fit_intercept,
            n_hard_negatives=n_hard_negatives,
            n_negatives=n_negatives,
            early_stopping=early_stopping,
            tol=tol,
            max_iter=max_iter,
            learning_rate=learning_rate,
            random_state=random_state,
            n_jobs=n_jobs,
        )
        self.batch_size = batch_size

    def _settings(self, problem: SoftmaxProblem, seed: int) -> SgdSettings:
        settings = super()._settings(problem, seed)
        if self.batch_size == 1:
            return settings
        rule = RULES[self.rule]._replace(batch_step=explicit_batch_step(RULES[self.rule].step))
        return replace(settings, rule=rule, batch_size=self.batch_size)


class FromZero:
    """Softmax estimators whose u start at 0, as in the code of the authors of U-max."""

    def _start(self, *args):
        problem, state, settings = super()._start(*args)  # type: ignore[misc]
        state.u[:] = 0.0
        return problem, state, settings


class SampledFromZero(FromZero, SampledSoftmax):
    """See ``SampledSoftmax``."""


class UMaxFromZero(FromZero, SoftmaxUMax):
    """See ``SoftmaxUMax``."""


class ImplicitFromZero(FromZero, ImplicitSoftmaxSGD):
    """See ``ImplicitSoftmaxSGD``."""
