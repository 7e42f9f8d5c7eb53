"""Stacking for label sets of any size."""

import time
import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._arguments import refuse_disguised
from sklearn_xc._blank_rows import LabelFrequencies, features_of, is_blank
from sklearn_xc._checks import (
    check_targets,
    check_training_instances,
    check_weights,
    require_labels,
)
from sklearn_xc._clone_fits import CloneFits, Job
from sklearn_xc._data import CsrRows, DenseRows, Targets
from sklearn_xc._held_out import draw_rows, split
from sklearn_xc._made_features import made_features
from sklearn_xc._objective import OBJECTIVES
from sklearn_xc._out_of_fold import RoutesFit, as_rows, known_counts, n_rows
from sklearn_xc._pruning_notes import PruningNotes
from sklearn_xc._seeds import draw_seed
from sklearn_xc._shared_memory import Share
from sklearn_xc._sklearn import HasMethods, Interval, StrOptions, fit_context, safe_indexing
from sklearn_xc._some_labels import apart
from sklearn_xc._sparse_input import check_sparse
from sklearn_xc._state import built_apart
from sklearn_xc.exceptions import UnseenLabelWarning
from sklearn_xc.parallel.memory import require_bytes
from sklearn_xc.parallel.progress import Fit, Progress, say
from sklearn_xc.parallel.row_ranges import openmp_threads
from sklearn_xc.stacking.candidates import bytes_of_pair, feature_names
from sklearn_xc.stacking.learner import best_threshold
from sklearn_xc.stacking.members import (
    check_members,
    composed_params,
    read_features,
    with_members,
)
from sklearn_xc.stacking.model import StackedModel
from sklearn_xc.stacking.steps import Steps
from sklearn_xc.stacking.training import Lesson, Teacher, joined, make_lesson

#: From the caller of ``fit`` to ``_train_members``: two decorators and fit are between.
_STACKLEVEL = 5


