"""Learning rates, the search for one and for a number of epochs, and held-out losses.

Source: section 4.1 of [1]_ tries seven powers of ten on a tenth of the data, and takes the lowest
log-loss of that tenth itself: often the rate that fits most noise. Here, held-out instances decide.

References
----------
.. [1] F. Fagan and G. Iyengar, "Unbiased scalable softmax optimization", arXiv:1803.08577, 2018.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sklearn_xc._input.data import CsrRows, is_blank
from sklearn_xc._training.rate_search import climb_rates
from sklearn_xc._weights.class_weights import ClassWeights
from sklearn_xc._weights.kernels.class_scores import log_normalisers
from sklearn_xc.softmax.calibration import Calibration, fit_calibration
from sklearn_xc.softmax.pairs import ClassPairs, first_instances
from sklearn_xc.softmax.problem import SoftmaxProblem
from sklearn_xc.softmax.sgd import SgdSettings, run_epoch, search_hard_negatives
from sklearn_xc.softmax.state import SoftmaxState, require_finite

#: With more classes, a search for hard negatives costs many times more than the rest of an epoch:
#: there is only one, at the start, which does nearly as well.
MOST_SEARCHED = 2048
#: Powers of ten that the search tries on either side of the first, at most.
REACH = 4
#: It moves on where a power lowers the loss by more than this part of it (or of 1, if that is
#: more): perfect classifiers gain a little from any rate.
_GAIN = 0.01
#: Epochs without a better loss that end a trial.
_PATIENCE = 3
#: Scores of held-out instances after each epoch, about, and the least number of instances; and the
#: same of those that probabilities are calibrated on.
_VALIDATION_SCORES = 2**24
_LEAST_VALIDATED = 512
_CALIBRATION_SCORES = 2**19
_LEAST_CALIBRATED = 128
#: Share of the log-loss in the criterion by rank: it decides where ranks are all perfect or equal.
_LOG_LOSS_SHARE = 0.01


@dataclass(frozen=True)
class Schedule:
    """Learning rates by the number of epochs done.

    Attributes
    ----------
    rate : float
        At the beginning.
    decay : float or "1/t"
        What the rate is multiplied with after each epoch, or ``rate / (1 + epochs)``, falling also
        within an epoch.
    """

    rate: float
    decay: float | str

    def after(self, epochs: float) -> float:
        """Return the rate after some epochs and a part of one."""
        if self.decay == "1/t":
            return self.rate / (1.0 + epochs)
        return self.rate * float(self.decay) ** int(epochs)

    def following(self, epochs: int, n_epochs: int) -> float:
        """Return the sum of the rates of the next epochs, in units of that of the last one done."""
        if self.decay == "1/t":
            return float((epochs / (epochs + 1.0 + np.arange(n_epochs))).sum())
        decay = float(self.decay)
        return n_epochs if decay == 1.0 else decay * (1.0 - decay**n_epochs) / (1.0 - decay)

    def within_epoch(self, epochs: float, n_visits: int) -> tuple[float, float]:
        """Return the rate r after some epochs, and s: after t of n visits more it is r / (1 + s t).

        Epochs of `n_visits` visits each.
        """
        slowing = 1.0 / (n_visits * (1.0 + epochs)) if self.decay == "1/t" else 0.0
        return self.after(epochs), slowing


def train_epoch(
    problem: SoftmaxProblem,
    state: SoftmaxState,
    settings: SgdSettings,
    schedule: Schedule,
    epoch: int,
    n_jobs: int | None,
) -> tuple[float, float, float]:
    """Run an epoch; return the mean sampled objective, the learning rate and the wall seconds."""
    began = time.perf_counter()
    if settings.n_hard and _is_search_due(epoch, state):
        search_hard_negatives(problem, state, settings, n_jobs)
    rate, slowing = schedule.within_epoch(epoch, problem.n_visits)
    objective = run_epoch(problem, state, settings, epoch, rate, slowing)
    return objective, rate, time.perf_counter() - began


def _is_search_due(epoch: int, state: SoftmaxState) -> bool:
    """Whether to search for hard negatives before an epoch: 0, 1, 2, 4, 8, 16...

    With very many classes, only before the first. Weights of 0 cannot rank classes.
    """
    if epoch == 0 or len(state.V) > MOST_SEARCHED:
        return not state.hard.shape[1] and bool(state.V.any())
    return epoch & (epoch - 1) == 0


def n_calibrated(n_classes: int) -> int:
    """Return on how many held-out instances probabilities are calibrated, at most."""
    return max(_LEAST_CALIBRATED, _CALIBRATION_SCORES // n_classes)


class HeldOutPairs:
    """Instances held out of trials: the loss that decides, and the calibration of probabilities.

    Parameters
    ----------
    X : CsrRows of shape (n, n_features)
        All instances.
    kept, pairs : ClassPairs
        Those that trials are trained on, and those held out; equal if nothing is held out, and
        then there is no calibration.
    n_classes : int
        K.
    by_rank : bool
        With several labels per instance, the log-loss measures how well the shares of its labels
        are known, at the expense of the best label; ranks measure the order directly.
    n_jobs : int or None
        Threads.
    """

    def __init__(
        self,
        X: CsrRows,
        kept: ClassPairs,
        pairs: ClassPairs,
        n_classes: int,
        by_rank: bool,
        n_jobs: int | None,
    ) -> None:
        self._by_rank, self._n_jobs = by_rank, n_jobs
        self.name = "1 - reciprocal rank" if by_rank else "log-loss"
        self._seen = np.unique(kept.classes)
        learnable = pairs.take(np.flatnonzero(np.isin(pairs.classes, self._seen)))
        n_validated = max(_LEAST_VALIDATED, _VALIDATION_SCORES // n_classes)
        validated = first_instances(learnable, n_validated)
        with_features = pairs.take(np.flatnonzero(~is_blank(X)[pairs.rows]))
        calibrated = first_instances(
            with_features, n_calibrated(n_classes) if kept is not pairs else 0
        )
        self._X, self._validated = _instances_of(X, validated)
        self._calibrated_X, self._calibrated = _instances_of(X, calibrated)

    def __call__(self, weights: ClassWeights) -> tuple[float, float]:
        """Return the criterion (lower is better) and the mean log-loss of the pairs.

        By rank, the criterion is one minus the mean reciprocal rank of the best of an instance's
        classes among all that are not its own, plus a hundredth of the log-loss.
        """
        pairs = self._validated
        losses, reciprocal = np.empty(len(pairs.rows)), np.empty(len(pairs.rows))

        def task(first: int, last: int, scores: np.ndarray) -> None:
            own = slice(*np.searchsorted(pairs.rows, (first, last)))
            at = pairs.rows[own] - first
            losses[own], above = _losses_and_ranks(scores, at, pairs.classes[own], self._by_rank)
            reciprocal[own] = 1.0 / (1.0 + above[at])

        weights.map_scores(task, self._X, self._n_jobs)
        log_loss = float(np.average(losses, weights=pairs.weight))
        if not self._by_rank:
            return log_loss, log_loss
        first = np.unique(pairs.rows, return_index=True)[1]
        weight = np.maximum.reduceat(pairs.weight, first)
        mean = float(np.average(reciprocal[first], weights=weight))
        return 1.0 - mean + _LOG_LOSS_SHARE * log_loss, log_loss

    def keep_scores(self, weights: ClassWeights) -> None:
        """Keep the scores by `weights` of the instances to calibrate on."""
        self._scores = weights.scores(self._calibrated_X, self._n_jobs)

    def calibrate(self) -> Calibration:
        """Return the calibration of the probabilities of the scores that were kept last."""
        pairs = self._calibrated
        if not len(pairs.rows):
            return Calibration()
        column = np.searchsorted(self._seen, pairs.classes)
        column[~np.isin(pairs.classes, self._seen)] = -1
        return fit_calibration(self._scores[:, self._seen], pairs.rows, column, pairs.weight)


def _instances_of(X: CsrRows, pairs: ClassPairs) -> tuple[CsrRows, ClassPairs]:
    """Return the instances of pairs, in the order of these, and the pairs with rows of them."""
    rows = pairs.rows[np.sort(np.unique(pairs.rows, return_index=True)[1])]
    place = np.zeros(X.shape[0], np.int64)
    place[rows] = np.arange(len(rows))
    return X.take(rows), replace(pairs, rows=place[pairs.rows])


def _losses_and_ranks(
    scores: np.ndarray, at: np.ndarray, classes: np.ndarray, by_rank: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the log-loss of pairs, and the rank of the best class of each row of scores, from 0.

    Classes of the same row do not count; the ranks are 0 if not `by_rank`.
    """
    normalisers = np.empty(len(scores))
    own = scores[at, classes]
    log_normalisers(scores, normalisers)
    losses = normalisers[at] - own
    if not by_rank:
        return losses, np.zeros(len(scores), np.int64)
    best = np.full(len(scores), -np.inf, scores.dtype)
    np.maximum.at(best, at, own)
    scores[at, classes] = -np.inf
    return losses, (scores >= best[:, None]).sum(axis=1)


