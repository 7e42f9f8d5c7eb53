"""Fit and partial fit of both softmax estimators: all but the step."""

from dataclasses import replace
from typing import Any

import numpy as np

from sklearn_xc._blank_rows import LabelFrequencies
from sklearn_xc._checks import check_further_targets, check_instances, check_targets
from sklearn_xc._data import CsrRows, Targets
from sklearn_xc._seeds import draw_seed
from sklearn_xc._sklearn import fit_context
from sklearn_xc._state import built_apart, sharing
from sklearn_xc.parallel.progress import Fit
from sklearn_xc.softmax._epochs import (
    diverged,
    find_rate,
    run_again,
    run_fit,
    run_pass,
    warn_of_fit,
    went_astray,
)
from sklearn_xc.softmax._inputs import check_pairs, check_sample_ids, hold_out, stops_early
from sklearn_xc.softmax._memory import besides_weights, require_weights
from sklearn_xc.softmax._parameters import SoftmaxParameters
from sklearn_xc.softmax.confidence import Confidence, learn_confidence
from sklearn_xc.softmax.judge import judged_by_rank
from sklearn_xc.softmax.pairs import (
    Normalisers,
    Pairs,
    exact_normalisers,
    label_frequencies,
    log_frequencies,
    merge_equal,
    summed_weights,
)
from sklearn_xc.softmax.search import Trial
from sklearn_xc.softmax.start import start_at_means
from sklearn_xc.softmax.training import Average, History
from sklearn_xc.solvers.softmax_problem import Population, SoftmaxProblem
from sklearn_xc.solvers.softmax_sgd import SgdSettings, SoftmaxState, require_finite
from sklearn_xc.weights.class_weights import ClassWeights

#: Hard negatives of a step with ``n_hard_negatives="auto"``.
_HARD = 5


