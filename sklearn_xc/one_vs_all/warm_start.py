"""Starts at known weights: of the last fit, of another C, or of another label.

``WarmStart`` starts a fit at the weights of the last one, matched by the names of labels and
features; ``solve_path`` starts each C of ``OvALinearXCCV`` at the last two solutions;
``ParentStarts`` passes weights between blocks, for labels that start at those of others (OvAP++).
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.refits import current_names
from sklearn_xc._labels.names import positions_of
from sklearn_xc._parallel.progress import StopFlag
from sklearn_xc.one_vs_all.blocks import topological
from sklearn_xc.one_vs_all.problem import InstanceSums, OneVsAllProblem
from sklearn_xc.one_vs_all.solver.newton_cg import BlockSolution, solve_block
from sklearn_xc.one_vs_all.starts import Initialiser

#: Labels with a larger share of new positives start as configured: their old weights are no nearer.
#: Fits with 0.2 to 0.5 were equally fast; with 1, where all labels start at the old weights, a fit
#: took twice as long.
MOST_NEW_POSITIVES = 0.3
#: Labels per lane that follow a path together, with unpruned dense weights: more take memory, fewer
#: leave lanes idle while the last labels end. 1 to 16 took the same time.
PATH_LABELS_PER_LANE = 2
#: Factor on the extrapolation of the last two solutions over log C. The paths bend: on short texts
#: 0.7 is worse than 0, as it activates negatives.
EXTRAPOLATION = 0.35
#: Longest step in log C that is extrapolated.
LONGEST_STEP = 1.0

#: Features and values of a label's weights after pruning, and its intercept.
_Point = tuple[np.ndarray, np.ndarray, np.floating]


class FittedWeights:
    """Weights of a fitted classifier, with the names that match them to another fit.

    Attributes
    ----------
    present : (ndarray of shape (n_labels,), ndarray of int64 of shape (n_labels,)) or None
        In a tagger, the labels of all rows and their instances: a fit to fewer of a label's
        positives starts this label as configured. The old weights have seen the others, and a
        model that starts there answers them better than new rows: by 0.4 points of P@5 on a
        quarter of Tate.
    """

    present: tuple[np.ndarray, np.ndarray] | None = None

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
        """Return starts for the fit of `model`; labels without a match start as in `cold`."""
        names = getattr(model, "feature_names_in_", None)
        if self.present is not None:
            names = current_names(problem.n_features)
        if self.feature_names is not None and names is not None:
            features = positions_of(self.feature_names, names)
        elif self.coef.shape[1] == problem.n_features and (
            self.present is None or self.feature_names is None
        ):
            features = np.arange(problem.n_features)
        else:
            return cold
        place = np.empty(problem.n_features, np.int64)  # positions in the problem
        place[problem.columns] = np.arange(problem.n_features)
        features = np.where(features >= 0, place[features], -1)
        rows = np.full(problem.n_labels, -1)
        if self.is_binary or model._is_binary:
            is_same = self.is_binary and np.array_equal(self.classes, model.classes_)
            if is_same and self._has_all_positives(model).all():
                rows[0] = 0
            return WarmStart(self, cold, rows, features)
        old_of_new = positions_of(model.classes_, self.classes)
        counts = model.label_counts_
        known = (old_of_new >= 0) & self._has_all_positives(model)
        n_new = counts[known] - self.counts[old_of_new[known]]
        known[known] = n_new <= MOST_NEW_POSITIVES * counts[known]
        rows[known] = old_of_new[known]
        return WarmStart(self, cold, rows, features)

    def _has_all_positives(self, model: Any) -> np.ndarray:
        """Return for which labels of a fit no positive is held out, bool of shape (n_labels,)."""
        if self.present is None:
            return np.ones(len(model.classes_), bool)
        classes, counts = self.present
        places = positions_of(model.classes_, classes, are_columns=True)
        return (places >= 0) & (model.label_counts_ == counts[places])


class WarmStart(Initialiser):
    """Starts at fitted weights, or as configured for labels that have none.

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

    def groups(self, labels: np.ndarray) -> list[tuple[Initialiser, np.ndarray]]:
        """Return the labels with weights and those without."""
        is_warm = self.rows[labels] >= 0
        return [(self, is_warm), (self.cold, ~is_warm)]

    def sparse_starts(self, prepared: Any, problem: OneVsAllProblem, labels: np.ndarray) -> Any:
        """Return the weights of some labels, intercept last, with unsorted features."""
        rows = self.coef[self.rows[labels]]
        m = len(labels)
        d = problem.n_features
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
        """Return the weights of a label, or its configured start."""
        if self.rows[label] < 0:
            return self.cold.start(prepared, problem, label, positive_sum)
        row = self.rows[label]
        own = slice(*self.coef.indptr[row : row + 2])
        places = self.features[self.coef.indices[own]]
        point = np.zeros(problem.n_features + 1)
        kept = places >= 0
        point[places[kept]] = self.coef.data[own][kept]
        point[-1] = problem.intercept * self.intercept[row]
        return point


