"""Calibrated probabilities of the best labels, for label sets of any size."""

import time
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._input.arguments import check_topk_size
from sklearn_xc._input.sklearn_private import HasMethods, Interval, StrOptions, fit_context
from sklearn_xc._labels.allowed import AllowedLabels
from sklearn_xc._labels.explanation import Explanation, as_row
from sklearn_xc._labels.names import position_of
from sklearn_xc._parallel.progress import Fit
from sklearn_xc._state.fitted import fits_in_one_step, reads_snapshot
from sklearn_xc._state.schema import Array, Number, Record, declares
from sklearn_xc._topk import just_below
from sklearn_xc._warnings import warn
from sklearn_xc.ensemble.held_out import (
    MOST_ROWS,
    HeldOutAnswers,
    LearnsFromHeldOut,
    ScoredPairs,
    scored_pairs,
)
from sklearn_xc.ensemble.macro_gains import OBJECTIVES, gains_of, macro_gains
from sklearn_xc.ensemble.pair_map import LEAST, METHODS, PairMap
from sklearn_xc.ensemble.wrapped import AnswersBlankRows, WrappedClassifier, reads_features
from sklearn_xc.exceptions import SmallGroupWarning
from sklearn_xc.metrics.frequency_groups import frequency_edges, group_of

#: A group with fewer relevant pairs is named in a warning.
_FEW = 30
#: Without `cv`, of as many rows as are learned from at most. On six sets of 5,195 to 19,285 rows
#: the error of the best label is 0.014 to 0.028 with five folds, and 0.017 to 0.041 with a tenth.
_FOLDS = 5
#: Rows whose pairs are described at once.
_CHUNK_ROWS = 4_096


