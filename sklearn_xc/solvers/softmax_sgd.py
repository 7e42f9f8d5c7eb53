"""Stochastic gradient descent on the double-sum form of the softmax likelihood.

With one variable u_i for each pair of an instance and one of its classes, the summed log-loss and
the ridge are the minimum over u of::

    sum_i weight_i (u_i + exp(-u_i) + sum_{k != y_i} exp(x_i.(w_k - w_yi) - u_i) - 1)
        + 0.5 alpha |W|^2

so that an unbiased gradient needs one pair and a few classes. Source: eq. 5 of [1]_.

References
----------
.. [1] F. Fagan and G. Iyengar, "Unbiased scalable softmax optimization", arXiv:1803.08577, 2018.
"""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from sklearn_xc._validation import CsrRows, read_only
from sklearn_xc.kernels.negatives import mix_key
from sklearn_xc.kernels.softmax_batch import softmax_batch_kernels
from sklearn_xc.kernels.softmax_epoch import fold_scale, softmax_kernels

#: Non-zeros of X times classes that one call of a kernel goes through: some tenths of a second, so
#: that an interrupt is heard.
_WORK_PER_CALL = 5e7


class Population(NamedTuple):
    """All pairs of a likelihood, of which a problem may hold a part.

    Attributes
    ----------
    n : int
        Number of pairs.
    weight : float
        Sum of their weights: learning rates are in units of its inverse.
    counts : ndarray of int64 of shape (n_classes,)
        Pairs of each class.
    """

    n: int
    weight: float
    counts: np.ndarray


@dataclass(frozen=True)
class SoftmaxProblem:
    """Instances and their classes.

    Attributes
    ----------
    instances : CsrRows of shape (n_rows, n_features)
        X.
    rows, classes : ndarray of int32 of shape (n,)
        The pairs of an instance and one of its classes.
    weight : ndarray of float64 of shape (n,)
        Of each pair, positive.
    n_classes : int
        K, at least 2.
    alpha : float
        Ridge.
    whole : Population, default=None
        The pairs of the likelihood; None for those of the problem. ``population`` holds the answer.
    """

    instances: CsrRows
    rows: np.ndarray
    classes: np.ndarray
    weight: np.ndarray
    n_classes: int
    alpha: float
    whole: Population | None = None
    population: Population = field(init=False)
    squared_norms: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        X = self.instances
        squares = np.add.reduceat(np.append(X.data.astype(np.float64) ** 2, 0.0), X.indptr[:-1]) * (
            np.diff(X.indptr) > 0
        )
        for name, value in (
            ("rows", self.rows), ("classes", self.classes), ("weight", self.weight),
            ("squared_norms", squares),
        ):  # fmt: skip
            object.__setattr__(self, name, read_only(value))
        own = self._count(np.ones(self.n_pairs, bool))
        object.__setattr__(self, "population", own if self.whole is None else self.whole)

    def _count(self, chosen: np.ndarray) -> Population:
        counts = np.bincount(self.classes[chosen], minlength=self.n_classes)
        return Population(
            int(np.count_nonzero(chosen)), float(self.weight[chosen].sum()), read_only(counts)
        )

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return len(self.rows)

    def radius(self) -> float:
        """Return a bound on the norm of the optimal W (lemma 1 of [1]_), inf without a ridge."""
        if self.alpha == 0:
            return np.inf
        return float(np.sqrt(2.0 / self.alpha * self.population.weight * np.log(self.n_classes)))

    def largest_normaliser(self) -> float:
        """Return a bound on the optimal u (lemma 2 of [1]_)."""
        reach = 2.0 * float(np.sqrt(self.squared_norms.max())) * self.radius()
        return float(np.logaddexp(0.0, np.log(self.n_classes - 1) + reach))

    def take(self, chosen: np.ndarray) -> "SoftmaxProblem":
        """Return the problem of some of the pairs."""
        return replace(
            self,
            rows=self.rows[chosen],
            classes=self.classes[chosen],
            weight=self.weight[chosen],
            whole=None,
        )

    def within(self, others: Population, is_new: np.ndarray) -> "SoftmaxProblem":
        """Return the problem as a part of `others` and of those of its own pairs that are new."""
        own = self._count(is_new)
        counts = read_only(others.counts + own.counts)
        return replace(self, whole=Population(others.n + own.n, others.weight + own.weight, counts))