class _Continued(Initialiser):
    """Starts some labels at the rows of an array."""

    def __init__(self, labels: np.ndarray, points: np.ndarray) -> None:
        self.row_of = {int(label): row for row, label in enumerate(labels)}
        self.points = points

    def start(
        self, prepared: None, problem: OneVsAllProblem, label: int, positive_sum: np.ndarray
    ) -> np.ndarray:
        """Return the label's row."""
        return self.points[self.row_of[label]]


def solve_path(
    problem: OneVsAllProblem,
    Cs: np.ndarray,
    sums: InstanceSums,
    initialiser: Initialiser,
    prepared: Any,
    labels: np.ndarray,
    n_lanes: int,
    stop: StopFlag,
) -> list[BlockSolution]:
    """Return the solutions of a block's labels for each C, from the largest one downwards.

    A small C, with a loss on nearly every instance, is slow from a cold start. Each further start
    lies on the line through the last two solutions before pruning; pruned weights are as far from
    the next solution as a cold start.
    """
    solutions: list[BlockSolution] = []
    shape = (len(labels), problem.n_features + 1)
    before, last = np.empty(shape, problem.dtype), np.empty(shape, problem.dtype)
    falling = Cs[::-1]
    for c, C in enumerate(falling):
        before, last = last, before
        if c > 0:  # the start takes the place of the last solution but one
            _write_start(before, last, falling[max(c - 2, 0) : c + 1])
            initialiser = _Continued(labels, last)
            prepared = None
        at_C = problem.at_cost(C)
        solutions.append(
            solve_block(at_C, sums, initialiser, prepared, labels, n_lanes, stop, ends=last)
        )
    return solutions[::-1]


def _write_start(last: np.ndarray, out: np.ndarray, Cs: np.ndarray) -> None:
    """Write the start for the last of `Cs`.

    Parameters
    ----------
    last : ndarray of shape (m, d + 1)
        The solutions for the C before.
    out : ndarray of shape (m, d + 1)
        Those for the C before that one; overwritten.
    Cs : ndarray of float64 of shape (2,) or (3,)
        The values of C of both, and that of the start; without the first if there is none.
    """
    steps = np.diff(np.log(Cs))
    if len(steps) < 2 or np.abs(steps).max() > LONGEST_STEP:
        out[:] = last
        return
    np.subtract(last, out, out=out)
    out *= out.dtype.type(EXTRAPOLATION * steps[1] / steps[0])
    out += last


def path_bytes(d: int, n_lanes: int, itemsize: int) -> int:
    """Return the bytes of a block's path in addition to the solver's workspace."""
    # The last two solutions, one to be overwritten by the start, and the new one as CSR.
    return PATH_LABELS_PER_LANE * n_lanes * (d + 1) * (3 * itemsize + 4)