@declares(
    map_=Record("PairMap"),
    gains_=Array("float64", "labels", 2, optional="missing"),
    _rest=Number(),
)
class TopKCalibrator(AnswersBlankRows, WrappedClassifier):
    """A classifier with calibrated probabilities for its best labels.

    This is scikit-learn's :class:`~sklearn.calibration.CalibratedClassifierCV` for label sets of
    any size. Rankings and scores are those of `estimator`. On rows that it was not trained on,
    maps are learned from its answer for a pair of an instance and a label to the probability that
    the instance has the label: one map for the best label of an instance and one for all others,
    each adapted to the frequency of the label.

    Parameters
    ----------
    estimator : classifier
        Anything that :func:`sklearn_xc.topk` can query: a classifier, Pipeline or search. Cloned.
    method : {"spline", "sigmoid"}, default="spline"
        "sigmoid" is a logistic regression on the score, the rank, the lead over the next label and
        the label's frequency. "spline" bends the log-odds of "sigmoid" at three places.
    objective : {"macro_f1", "macro_recall"}, default=None
        The metric at `k` that labels are ranked for; None leaves them in the order of their scores.
        Macro-averaged metrics count each label the same, however rare; precision@k falls. Scores
        are then what a label adds to the metric, labels beyond `top_k` come last, and ``predict``
        returns the first `k` labels of each row.
    k : int, default=5
        Labels that a row is given, for `objective`; 1 after a 1-D fit.
    n_groups : int, default=5
        Number of groups of labels by frequency, each with about the same share of all pairs. Each
        group has its own intercept and slope.
    cv : float, int, splitter, iterable of (train, test) or "prefit", default=None
        How to get the rows that maps are learned from. A float is the share of rows to hold out
        once; an int is the number of shuffled folds, each scored by a model trained on the others.
        The estimator is then trained on all rows. None makes five folds of up to 20,000 rows, and
        holds out a tenth of more. "prefit" takes the estimator as it is: pass ``fit`` rows that it
        was not trained on. At most 20,000 of the rows are learned from.
    n_candidates : int, default=20
        Number of labels of each row that maps are learned from, at most `top_k`.
    top_k : int, default=100
        Number of best labels of each row that have probabilities of their own (at least two), and
        that predict and decision_function consider after a fit to a sparse y. All others share one
        probability.
    n_jobs : int, default=None
        Number of models trained in parallel, in threads; memory grows with it. The result is the
        same for any number.
    random_state : int, RandomState instance or None, default=None
        Draws the held-out rows. The estimator has a random state of its own.
    verbose : int, default=0
        If not 0, print a line for each model that is trained.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Class labels after a 1-D y, otherwise column numbers.
    estimator_ : classifier
        Trained on all rows.
    map_ : object
        Maps scores to probabilities.
    gains_ : ndarray of float64 of shape (n_labels, 2) or None
        Numbers a, b of each label: one of probability p adds a p + b to `objective`.
    group_edges_ : ndarray of int64 of shape (n_found - 1,)
        For each group but the first, the smallest number of training instances of a label in it.
    fit_report_ : dict of ndarray
        One row per group, the rarest labels first: ``least_frequency``; ``n_labels``; ``n_pairs``
        and ``n_positives``, the held-out pairs learned from and those that are relevant; and
        ``seconds`` of the whole fit, in equal parts.
    label_counts_ : ndarray of int64 of shape (n_labels,)
        Number of instances with each label (or of each class).
    n_samples_fit_ : int
        Number of instances seen in fit. For a prefit estimator, this and ``label_counts_`` are the
        estimator's own, if it has counted them.
    n_features_in_, feature_names_in_
        The estimator's, if it has them.

    See Also
    --------
    sklearn.calibration.CalibratedClassifierCV : For few classes.
    ThresholdTuner : Label sets in place of probabilities.

    Notes
    -----
    Without `objective`, ``predict_topk`` and ``decision_function`` return the estimator's scores,
    in its order. The order of probabilities may differ: a label may get a higher probability than
    one with a higher score, if scores mean more in its group. For an indicator, ``predict`` returns
    the labels with a probability above 0.5; for classes, what the estimator predicts.

    After a 1-D fit, rows sum to 1. The best class gets the probability of its map. Of the rest,
    the classes beyond the ``top_k`` get a share: that of held-out rows whose class is none of the
    ``top_k``, among those for which the best class is wrong. The other ``top_k`` classes share
    what is left in proportion to the probabilities of their map. No class has more than the best
    one: where a map says so, the row is scaled.

    A label is rarer for the model that scores held-out rows than for the one trained on all rows.
    The maps are therefore learned with the label frequencies in the training rows of the fold, as
    a share of these rows.

    An instance without any feature that occurred in training gets the frequencies of the labels as
    its probabilities; if there are many training instances without features, the frequencies among
    these. This applies if `estimator` is a classifier of this package, which ranks labels in this
    way, and reads X itself.

    Memory: 120 bytes for each of the ``n * top_k`` pairs of held-out rows.

    Source: logistic maps of scores are from [1]_; these also use the rank, the lead and the
    frequency. `objective` is from [2]_: the best labels for a macro-averaged metric are those of
    largest a p + b. For recall, a is one over the label's share of the rows of fit, with one row
    more; for F1, the Frank-Wolfe method finds a and b on held-out rows, with the same shares.

    References
    ----------
    .. [1] J. Platt, "Probabilistic outputs for support vector machines", 1999.
    .. [2] E. Schultheis, W. Kotlowski, M. Wydmuch, R. Babbar, S. Borman and K. Dembczynski,
       "Consistent algorithms for multi-label classification with macro-at-k metrics", ICLR 2024.

    Examples
    --------
    >>> from sklearn_xc import OvALinearXC, TopKCalibrator
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> X, Y = make_xc_classification(
    ...     n_samples=600, n_features=300, n_labels=80, random_state=0, return_X_y=True
    ... )
    >>> clf = TopKCalibrator(OvALinearXC(), n_groups=2, random_state=0).fit(X[:400], Y[:400])
    >>> labels, probabilities = clf.predict_proba_topk(X[400:], k=3)
    >>> probabilities.shape
    (200, 3)

    About as many of the best labels are true as their probabilities promise:

    >>> from sklearn_xc.metrics import precision_at_k
    >>> bool(abs(probabilities[:, 0].mean() - precision_at_k(Y[400:], labels, k=1)) < 0.1)
    True
    """

    _parameter_constraints: dict = {  # noqa: RUF012
        "estimator": [HasMethods(["fit"])],
        "method": [StrOptions(set(METHODS))],
        "objective": [StrOptions(set(OBJECTIVES)), None],
        "k": [Interval(Integral, 1, None, closed="left")],
        "n_groups": [Interval(Integral, 1, None, closed="left")],
        "n_candidates": [Interval(Integral, 1, None, closed="left")],
        **LearnsFromHeldOut._parameter_constraints,
    }

    def __init__(
        self,
        estimator,
        *,
        method="spline",
        objective=None,
        k=5,
        n_groups=5,
        cv=None,
        n_candidates=20,
        top_k=100,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.estimator = estimator
        self.method = method
        self.objective = objective
        self.k = k
        self.n_groups = n_groups
        self.cv = cv
        self.n_candidates = n_candidates
        self.top_k = top_k
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=False)
    @fits_in_one_step
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> "TopKCalibrator":
        """Train the estimator and learn the maps.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features), data frame or list of str
            Whatever the estimator accepts.
        y : {array-like, sparse matrix} of shape (n,) or (n, n_labels)
            One class per instance, or a binary indicator, dense or sparse.
        sample_weight : array-like of shape (n,), default=None
            Weights of the instances, for the maps and, if it takes them, for the estimator; in a
            Pipeline they reach the last step. With metadata routing enabled the estimator gets
            them if it requests them.
        **fit_params : dict
            Further arguments for ``fit`` of the estimator; with metadata routing enabled, for the
            estimator and `cv` as requested, such as `groups`.

        Returns
        -------
        TopKCalibrator
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            For invalid arguments. Errors of the estimator are raised with its name.
        MemoryBudgetError
            If the scores of the held-out rows do not fit into memory.

        Warns
        -----
        SmallGroupWarning
            For groups of labels with fewer than 30 relevant held-out pairs.
        """
        began = time.perf_counter()
        fit = Fit(self, X, y, sample_weight)
        held_out = self._learn_held_out(X, y, sample_weight, fit_params, fit)
        pairs = scored_pairs(held_out)
        self.group_edges_ = frequency_edges(self.label_counts_, self.n_groups)
        depth = min(self.n_candidates, self._depth())
        self.map_ = PairMap(self.group_edges_, self.method).fit(pairs, depth)
        self._warn_of_small(pairs)
        self._keep_rest(pairs)
        self._keep_gains(pairs, held_out)
        self._keep_frequencies(X, held_out, reads_matrix=reads_features(self.estimator_))
        is_used = pairs.ranks < depth
        groups = group_of(pairs.frequency, self.group_edges_)
        n_groups = len(self.group_edges_) + 1
        self.fit_report_ = self._report(
            began,
            n_pairs=np.bincount(groups[is_used], minlength=n_groups),
            n_positives=np.bincount(groups[is_used & pairs.relevant], minlength=n_groups),
        )
        fit.end()
        self._warn_of_unseen()
        return self

    def _folds_of(self, n_rows: int) -> Any:
        if self.cv is None and n_rows <= MOST_ROWS:
            return min(_FOLDS, n_rows)
        return self.cv

    def _depth(self) -> int:
        """Return the labels of each row that are asked for: a lead needs two."""
        return min(max(super()._depth(), 2), len(self.classes_))

    def _warn_of_small(self, pairs: ScoredPairs) -> None:
        edges = self.group_edges_
        relevant = group_of(pairs.frequency[pairs.relevant], edges)
        found = np.bincount(relevant, minlength=len(edges) + 1)
        small = np.flatnonzero(found < _FEW)
        if small.size:
            names = ", ".join(
                f"labels of {0 if not group else edges[group - 1]} and more training instances "
                f"({found[group]})"
                for group in small
            )
            warn(
                f"{type(self).__name__}: {small.size} of {len(edges) + 1} groups of labels have "
                f"fewer than {_FEW} relevant held-out pairs: {names}. Their probabilities lean on "
                "those of the others. Lower n_groups, or hold more rows out (cv).",
                SmallGroupWarning,
            )

    def _keep_rest(self, pairs: ScoredPairs) -> None:
        """Keep how likely labels beyond ``top_k`` are."""
        beyond = len(self.classes_) - self._depth()
        found = float(pairs.weight @ pairs.relevant)
        missed = max(float(pairs.true_weight.sum()) - found, 0.0)
        first = pairs.ranks == 0
        n = float(pairs.weight[first].sum())
        if not beyond:
            self._rest = 0.0
        elif self._targets_kind != "classes":
            self._rest = (missed + 0.5) / (n * beyond + 1.0)
        else:
            wrong = float(pairs.weight[first] @ ~pairs.relevant[first])
            self._rest = (missed + 0.5) / (wrong + 1.0)
            self._rest = min(self._rest, 1.0)

    def _keep_gains(self, pairs: ScoredPairs, held_out: HeldOutAnswers) -> None:
        """Learn what labels add to the objective, from the probabilities of held-out pairs."""
        self.gains_ = None
        if self.objective is None:
            return
        shape = pairs.n, self._depth()
        labels, scores = np.full(shape, -1), np.full(shape, -np.inf, pairs.scores.dtype)
        frequency, weight = np.zeros(shape, np.int64), np.zeros(pairs.n)
        at = pairs.rows, pairs.ranks
        labels[at], scores[at], frequency[at] = pairs.labels, pairs.scores, pairs.frequency
        weight[pairs.rows] = pairs.weight
        probabilities = np.zeros(shape, np.float32)
        for first in range(0, pairs.n, _CHUNK_ROWS):
            some = slice(first, first + _CHUNK_ROWS)
            known = _filled(scores[some], labels[some] < 0)
            probabilities[some] = self.map_.probabilities(known, frequency[some])
        counts, total = self.label_counts_, float(self.n_samples_fit_)
        if not isinstance(self.cv, str):
            counts, total = held_out.truth.T @ held_out.weight, float(held_out.weight.sum())
        k = 1 if self._targets_kind == "classes" else self.k
        share = (counts + 1.0) / total
        self.gains_ = macro_gains(probabilities, labels, weight, share, k, self.objective)

    @property
    def _ranks_anew(self) -> bool:  # type: ignore[override]
        return getattr(self, "gains_", None) is not None  # older models lack it

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
            After a 1-D fit, rows sum to 1. Otherwise each label has a separate probability,
            between 0 and 1; after a sparse fit, those of the ``top_k`` best labels are stored.
            Labels without a training instance have 0.

        Examples
        --------
        A row of 80 labels after a sparse fit, each with a probability of its own:

        >>> from sklearn_xc import OvALinearXC, TopKCalibrator
        >>> from sklearn_xc.datasets import make_xc_classification
        >>> X, Y = make_xc_classification(
        ...     n_samples=600, n_features=300, n_labels=80, random_state=0, return_X_y=True
        ... )
        >>> clf = TopKCalibrator(OvALinearXC(), n_groups=2, random_state=0).fit(X[:400], Y[:400])
        >>> probabilities = clf.predict_proba(X[400:])
        >>> probabilities.shape, probabilities.nnz
        ((200, 80), 16000)
        >>> n_expected = probabilities.sum() / 200  # labels of an instance
        >>> bool(abs(n_expected - Y[400:].sum() / 200) < 0.5)
        True
        """
        check_is_fitted(self)
        if self._targets_kind == "sparse":
            labels, probabilities, _ = self._probabilities(X, self._n_considered(X))
            return self._csr(labels, probabilities, labels >= 0)
        _, n_labels = self._require_dense(X, 8, "the probabilities", "predict_proba_topk")
        labels, probabilities, rest = self._probabilities(X, self._depth())
        answer = np.repeat(rest[:, None], n_labels, axis=1)
        at, ranks = np.nonzero(labels >= 0)
        answer[at, labels[at, ranks]] = probabilities[at, ranks]
        blank = self._are_blank(X)
        if blank.any():
            answer[blank] = self._blank_probabilities()
        answer[:, self._unseen_labels] = 0.0
        if self._targets_kind == "classes":
            answer /= answer.sum(axis=1, keepdims=True)
        return answer

    @reads_snapshot
    def predict_proba_topk(
        self, X: Any, k: int = 5, *, candidates: Any = None, exclude: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels of :meth:`predict_topk`, and their probabilities.

        Parameters
        ----------
        X : object of n instances
            As in fit.
        k : int, default=5
            How many labels; may exceed their number.
        candidates, exclude : sequence, or indicator of shape (n, n_labels), default=None
            The labels that may or may not be returned, as in :meth:`predict_topk`. They do not
            affect the probability of a label: all labels are ranked in any case.

        Returns
        -------
        indices : ndarray of int64 of shape (n, k)
            As in :meth:`predict_topk`.
        probabilities : ndarray of float of shape (n, k)
            Padded with 0.
        """
        check_is_fitted(self)
        k = check_topk_size(k, X, self)
        allowed = self._read_allowed(X, candidates, exclude)
        if allowed is not None:
            return self._probabilities_of(X, self._allowed_topk(X, k, allowed)[0])
        if self._ranks_anew:
            return self._probabilities_of(X, self._topk_scores(X, k)[0])
        labels, probabilities, _ = self._probabilities(X, max(k, self._depth()))
        unseen = np.isin(labels, self._unseen_labels)
        return labels[:, :k], np.where(unseen, 0.0, probabilities)[:, :k]

    @available_if(lambda self: hasattr(self._inner, "explain"))
    @reads_snapshot
    def explain(
        self, x: Any, label: Any, *, feature_names: Any = None, n_features: int | None = 10
    ) -> Explanation:
        """Return the features that made the score of one label and instance, and the probability.

        Parameters
        ----------
        x : {array-like, sparse matrix} of shape (1, n_features) or (n_features,)
            The instance.
        label : object
            A member of ``classes_``.
        feature_names : array-like of str of shape (n_features,), default=None
            Names; None takes those of fit, otherwise column numbers.
        n_features : int or None, default=10
            How many features to list at most; None for all with a contribution.

        Returns
        -------
        Explanation
            Of the estimator's score, with ``probability`` as in :meth:`predict_proba_topk`.
        """
        found = super().explain(x, label, feature_names=feature_names, n_features=n_features)
        caller = type(self).__name__
        place = position_of(label, self.classes_, caller)
        _, probabilities = self._probabilities_of(as_row(x, caller), np.array([[place]]))
        return replace(found, probability=float(probabilities[0, 0]))

    def _probabilities(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the k best labels of each row, their probabilities, and that of each other."""
        depth = self._depth()
        labels, scores = super()._topk_scores(X, max(k, depth))
        parts = [
            self._of_scores(labels[a : a + _CHUNK_ROWS], scores[a : a + _CHUNK_ROWS], depth)
            for a in range(0, len(labels), _CHUNK_ROWS)
        ]
        probabilities, rest = (
            np.concatenate(part).astype(scores.dtype) for part in zip(*parts, strict=True)
        )
        blank = self._are_blank(X)
        if blank.any():
            known = labels[blank]
            probabilities[blank] = np.where(known >= 0, self._blank_probabilities()[known], 0.0)
        return labels[:, :k], probabilities[:, :k], rest

    def _probabilities_of(self, X: Any, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return labels, padded with -1, and their probabilities."""
        ranked, known, rest = self._probabilities(X, self._depth())
        place = self._columns_among(labels, ranked)
        own = np.take_along_axis(known, place.clip(0), axis=1)
        probabilities = np.where(place >= 0, own, rest[:, None])
        blank = self._are_blank(X)
        if blank.any():
            probabilities[blank] = self._blank_probabilities()[labels[blank]]
        probabilities[(labels < 0) | np.isin(labels, self._unseen_labels)] = 0.0
        return labels, probabilities

    def _columns_among(self, labels: np.ndarray, ranked: np.ndarray) -> np.ndarray:
        """Return the columns of labels among those ranked for the same row, -1 for none."""
        own = np.arange(len(labels), dtype=np.int64)[:, None] * len(self.classes_)
        keys = np.where(ranked >= 0, own + ranked, -1).ravel()
        order = np.argsort(keys)
        at = order[np.searchsorted(keys, own + labels, sorter=order).clip(max=len(keys) - 1)]
        return np.where((keys[at] == own + labels) & (labels >= 0), at % ranked.shape[1], -1)

    def _of_scores(
        self, labels: np.ndarray, scores: np.ndarray, depth: int
    ) -> tuple[np.ndarray, np.ndarray]:
        named = labels[:, :depth]
        missing = named < 0
        known = _filled(scores[:, :depth], missing)
        found = self.map_.probabilities(known, self.label_counts_[named])
        found[missing] = 0.0
        if self._targets_kind == "classes":
            found, rest = self._summing_to_one(found)
        else:
            rest = np.minimum(self._rest, np.where(missing, 1.0, found).min(axis=1)).clip(LEAST)
        if labels.shape[1] > depth:
            further = np.where(labels[:, depth:] >= 0, rest[:, None], 0.0)
            found = np.concatenate([found, further], axis=1)
        return found, rest

    def _summing_to_one(self, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return probabilities of classes that sum to 1, the first the largest."""
        beyond = len(self.classes_) - found.shape[1]
        first = found[:, :1]
        others = np.minimum.accumulate(found[:, 1:], axis=1)
        # Below the first by more than rounding, so that it is the largest.
        most = first * (1.0 - LEAST)
        of_rest = self._rest if others.shape[1] else 1.0
        left = (1.0 - first) * (1.0 - of_rest)
        others = others * left / np.maximum(others.sum(axis=1, keepdims=True), 1e-300)
        others = np.minimum(others, most)
        rest = np.zeros_like(first)
        if beyond:
            rest = of_rest * (1.0 - first) / beyond
            rest = np.minimum(rest, others[:, -1:] if others.shape[1] else most)
        total = first + others.sum(axis=1, keepdims=True) + beyond * rest
        return np.concatenate([first, others], axis=1) / total, (rest / total)[:, 0]

    def _topk_scores(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        if not self._ranks_anew:
            return super()._topk_scores(X, k)
        return self._by_gain(X, k)

    def _allowed_topk(
        self, X: Any, k: int, allowed: AllowedLabels, **how: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        depth = max(k, self._depth()) if self._ranks_anew else k
        labels, scores = super()._allowed_topk(X, depth, allowed)
        return self._by_gain(X, k, labels) if self._ranks_anew else (labels, scores)

    def _by_gain(
        self, X: Any, k: int, listed: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k labels of largest gain of those listed, and their gains.

        Labels beyond the ``top_k`` follow in the order of their scores, then unseen ones.
        """
        ranked, known, _ = self._probabilities(X, self._depth())
        if listed is None:
            listed = ranked if k <= ranked.shape[1] else super()._topk_scores(X, k)[0]
        gains, floor = self._gains(ranked, known)
        place = self._columns_among(listed, ranked)
        worth = np.where(place >= 0, np.take_along_axis(gains, place.clip(0), axis=1), floor)
        worth[listed < 0] = -np.inf
        column = np.broadcast_to(np.arange(listed.shape[1]), listed.shape)
        ties = np.where(place >= 0, listed, column)
        is_unseen = np.isin(listed, self._unseen_labels)
        order = np.lexsort((ties, -worth, place < 0, is_unseen, listed < 0), axis=1)[:, :k]
        return tuple(np.take_along_axis(each, order, axis=1) for each in (listed, worth))

    def _gains(self, ranked: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the gains of labels with a probability of their own, and that of all others."""
        gains = gains_of(known, ranked, self.gains_).astype(known.dtype)
        is_trained = (ranked >= 0) & ~np.isin(ranked, self._unseen_labels)
        lowest = gains.min(axis=1, where=is_trained, initial=np.inf, keepdims=True)
        return gains, just_below(np.where(np.isfinite(lowest), lowest, 0))

    def _all_scores(self, X: Any) -> np.ndarray:
        if not self._ranks_anew:
            return super()._all_scores(X)
        _, n_labels = self._require_dense(X, 8, "the dense scores", "predict_topk")
        ranked, known, _ = self._probabilities(X, self._depth())
        gains, floor = self._gains(ranked, known)
        scores = np.repeat(floor, n_labels, axis=1)
        at, ranks = np.nonzero(ranked >= 0)
        scores[at, ranked[at, ranks]] = gains[at, ranks]
        return scores[:, 1:] - scores[:, :1] if self._is_binary else scores

    def _topk_margins(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        if self._ranks_anew:
            labels, _ = self._topk_scores(X, k)
            return labels, np.where((np.arange(k) < self.k) & (labels >= 0), 1.0, -1.0)
        labels, probabilities, _ = self._probabilities(X, k)
        return labels, probabilities - 0.5

    def _all_margins(self, X: Any) -> np.ndarray:
        if not self._ranks_anew:
            return self.predict_proba(X) - 0.5
        labels, margins = self._topk_margins(X, min(self.k, self._depth()))
        answer = np.full((len(labels), len(self.classes_)), -1.0)
        at, ranks = np.nonzero(labels >= 0)
        answer[at, labels[at, ranks]] = margins[at, ranks]
        return answer


def _filled(scores: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return scores with the lowest of the row where a label is missing, 0 for none at all."""
    known = np.where(missing, np.nanmin(scores, axis=1, keepdims=True), scores)
    return np.where(np.isfinite(known), known, 0.0)
