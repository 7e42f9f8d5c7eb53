"""Thresholds tuned on held-out rows, for label sets of any size."""

import time
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from sklearn_xc._input.sklearn_private import HasMethods, Interval, StrOptions, fit_context
from sklearn_xc._parallel.progress import Fit
from sklearn_xc._state.fitted import fits_in_one_step
from sklearn_xc._state.schema import Array, Number, declares
from sklearn_xc._topk import best_of_dense
from sklearn_xc._warnings import warn
from sklearn_xc.ensemble.held_out import LearnsFromHeldOut, ScoredPairs, scored_pairs
from sklearn_xc.ensemble.wrapped import WrappedClassifier
from sklearn_xc.metrics.frequency_groups import frequency_edges, group_of

#: Limit of Dinkelbach's steps, three to six are usual.
_MOST_STEPS = 100
OBJECTIVES = ("micro_f1", "macro_f1", "recall", "count")
PER = ("all", "frequency_group", "label")
#: Held-out rows with a label at which its own threshold and its group's have the same weight.
#: Of 3, 10, 30 and 100, on bibtex, delicious, citeulike-t, WordNet and the Tate's subjects, 30 is
#: within 0.3 points of the best in micro- and in macro-averaged F1 of each.
_PRIOR = 30.0


class Cells(NamedTuple):
    """The cell of each pair, and of each relevant pair, found or not.

    Attributes
    ----------
    of_pairs : ndarray of int64 of shape (n_pairs,)
    of_relevant : ndarray of int64 of shape (n_relevant,)
        -1 for a pair that counts in no cell.
    n : int
    """

    of_pairs: np.ndarray
    of_relevant: np.ndarray
    n: int


class RankedPairs:
    """The pairs of each cell in descending order of scores, and thresholds between them.

    Parameters
    ----------
    pairs : ScoredPairs
    cells : Cells
    """

    def __init__(self, pairs: ScoredPairs, cells: Cells) -> None:
        order = np.lexsort((-pairs.scores, cells.of_pairs))
        self.n_cells = cells.n
        self.n_pairs = len(order)
        self.labels = pairs.labels[order]
        self.scores = pairs.scores[order].astype(np.float64)
        self.cells = cells.of_pairs[order]
        self.weight = pairs.weight[order]
        self.hits = self.weight * pairs.relevant[order]
        self.n_relevant = pairs.n_relevant
        inside = cells.of_relevant >= 0
        self.cell_relevant = np.bincount(
            cells.of_relevant[inside], pairs.true_weight[inside], minlength=cells.n
        )
        self.starts = np.searchsorted(self.cells, np.arange(cells.n + 1))
        same = (self.cells[1:] == self.cells[:-1]) & (self.scores[1:] == self.scores[:-1])
        #: Equal scores are predicted together.
        self.ends = np.append(~same, True)[: self.n_pairs]

    def within(self, values: np.ndarray) -> np.ndarray:
        """Return the cumulative sums of each cell."""
        total = np.concatenate(([0.0], np.cumsum(values)))
        return total[1:] - total[self.starts[self.cells]]

    def best(self, values: np.ndarray, of_none: np.ndarray) -> np.ndarray:
        """Return the number of pairs of each cell to predict for the largest value.

        Parameters
        ----------
        values : ndarray of float64 of shape (n_pairs,)
            The value of predicting a pair and all before it in its cell.
        of_none : ndarray of float64 of shape (n_cells,)
            The value of predicting none.

        Returns
        -------
        ndarray of int64 of shape (n_cells,)
            The fewest of equal value.
        """
        counts = np.zeros(self.n_cells, np.int64)
        filled = np.flatnonzero(np.diff(self.starts))
        if not filled.size:
            return counts
        values = np.where(self.ends, values, -np.inf)
        largest = np.full(self.n_cells, -np.inf)
        largest[filled] = np.maximum.reduceat(values, self.starts[filled])
        at = np.flatnonzero(values == largest[self.cells])
        cells, first = np.unique(self.cells[at], return_index=True)
        better = largest[cells] > of_none[cells]
        counts[cells[better]] = (at[first] - self.starts[cells] + 1)[better]
        return counts

    def thresholds(self, counts: np.ndarray) -> np.ndarray:
        """Return thresholds that `counts` pairs of each cell exceed; NaN for cells without pairs.

        Half-way between two scores; just below the last where all exceed it, and the first score
        where none does.
        """
        found = np.full(self.n_cells, np.nan)
        sizes = np.diff(self.starts)
        for_all, for_none = (counts == sizes) & (sizes > 0), (counts == 0) & (sizes > 0)
        between = (counts > 0) & (counts < sizes)
        at = self.starts[:-1] + counts
        upper, lower = self.scores[at[between] - 1], self.scores[at[between]]
        middle = 0.5 * upper + 0.5 * lower
        found[between] = np.where(middle < upper, middle, lower)
        found[for_all] = np.nextafter(self.scores[at[for_all] - 1], -np.inf)
        found[for_none] = self.scores[self.starts[:-1][for_none]]
        return found

    def total(self, values: np.ndarray, counts: np.ndarray) -> float:
        """Return the sum over the pairs that are predicted."""
        place = np.arange(self.n_pairs) - self.starts[self.cells]
        return float(values[place < counts[self.cells]].sum())


