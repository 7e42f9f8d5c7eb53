"""One-vs-all linear classification with C chosen by cross-validation."""

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
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

from sklearn_xc._input.arguments import (
    ListedFolds,
    check_count,
    check_folds,
    check_numbers,
    is_list_of_folds,
)
from sklearn_xc._input.checks import check_targets, check_training_instances, check_weights
from sklearn_xc._input.data import CsrRows, DenseRows, Targets, as_rows, n_rows
from sklearn_xc._input.routing import RoutesFit
from sklearn_xc._input.sklearn_private import Interval, fit_context, safe_indexing
from sklearn_xc._parallel.memory import allocator, array_bytes
from sklearn_xc._parallel.progress import Fit, Progress
from sklearn_xc._state.fitted import fits_in_one_step
from sklearn_xc._warnings import warn
from sklearn_xc.exceptions import ConvergenceWarning, GridEdgeWarning
from sklearn_xc.metrics import TopKScorer, get_scorer
from sklearn_xc.one_vs_all.checkpoints import BlockStore
from sklearn_xc.one_vs_all.losses import MarginLoss
from sklearn_xc.one_vs_all.ova import OvALinearXC, with_cost
from sklearn_xc.one_vs_all.problem import (
    OneVsAllProblem,
    build_problem,
    constant_scores,
    loss_of,
)
from sklearn_xc.one_vs_all.training import (
    check_init,
    check_memory,
    held_bytes,
    solve_all,
    warn_of_fit,
)

#: Powers of ten that the grid of an int `Cs` spans for the squared hinge; for another loss it is
#: moved with the default C. docs/one_vs_all.md has scores by C.
GRID = (-1.5, 1.0)
#: Powers of ten by which the search may leave the grid at either end.
MARGIN = 1.0
#: For ``tol=None``, the certified relative suboptimality in the folds, 30 times that of the final
#: fit. Mean precisions by C moved by 0.12 points on average over twelve sets, 1.0 at most; one
#: Newton step from the last C is often enough.
FOLD_GAP = 0.03
#: The first fold starts with this share of the grid, from this share of it on.
FIRST, BEGIN = 0.4, 0.2
#: Least number of values scored at once: each call begins with a cold start.
FEW = 4
#: The first fold continues to smaller values while the smallest is at most this share behind.
NEAR = 0.005
#: After f of F folds, the best ``1 + SURVIVORS (1 - f / F)^2`` values stay: 3, 2 and 1 of 5 folds.
SURVIVORS = 4.0
_STRATIFIED = (
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)

#: Returns the scores of some positions in the grid on a fold.
Score = Callable[[int, Sequence[int]], Sequence[float]]


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
    loss, init, tol, max_iter, fit_intercept, class_weight, \
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
    @fits_in_one_step
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
        for fold, parts in enumerate(folds):
            for rows, name in zip(parts, ("training", "test"), strict=True):
                if weight is not None and not weight[rows].any():
                    raise ValueError(
                        f"OvALinearXCCV: the {name} rows of fold {fold} must hold a row of "
                        f"positive sample_weight. Got {rows.size} rows of weight 0."
                    )
        progress = Fit(self, X, y, sample_weight, n_stages=2)
        of_folds = [rows for fold in folds for rows in fold]
        with self._store(instances, targets, weight, folds=of_folds) as store:
            score = FoldScorer(self, scorer, folds, X, y, instances, targets, weight, Cs, store)
            self._choose(Cs, grid, score, progress)
            self._train(instances, targets, weight, self.C_, progress, store)
            progress.end()
        self._warn_of_folds(score)
        self._warn_of_edge()
        warn_of_fit(self)
        self._warn_of_unseen()
        return self

    def _routed_parts(self) -> dict[str, Any]:
        return {}

    @property
    def _fitted_cost(self) -> float:
        """The C of the model."""
        return self.C_

    def _check_grid(self) -> tuple[np.ndarray, range]:
        """Return all values of C that may be tried, ascending, and the range of the grid."""
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
            cv = ListedFolds(cv)
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
        X, y = as_rows(X), as_rows(y)
        n = n_rows(X, "OvALinearXCCV")
        return check_folds(cv.split(X, y, **params), n, "OvALinearXCCV", self.cv)

    def _choose(self, Cs: np.ndarray, grid: range, score: "FoldScorer", fit: Fit) -> None:
        """Score values of C on the folds, and set the attributes of the search."""
        n_folds = len(score.folds)
        progress = fit.parts("fold", n_folds, stage="choice of C")
        best, scores, n_run = search(
            score, n_folds, len(Cs), grid, progress, exhaustive=self.exhaustive
        )
        progress.close()
        tried = np.flatnonzero(np.isfinite(scores[0]))
        shown = slice(min(grid[0], tried[0]), max(grid[-1], tried[-1]) + 1)
        self.Cs_, self.scores_ = Cs[shown], scores[:, shown]
        self.best_index_ = int(best - shown.start)
        self.best_score_ = float(scores[:n_run, best].mean())
        self.C_ = float(Cs[best])

    def _warn_of_folds(self, score: "FoldScorer") -> None:
        unsolved = [n for n in score.n_unsolved if n]
        if unsolved:
            warn(
                f"OvALinearXCCV: in {len(unsolved)} of {len(score.n_unsolved)} fits to the folds, "
                f"up to {max(unsolved)} labels stopped before their stopping rule held. Raise "
                "max_iter or tol, or leave out the largest Cs.",
                ConvergenceWarning,
            )

    def _warn_of_edge(self) -> None:
        """Warn if the best C is at an end of `Cs_` and better than its neighbour."""
        best = self.best_index_
        last = len(self.Cs_) - 1
        if last < 2 or 0 < best < last:
            return
        both = self.scores_[:, [best, abs(best - 1)]]
        both = both[np.isfinite(both).all(axis=1)].sum(axis=0)
        if both[0] > both[1]:
            which, where = ("smallest", "smaller") if best == 0 else ("largest", "larger")
            warn(
                f"OvALinearXCCV: the best C, {self.C_:.3g}, is the {which} of the {last + 1} in "
                f"Cs_. A {where} one may be better: give Cs as an array that reaches farther.",
                GridEdgeWarning,
            )


