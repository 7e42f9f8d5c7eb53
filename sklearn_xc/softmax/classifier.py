"""Parameters and training of both softmax estimators: all but the step."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np

from sklearn_xc._input.arguments import draw_seed
from sklearn_xc._input.checks import check_instances, check_targets, with_pair_weight
from sklearn_xc._input.data import CsrRows, LabelFrequencies
from sklearn_xc._input.sklearn_private import Interval, StrOptions, fit_context
from sklearn_xc._parallel.memory import require_bytes
from sklearn_xc._parallel.progress import Fit
from sklearn_xc._state.fitted import fits_in_one_step, shallow_copy
from sklearn_xc._warnings import warn
from sklearn_xc._weights.class_weights import ClassWeights, scores_bytes
from sklearn_xc.exceptions import ConvergenceWarning
from sklearn_xc.softmax._model import SoftmaxModel
from sklearn_xc.softmax.calibration import Calibration
from sklearn_xc.softmax.pairs import (
    ClassPairs,
    are_ranked,
    check_pairs,
    exact_normalisers,
    hold_out,
    joined_frequencies,
    label_frequencies,
    log_frequencies,
    merge_equal,
)
from sklearn_xc.softmax.problem import SoftmaxProblem
from sklearn_xc.softmax.sgd import SgdSettings
from sklearn_xc.softmax.start import start_at_means
from sklearn_xc.softmax.state import SoftmaxState, require_finite
from sklearn_xc.softmax.training import (
    HeldOutPairs,
    RateTrial,
    Schedule,
    find_rate,
    n_calibrated,
    train_epoch,
)

#: Hard negatives of a step with ``n_hard_negatives="auto"``.
_HARD = 5
#: Columns of ``fit_report_``.
_REPORT = ("loss", "log_loss", "learning_rate", "seconds")
#: Training pairs whose log-loss is reported without early stopping.
_MONITORED = 256
#: Trainings at a tenth of the rate each, where the one before has failed.
_ATTEMPTS = 4
#: Bytes of a fit for each row, pair and class: hashes, orders, u, counts.
_PER_ROW, _PER_PAIR, _PER_CLASS = 64, 200, 200
_MEMORY_ADVICE = (
    "Hash the features into fewer (HashingVectorizer, FeatureHasher), select some (SelectKBest, "
    "min_df), pass X as float32, or leave rare classes out."
)


class SoftmaxClassifier(SoftmaxModel):
    """Linear softmax model trained by sampled classes; a subclass defines ``_settings``.

    A subclass also stores its parameters in ``__init__``.
    """

    #: The end of the message on a learning rate at which training diverges.
    _diverging_advice = "."

    _parameter_constraints: dict = {  # noqa: RUF012
        "alpha": [Interval(Real, 0, None, closed="left")],
        "n_negatives": [Interval(Integral, 1, None, closed="left")],
        "n_hard_negatives": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "fit_intercept": ["boolean"],
        "sampling": [StrOptions({"uniform", "frequency"})],
        "init": [StrOptions({"means", "zero"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "decay": [Interval(Real, 0, 1, closed="right"), StrOptions({"1/t"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "early_stopping": ["boolean", StrOptions({"auto"})],
        "validation_fraction": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="neither")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "label_names": ["array-like", None],
        "top_k": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "max_memory": [Interval(Real, 0, None, closed="neither"), str, None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    alpha: float
    n_hard_negatives: int | str
    fit_intercept: bool
    init: str
    learning_rate: float | str
    decay: float | str
    max_iter: int
    early_stopping: bool | str
    tol: float
    warm_start: bool
    n_jobs: int | None
    random_state: Any
    intercept_: np.ndarray
    learning_rate_: float
    fit_report_: dict[str, np.ndarray]
    n_iter_: int

    def _settings(self, problem: SoftmaxProblem, seed: int) -> SgdSettings:
        """Return the settings of the steps, except for intercepts."""
        raise NotImplementedError  # this class is not an estimator by itself

    def _n_hard(self) -> int:
        """Return the number of hard negatives of a single step."""
        return _HARD if self.n_hard_negatives == "auto" else int(self.n_hard_negatives)

    @property
    def _stops_early(self) -> bool:
        if self.early_stopping == "auto":
            return bool(self.learning_rate == "auto")
        return bool(self.early_stopping)

    @fit_context(prefer_skip_nested_validation=True)
    @fits_in_one_step
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, pair_weight: Any = None
    ) -> "SoftmaxClassifier":
        """Train the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances. float32 and float64 are kept; other dtypes become float64. A dense X is read
            as a sparse one.
        y : {array-like, sparse matrix} of shape (n,) or (n, n_labels)
            One class per instance, or a binary indicator, dense or sparse, each of whose labels is
            an observation; rows without labels are skipped.
        sample_weight : array-like of shape (n,), default=None
            Weights of the instances. A weight of 2 is a repeated row, a weight of 0 a missing one.
        pair_weight : {array-like, sparse matrix} of shape (n, n_labels), default=None
            Relevance of each label of each instance, for an indicator y: factors on the loss of its
            positive entries. A positive number where y is 1, nothing elsewhere.

        Returns
        -------
        estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            For NaN, a y that is not binary, a `pair_weight` that does not fit it, or a learning
            rate at which training diverges.
        MemoryBudgetError
            If the weights do not fit into memory; raised before anything is allocated.

        Warns
        -----
        ConvergenceWarning
            If early stopping is on and the held-out log-loss was still falling after `max_iter`,
            if "auto" ends at the last rate that it tries, or if the model ends far worse than
            guessing.

        Notes
        -----
        With early stopping or an "auto" rate, some instances are first held out of trials; then
        the model is trained on all. A warm start continues from weights that may have been trained
        on the held-out instances: give it a `learning_rate`.

        The model depends neither on the order of the rows nor on `n_jobs`.
        """
        is_warm = self.warm_start and hasattr(self, "coef_")
        instances = check_instances(self, X, reset=not is_warm).without_zeros()
        known = (self.classes_, self._targets_kind) if is_warm else ()
        targets = check_targets(self, y, instances.shape[0], *known)
        targets = with_pair_weight(self, targets, pair_weight, instances.shape[0])
        weight, pairs = check_pairs(self, targets, instances.shape[0], sample_weight)
        n_classes = len(targets.classes)
        n_copies = 1 + self._is_searched
        self._require_memory(X, instances, len(pairs.rows), n_classes, n_copies)
        merged = merge_equal(instances, pairs)
        frequencies = self._count(instances, merged, n_classes, is_warm)

        def keep(model: Any, state: SoftmaxState, report: list[tuple[float, ...]]) -> None:
            """Set the fitted attributes of a model."""
            model._keep_targets(targets)
            model._keep_weights(state, frequencies)
            model._count_instances(targets, weight)
            labelled = weight[np.unique(pairs.rows)]
            model._labels_per_row = math.fsum(weight[pairs.rows]) / math.fsum(labelled)
            columns = map(np.array, zip(*report, strict=True))
            model.fit_report_ = dict(zip(_REPORT, columns, strict=True))
            model.n_iter_ = len(report)

        fit = Fit(self, X, y, sample_weight, n_stages=n_copies)
        seed = draw_seed(self.random_state)
        start = partial(self._start, instances, n_classes, seed, is_warm)
        kept, held_out = merged, None
        if self._is_searched:
            by_rank = are_ranked(pairs, n_classes)
            kept, others = hold_out(self, merged, seed, by_rank)
            held_out = HeldOutPairs(instances, kept, others, n_classes, by_rank, self.n_jobs)
        state, report, is_last_rate = self._train(start, merged, kept, held_out, fit, keep)
        keep(self, state, report)
        fit.end()
        self._warn_of_convergence(is_last_rate)
        self._warn_of_unseen()
        return self

    @property
    def _is_searched(self) -> bool:
        """Whether held-out instances decide on the learning rate or the number of epochs."""
        return self._stops_early or self.learning_rate == "auto"

    def _train(
        self,
        start: Callable[..., tuple[SoftmaxProblem, SoftmaxState, SgdSettings]],
        pairs: ClassPairs,
        kept: ClassPairs,
        held_out: HeldOutPairs | None,
        fit: Fit,
        keep: Callable[..., None],
    ) -> tuple[SoftmaxState, list[tuple[float, ...]], bool]:
        """Find the rate and the number of epochs on the kept pairs, then train on all.

        U-max may take a step that is far too long, because a rare class was drawn by chance. So if
        a search found the rate, and held-out instances, trained on now, are fitted less well than
        in the trial, all is repeated at a tenth of the rate.

        Returns
        -------
        state : SoftmaxState
            The trained model.
        report : list of tuple
            Rows of ``fit_report_``.
        is_last_rate : bool
            Whether the rate is the last that the search tried.
        """
        is_auto = self.learning_rate == "auto"
        is_last_rate = False
        rate = 0.0 if is_auto else float(self.learning_rate)
        for attempt in range(_ATTEMPTS):
            found = RateTrial(rate)
            n_epochs = self.max_iter
            log_losses = None
            calibration = Calibration()
            if held_out is not None:
                found, is_last_rate = self._find_rate(start(kept), held_out, rate or None, fit)
                calibration = held_out.calibrate()
            if self._stops_early:
                n_epochs, log_losses = found.n_epochs, found.log_losses
            rate = self.learning_rate_ = found.rate
            self.temperature_ = calibration.temperature
            self.best_map_ = np.array(calibration.best_map)
            problem, state, settings = start(pairs)
            report = self._run_epochs(problem, state, settings, n_epochs, log_losses, fit, keep)
            was_stopped = 0 < len(report) < n_epochs
            if held_out is None or not is_auto or not self._stops_early:
                break
            is_good = report and held_out(state.weights)[0] <= found.loss + self.tol
            if is_good or was_stopped or attempt == _ATTEMPTS - 1:
                break
            rate *= 0.1
            fit.expect(2)
        if not report:
            raise self._diverged(f"learning_rate={rate:g}")
        return state, report, is_last_rate

    def _start(
        self, instances: CsrRows, n_classes: int, seed: int, is_warm: bool, pairs: ClassPairs
    ) -> tuple[SoftmaxProblem, SoftmaxState, SgdSettings]:
        """Return the problem of some pairs, the initial W, b and u, and the settings of steps."""
        W = np.zeros((n_classes, instances.shape[1]), instances.dtype)
        b = log_frequencies(self._count(instances, pairs, n_classes, is_warm).counts)
        if is_warm:
            with np.errstate(over="ignore"):
                W[:] = self.coef_
            b = np.where(self._frequencies.counts == 0, b, self.intercept_)  # late classes
        if not self.fit_intercept:
            b = np.zeros(n_classes)
        with self._in_range(instances):
            require_finite(W)
            problem = SoftmaxProblem(
                instances, pairs.rows, pairs.classes, pairs.weight, n_classes, float(self.alpha)
            )
            u = exact_normalisers(ClassWeights(W, intercept=b), instances, pairs, self.n_jobs)
            state = SoftmaxState.at(W, u, b)
            if self.init == "means" and not is_warm:
                start_at_means(problem, state, seed, self.n_jobs)
                state.fold()
        settings = self._settings(problem, seed)
        rate = problem.mean_square() if self.fit_intercept else 0.0
        return problem, state, replace(settings, intercept_rate=rate)

    def _find_rate(
        self,
        start: tuple[SoftmaxProblem, SoftmaxState, SgdSettings],
        held_out: HeldOutPairs,
        rate: float | None,
        fit: Fit,
    ) -> tuple[RateTrial, bool]:
        """Return the best trial, and whether its rate is the last of the search."""
        progress = fit.parts("trial", None, stage="search")

        def show(trial: RateTrial) -> None:
            ended = (
                f"{trial.loss:.4g} after {trial.n_epochs} epochs" if trial.losses else "diverged"
            )
            text = f"learning rate {trial.rate:g}: held-out {held_out.name} {ended}"
            progress.end(progress.begin(), text)

        trial, is_last_rate = find_rate(
            *start, self.decay, self.max_iter, self.tol, held_out, self.n_jobs, show, rate
        )
        progress.close()
        if not trial.losses:
            at = "any of the rates tried" if rate is None else f"learning_rate={rate:g}"
            raise self._diverged(at)
        return trial, is_last_rate

    def _run_epochs(
        self,
        problem: SoftmaxProblem,
        state: SoftmaxState,
        settings: SgdSettings,
        n_epochs: int,
        log_losses: tuple[float, ...] | None,
        fit: Fit,
        keep: Callable[..., None],
    ) -> list[tuple[float, ...]]:
        """Run the epochs of a fit; return the rows of the report, none if training diverged.

        The report has the `log_losses` of a trial, or those of a sample of the training pairs.
        """
        progress = fit.parts("epoch", n_epochs, stage="training")
        schedule = Schedule(self.learning_rate_, self.decay)
        report = list[tuple[float, ...]]()
        drawn = np.random.default_rng((settings.seed, 2**32 + 1)).permutation(problem.n_pairs)
        part = problem.take(np.sort(drawn[:_MONITORED]))
        named = problem.instances, part.rows, part.classes

        def model() -> dict[str, Any]:
            """Return the attributes of a model whose training ends here."""
            other = shallow_copy(self, dict(vars(self)))
            now = state.copy()
            now.fold()
            keep(other, now, report)
            return vars(other)

        try:
            for epoch in range(n_epochs):
                task = progress.begin()
                # For each pair: sample classes, update u_i, w_yi and the w_k of these classes.
                objective, rate, seconds = train_epoch(
                    problem, state, settings, schedule, epoch, self.n_jobs
                )
                if log_losses is None:
                    losses = state.weights.log_losses(*named, self.n_jobs)
                    loss = float(np.average(losses, weights=part.weight))
                else:
                    loss = log_losses[epoch]
                report.append((objective, loss, rate, seconds))
                if progress.end(task, f"log-loss {loss:.4g}", model):
                    break
            state.fold()
            require_finite(state.V)
        except FloatingPointError:
            report = []
        progress.close()
        return report

    def _diverged(self, at: str) -> ValueError:
        return ValueError(
            f"{type(self).__name__}: training diverged at {at}. Lower learning_rate, or scale X "
            "(sklearn.preprocessing.normalize)" + self._diverging_advice
        )

    def _warn_of_convergence(self, is_last_rate: bool) -> None:
        losses = self.fit_report_["log_loss"]
        guessing = np.log(len(self.classes_))
        is_last_best = len(losses) > 1 and losses[-1] < losses[:-1].min() - self.tol
        stops = self._stops_early
        rate = f"{self.learning_rate_:g}"
        text = ""
        if is_last_rate:
            text = (
                f"learning_rate='auto' ended at {rate}, the last rate that it tries. Set "
                "learning_rate, or scale X (sklearn.preprocessing.normalize)."
            )
        elif stops and len(losses) == self.max_iter and is_last_best:
            text = (
                f"the held-out log-loss was still falling by over tol={self.tol:g} after max_iter="
                f"{self.max_iter} epochs. Raise max_iter or learning_rate."
            )
        elif not stops and losses[-1] > 2.0 * guessing:
            text = (
                f"the training log-loss is {losses[-1]:.3g} after the last epoch, guessing has "
                f"{guessing:.3g}: learning_rate={rate} is too high."
            )
        if text:
            warn(f"{type(self).__name__}: {text}", ConvergenceWarning)

    def _count(
        self, instances: CsrRows, pairs: ClassPairs, n_classes: int, is_warm: bool
    ) -> LabelFrequencies:
        """Return the frequencies of the classes; in a warm start, absent ones keep their share."""
        found = label_frequencies(instances, pairs, n_classes)
        return joined_frequencies(found, self._frequencies) if is_warm else found

    def _require_memory(
        self, X: Any, instances: CsrRows, n_pairs: int, n_classes: int, copies: int
    ) -> None:
        """Raise MemoryBudgetError unless there is room for the weights and all else of a fit."""
        n, n_features = instances.shape
        itemsize = instances.dtype.itemsize
        is_shared = np.shares_memory(instances.data, getattr(X, "data", np.empty(0)))
        needed = copies * n_classes * n_features * itemsize
        needed += 0 if is_shared else len(instances.data) * (4 + itemsize)
        needed += scores_bytes(n, n_classes, itemsize, self.n_jobs)
        if copies > 1:  # scores to calibrate on, and copies of them
            needed += 3 * min(n, n_calibrated(n_classes)) * n_classes * itemsize
        needed += _PER_ROW * n + _PER_PAIR * n_pairs + _PER_CLASS * n_classes
        weights = f"the weights, {n_classes} classes x {n_features} features x {itemsize} bytes"
        require_bytes(
            needed,
            self._allowed_bytes(),
            weights + (f", {copies} times (trials)" if copies > 1 else ""),
            _MEMORY_ADVICE,
            type(self).__name__,
        )
