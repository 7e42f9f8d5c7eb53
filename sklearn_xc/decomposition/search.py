"""Which learning rate, and how many epochs: by instances that have no part in the trial.

::

    training set -> some instances held out, the others trained on
    rates         two epochs at each: the middle one, its neighbours, and on while that helps, or,
                  downwards, while none is of use
    epochs        from the start at the best rate, until held-out instances are ranked no better
    -> a rate and a number of epochs, for a fit of all instances
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sklearn_xc.decomposition._finite import NotFiniteError
from sklearn_xc.decomposition._settings import Settings
from sklearn_xc.decomposition._training_set import TrainingSet
from sklearn_xc.decomposition.fitting import Fitting
from sklearn_xc.decomposition.start import EMBEDDED, start_course
from sklearn_xc.metrics.gains import ranking_gains
from sklearn_xc.mips import ExactIndex
from sklearn_xc.parallel.progress import Progress
from sklearn_xc.parallel.tasks import Task
from sklearn_xc.solvers.moving_rows import entry_places
from sklearn_xc.solvers.schedule import Schedule

#: Rates that may be tried. The search begins in the middle, at 1 with a hidden layer, at 0.3
#: without, at 0.1 for proxies among the instances, and ends where neither neighbour is better, if
#: what it has found is of use.
RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_FIRST = {"hidden layer": 1.0, "no layer": 0.3, "proxies": 0.1}
#: Epochs of a trial of a rate. After one, fast rates are ahead that end behind.
_EPOCHS = 2
#: Instances held out: the fraction asked for, but more of few instances, and not more than these.
#: With fewer than the least there is nothing to be told by them.
_ENOUGH, _MOST, _LEAST = 1000, 2000, 50
#: Instances that a rate is tried on, at most.
_MOST_TRIED = 100_000
#: Labels that held-out instances are ranked by: nDCG at 5.
_K = 5
#: Standard errors of a difference: by which a rate must be better than another, and at which it is
#: given up after its first epoch, or ahead of frequencies far enough to be of use.
_ERRORS, _FAR = 2.0, 3.0
#: By how much of themselves scores must rise for training to go on.
_WORTH = 0.01
#: Weights of so many bytes may be kept beside others, to go on from.
_MOST_BYTES = 2**26


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
    progress : Progress
        Is told of the trials.
    is_dense : bool
        Whether instances are their own vectors, at least at the start.
    """

    def __init__(
        self, settings: Settings, training: TrainingSet, seed: int, fraction: float,
        progress: Progress | None = None, *, is_dense: bool,
    ) -> None:  # fmt: skip
        self._settings, self._training, self.seed = settings, training, seed
        self._progress = Progress(Task(), None, "trial", None) if progress is None else progress
        n = len(training.rows)
        n_held = min(max(int(fraction * n), min(_ENOUGH, n // 3)), _MOST)
        kind = "no layer" if is_dense else "hidden layer"
        has_proxies = settings.metric != "inner_product"
        self._first = _FIRST["proxies" if is_dense and has_proxies else kind]
        self.is_possible = n_held >= _LEAST
        order = np.random.default_rng((seed, 7)).permutation(n)
        self._held = training.part(np.sort(order[:n_held]))
        self._own = _labels_of(training, self._held.rows)
        self._kept = order[n_held:]
        self._winner: Trial | None = None

    def best_rate(self, max_iter: int) -> tuple[float, bool]:
        """Return the best rate, and whether it is at the edge of those that may be tried.

        Another rate than the one before it must rank the held-out instances better, by more than
        twice the standard error of the difference. Where training diverges, or is of no use, steps
        may be too long: smaller rates are tried, too.
        """
        if not self.is_possible:
            return self._first, False
        part = self._training.part(np.sort(self._kept[:_MOST_TRIED]))
        n_epochs = min(_EPOCHS, max_iter)
        untrained = self._gains_untrained(part)
        best = self._tried(self._first, part, n_epochs)
        for way in (-1,) if best.has_diverged else (1, -1):
            place = RATES.index(self._first) + way
            while 0 <= place < len(RATES):
                trial = self._tried(RATES[place], part, n_epochs, best)
                are_lost = best.has_diverged and trial.has_diverged
                is_better = are_lost or self._is_ahead(trial.gains[-1], best.gains[-1], _ERRORS)
                goes_on = is_better or (way < 0 and not self._is_useful(best, *untrained))
                best = trial if is_better else best
                del trial  # two are in memory at a time, not three
                if not goes_on:
                    break
                place += way
            if best.rate != self._first:
                break
        self._winner = best if best.may_stay else None
        return best.rate, best.rate in (RATES[0], RATES[-1])

    def best_epochs(self, rate: float, max_iter: int, patience: int) -> Choice:
        """Return after how many epochs at a rate the held-out instances were ranked best.

        The last of equally good ones; it is over when so many epochs in a row were hardly better.
        """
        if not self.is_possible:
            return Choice(rate, max_iter)
        trial = self._winner
        if trial is None or trial.rate != rate or len(trial.part.rows) < len(self._kept):
            part = self._training.part(np.sort(self._kept))
            trial = Trial(self._settings, part, rate, self)
        self._winner, task = None, self._progress.begin()
        while len(trial.gains) < max_iter and not _is_over(trial.scores, patience):
            trial.epoch()
        scores = trial.scores
        n_epochs = len(scores) - int(np.argmax(scores[::-1]))
        best = f"best after {n_epochs} epochs, of {len(scores)} run"
        self._progress.end(task, "diverged" if trial.has_diverged else best)
        if trial.has_diverged:  # the fit itself says so
            return Choice(rate, max_iter)
        return Choice(rate, n_epochs, scores)

    def _tried(
        self, rate: float, part: TrainingSet, n_epochs: int, rival: "Trial | None" = None
    ) -> "Trial":
        """Return a trial of a rate, which ends early where it is far behind another one."""
        trial, task = Trial(self._settings, part, rate, self), self._progress.begin()
        while len(trial.gains) < n_epochs and not trial.has_diverged:
            if rival is not None and self._is_far_behind(trial, rival):
                break
            trial.epoch()
        score = f"held-out nDCG@{_K} {trial.scores[-1]:.4f}"
        ended = "diverged" if trial.has_diverged else score
        text = f"learning rate {rate:g}, epoch {len(trial.gains)}: {ended}"
        self._progress.end(task, text)
        return trial

    def gains(self, labels: np.ndarray) -> np.ndarray:
        """Return nDCG@5 of each held-out instance whose best labels these are."""
        return ranking_gains(labels, *self._own)

    @property
    def held(self) -> TrainingSet:
        """Return the instances held out."""
        return self._held

    def _gains_untrained(self, part: TrainingSet) -> tuple[np.ndarray, np.ndarray]:
        """Return nDCG@5 of each held-out instance before there is any training.

        If labels are ranked by their frequency, and by the proxies that training starts from; both
        are the former where there are none.
        """
        _, labels = _labels_of(part, part.rows)
        counts = np.bincount(labels, minlength=part.n_labels)
        most = np.argsort(-counts, kind="stable")[:_K]
        by_frequency = self.gains(np.tile(most, (len(self._held.rows), 1)))
        if self._settings.metric == "inner_product":
            return by_frequency, by_frequency
        fitting = _begun(self._settings, part, self.seed)
        found = _best_labels(fitting, part, self._held.rows, self._settings.n_workers)
        return by_frequency, self.gains(found)

    def _is_useful(self, trial: "Trial", by_frequency: np.ndarray, at_start: np.ndarray) -> bool:
        """Tell whether a trial is far ahead of frequencies, and no worse than its start."""
        gains = trial.gains[-1]
        is_worse = self._is_ahead(at_start, gains, _ERRORS)
        return self._is_ahead(gains, by_frequency, _FAR) and not is_worse

    def _is_far_behind(self, trial: "Trial", rival: "Trial") -> bool:
        """Tell whether a trial is given up for what its rival had after as many epochs."""
        at = len(trial.gains) - 1
        ahead = rival.gains[at : at + 1] if at >= 0 else []
        return any(self._is_ahead(gains, trial.gains[at], _FAR) for gains in ahead)

    def _is_ahead(self, gains: np.ndarray, others: np.ndarray, n_errors: float) -> bool:
        """Tell whether gains are larger on average, by so many errors of the difference."""
        weight = self._held.weight / self._held.weight.sum()
        difference = gains - others
        mean = float(weight @ difference)
        return mean > n_errors * np.sqrt(weight**2 @ (difference - mean) ** 2)


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
        self._fitting = _begun(settings, part, search.seed)
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
        weights = self._fitting.weights_now()
        n_bytes = sum(values.nbytes for values in weights if values is not None)
        return not self.has_diverged and n_bytes <= _MOST_BYTES

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


def _is_over(scores: np.ndarray, patience: int) -> bool:
    """Tell whether none of the last epochs was better than all before them by a hundredth."""
    if len(scores) <= patience:
        return False
    before = scores[:-patience].max()
    return scores[-patience:].max() <= (1 + _WORTH) * before


def _begun(settings: Settings, part: TrainingSet, seed: int) -> Fitting:
    """Return a training of a part of the instances that has not made a step."""
    return Fitting(settings, part, start_course(settings, part, seed), seed)


def _labels_of(training: TrainingSet, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels of some rows of X in CSR form: bounds, and labels."""
    indptr = training.sets.indptr
    at, bounds = entry_places(indptr[rows], np.diff(indptr)[rows])
    return bounds, training.sets.labels[at]


def _best_labels(
    fitting: Fitting, part: TrainingSet, rows: np.ndarray, n_workers: int
) -> np.ndarray:
    """Return the best labels of some rows of X, of those that have a training instance."""
    weights = fitting.weights_now()
    is_seen = np.zeros(len(weights.coef), bool)
    is_seen[_labels_of(part, part.rows)[1]] = True
    offsets = np.where(is_seen, weights.intercept, -np.inf).astype(weights.coef.dtype)
    index = ExactIndex(n_workers, offsets)
    index.build(np.ascontiguousarray(weights.coef))
    n_together = max(1, EMBEDDED // weights.coef.shape[1])
    k, found = min(_K, int(is_seen.sum())), []
    for first in range(0, len(rows), n_together):
        V = fitting.embedded(rows[first : first + n_together])
        answer = index.query(V, k)
        if not np.isfinite(answer.scores).all():
            raise NotFiniteError
        found.append(answer.labels)
    return np.concatenate(found)
