"""Mini-batch training of label vectors and the hidden layer, with averages and an index."""

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sklearn_xc._input.data import read_only
from sklearn_xc._parallel.threads import Team
from sklearn_xc._training.kernels.row_moves import blend
from sklearn_xc.decomposition._training_set import TrainingConfig, TrainingSet
from sklearn_xc.decomposition._weights import Weights, intercept_rate
from sklearn_xc.decomposition.batch_sgd import Step, take_steps
from sklearn_xc.decomposition.gradients import SampledGradient
from sklearn_xc.decomposition.gradients.protocol import GradientMethod, GradientTask
from sklearn_xc.decomposition.gradients.scored import SampledLabels
from sklearn_xc.decomposition.layers import HiddenLayer, make_layer
from sklearn_xc.decomposition.moving_rows import MovingProxies, MovingRows, with_intercepts
from sklearn_xc.search import copy_index, make_index

#: Epochs with labels drawn at random: at first all labels score alike, and a search is useless.
_SAMPLED_EPOCHS = 0.2
#: Instances searched for at once; twice as many are hardly faster.
_AHEAD = 40
#: The index is built again when this many times as many rows have moved as at the last build.
_BUILD_AGAIN = 1.3
#: Averages are updated this many times while as many instances are visited as there are rows.
#: They then cost next to nothing, and hardly differ from averages over all steps.
_UPDATES = 8
#: The weights after t visits count as ``t ** (_POWER - 1)``.
_POWER = 4
#: The recall of an index is measured at 10, for the vectors of 64 training instances.
RECALL_K, _QUERIES = 10, 64


class NotFiniteError(ArithmeticError):
    """Weights, losses or scores are not finite: training diverged."""


class EpochReport(NamedTuple):
    """A row of ``fit_report_``; the recall is NaN if no index was built in the epoch."""

    loss: float
    learning_rate: float
    index_recall: float
    seconds: float