class StackingXC(RoutesFit, StackedModel):
    """Several classifiers as one, which re-ranks the labels that each of them ranks high.

    This is scikit-learn's ``StackingClassifier`` for label sets of any size. The candidates of an
    instance are the labels that some member ranks among its first `n_candidates`. On rows that the
    members were not trained on, a classifier of (instance, label) pairs learns how likely a
    candidate is to be relevant, from the answers of all members and the frequency of the label.
    Its probabilities order the candidates.

    Parameters
    ----------
    estimators : list of (str, estimator)
        The members: classifiers of this package or of scikit-learn, or Pipelines that end in one,
        each with its own features made from the same X. "drop" in place of an estimator leaves it
        out. They are cloned.
    final_estimator : classifier, default=None
        Learns from pairs; must have ``predict_proba``. Features are NaN if a label is not among a
        member's answers. None takes gradient boosting,
        :class:`~sklearn.ensemble.HistGradientBoostingClassifier`, with small trees that rank a
        pair no lower for a higher score, mixed with a logistic regression as far as that lowers
        the log-loss of pairs in cross-validation.
    objective : {"precision", "propensity"}, default="precision"
        The metric for which labels are ordered: "precision", for precision@k, orders them by
        probability; "propensity", for propensity-scored precision@k, by probability over
        propensity, so that rare labels come first where they are nearly as likely. May be changed
        after the fit.
    cv : float, int, splitter, iterable of (train, test) or "prefit", default=None
        How to get the rows that pairs are learned from. A float is the share of rows to hold out
        once; an int is the number of shuffled folds, each predicted by members trained on the
        others. All members are then trained on all rows. None holds out a tenth, at least 1,000
        rows, or makes five folds of fewer than 5,000 rows. "prefit" takes members as they are:
        pass ``fit`` rows that they were not trained on. At most 20,000 of the rows are learned
        from.
    n_candidates : int, default=20
        Number of candidate labels from each member.
    label_names : array-like of shape (n_labels,), default=None
        Names of the columns of an indicator y, strings or integers, which become ``classes_``.
        None takes the column names of a data frame, otherwise the column numbers.
    top_k : int, default=100
        After a fit to a sparse y, how many of the best labels predict and decision_function
        consider.
    max_memory : int or str, default=None
        Limit, in bytes or as a string such as "8GB", on what a fit may hold beyond what the
        process held when the fit began, the members included; also on each answer. Members may
        have lower limits of their own. With `max_memory`, they are trained one at a time.
    n_jobs : int, default=None
        Number of members that are trained and queried in parallel, in threads; memory grows with
        it. Members have threads of their own. The model is the same for any number.
    random_state : int, RandomState instance or None, default=None
        Draws the held-out rows, and seeds `final_estimator` if that is None. Members have random
        states of their own.
    verbose : int, default=0
        If not 0, print the results of each member on the held-out rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Class labels after a 1-D y, otherwise the names or numbers of the columns.
    estimators_ : list of estimators
        The members, trained on all rows.
    named_estimators_ : Bunch
        The same by name.
    final_estimator_ : classifier
        Fitted to pairs; has ``predict_proba``.
    pair_features_ : list of str
        Names of the features that `final_estimator_` reads.
    fit_report_ : dict of ndarray of shape (n_members + 1,)
        ``name``, of each member and "stack"; ``P@1`` and ``PSP@1`` on the rows that pairs were
        learned from, for the stack by three-fold cross-validation; ``seconds`` of training.
    threshold_ : float
        For an indicator, ``predict`` returns the labels with a larger probability. Chosen for the
        best micro-averaged F1 on the rows that pairs were learned from.
    label_counts_ : ndarray of int64 of shape (n_labels,)
        Number of instances with each label (or of each class).
    n_samples_fit_ : int
        Number of instances seen in fit. For prefit members, this and ``label_counts_`` are those
        of the first member that has counted its own; if none has, they count the rows passed to
        fit.
    n_features_in_, feature_names_in_
        The first member's, if it has them.

    See Also
    --------
    sklearn.ensemble.StackingClassifier : For few classes; gives the learner all probabilities.

    Notes
    -----
    Scores are probabilities, or probabilities over propensities, estimated for candidates,
    whatever the members' own scores mean. Labels beyond the candidates follow them, by their best
    rank, with scores below 0. For two classes, ``decision_function`` is the score of the second
    minus that of the first.

    If all members are classifiers of this package that read X itself, an instance without
    features, or with none that training has seen, gets the labels' frequencies as probabilities,
    as with each of the members. Otherwise the learner decides.

    With one held-out part, each member is trained twice. A pair takes about ``4 (5 n_members +
    2)`` bytes, and an instance has up to ``n_members * n_candidates`` pairs.

    Source: stacking is [1]_; a classifier of retrieved candidates is common in ranking. The
    frequencies of a pair are those of the rows that its members were trained on: frequencies over
    all rows would leak the labels of held-out instances.

    References
    ----------
    .. [1] D. H. Wolpert, "Stacked generalization", Neural Networks 5, 1992.

    Examples
    --------
    >>> from sklearn_xc import ImplicitSoftmaxSGD, OvALinearXC, StackingXC
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> from sklearn_xc.metrics import precision_at_k
    >>> X, Y = make_xc_classification(
    ...     n_samples=500, n_features=300, n_labels=50, random_state=0, return_X_y=True
    ... )
    >>> members = [("ova", OvALinearXC()), ("softmax", ImplicitSoftmaxSGD(random_state=0))]
    >>> clf = StackingXC(members, cv=3, random_state=0).fit(X[:400], Y[:400])
    >>> labels, chances = clf.predict_topk(X[400:], k=3)
    >>> bool(precision_at_k(Y[400:], labels, k=1) > 0.7)
    True
    """

    _parameter_constraints: dict = {  # noqa: RUF012
        "estimators": [list, tuple],
        "final_estimator": [None, HasMethods(["fit", "predict_proba"])],
        "objective": [StrOptions(set(OBJECTIVES))],
        "cv": [Interval(Real, 0, 1, closed="neither"), StrOptions({"prefit"}), "cv_object"],
        "n_candidates": [Interval(Integral, 1, None, closed="left")],
        "label_names": ["array-like", None],
        "top_k": [Interval(Integral, 1, None, closed="left")],
        "max_memory": [Interval(Real, 0, None, closed="neither"), str, None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimators,
        *,
        final_estimator=None,
        objective="precision",
        cv=None,
        n_candidates=20,
        label_names=None,
        top_k=100,
        max_memory=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.estimators = estimators
        self.final_estimator = final_estimator
        self.objective = objective
        self.cv = cv
        self.n_candidates = n_candidates
        self.label_names = label_names
        self.top_k = top_k
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters and, with `deep`, those of the members as ``name__parameter``.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include members and their parameters.

        Returns
        -------
        dict of str to object
        """
        params = super().get_params(deep=deep)
        return composed_params(params, self.estimators) if deep else params

    def set_params(self, **params: Any) -> "StackingXC":
        """Set parameters, members by name, and the members' parameters as ``name__parameter``.

        Parameters
        ----------
        **params : dict
            Names and values.

        Returns
        -------
        StackingXC
            Itself.

        Examples
        --------
        >>> from sklearn_xc import ImplicitSoftmaxSGD, OvALinearXC, StackingXC
        >>> stack = StackingXC([("ova", OvALinearXC()), ("softmax", ImplicitSoftmaxSGD())])
        >>> stack = stack.set_params(ova__C=3.0, cv=5)
        >>> stack.get_params()["ova__C"], stack.estimators[0]
        (3.0, ('ova', OvALinearXC(C=3.0)))
        """
        if "estimators" in params:
            self.estimators = params.pop("estimators")
        self.estimators = with_members(self.estimators, params)
        super().set_params(**params)
        return self

    @fit_context(prefer_skip_nested_validation=False)
    @built_apart
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> "StackingXC":
        """Train the members and the classifier of pairs.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features), data frame or list of str
            Whatever the members accept.
        y : {array-like, sparse matrix} of shape (n,) or (n, n_labels)
            One class per instance, or a binary indicator, dense or sparse.
        sample_weight : array-like of shape (n,), default=None
            Weights of the instances, for the pairs and for members that take them; in a Pipeline
            they reach the last step. With metadata routing enabled they reach what requests them.
        **fit_params : dict
            Further arguments for ``fit`` of every member; with metadata routing enabled, for
            members and `cv` as requested, such as `groups`.

        Returns
        -------
        StackingXC
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If an argument is invalid. Errors of a member are raised with its name.
        """
        began, who = time.perf_counter(), type(self).__name__
        check_sparse(X, "X", who)
        refuse_disguised(X, f"{who}: X")
        members = check_members(self.estimators, who, set(self._get_param_names()))
        instances = check_training_instances(self, X) if read_features(members) else None
        n = n_rows(X, who)
        targets = check_targets(self, y, n)
        given = check_weights(self, sample_weight, n)
        weight = np.ones(n) if given is None else given
        indptr, labels = targets.by_instance(n)
        require_labels(self, targets, np.flatnonzero((np.diff(indptr) > 0) & (weight > 0)))
        seed = draw_seed(self.random_state)
        self._keep_targets(targets)
        self._count_instances(targets, weight)
        routed = self._routed(given, fit_params)
        fit = Fit(self, X, y, sample_weight)
        if isinstance(self.cv, str):
            progress = fit.parts("step", 1, in_order=False)
            lesson, seconds = self._ask_prefit(members, X, weight, seed), np.zeros(len(members))
        else:
            folds = split(self.cv, X, y, targets, weight, seed, who, routed.cv.split)
            n_held_out = sum(len(test) for _, test in folds)
            costs = [*(len(train) for train, _ in folds), n, n_held_out]
            progress = fit.parts("step", len(costs), costs=costs, in_order=False)
            lesson, seconds = self._train_members(
                members, X, y, targets, routed, weight, folds, progress
            )
        self._keep_frequencies(instances, indptr, labels, weight)
        names = [name for name, _ in members]
        teacher = Teacher(
            self.final_estimator, routed.final_estimator.fit, lesson, targets, weight, seed, who
        )
        task = progress.part(progress.n_ended, name="learner of pairs").begin()
        with openmp_threads(1):  # gradient boosting keeps their number, and its bytes would differ
            self.final_estimator_, chances = teacher.teach()
        task.end()
        progress.ended(f"learner of pairs, on {len(lesson.rows)} rows")
        progress.close()
        self.pair_features_ = feature_names(names)
        self.threshold_ = best_threshold(chances, teacher.relevant, teacher.truth.nnz)
        self.fit_report_ = teacher.report(names, chances, self._gains(), self._propensities())
        own = max(0.0, time.perf_counter() - began - seconds.sum())
        self.fit_report_["seconds"] = np.append(seconds, own)
        fit.end()
        self._tell(len(lesson.rows))
        self._warn_of_unseen()
        return self

    def _routed_parts(self) -> dict[str, Any]:
        members = [] if isinstance(self.cv, str) else self.estimators
        kept = {name: member for name, member in members if not isinstance(member, str)}
        return {**kept, "final_estimator": self.final_estimator}

    def _train_members(
        self,
        members: list[tuple[str, Any]],
        X: Any,
        y: Any,
        targets: Targets,
        routed: Bunch,
        weight: np.ndarray,
        folds: list[tuple[np.ndarray, np.ndarray]],
        progress: Progress,
    ) -> tuple[Lesson, np.ndarray]:
        """Train the members without held-out rows, ask them, and train them on all rows."""
        who, n_held_out = type(self).__name__, sum(len(test) for _, test in folds)
        self._require_bytes(len(members), n_held_out)
        params = {f"estimator {name!r}": routed[name].fit for name, _ in members}
        fits = CloneFits(
            X, y, params, min(self._depth(), len(self.classes_)), self.classes_, who,
            targets, Share(self._allowed_bytes()), made_features(X),
        )  # fmt: skip
        texts = [f"members without {len(test)} rows" for _, test in folds]
        told = Steps(progress, len(members), [*texts, "members with all rows"])
        jobs = [
            Job(
                f"estimator {name!r}",
                estimator,
                train,
                test,
                told.task(number).part(f"member {name}", at),
            )
            for number, (train, test) in enumerate([*folds, (None, None)])
            for at, (name, estimator) in enumerate(members)
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnseenLabelWarning)  # the stack has one of its own
            done = fits.run(jobs, self.n_jobs, told)
        notes = PruningNotes()
        notes.found = [note for one in done for note in one.notes]
        notes.tell(who, _STACKLEVEL)
        by_step = [
            done[first : first + len(members)] for first in range(0, len(done), len(members))
        ]
        lessons = []
        for (train, test), of_fold in zip(folds, by_step[:-1], strict=True):
            frequencies = targets.counts_among(train, len(weight))
            answers = [one.result for one in of_fold]
            lessons.append(make_lesson(answers, test, frequencies, self.n_candidates))
        self._keep_members(
            [(name, one.result) for (name, _), one in zip(members, by_step[-1], strict=True)]
        )
        return joined(lessons), np.sum([[one.seconds for one in step] for step in by_step], axis=0)

    def _ask_prefit(
        self, members: list[tuple[str, Any]], X: Any, weight: np.ndarray, seed: int
    ) -> Lesson:
        """Ask members that are trained already."""
        who = type(self).__name__
        for name, estimator in members:
            check_is_fitted(estimator, msg=f"{who}: cv is 'prefit', and {name!r} is not fitted.")
        rows = draw_rows(np.flatnonzero(weight > 0), seed)
        self._require_bytes(len(members), len(rows))
        counted = known_counts(
            [one for _, one in members],
            self.classes_,
            are_columns=self._targets_kind != "classes",
        )
        if counted is not None:
            self.label_counts_, self.n_samples_fit_ = counted
        self._keep_members([(name, apart(estimator)) for name, estimator in members])
        answers = self._ask(members, safe_indexing(as_rows(X), rows))
        return make_lesson(answers, rows, self.label_counts_, self.n_candidates)

    def _require_bytes(self, n_members: int, n_rows: int) -> None:
        """Raise MemoryBudgetError unless there is room for the pairs of so many rows."""
        n_pairs = min(n_members * self.n_candidates, len(self.classes_))
        require_bytes(
            n_rows * n_pairs * bytes_of_pair(n_members), self._allowed_bytes(),
            f"the features of pairs, {n_rows} held-out instances x {n_pairs} candidates",
            "Hold out fewer instances (cv), or lower n_candidates.", type(self).__name__,
        )  # fmt: skip

    def _keep_members(self, fitted: list[tuple[str, Any]]) -> None:
        self.named_estimators_ = Bunch(**dict(fitted))
        self.estimators_ = [one for _, one in fitted]
        self._unseen_labels = self._find_unseen()
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(self.estimators_[0], name):
                setattr(self, name, getattr(self.estimators_[0], name))

    def _keep_frequencies(
        self,
        instances: CsrRows | DenseRows | None,
        indptr: np.ndarray,
        labels: np.ndarray,
        weight: np.ndarray,
    ) -> None:
        """Keep what answers instances without features; None where members make features of X."""
        if instances is None:
            self._frequencies, self._known_features = None, np.empty(0, bool)
        elif isinstance(self.cv, str):  # what features the members have seen is not known
            none = np.zeros(len(self.classes_))
            counts = self.label_counts_.astype(np.float64)
            self._frequencies = LabelFrequencies(counts, float(self.n_samples_fit_), none, 0.0)
            self._known_features = np.ones(instances.shape[1], bool)
        else:
            rows = np.repeat(np.arange(len(weight)), np.diff(indptr))
            self._frequencies = LabelFrequencies.of(
                rows, labels, weight, is_blank(instances), len(self.classes_)
            )
            there = None if weight.all() else np.flatnonzero(weight)
            self._known_features = features_of(instances, there)

    def _tell(self, n_rows: int) -> None:
        if not self.verbose:
            return
        report = self.fit_report_
        for name, plain, scored in zip(report["name"], report["P@1"], report["PSP@1"], strict=True):
            text = f"{name}: P@1 {plain:.4f}, PSP@1 {scored:.4f} on {n_rows} held-out rows"
            say(type(self).__name__, text)
