"""One-vs-all linear classification with C chosen by cross-validation."""

import warnings
from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import (
    KFold,
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    check_cv,
)

from sklearn_xc._input.arguments import check_count, check_numbers
from sklearn_xc._input.checks import check_targets, check_training_instances, check_weights
from sklearn_xc._input.data import Targets
from sklearn_xc._input.folds import check_folds, is_list_of_folds
from sklearn_xc._input.sklearn_private import Interval, fit_context
from sklearn_xc._labels.out_of_fold import RoutesFit
from sklearn_xc._parallel.progress import Fit
from sklearn_xc._state.fitted import built_apart
from sklearn_xc.exceptions import ConvergenceWarning, GridEdgeWarning
from sklearn_xc.one_vs_all.c_search import FoldScorer, check_scoring, search, with_rows
from sklearn_xc.one_vs_all.checkpoints import block_store
from sklearn_xc.one_vs_all.losses import MarginLoss
from sklearn_xc.one_vs_all.ova import STACKLEVEL, OvALinearXC
from sklearn_xc.one_vs_all.problem import loss_of
from sklearn_xc.one_vs_all.report import warn_of_fit

#: Powers of ten between which an int `Cs` is spread, for the squared hinge; those of another loss
#: are moved as its default C is. See docs/one_vs_all.md for scores by C.
GRID = (-1.5, 1.0)
#: So many powers of ten beyond either end it may go on, where the best value lies there.
MARGIN = 1.0
_STRATIFIED = (
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)