class Trainer:
    """Epochs of mini-batch steps from given weights on.

    Parameters
    ----------
    config : TrainingConfig
    training : TrainingSet
    weights : Weights
        Initial weights; the arrays may be changed.
    rate : float
        Learning rate; falls as ``rate / (1 + epochs)``.
    epochs_done : float
        Epochs of earlier fits.

    Attributes
    ----------
    recall : float or None
        Of the last index built.
    """

    def __init__(
        self,
        config: TrainingConfig,
        training: TrainingSet,
        weights: Weights,
        rate: float,
        epochs_done: float = 0.0,
    ) -> None:
        self.config, self.training, self.recall = config, training, None
        self._rate = rate
        self._n_passes = int(epochs_done)
        self._epoch_visits = int(training.visits.sum())
        self._visits = int(epochs_done * self._epoch_visits)
        self.layer = make_layer(training.instances, weights.features, config.dropout)
        self.rows = self._make_label_rows(weights)
        self._averages = WeightAverages([self.rows, *self.layer.moving], self._visits)
        index = copy_index(config.index)
        task = GradientTask(
            config.loss,
            lambda: make_index(index, caller=f"{config.name}: index"),
            config.n_candidates,
            self.rows.vectors.shape[1],
            config.hidden_dim > 0,
            config.seed,
        )
        self._method: GradientMethod = config.gradient.start(task)
        is_sampled = isinstance(self._method, SampledLabels)
        self._early = self._method if is_sampled else SampledGradient().start(task)
        self._n_moved, self._build_at = 0, 0

    @property
    def epochs_done(self) -> float:
        """Epochs so far, those of earlier fits included."""
        return self._visits / self._epoch_visits

    def epoch(self) -> EpochReport:
        """Visit the training set once, in random order.

        Raises
        ------
        NotFiniteError
            If training diverges.
        """
        began, rate, self._was_built = time.perf_counter(), self._learning_rate(), False
        seed = self.config.seed
        order = self.training.order((seed, 4, self._n_passes))
        self.layer.begin_pass(np.random.default_rng((seed, 6, self._n_passes)))
        self._n_passes += 1
        total = 0.0
        with Team(self.config.n_workers) as team, np.errstate(over="ignore", invalid="ignore"):
            for step in self._steps(order, team):
                total += step.loss
                if not np.isfinite(total):
                    raise NotFiniteError
        self._averages.update(self._visits)
        loss = total / float(self.training.sets.weight[order].sum())
        recall = self.recall if self._was_built else np.nan
        return EpochReport(loss, rate, recall, time.perf_counter() - began)

    def weights(self) -> Weights:
        """Return the averaged weights, as views."""
        coef = self._averages.means[0]
        features = None
        if self.layer.moving:
            features = self._averages.means[1]
        if self.config.has_proxies:
            intercept = MovingProxies.offsets_of(coef)
        elif self.config.has_intercept:
            intercept = self._averages.intercept
        else:
            intercept = np.zeros(len(coef), coef.dtype)
        return Weights(coef, intercept, features)

    def embedded(self, rows: np.ndarray) -> np.ndarray:
        """Return the embeddings of rows of X by the averaged weights."""
        if isinstance(self.layer, HiddenLayer):
            return self.layer.with_vectors(self._averages.means[1]).forward(rows)
        return self.layer.forward(rows)

    def _make_label_rows(self, weights: Weights) -> MovingRows:
        if self.config.has_proxies:
            return MovingProxies(weights.coef)
        if not self.config.has_intercept:
            return MovingRows(weights.coef)
        values = with_intercepts(weights.coef, weights.intercept)
        return MovingRows(values, intercept_rate(len(values)))

    def _learning_rate(self) -> float:
        return self._rate / (1.0 + self.epochs_done)

    def _steps(self, order: np.ndarray, team: Team) -> Iterator[Step]:
        """Take the steps of all mini-batches; yield after each."""
        size = self.config.batch_size
        n_ahead = max(1, _AHEAD // size) * size
        for first in range(0, len(order), n_ahead):
            rows = order[first : first + n_ahead]
            while len(rows):
                method = self._next_method()
                n = len(rows) if method.looks_ahead else size
                how = method, rows[:n], size, self._learning_rate, team
                for step in take_steps(self.layer, self.rows, self.training.sets, *how):
                    self._visits += step.n
                    self._n_moved += step.n_moved
                    self._averages.visited(self._visits)
                    yield step
                rows = rows[n:]

    def _next_method(self) -> GradientMethod:
        """Return the gradient method of the next step, its index rebuilt if it is time."""
        if self._visits < _SAMPLED_EPOCHS * self._epoch_visits or self._early is self._method:
            return self._early
        if self._n_moved >= self._build_at:
            W = self.rows.values
            n = len(self.rows.values)
            self._method.build(W)
            self._build_at = int(_BUILD_AGAIN * self._n_moved) + n
            self._was_built = self._method.searches
            if self._was_built:
                rng = np.random.default_rng((self.config.seed, 3))
                drawn = rng.permutation(self.training.rows)[:_QUERIES]
                V = self.rows.queries(self.layer.forward(drawn))
                self.recall = self._method.recall(W, V, min(RECALL_K, self.config.n_candidates))
        return self._method


class WeightAverages:
    """Averages of moving matrices, in which later values count more.

    A step moves label vectors along what instances have in common much farther than along what
    distinguishes their labels, so that the labels visited last score best; averages are free of
    that. The weights after t visits count as ``t ** 3``: polynomial-decay averaging [1]_ with eta
    = 3, which forgets the start.

    Parameters
    ----------
    moving : sequence of MovingRows
        Averaged from their current values on. The last column of the first one is averaged
        separately, if it is an intercept.
    visits : int
        Instances visited so far.

    Attributes
    ----------
    means : list of ndarray of float of shape (n_rows, dim)
    intercept : ndarray of float of shape (n_rows,)
        Average of the last column of the first matrix.

    References
    ----------
    .. [1] O. Shamir and T. Zhang, "Stochastic gradient descent for non-smooth optimization:
       convergence results and optimal averaging schemes", ICML 2013.
    """

    def __init__(self, moving: Sequence[MovingRows], visits: int = 0) -> None:
        self._moving, self._updated = moving, visits
        self.means = [np.array(rows.vectors, order="C") for rows in moving]
        self.intercept = moving[0].values[:, -1].copy()
        self._interval = sum(len(mean) for mean in self.means) / _UPDATES

    def visited(self, visits: int) -> None:
        """Update the averages if it is time."""
        if visits - self._updated >= self._interval:
            self.update(visits)

    def update(self, visits: int) -> None:
        """Update the averages."""
        if visits == self._updated:
            return
        weight = 1.0 - (self._updated / visits) ** _POWER
        for moving, mean in zip(self._moving, self.means, strict=True):
            blend(mean, read_only(moving.values), mean.dtype.type(weight))
        last = self._moving[0].values[:, -1]
        self.intercept += self.intercept.dtype.type(weight) * (last - self.intercept)
        self._updated = visits