class RateTrial(NamedTuple):
    """A training at some learning rate.

    Attributes
    ----------
    rate : float
        In units of 1 / (total weight).
    losses, log_losses : tuple of float
        Criterion and log-loss of the held-out pairs after each epoch; () if it diverged.
    """

    rate: float
    losses: tuple[float, ...] = ()
    log_losses: tuple[float, ...] = ()

    @property
    def loss(self) -> float:
        """The lowest steady loss; inf if the trial diverged."""
        return min(self._steady(), default=np.inf)

    @property
    def n_epochs(self) -> int:
        """Number of epochs until then."""
        return int(np.argmin(self._steady())) + 1

    def _steady(self) -> np.ndarray:
        """Return the highest loss of each epoch and its neighbours.

        Where steps are nearly too long, the loss jumps up and down, and another training of as many
        epochs may well end at a peak.
        """
        losses = np.array((-np.inf, *self.losses, -np.inf))
        return np.maximum(np.maximum(losses[:-2], losses[1:-1]), losses[2:])


def find_rate(
    problem: SoftmaxProblem,
    start: SoftmaxState,
    settings: SgdSettings,
    decay: float | str,
    max_iter: int,
    tol: float,
    held_out: HeldOutPairs,
    n_jobs: int | None,
    show: Callable[[RateTrial], None],
    rate: float | None = None,
) -> tuple[RateTrial, bool]:
    """Return the trial with the lowest held-out loss, and whether its rate is the last tried.

    Parameters
    ----------
    problem, start, settings
        Of each trial; `start` is copied, except that hard negatives may be set.
    decay, max_iter, tol
        Parameters of the estimator.
    held_out : HeldOutPairs
        Decides, and keeps the scores of the best trial after its last epoch.
    n_jobs : int or None
        Threads.
    show : callable
        Called with each trial.
    rate : float, default=None
        The only rate to try.
    """
    if settings.n_hard and _is_search_due(0, start):  # the same for all trials
        search_hard_negatives(problem, start, settings, n_jobs)

    def run(rate: float, target: float) -> RateTrial:
        """Train until the loss no longer falls, or cannot fall below `target`."""
        state = start.copy()
        schedule = Schedule(rate, decay)
        losses: list[tuple[float, float]] = []
        try:
            for epoch in range(max_iter):
                train_epoch(problem, state, settings, schedule, epoch, n_jobs)
                losses.append(held_out(state.weights))
                criteria = [criterion for criterion, _ in losses]
                if _has_stalled(criteria, tol):
                    break
                if _is_out_of_reach(target, criteria, schedule, max_iter):
                    break
            state.fold()
            require_finite(state.V, np.array(losses))
            trial = RateTrial(rate, *zip(*losses, strict=True))
            if trial.loss <= target:
                held_out.keep_scores(state.weights)
        except FloatingPointError:
            trial = RateTrial(rate)
        show(trial)
        return trial

    if rate is not None:
        return run(rate, np.inf), False
    first = first_rate(problem)
    trials: dict[float, RateTrial] = {}

    def run_power(power: float, best: RateTrial | None = None) -> RateTrial:
        least = min((trial.loss for trial in trials.values()), default=np.inf)
        trials[power] = run(first * _power_of_ten(power), least)
        return trials[power]

    def is_better(trial: RateTrial, other: RateTrial) -> bool:
        return other.loss - trial.loss > _GAIN * max(1.0, trial.loss)

    grid = range(-REACH, REACH + 1)
    last, _ = climb_rates(run_power, is_better, lambda trial: trial.loss == np.inf, grid, 0)
    best = min(trials, key=lambda power: (trials[power].loss, power))
    if not settings.n_hard and trials[best].loss < np.inf:
        # With hard negatives, the loss depends less on the rate.
        sides = [side for side in (-1, 1) if best + side in trials]
        side = min(sides, key=lambda side: trials[best + side].loss)
        run_power(best + 0.5 * side)
        best = min(trials, key=lambda power: (trials[power].loss, power))
    return trials[best], abs(last) == REACH