def check_parents(
    problem: OneVsAllProblem, initialiser: Initialiser, parents: Any, m: int
) -> np.ndarray:
    """Return the result of ``initialiser.parents`` for m labels, checked to be a tree."""
    parents = np.asarray(parents)
    is_tree = (
        parents.shape == (m,)
        and parents.dtype.kind in "iu"
        and ((parents >= -1) & (parents < m)).all()
        and len(topological(parents.astype(np.int64))) == m
    )
    if not is_tree:
        raise ValueError(
            f"{problem.owner}: init: the parents that {initialiser!r} names must be a tree: {m} "
            f"positions below {m}, without cycles, -1 for labels that start without another. Got "
            f"{parents!r}."
        )
    return parents.astype(np.int64)


class BlockStarts(Initialiser):
    """Starts of a block: positions of parents `inside` it, and weights of parents `outside`."""

    def __init__(
        self, initialiser: Initialiser, inside: np.ndarray, outside: dict[int, _Point]
    ) -> None:
        self.initialiser, self.inside, self.outside = initialiser, inside, outside

    def __repr__(self) -> str:
        return repr(self.initialiser)

    def parents(self, problem: OneVsAllProblem, labels: np.ndarray) -> np.ndarray:
        """Return the positions of parents in the block, -1 for none."""
        return self.inside

    def start(
        self, prepared: Any, problem: OneVsAllProblem, label: int, positive_sum: np.ndarray
    ) -> np.ndarray:
        """Return the weights of a label's parent, or the initialiser's start."""
        if label not in self.outside:
            return self.initialiser.start(prepared, problem, label, positive_sum)
        return problem.point(*self.outside[label])


class ParentStarts:
    """Passes the weights of parents on to the blocks of their children.

    Parameters
    ----------
    problem : OneVsAllProblem
        The problems of all labels.
    initialiser : Initialiser
        Starts of labels without a parent.
    labels, parents : ndarray of int64 of shape (m,)
        Labels, and the position of each one's parent among them, -1 for none.
    blocks : list of ndarray of int64
        The labels of each block.
    results : list
        Solutions of each block over the original features, filled while blocks are solved; the last
        one is used.
    """

    def __init__(
        self,
        problem: OneVsAllProblem,
        initialiser: Initialiser,
        labels: np.ndarray,
        parents: np.ndarray,
        blocks: list[np.ndarray],
        results: list[Any],
    ) -> None:
        self.initialiser, self.blocks, self.results = initialiser, blocks, results
        self.feature = np.argsort(problem.columns).astype(np.int32)
        self.parent = np.full(problem.n_labels, -1)
        has_parent = parents >= 0
        self.parent[labels[has_parent]] = labels[parents[has_parent]]
        self.block, self.row = np.full((2, problem.n_labels), -1)
        for number, block in enumerate(blocks):
            self.block[block], self.row[block] = number, np.arange(len(block))

    def of_block(self, number: int) -> BlockStarts:
        """Return the starts of a block, once the earlier waves are solved."""
        labels = self.blocks[number]
        parent = self.parent[labels]
        is_inside = (parent >= 0) & (self.block[parent] == number)
        is_outside = (parent >= 0) & ~is_inside
        points = {int(label): self._point(label) for label in np.unique(parent[is_outside])}
        pairs = zip(labels[is_outside].tolist(), parent[is_outside].tolist(), strict=True)
        return BlockStarts(
            self.initialiser,
            np.where(is_inside, self.row[parent], -1),
            {label: points[above] for label, above in pairs},
        )

    def _point(self, label: int) -> _Point:
        """Return a label's weights over the features of the problem."""
        solution, row = self.results[self.block[label]][-1], self.row[label]
        own = slice(solution.indptr[row], solution.indptr[row + 1])
        return self.feature[solution.indices[own]], solution.values[own], solution.intercepts[row]
