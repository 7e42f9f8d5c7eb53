"""Stochastic gradient descent on the double-sum form of the softmax likelihood.

With one variable u_i for each pair of an instance and one of its classes, the summed log-loss and
the ridge are the minimum over u of::

    sum_i weight_i (u_i + exp(-u_i) + sum_{k != y_i} exp(x_i.(w_k - w_yi) + b_k - b_yi - u_i) - 1)
        + 0.5 alpha |W|^2

with intercepts b, so that one pair and a few classes give an unbiased gradient. Source: eq. 5 of
[1]_, which has no intercepts.

An intercept is the weight of one more feature, a constant, except that it has no ridge. The
constant is the root mean square of X over the features that occur; its square is the rate of
intercepts relative to weights. A constant of 1 would outweigh all features of a sparse instance.

References
----------
.. [1] F. Fagan and G. Iyengar, "Unbiased scalable softmax optimization", arXiv:1803.08577, 2018.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sklearn_xc._compile.arithmetic.sampling import mix_key
from sklearn_xc._input.data import read_only
from sklearn_xc.softmax.kernels.epoch import softmax_kernels
from sklearn_xc.softmax.kernels.passes import Draws, Rates, Visits
from sklearn_xc.softmax.kernels.rules import StepRule
from sklearn_xc.softmax.problem import SoftmaxProblem
from sklearn_xc.softmax.sampling import choose_sampler, expected_touches
from sklearn_xc.softmax.state import SoftmaxState, require_finite

#: Non-zeros of X times classes per call of a kernel: some tenths of a second, so that an interrupt
#: is not delayed for longer.
_CHUNK_WORK = 5e7


@dataclass(frozen=True)
class SgdSettings:
    """Settings of the steps.

    Attributes
    ----------
    rule : StepRule
        The update; ``RULES`` of ``softmax.kernels.rules`` has those of the estimators.
    n_negatives : int
        Classes sampled at each step, at most all others.
    seed : int
        Of the order of the pairs and of the sampled classes.
    n_hard : int
        Hard negatives of a step.
    sampling : {"uniform", "frequency"}
        Distribution of the sampled classes.
    intercept_rate : float
        Factor on the steps of intercepts; 0 leaves them unchanged.
    kernels : callable
        ``kernels(rule.step)`` returns the pass over visits.
    """

    rule: StepRule
    n_negatives: int
    seed: int
    n_hard: int = 0
    sampling: str = "uniform"
    intercept_rate: float = 0.0
    kernels: Callable[..., Any] = softmax_kernels


def search_hard_negatives(
    problem: SoftmaxProblem, state: SoftmaxState, settings: SgdSettings, n_jobs: int | None
) -> None:
    """Set the best-scored wrong classes of each pair, and u to its optimum.

    An exact search: every instance is scored against every class, O(nnz(X) n_classes). Steps then
    take the hard negatives with weight 1 and sample from the rest: gradients stay unbiased and lose
    most of their variance.
    """
    n_hard = min(settings.n_hard, problem.n_classes - 1)
    state.hard, state.u = state.weights.hardest(
        problem.instances, problem.rows, problem.classes, n_hard, n_jobs
    )


def run_epoch(
    problem: SoftmaxProblem,
    state: SoftmaxState,
    settings: SgdSettings,
    epoch: int,
    rate: float,
    slowing: float = 0.0,
) -> float:
    """Visit all pairs once, in random order; return the mean sampled objective.

    Parameters
    ----------
    problem : SoftmaxProblem
        The data.
    state : SoftmaxState
        Changed in place.
    settings : SgdSettings
        Settings of the steps.
    epoch : int
        With the seed, determines the order and the sampled classes.
    rate : float
        Learning rate in units of 1 / (total weight).
    slowing : float, default=0.0
        After t visits the rate is ``rate / (1 + slowing * t)``.

    Returns
    -------
    float
        Weighted mean, before each step, of an unbiased estimate of the double sum minus 1: on
        average at least the log-loss.

    Raises
    ------
    FloatingPointError
        If u or the objective is no longer finite.
    """
    order = np.repeat(np.arange(problem.n_pairs), problem.visits)
    np.random.default_rng((settings.seed, epoch)).shuffle(order)
    total_weight = float(problem.weight.sum())
    weight = problem.weight / problem.visits * (len(order) / total_weight)
    visits = Visits(
        problem.instances.arrays,
        problem.squared_norms,
        problem.rows,
        problem.classes,
        read_only(weight),
        read_only(order),
    )
    ridge = problem.alpha / total_weight
    rates = Rates(float(rate), float(slowing), ridge, settings.intercept_rate)
    total = _run_steps(problem, state, settings, epoch, visits, rates)
    if np.isnan(total):
        raise FloatingPointError("the scores are no longer finite")
    require_finite(state.u, state.intercept)
    return total / weight[order].sum()


def _run_steps(
    problem: SoftmaxProblem,
    state: SoftmaxState,
    settings: SgdSettings,
    epoch: int,
    visits: Visits,
    rates: Rates,
) -> float:
    """Take one visit a step; return the sum of their objectives."""
    n_hard = state.hard.shape[1]
    seed = (settings.seed, epoch)
    sampler, m = choose_sampler(
        problem.counts, settings.sampling, settings.n_negatives, n_hard, seed
    )
    draws = Draws(sampler, m, mix_key(*seed))
    beta = np.ones(problem.n_classes)
    if problem.alpha:
        touches = expected_touches(problem, state.hard, sampler, m)
        beta = len(visits.order) / touches
    run_steps = settings.kernels(settings.rule.step)
    rest = rates, read_only(beta), draws, read_only(state.hard), settings.rule.settings
    total = 0.0
    for first, last in _calls(problem, settings, len(visits.order)):
        total += run_steps(visits, first, last, state.model, *rest)
    return total


def _calls(
    problem: SoftmaxProblem, settings: SgdSettings, n_steps: int
) -> Iterator[tuple[int, int]]:
    """Yield the first and last step of each call of a kernel."""
    X = problem.instances
    n_classes = settings.n_negatives + settings.n_hard + 1
    per_visit = n_classes * (1 + len(X.data) / max(1, X.shape[0]))
    per_call = max(1, int(_CHUNK_WORK / per_visit))
    for first in range(0, n_steps, per_call):
        yield first, min(first + per_call, n_steps)
