"""The softmax estimators under the protocol of the authors of U-max: u from 0, mini-batches."""

import functools
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax
from sklearn_xc._compile.arithmetic.sampling import draw_negatives
from sklearn_xc._compile.jit import kernel
from sklearn_xc._input.kernels.csr_rows import add_row, row_dot
from sklearn_xc._input.sklearn_private import Interval
from sklearn_xc.softmax.kernels.rules import SampledClasses, TargetClass
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


class BatchSettings(NamedTuple):
    """Settings of ``batch_kernel``."""

    batch_size: int


@functools.cache
def batch_kernel(take_step: Callable[..., Any]) -> Any:
    """Return a pass in which the pairs of a mini-batch share classes, and step together."""

    @kernel
    def run_batches(visits, first, last, model, rates, beta, draws, hard, settings):
        X, V, m = visits.X, model.V, draws.n_negatives
        n_steps = -(-(last - first) // settings.batch_size)
        drawn, factors = np.empty(m, np.int64), np.empty(m)
        alpha, s, c, p = np.empty(m), np.empty(m), np.ones(m), np.empty(m)
        moves, gains = np.empty((settings.batch_size, m)), np.empty(settings.batch_size)
        for step in range(n_steps):
            length = (last - first) / n_steps
            begin, end = first + np.int64(step * length), first + np.int64((step + 1) * length)
            pairs = visits.order[begin:end]
            m = draw_negatives(
                draws.sampler, draws.key, step, -1, draws.n_negatives, drawn, factors, 0
            )
            for i, pair in enumerate(pairs):
                row, y = np.uint64(visits.rows[pair]), visits.classes[pair]
                n = 0
                for k in range(m):
                    if drawn[k] != y:
                        s[n], alpha[n] = row_dot(X, row, V[drawn[k]]), factors[k]
                        n += 1
                own = np.float64(row_dot(X, row, V[y]))
                sampled = SampledClasses(alpha[:n], s[:n], s[:n], c[:n])
                target, scale = TargetClass(own, own, 1.0), rates.start * visits.weight[pair]
                scale /= pairs.shape[0]
                _, gains[i] = take_step(scale, 0.0, target, sampled, 0.0, p[:n], settings)
                n = 0
                for k in range(m):
                    moves[i, k] = 0.0
                    if drawn[k] != y:
                        moves[i, k] = -p[n]
                        n += 1
            for i, pair in enumerate(pairs):
                row = np.uint64(visits.rows[pair])
                for k in range(m):
                    add_row(X, row, V.dtype.type(moves[i, k]), V[drawn[k]])
                add_row(X, row, V.dtype.type(gains[i]), V[visits.classes[pair]])
        return 0.0

    return run_batches


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
        rule = settings.rule._replace(settings=BatchSettings(self.batch_size))
        return replace(settings, rule=rule, kernels=batch_kernel)


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
