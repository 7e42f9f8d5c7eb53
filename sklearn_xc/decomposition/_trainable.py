"""The way of the data through a fit: from arrays that are checked to fitted attributes.

::

    check -> training set -> rate and epochs -> start, or resume -> epochs -> weights -> counts
    -> threshold -> report
"""

import warnings
from typing import Any

import numpy as np

from sklearn_xc._checks import (
    check_further_targets,
    check_rows,
    check_targets,
    check_weights,
    require_labels,
)
from sklearn_xc._given_vectors import GivenVectors
from sklearn_xc._seeds import draw_seed
from sklearn_xc._state import sharing
from sklearn_xc.decomposition._finite import explained, require_finite_model
from sklearn_xc.decomposition._guide import RECALL_K, Guide
from sklearn_xc.decomposition._metric import require_differences
from sklearn_xc.decomposition._model import HiddenLayerModel
from sklearn_xc.decomposition._settings import Settings
from sklearn_xc.decomposition._threshold import threshold_of
from sklearn_xc.decomposition._training_set import TrainingSet, merge_instances
from sklearn_xc.decomposition.course import Course, Weights
from sklearn_xc.decomposition.fitting import EpochReport, Fitting
from sklearn_xc.decomposition.search import Choice, Search
from sklearn_xc.decomposition.start import (
    embedding_dim_for,
    require_room,
    resume_course,
    start_course,
)
from sklearn_xc.exceptions import ConvergenceWarning
from sklearn_xc.gradients import Gradient, SetLoss, make_gradient
from sklearn_xc.losses import LabelSetLoss, make_label_set_loss
from sklearn_xc.mips import MipsIndex, make_index
from sklearn_xc.mips.recall import warn_of_recall
from sklearn_xc.parallel.progress import Fit
from sklearn_xc.parallel.threads import count_threads
from sklearn_xc.solvers.schedule import Schedule

#: What nDCG@5 of the held-out instances gains in the last epoch, where a warning says that there
#: should be more of them.
_STILL_RISING = 0.01