class SoftmaxClassifier(SoftmaxParameters):
    """Fit and partial fit of a linear softmax model trained by sampled classes.

    A subclass defines ``_settings(problem, seed)``.
    """

    #: The end of the message on a learning rate at which training diverges.
    _diverging_advice = "."

    intercept_: np.ndarray
    label_counts_: np.ndarray
    fit_report_: dict[str, np.ndarray]
    n_samples_fit_: int
    n_iter_: int
    _iterate: np.ndarray | None  # what epochs move, where coef_ is its average
    _iterate_intercept: np.ndarray
    _intercept_rate: float  # what steps of intercepts are multiplied by
    _average: Average | None
    _normalisers: Normalisers
    _population: Population | None
    _next_sample_id: int  # of the next instance without one
    _epochs_done: float  # in the schedule of learning rates
    _n_epochs: int  # for the random numbers

    def _settings(self, problem: SoftmaxProblem, seed: int) -> SgdSettings:
        """Return how to step: all that tells one estimator from another."""
        raise NotImplementedError  # this class is not an estimator by itself

    def _n_hard(self) -> int:
        """Return how many hard negatives a single step takes."""
        return _HARD if self.n_hard_negatives == "auto" else int(self.n_hard_negatives)

    def _all_settings(self, problem: SoftmaxProblem, seed: int) -> SgdSettings:
        rate = self._intercept_rate if self.fit_intercept else 0.0
        return replace(self._settings(problem, seed), intercept_rate=rate)

    @fit_context(prefer_skip_nested_validation=True)
    @built_apart
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "SoftmaxClassifier":
        """Train the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances. float32 and float64 are kept; other dtypes become float64. A dense X is read
            as a sparse one.
        y : {array-like, sparse matrix} of shape (n,) or (n, n_labels)
            One class per instance, or a binary indicator, dense or sparse; rows without labels are
            skipped.
        sample_weight : array-like of shape (n,), default=None
            Weights of the instances. A weight of 2 is a repeated row, a weight of 0 a missing one.

        Returns
        -------
        estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            For NaN, a y that is not binary, or a learning rate at which training diverges.
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
        the model is trained on all. If it then fits the held-out instances less well than the
        trial did, training is repeated at a tenth of the rate found. A warm start continues from
        weights that may have been trained on the held-out instances: give it a `learning_rate`.

        Early stopping also learns from the held-out instances how confident the model may be:
        ``temperature_`` and ``best_map_``, which change probabilities but not scores. A warm start
        and ``partial_fit`` leave both as they are.

        The model depends neither on the order of the rows nor on `n_jobs`.
        """
        is_warm = self.warm_start and hasattr(self, "coef_")
        instances = check_instances(self, X, reset=not is_warm).without_zeros()
        targets = self._check_targets(y, instances.shape[0], None, is_warm)
        weight, pairs = check_pairs(self, targets, instances.shape[0], sample_weight)
        seed = draw_seed(self.random_state)
        found = self._train(instances, targets, weight, pairs, is_warm, seed, (X, y, sample_weight))
        warn_of_fit(self, found, stacklevel=4)
        self._warn_of_unseen()
        return self

    @fit_context(prefer_skip_nested_validation=True)
    @built_apart
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        sample_ids: Any = None,
    ) -> "SoftmaxClassifier":
        """Train for one pass over some instances.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.
        y : {array-like, sparse matrix} of shape (n,) or (n, n_labels)
            As in ``fit``.
        classes : array-like of shape (n_classes,), default=None
            All classes, for the first call with a 1-D y; None takes those in y.
        sample_weight : array-like of shape (n,), default=None
            Weights of the instances.
        sample_ids : array-like of int of shape (n,), default=None
            Identifies the instances: distinct numbers from 0 on; after ``fit``, the numbers of its
            rows. An instance that is passed again under its number keeps its u, the running
            estimate of its log-loss in ``u_``. None treats all instances as new, even those of
            ``fit``.

        Returns
        -------
        estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            If the classes, features or container of y differ from those of the first call, or if
            the pass diverges.
        MemoryBudgetError
            If the weights do not fit into memory twice; raised before anything is allocated.

        Notes
        -----
        The pass works on a copy of the weights, which takes effect at the end: an error or an
        interrupt leaves the model as it was, and other threads may predict meanwhile. A new u
        starts at its exact optimum for the weights, which takes one pass over all classes; with
        hard negatives, every u does, because they are searched for in each call. Both take time
        that does not depend on the number of instances, so pass thousands of instances at once
        rather than a few. The learning rate falls with the number of passes over all pairs seen so
        far; "auto" searches on the instances of the first call, some of which judge the trials.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from sklearn_xc import ImplicitSoftmaxSGD
        >>> X, y = load_digits(return_X_y=True)
        >>> clf = ImplicitSoftmaxSGD(learning_rate=1.0, random_state=0)
        >>> for first in range(0, 1500, 500):
        ...     rows = slice(first, first + 500)
        ...     clf = clf.partial_fit(X[rows] / 16, y[rows], classes=range(10))
        >>> bool(clf.score(X[1500:] / 16, y[1500:]) > 0.8)
        True
        """
        is_first = not hasattr(self, "coef_")
        instances = check_instances(self, X, reset=is_first).without_zeros()
        targets = self._check_targets(y, instances.shape[0], classes, not is_first)
        weight, pairs = check_pairs(self, targets, instances.shape[0], sample_weight)
        n_classes = len(targets.classes)
        next_number = getattr(self, "_next_sample_id", 0)
        numbers = check_sample_ids(self, sample_ids, instances.shape[0], n_classes, next_number)
        if is_first:
            self._keep_first(targets)
        besides = besides_weights(instances, X, len(pairs.rows), n_classes, self.n_jobs)
        W, average = self._further_weights(instances, targets, is_first, besides)
        is_late = self._frequencies.counts == 0
        keys = np.column_stack([numbers[pairs.rows], pairs.classes]).astype(np.int64)
        is_new = self._normalisers.find(keys, n_classes) < 0
        further = label_frequencies(instances, pairs.take(is_new), n_classes)
        b = self._further_intercept(further, is_first)
        if average is not None and average.intercept is not None:
            average.intercept[is_late] = b[is_late]
        with self._in_range(instances):
            problem = self._problem(instances, pairs, n_classes)
            weights = ClassWeights(W, intercept=b)
            u = self._first_u(self._normalisers, keys, weights, instances, pairs)
        problem = self._enlarge(problem, is_new)
        if is_first:
            self._intercept_rate = problem.mean_square()
        settings = self._all_settings(problem, draw_seed(self.random_state))
        state = SoftmaxState.at(W, u, b)
        if is_first or self.learning_rate != "auto":
            self.learning_rate_ = self._rate_of_pass(problem, state, settings)
        W, b, history = run_pass(
            self, problem, state, settings, average, self._epochs_done, self._n_epochs
        )
        self._keep_weights(W, b, state, average)
        self._normalisers = self._normalisers.updated(keys, state.u, n_classes)
        self._population = problem.population
        self._next_sample_id = max(self._next_sample_id, int(numbers.max()) + 1)
        self._epochs_done += int(problem.visits.sum()) / problem.population.n
        self._n_epochs += 1
        self._count_instances(targets, weight, is_further=True)
        self._labelled = self._labelled + summed_weights(pairs, weight)
        self.fit_report_ = history.report(self.fit_report_)
        self.n_iter_ = len(self.fit_report_["loss"])
        return self

    # What a fit is made of

    def _train(
        self,
        instances: CsrRows,
        targets: Targets,
        weight: np.ndarray,
        pairs: Pairs,
        is_warm: bool,
        seed: int,
        given: tuple[Any, Any, Any],
    ) -> Trial | None:
        """Set the fitted attributes; return the trial that said how many epochs to run.

        Callbacks are told of the X, y and weights that were `given`.
        """
        shape = len(targets.classes), instances.shape[1]
        index = np.column_stack([pairs.rows, pairs.classes]).astype(np.int64)
        merged, place = merge_equal(instances, pairs)
        first = np.unique(place, return_index=True)[1]
        old = self._normalisers if is_warm else Normalisers.none()
        n_classes = len(targets.classes)
        by_rank = judged_by_rank(pairs, n_classes)
        kept, held_out = hold_out(self, merged, seed, n_classes, by_rank)
        in_trials = stops_early(self) or self.learning_rate == "auto"
        copies = 1 + bool(self.average) + in_trials
        n_learned = 0 if held_out is None or is_warm else len(held_out.rows)
        besides = besides_weights(
            instances, given[0], len(pairs.rows), n_classes, self.n_jobs, n_learned
        )
        require_weights(self, shape, instances.dtype, copies, "average, trials", besides)
        first_b = self._first_intercept(label_frequencies(instances, merged, n_classes), is_warm)
        first_epoch = self._n_epochs if is_warm else 0

        def start(chosen: np.ndarray) -> tuple[SoftmaxProblem, SoftmaxState, SgdSettings]:
            """Return all that training some of the pairs needs; the others have no part in it."""
            W, b, own = self._first_weights(shape, instances, is_warm), first_b, merged.take(chosen)
            if self.fit_intercept and not is_warm:
                b = log_frequencies(label_frequencies(instances, own, n_classes).counts)
            with self._in_range(instances):
                weights = ClassWeights(W, intercept=b)
                u = self._first_u(old, index[first[chosen]], weights, instances, own)
                problem = self._problem(instances, own, n_classes)
                state = SoftmaxState.at(W, u, b)
                if self.init == "means" and not is_warm:
                    start_at_means(problem, state, seed, self.n_jobs)
                    state.fold()  # as a warm start finds it
                    if self.u_init == "zero":
                        state.u[:] = 0.0
            self._intercept_rate = problem.mean_square()
            return problem, state, self._all_settings(problem, seed)

        def keep(
            model: SoftmaxClassifier, state: SoftmaxState, average: Average | None, history: History
        ) -> None:
            """Set the attributes of a model fitted so far."""
            W, b = state.V, state.intercept
            if average is not None and average.mean is not None and average.intercept is not None:
                W, b = average.mean, average.intercept
            model._keep_targets(targets)
            model._keep_weights(W, b, state, average)
            model._normalisers = Normalisers.none().updated(index, state.u[place], n_classes)
            model._population = problem.population
            model._next_sample_id = instances.shape[0]
            model._count_instances(targets, weight)
            model._labelled = summed_weights(pairs, weight)
            model.fit_report_ = history.report()
            model.n_iter_ = len(history.loss)
            model._epochs_done = float(model.n_iter_)
            model._n_epochs = first_epoch + model.n_iter_

        def model_now(history: History) -> dict[str, Any]:
            """Return the attributes of a model whose training had ended now, in copies."""
            model, now = sharing(self, dict(vars(self))), state.copy_of(np.arange(len(state.u)))
            now.fold()
            keep(model, now, None if average is None else average.copy(), history)
            return vars(model)

        fit = Fit(self, *given, n_stages=1 if held_out is None else 2)
        stops, found = stops_early(self), None
        if not is_warm:
            self._confidence = Confidence()
        rate = 0.0 if self.learning_rate == "auto" else float(self.learning_rate)
        retries = (True, True, True, False) if stops and not rate else (False,)
        for may_retry in retries:
            if held_out is not None:
                begun = start(kept)
                trial = find_rate(
                    self, *begun, held_out, fit, first_epoch, stops=stops, by_rank=by_rank,
                    rate=rate or None,
                )  # fmt: skip
                rate, found = trial.rate, trial if stops else None
                if stops and not is_warm:
                    self._confidence = self._learn_confidence(merged, kept, *begun, trial)
                del begun
            self.learning_rate_ = rate
            problem, state, settings = start(np.arange(len(merged.rows)))
            average = Average() if self.average else None
            try:
                W, b, history, was_stopped = run_fit(
                    self, problem, state, settings, found, first_epoch, average, fit, model_now
                )
                weights = ClassWeights(W, intercept=b)
                if (
                    was_stopped
                    or not may_retry
                    or not went_astray(self, instances, weights, found, held_out, by_rank)
                ):
                    break
            except FloatingPointError as error:
                if not may_retry:
                    raise diverged(self, f"learning_rate={rate:g}") from error
            rate *= 0.1
            fit.expect(2)
        keep(self, state, average, history)
        fit.end()
        return found

    def _learn_confidence(
        self,
        pairs: Pairs,
        kept: np.ndarray,
        problem: SoftmaxProblem,
        start: SoftmaxState,
        settings: SgdSettings,
        trial: Trial,
    ) -> Confidence:
        """Return what the pairs that were not kept say of a model trained on the others."""
        is_held = np.ones(len(pairs.rows), bool)
        is_held[kept] = False
        if not is_held.any():  # so few that trials were judged on what they were trained on
            return Confidence()
        W, b = run_again(self, problem, start, settings, trial, 0)
        unseen = np.ones(problem.n_classes, bool)
        unseen[pairs.classes[kept]] = False
        weights = ClassWeights(W, intercept=b, unseen=np.flatnonzero(unseen))
        with self._in_range(problem.instances):
            return learn_confidence(weights, problem.instances, pairs.take(is_held), self.n_jobs)

    def _rate_of_pass(
        self, problem: SoftmaxProblem, state: SoftmaxState, settings: SgdSettings
    ) -> float:
        """Return the learning rate of partial fits, from the pairs of the first."""
        if self.learning_rate != "auto":
            return float(self.learning_rate)
        pairs = Pairs(problem.rows, problem.classes, problem.weight)
        merged, place = merge_equal(problem.instances, pairs)
        first = np.unique(place, return_index=True)[1]
        by_rank = judged_by_rank(pairs, problem.n_classes)
        kept, held_out = hold_out(self, merged, settings.seed, problem.n_classes, by_rank)
        assert held_out is not None
        part = self._problem(problem.instances, merged.take(kept), problem.n_classes)
        trial = find_rate(
            self, part, state.copy_of(first[kept]), settings, held_out, Fit.untold(self),
            by_rank=by_rank,
        )  # fmt: skip
        return trial.rate

    def _check_targets(self, y: Any, n: int, classes: Any, is_known: bool) -> Targets:
        if not is_known:
            return check_targets(self, y, n, classes)
        return check_further_targets(self, y, n, classes)

    def _first_u(
        self,
        known: Normalisers,
        keys: np.ndarray,
        weights: ClassWeights,
        instances: CsrRows,
        pairs: Pairs,
    ) -> np.ndarray:
        """Return the u that pairs start with: as it was, or for new ones as `u_init` says."""
        if self.u_init == "zero":
            return known.of_pairs(keys, len(weights.coef))
        return known.of_pairs(
            keys, len(weights.coef), lambda new: exact_normalisers(
                weights, instances, pairs.take(new), self.n_jobs
            ),
        )  # fmt: skip

    def _first_weights(
        self, shape: tuple[int, int], instances: CsrRows, is_warm: bool
    ) -> np.ndarray:
        """Return the weights that a fit starts from, in an array of its own."""
        if not is_warm:
            return np.zeros(shape, instances.dtype)
        with np.errstate(over="ignore"):
            W = self._last_weights().astype(instances.dtype)
        with self._in_range(instances):
            require_finite(W)
        return W

    def _further_weights(
        self, instances: CsrRows, targets: Targets, is_first: bool, besides: int
    ) -> tuple[np.ndarray, Average | None]:
        """Return the weights that a partial fit starts from, and the average that takes them in.

        Both are copies, as other threads may be reading the arrays of the model.
        """
        if is_first:
            shape = len(targets.classes), instances.shape[1]
            copies = 1 + bool(self.average) + (self.learning_rate == "auto")
            require_weights(self, shape, instances.dtype, copies, "average, trials", besides)
            return np.zeros(shape, instances.dtype), Average() if self.average else None
        W, average = self._last_weights(), self._average
        copies = 2 if average is None else 4
        require_weights(self, W.shape, W.dtype, copies, "before and after the call", besides)
        return np.array(W), None if average is None else average.copy()

    def _last_weights(self) -> np.ndarray:
        """Return the weights that epochs have moved last."""
        return self.coef_ if self._iterate is None else self._iterate

    def _first_intercept(self, found: LabelFrequencies, is_warm: bool) -> np.ndarray:
        """Keep the frequencies of a fit; return the intercepts that it starts from.

        In a warm start, classes that are absent keep their earlier share.
        """
        if not is_warm:
            return self._intercept_from(found, None)
        old = self._frequencies.counts
        earlier = old * (found.total / old.sum())
        counts = np.where(found.counts > 0, found.counts, earlier)
        joined = replace(found, counts=counts, total=float(counts.sum()))
        return self._intercept_from(joined, old == 0)

    def _further_intercept(self, further: LabelFrequencies, is_first: bool) -> np.ndarray:
        """Add to the frequencies; return the intercepts that a partial fit starts from."""
        old = self._frequencies
        return self._intercept_from(old.plus(further), None if is_first else old.counts == 0)

    def _intercept_from(
        self, frequencies: LabelFrequencies, is_late: np.ndarray | None
    ) -> np.ndarray:
        """Keep the frequencies; return the intercepts of classes, as they were or of late ones.

        None are all late. A class without an instance so far starts at its share like any other.
        """
        self._frequencies = frequencies
        if not self.fit_intercept:
            return np.zeros(len(frequencies.counts))
        start = log_frequencies(frequencies.counts)
        return start if is_late is None else np.where(is_late, start, self._last_intercept())

    def _last_intercept(self) -> np.ndarray:
        """Return the intercepts that epochs have moved last."""
        return self.intercept_ if self._iterate is None else self._iterate_intercept

    def _find_unseen(self) -> np.ndarray:
        """Return the positions of classes that no pair was ever of, rising."""
        return np.flatnonzero(self._frequencies.counts == 0)

    def _problem(self, instances: CsrRows, pairs: Pairs, n_classes: int) -> SoftmaxProblem:
        return SoftmaxProblem(
            instances, pairs.rows, pairs.classes, pairs.weight, n_classes, float(self.alpha)
        )

    def _keep_first(self, targets: Targets) -> None:
        """Set what a first partial fit starts from, besides the weights."""
        self._keep_targets(targets)
        self._normalisers = Normalisers.none()
        self._population = None
        self._next_sample_id, self._epochs_done, self._n_epochs = 0, 0.0, 0
        self.n_samples_fit_ = 0
        self.label_counts_ = np.zeros(len(targets.classes), np.int64)
        self._frequencies = LabelFrequencies.none(len(targets.classes))
        self._labelled = np.zeros(2)
        self.fit_report_ = History().report()

    def _enlarge(self, problem: SoftmaxProblem, is_new: np.ndarray) -> SoftmaxProblem:
        """Return the problem as a part of all pairs met so far."""
        if self._population is None:
            return problem
        return problem.within(self._population, is_new)

    def _keep_weights(
        self, W: np.ndarray, intercept: np.ndarray, state: SoftmaxState, average: Average | None
    ) -> None:
        self.coef_, self.intercept_ = W, intercept.astype(W.dtype)
        of_blank = self._frequencies.of_blank()
        self._prior = log_frequencies(of_blank) if self.fit_intercept else None
        self._iterate = None if average is None else state.V
        self._iterate_intercept = state.intercept
        self._average = average

    @property
    def u_(self) -> np.ndarray:
        """One variable per (instance, class) pair, float64; near its log-loss after training."""
        return self._fitted_normalisers("u_").u

    @property
    def u_index_(self) -> np.ndarray:
        """Instance number and class position of each entry of ``u_``, (n, 2)."""
        return self._fitted_normalisers("u_index_").index

    def _fitted_normalisers(self, name: str) -> Normalisers:
        try:
            return self._normalisers
        except AttributeError:
            raise AttributeError(f"{name}: this {type(self).__name__} is not fitted yet.") from None