def most_micro_f(ranking: RankedPairs, beta: float) -> np.ndarray:
    """Return the number of pairs of each cell for the largest F-measure of all pairs together.

    Dinkelbach's method for a ratio: with F the largest so far, the cells part, and each takes the
    prefix with the largest ``(1 + beta**2) hits - F pairs``.

    Notes
    -----
    Source: W. Dinkelbach, "On nonlinear fractional programming", Management Science 13, 1967.
    """
    square = beta * beta
    best = 0.0
    relevant = float(ranking.n_relevant.sum())
    counts = np.zeros(ranking.n_cells, np.int64)
    hits = (1.0 + square) * ranking.within(ranking.hits)
    pairs = ranking.within(ranking.weight)
    for _ in range(_MOST_STEPS):
        counts_now = ranking.best(hits - best * pairs, np.zeros(ranking.n_cells))
        found = ranking.total(ranking.hits, counts_now)
        predicted = ranking.total(ranking.weight, counts_now)
        value = (1.0 + square) * found / max(square * relevant + predicted, 1e-300)
        if value <= best:
            break
        best, counts = value, counts_now
    return counts


def most_macro_f(ranking: RankedPairs, beta: float) -> np.ndarray:
    """Return the number of pairs of each cell for the largest mean of the labels' F-measures.

    The mean changes with each pair by what it adds to the F-measure of its label; that of a label
    that no instance has is 0.
    """
    return ranking.best(ranking.within(gains_of_label_f(ranking, beta)), np.zeros(ranking.n_cells))


def gains_of_label_f(ranking: RankedPairs, beta: float) -> np.ndarray:
    """Return the gain of each pair in the F-measure of its label, those before it predicted."""
    square = beta * beta
    order = np.lexsort((np.arange(ranking.n_pairs), ranking.labels))
    labels = ranking.labels[order]
    starts = np.searchsorted(labels, labels)
    sums = []
    for values in (ranking.hits, ranking.weight):
        total = np.concatenate(([0.0], np.cumsum(values[order])))
        sums.append(total[1:] - total[starts])
    hits, predicted = sums
    f = (1.0 + square) * hits / (square * ranking.n_relevant[labels] + predicted)
    is_first = np.arange(len(starts)) == starts
    before = np.where(is_first, 0.0, np.concatenate(([0.0], f[:-1]))[: len(f)])
    gains = np.empty(ranking.n_pairs)
    gains[order] = f - before
    return gains


def most_recall(ranking: RankedPairs, min_precision: float) -> np.ndarray:
    """Return the number of pairs of each cell for most hits, with at least this precision."""
    hits, pairs = ranking.within(ranking.hits), ranking.within(ranking.weight)
    allowed = hits >= min_precision * pairs
    return ranking.best(np.where(allowed, hits, -np.inf), np.zeros(ranking.n_cells))


