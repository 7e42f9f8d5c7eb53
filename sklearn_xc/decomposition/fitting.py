"""A training under way: from instances down to steps, and back up to the weights of a model."""

import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sklearn_xc.decomposition._finite import NotFiniteError
from sklearn_xc.decomposition._guide import Guide
from sklearn_xc.decomposition._intercept import intercept_rate
from sklearn_xc.decomposition._settings import Settings
from sklearn_xc.decomposition._training_set import TrainingSet
from sklearn_xc.decomposition.course import Course, Weights, copy_of, without_intercepts
from sklearn_xc.decomposition.training import Trainer
from sklearn_xc.solvers.averaging import CourseAverages
from sklearn_xc.solvers.layers import HiddenLayer, IdentityLayer
from sklearn_xc.solvers.moving_rows import MovingProxies, MovingRows

#: n_candidates=None: this share of the labels, but at least so many.
_SHARE, _LEAST_CANDIDATES = 0.01, 64
#: Training instances whose vectors an index is tested with.
_QUERIES = 64


class EpochReport(NamedTuple):
    """What an epoch has done, a row of ``fit_report_``.

    Attributes
    ----------
    loss : float
        Mean over the visits, as seen in the steps: over the labels that were considered.
    learning_rate : float
        At the beginning of the epoch.
    index_recall : float
        Of the last index built in the epoch; NaN where none was.
    seconds : float
    """

    loss: float
    learning_rate: float
    index_recall: float
    seconds: float