class FoldScorer:
    """Fits values of C to the training rows of folds, and scores them on the test rows.

    Parameters
    ----------
    estimator : OvALinearXCCV
    scorer : callable
    folds : list of (ndarray, ndarray)
        Training and test rows.
    X, y : object
        Arguments of ``fit``.
    instances, targets, weight
        The same, checked.
    Cs : ndarray of float64
        Increasing.
    store : BlockStore or None
        Scores of an earlier call; receives further ones.

    Attributes
    ----------
    n_unsolved : list of int
        For each fit, the number of labels that stopped before their stopping rule held.
    """

    def __init__(
        self,
        estimator: OvALinearXC,
        scorer: Any,
        folds: list[tuple[np.ndarray, np.ndarray]],
        X: Any,
        y: Any,
        instances: CsrRows | DenseRows,
        targets: Targets,
        weight: np.ndarray | None,
        Cs: np.ndarray,
        store: BlockStore | None,
    ) -> None:
        self.estimator, self.scorer, self.folds, self.Cs = estimator, scorer, folds, Cs
        self.X, self.y = as_rows(X), as_rows(y)
        self.instances, self.targets, self.weight = instances, targets, weight
        self.store, self._n_calls = store, 0
        self.n_unsolved: list[int] = []
        self._made: tuple[int, Any] = -1, None

    def __call__(self, fold: int, values: Sequence[int]) -> np.ndarray:
        """Return the scores of some values of C on a fold."""
        call, table = self._n_calls, None
        self._n_calls += 1
        if self.store is not None:
            table = self.store.get_scores(call, fold, values)
        if table is None:
            table = np.array(self._fit_and_score(fold, values))
            if self.store is not None:
                self.store.put_scores(call, fold, values, table)
        self.n_unsolved += table[:, 1].astype(int).tolist()
        return table[:, 0]

    def _fit_and_score(self, fold: int, values: Sequence[int]) -> list[tuple[float, float]]:
        """Return the score of each value, and the number of its unsolved labels."""
        estimator = self.estimator
        if fold != self._made[0]:
            self._made = -1, None  # frees the last fold
            self._made = fold, self._make_problem(fold)
        targets, row_weight, problem, initialiser = self._made[1]
        test = self.folds[fold][1]
        X, y = safe_indexing(self.X, test), safe_indexing(self.y, test)
        weight = None if self.weight is None else self.weight[test]
        allowed = estimator._allowed_bytes()
        if allowed is not None:
            allowed = max(1, allowed - 2 * array_bytes((X, y)))
        room = None if allowed is None else max(0, allowed - held_bytes(problem)) // 2
        Cs = self.Cs[list(values)]
        solutions, row_of_label = solve_all(
            problem,
            initialiser,
            max_memory=allowed,
            n_jobs=estimator.n_jobs,
            engine=estimator._engine(),
            Cs=Cs,
        )
        rows = []
        for C in Cs:
            model = with_cost(estimator, float(C))
            model.n_features_in_ = estimator.n_features_in_
            if hasattr(estimator, "feature_names_in_"):
                model.feature_names_in_ = estimator.feature_names_in_
            model._keep_targets(targets)
            model._count_instances(targets, row_weight)
            prior = constant_scores(problem.at_cost(C))
            model._set_solutions(solutions.pop(0), row_of_label, prior, room)
            n_unsolved = (model.fit_report_["status"] != "converged").sum()
            rows.append((score_model(self.scorer, model, X, y, weight), float(n_unsolved)))
        return rows

    def _make_problem(self, fold: int) -> tuple[Targets, np.ndarray, OneVsAllProblem, Any]:
        """Return the targets, weights, problem for C = 1, and starts of a fold."""
        rows, repeats = np.unique(self.folds[fold][0], return_counts=True)
        row_weight = repeats.astype(np.float64)
        if self.weight is not None:
            row_weight *= self.weight[rows]
            rows, row_weight = rows[row_weight > 0], row_weight[row_weight > 0]
        kept = np.zeros(self.instances.shape[0], bool)
        kept[rows] = True
        targets = self.targets.take(kept)
        estimator = self.estimator
        in_files = check_memory(estimator, self.instances, self.targets)
        instances: Any
        if isinstance(self.instances, CsrRows):
            instances = self.instances.take(rows, allocator(in_files, type(estimator).__name__))
        else:
            instances = self.instances.take(rows)
        problem = build_problem(estimator, 1.0, instances, targets, row_weight, in_files)
        initialiser = check_init(estimator, problem)
        if estimator.tol is None:
            # The gradient bounds the suboptimality: no other rule is needed.
            no_other = np.ones(problem.n_labels)
            problem = dataclasses.replace(
                problem, relative_gap=FOLD_GAP, relative_tolerance=no_other
            )
        return targets, row_weight, problem, initialiser


