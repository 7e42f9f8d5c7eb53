"""Stacking for label sets of any size."""

import time
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from sklearn_xc._input.checks import check_training_instances
from sklearn_xc._input.sklearn_private import (
    BaseComposition,
    HasMethods,
    Interval,
    StrOptions,
    fit_context,
)
from sklearn_xc._labels.out_of_fold import Answers, said_by
from sklearn_xc._parallel.memory import require_bytes
from sklearn_xc._parallel.progress import Fit
from sklearn_xc._parallel.row_ranges import openmp_threads
from sklearn_xc._state.fitted import built_apart
from sklearn_xc.ensemble.held_out import LearnsFromHeldOut, Members
from sklearn_xc.ensemble.stacking.candidates import bytes_of_pair, feature_names
from sklearn_xc.ensemble.stacking.learner import best_threshold
from sklearn_xc.ensemble.stacking.model import StackedModel
from sklearn_xc.ensemble.stacking.training import PairTraining
from sklearn_xc.ensemble.wrapped import reads_features
from sklearn_xc.metrics.objective import OBJECTIVES


class StackingXC(LearnsFromHeldOut, StackedModel, BaseComposition):
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
    n_jobs : int, default=None
        Number of members that are trained and queried in parallel, in threads; memory grows with
        it. Members have threads of their own. The model is the same for any number.
    random_state : int, RandomState instance or None, default=None
        Draws the held-out rows, and seeds `final_estimator` if that is None. Members have random
        states of their own.
    verbose : int, default=0
        If not 0, print a line for each member that is trained.

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

    _least_labels = 2

    _parameter_constraints: dict = {  # noqa: RUF012
        "estimators": [list, tuple],
        "final_estimator": [None, HasMethods(["fit", "predict_proba"])],
        "objective": [StrOptions(set(OBJECTIVES))],
        "cv": [Interval(Real, 0, 1, closed="neither"), StrOptions({"prefit"}), "cv_object"],
        "n_candidates": [Interval(Integral, 1, None, closed="left")],
        "label_names": ["array-like", None],
        "top_k": [Interval(Integral, 1, None, closed="left")],
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
        return self._get_params("estimators", deep=deep)

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
        return self._set_params("estimators", **self._with_parts(params))

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
        members = self._check_members()
        reads_matrix = all(reads_features(member) for _, member in members)
        if reads_matrix:
            check_training_instances(self, X)
        fit = Fit(self, X, y, sample_weight)
        held_out, routed, progress = self._fit_held_out(
            members, X, y, sample_weight, fit_params, fit, n_more_parts=1
        )
        self._keep_frequencies(X, held_out, reads_matrix=reads_matrix)
        names = [name for name, _ in members]
        task = progress.part(progress.n_ended, name="learner of pairs").begin()
        training = PairTraining(held_out, self.n_candidates, routed.final_estimator.fit, who)
        with openmp_threads(1):  # gradient boosting keeps their number, and its bytes would differ
            self.final_estimator_, chances = training.fit(self.final_estimator)
        task.end()
        progress.ended(f"learner of pairs, on {len(training.rows)} rows")
        progress.close()
        self.pair_features_ = feature_names(names)
        self.threshold_ = best_threshold(chances, training.relevant, training.truth.nnz)
        report = training.report(names, chances, self._gains(), self._propensities())
        own = max(0.0, time.perf_counter() - began - held_out.seconds.sum())
        self.fit_report_ = {**report, "seconds": np.append(held_out.seconds, own)}
        fit.end()
        self._warn_of_unseen()
        return self

    def _check_members(self) -> list[tuple[str, Any]]:
        """Return the members by name, without those that are "drop"."""
        who = type(self).__name__
        for pair in self.estimators:
            is_pair = isinstance(pair, list | tuple) and len(pair) == 2
            if not is_pair or not isinstance(pair[0], str):
                raise ValueError(
                    f"{who}: estimators must be a list of pairs (name, estimator). Got {pair!r}."
                )
        with said_by("estimators", who):
            self._validate_names([name for name, _ in self.estimators])
        members = [(name, one) for name, one in self.estimators if not isinstance(one, str)]
        for name, one in self.estimators:
            if isinstance(one, type) or not (hasattr(one, "fit") or one == "drop"):
                raise TypeError(f"{who}: estimators: {name!r} must be an estimator. Got {one!r}.")
        if not members:
            raise ValueError(f"{who}: estimators must not be empty, or all 'drop'.")
        return members

    def _routed_parts(self) -> dict[str, Any]:
        members = [] if isinstance(self.cv, str) else self.estimators
        kept = {name: member for name, member in members if not isinstance(member, str)}
        return {**kept, "final_estimator": self.final_estimator}

    def _require_pairs(self, n: int, n_members: int) -> None:
        n_pairs = min(n_members * self.n_candidates, len(self.classes_))
        require_bytes(
            n * n_pairs * bytes_of_pair(n_members),
            None,
            f"the features of pairs, {n} held-out instances x {n_pairs} candidates",
            "Hold out fewer instances (cv), or lower n_candidates.",
            type(self).__name__,
        )

    def _ask_members(self, members: Members, X: Any) -> list[Answers]:
        return self._ask(list(members), X)

    def _keep_members(self, fitted: list[tuple[str, Any]]) -> None:
        self.named_estimators_ = Bunch(**dict(fitted))
        self.estimators_ = [one for _, one in fitted]
        self._set_features_and_unseen(self.estimators_)

    def _find_unseen(self) -> np.ndarray:
        """Return the labels without a training instance that no member knows."""
        return self._unknown_to(getattr(self, "estimators_", ()))
