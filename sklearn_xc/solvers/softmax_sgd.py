"""Stochastic gradient descent on the double-sum form of the softmax likelihood.

With one variable u_i for each pair of an instance and one of its classes, the summed log-loss and
the ridge are the minimum over u of::

    sum_i weight_i (u_i + exp(-u_i) + sum_{k != y_i} exp(x_i.(w_k - w_yi) + b_k - b_yi - u_i) - 1)
        + 0.5 alpha |W|^2

with intercepts b, so that an unbiased gradient needs one pair and a few classes. Source: eq. 5 of
[1]_, which has no intercepts.

An intercept is the weight of one more feature, a constant, except that it has no ridge. The
constant is the root mean square of X, of the features that occur: its square is what steps of
intercepts are multiplied by. A constant of 1 would outweigh all features of a sparse instance.

References
----------
.. [1] F. Fagan and G. Iyengar, "Unbiased scalable softmax optimization", arXiv:1803.08577, 2018.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from sklearn_xc._data import read_only
from sklearn_xc.kernels.softmax.batch import BatchWork, count_blocks, softmax_batch_kernels
from sklearn_xc.kernels.softmax.epoch import fold_scale, softmax_kernels
from sklearn_xc.kernels.softmax.negatives import mix_key
from sklearn_xc.kernels.softmax.passes import (
    Ball,
    Batches,
    Crew,
    Draws,
    Model,
    Rates,
    Visits,
)
from sklearn_xc.kernels.softmax.rules import StepRule
from sklearn_xc.parallel.interrupt import StopFlag
from sklearn_xc.parallel.team import Team
from sklearn_xc.parallel.threads import count_threads
from sklearn_xc.solvers.class_sampling import choose_sampler, expected_touches
from sklearn_xc.solvers.softmax_problem import SoftmaxProblem
from sklearn_xc.weights.class_weights import ClassWeights

#: Non-zeros of X times classes that one call of a kernel goes through: some tenths of a second, so
#: that an interrupt is heard.
_WORK_PER_CALL = 5e7


@dataclass
class SoftmaxState:
    """What moves.

    Attributes
    ----------
    V : ndarray of shape (n_classes, n_features)
        Weights ``scale[k] * V[k]``, of the type of X.
    u : ndarray of float64 of shape (n,)
        One variable per pair.
    intercept : ndarray of float64 of shape (n_classes,)
        What each class scores besides.
    scale : ndarray of float64 of shape (n_classes,)
        Factors, below 1 where the ridge has been at work.
    hard : ndarray of int32 of shape (n, h)
        Hard negatives of each pair; h is 0 before they were searched for.
    """

    V: np.ndarray
    u: np.ndarray
    intercept: np.ndarray
    scale: np.ndarray
    hard: np.ndarray

    @classmethod
    def at(
        cls, W: np.ndarray, u: np.ndarray, intercept: np.ndarray | None = None
    ) -> "SoftmaxState":
        """Return the state at given weights, which it takes over; intercepts are 0 by default."""
        b = np.zeros(len(W)) if intercept is None else intercept.astype(np.float64)
        return cls(W, u, b, np.ones(len(W)), np.empty((len(u), 0), np.int32))

    def copy_of(self, chosen: np.ndarray) -> "SoftmaxState":
        """Return a copy for some of the pairs."""
        return SoftmaxState(
            self.V.copy(), self.u[chosen].copy(), self.intercept.copy(), self.scale.copy(),
            self.hard[chosen].copy(),
        )  # fmt: skip

    @property
    def model(self) -> Model:
        """What kernels move."""
        return Model(self.V, self.scale, self.intercept, self.u)

    def fold(self) -> None:
        """Multiply the scales into the weights."""
        fold_scale(self.V, self.scale)


def require_finite(*arrays: np.ndarray) -> None:
    """Raise FloatingPointError if an entry is NaN or infinite, without an array of that size."""
    with np.errstate(invalid="ignore"):
        for values in arrays:
            if values.size and not (np.isfinite(values.min()) and np.isfinite(values.max())):
                raise FloatingPointError("the weights are no longer finite")


@dataclass(frozen=True)
class SgdSettings:
    """How to step.

    Attributes
    ----------
    rule : StepRule
        What a step does; those of the estimators are in ``kernels.softmax.rules.RULES``.
    n_negatives : int
        Classes sampled at each step; at most all others are taken.
    batch_size : int
        Pairs of a step. From 2 on, the pairs of a step share their sampled classes.
    seed : int
        Of the order of the pairs and of the sampled classes.
    n_hard : int
        Hard negatives of a step, for single steps.
    radius : float
        Bound on the norm of W, for single steps.
    sampling : {"uniform", "frequency"}
        How often each class is among those sampled.
    intercept_rate : float
        What steps of intercepts are multiplied by; 0 leaves them as they are.
    """

    rule: StepRule
    n_negatives: int
    batch_size: int
    seed: int
    n_hard: int = 0
    radius: float = np.inf
    sampling: str = "uniform"
    intercept_rate: float = 0.0


def search_hard_negatives(
    problem: SoftmaxProblem, state: SoftmaxState, settings: SgdSettings, n_jobs: int | None
) -> None:
    """Find the classes that each pair is most likely to be mistaken for, and set u by the way.

    An exact search: every instance is scored against every class, O(nnz(X) n_classes). Steps then
    take the hard negatives with weight 1 and sample from the rest, which leaves their gradients
    unbiased and takes out most of their variance. A u near its optimum for the weights is as good
    as any other; none makes a gradient in W biased at the optimum.
    """
    n_hard = min(settings.n_hard, problem.n_classes - 1)
    weights = ClassWeights(state.V, state.scale, state.intercept)
    state.hard, state.u = weights.hardest(
        problem.instances, problem.rows, problem.classes, n_hard, n_jobs
    )


def run_epoch(
    problem: SoftmaxProblem,
    state: SoftmaxState,
    settings: SgdSettings,
    epoch: int,
    rate: float,
    slowing: float,
    stop: StopFlag | None = None,
    n_jobs: int | None = None,
) -> float:
    """Go once through all visits, in a random order; return the mean sampled objective.

    Parameters
    ----------
    problem : SoftmaxProblem
        The data.
    state : SoftmaxState
        Moves.
    settings : SgdSettings
        How.
    epoch : int
        Decides, with the seed, on the order and on the classes.
    rate : float
        The learning rate, in units of 1 / (total weight).
    slowing : float
        After t visits the rate is ``rate / (1 + slowing * t)``.
    stop : StopFlag, default=None
        Once it is set, the epoch ends early.
    n_jobs : int or None
        Threads of a mini-batch, on which nothing depends; single steps take one.

    Returns
    -------
    float
        Weighted mean, before each step, of an estimate of the double sum less 1. It is
        unbiased for the unbiased methods: in the mean at least the log-loss.

    Raises
    ------
    FloatingPointError
        If a u is no longer finite, or the estimate is NaN: scores are beyond their range.
    """
    everything, X = problem.population, problem.instances
    order = np.repeat(np.arange(problem.n_pairs), problem.visits)
    np.random.default_rng((settings.seed, epoch)).shuffle(order)
    weight = problem.weight / problem.visits * (everything.n / everything.weight)
    per_pair = (settings.n_negatives + settings.n_hard + 1) * (1 + len(X.data) / max(1, X.shape[0]))
    visits = Visits(
        X.arrays, problem.squared_norms, problem.rows, problem.classes, read_only(weight),
        read_only(order),
    )  # fmt: skip
    rates = Rates(
        float(rate), float(slowing), problem.alpha / everything.weight, settings.intercept_rate
    )
    pace = _Pace(max(1, int(_WORK_PER_CALL / per_pair)), stop)
    if settings.batch_size == 1:
        total = _run_steps(problem, state, settings, epoch, visits, rates, pace)
    else:
        total = _run_batches(problem, state, settings, epoch, visits, rates, pace, n_jobs)
    if np.isnan(total):
        raise FloatingPointError("the scores are no longer finite")
    require_finite(state.u, state.intercept)
    return total / weight[order].sum()


class _Pace(NamedTuple):
    """How many visits a call of a kernel makes, and what ends them."""

    per_call: int
    stop: StopFlag | None

    def calls(self, n: int, size: int = 1) -> Iterator[tuple[int, int]]:
        """Yield the ends of parts of n steps of `size` visits, until a stop is asked for."""
        per_call = max(1, self.per_call // size)
        for first in range(0, n, per_call):
            if self.stop is not None and self.stop.is_set():
                return
            yield first, min(first + per_call, n)


def _run_steps(
    problem: SoftmaxProblem, state: SoftmaxState, settings: SgdSettings, epoch: int,
    visits: Visits, rates: Rates, pace: _Pace,
) -> float:  # fmt: skip
    """Take one visit a step; return the sum of their objectives."""
    everything = problem.population
    squares = np.zeros(problem.n_classes)
    if settings.radius < np.inf:
        state.fold()
        squares = np.einsum("kj,kj->k", state.V, state.V, dtype=np.float64)
    sampler, m = choose_sampler(
        everything.counts, settings.sampling, settings.n_negatives, state.hard.shape[1],
        (settings.seed, epoch),
    )  # fmt: skip
    beta = everything.n / expected_touches(
        everything.counts, problem.classes, problem.visits, state.hard, sampler, m
    )
    draws = Draws(sampler, m, mix_key(settings.seed, epoch))
    ball, hard = Ball(float(settings.radius), squares), read_only(state.hard)
    run_steps, total = softmax_kernels(settings.rule.step), 0.0
    for first, last in pace.calls(len(visits.order)):
        total += run_steps(
            visits, first, last, state.model, ball, rates, read_only(beta), draws, hard,
            settings.rule.settings,
        )  # fmt: skip
    return total


def _run_batches(
    problem: SoftmaxProblem, state: SoftmaxState, settings: SgdSettings, epoch: int,
    visits: Visits, rates: Rates, pace: _Pace, n_jobs: int | None,
) -> float:  # fmt: skip
    """Take a mini-batch of visits a step, in threads; return the sum of their objectives."""
    everything, rule = problem.population, settings.rule
    n_steps = -(-len(visits.order) // settings.batch_size)
    bounds = np.linspace(0, len(visits.order), n_steps + 1).astype(np.int64)
    batches = Batches(read_only(bounds), everything.counts, everything.n)
    sampler, m = choose_sampler(
        everything.counts, settings.sampling, settings.n_negatives, 0, (settings.seed, epoch),
        with_target=True,
    )  # fmt: skip
    draws = Draws(sampler, m, mix_key(settings.seed, epoch))
    run_batches, total = softmax_batch_kernels(rule.step, rule.is_implicit), 0.0
    n_workers = min(count_threads(n_jobs), count_blocks(m, state.V.dtype) + 1)
    work = BatchWork.for_pass(visits, batches, m, state.V)
    with Team(n_workers) as team:

        def run(first: int, last: int, worker: int) -> float:
            return run_batches(
                visits, batches, first, last, state.model, rates, draws, rule.settings, work,
                Crew(team.barrier, worker, n_workers),
            )  # fmt: skip

        for first, last in pace.calls(n_steps, settings.batch_size):
            total += team.run(partial(run, first, last))[0]
    return total