class OvALinearXCCV(RoutesFit, OvALinearXC):
    """One-vs-all linear classifier that chooses C by cross-validation.

    An :class:`OvALinearXC` whose ``fit`` scores values of C on held-out rows, then trains on all
    rows with the best one. Fewer values are scored on each further fold. In each fold, a label is
    solved for one C after another, starting from an extrapolation of its last two solutions.

    Parameters
    ----------
    Cs : int or array-like of float of shape (n_Cs,), default=10
        Values of C to try, or how many of them (at most 10,000), on a logarithmic grid from 0.03
        to 10 (1 to 320 for ``loss="logistic"``), which contains the best C for rows of unit
        length, such as those of tf-idf. If the first or last value of such a grid is best, larger
        steps beyond it are tried too, up to ten times as far; an array is used as it is. A
        `GridEdgeWarning` tells if `C_` is still at an end.
    cv : int, splitter or iterable of (train, test), default=5
        An int, or None for 5, is the number of folds. Rows are shuffled (by `random_state`), for
        classes as well as for an indicator, so that data sorted by time or by class do no harm;
        for classes, each fold has its share of every class. To keep the order, pass a splitter
        such as ``TimeSeriesSplit()`` or ``StratifiedKFold(5)``. In an iterable, `train` and `test`
        are row numbers or masks over all rows; a generator is used up by the first fit.
    scoring : str or callable, default="P@1"
        A name that :func:`sklearn_xc.metrics.get_scorer` knows, or a scorer that returns a number.
        Larger is better; ties go to the smallest C.
    exhaustive : bool, default=False
        Whether to score every C on every fold. Otherwise values drop out (see Notes). Use True to
        get the whole table, and for folds that are not alike, such as those of a time series.
    loss, init, tol, max_iter, fit_intercept, regularize_intercept, class_weight, \
prune, label_names, top_k, max_memory, n_jobs, numa, verbose, \
            checkpoint_dir
        As in :class:`OvALinearXC`. `init` starts the largest C of each fold, and the final fit.
        With ``tol=None``, the fits to the folds are certified to be within 3% of their optimum,
        the final one within 0.1%; a given `tol` holds for all.
    random_state : int, RandomState instance or None, default=0
        Shuffles the rows if `cv` is an int. None shuffles differently in each fit.

    Attributes
    ----------
    C_ : float
        The best C among those that were scored on all folds that were run.
    Cs_ : ndarray of float64 of shape (n_Cs,)
        The grid, in increasing order; for an int `Cs`, with the values beyond it that were tried.
    scores_ : ndarray of float64 of shape (n_folds, n_Cs)
        Scores on the held-out rows; NaN where a value was not scored. A row of NaN is a fold that
        was not needed.
    best_index_ : int
        Place of `C_` in `Cs_`.
    best_score_ : float
        Mean score of `C_` over the folds that were run.
    path_report_ : dict of ndarray of shape (n_folds, n_Cs)
        ``n_iter`` and ``n_products``, the numbers of Newton steps and of products with the
        Hessian, means over the labels, NaN where a value was not fitted; ``n_unsolved``, the
        number of labels whose training ended before their stopping rule held, 0 where a value was
        not fitted.
    classes_, coef_, intercept_, label_counts_, n_samples_fit_, n_iter_, fit_report_
        Of the final fit, as in :class:`OvALinearXC`: the model is bit for bit that of
        ``OvALinearXC(C=C_)``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    OvALinearXC : With a given C.
    sklearn_xc.metrics.TopKScorer : For searches over other parameters, by GridSearchCV.

    Notes
    -----
    A label without positives among a fold's training rows is solved as in :class:`OvALinearXC`.
    `sample_weight` is passed to the fits, and to the scorer if it takes weights.

    The search: the first fold begins with four tenths of the grid, below its middle, and extends to
    larger values while the largest is the best, and to smaller ones while the smallest is at most
    0.5% behind the best. The best 3, 2 and 1 values stay after the first three of five folds (1 + 4
    (1 - f / F)^2 after f of F); the search ends when one is left. C may differ from that of
    ``exhaustive=True`` where scores differ by no more than their noise.

    Memory, in addition to that of :class:`OvALinearXC`: the pruned weights for the Cs of one fold,
    and for each thread four times the weights of 128 labels before pruning, which `max_memory`
    covers.

    Examples
    --------
    >>> from sklearn_xc import OvALinearXCCV
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> X, Y = make_xc_classification(
    ...     n_samples=500, n_features=300, n_labels=50, random_state=0, return_X_y=True
    ... )
    >>> clf = OvALinearXCCV(Cs=[0.1, 1, 10], cv=3).fit(X, Y)
    >>> clf.C_
    1.0
    >>> clf.scores_.shape
    (3, 3)
    """

    _parameter_constraints: dict = {  # noqa: RUF012
        **{
            name: constraint
            for name, constraint in OvALinearXC._parameter_constraints.items()
            if name not in {"C", "warm_start"}
        },
        "Cs": [Interval(Integral, 1, 10_000, closed="both"), "array-like"],
        "cv": ["cv_object"],
        "scoring": [str, callable],
        "exhaustive": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        Cs=10,
        *,
        cv=5,
        scoring="P@1",
        exhaustive=False,
        loss="squared_hinge",
        init="msi",
        tol=None,
        max_iter=100,
        fit_intercept=True,
        regularize_intercept=True,
        class_weight=None,
        prune=0.01,
        label_names=None,
        top_k=100,
        max_memory=None,
        n_jobs=None,
        numa="auto",
        random_state=0,
        verbose=0,
        checkpoint_dir=None,
    ):
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.exhaustive = exhaustive
        self.loss = loss
        self.init = init
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.regularize_intercept = regularize_intercept
        self.class_weight = class_weight
        self.prune = prune
        self.label_names = label_names
        self.top_k = top_k
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.numa = numa
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint_dir = checkpoint_dir

    @fit_context(prefer_skip_nested_validation=True)
    @built_apart
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> "OvALinearXCCV":
        """Choose C by cross-validation and train with it on all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.
        y : {array-like, sparse matrix} of shape (n,) or (n, n_labels)
            One class per instance, or a binary indicator, dense or sparse.
        sample_weight : array-like of shape (n,), default=None
            Weights of the instances, for the fits and for the scores.
        **fit_params : dict
            With metadata routing enabled, what `cv` requests, such as `groups`.

        Returns
        -------
        OvALinearXCCV
            The fitted estimator.

        Raises
        ------
        ValueError
            As in :class:`OvALinearXC`; for Cs that are not positive; if there are no folds, or
            folds that cannot be made, have no training or test rows, have only rows of weight
            zero, or hold row numbers that do not exist; and for scores that are not finite
            numbers.
        MemoryBudgetError
            If the work space does not fit into memory; raised before anything is allocated.

        Warns
        -----
        ConvergenceWarning
            If the training of labels ended before their stopping rule held, in the folds or in the
            final fit.
        GridEdgeWarning
            If `C_` is the first or last of three or more `Cs_`, and better than its neighbour.
        PruningWarning, UnseenLabelWarning
            For the final fit, as in :class:`OvALinearXC`.
        """
        of_split = self._routed(sample_weight, fit_params).cv.split
        instances = check_training_instances(self, X)
        targets = check_targets(self, y, instances.shape[0])
        weight = check_weights(self, sample_weight, instances.shape[0])
        Cs, grid = self._check_grid()
        scorer = check_scoring(self.scoring)
        folds = self._split(X, y, targets, of_split)
        for fold, (train, test) in enumerate(folds):
            _check_fold_weight(weight, train, f"training rows of fold {fold}")
            _check_fold_weight(weight, test, f"test rows of fold {fold}")
        progress = Fit(self, X, y, sample_weight, n_stages=2)
        of_folds = [rows for fold in folds for rows in fold]
        with block_store(self, instances, targets, weight, folds=of_folds) as store:
            score = FoldScorer(self, scorer, folds, X, y, instances, targets, weight, Cs, store)
            self._choose(Cs, grid, score, progress)
            self._train(instances, targets, weight, self.C_, progress, store)
            progress.end()
        self._warn_of_folds()
        self._warn_of_edge()
        warn_of_fit(self, STACKLEVEL)
        self._warn_of_unseen()
        return self

    def _routed_parts(self) -> dict[str, Any]:
        return {}

    @property
    def _fitted_cost(self) -> float:
        """The C of the model."""
        return self.C_

    def _check_grid(self) -> tuple[np.ndarray, range]:
        """Return the Cs in rising order with those that may follow, and which are the grid."""
        name = "OvALinearXCCV: Cs"
        if isinstance(self.Cs, Integral):
            n = check_count(self.Cs, name)
            centre = loss_of(self).default_cost / MarginLoss.default_cost
            Cs = centre * np.logspace(*GRID, n)
            if self.exhaustive or n == 1:
                return Cs, range(n)
            step = (GRID[1] - GRID[0]) / (n - 1)
            beyond = step * np.arange(1, int(MARGIN / step + 1e-9) + 1)
            below = centre * 10.0 ** (GRID[0] - beyond[::-1])
            above = centre * 10.0 ** (GRID[1] + beyond)
            return np.concatenate([below, Cs, above]), range(len(beyond), len(beyond) + n)
        Cs = check_numbers(self.Cs, name, None, "value of C to try")
        if not Cs.size or not (Cs > 0).all():
            raise ValueError(f"{name} must be positive. Got {Cs.min() if Cs.size else 'none'}.")
        Cs = np.unique(Cs)
        return Cs, range(len(Cs))

    def _split(
        self, X: Any, y: Any, targets: Targets, params: Mapping[str, Any]
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the row numbers of each fold's training and test rows."""
        cv: Any = 5 if self.cv is None else self.cv
        if isinstance(cv, Integral):
            kind = KFold if targets.kind != "classes" else type(check_cv(cv, y, classifier=True))
            cv = kind(cv, shuffle=True, random_state=self.random_state)
        elif is_list_of_folds(cv):
            cv = check_cv(cv)
        elif isinstance(cv, bytes | np.ndarray):
            raise ValueError(
                "OvALinearXCCV: cv must be a number of folds, a splitter or a list of folds. Got "
                f"{cv!r}."
            )
        else:
            cv = check_cv(cv, y, classifier=True)
        if targets.kind != "classes" and isinstance(cv, _STRATIFIED):
            raise ValueError(
                f"OvALinearXCCV: cv: {cv} keeps the shares of classes, which an indicator does not "
                "have. Use KFold, ShuffleSplit or a number of folds."
            )
        X, y = with_rows(X), with_rows(y)
        return check_folds(cv.split(X, y, **params), X.shape[0], "OvALinearXCCV", self.cv)

    def _choose(self, Cs: np.ndarray, grid: range, score: FoldScorer, fit: Fit) -> None:
        """Score values of C on the folds, and set what follows from the scores."""
        n_folds = len(score.folds)
        progress = fit.parts("fold", n_folds, stage="choice of C")
        best, scores, n_run = search(
            score, n_folds, len(Cs), grid, progress, exhaustive=self.exhaustive
        )
        progress.close()
        tried = np.flatnonzero(np.isfinite(scores[0]))
        shown = slice(min(grid[0], tried[0]), max(grid[-1], tried[-1]) + 1)
        self.Cs_, self.scores_ = Cs[shown], scores[:, shown]
        self.path_report_ = {name: values[:, shown] for name, values in score.report.items()}
        self.best_index_ = int(best - shown.start)
        self.best_score_ = float(scores[:n_run, best].mean())
        self.C_ = float(Cs[best])

    def _warn_of_folds(self) -> None:
        n_unsolved, n_fits = self.path_report_["n_unsolved"], np.isfinite(self.scores_).sum()
        if n_unsolved.any():
            warnings.warn(
                f"OvALinearXCCV: in {(n_unsolved > 0).sum()} of {n_fits} fits to the "
                f"folds, up to {n_unsolved.max()} labels stopped before their stopping rule held. "
                "Raise max_iter or tol, or leave out the largest Cs; path_report_ has their "
                "numbers.",
                ConvergenceWarning,
                stacklevel=STACKLEVEL,
            )

    def _warn_of_edge(self) -> None:
        """Warn if the best C is an end of `Cs_`, and its neighbour is worse."""
        best, last = self.best_index_, len(self.Cs_) - 1
        if last < 2 or 0 < best < last:
            return
        both = self.scores_[:, [best, abs(best - 1)]]
        both = both[np.isfinite(both).all(axis=1)].sum(axis=0)
        if both[0] > both[1]:
            which, where = ("smallest", "smaller") if best == 0 else ("largest", "larger")
            warnings.warn(
                f"OvALinearXCCV: the best C, {self.C_:.3g}, is the {which} of the {last + 1} in "
                f"Cs_. A {where} one may be better: give Cs as an array that reaches farther.",
                GridEdgeWarning,
                stacklevel=STACKLEVEL,
            )


def _check_fold_weight(weight: np.ndarray | None, rows: np.ndarray, which: str) -> None:
    if weight is not None and not weight[rows].any():
        raise ValueError(
            f"OvALinearXCCV: the {which} must hold a row of positive sample_weight. Got "
            f"{rows.size} rows of weight 0."
        )