def as_many_as_true(ranking: RankedPairs) -> np.ndarray:
    """Return the number of pairs of each cell nearest to the number of its relevant pairs."""
    too_many = np.abs(ranking.within(ranking.weight) - ranking.cell_relevant[ranking.cells])
    return ranking.best(-too_many, -ranking.cell_relevant)


@declares(threshold_=Number(), thresholds_=Array("float64", "labels"))
class ThresholdTuner(WrappedClassifier):
    """A classifier that predicts the labels above thresholds tuned on held-out rows.

    This is scikit-learn's :class:`~sklearn.model_selection.TunedThresholdClassifierCV` for label
    sets of any size. Rankings and scores are those of `estimator`. What changes is which labels
    ``predict`` returns: those whose score exceeds the threshold that was best on rows held out of
    training. One-vs-all margins seldom exceed 0 for rare labels, so that ``predict`` of
    :class:`~sklearn_xc.OvALinearXC` is nearly empty if labels are rare.

    Parameters
    ----------
    estimator : classifier
        Anything that :func:`sklearn_xc.topk` can ask: a classifier, Pipeline or search. Cloned.
    objective : {"micro_f1", "macro_f1", "recall", "count"}, default="micro_f1"
        What the thresholds optimise on held-out rows. "micro_f1" is the F-measure over all pairs
        of an instance and a label, "macro_f1" the mean of the labels' own F-measures. "recall"
        finds as many relevant labels as possible with a precision of `min_precision` in each
        group. "count" predicts as many labels as are true; it is nearly as good as "micro_f1" in
        micro-F1 and, if many labels have few held-out rows, mostly better than "macro_f1" in
        macro-F1.
    per : {"all", "frequency_group", "label"}, default="frequency_group"
        What has a threshold of its own. Frequency groups are of labels with about as many training
        instances. With "label", a label's threshold is the mean of its own and of its group's,
        where the latter has the weight of 30 held-out rows with the label.
    beta : float, default=1.0
        Recall counts `beta` times as much as precision: "micro_f1" and "macro_f1" are F-measures
        with this beta.
    min_precision : float, default=0.5
        The precision for the objective "recall".
    n_groups : int, default=5
        Number of groups of labels; each has about the same share of all pairs.
    min_labels : int, default=0
        The best `min_labels` labels of each row are predicted whatever their scores: with 1, no
        row is left empty. Thresholds do not change; ``fit_report_`` counts these labels.
    cv : float, int, splitter, iterable of (train, test) or "prefit", default=None
        How to get the rows that thresholds are learned from. A float is the share of rows to hold
        out once; an int is the number of shuffled folds, each scored by a model trained on the
        others. The estimator is then trained on all rows. None holds out a tenth, at least 1,000
        rows, or makes five folds of fewer than 5,000 rows. "prefit" takes the estimator as it is:
        pass ``fit`` rows that it was not trained on. At most 20,000 of the rows are learned from.
    top_k : int, default=100
        Number of best labels of each row that thresholds are learned from; after a fit to a sparse
        y, also the number that predict and decision_function consider.
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
        Column numbers of the indicator, or its names; class labels after a 1-D y.
    estimator_ : classifier
        Trained on all rows.
    threshold_ : float
        The best single threshold. NaN after a 1-D y, as are all others.
    thresholds_ : ndarray of float64 of shape (n_labels,)
        ``predict`` returns labels with a larger score. All are `threshold_` with ``per="all"``.
    group_edges_ : ndarray of int64 of shape (n_found - 1,)
        For each group but the first, the smallest number of training instances of a label in it.
    fit_report_ : dict of ndarray
        One row per group, the rarest labels first: ``least_frequency``; ``n_labels``;
        ``n_positives`` of the held-out rows that a model was trained to find; ``threshold``,
        before labels have their own; ``precision`` and ``recall`` on these rows with
        `thresholds_` and `min_labels`; and ``seconds`` of the whole fit, in equal parts.
    label_counts_ : ndarray of int64 of shape (n_labels,)
        Number of instances with each label.
    n_samples_fit_ : int
        Number of instances seen in fit. For a prefit estimator, this and ``label_counts_`` are the
        estimator's own, if it has counted them.
    n_features_in_, feature_names_in_
        The estimator's, if it has them.

    See Also
    --------
    sklearn.model_selection.TunedThresholdClassifierCV : For two classes.
    TopKCalibrator : Probabilities in place of scores.

    Notes
    -----
    After a 1-D fit there is nothing to tune, as the best class is predicted: no rows are held out,
    all answers are those of the estimator, and thresholds are NaN. For two classes see
    :class:`~sklearn.model_selection.TunedThresholdClassifierCV`.

    A label is rarer for the model that scores held-out rows than for the one trained on all rows,
    by the instances held out: a label with two instances has only one. The groups of held-out
    pairs therefore follow the label's frequency in the training rows of the fold, as a share of
    these rows.

    ``score`` is precision@1, which no threshold changes; for F1, use
    :func:`sklearn.metrics.f1_score` or a scorer of it.

    Memory: 120 bytes for each of the ``n * top_k`` pairs of held-out rows. Time: with one held-out
    part, the estimator is trained twice.

    Source: the group thresholds that are best for a ratio of sums are found by the method of [1]_;
    that thresholds of rare labels are better not tuned individually is observed in [2]_.

    References
    ----------
    .. [1] W. Dinkelbach, "On nonlinear fractional programming", Management Science 13, 1967.
    .. [2] Y. Yang, "A study of thresholding strategies for text categorization", SIGIR 2001.

    Examples
    --------
    >>> from sklearn_xc import OvALinearXC, ThresholdTuner
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> X, Y = make_xc_classification(
    ...     n_samples=600, n_features=300, n_labels=80, random_state=0, return_X_y=True
    ... )
    >>> plain = OvALinearXC().fit(X[:400], Y[:400]).predict(X[400:])
    >>> tuned = ThresholdTuner(OvALinearXC(), random_state=0).fit(X[:400], Y[:400])
    >>> bool(tuned.predict(X[400:]).nnz > plain.nnz)
    True
    """

    _parameter_constraints: dict = {  # noqa: RUF012
        "estimator": [HasMethods(["fit"])],
        "objective": [StrOptions(set(OBJECTIVES))],
        "per": [StrOptions(set(PER))],
        "beta": [Interval(Real, 0, None, closed="neither")],
        "min_precision": [Interval(Real, 0, 1, closed="right")],
        "n_groups": [Interval(Integral, 1, None, closed="left")],
        "min_labels": [Interval(Integral, 0, None, closed="left")],
        **LearnsFromHeldOut._parameter_constraints,
    }

    def __init__(
        self,
        estimator,
        *,
        objective="micro_f1",
        per="frequency_group",
        beta=1.0,
        min_precision=0.5,
        n_groups=5,
        min_labels=0,
        cv=None,
        top_k=100,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.estimator = estimator
        self.objective = objective
        self.per = per
        self.beta = beta
        self.min_precision = min_precision
        self.n_groups = n_groups
        self.min_labels = min_labels
        self.cv = cv
        self.top_k = top_k
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=False)
    @fits_in_one_step
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> "ThresholdTuner":
        """Train the estimator and find the thresholds.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features), data frame or list of str
            Whatever the estimator accepts.
        y : {array-like, sparse matrix} of shape (n, n_labels) or (n,)
            A binary indicator, dense or sparse. With one class per instance there is nothing to
            tune: the estimator is trained and answers as it is.
        sample_weight : array-like of shape (n,), default=None
            Weights of the instances, for the thresholds and, if it takes them, for the estimator;
            in a Pipeline they reach the last step. With metadata routing enabled the estimator
            gets them if it requests them.
        **fit_params : dict
            Further arguments for ``fit`` of the estimator; with metadata routing enabled, for the
            estimator and `cv` as requested, such as `groups`.

        Returns
        -------
        ThresholdTuner
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If an argument is invalid. Errors of the estimator are raised with its name.
        MemoryBudgetError
            If the scores of the held-out rows do not fit into memory.
        """
        began = time.perf_counter()
        fit = Fit(self, X, y, sample_weight)
        held_out = self._learn_held_out(X, y, sample_weight, fit_params, fit, of_classes=False)
        self.group_edges_ = frequency_edges(self.label_counts_, self.n_groups)
        columns = self._tune(scored_pairs(held_out)) if self._has_columns else self._tune_nothing()
        self.fit_report_ = self._report(began, **columns)
        fit.end()
        self._warn_of_unseen()
        return self

    def _tune_nothing(self) -> dict[str, np.ndarray]:
        """Do as ``_tune`` without thresholds: the best class is predicted."""
        self.threshold_ = float("nan")
        self.thresholds_ = np.full(len(self.classes_), np.nan)
        none = np.full(len(self.group_edges_) + 1, np.nan)
        return {
            "n_positives": np.zeros_like(none),
            "threshold": none,
            "precision": none,
            "recall": none,
        }

    def _tune(self, pairs: ScoredPairs) -> dict[str, np.ndarray]:
        """Set ``threshold_`` and ``thresholds_``, and return columns of the report."""
        n_labels = len(self.classes_)
        edges = self.group_edges_
        single = Cells(np.zeros_like(pairs.labels), np.zeros_like(pairs.true_labels), 1)
        found = self._best(pairs, single)[0]
        self.threshold_ = float(found) if np.isfinite(found) else 0.0
        groups = Cells(
            group_of(pairs.frequency, edges),
            np.where(pairs.true_frequency > 0, group_of(pairs.true_frequency, edges), -1),
            len(edges) + 1,
        )
        of_groups = np.full(groups.n, self.threshold_)
        if self.per != "all":
            found = self._best(pairs, groups)
            of_groups = np.where(np.isnan(found), of_groups, found)
        thresholds = of_groups[group_of(self.label_counts_, edges)]
        if self.per == "label":
            found = self._best(pairs, Cells(pairs.labels, pairs.true_labels, n_labels))
            own = np.where(np.isnan(found), thresholds, found)
            n = pairs.n_relevant
            thresholds = (_PRIOR * thresholds + n * own) / (_PRIOR + n)
        self.thresholds_ = thresholds
        predicted = pairs.scores > self.thresholds_[pairs.labels]
        predicted |= pairs.ranks < self.min_labels

        def sums(cells: np.ndarray, values: np.ndarray) -> np.ndarray:
            return np.bincount(cells, values, minlength=groups.n)

        hits = sums(groups.of_pairs, pairs.weight * (predicted & pairs.relevant))
        named = sums(groups.of_pairs, pairs.weight * predicted)
        inside = groups.of_relevant >= 0
        true = sums(groups.of_relevant[inside], pairs.true_weight[inside])
        return {
            "n_positives": true,
            "threshold": of_groups,
            "precision": hits / np.maximum(named, 1e-300),
            "recall": hits / np.maximum(true, 1e-300),
        }

    def _best(self, pairs: ScoredPairs, cells: Cells) -> np.ndarray:
        """Return the best threshold of each cell, NaN of cells without pairs."""
        ranking = RankedPairs(pairs, cells)
        if self.objective == "micro_f1":
            counts = most_micro_f(ranking, self.beta)
        elif self.objective == "macro_f1":
            counts = most_macro_f(ranking, self.beta)
        elif self.objective == "count":
            counts = as_many_as_true(ranking)
        else:
            counts = most_recall(ranking, self.min_precision)
            if cells.n == 1 and not counts.any():
                warn(
                    f"{type(self).__name__}: no threshold has a precision of min_precision="
                    f"{self.min_precision} on the {pairs.n} held-out rows: next to nothing will be "
                    "predicted. Lower min_precision.",
                    UndefinedMetricWarning,
                )
        return ranking.thresholds(counts)

    def _topk_margins(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        labels, scores = self._topk_scores(X, k)
        margins = scores - self.thresholds_[labels]
        margins[(labels >= 0) & (np.arange(k) < self.min_labels)] = np.inf
        return labels, margins

    def _all_margins(self, X: Any) -> np.ndarray:
        scores = self._all_scores(X)
        margins = scores - self.thresholds_
        n_best = min(self.min_labels, scores.shape[1])
        if n_best:
            best, _ = best_of_dense(scores, n_best, None, self._unseen_labels)
            np.put_along_axis(margins, best, np.inf, axis=1)
        return margins