class Fitting:
    """Training from some course on.

    Parameters
    ----------
    settings : Settings
    training : TrainingSet
    course : Course
        Its arrays take steps in place.
    seed : int
    weights : Weights or None
        Of the model, whose averages go on.

    Attributes
    ----------
    settings, training, course, seed
        As above.
    trainer : Trainer
    n_candidates : int
        Given, or chosen.
    """

    def __init__(
        self,
        settings: Settings,
        training: TrainingSet,
        course: Course,
        seed: int,
        weights: Weights | None = None,
    ) -> None:
        self.settings, self.training, self.course, self.seed = settings, training, course, seed
        least = max(_LEAST_CANDIDATES, int(np.ceil(_SHARE * training.n_labels)))
        self.n_candidates = min(training.n_labels, settings.n_candidates or least)
        label_rows, layer = self._label_rows(), self._layer()
        self.trainer = Trainer(
            layer, label_rows, training.sets, self._guide(label_rows, layer), settings.schedule,
            course.epoch_of_all, settings.sampled_epochs * course.epoch, course.visits,
            self._averages([label_rows, *layer.moving], weights),
            float(settings.alpha) / course.epoch_of_all, settings.batch_size, settings.n_workers,
        )  # fmt: skip

    def epoch(self) -> EpochReport:
        """Go once through the instances.

        Raises
        ------
        NotFiniteError
            If training diverges.
        """
        course, trainer, training = self.course, self.trainer, self.training
        began, rate, n_builds = time.perf_counter(), trainer.rate(), trainer.guide.n_builds
        order = training.order((self.seed, 4, course.n_passes))
        trainer.begin_pass(self.seed, course.n_passes)
        total = trainer.run(order)
        if not np.isfinite(total):
            raise NotFiniteError
        trainer.averages.look(trainer.visits)
        if not self.settings.average:
            for rows in (trainer.weights, *trainer.layer.moving):
                rows.apply_scale()
        course.n_passes += 1
        loss = total / float(training.sets.weight[order].sum())
        recall = trainer.guide.recall if trainer.guide.n_builds > n_builds else None
        seconds = time.perf_counter() - began
        return EpochReport(loss, rate, np.nan if recall is None else recall, seconds)

    def weights_now(self) -> Weights:
        """Return the weights of the model if training ended now: to be read, and not kept."""
        trainer, has_intercept = self.trainer, self.course.is_trained
        if self.settings.average:
            rows, intercept = trainer.averages.means, trainer.averages.intercept
        else:
            rows = [moving.vectors for moving in (trainer.weights, *trainer.layer.moving)]
            intercept = trainer.weights.values[:, -1] if has_intercept else None
        if self._has_proxies:
            intercept = MovingProxies.offsets_of(rows[0])
        elif intercept is None:
            intercept = np.zeros(len(rows[0]), rows[0].dtype)
        return Weights(rows[0], intercept, rows[1] if len(rows) > 1 else None)

    def embedded(self, rows: np.ndarray) -> np.ndarray:
        """Return what the scores of some rows of X are linear in, by the weights of now."""
        features, layer = self.weights_now().features, self.trainer.layer
        if features is not None:
            assert isinstance(layer, HiddenLayer)
            layer = layer.with_vectors(features)
        return layer.forward(rows)

    def copied(self) -> tuple[Weights, Course]:
        """Return copies of the weights of now, and of the course that goes on from them."""
        coef, intercept, features = self.weights_now()
        weights = Weights(np.array(coef, order="C"), intercept.copy(), copy_of(features))
        course = replace(
            self.course,
            label_rows=None,
            feature_rows=None,
            label_squares=copy_of(self.course.label_squares),
            feature_squares=copy_of(self.course.feature_squares),
            scales=(1.0, 1.0),
            is_averaged=self.settings.average,
            visits=self.trainer.visits,
            n_drawn=self.trainer.guide.n_drawn,
            last_look=self.trainer.averages.last_look,
            guide=None,
        )
        return weights, course

    def settle(self) -> tuple[Weights, Course]:
        """Return the weights of the model, and where training stands."""
        course, trainer = self.course, self.trainer
        moving = [trainer.weights, *trainer.layer.moving]
        course.scales = moving[0].scale, moving[-1].scale
        course.is_averaged = self.settings.average
        course.visits, course.n_drawn = trainer.visits, trainer.guide.n_drawn
        course.last_look = trainer.averages.last_look
        rows = trainer.averages.means if self.settings.average else [m.values for m in moving]
        coef, features = rows[0], rows[1] if len(rows) > 1 else None
        if self._has_proxies and self.settings.average:
            intercept = MovingProxies.offsets_of(coef)
        elif course.is_trained and self.settings.average:
            assert trainer.averages.intercept is not None
            intercept = trainer.averages.intercept
        elif course.is_trained:
            coef, intercept = without_intercepts(rows[0])
        else:
            intercept = np.zeros(len(coef), coef.dtype)
        if not self.settings.average:
            course.label_rows = course.feature_rows = None
        return Weights(coef, intercept, features), course

    @property
    def _has_proxies(self) -> bool:
        """Return whether scores are distances: intercepts then follow from the vectors."""
        return self.course.metric != "inner_product"

    def _label_rows(self) -> MovingRows:
        course = self.course
        W = course.label_rows
        assert W is not None
        if self._has_proxies:
            return MovingProxies(W, course.label_squares, course.scales[0])
        rate = intercept_rate(len(W)) if course.is_trained else None
        return MovingRows(W, course.label_squares, course.scales[0], rate)

    def _layer(self) -> IdentityLayer | HiddenLayer:
        course, instances = self.course, self.training.instances
        assert course.label_rows is not None
        dtype = course.label_rows.dtype
        if course.feature_rows is None:
            return IdentityLayer(instances.astype(dtype))
        # A stored zero would take part in the draw of what is left out.
        sparse = instances.to_csr().astype(dtype).without_zeros()
        vectors = MovingRows(course.feature_rows, course.feature_squares, course.scales[1])
        return HiddenLayer(sparse, vectors, self.settings.dropout)

    def _guide(self, label_rows: MovingRows, layer: IdentityLayer | HiddenLayer) -> Guide:
        """Return one that goes on from the last partial fit, with its index, if that serves."""
        guide, is_hidden = self.course.guide, self.course.feature_rows is not None
        wanted = self.settings, self.n_candidates, label_rows.vectors.shape[1], is_hidden
        if guide is not None and guide.serves(*wanted):
            guide = guide.following(label_rows.values)
        else:
            guide = Guide(*wanted, self.seed, self.course.n_drawn)
        rng = np.random.default_rng((self.seed, 3))
        drawn = rng.permutation(self.training.rows)[:_QUERIES]
        guide.queries = lambda: label_rows.scaled(layer.forward(drawn))
        return guide

    def _averages(self, moving: list[MovingRows], weights: Weights | None) -> CourseAverages:
        """Return the averages, on from those of the model if it has any."""
        course, intercept = self.course, None
        has_intercept = course.is_trained and not self._has_proxies
        if not self.settings.average:
            return CourseAverages([])
        if course.is_averaged:
            assert weights is not None
            of_model = weights.coef, weights.features
            means = [np.array(rows, order="C") for rows in of_model if rows is not None]
            intercept = copy_of(weights.intercept) if has_intercept else None
        else:
            means = [rows.vectors * rows.values.dtype.type(rows.scale) for rows in moving]
            intercept = moving[0].values[:, -1].copy() if has_intercept else None
            course.last_look = course.visits
        pairs = list(zip(moving, means, strict=True))
        return CourseAverages(pairs, course.last_look, intercept)
