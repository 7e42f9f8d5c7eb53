"""Epochs of a softmax fit: averaging of iterates, early stopping, and what is reported."""

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sklearn_xc._declared_state import Array, Number, declares
from sklearn_xc.parallel.interrupt import StopFlag
from sklearn_xc.parallel.progress import Progress
from sklearn_xc.solvers.schedule import Schedule
from sklearn_xc.solvers.softmax_problem import SoftmaxProblem
from sklearn_xc.solvers.softmax_sgd import (
    SgdSettings,
    SoftmaxState,
    require_finite,
    run_epoch,
    search_hard_negatives,
)
from sklearn_xc.weights.class_weights import ClassWeights

#: With more classes a search costs more than all other work of an epoch many times over, and hard
#: negatives at the start, which do nearly as well, are searched for once.
MOST_SEARCHED = 2048


@dataclass
class History:
    """What epochs saw, or calls of ``partial_fit``: a row for each.

    Attributes
    ----------
    loss : list of float
        Mean sampled objective.
    log_loss : list of float
        Exact mean log-loss of the monitored pairs afterwards, NaN where there are none.
    learning_rate : list of float
        At the beginning, in units of 1 / (total weight).
    seconds : list of float
        Wall time, without what `log_loss` takes.
    """

    loss: list[float] = field(default_factory=list)
    log_loss: list[float] = field(default_factory=list)
    learning_rate: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def add(self, loss: float, log_loss: float, learning_rate: float, seconds: float) -> None:
        """Add a row."""
        self.loss.append(loss)
        self.log_loss.append(log_loss)
        self.learning_rate.append(learning_rate)
        self.seconds.append(seconds)

    def report(self, earlier: dict[str, np.ndarray] | None = None) -> dict[str, np.ndarray]:
        """Return ``fit_report_``, below the rows of an earlier one."""
        rows = {name: np.array(values, np.float64) for name, values in vars(self).items()}
        if earlier is None:
            return rows
        return {name: np.append(earlier[name], values) for name, values in rows.items()}