def _power_of_ten(power: float) -> float:
    """Return 10 to a power, or 3 times the one below half a power."""
    whole = float(np.floor(power))
    return 10.0**whole * (1.0 if power == whole else 3.0)


def first_rate(problem: SoftmaxProblem) -> float:
    """Return the power of ten that "auto" tries first.

    A step moves the scores of its instance by the rate times its squared norm, so the best rate
    does not depend on the unit of X.
    """
    square = problem.mean_squared_norm()
    return float(10.0 ** -np.round(np.log10(square)) if square > 0 else 1.0)


def _has_stalled(losses: list[float], tol: float) -> bool:
    """Whether the last epochs did not lower the loss by more than `tol`."""
    lowest, n_worse = np.inf, 0
    for loss in losses:
        n_worse = 0 if loss < lowest - tol else n_worse + 1
        lowest = min(lowest, loss)
    return n_worse >= _PATIENCE


def _is_out_of_reach(target: float, losses: list[float], schedule: Schedule, max_iter: int) -> bool:
    """Whether the loss would end above `target` if it fell on as fast as in its last epoch.

    In proportion to the learning rate: loss curves flatten out.
    """
    done = len(losses)
    if done < 2 or target == np.inf:
        return False
    fall = max(0.0, losses[-2] - losses[-1])
    return losses[-1] - fall * schedule.following(done, max_iter - done) > target
