"""Which learning rate, and how many epochs: by instances that have no part in the trial.

::

    training set -> some instances held out, the others trained on
    rates         an epoch at each: the middle one, its neighbours, and on while that helps
    epochs        on at the best rate, until held-out instances are ranked no better, or rise so
                  fast that all epochs will be worth it
    -> a rate and a number of epochs, for a fit of all instances
"""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sklearn_xc.decomposition._finite import NotFiniteError
from sklearn_xc.decomposition._settings import Settings
from sklearn_xc.decomposition._training_set import TrainingSet
from sklearn_xc.decomposition.course import Course
from sklearn_xc.decomposition.fitting import Fitting
from sklearn_xc.decomposition.start import start_course
from sklearn_xc.metrics.gains import ranking_gains
from sklearn_xc.mips import ExactIndex
from sklearn_xc.parallel.progress import say
from sklearn_xc.solvers.moving_rows import entry_places
from sklearn_xc.solvers.schedule import Schedule

#: Rates that may be tried. The search begins in the middle, at 1 with a hidden layer and at 0.3
#: without, and ends where neither neighbour is better.
RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_FIRST = {"hidden layer": 1.0, "no layer": 0.3}
#: Instances held out: the fraction asked for, but more of few instances, and not more than these.
#: With fewer than the least there is nothing to be told by them.
_ENOUGH, _MOST, _LEAST = 1000, 2000, 50
#: The share of the instances that is trained on, at most: a search costs less than the fit.
_PART = 3 / 4
#: Instances that a rate is tried on, at most.
_MOST_TRIED = 100_000
#: Labels that held-out instances are ranked by: nDCG at 5.
_K = 5
#: Standard errors of a difference, by which a rate must be better than another, and an epoch than
#: the one before to be gone by.
_ERRORS = 2.0
#: By how much of themselves scores must rise for training to go on.
_WORTH = 0.01
#: Epochs after which rises tell how long training is worth it; in the second half of all epochs
#: there is little to be saved by that.
_TELLING = 3
#: Weights of so many bytes may be kept beside others, to start or to go on from.
_MOST_BYTES = 2**26
#: Values of embedded instances that are held at a time.
_TOGETHER = 2**23


class Choice(NamedTuple):
    """What a search has come to.

    Attributes
    ----------
    rate : float
    n_epochs : int
    scores : ndarray of shape (n_run,) or None
        nDCG@5 of the held-out instances after each epoch at this rate; None if epochs were not
        asked for, or if there are too few instances.
    is_edge : bool
        Whether the rate is the smallest or the largest of those that may be tried.
    """

    rate: float
    n_epochs: int
    scores: np.ndarray | None = None
    is_edge: bool = False


