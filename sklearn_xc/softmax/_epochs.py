"""How an estimator trains: its learning rate, its epochs, and what it warns of."""

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from sklearn_xc._data import CsrRows
from sklearn_xc.exceptions import ConvergenceWarning
from sklearn_xc.parallel.progress import Progress, say
from sklearn_xc.softmax.pairs import Pairs
from sklearn_xc.softmax.search import search_rate
from sklearn_xc.softmax.training import Average, History, train
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

#: Training pairs whose log-loss is followed, where no pairs are held out.
MONITORED = 256


def choose_rate(
    estimator: Any,
    problem: SoftmaxProblem,
    state: SoftmaxState,
    settings: SgdSettings,
    held_out: Pairs | None,
) -> float:
    """Return the learning rate: the parameter, or what the search for "auto" finds."""
    if estimator.learning_rate != "auto":
        return float(estimator.learning_rate)
    name = type(estimator).__name__

    def log_loss(weights: ClassWeights, part: SoftmaxProblem) -> float:
        pairs = held_out or Pairs(part.rows, part.classes, part.weight)
        return _log_loss_of(problem.instances, pairs, estimator.n_jobs)(weights)

    def show(rate: float, loss: float) -> None:
        ended = f"log-loss {loss:.4g}" if np.isfinite(loss) else "diverged"
        say(name, f"learning rate {rate:g} on a tenth of the data: {ended}")

    try:
        return search_rate(
            problem, state, settings, estimator.decay, estimator.max_iter,
            estimator._rates(settings), log_loss, estimator.n_jobs,
            show if estimator.verbose else None,
        )  # fmt: skip
    except FloatingPointError as error:
        raise diverged(estimator, "any of the rates tried") from error


def run_fit(
    estimator: Any,
    problem: SoftmaxProblem,
    state: SoftmaxState,
    settings: SgdSettings,
    held_out: Pairs | None,
    first_epoch: int,
    average: Average | None,
) -> tuple[np.ndarray, np.ndarray, History]:
    """Run all epochs of a fit at ``learning_rate_``; see ``train`` for what is returned."""
    monitored = held_out
    if monitored is None:
        drawn = np.random.default_rng((settings.seed, 2**32 + 1)).permutation(problem.n_pairs)
        chosen = np.sort(drawn[:MONITORED])
        monitored = Pairs(problem.rows[chosen], problem.classes[chosen], problem.weight[chosen])
    name, max_iter = type(estimator).__name__, estimator.max_iter
    try:
        return train(
            problem, state, settings, Schedule(estimator.learning_rate_, estimator.decay),
            max_iter, first_epoch=first_epoch, average=average,
            monitor=_log_loss_of(problem.instances, monitored, estimator.n_jobs),
            patience=estimator.n_iter_no_change if estimator.early_stopping else None,
            tol=estimator.tol,
            progress=Progress(name, "epoch", max_iter) if estimator.verbose else None,
            n_jobs=estimator.n_jobs,
        )  # fmt: skip
    except FloatingPointError as error:
        raise diverged(estimator, f"learning_rate={estimator.learning_rate_:g}") from error


def run_pass(
    estimator: Any,
    problem: SoftmaxProblem,
    state: SoftmaxState,
    settings: SgdSettings,
    average: Average | None,
    epochs_done: float,
    epoch: int,
) -> tuple[np.ndarray, np.ndarray, History]:
    """Make the pass of a partial fit; see ``train`` for what is returned.

    Parameters
    ----------
    estimator : estimator
        With ``learning_rate_``.
    problem, state, settings
        As of ``run_epoch``.
    average : Average or None
        Takes the iterate in.
    epochs_done : float
        Passes over all pairs so far, for the learning rate.
    epoch : int
        Number of the call, for the random numbers.
    """
    began, history = time.perf_counter(), History()
    schedule = Schedule(estimator.learning_rate_, estimator.decay)
    rate, slowing = schedule.within_epoch(epochs_done, problem.population.n)
    try:
        if settings.n_hard and state.V.any():
            search_hard_negatives(problem, state, settings, estimator.n_jobs)
        loss = run_epoch(problem, state, settings, epoch, rate, slowing, None, estimator.n_jobs)
        state.fold()
        W, b = state.V, state.intercept
        mean, mean_b = (W, b) if average is None else average.add(W, b)
        with np.errstate(over="ignore"):
            require_finite(W, mean, b.astype(W.dtype))
    except FloatingPointError as error:
        raise diverged(estimator, f"learning_rate={estimator.learning_rate_:g}") from error
    history.add(loss, np.nan, rate, time.perf_counter() - began)
    return mean, mean_b, history


def _log_loss_of(X: CsrRows, pairs: Pairs, n_jobs: int | None) -> Callable[[ClassWeights], float]:
    """Return what gives the exact mean log-loss of pairs."""

    def log_loss(weights: ClassWeights) -> float:
        losses = weights.log_losses(X, pairs.rows, pairs.classes, n_jobs)
        return float(np.average(losses, weights=pairs.weight))

    return log_loss


def diverged(estimator: Any, rate: str) -> ValueError:
    """Return the error for a learning rate that is too high."""
    return ValueError(
        f"{type(estimator).__name__}: training diverged at {rate}. Lower learning_rate, or scale X "
        "(sklearn.preprocessing.normalize)" + estimator._diverging_advice
    )


def warn_of_fit(estimator: Any, stacklevel: int) -> None:
    """Warn if a fit ended worse than guessing, or before early stopping would have ended it."""
    name, losses = type(estimator).__name__, estimator.fit_report_["log_loss"]
    guessing = np.log(len(estimator.classes_))
    if losses[-1] > 2.0 * guessing and not estimator.early_stopping:
        warnings.warn(
            f"{name}: the training log-loss is {losses[-1]:.3g} after the last epoch, guessing has "
            f"{guessing:.3g}: learning_rate={estimator.learning_rate_:g} is too high.",
            ConvergenceWarning,
            stacklevel=stacklevel + 1,
        )
    is_last_best = len(losses) > 1 and losses[-1] < losses[:-1].min() - estimator.tol
    if estimator.early_stopping and len(losses) == estimator.max_iter and is_last_best:
        warnings.warn(
            f"{name}: the held-out log-loss was still falling by over tol={estimator.tol:g} after "
            f"max_iter={estimator.max_iter} epochs. Raise max_iter or learning_rate.",
            ConvergenceWarning,
            stacklevel=stacklevel + 1,
        )
