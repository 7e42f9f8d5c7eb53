"""The learning rate and the number of epochs, by instances that are held out of trials.

::

    training set -> instances held out, the others trained on
    rates         two epochs at the first rate and its neighbours, and on while that helps
    epochs        from the start at the best rate, until held-out instances are ranked no better
    -> a rate and a number of epochs, for a fit of all instances
"""

from typing import NamedTuple

import numpy as np

from sklearn_xc._parallel.progress import Progress
from sklearn_xc._training.rate_search import climb_rates
from sklearn_xc.decomposition._training_set import TrainingConfig, TrainingSet
from sklearn_xc.decomposition._weights import CHUNK_VALUES, frequencies_of, initial_weights
from sklearn_xc.decomposition.training import NotFiniteError, Trainer
from sklearn_xc.metrics.gains import ranking_gains
from sklearn_xc.search import ExactIndex

#: Rates that may be tried, and the first one: with a hidden layer, without, and of proxies without.
RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
FIRST_HIDDEN, FIRST_DENSE, FIRST_PROXIES = 1.0, 0.3, 0.1
#: Epochs of a trial of a rate: after one, fast rates lead that fall behind later.
_EPOCHS = 2
#: Instances held out: a tenth, but at least 1,000 or a third, and at most 2,000. With fewer than 50
#: the first rate and all epochs are taken.
_SHARE, _ENOUGH, _MOST, _LEAST = 0.1, 1000, 2000, 50
#: Most instances that rates are tried on.
_MOST_TRIED = 100_000
#: Held-out instances are ranked by nDCG at 5.
_K = 5
#: Another rate must be better by this many standard errors of the difference; its trial ends early
#: if it is worse by _FAR of them.
_ERRORS, _FAR = 2.0, 3.0
#: Training ends when no score of the last _PATIENCE epochs is better by this factor.
_WORTH, _PATIENCE = 0.01, 2


class RateAndEpochs(NamedTuple):
    """A learning rate and a number of epochs, and nDCG@5 after each epoch run if there was any."""

    rate: float
    n_epochs: int
    scores: np.ndarray | None = None


def choose_rate_and_epochs(
    config: TrainingConfig, training: TrainingSet, max_iter: int, progress: Progress
) -> RateAndEpochs:
    """Return the best learning rate and number of epochs of at most `max_iter`."""
    first = _first_rate(config, training.instances.shape[1])
    n = len(training.rows)
    n_held = min(max(int(_SHARE * n), min(_ENOUGH, n // 3)), _MOST)
    if n_held < _LEAST:
        return RateAndEpochs(first, max_iter)
    order = np.random.default_rng((config.seed, 7)).permutation(n)
    held = training.part(np.sort(order[:n_held]))
    kept = order[n_held:]

    def run(position: int, best: Trial | None) -> Trial:
        rate = RATES[position]
        task = progress.begin()
        trial = Trial(config, training.part(np.sort(kept[:_MOST_TRIED])), held, rate)
        for _ in range(min(_EPOCHS, max_iter)):
            trial.run_epoch()
            if trial.has_diverged or (best is not None and best.was_far_ahead_of(trial)):
                break
        progress.end(task, f"learning rate {rate:g}: held-out nDCG@{_K} {trial.scores[-1]:.4f}")
        return trial

    positions = range(len(RATES))
    _, best = climb_rates(
        run, Trial.is_ahead_of, lambda trial: trial.has_diverged, positions, RATES.index(first)
    )
    task = progress.begin()
    if len(kept) > _MOST_TRIED:
        best = Trial(config, training.part(np.sort(kept)), held, best.rate)
    while len(best.gains) < max_iter and not best.is_over():
        best.run_epoch()
    scores = best.scores
    n_epochs = len(scores) - int(np.argmax(scores[::-1]))
    progress.end(task, f"best after {n_epochs} epochs, of {len(scores)} run")
    if best.has_diverged:  # the fit raises the error
        return RateAndEpochs(best.rate, max_iter)
    return RateAndEpochs(best.rate, n_epochs, scores)


def _first_rate(config: TrainingConfig, n_features: int) -> float:
    is_identity = config.metric == "mahalanobis" and config.hidden_dim >= n_features
    if config.hidden_dim and not is_identity:
        return FIRST_HIDDEN
    return FIRST_PROXIES if config.has_proxies else FIRST_DENSE


class Trial:
    """A training on a part of the instances at some rate.

    Attributes
    ----------
    gains : list of ndarray
        nDCG@5 of each held-out instance after each epoch; -1 if training diverged.
    """

    def __init__(
        self, config: TrainingConfig, part: TrainingSet, held: TrainingSet, rate: float
    ) -> None:
        self.rate, self._held, self.has_diverged = rate, held, False
        weights = initial_weights(config, part, frequencies_of(part))
        self._trainer = Trainer(config, part, weights, rate)
        self._own = held.sets.of_rows(held.rows)
        self._is_seen = np.zeros(part.n_labels, bool)
        self._is_seen[part.sets.of_rows(part.rows)[1]] = True
        self.gains: list[np.ndarray] = []

    def run_epoch(self) -> None:
        """Train for an epoch, and rank the held-out instances."""
        try:
            self._trainer.epoch()
            self.gains.append(ranking_gains(self._best_labels(), *self._own))
        except NotFiniteError:
            self.has_diverged = True
            self.gains.append(np.full(len(self._held.rows), -1.0))

    @property
    def scores(self) -> np.ndarray:
        """Mean nDCG@5 after each epoch."""
        return np.array([np.average(gains, weights=self._held.weight) for gains in self.gains])

    def is_ahead_of(self, other: "Trial") -> bool:
        """Return whether the last score is significantly better than that of another trial."""
        return self._is_better(self.gains[-1], other.gains[-1], _ERRORS)

    def was_far_ahead_of(self, other: "Trial") -> bool:
        """Return whether the score was far better after as many epochs as the other has run."""
        n = len(other.gains)
        return n <= len(self.gains) and self._is_better(self.gains[n - 1], other.gains[-1], _FAR)

    def _is_better(self, gains: np.ndarray, others: np.ndarray, n_errors: float) -> bool:
        weight = self._held.weight / self._held.weight.sum()
        difference = gains - others
        mean = float(weight @ difference)
        return mean > n_errors * np.sqrt(weight**2 @ (difference - mean) ** 2)

    def is_over(self) -> bool:
        """Return whether the last epochs were hardly better than all before."""
        scores = self.scores
        if self.has_diverged or len(scores) <= _PATIENCE:
            return self.has_diverged
        return scores[-_PATIENCE:].max() <= (1 + _WORTH) * scores[:-_PATIENCE].max()

    def _best_labels(self) -> np.ndarray:
        """Return the best trained labels of the held-out instances."""
        coef, intercept, _ = self._trainer.weights()
        offsets = np.where(self._is_seen, intercept, -np.inf).astype(coef.dtype)
        index = ExactIndex(self._trainer.config.n_workers, offsets)
        index.build(np.ascontiguousarray(coef))
        rows = self._held.rows
        step = max(1, CHUNK_VALUES // coef.shape[1])
        k = min(_K, int(self._is_seen.sum()))
        found = []
        for first in range(0, len(rows), step):
            answer = index.query(self._trainer.embedded(rows[first : first + step]), k)
            if not np.isfinite(answer.scores).all():
                raise NotFiniteError
            found.append(answer.labels)
        return np.concatenate(found)
