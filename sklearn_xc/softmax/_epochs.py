"""How an estimator trains: its learning rate, its epochs, and what it warns of."""

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from sklearn_xc._data import CsrRows
from sklearn_xc.exceptions import ConvergenceWarning
from sklearn_xc.parallel.interrupt import StopFlag
from sklearn_xc.parallel.memory import available_bytes
from sklearn_xc.parallel.progress import Fit, Progress
from sklearn_xc.parallel.threads import count_threads
from sklearn_xc.softmax._memory import besides_weights
from sklearn_xc.softmax.judge import Judge
from sklearn_xc.softmax.pairs import Pairs
from sklearn_xc.softmax.search import Trial, search_rate
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
#: Scores of the held-out instances that judge an epoch, about, and the fewest such instances.
_JUDGED_SCORES, _LEAST_JUDGED = 2**24, 512
#: Of the pairs, in trials without early stopping, and the fewest of them.
_SHARE, _FEWEST = 0.1, 1000


def find_rate(
    estimator: Any,
    problem: SoftmaxProblem,
    start: SoftmaxState,
    settings: SgdSettings,
    held_out: Pairs,
    fit: Fit,
    first_epoch: int = 0,
    *,
    stops: bool = True,
    by_rank: bool = False,
    rate: float | None = None,
) -> Trial:
    """Return the trial whose learning rate, and number of epochs, suit held-out pairs best.

    Parameters
    ----------
    estimator : estimator
        With the parameters of a fit.
    problem : SoftmaxProblem
        What trials are trained on.
    start : SoftmaxState
        Where each trial starts; hard negatives may be set.
    settings : SgdSettings
        How to step.
    held_out : Pairs
        What they are judged on.
    fit : Fit
        Is told of the trials.
    first_epoch : int
        Number of the first, for the random numbers.
    stops : bool
        Whether to judge each epoch, and stop when none is better any more. Otherwise a trial runs
        all epochs on a tenth of the pairs, and is judged at its end.
    by_rank : bool
        Whether held-out pairs judge by ranks.
    rate : float, default=None
        The only learning rate to try.
    """
    name, max_iter = type(estimator).__name__, estimator.max_iter
    progress = fit.parts("trial", None, stage="search")
    judge = Judge(problem.instances, _some_of(held_out, problem.n_classes), by_rank, 1)
    if not stops:
        problem, start = _fewer_pairs(problem, start, settings.seed)
    everything = np.arange(problem.n_pairs)
    if settings.n_hard and start.V.any():  # the same for all trials
        search_hard_negatives(problem, start, settings, estimator.n_jobs)
    stop = StopFlag()

    def run(rate: float, target: float) -> Trial:
        state, verdicts = start.copy_of(everything), list[tuple[float, float]]()

        def monitor(weights: ClassWeights) -> float:
            verdicts.append(judge(weights))
            return verdicts[-1][0]

        try:
            W, b, history = train(
                problem, state, settings, Schedule(rate, estimator.decay), max_iter,
                first_epoch=first_epoch, average=Average() if estimator.average else None,
                monitor=monitor if stops else None,
                patience=estimator.n_iter_no_change if stops else None,
                tol=estimator.tol, target=target, n_jobs=n_threads, stop=stop,
            )  # fmt: skip
            if stop.is_set():
                return Trial(rate, ())
            losses = history.log_loss if stops else [monitor(ClassWeights(W, intercept=b))]
        except FloatingPointError:
            return Trial(rate, ())
        if not np.isfinite(losses).all():
            return Trial(rate, ())
        return Trial(rate, tuple(losses), tuple(log_loss for _, log_loss in verdicts))

    def show(trial: Trial) -> None:  # which may have run beside another one
        judged = "1 - reciprocal rank" if by_rank else "log-loss"
        ended = f"{trial.loss:.4g} after {trial.n_epochs} epochs" if trial.losses else "diverged"
        text = f"learning rate {trial.rate:g}: held-out {judged} {ended}"
        progress.end(progress.begin(), text)

    n_threads = estimator.n_jobs
    if rate is not None:
        trial = run(rate, np.inf)
        if not trial.losses:
            raise diverged(estimator, f"learning_rate={rate:g}")
        show(trial)
        progress.close()
        return trial
    free = available_bytes()
    fitting = 2 if free is None else max(1, int(free / 2) // max(1, start.V.nbytes))
    fitting = min(fitting, _trials_in(estimator, problem, start.V.nbytes))
    n_jobs = min(count_threads(estimator.n_jobs), fitting, 2)
    n_threads = estimator.n_jobs if n_jobs == 1 else 1
    try:
        trial, at_edge = search_rate(
            run, middle_rate(problem, settings), n_jobs, show,
            is_fine=not settings.n_hard,  # with hard negatives the log-loss depends less on it
        )  # fmt: skip
    except FloatingPointError as error:
        raise diverged(estimator, "any of the rates tried") from error
    except BaseException:  # an interrupt is heard by this thread alone
        stop.set()
        raise
    progress.close()
    if at_edge:
        warnings.warn(
            f"{name}: learning_rate='auto' ended at {trial.rate:g}, the last rate that it tries. "
            "Set learning_rate, or scale X (sklearn.preprocessing.normalize).",
            ConvergenceWarning,
            stacklevel=6,
        )
    return trial


def run_again(
    estimator: Any,
    problem: SoftmaxProblem,
    start: SoftmaxState,
    settings: SgdSettings,
    trial: Trial,
    first_epoch: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights and intercepts that a trial had after its best epoch.

    Cheaper than to keep them: that would take a third array of weights.

    Parameters
    ----------
    estimator : estimator
        With the parameters of a fit.
    problem, start, settings
        As ``find_rate`` has left them.
    trial : Trial
        That judged each epoch.
    first_epoch : int
        As in ``find_rate``.
    """
    W, intercept, _ = train(
        problem, start.copy_of(np.arange(problem.n_pairs)), settings,
        Schedule(trial.rate, estimator.decay), trial.n_epochs, first_epoch=first_epoch,
        average=Average() if estimator.average else None, n_jobs=estimator.n_jobs,
    )  # fmt: skip
    return W, intercept


def _trials_in(estimator: Any, problem: SoftmaxProblem, weights_bytes: int) -> int:
    """Return for how many trials at a time `max_memory` has room."""
    allowed = estimator._allowed_bytes()
    if allowed is None:
        return 2
    besides = besides_weights(
        problem.instances, None, problem.n_pairs, problem.n_classes, estimator.n_jobs
    )
    of_trial = (1 + bool(estimator.average)) * weights_bytes
    return int(max(1, (allowed - besides - weights_bytes) // max(1, of_trial)))


def _fewer_pairs(
    problem: SoftmaxProblem, start: SoftmaxState, seed: int
) -> tuple[SoftmaxProblem, SoftmaxState]:
    """Return what trials without early stopping are trained on."""
    size = min(problem.n_pairs, max(_FEWEST, int(np.ceil(_SHARE * problem.n_pairs))))
    drawn = np.random.default_rng(seed).permutation(problem.n_pairs)
    chosen = np.sort(drawn[:size])
    return problem.take(chosen), start.copy_of(chosen)


def middle_rate(problem: SoftmaxProblem, settings: SgdSettings) -> float:
    """Return the power of ten that "auto" tries first, times the batch size.

    A step moves the scores of its instance by the rate times the squared norm: so the rate that
    suits does not depend on the unit of X.
    """
    square = problem.mean_squared_norm()
    return float(10.0 ** -np.round(np.log10(square)) if square > 0 else 1.0) * settings.batch_size


def _some_of(pairs: Pairs, n_classes: int) -> Pairs:
    """Return the pairs of the first instances, so many that their scores do not take long."""
    rows, first, row = np.unique(pairs.rows, return_index=True, return_inverse=True)
    n_rows = max(_LEAST_JUDGED, _JUDGED_SCORES // n_classes)
    if len(rows) <= n_rows:
        return pairs
    is_judged = np.zeros(len(rows), bool)
    is_judged[np.argsort(first)[:n_rows]] = True
    return pairs.take(np.flatnonzero(is_judged[row]))


def run_fit(
    estimator: Any,
    problem: SoftmaxProblem,
    state: SoftmaxState,
    settings: SgdSettings,
    found: Trial | None,
    first_epoch: int,
    average: Average | None,
    fit: Fit,
    model: Callable[[History], dict[str, Any]],
) -> tuple[np.ndarray, np.ndarray, History, bool]:
    """Run all epochs of a fit at ``learning_rate_``; see ``train`` for what is returned.

    Parameters
    ----------
    estimator : estimator
        With ``learning_rate_``.
    problem, state, settings
        All data.
    found : Trial or None
        With early stopping, tells how many epochs to run; its held-out log-losses are reported.
    first_epoch : int
        Number of the first, for the random numbers.
    average : Average or None
        Takes the iterates in.
    fit : Fit
        Is told of the epochs.
    model : callable
        As of ``train``.

    Returns
    -------
    W, intercept, history
        As of ``train``.
    was_stopped : bool
        Whether a callback has ended the epochs.

    Raises
    ------
    FloatingPointError
        If it diverges.
    """
    max_iter, known = estimator.max_iter, list[float]()
    if found is None:
        drawn = np.random.default_rng((settings.seed, 2**32 + 1)).permutation(problem.n_pairs)
        chosen = np.sort(drawn[:MONITORED])
        monitored = Pairs(problem.rows[chosen], problem.classes[chosen], problem.weight[chosen])
        monitor = Judge(problem.instances, monitored, False, estimator.n_jobs).log_loss
    else:
        max_iter = found.n_epochs

        def monitor(weights: ClassWeights) -> float:
            known.append(found.log_losses[len(known)])
            return known[-1]

    progress: Progress = fit.parts("epoch", max_iter, stage="training")
    try:
        W, intercept, history = train(
            problem, state, settings, Schedule(estimator.learning_rate_, estimator.decay),
            max_iter, first_epoch=first_epoch, average=average, monitor=monitor,
            progress=progress, model=model, n_jobs=estimator.n_jobs,
        )  # fmt: skip
    except FloatingPointError:  # another rate may be tried
        progress.close()
        raise
    progress.close()
    return W, intercept, history, progress.was_stopped


def went_astray(
    estimator: Any,
    X: CsrRows,
    weights: ClassWeights,
    found: Trial | None,
    held_out: Pairs | None,
    by_rank: bool = False,
) -> bool:
    """Tell whether training on all instances has gone wrong where a trial had not.

    Instances that a trial held out are trained on now: they must be known better than they were
    then. A U-max step that is far too long, because a rare class was drawn, comes by chance.
    """
    if found is None or held_out is None:
        return False
    pairs = _some_of(held_out, len(weights.coef))
    return Judge(X, pairs, by_rank, estimator.n_jobs)(weights)[0] > found.loss + estimator.tol


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


def diverged(estimator: Any, rate: str) -> ValueError:
    """Return the error for a learning rate that is too high."""
    return ValueError(
        f"{type(estimator).__name__}: training diverged at {rate}. Lower learning_rate, or scale X "
        "(sklearn.preprocessing.normalize)" + estimator._diverging_advice
    )


def warn_of_fit(estimator: Any, found: Trial | None, stacklevel: int) -> None:
    """Warn if a fit ended worse than guessing, or before early stopping would have ended it."""
    name, losses = type(estimator).__name__, estimator.fit_report_["log_loss"]
    guessing = np.log(len(estimator.classes_))
    if losses[-1] > 2.0 * guessing and found is None:
        warnings.warn(
            f"{name}: the training log-loss is {losses[-1]:.3g} after the last epoch, guessing has "
            f"{guessing:.3g}: learning_rate={estimator.learning_rate_:g} is too high.",
            ConvergenceWarning,
            stacklevel=stacklevel + 1,
        )
    is_last_best = len(losses) > 1 and losses[-1] < losses[:-1].min() - estimator.tol
    if found is not None and len(losses) == estimator.max_iter and is_last_best:
        warnings.warn(
            f"{name}: the held-out log-loss was still falling by over tol={estimator.tol:g} after "
            f"max_iter={estimator.max_iter} epochs. Raise max_iter or learning_rate.",
            ConvergenceWarning,
            stacklevel=stacklevel + 1,
        )