@dataclass
class SoftmaxState:
    """What moves.

    Attributes
    ----------
    V : ndarray of shape (n_classes, n_features)
        Weights ``scale[k] * V[k]``, of the type of X.
    u : ndarray of float64 of shape (n,)
        One variable per pair.
    scale : ndarray of float64 of shape (n_classes,)
        Factors, below 1 where the ridge has been at work.
    """

    V: np.ndarray
    u: np.ndarray
    scale: np.ndarray

    @classmethod
    def at(cls, W: np.ndarray, u: np.ndarray) -> "SoftmaxState":
        """Return the state at given weights, which it takes over."""
        return cls(W, u, np.ones(len(W)))

    def fold(self) -> None:
        """Multiply the scales into the weights."""
        fold_scale(self.V, self.scale)


@dataclass(frozen=True)
class SgdSettings:
    """How to step.

    Attributes
    ----------
    method : str
        A key of ``kernels.softmax_epoch.RULES``.
    n_negatives : int
        Classes sampled at each step; at most all others are taken.
    batch_size : int
        Pairs of a step. From 2 on, the pairs of a step share their sampled classes.
    seed : int
        Of the order of the pairs and of the sampled classes.
    first, second : float
        What the method's rule is given: delta, and a bound on u or the parameterisation of u.
    radius : float
        Bound on the norm of W, for single steps.
    """

    method: str
    n_negatives: int
    batch_size: int
    seed: int
    first: float = 1.0
    second: float = np.inf
    radius: float = np.inf


def run_epoch(
    problem: SoftmaxProblem,
    state: SoftmaxState,
    settings: SgdSettings,
    epoch: int,
    rate: float,
    slowing: float,
) -> float:
    """Go once through all pairs, in a random order; return the mean sampled objective.

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
        After t pairs the rate is ``rate / (1 + slowing * t)``.

    Returns
    -------
    float
        Mean over the pairs, before each step, of an estimate of the double sum less 1. It is
        unbiased for the unbiased methods: in the mean at least the log-loss.
    """
    n, K = problem.n_pairs, problem.n_classes
    everything = problem.population
    order = np.random.default_rng((settings.seed, epoch)).permutation(n)
    key = mix_key(settings.seed, epoch)
    weight = problem.weight * (everything.n / everything.weight)
    ridge = problem.alpha / everything.weight
    setting = read_only(np.array([settings.first, settings.second]))
    X = problem.instances
    per_pair = (settings.n_negatives + 1) * (1 + len(X.data) / max(1, X.shape[0]))
    pairs_per_call = max(1, int(_WORK_PER_CALL / per_pair))
    total = 0.0
    if settings.batch_size == 1:
        m = min(settings.n_negatives, K - 1)
        squares = np.zeros(K)
        if settings.radius < np.inf:
            state.fold()
            squares = np.einsum("kj,kj->k", state.V, state.V, dtype=np.float64)
        counts, n_all = everything.counts, everything.n
        beta = n_all / (counts + (n_all - counts) * (m / (K - 1)))
        run_steps = softmax_kernels(settings.method)
        for first in range(0, n, pairs_per_call):
            total += run_steps(
                X.arrays, problem.squared_norms, problem.rows, problem.classes, read_only(weight),
                read_only(order), first, min(first + pairs_per_call, n), state.V, state.scale,
                squares, state.u, rate, slowing, ridge, read_only(beta), setting,
                settings.radius, m, key,
            )  # fmt: skip
        return total / n
    n_steps = -(-n // settings.batch_size)
    bounds = np.linspace(0, n, n_steps + 1).astype(np.int64)
    steps_per_call = max(1, pairs_per_call // settings.batch_size)
    run_batches = softmax_batch_kernels(settings.method)
    for first in range(0, n_steps, steps_per_call):
        last = min(first + steps_per_call, n_steps)
        total += run_batches(
            X.arrays, problem.rows, problem.classes, everything.counts, everything.n,
            read_only(weight), read_only(order), read_only(bounds), first, last,
            state.V, state.scale, state.u, rate, slowing, ridge, setting,
            min(settings.n_negatives, K), key,
        )  # fmt: skip
    return total / n
