"""Training in pieces, for the decomposition experiment: measuring in between is not timed."""

import copy
from collections.abc import Iterator
from time import process_time
from typing import Any

import numpy as np
from sklearn.base import clone

from sklearn_xc import DecompMIPSClassifier
from sklearn_xc._seeds import draw_seed
from sklearn_xc.decomposition.course import Weights, with_intercepts
from sklearn_xc.decomposition.fitting import Fitting
from sklearn_xc.decomposition.start import resume_course, start_course
from sklearn_xc.decomposition.training import Trainer
from sklearn_xc.gradients import Batch, SetLoss
from sklearn_xc.gradients.exact import Exact
from sklearn_xc.parallel.row_ranges import one_blas_thread

#: Instances whose exact gradients are computed at a time: they have room for all labels.
_TOGETHER = 8
#: Instances of a warm-up.
_WARM_UP = 200
#: Instances visited between looks at the clock.
_VISITS_A_LOOK = 1000


class Training:
    """A fit that goes as far as it is told.

    Epochs, mini-batches and rates are those of ``DecompMIPSClassifier.fit``.

    Parameters
    ----------
    model : DecompMIPSClassifier
        Not fitted; its ``optimizer`` is "sgd".
    X, y : array-like or sparse
        What to fit.

    Attributes
    ----------
    model : DecompMIPSClassifier
        See ``answer``.
    fitting : Fitting
        Of the model.
    n_visits : int
        Instances of an epoch.
    cpu_s : float
        CPU seconds of all steps so far, index builds among them.
    diverged : bool
        Whether a loss was not finite; then there are no further steps.
    """

    def __init__(self, model: DecompMIPSClassifier, X: Any, y: Any) -> None:
        self.model, self.cpu_s, self.diverged = model, 0.0, False
        training = model._check(X, y, None, None, False)
        settings, seed = model._settings(), draw_seed(model.random_state)
        course = start_course(settings, training, seed)
        model._keep_targets(training.targets)
        self.fitting = Fitting(settings, training, course, seed)
        self.n_visits = training.epoch_visits
        self._n_passes, self._left = 0, np.empty(0, np.int64)

    @property
    def trainer(self) -> Trainer:
        """Holds what moves."""
        return self.fitting.trainer

    @property
    def visits(self) -> int:
        """Instances visited so far."""
        return self.trainer.visits

    @property
    def label_vectors(self) -> np.ndarray:
        """The label vectors after the last step, intercepts in the last column if there are.

        Those of the model are averages.
        """
        self.trainer.weights.apply_scale()
        return self.trainer.weights.values

    @property
    def averages(self) -> np.ndarray:
        """The label vectors of the model, likewise."""
        model = self.model
        if self.fitting.course.is_trained:
            return with_intercepts(model.coef_, model.intercept_)
        return model.coef_

    @property
    def loss(self) -> SetLoss:
        """What is trained for."""
        return self.fitting.settings.loss

    @property
    def n_labels(self) -> int:
        """Rows of W."""
        return len(self.trainer.weights.values)

    def advance(self, n: int) -> None:
        """Visit n further instances, or a few more, so that all is as in a fit."""
        size = self.trainer.n_ahead
        while n > 0 and not self.diverged:
            rows = self.next_rows(-(-n // size) * size)
            with one_blas_thread():
                began = process_time()
                loss = self.trainer.run(rows)
                self.cpu_s += process_time() - began
            self.diverged = not np.isfinite(loss)
            n -= len(rows)

    def answer(self) -> DecompMIPSClassifier:
        """Return the model as it would be if the fit ended here."""
        began = process_time()
        self.trainer.averages.look(self.visits)
        self.cpu_s += process_time() - began
        if self.fitting.settings.average:
            weights, course = self.fitting.settle()
        else:  # which uses up the weights that training goes on with
            for rows in (self.trainer.weights, *self.trainer.layer.moving):
                rows.apply_scale()
            now = self.fitting.weights_now()
            weights = Weights(*(None if values is None else values.copy() for values in now))
            course = copy.copy(self.fitting.course)
        self.model._keep(self.fitting, weights, course, is_further=False)
        return self.model

    def next_rows(self, n: int) -> np.ndarray:
        """Return the next n instances, or fewer at the end of an epoch."""
        if not len(self._left):
            seed = self.fitting.seed
            self._left = self.fitting.training.order((seed, 4, self._n_passes))
            self.trainer.begin_pass(seed, self._n_passes)
            self._n_passes += 1
        rows, self._left = self._left[:n], self._left[n:]
        return rows

    def fork(self, **parameters: Any) -> "Training":
        """Return a training that continues from here with other parameters and without sampling."""
        self.model._keep(self.fitting, *self.fitting.settle(), is_further=False)
        other, model = copy.copy(self), self.model
        other.model = copy.copy(model).set_params(**parameters, sampled_epochs=0.0)
        settings, training = other.model._settings(), self.fitting.training
        weights = Weights(model.coef_, model.intercept_, model.feature_embedding_)
        how = settings, model._course, weights, training
        course, weights = resume_course(*how, is_further=False)
        other.fitting = Fitting(settings, training, course, self.fitting.seed, weights)
        other.cpu_s = 0.0
        return other

    def batch(self, rows: np.ndarray) -> Batch:
        """Return training instances."""
        queries = self.trainer.weights.scaled(self.trainer.layer.forward(rows))
        return self.trainer.sets.batch(rows, queries)

    def some_rows(self, n: int) -> np.ndarray:
        """Return n training instances, always the same."""
        return np.random.default_rng(0).permutation(self.fitting.training.rows)[:n]


def warm_up(model: DecompMIPSClassifier, X: Any, y: Any) -> None:
    """Take a few steps with a clone on some instances, so that compiling is not measured later."""
    few = Training(clone(model).set_params(sampled_epochs=0.5), X[:_WARM_UP], y[:_WARM_UP])
    few.advance(few.n_visits)


def held_out(X: np.ndarray, y: np.ndarray, n: int, W: np.ndarray) -> Batch:
    """Return the first n of some dense instances of one class each, as queries for W."""
    X = X[:n]
    if W.shape[1] > X.shape[1]:
        X = with_intercepts(X, np.ones(len(X)))
    indptr = np.arange(len(X) + 1, dtype=np.int64)
    return Batch(np.ascontiguousarray(X), indptr, y[:n].astype(np.int32), np.ones(len(X)))


def parts(batch: Batch, n: int) -> Iterator[Batch]:
    """Yield the instances, n at a time."""
    for first in range(0, len(batch.V), n):
        yield batch.part(first, min(first + n, len(batch.V)))


def mean_loss(W: np.ndarray, batch: Batch, loss: SetLoss, team: Any) -> float:
    """Return the mean loss over all labels."""
    method, total = Exact(loss), 0.0
    for part in parts(batch, _TOGETHER):
        total += float(method.of(W, part, None, team).losses.sum())
    return total / float(batch.weight.sum())


def train_state(
    X: np.ndarray, y: np.ndarray, *, rate: float, sampled: float, gradient: str, further: float,
    most_s: float,
) -> tuple[Training, str]:  # fmt: skip
    """Return a model that is trained to some point, and how it was.

    Parameters
    ----------
    X, y : ndarray
        Dense instances, one class each.
    rate : float
        At the beginning; it falls as in a fit.
    sampled, further : float
        Epochs of sampled steps, and then of those with `gradient`.
    gradient : {"exact", "decomp_mips", "mips"}
    most_s : float
        CPU seconds after which either ends.

    Returns
    -------
    training : Training
    words : str
        How it was trained.
    """
    model = DecompMIPSClassifier(gradient="sampled", learning_rate=rate, random_state=0)
    training = Training(model, X, y)
    _advance(training, int(sampled * len(X)), most_s)
    n_sampled = training.visits
    training = training.fork(gradient=gradient)
    _advance(training, int(further * len(X)), most_s)
    epochs = n_sampled / len(X), (training.visits - n_sampled) / len(X)
    words = (
        f"W after {epochs[0]:.3g} epochs of sampled steps and {epochs[1]:.3g} of {gradient} ones, "
        f"at the rate {rate:g}, halved after an epoch"
    )
    return training, words


def _advance(training: Training, n: int, most_s: float) -> None:
    """Visit n instances, or fewer in so many CPU seconds."""
    aim = training.visits + n
    while training.visits < aim and training.cpu_s < most_s and not training.diverged:
        training.advance(min(_VISITS_A_LOOK, aim - training.visits))