@declares(
    mean=Array("float", "labels", "features", optional=True),
    intercept=Array("float64", "labels", optional=True),
    count=Number("int", least=0),
)
class Average:
    """Mean of the iterates at the ends of the epochs, the k-th with weight k.

    Source: the weights of [1]_, which need not know the number of epochs.

    References
    ----------
    .. [1] S. Lacoste-Julien, M. Schmidt and F. Bach, "A simpler approach to obtaining an O(1/t)
       convergence rate for the projected stochastic subgradient method", arXiv:1212.2002, 2012.
    """

    def __init__(self) -> None:
        self.mean: np.ndarray | None = None
        self.intercept: np.ndarray | None = None
        self.count = 0

    def copy(self) -> "Average":
        """Return one that goes on from the same mean, and leaves this as it is."""
        other = Average()
        other.mean = None if self.mean is None else np.array(self.mean)
        other.intercept = None if self.intercept is None else np.array(self.intercept)
        other.count = self.count
        return other

    def add(self, W: np.ndarray, intercept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the means after another iterate; the arrays are the same each time."""
        self.count += 1
        if self.mean is None or self.intercept is None:
            self.mean, self.intercept = W.copy(), intercept.copy()
        else:
            share = 2.0 / (self.count + 1.0)
            self.intercept += share * (intercept - self.intercept)
            share = W.dtype.type(share)
            with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is found
                for row, new in zip(self.mean, W, strict=True):  # no further array of this size
                    row += share * (new - row)
        return self.mean, self.intercept


def train(
    problem: SoftmaxProblem,
    state: SoftmaxState,
    settings: SgdSettings,
    schedule: Schedule,
    max_iter: int,
    *,
    first_epoch: int = 0,
    average: Average | None = None,
    monitor: Callable[[ClassWeights], float] | None = None,
    patience: int | None = None,
    tol: float = 0.0,
    target: float = np.inf,
    progress: Progress | None = None,
    model: Callable[[History], dict[str, Any]] | None = None,
    n_jobs: int | None = None,
    stop: StopFlag | None = None,
) -> tuple[np.ndarray, np.ndarray, History]:
    """Run epochs; return the weights, the intercepts and what was seen.

    Parameters
    ----------
    problem : SoftmaxProblem
        The data.
    state : SoftmaxState
        Moves, and ends with scales of 1.
    settings : SgdSettings
        How to step.
    schedule : Schedule
        Learning rates.
    max_iter : int
        Most epochs.
    first_epoch : int
        Number of the first, for the random numbers.
    average : Average, default=None
        Takes the iterates in; its mean is then what is monitored and returned.
    monitor : callable, default=None
        Gives the log-loss of weights.
    patience : int, default=None
        Stop after so many epochs in which the log-loss did not fall by `tol`. None runs all epochs.
    tol : float
        See `patience`.
    target : float, default=inf
        With `patience`, stop as well where the log-loss would stay above this if it went on to fall
        as fast as in the last epoch, in proportion to the learning rate.
    progress : Progress, default=None
        Is told the log-loss of each epoch, and not the sampled objective: a rare class with a large
        weight makes that of U-max as large as 1e47 while the log-loss falls. Training ends after an
        epoch at which a callback asks for it.
    model : callable, default=None
        For callbacks: returns the fitted attributes that `state`, `average` and epochs so far
        come to.
    n_jobs : int or None
        Threads of mini-batches and of the searches for hard negatives.
    stop : StopFlag, default=None
        Once it is set, training ends early.

    Returns
    -------
    W : ndarray of shape (n_classes, n_features)
        Weights: those of `state` or of `average`.
    intercept : ndarray of float64 of shape (n_classes,)
        The intercepts with them.
    history : History
        A row for each epoch.

    Raises
    ------
    FloatingPointError
        If weights are no longer finite.
    """
    history = History()
    W, intercept = state.V, state.intercept
    for epoch in range(max_iter):
        if patience is not None and (
            _epochs_without_gain(history.log_loss, tol) >= patience
            or _is_out_of_reach(target, history.log_loss, schedule, max_iter)
        ):
            break
        task = None if progress is None else progress.begin()
        began = time.perf_counter()
        if settings.n_hard and _is_search_due(epoch, state):
            search_hard_negatives(problem, state, settings, n_jobs)
        rate, slowing = schedule.within_epoch(epoch, problem.population.n)
        objective = run_epoch(
            problem, state, settings, first_epoch + epoch, rate, slowing, stop, n_jobs
        )
        if stop is not None and stop.is_set():
            return W, intercept, history
        scale = state.scale
        if average is not None:
            state.fold()
            W, intercept = average.add(state.V, state.intercept)
            scale = np.ones(len(state.V))
        seconds = time.perf_counter() - began
        loss = np.nan
        if monitor is not None:
            loss = monitor(ClassWeights(W, scale, intercept))
            if not np.isfinite(loss):
                raise FloatingPointError("the weights are no longer finite")
        history.add(objective, loss, rate, seconds)
        if progress is not None and task is not None:
            attributes = None if model is None else functools.partial(model, history)
            if progress.end(task, f"log-loss {loss:.4g}", attributes):
                break
    state.fold()
    require_finite(state.V, W)
    return W, intercept, history


def _epochs_without_gain(losses: list[float], tol: float) -> int:
    """Return how many epochs ago the log-loss last fell by more than `tol` below the lowest."""
    lowest, n_worse = np.inf, 0
    for loss in losses:
        n_worse = 0 if loss < lowest - tol else n_worse + 1
        lowest = min(lowest, loss)
    return n_worse


def _is_out_of_reach(target: float, losses: list[float], schedule: Schedule, max_iter: int) -> bool:
    """Tell whether the log-loss would end above `target` at the speed of its last epoch.

    Curves of the log-loss flatten out: at a lower learning rate an epoch rarely gains more.
    """
    done = len(losses)
    if done < 2 or target == np.inf:
        return False
    fall = max(0.0, losses[-2] - losses[-1])
    return losses[-1] - fall * schedule.following(done, max_iter - done) > target


def _is_search_due(epoch: int, state: SoftmaxState) -> bool:
    """Tell whether to search for hard negatives before an epoch: 0, 1, 2, 4, 8, 16...

    Among very many classes before the first epoch alone. Weights of 0 tell no class from another.
    """
    is_first = not state.hard.shape[1] and bool(state.V.any())
    if epoch == 0 or len(state.V) > MOST_SEARCHED:
        return is_first
    return epoch & (epoch - 1) == 0