def search(
    score: Score, n_folds: int, n_values: int, grid: range, progress: Progress, *, exhaustive: bool
) -> tuple[int, np.ndarray, int]:
    """Find the value with the best mean score.

    The first fold starts at the middle of the grid and goes outwards while the value at the edge is
    the best one, or nearly. Each further fold scores fewer values, until one is left or all folds
    are used.

    Parameters
    ----------
    score : callable
        Called as ``score(fold, values)`` with increasing positions.
    n_folds, n_values : int
        Folds, and values that may be tried.
    grid : range
        Positions of the values to start from.
    progress : Progress
        Notified of the folds; a callback may end the search.
    exhaustive : bool
        Whether to score the whole grid on all folds.

    Returns
    -------
    best : int
        Ties go to the smallest value.
    scores : ndarray of float64 of shape (n_folds, n_values)
        NaN for values that were not scored.
    n_run : int
        Number of folds that were used.
    """
    scores = np.full((n_folds, n_values), np.nan)
    values = list(grid)
    if not exhaustive and len(grid) > FEW:
        begin = int(BEGIN * len(grid))
        values = list(grid[begin : begin + max(FEW, math.ceil(FIRST * len(grid)))])
    for fold in range(n_folds):
        task = progress.begin()
        scores[fold, values] = score(fold, values)
        while fold == 0 and not exhaustive and (further := _beyond(scores[0], values, n_values)):
            scores[0, further] = score(0, further)
            values = sorted(values + further)
        means = scores[: fold + 1, values].mean(axis=0)
        order = np.argsort(-means, kind="stable")
        best = values[order[0]]
        if not exhaustive and fold + 1 < n_folds:
            n_left = 1 + int(SURVIVORS * (1.0 - (fold + 1) / n_folds) ** 2 + 1e-9)
            values = sorted(values[i] for i in order[:n_left])
        is_last = not exhaustive and len(values) == 1
        if progress.end(task, f"scored, {len(values)} values of C left") or is_last:
            break
    return best, scores, fold + 1


def _beyond(scores: np.ndarray, values: list[int], n_values: int) -> list[int]:
    """Return the values to try next on the first fold."""
    best = np.nanmax(scores)
    first = values[0]
    last = values[-1]
    if first > 0 and scores[first] >= best - NEAR * abs(best):
        return [first - 1]
    if last < n_values - 1 and scores[last] == best and (scores[values[:-1]] < best).all():
        return list(range(last + 1, min(last + 3, n_values)))
    return []


def check_scoring(scoring: Any) -> Any:
    """Return the scorer that `scoring` names or is."""
    try:
        scorer = get_scorer(scoring)
    except ValueError as error:
        raise ValueError(f"OvALinearXCCV: {error}") from None
    if isinstance(scorer, TopKScorer) and np.size(scorer.ks) * len(scorer.metrics) > 1:
        raise ValueError(
            f"OvALinearXCCV: scoring must give one number to choose C by, {scorer!r} gives "
            'several. Pass one of its names, such as "P@1".'
        )
    return scorer


def score_model(
    scorer: Any, model: OvALinearXC, X: Any, y: Any, weight: np.ndarray | None
) -> float:
    """Return the score of a model, weighted if the scorer takes weights."""
    if weight is not None and _takes_weight(scorer):
        value = scorer(model, X, y, sample_weight=weight)
    else:
        value = scorer(model, X, y)
    if isinstance(value, Mapping) and len(value) == 1:
        (value,) = value.values()
    if not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError(
            f"OvALinearXCCV: scoring must give one finite number, {scorer!r} gave {value!r} for "
            f"C={model.C:g}."
        )
    return float(value)


def _takes_weight(scorer: Any) -> bool:
    accepts = getattr(scorer, "_accept_sample_weight", None)
    if accepts is not None:
        return accepts()
    return "sample_weight" in inspect.signature(scorer).parameters
