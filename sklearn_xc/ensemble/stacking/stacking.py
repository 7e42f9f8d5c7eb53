"""Stacking for label sets of any size."""

import time
from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.ensemble import HistGradientBoostingClassifier, StackingClassifier
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._input.arguments import check_count, refuse_masks_and_dates
from sklearn_xc._input.checks import check_training_instances
from sklearn_xc._input.data import as_rows, check_sparse, in_parts, n_rows
from sklearn_xc._input.sklearn_private import (
    BaseComposition,
    HasMethods,
    Interval,
    StrOptions,
    fit_context,
    safe_indexing,
)
from sklearn_xc._labels.allowed import AllowedLabels
from sklearn_xc._labels.best_allowed import rows_of_like_size
from sklearn_xc._labels.changes import estimator_of_labels, estimator_with_classes
from sklearn_xc._parallel.progress import Fit
from sklearn_xc._parallel.threads import count_threads, openmp_threads
from sklearn_xc._state.fitted import fits_in_one_step, reads_snapshot
from sklearn_xc._state.schema import Estimator, Number, Record, Texts, declares
from sklearn_xc.ensemble.held_out import HeldOutAnswers, LearnsFromHeldOut, Members
from sklearn_xc.ensemble.members import Answers, named_errors
from sklearn_xc.ensemble.stacking.learner import best_threshold, pair_probabilities
from sklearn_xc.ensemble.stacking.pairs import (
    CandidatePairs,
    PairTraining,
    among,
    bytes_of_pair,
    describe,
    feature_names,
    gather,
    topk_of_pairs,
)
from sklearn_xc.ensemble.wrapped import AnswersBlankRows, reads_features
from sklearn_xc.metrics.propensity_scored import OBJECTIVES, gains_of, propensities_of

#: Members are queried for this multiple of `n_candidates`, to score the candidates of others.
_DEPTH = 2.5
_CHUNK_ROWS = 4_096
#: CandidatePairs, and places of answers, in a chunk of rows with labels of their own.
_CHUNK_CANDIDATES = 2**18


