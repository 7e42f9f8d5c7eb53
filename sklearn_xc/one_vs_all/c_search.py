"""Choice of C by cross-validation: fits to folds along paths of C, and a search over the grid."""

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.data import CsrRows, DenseRows, Targets
from sklearn_xc._input.sklearn_private import safe_indexing
from sklearn_xc._parallel.progress import Progress
from sklearn_xc._parallel.shared_memory import array_bytes
from sklearn_xc._parallel.spill import maker
from sklearn_xc.metrics import TopKScorer, get_scorer
from sklearn_xc.one_vs_all.checkpoints import BlockStore
from sklearn_xc.one_vs_all.ova import OvALinearXC, with_cost
from sklearn_xc.one_vs_all.path import at_cost
from sklearn_xc.one_vs_all.problem import (
    build_problem,
    check_init,
    check_memory,
    held_bytes,
    loss_of,
)
from sklearn_xc.one_vs_all.solver.problem import OneVsAllProblem, constant_scores
from sklearn_xc.one_vs_all.training import solve_all

#: Where ``tol`` is None, a label is left in the folds once its objective is at most this share
#: above its minimum, and in the final fit at a thirtieth of it. Mean precisions by C moved by 0.12
#: points on average over twelve sets, 1.0 at most; one Newton step from the last C is often enough.
FOLD_GAP = 0.03
#: The first fold scores at first this share of the grid, from this share of it on.
FIRST, BEGIN = 0.4, 0.2
#: At least so many values are scored at once: each call begins with a cold start.
FEW = 4
#: The first fold goes on to smaller values while the smallest is less than this share behind.
NEAR = 0.005
#: After f of F folds, the best ``1 + SURVIVORS (1 - f / F)^2`` values stay: 3, 2 and 1 of 5 folds.
SURVIVORS = 4.0

#: Returns the scores of some positions in the grid on a fold.
Score = Callable[[int, Sequence[int]], Sequence[float]]


def search(
    score: Score, n_folds: int, n_values: int, grid: range, progress: Progress, *, exhaustive: bool
) -> tuple[int, np.ndarray, int]:
    """Find the value with the best mean score.

    The first fold starts at the middle of the grid and goes outwards while the value at the edge is
    the best one, or nearly; there, smaller values are close to solutions at hand. Each fold leaves
    fewer values, until one is left or the folds are used up.

    Parameters
    ----------
    score : callable
        Called as ``score(fold, values)`` with increasing positions.
    n_folds, n_values : int
        Folds, and values that may be tried.
    grid : range
        Positions of those that the search starts from.
    progress : Progress
        Notified of the folds; a callback may end the search.
    exhaustive : bool
        Whether to score the whole grid on all folds.

    Returns
    -------
    best : int
        Ties go to the smallest value.
    scores : ndarray of float64 of shape (n_folds, n_values)
        NaN where nothing was scored.
    n_run : int
        Folds that were run.
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
    best, first, last = np.nanmax(scores), values[0], values[-1]
    if first > 0 and scores[first] >= best - NEAR * abs(best):
        return [first - 1]
    if last < n_values - 1 and scores[last] == best and (scores[values[:-1]] < best).all():
        return list(range(last + 1, min(last + 3, n_values)))
    return []


class FoldScorer:
    """Fits values of C to the training rows of folds, and scores them on the test rows.

    Parameters
    ----------
    estimator : OvALinearXCCV
    scorer : callable
    folds : list of (ndarray, ndarray)
        Training and test rows.
    X, y : object
        Of the caller.
    instances, targets, weight
        The same, checked.
    Cs : ndarray of float64
        Increasing.
    store : BlockStore or None
        Scores of an earlier call; receives further ones.

    Attributes
    ----------
    report : dict of ndarray of shape (n_folds, n_Cs)
        As ``path_report_``.
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
        self.X, self.y = with_rows(X), with_rows(y)
        self.instances, self.targets, self.weight = instances, targets, weight
        self.store, self._n_calls = store, 0
        shape = len(folds), len(Cs)
        self.report = {name: np.full(shape, np.nan) for name in ("n_iter", "n_products")}
        self.report["n_unsolved"] = np.zeros(shape, np.int64)
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
        for column, name in enumerate(self.report, 1):
            self.report[name][fold, values] = table[:, column]
        return table[:, 0]

    def _fit_and_score(self, fold: int, values: Sequence[int]) -> list[tuple[float, ...]]:
        """Return for each value its score and the columns of the report."""
        estimator = self.estimator
        if fold != self._made[0]:
            self._made = -1, None  # not two folds at a time
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
            prior = constant_scores(at_cost(problem, C))
            model._set_solutions(solutions.pop(0), row_of_label, prior, room)
            report = model.fit_report_
            n_unsolved = (report["status"] != "converged").sum()
            score = score_model(self.scorer, model, X, y, weight)
            rows.append(
                (score, report["n_iter"].mean(), report["n_products"].mean(), float(n_unsolved))
            )
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
        targets, estimator = self.targets.take(kept), self.estimator
        if isinstance(self.instances, CsrRows):
            who, allowed = type(estimator).__name__, estimator._allowed_bytes()
            loss = loss_of(estimator)
            in_files = check_memory(self.instances, self.targets, loss, allowed, who)
            instances: Any = self.instances.take(rows, maker(in_files, who))
        else:
            instances = self.instances.take(rows)
        problem = build_problem(estimator, 1.0, instances, targets, row_weight)
        initialiser = check_init(estimator, problem)
        if estimator.tol is None:
            problem = dataclasses.replace(problem, relative_gap=FOLD_GAP)
            if problem.ridge or not problem.intercept:  # else the gradient is no bound
                no_other_rule = np.ones(problem.n_labels)
                problem = dataclasses.replace(problem, relative_tolerance=no_other_rule)
        return targets, row_weight, problem, initialiser


def with_rows(array: Any) -> Any:
    """Return X or y in a container whose rows can be taken."""
    if sp.issparse(array):
        return array.tocsr()
    return array if hasattr(array, "shape") else np.asarray(array)


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
