"""Values of C, fitted to the folds of a cross-validation and scored there."""

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._data import CsrRows, DenseRows, Targets
from sklearn_xc._shared_memory import array_bytes
from sklearn_xc._sklearn import safe_indexing
from sklearn_xc.initialisers import Initialiser
from sklearn_xc.linear.checkpoints import BlockStore, FitStore, Scored
from sklearn_xc.linear.facts import Facts
from sklearn_xc.linear.fold_problems import FoldProblems, RunPaths
from sklearn_xc.linear.memory import held_bytes
from sklearn_xc.linear.ova import OvALinearXC, with_cost
from sklearn_xc.linear.path import PathEnd, at_cost, solve_path
from sklearn_xc.linear.scoring import score_model
from sklearn_xc.linear.training import same_problems
from sklearn_xc.metrics import TopKScorer
from sklearn_xc.metrics.scorers import AtKScorer
from sklearn_xc.parallel.engines.protocol import Place
from sklearn_xc.solvers.problem import OneVsAllProblem
from sklearn_xc.solvers.pruning import together


class FoldScores:
    """Fits values of C to the folds and scores them, as a race asks for it.

    Attributes
    ----------
    by_rows : bool
        Whether it is known what each test row adds to a score.
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
        store: FitStore | None = None,
    ) -> None:
        self.estimator, self.scorer, self.folds = estimator, scorer, folds
        self.X, self.y = with_rows(X), with_rows(y)
        self.instances, self.targets, self.weight = instances, targets, weight
        self.n_folds = len(folds)
        self.by_rows = type(scorer) in (AtKScorer, TopKScorer) and scorer._adds_up_rows()
        self._problems = FoldProblems(
            estimator, instances, targets, weight, [train for train, _ in folds]
        )
        self._place: Place | None = None
        self.fold: _Fold | None = None
        self.store = store
        self._n_paths, self._last = 0, -1
        #: Values whose paths were taken from the store since this fold was begun.
        self._not_run: list[list[int]] = []

    def begin(self, Cs: np.ndarray, goes_down: bool) -> None:
        """Take the values that are to be scored by their positions.

        `goes_down`: on the first fold smaller values may be asked for after larger ones.
        """
        self.Cs, self.goes_down = Cs, goes_down
        shape = (self.n_folds, len(Cs))
        self.report = {name: np.full(shape, np.nan) for name in ("n_iter", "n_products")}
        self.report["n_unsolved"] = np.zeros(shape, np.int64)

    def __call__(self, number: int, values: Sequence[int]) -> list[tuple[float, np.ndarray | None]]:
        """Return the score of each value of C, and what each test row adds to it."""
        call, values = self._n_paths, list(values)
        self._n_paths += 1
        if number != self._last:
            self._last, self._not_run, self.fold = number, [], None  # not two folds at a time
        found = None
        if self.store is not None:
            n_rows = len(self.folds[number][1]) if self.by_rows else None
            found = self.store.get_scored(call, number, values, n_rows)
        if found is None:
            for missed in self._not_run:  # the path goes on where these have ended
                self._run(number, missed, None)
            self._not_run = []
            blocks = None if self.store is None else self.store.blocks_of_call(call)
            found = self._run(number, values, blocks)
            if self.store is not None:
                self.store.put_scored(call, number, values, found)
                self.store.blocks_of_call(call).clear()
        else:
            self._not_run.append(values)
        for name, of_values in found.report.items():
            self.report[name][number, values] = of_values
        return found.scores

    def _run(self, number: int, values: list[int], blocks: BlockStore | None) -> Scored:
        """Fit values of C to a fold, and score them."""
        if self.fold is None:
            self.fold = self._make_fold(number)
        fold, scores = self.fold, []
        keep_end = number == 0 and values[0] > 0 and self.goes_down
        report: dict[str, list[float]] = {name: [] for name in self.report}
        for model in fold.fit_path(self.estimator, self.Cs[values], keep_end, blocks):
            scores.append(
                score_model(self.scorer, model, fold.X, fold.y, fold.weight, self.by_rows)
            )
            for name in ("n_iter", "n_products"):
                report[name].append(model.fit_report_[name].mean())
            report["n_unsolved"].append((model.fit_report_["status"] != "converged").sum())
        return Scored(scores, {name: np.array(found) for name, found in report.items()})

    def _make_fold(self, number: int) -> "_Fold":
        made, test = self._problems.make(number), self.folds[number][1]
        return _Fold(
            made.targets,
            made.row_weight,
            made.problem,
            made.initialiser,
            same_problems(made.problem, made.initialiser),
            safe_indexing(self.X, test),
            safe_indexing(self.y, test),
            None if self.weight is None else self.weight[test],
            None if self._place is None else self._problems.run_at(self._place, number),
        )

    @contextmanager
    def sent(self) -> Iterator[None]:
        """Send all rows to the workers of a cluster, if there is one, inside the ``with``."""
        engine = self.estimator._engine()
        if not engine.is_cluster:
            yield
            return
        with engine.sharing(self._problems, type(self.estimator).__name__) as self._place:
            yield
        self._place = self.fold = None


@dataclasses.dataclass
class _Fold:
    """What the fits to a fold share; X, y and weight are those of its test rows."""

    targets: Targets
    row_weight: np.ndarray
    problem: OneVsAllProblem
    initialiser: Initialiser
    group: np.ndarray
    X: Any
    y: Any
    weight: np.ndarray | None
    elsewhere: RunPaths | None
    end: PathEnd | None = None

    def fit_path(
        self, estimator: OvALinearXC, Cs: np.ndarray, keep_end: bool, blocks: BlockStore | None
    ) -> Iterator[OvALinearXC]:
        """Yield the model of each C; `keep_end` if smaller ones may be asked for."""
        after = self.end if self.end is not None and Cs[-1] < self.end.C else None
        solutions, row_of_label, end = solve_path(
            self.problem, Cs, self.initialiser, self.group, self._allowed(estimator),
            estimator.n_jobs, estimator._engine(), after,
            keep_end and (self.end is None or Cs[0] < self.end.C), blocks, self.elsewhere,
        )  # fmt: skip
        if end is not None:
            self.end = end
        for C in Cs:
            model = with_cost(estimator, float(C))
            model.n_features_in_ = estimator.n_features_in_
            if hasattr(estimator, "feature_names_in_"):
                model.feature_names_in_ = estimator.feature_names_in_
            model._keep_targets(self.targets)
            model._count_instances(self.targets, self.row_weight)
            facts = Facts.of(at_cost(self.problem, C), self._room(estimator))
            blocks_of_C = solutions.pop(0)
            sample = together(one.sample for one in blocks_of_C)
            model._keep(facts, blocks_of_C, row_of_label, sample)
            yield model

    def _room(self, estimator: OvALinearXC) -> int | None:
        """Return the bytes for weights beside a fold's rows; they are arranged for scoring, too."""
        allowed = self._allowed(estimator)
        return None if allowed is None else max(0, allowed - held_bytes(self.problem)) // 2

    def _allowed(self, estimator: OvALinearXC) -> int | None:
        """Return what the fits may hold beside the test rows."""
        allowed = estimator._allowed_bytes()
        return None if allowed is None else max(1, allowed - 2 * array_bytes((self.X, self.y)))


def with_rows(array: Any) -> Any:
    """Return X or y in a container that has its rows at hand."""
    if sp.issparse(array):
        return array.tocsr()
    return array if hasattr(array, "shape") else np.asarray(array)