class TrainableModel(HiddenLayerModel):
    """A model that steps on mini-batches train; parameters as of `DecompMIPSClassifier`."""

    loss: str | LabelSetLoss
    gradient: str | Gradient
    index: str | MipsIndex | None
    n_candidates: int | None
    embedding_dim: int | str | None
    embedding_init: Any
    metric: str
    fit_intercept: bool
    dropout: float
    alpha: float
    optimizer: str
    learning_rate: float | str
    decay: float | str
    batch_size: int
    max_iter: int
    average: bool
    sampled_epochs: float
    min_recall: float
    early_stopping: bool | str
    validation_fraction: float
    n_iter_no_change: int
    random_state: Any
    verbose: int

    embedding_dim_: int
    fit_report_: dict[str, np.ndarray]
    index_recall_: float | None
    learning_rate_: float
    validation_scores_: np.ndarray | None
    n_iter_: int
    _course: Course

    def _check(
        self, X: Any, y: Any, sample_weight: Any, classes: Any, goes_on: bool
    ) -> TrainingSet:
        """Return what is trained on, of weights that are known if training goes on."""
        self._settings()
        if goes_on:
            self._require_same_shape()
        instances = check_rows(self, X, reset=not goes_on)
        n = instances.shape[0]
        targets = (check_further_targets if goes_on else check_targets)(self, y, n, classes)
        weight = check_weights(self, sample_weight, n)
        training = merge_instances(
            type(self).__name__, instances, targets, np.ones(n) if weight is None else weight
        )
        require_labels(self, targets, training.rows)
        return training

    def _train(
        self,
        training: TrainingSet,
        n_epochs: int,
        given: tuple[Any, Any, Any] | None,
        *,
        goes_on: bool,
        is_partial: bool,
    ) -> None:
        """Train, and set all fitted attributes; callbacks are told of the X, y, weight `given`."""
        seed = draw_seed(self.random_state)
        searches = self._searches(goes_on=goes_on, is_partial=is_partial)
        fit = Fit.untold(self) if given is None else Fit(self, *given, n_stages=1 + any(searches))
        if not goes_on:
            require_room(self._settings(), training, 1 + searches[0])
        choice = self._choose(training, n_epochs, seed, *searches, fit)
        self.learning_rate_, self.validation_scores_ = choice.rate, choice.scores
        settings, n_epochs = self._settings(), choice.n_epochs
        is_further = goes_on and is_partial
        weights = None
        if goes_on:
            weights = Weights(self.coef_, self.intercept_, self.feature_embedding_)
            course, weights = resume_course(
                settings, self._course, weights, training, is_further=is_further
            )
        else:
            course = start_course(settings, training, seed)
            self._keep_targets(training.targets)
        fitting = Fitting(settings, training, course, seed, weights)
        with explained(settings.name, self.learning_rate_, training):
            epochs = self._run(fitting, n_epochs, fit, is_further=is_further)
            self._keep(fitting, *fitting.settle(), is_further=is_further)
        self._report(epochs, is_further=is_further)
        self._keep_guide(fitting.trainer.guide, is_partial=is_partial)
        fit.end()
        self._warn_of_choice(choice)

    def _searches(self, *, goes_on: bool, is_partial: bool) -> tuple[bool, bool]:
        """Return whether the rate, and the number of epochs, are what held-out rows say.

        Where training goes on, the rate is that of before, and all epochs are run.
        """
        is_auto = isinstance(self.learning_rate, str)
        stops = is_auto if isinstance(self.early_stopping, str) else bool(self.early_stopping)
        return is_auto and not goes_on, stops and not is_partial and not goes_on

    def _choose(
        self,
        training: TrainingSet,
        n_epochs: int,
        seed: int,
        is_auto: bool,
        stops: bool,
        fit: Fit,
    ) -> Choice:
        """Return the rate and the number of epochs: the parameters, or what held-out rows say."""
        settings = self._settings()
        rate = settings.schedule.rate
        if not (is_auto or stops):
            return Choice(rate, n_epochs)
        progress = fit.parts("trial", None, stage="search")
        n_features = training.instances.shape[1]
        dim = embedding_dim_for(settings, training.share_of_nonzeros, n_features)
        is_identity = settings.metric == "mahalanobis" and dim >= n_features
        search = Search(
            settings, training, seed, self.validation_fraction, progress,
            is_dense=is_identity or not dim,
        )  # fmt: skip
        is_edge = False
        with explained(settings.name, rate, training):
            if is_auto:
                rate, is_edge = search.best_rate(n_epochs)
            if not stops:
                progress.close()
                return Choice(rate, n_epochs, is_edge=is_edge)
            choice = search.best_epochs(rate, n_epochs, self.n_iter_no_change)
        progress.close()
        return choice._replace(is_edge=is_edge)

    def _warn_of_choice(self, choice: Choice) -> None:
        """Warn where the best rate, or the best number of epochs, may lie beyond those tried."""
        name, scores = type(self).__name__, choice.scores
        if choice.is_edge:
            warnings.warn(
                f"{name}: learning_rate='auto' came to {choice.rate:g}, the last of the rates that "
                "it tries: a better one may lie beyond. Scale X (sklearn.preprocessing.normalize), "
                "or set learning_rate.",
                ConvergenceWarning,
                stacklevel=6,
            )
        if scores is not None and len(scores) == self.max_iter > 1:
            gain = float(scores[-1] - scores[:-1].max())
            if gain > _STILL_RISING:
                warnings.warn(
                    f"{name}: held-out instances were still ranked better, by {gain:.2g} of "
                    f"nDCG@5, in the last of max_iter={self.max_iter} epochs. Raise max_iter or "
                    "learning_rate.",
                    ConvergenceWarning,
                    stacklevel=6,
                )

    def _run(
        self, fitting: Fitting, n_epochs: int, fit: Fit, *, is_further: bool
    ) -> list[EpochReport]:
        """Return what the epochs have done; there are fewer of them if a callback asks for it."""
        progress = fit.parts("epoch", n_epochs, stage="training")
        epochs: list[EpochReport] = []

        def model_now() -> dict[str, Any]:
            """Return the attributes of a model whose training had ended now, in copies."""
            model = sharing(self, dict(vars(self)))
            model._keep(fitting, *fitting.copied(), is_further=is_further)
            model._report(epochs, is_further=is_further)
            model.index_recall_ = fitting.trainer.guide.recall
            return vars(model)

        for _ in range(n_epochs):
            task = progress.begin()
            epochs.append(fitting.epoch())
            recall = fitting.trainer.guide.recall
            found = "" if recall is None else f", recall@{RECALL_K} of the index {recall:.3f}"
            if progress.end(task, f"loss {epochs[-1].loss:.4g}{found}", model_now):
                break
        progress.close()
        return epochs

    def _keep(
        self, fitting: Fitting, weights: Weights, course: Course, *, is_further: bool
    ) -> None:
        """Set all that answers need; a label seen in any call is never unseen again.

        Raises
        ------
        NotFiniteError
            If weights, or scores of the training instances, are not finite.
        """
        training = fitting.training
        self.coef_, self.intercept_, self.feature_embedding_ = weights
        features = self.feature_embedding_
        self.embedding_dim_ = 0 if features is None else features.shape[1]
        self.n_candidates_, self._course = fitting.n_candidates, course
        self.__dict__.pop("_search_index", None)  # of weights that have moved
        self._count_instances(training.targets, training.given_weight, is_further=is_further)
        is_seen = self.label_counts_ > 0
        course.is_seen = is_seen if course.is_seen is None else course.is_seen | is_seen
        self._unseen_labels = np.flatnonzero(~course.is_seen)
        require_finite_model(self, training)
        self.threshold_ = threshold_of(self, training, fitting.seed)

    def _report(self, epochs: list[EpochReport], *, is_further: bool) -> None:
        """Set what the epochs have done, after those of earlier calls."""
        columns = zip(EpochReport._fields, zip(*epochs, strict=True), strict=True)
        report = {name: np.array(values) for name, values in columns}
        if is_further:
            before = self.fit_report_
            report = {name: np.append(before[name], report[name]) for name in report}
        self.fit_report_, self.n_iter_ = report, len(report["loss"])

    def _keep_guide(self, guide: Guide, *, is_partial: bool) -> None:
        """Keep what was built for the next partial fit, and warn of a low recall."""
        guide.queries = None
        self._course.guide = guide if is_partial else None
        self.index_recall_ = guide.recall
        if self.index_recall_ is not None:
            k = min(RECALL_K, self.n_candidates_)
            how = type(self).__name__, self.index_recall_, self.min_recall, k, self.n_candidates_
            warn_of_recall(*how, "or set gradient='exact'")

    # What the parameters mean

    def _settings(self) -> Settings:
        """Return the parameters, checked, with names resolved."""
        name, decay = type(self).__name__, self.decay
        if isinstance(decay, str) and decay == "auto":
            decay = 1.0 if self.optimizer == "adagrad" else "1/t"
        make_index(self._index_kind(), who=f"{name}: index")
        is_auto = isinstance(self.learning_rate, str)
        rate = self.__dict__.get("learning_rate_", 1.0) if is_auto else float(self.learning_rate)
        loss = make_label_set_loss(self.loss, f"{name}: loss")
        require_differences(loss, self.metric, name)
        embedding_dim, embedding_init = self._embedding()
        return Settings(
            name=name,
            loss=SetLoss.of(loss),
            gradient=make_gradient(self.gradient, f"{name}: gradient"),
            index=self._index_kind(),
            n_candidates=self.n_candidates,
            embedding_dim=embedding_dim,
            embedding_init=embedding_init,
            feature_names=self.__dict__.get("feature_names_in_"),
            metric=self.metric,
            fit_intercept=self.fit_intercept,
            dropout=0.0 if self.metric == "mahalanobis" else self.dropout,
            alpha=self.alpha,
            optimizer=self.optimizer,
            schedule=Schedule(rate, decay),
            batch_size=self.batch_size,
            average=self.average,
            sampled_epochs=self.sampled_epochs,
            allowed_bytes=self._allowed_bytes(),
            n_workers=count_threads(self.n_jobs, f"{name}: n_jobs"),
            verbose=self.verbose,
        )

    def _embedding(self) -> tuple[int | str | None, GivenVectors | None]:
        """Return the dimension of the hidden layer, and where it starts; checked."""
        name, dim = type(self).__name__, self.embedding_dim
        if self.embedding_init is None:
            return dim, None
        given = GivenVectors.read(self.embedding_init, f"{name}: embedding_init")
        if self.metric == "mahalanobis":
            raise ValueError(
                f"{name}: embedding_init is for metric='inner_product' or 'euclidean'. Got "
                "metric='mahalanobis', whose hidden layer starts as the identity."
            )
        if not isinstance(dim, str) and dim != given.dim:
            raise ValueError(
                f"{name}: embedding_dim={dim!r} does not go with embedding_init, whose vectors "
                f"have dimension {given.dim}. Set it to {given.dim}, or to 'auto'."
            )
        return given.dim, given

    def _index_kind(self) -> str | MipsIndex:
        if self.index is not None:
            return self.index
        return make_gradient(self.gradient, f"{type(self).__name__}: gradient").default_index

    def _require_same_shape(self) -> None:
        """Raise an error for parameters that weights of another call do not fit."""
        before: dict[str, Any] = {"optimizer": self._course.optimizer}
        before["fit_intercept"] = self._course.has_intercept
        before["metric"] = self._course.metric
        has_own_dim = self.metric == "mahalanobis" and not self.embedding_dim
        if not (isinstance(self.embedding_dim, str) or has_own_dim):
            before["embedding_dim"] = self.embedding_dim_
        for name, value in before.items():
            now = getattr(self, name)
            if (now or 0) != value:
                raise ValueError(
                    f"{type(self).__name__}: {name}={now!r} does not go with the weights to go on "
                    f"from, which were trained with {name}={value!r}. Set it back, or fit anew "
                    "with warm_start=False."
                )
