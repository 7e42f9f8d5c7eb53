"""The training rows of folds as problems, made where they are solved.

A cluster is sent X once, and each worker makes the problem of a fold itself: one at a time, as
folds take turns.
"""

import dataclasses
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._data import CsrRows, DenseRows, Targets
from sklearn_xc.initialisers import Initialiser
from sklearn_xc.linear.ova import OvALinearXC, with_cost
from sklearn_xc.linear.path import PathEnd, at_cost, solve_block_path
from sklearn_xc.linear.problem import build_problem, check_init, copies_in_files
from sklearn_xc.parallel.engines.protocol import Numbered, Place
from sklearn_xc.parallel.interrupt import StopFlag
from sklearn_xc.parallel.spill import maker
from sklearn_xc.solvers.newton_cg import BlockSolution, Starter
from sklearn_xc.solvers.problem import InstanceSums, OneVsAllProblem, sum_instances

#: Where ``tol`` is None, a label is left in the folds once its objective is at most this share
#: above its minimum, and in the final fit at a thirtieth of it. Mean precisions by C moved by 0.12
#: points on average over twelve sets, 1.0 at most; one Newton step from the last C is often enough.
FOLD_GAP = 0.03


class FoldProblem(NamedTuple):
    """What the training rows of a fold are solved with.

    Attributes
    ----------
    targets : Targets
    row_weight : ndarray of float64 of shape (n,)
    problem : OneVsAllProblem
        For C = 1.
    initialiser : Initialiser
    """

    targets: Targets
    row_weight: np.ndarray
    problem: OneVsAllProblem
    initialiser: Initialiser


class FoldProblems:
    """Makes the problems of folds; in a worker it holds the last one.

    Parameters
    ----------
    estimator : OvALinearXCCV
    instances, targets, weight
        Of all rows.
    rows : list of ndarray of int
        The training rows of each fold; one that comes twice has twice the weight.
    """

    def __init__(
        self, estimator: OvALinearXC, instances: CsrRows | DenseRows, targets: Targets,
        weight: np.ndarray | None, rows: list[np.ndarray],
    ) -> None:  # fmt: skip
        self.estimator = estimator
        self.instances, self.targets, self.weight, self.rows = instances, targets, weight, rows
        self._lock, self._number = threading.Lock(), -1
        self._made: tuple[FoldProblem, InstanceSums] | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Without what the user's own parts of a cross-validation may hold.
        return {
            "estimator": with_cost(self.estimator, 1.0),
            "instances": self.instances, "targets": self.targets, "weight": self.weight,
            "rows": [rows.astype(np.int32) for rows in self.rows],
        }  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def make(self, number: int) -> FoldProblem:
        """Return the problem of a fold."""
        rows, repeats = np.unique(self.rows[number], return_counts=True)
        row_weight = repeats.astype(np.float64)
        if self.weight is not None:
            row_weight *= self.weight[rows]
            rows, row_weight = rows[row_weight > 0], row_weight[row_weight > 0]
        kept = np.zeros(self.instances.shape[0], bool)
        kept[rows] = True
        targets = self.targets.take(kept)
        problem = build_problem(self.estimator, 1.0, self._take(rows), targets, row_weight)
        initialiser = check_init(self.estimator, problem)
        if self.estimator.tol is None:
            problem = _to_be_ranked(problem)
        return FoldProblem(targets, row_weight, problem, initialiser)

    def at_hand(self, number: int) -> tuple[FoldProblem, InstanceSums]:
        """Return the problem of a fold, which is made once in a row of calls, in a worker."""
        with self._lock:
            if number != self._number:
                self._made = None  # not two folds at a time
                fold = self.make(number)
                self._number, self._made = number, (fold, sum_instances(fold.problem))
            assert self._made is not None
            return self._made

    def _take(self, rows: np.ndarray) -> CsrRows | DenseRows:
        """Return the instances of a fold, in files where those of all would be."""
        if isinstance(self.instances, DenseRows):
            return self.instances.take(rows)
        in_files = copies_in_files(self.estimator, self.instances, self.targets)
        return self.instances.take(rows, maker(in_files, type(self.estimator).__name__))

    def run_at(self, place: Place, number: int) -> "RunPaths":
        """Return what solves blocks of a fold at a place that has these."""

        def run(
            tasks: Iterable[Numbered], n_workers: int, Cs: np.ndarray, n_lanes: int,
            after: PathEnd | None, keep_end: bool,
        ) -> Iterator[Any]:  # fmt: skip
            each = (
                (block, (number, Cs, n_lanes, _of_block(after, labels), keep_end, starts, labels))
                for block, (starts, labels) in tasks
            )
            return place.run(_solve_elsewhere, each, n_workers)

        return run


#: Solves blocks for values of C; see ``FoldProblems.run_at``.
RunPaths = Callable[..., Iterator[Any]]


def _of_block(after: PathEnd | None, labels: np.ndarray) -> PathEnd | None:
    """Return the end of a path for the labels of a block alone."""
    if after is None:
        return None
    first = int(labels[0])
    return PathEnd(after.C, {first: after.points[first]})


def _solve_elsewhere(
    folds: FoldProblems, number: int, Cs: np.ndarray, n_lanes: int, after: PathEnd | None,
    keep_end: bool, starts: Starter | None, labels: np.ndarray,
) -> tuple[list[BlockSolution], np.ndarray | None]:  # fmt: skip
    """Solve a block of a fold, in a worker."""
    fold, sums = folds.at_hand(number)
    at_largest = at_cost(fold.problem, Cs[-1])
    initialiser, prepared = starts, None
    if starts is None:
        initialiser, prepared = fold.initialiser, fold.initialiser.prepare(at_largest, sums)
    assert initialiser is not None
    return solve_block_path(
        fold.problem, Cs, n_lanes, after, keep_end, at_largest, sums, initialiser, prepared, labels,
        StopFlag(),
    )  # fmt: skip


def _to_be_ranked(problem: OneVsAllProblem) -> OneVsAllProblem:
    """Return a problem that is solved no further than a comparison of scores needs."""
    if problem.intercept and not problem.ridge:  # then the gradient is no bound
        return dataclasses.replace(problem, relative_gap=FOLD_GAP)
    no_other_rule = np.ones(problem.n_labels)
    return dataclasses.replace(problem, relative_gap=FOLD_GAP, relative_tolerance=no_other_rule)