@declares(
    named_estimators_=Estimator(lists=True),
    estimators_=Estimator(lists=True),
    pair_features_=Texts("inputs"),
    final_estimator_=Record("Mixture", "Votes", foreign="predict_proba", inputs="inputs"),
    threshold_=Number(),
)
class StackingXC(LearnsFromHeldOut, AnswersBlankRows, BaseComposition):
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

    With one held-out part, each member is trained twice; with five folds, as for fewer than 5,000
    rows by default, six times. A pair takes about ``4 (5 n_members + 2)`` bytes, and an instance
    has up to ``n_members * n_candidates`` pairs.

    Source: stacking is [1]_; a classifier of retrieved candidates is common in ranking. The
    frequencies of a pair are those of the rows that its members were trained on: frequencies over
    all rows would leak the labels of held-out instances. So would labels that only these have, to a
    member that knows labels by their features: they are left out of its answers, unless y has as
    many labels without any instance.

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
    >>> labels, probabilities = clf.predict_topk(X[400:], k=3)
    >>> bool(precision_at_k(Y[400:], labels, k=1) > 0.7)
    True
    """

    _least_labels = 2
    _has_shortlist = True

    _parameter_constraints: dict = {  # noqa: RUF012
        "estimators": [list, tuple],
        "final_estimator": [None, HasMethods(["fit", "predict_proba"])],
        "objective": [StrOptions(set(OBJECTIVES))],
        "n_candidates": [Interval(Integral, 1, None, closed="left")],
        "label_names": ["array-like", None],
        **LearnsFromHeldOut._parameter_constraints,
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
    @fits_in_one_step
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
        began = time.perf_counter()
        members = self._check_members()
        reads_matrix = all(reads_features(member) for _, member in members)
        if reads_matrix:
            check_training_instances(self, X)
        fit = Fit(self, X, y, sample_weight)
        held_out, routed, progress = self._fit_held_out(
            members, X, y, sample_weight, fit_params, fit, n_more_parts=1
        )
        self._keep_frequencies(X, held_out, reads_matrix=reads_matrix)
        task = progress.part(progress.n_ended, name="learner of pairs").begin()
        training, _ = self._learn_pairs(held_out, [name for name, _ in members], routed)
        task.end()
        progress.ended(f"learner of pairs, on {len(training.rows)} rows")
        progress.close()
        own = max(0.0, time.perf_counter() - began - held_out.seconds.sum())
        self.fit_report_["seconds"] = np.append(held_out.seconds, own)
        fit.end()
        self._warn_of_unseen()
        return self

    def _learn_pairs(
        self, held_out: HeldOutAnswers, names: list[str], routed: Any
    ) -> tuple[PairTraining, np.ndarray]:
        """Train the classifier of pairs; return its training, and probabilities out of fold."""
        params = routed.final_estimator.fit
        training = PairTraining(held_out, self.n_candidates, params, type(self).__name__)
        with openmp_threads(1):  # gradient boosting keeps their number, and its bytes would differ
            self.final_estimator_, probabilities = training.fit(self.final_estimator)
        self.pair_features_ = feature_names(names)
        self.threshold_ = best_threshold(probabilities, training.relevant, training.truth.nnz)
        propensities = propensities_of(self.label_counts_, self.n_samples_fit_)
        self.fit_report_ = training.report(names, probabilities, self._gains(), propensities)
        return training, probabilities

    def _learn_alone(self, held_out: HeldOutAnswers) -> list[Answers]:
        """Train the classifier of pairs on the members' answers; return its own, out of fold.

        ``_keep_fitted`` has to follow.
        """
        targets, weight = held_out.targets, held_out.weight
        self._keep_targets(targets)
        self._count_instances(targets, weight)
        depth = self._depth()
        answers = [
            [Answers(*(a[:, :depth] for a in one)) for one in fold] for fold in held_out.answers
        ]
        given = Bunch(final_estimator=Bunch(fit={"sample_weight": weight}))
        names = [name for name, _ in self.estimators]
        held_out = held_out._replace(answers=answers)
        training, probabilities = self._learn_pairs(held_out, names, given)
        n_labels = training.pairs.labels.max(initial=0) + 1
        found = topk_of_pairs(training.pairs, probabilities, min(self.top_k, n_labels))
        ends = np.cumsum([len(rows) for rows in held_out.rows])[:-1]
        return [Answers(*part) for part in zip(*(np.split(a, ends) for a in found), strict=True)]

    def _keep_fitted(self, fitted: Members, X: Any, held_out: HeldOutAnswers) -> None:
        """Keep members that are fitted to X, all rows."""
        self._keep(list(fitted))
        reads_matrix = all(reads_features(one) for _, one in fitted)
        self._keep_frequencies(X, held_out, reads_matrix=reads_matrix)

    def _sk_visual_block_(self) -> Any:
        """Return the members and the learner of pairs as scikit-learn displays a stack."""
        is_default = self.final_estimator is None
        learner = HistGradientBoostingClassifier() if is_default else self.final_estimator
        return StackingClassifier(self.estimators, learner)._sk_visual_block_()

    def _check_members(self) -> list[tuple[str, Any]]:
        """Return the members by name, without those that are "drop"."""
        caller = type(self).__name__
        for pair in self.estimators:
            is_pair = isinstance(pair, list | tuple) and len(pair) == 2
            if not is_pair or not isinstance(pair[0], str):
                raise ValueError(
                    f"{caller}: estimators must be a list of pairs (name, estimator). Got {pair!r}."
                )
        with named_errors("estimators", caller):
            self._validate_names([name for name, _ in self.estimators])
        members = [(name, one) for name, one in self.estimators if not isinstance(one, str)]
        for name, one in self.estimators:
            if isinstance(one, type) or not (hasattr(one, "fit") or one == "drop"):
                raise TypeError(
                    f"{caller}: estimators: {name!r} must be an estimator. Got {one!r}."
                )
        if not members:
            raise ValueError(f"{caller}: estimators must not be empty, or all 'drop'.")
        return members

    def _routed_parts(self) -> dict[str, Any]:
        members = [] if isinstance(self.cv, str) else self.estimators
        kept = {name: member for name, member in members if not isinstance(member, str)}
        return {**kept, "final_estimator": self.final_estimator}

    def _pair_size(self, n_members: int) -> tuple[int, int, str]:
        n_pairs = min(n_members * self.n_candidates, len(self.classes_))
        return n_pairs, bytes_of_pair(n_members), "n_candidates"

    def _keep_members(self, fitted: list[tuple[str, Any]]) -> None:
        self.named_estimators_ = Bunch(**dict(fitted))
        self.estimators_ = [one for _, one in fitted]

    def _take_labels(self, places: np.ndarray) -> None:
        super()._take_labels(places)
        self._change_members(lambda member: estimator_of_labels(member, places))

    def _name_labels(self, classes: np.ndarray) -> None:
        super()._name_labels(classes)
        self._change_members(lambda member: estimator_with_classes(member, classes))

    def _change_members(self, change: Callable[[Any], Any]) -> None:
        members = {name: change(member) for name, member in self.named_estimators_.items()}
        self.named_estimators_ = type(self.named_estimators_)(**members)
        self.estimators_ = list(members.values())

    @reads_snapshot
    def predict_proba(self, X: Any) -> Any:
        """Return the probability that each label is relevant, in the container of y in fit.

        Parameters
        ----------
        X : object of n instances
            As in fit.

        Returns
        -------
        ndarray of shape (n, n_labels), or CSR of shape (n, n_labels)
            After a 1-D fit, rows sum to 1, and classes that are not candidates share what is left.
            Otherwise each label has a separate probability, 0 for labels that are not candidates;
            after a sparse fit, those of the ``top_k`` best labels are stored.
        """
        check_is_fitted(self)
        if self._targets_kind == "sparse":
            labels, found = self._topk_of(X, self._n_considered(X))
            return self._csr(labels, found, found > 0)
        found = np.maximum(self._dense(X), 0.0)
        found[:, self._unseen_labels] = 0.0
        if self._targets_kind == "dense":
            return found
        is_other = found == 0.0
        is_other[:, self._unseen_labels] = False
        n_others = is_other.sum(axis=1)
        left = np.where(n_others > 0, 1.0 - found.sum(axis=1), 0.0).clip(0.0)
        found += is_other * (left / np.maximum(n_others, 1))[:, None]
        return found / found.sum(axis=1, keepdims=True)

    def _ask_members(
        self,
        members: Members,
        X: Any,
        k: int = 0,
        allowed: AllowedLabels | None = None,
    ) -> list[Answers]:
        """Return the best labels of all members, at least k and as many as features need."""
        k = min(max(k, self._depth()), len(self.classes_)) if allowed is None else k
        workers = min(count_threads(self.n_jobs, f"{type(self).__name__}: n_jobs"), len(members))
        if workers == 1:
            return [self._ask_member(*member, X, k, allowed) for member in members]
        jobs = (delayed(self._ask_member)(*member, X, k, allowed) for member in members)
        return Parallel(n_jobs=workers, require="sharedmem")(jobs)

    def _depth(self) -> int:
        return int(_DEPTH * check_count(self.n_candidates, f"{type(self).__name__}: n_candidates"))

    def _gains(self) -> np.ndarray:
        """Return what a hit of each label counts."""
        return gains_of(self.objective, self.label_counts_, self.n_samples_fit_)

    def _topk_scores(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        return self._topk_of(X, k, self._gains())

    def _topk_longer(
        self, X: Any, k: int, n_more: int, **how: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._topk_of(X, k, self._gains(), n_more)

    def _best_among(
        self, X: Any, k: int, labels: np.ndarray, **how: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._topk_of(X, k, self._gains(), 0, AllowedLabels(len(self.classes_), labels))

    def _best_of_rows(
        self, X: Any, k: int, allowed: AllowedLabels, **how: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._topk_of(X, k, self._gains(), 0, allowed)

    def _topk_margins(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        labels, found = self._topk_of(X, k)
        return labels, found - self.threshold_

    def _all_scores(self, X: Any) -> np.ndarray:
        scores = self._dense(X, self._gains())
        return scores[:, 1:] - scores[:, :1] if self._is_binary else scores

    def _all_margins(self, X: Any) -> np.ndarray:
        return self._dense(X) - self.threshold_

    def _dense(self, X: Any, gains: np.ndarray | None = None) -> np.ndarray:
        n, n_labels = self._require_dense(X, 16, "the dense scores", "predict_topk")
        labels, found = self._topk_of(X, n_labels, gains)
        scores = np.empty((n, n_labels), found.dtype)
        np.put_along_axis(scores, labels, found, axis=1)
        return scores

    def _topk_of(
        self,
        X: Any,
        k: int,
        gains: np.ndarray | None = None,
        n_more: int = 0,
        allowed: AllowedLabels | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k labels with the largest probability times gain, in chunks of rows.

        Shortlists are longer by `n_more`. Of `allowed`, candidates, each is described, but no more
        for all rows than a member is asked for, or k.
        """
        name = type(self).__name__
        check_sparse(X, "X", name)
        refuse_masks_and_dates(X, f"{name}: X")
        n = n_rows(X, name)
        blank = self._are_blank(X)
        if allowed is not None and allowed.indptr is not None:
            labels = np.full((n, k), -1, np.int64)
            best = None
            for rows, size in rows_of_like_size(allowed.counts, k, _CHUNK_CANDIDATES):
                part = X if len(rows) == n else safe_indexing(as_rows(X), rows)
                of_rows = blank[rows], k, gains, 0, allowed.take(rows), size
                found = self._topk_of_part(part, *of_rows)
                best = np.full((n, k), -np.inf, found[1].dtype) if best is None else best
                labels[rows], best[rows] = found
            return labels, best  # type: ignore[return-value]
        parts = [
            self._topk_of_part(part, blank[first : first + _CHUNK_ROWS], k, gains, n_more, allowed)
            for first, part in zip(
                range(0, n, _CHUNK_ROWS), in_parts(X, n, _CHUNK_ROWS), strict=True
            )
        ]
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))  # type: ignore

    def _topk_of_part(
        self,
        X: Any,
        blank: np.ndarray,
        k: int,
        gains: np.ndarray | None,
        n_more: int,
        allowed: AllowedLabels | None,
        most: int = 0,
    ) -> tuple[np.ndarray, np.ndarray]:
        members = list(self.named_estimators_.items())
        depth = self._depth()
        answers = self._ask_members(members, X, max(k, depth + n_more) if allowed is None else 0)
        plain = [Answers(*(a[:, :depth] for a in both)) for both in answers]
        shortlist = self._seen(gather(plain, self.n_candidates))
        pairs = shortlist
        if n_more:
            longer = [Answers(*(a[:, : depth + n_more] for a in both)) for both in answers]
            n_candidates = self.n_candidates + n_more
            pairs = self._seen(among(plain, longer, shortlist, n_candidates, 0))
        if allowed is not None:
            of_each = allowed.indptr is not None
            n_asked = most if of_each else min(len(allowed.labels), max(k, depth))
            asked = self._ask_members(members, X, max(1, n_asked), allowed)
            n_candidates = n_asked if of_each else max(k, self.n_candidates)
            pairs = self._seen(among(plain, asked, shortlist, n_candidates, depth))
        features = describe(pairs, self.label_counts_, shortlist)
        with openmp_threads(count_threads(self.n_jobs)):
            found = pair_probabilities(self.final_estimator_, features)
        if blank.any():
            of_blank = blank[pairs.rows]
            found[of_blank] = self._blank_probabilities()[pairs.labels[of_blank]]
        dtype = np.result_type(*(scores.dtype for _, scores in answers))
        worth = (found if gains is None else found * gains[pairs.labels]).astype(dtype)
        counts = np.bincount(pairs.rows, minlength=pairs.n)
        if allowed is None and (counts < min(k, len(self.classes_))).any():
            pairs, worth = self._with_others(pairs, worth, answers)
        return topk_of_pairs(pairs, worth, k)

    def _seen(self, pairs: CandidatePairs) -> CandidatePairs:
        return pairs.take(~np.isin(pairs.labels, self._unseen_labels))

    def _with_others(
        self, pairs: CandidatePairs, worth: np.ndarray, answers: list[Answers]
    ) -> tuple[CandidatePairs, np.ndarray]:
        """Add what members rank further down: below 0 by the best rank, unseen labels last."""
        n_labels = len(self.classes_)
        everything = gather(answers, n_labels)
        rank = np.nanmin(everything.ranks, axis=1) if len(everything.rows) else np.empty(0)
        filled = (-rank / n_labels).astype(worth.dtype)
        filled[np.isin(everything.labels, self._unseen_labels)] -= 2.0
        keys, known = (part.rows * n_labels + part.labels for part in (everything, pairs))
        filled[np.searchsorted(keys, known)] = worth
        return everything, filled
