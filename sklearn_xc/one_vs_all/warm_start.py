"""Starts at the weights of the last fit, matched by the names of labels and features."""

import dataclasses
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._labels.names import positions_of
from sklearn_xc._parallel.interrupt import StopFlag
from sklearn_xc.one_vs_all.solver.newton_cg import BlockSolution, solve_block
from sklearn_xc.one_vs_all.solver.problem import InstanceSums, OneVsAllProblem
from sklearn_xc.one_vs_all.starts import Initialiser

#: A label with a larger share of new positives starts as configured: its old weights are no nearer.
#: 0.2 to 0.5 serve alike; 1, where all labels start at the old weights, took twice as long.
MOST_NEW_POSITIVES = 0.3


class FittedWeights:
    """Weights of a fitted classifier, with the names that match them to another fit."""

    def __init__(self, model: Any) -> None:
        self.coef, self.intercept = model._weights.coef, model._weights.intercept
        self.classes, self.counts = model.classes_, model.label_counts_
        self.feature_names = getattr(model, "feature_names_in_", None)
        self.is_binary = model._is_binary

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """Arrays on which the starts depend, for the key of a checkpoint."""
        names = () if self.feature_names is None else (self.feature_names,)
        coef = self.coef.indptr, self.coef.indices, self.coef.data
        return *coef, self.intercept, self.classes, self.counts, *names

    def initialiser(self, model: Any, cold: Initialiser, problem: OneVsAllProblem) -> Initialiser:
        """Return starts for the fit of `model`; `cold` gives those of labels without a match."""
        features = _match(self.feature_names, getattr(model, "feature_names_in_", None))
        if features is None:
            if self.coef.shape[1] != problem.n_features:
                return cold
            features = np.arange(problem.n_features)
        place = np.empty(problem.n_features, np.int64)  # of the caller's features in the problem
        place[problem.columns] = np.arange(problem.n_features)
        features = np.where(features >= 0, place[features], -1)
        rows = np.full(problem.n_labels, -1)
        if self.is_binary or model._is_binary:
            if self.is_binary and np.array_equal(self.classes, model.classes_):
                rows[0] = 0
            return WarmStart(self, cold, rows, features)
        old_of_new = _match(model.classes_, self.classes)
        assert old_of_new is not None
        counts = model.label_counts_
        known = old_of_new >= 0
        n_new = counts[known] - self.counts[old_of_new[known]]
        known[known] = n_new <= MOST_NEW_POSITIVES * counts[known]
        rows[known] = old_of_new[known]
        return WarmStart(self, cold, rows, features)


class WarmStart(Initialiser):
    """Starts at fitted weights; see :func:`solve_warm` for labels that have none.

    Parameters
    ----------
    weights : FittedWeights
    cold : Initialiser
        Starts of the other labels.
    rows : ndarray of int64 of shape (n_labels,)
        Row of each label in `weights`, -1 for none.
    features : ndarray of int64
        The problem's number of each feature of `weights`, -1 for none.
    """

    def __init__(
        self, weights: FittedWeights, cold: Initialiser, rows: np.ndarray, features: np.ndarray
    ) -> None:
        self.coef, self.intercept = weights.coef, weights.intercept
        self.cold, self.rows, self.features = cold, rows, features

    def prepare(self, problem: OneVsAllProblem, sums: InstanceSums) -> Any:
        """Return what the starts of the other labels need."""
        return self.cold.prepare(problem, sums)

    def sparse_starts(self, prepared: Any, problem: OneVsAllProblem, labels: np.ndarray) -> Any:
        """Return the weights of some labels, intercept last, features in no order."""
        rows = self.coef[self.rows[labels]]
        m, d = len(labels), problem.n_features
        label_of = np.repeat(np.arange(m), np.diff(rows.indptr))
        places = self.features[rows.indices]
        kept = places >= 0
        starts = sp.csr_array(
            (rows.data[kept].astype(np.float64), (label_of[kept], places[kept])), shape=(m, d)
        )
        intercept = problem.intercept * self.intercept[self.rows[labels]].astype(np.float64)
        column = sp.csr_array((intercept, np.zeros(m, np.int32), np.arange(m + 1)), shape=(m, 1))
        return sp.hstack([starts, column], "csr")

    def start(
        self, prepared: Any, problem: OneVsAllProblem, label: int, positive_sum: np.ndarray
    ) -> np.ndarray:
        """Return the weights of a label."""
        return self.sparse_starts(prepared, problem, np.array([label])).toarray()[0]


def solve_warm(
    problem: OneVsAllProblem,
    sums: InstanceSums,
    starts: WarmStart,
    prepared: Any,
    labels: np.ndarray,
    n_lanes: int,
    stop: StopFlag,
) -> BlockSolution:
    """Solve a block's labels with a match from there, and the others as configured."""
    is_warm = starts.rows[labels] >= 0
    parts = [
        solve_block(problem, sums, initialiser, prepared, labels[some], n_lanes, stop)
        for initialiser, some in ((starts, is_warm), (starts.cold, ~is_warm))
        if some.any()
    ]
    if len(parts) == 1:
        return parts[0]
    order = np.argsort(np.concatenate([part.labels for part in parts]))
    arrays = {
        field.name: np.concatenate([getattr(part, field.name) for part in parts])[order]
        for field in dataclasses.fields(BlockSolution)
        if field.name not in ("indptr", "indices", "values")
    }
    shape = (-1, problem.n_features)
    rows = sp.vstack(
        [
            sp.csr_array((part.values, part.indices, part.indptr), (len(part.labels), shape[1]))
            for part in parts
        ],
        "csr",
    )[order]
    return BlockSolution(
        **arrays,
        indptr=rows.indptr.astype(np.int64),
        indices=rows.indices.astype(np.int32),
        values=rows.data,
    )


def _match(names: np.ndarray | None, others: np.ndarray | None) -> np.ndarray | None:
    """Return the place of each name among others, -1 if it is missing; None without names."""
    if names is None or others is None:
        return None
    return positions_of(names, others)