class Search:
    """Trials on a part of the instances, judged by the others.

    Parameters
    ----------
    settings : Settings
        The rate of its schedule counts only where none is searched for.
    training : TrainingSet
        All instances.
    seed : int
        Of the fit: of what is held out, and of the trials.
    fraction : float
        Of the instances, to hold out.
    is_dense : bool
        Whether instances are their own vectors.
    """

    def __init__(
        self, settings: Settings, training: TrainingSet, seed: int, fraction: float, *,
        is_dense: bool,
    ) -> None:  # fmt: skip
        self._settings, self._training, self.seed = settings, training, seed
        n = len(training.rows)
        n_held = min(max(int(fraction * n), min(_ENOUGH, n // 3)), _MOST)
        self._first = _FIRST["no layer" if is_dense else "hidden layer"]
        self.is_possible = n_held >= _LEAST
        order = np.random.default_rng((seed, 7)).permutation(n)
        self._held = training.part(np.sort(order[:n_held]))
        rows, sets = self._held.rows, training.sets
        at, bounds = entry_places(sets.indptr[rows], np.diff(sets.indptr)[rows])
        self._own = bounds, sets.labels[at]
        n_kept = min(n - n_held, math.ceil(_PART * n))
        self._kept = order[n_held : n_held + n_kept]
        self._winner: Trial | None = None
        self._started: tuple[TrainingSet, Course] | None = None

    def best_rate(self) -> tuple[float, bool]:
        """Return the best rate, and whether it is at the edge of those that may be tried.

        Another rate than the one before it must rank the held-out instances better after an epoch,
        by more than twice the standard error of the difference.
        """
        start = place = RATES.index(self._first)
        if not self.is_possible:
            return self._first, False
        part = self._training.part(np.sort(self._kept[:_MOST_TRIED]))
        best = self._tried(RATES[place], part)
        for way in (1, -1):
            while 0 <= place + way < len(RATES):
                trial = self._tried(RATES[place + way], part)
                if not self._is_ahead(trial.gains[0], best.gains[0]):
                    break
                place, best = place + way, trial
            if place != start:
                break
        self._winner = best if best.may_stay else None
        return RATES[place], place in (0, len(RATES) - 1)

    def best_epochs(self, rate: float, max_iter: int, patience: int) -> Choice:
        """Return after how many epochs at a rate the held-out instances were ranked best.

        The last of equally good ones; it is over when so many epochs in a row were hardly better.
        All of them, `max_iter`, where scores rise so fast that they will rise until then.
        """
        if not self.is_possible:
            return Choice(rate, max_iter)
        trial = self._winner
        if trial is None or trial.rate != rate or len(trial.part.rows) < len(self._kept):
            trial = Trial(self._settings, self._training.part(np.sort(self._kept)), rate, self)
        self._winner = None
        will_rise = False
        while not (will_rise or len(trial.gains) == max_iter or _is_over(trial.scores, patience)):
            trial.epoch()
            will_rise = self._will_rise(trial, max_iter, patience)
        if trial.has_diverged:  # the fit itself says so
            return Choice(rate, max_iter)
        scores = trial.scores
        n_epochs = max_iter if will_rise else len(scores) - int(np.argmax(scores[::-1]))
        if self._settings.verbose:
            say(self._settings.name, f"best after {n_epochs} epochs, of {len(scores)} run")
        return Choice(rate, n_epochs, scores)

    def _tried(self, rate: float, part: TrainingSet) -> "Trial":
        """Return a trial of a rate after an epoch."""
        trial = Trial(self._settings, part, rate, self)
        trial.epoch()
        if self._settings.verbose:
            score = f"held-out nDCG@{_K} {trial.scores[-1]:.4f}"
            ended = "diverged" if trial.has_diverged else score
            say(self._settings.name, f"learning rate {rate:g}, epoch 1: {ended}")
        return trial

    def _will_rise(self, trial: "Trial", max_iter: int, patience: int) -> bool:
        """Tell whether scores will rise by what is worth an epoch, until all epochs are run.

        Rises shrink about as the square of the epoch, the rate and the share of new steps in the
        averages both as 1 / epoch. The last rise must be beyond doubt.
        """
        k = len(trial.gains)
        if not _TELLING <= k <= max_iter / 2:
            return False
        before, now = trial.scores[-2:]
        worth = _WORTH / patience * now
        is_clear = self._is_ahead(trial.gains[-1], trial.gains[-2])
        return is_clear and (now - before) * (k / max_iter) ** 2 > worth

    def start(self, settings: Settings, part: TrainingSet) -> Course:
        """Return where trials on a part start, made once if it is small."""
        if self._started is not None and self._started[0] is part:
            return self._started[1].copied()
        course = start_course(settings, part, self.seed)
        squares = course.label_squares, course.feature_squares
        is_small = _n_bytes(course.label_rows, course.feature_rows, *squares) <= _MOST_BYTES
        self._started = (part, course.copied()) if is_small else None
        return course

    def gains(self, labels: np.ndarray) -> np.ndarray:
        """Return nDCG@5 of each held-out instance whose best labels these are."""
        return ranking_gains(labels, *self._own)

    @property
    def held(self) -> TrainingSet:
        """Return the instances held out."""
        return self._held

    def _is_ahead(self, gains: np.ndarray, others: np.ndarray) -> bool:
        """Tell whether gains are larger on average, by twice the error of the difference."""
        weight = self._held.weight / self._held.weight.sum()
        difference = gains - others
        mean = float(weight @ difference)
        return mean > _ERRORS * np.sqrt(weight**2 @ (difference - mean) ** 2)


class Trial:
    """A training on a part of the instances at some rate, and the gains after each epoch.

    Parameters
    ----------
    settings : Settings
    part : TrainingSet
    rate : float
    search : Search
        Knows what is held out.

    Attributes
    ----------
    gains : list of ndarray
        nDCG@5 of each held-out instance after each epoch; -1 where training diverged.
    has_diverged : bool
    """

    def __init__(self, settings: Settings, part: TrainingSet, rate: float, search: Search) -> None:
        schedule = Schedule(rate, settings.schedule.decay)
        self.rate, self.part, self._search = rate, part, search
        settings = replace(settings, schedule=schedule, verbose=0)
        self._fitting = Fitting(settings, part, search.start(settings, part), search.seed)
        self.gains: list[np.ndarray] = []
        self.has_diverged = False

    @property
    def scores(self) -> np.ndarray:
        """Return the mean gain after each epoch."""
        weight = self._search.held.weight
        return np.array([np.average(gains, weights=weight) for gains in self.gains])

    @property
    def may_stay(self) -> bool:
        """Return whether the weights are small enough to be kept beside those of another trial."""
        return not self.has_diverged and _n_bytes(*self._fitting.weights_now()) <= _MOST_BYTES

    def epoch(self) -> None:
        """Train for an epoch."""
        held, n_workers = self._search.held, self._fitting.settings.n_workers
        try:
            self._fitting.epoch()
            labels = _best_labels(self._fitting, self.part, held.rows, n_workers)
        except NotFiniteError:
            self.has_diverged = True
            self.gains.append(np.full(len(held.rows), -1.0))
        else:
            self.gains.append(self._search.gains(labels))


def _n_bytes(*arrays: np.ndarray | None) -> int:
    return sum(values.nbytes for values in arrays if values is not None)


def _is_over(scores: np.ndarray, patience: int) -> bool:
    """Tell whether none of the last epochs was better than all before them by a hundredth."""
    if len(scores) <= patience:
        return False
    before = scores[:-patience].max()
    return scores[-patience:].max() <= (1 + _WORTH) * before


def _best_labels(
    fitting: Fitting, part: TrainingSet, rows: np.ndarray, n_workers: int
) -> np.ndarray:
    """Return the best labels of some rows of X, of those that have a training instance."""
    weights = fitting.weights_now()
    indptr = part.sets.indptr
    at, _ = entry_places(indptr[part.rows], np.diff(indptr)[part.rows])
    is_seen = np.zeros(len(weights.coef), bool)
    is_seen[part.sets.labels[at]] = True
    offsets = np.where(is_seen, weights.intercept, -np.inf).astype(weights.coef.dtype)
    index = ExactIndex(n_workers, offsets)
    index.build(np.ascontiguousarray(weights.coef))
    n_together = max(1, _TOGETHER // weights.coef.shape[1])
    k, found = min(_K, int(is_seen.sum())), []
    for first in range(0, len(rows), n_together):
        V = fitting.embedded(rows[first : first + n_together])
        answer = index.query(V, k)
        if not np.isfinite(answer.scores).all():
            raise NotFiniteError
        found.append(answer.labels)
    return np.concatenate(found)
