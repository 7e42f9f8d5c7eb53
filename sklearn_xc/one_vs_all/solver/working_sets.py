"""Solves labels on working sets: the few rows that may have a loss at the solution.

A row without a loss at the solution does not affect it, so the solution over the rows with one is
that over all rows. A label goes through one loop:

1. Its first set are its positives and the rows most similar to them.
2. It is solved on its set. No vector is longer than the number of features of these rows.
3. One look at all rows finds those outside with a loss at this solution. The minimum over the set
   is a lower bound on that over all rows, so what these rows lose is all that they add to the
   distance from the minimum: if the certificate holds, the label is solved.
4. Otherwise those without a loss leave the set and those found join it, at most as many as it had:
   with too few rows to hold the intercept down, very many are found. It is solved again.

A look is a screen of all rows, for 64 labels at a time. Labels whose sets grow too large, and those
at the kink, where most rows have a loss, are left to ``newton_cg``, and so are those that it solves
faster: see ``labels_that_pay``.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.data import entry_places, read_only
from sklearn_xc.one_vs_all.kernels.block_newton import Scratch
from sklearn_xc.one_vs_all.kernels.lanes import Lanes
from sklearn_xc.one_vs_all.kernels.row_search import (
    LARGEST,
    SMALLEST,
    list_new_rows,
    list_similar_rows,
    measure_rows_kernel,
)
from sklearn_xc.one_vs_all.kernels.working_set import copy_rows_of_lanes, write_trial_points
from sklearn_xc.one_vs_all.problem import InstanceSums, OneVsAllProblem, PositiveSums, sample_of
from sklearn_xc.one_vs_all.solver.screening import CsrScreen, Screen

#: Labels solved together, and non-zeros copied at a time, per lane of a block: of 1 to 8, and of
#: 2**13 to 2**17, the fastest.
LABELS_PER_LANE = 4
ENTRIES_PER_LANE = 2**15
#: Similar rows in the first set of a label with one positive; more grow with the logarithm of their
#: number. 180 to 350 take 0.95 to 1.07 of the time. Those of features that make up this share of
#: the non-zeros are searched; up to a third of it and twice as much take 0.98 to 1.09.
FIRST_ROWS = 300
FIRST_POSTINGS = 0.01
#: Sets pay up to this expected number of features that two rows have in common, times the root of
#: the number of positives. For one positive it is 0.003 on titles, where sets take half to three
#: quarters of the time, and 0.018 on abstracts, where they take 1.2 to 1.6 times as long.
MOST_COMMON = 0.0125
#: An intercept nearer to the kink counts as at the kink.
LEAST = 0.0015
#: Size of the sample that bounds the scores of the rows that may join, and its rows that may be
#: above the bound by chance. Without the bound, a set of 363,396 rows takes 1.3 times as long.
SAMPLE_ROWS, SAMPLE_MORE = 256, 6
#: Most looks before a label is left: rounding may let a row come and go.
MAX_LOOKS = 12
#: A difference of squared norms below this share of its terms has lost too many digits.
_CANCELLED = 1e-6


@dataclass
class Batch:
    """State of some labels: arrays with one number each, and lists with an array each.

    Attributes
    ----------
    place, label, n_positives : ndarray of int64
        Position among the labels to be solved, label, and number of positives.
    tolerance, of_shared : ndarray of float64
        Gradient tolerance, and the multiple of a shared vector that a start adds to the point.
    rows : list of ndarray of int32
        Working sets: first the positives.
    features, weights : list of ndarray of int32 and float
        Current points: their features, and weights with the intercept last.
    n_looks, n_iter, n_products : ndarray of int64
    objective, gradient_norm, threshold : ndarray of float64
    """

    place: np.ndarray
    label: np.ndarray
    n_positives: np.ndarray
    tolerance: np.ndarray
    of_shared: np.ndarray
    rows: list[np.ndarray]
    features: list[np.ndarray]
    weights: list[np.ndarray]
    n_looks: np.ndarray
    n_iter: np.ndarray
    n_products: np.ndarray
    objective: np.ndarray
    gradient_norm: np.ndarray
    threshold: np.ndarray

    def __len__(self) -> int:
        return len(self.place)

    @cached_property
    def points(self) -> tuple[np.ndarray, ...]:
        """Current points as kernels read them: weights of point m from ``indptr[m] + m`` on."""
        return *pooled(self.features), np.concatenate(self.weights)

    @property
    def intercept(self) -> np.ndarray:
        """Current intercepts, float64."""
        return np.array([weights[-1] for weights in self.weights], np.float64)

    def take(self, which: np.ndarray) -> "Batch":
        """Return some of the labels."""
        if which.all():
            return self
        places = np.flatnonzero(which)
        values: dict[str, Any] = {}
        for field in fields(self):
            old = getattr(self, field.name)
            is_list = isinstance(old, list)
            values[field.name] = [old[c] for c in places.tolist()] if is_list else old[places]
        return Batch(**values)


def pooled(lists: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return lists as an indptr, int64, and one array."""
    indptr = np.concatenate(([0], np.cumsum([len(one) for one in lists])))
    return indptr, np.concatenate(lists)


@dataclass
class WorkingSetSolver:
    """Solves labels of a problem with non-negative sparse instances, an intercept, and a kink.

    Parameters
    ----------
    problem : OneVsAllProblem
    screen : CsrScreen
    negatives_weight : float
        Weight of an instance without features in each working set. It represents the many that are
        outside, so that the intercept stays below the kink. A label at whose solution this instance
        has a loss is left.
    advance : callable
        Of ``block_newton_kernel``.
    cg : tuple
    scratch : Scratch
    n_lanes : int
        Labels of a screen, at most 64; determines the memory.
    check : callable
        Called regularly, for Ctrl-C.
    """

    problem: OneVsAllProblem
    screen: CsrScreen
    negatives_weight: float
    advance: Callable[..., None]
    cg: tuple[float, float, int]
    scratch: Scratch
    n_lanes: int
    check: Callable[[], None]

    def __post_init__(self) -> None:
        problem, n_lanes = self.problem, self.n_lanes
        self.negatives_weight = problem.dtype.type(max(self.negatives_weight, 1.0))
        n, d = problem.instances.shape
        self.labels_per_batch = LABELS_PER_LANE * n_lanes
        self.most_entries = ENTRIES_PER_LANE * n_lanes
        self.X = problem.instances.arrays
        self.lengths = np.diff(self.X[0])
        self.n_nonzeros = len(self.X[-1])
        self.kink = -float(problem.loss.active_below)
        self.measure_rows = measure_rows_kernel(problem.loss)
        self.sample = sample_of(n, SAMPLE_ROWS)
        assert problem.postings is not None
        self.by_feature, _ = problem.postings
        self.dense = np.zeros(d + 1, problem.dtype)
        self.scores = np.zeros(n + 1, np.float32)
        self.met = np.empty(n + 1, np.int32)
        self.is_known = np.zeros(n, np.uint8)
        self.found = np.empty(2**16, np.int32)
        self.rooms: dict[str, np.ndarray] = {}

    def solve(
        self,
        labels: np.ndarray,
        initialiser: Any,
        prepared: Any,
        sums: InstanceSums,
        rounding: float,
    ) -> Iterator[tuple[Batch, bool]]:
        """Solve those labels for which working sets pay.

        Parameters
        ----------
        labels : ndarray of int64 of shape (m,)
            Labels with fewer positives than negatives, and with both.
        initialiser, prepared
            As ``solve_block`` takes them.
        sums : InstanceSums
            Over the instances.
        rounding : float
            Up to this, times the label's loss weights, a gradient at zero counts as zero.

        Yields
        ------
        batch : Batch
            Some of the labels; `place` is their position in `labels`.
        is_solved : bool
            Whether they are solved, or left to ``newton_cg``.
        """
        for first in range(0, len(labels), self.labels_per_batch):
            some = labels[first : first + self.labels_per_batch]
            begun = self._begin(first, some, initialiser, prepared, sums, rounding)
            if begun is None:
                return
            todo, shared = [begun[0]], begun[1]
            while todo:
                self.check()
                batch = todo.pop()
                half = len(batch) // 2
                if half and self._n_entries(batch) > self.most_entries:
                    is_first = np.arange(len(batch)) < half
                    todo += [batch.take(~is_first), batch.take(is_first)]
                elif len(batch):
                    batch = self._improve(batch, shared)
                    is_finite = np.isfinite(batch.objective)
                    yield from _some(batch.take(~is_finite), False)
                    batch, solved, left = self._look(batch.take(is_finite))
                    yield from _some(solved, True)
                    yield from _some(left, False)
                    todo.append(batch)

    def _begin(
        self,
        first: int,
        labels: np.ndarray,
        initialiser: Any,
        prepared: Any,
        sums: InstanceSums,
        rounding: float,
    ) -> tuple[Batch, np.ndarray] | None:
        """Return labels with their first sets, and the shared vector of their starts.

        Those for which zero is optimal, or whose starts are not finite, are left out. None if the
        initialiser has only dense starts.
        """
        problem, m = self.problem, len(labels)
        positives, weight = self._sum_positives(labels)
        with_mean = positives @ (sums.total[:-1] / sums.weight)
        described = PositiveSums(weight, positives.power(2).sum(axis=1), with_mean)
        at_zero = gradient_at_zero(problem, sums, labels, described)
        of_shared, shared = np.zeros(m), np.zeros(problem.n_features + 1)
        mixtures = initialiser.mixtures(prepared, problem, described)
        if mixtures is not None:
            of_positives, of_shared, shared = mixtures
            points, intercept = positives, of_positives * weight
            points.data *= np.repeat(of_positives, np.diff(points.indptr))
        else:
            starts = initialiser.sparse_starts(prepared, problem, labels)
            if starts is None:
                return None
            points, intercept = starts[:, :-1].tocsr(), starts[:, [-1]].toarray()[:, 0]
        weights = _pieces(points.data.astype(problem.dtype), points.indptr)
        endless, numbers = np.full((3, m), np.inf), np.zeros((3, m), np.int64)
        batch = Batch(
            place=np.arange(first, first + m),
            label=labels,
            n_positives=np.diff(problem.y_indptr)[labels],
            tolerance=problem.relative_tolerance[labels] * at_zero,
            of_shared=of_shared,
            rows=[problem.positives(label) for label in labels],
            features=_pieces(points.indices.astype(np.int32), points.indptr),
            weights=list(map(np.append, weights, intercept.astype(problem.dtype))),
            n_looks=numbers[0],
            n_iter=numbers[1],
            n_products=numbers[2],
            objective=endless[0],
            gradient_norm=endless[1],
            threshold=endless[2],
        )
        is_good = at_zero > rounding * (problem.plus[labels] + problem.minus[labels])
        batch = batch.take(is_good & np.isfinite(intercept + of_shared))
        return self._with_similar_rows(batch, shared) if len(batch) else batch, shared

    def _sum_positives(self, labels: np.ndarray) -> tuple[sp.csr_array, np.ndarray]:
        """Return the weighted sums of the positives of labels, float64, and of their weights."""
        problem, m = self.problem, len(labels)
        indptr, indices, data = self.X
        n_positives = np.diff(problem.y_indptr)[labels]
        places, ends = entry_places(problem.y_indptr[labels], n_positives)
        rows = problem.y_rows[places]
        weight = problem.weight[rows].astype(np.float64)
        if problem.relevance is not None:  # as in ``sum_positives``
            share = problem.plus[labels] / (problem.plus[labels] + problem.minus[labels])
            weight *= 1.0 + np.repeat(share, n_positives) * (problem.relevance[places] - 1.0)
        entries, pointers = entry_places(indptr[rows], self.lengths[rows])
        copies = data[entries].astype(np.float64), indices[entries], pointers
        X = sp.csr_array(copies, shape=(len(rows), problem.n_features))
        of_rows = sp.csr_array((weight, np.arange(len(rows)), ends), shape=(m, len(rows)))
        return of_rows @ X, of_rows.sum(axis=1)

    def _with_similar_rows(self, batch: Batch, shared: np.ndarray) -> Batch:
        """Return labels with rows of high scores in their sets, too.

        Scores are added up over the features that raise their squares most for each non-zero read.
        """
        m = len(batch)
        indptr, features, weights = batch.points
        label = np.repeat(np.arange(m), np.diff(indptr))
        values = np.delete(weights, indptr[1:] + np.arange(m)).astype(np.float64)
        values = np.maximum(values + batch.of_shared[label] * shared[features], 0.0)
        lengths = np.diff(self.by_feature[0])[features]
        order = np.lexsort((-(values**2) / np.maximum(lengths, 1), label))
        n_read = np.concatenate(([0], np.cumsum(lengths[order])))
        is_read = n_read[1:] - n_read[indptr[label]] <= FIRST_POSTINGS * self.n_nonzeros
        order = order[is_read & (values[order] > 0)]
        ends = np.searchsorted(label[order], np.arange(m + 1))
        out_indptr = np.empty(m + 1, np.int64)
        self.found = list_similar_rows(
            self.by_feature,
            pooled(batch.rows),
            (ends, features[order], values[order].astype(np.float32)),
            self._first_rows(batch.n_positives),
            (self.scores, self.met),
            out_indptr,
            self.found,
        )
        return replace(batch, rows=_pieces(self.found[: out_indptr[-1]].copy(), out_indptr))

    def _first_rows(self, n_positives: np.ndarray) -> np.ndarray:
        """Return about how many rows the first working sets have, int64."""
        return (FIRST_ROWS * (1.0 + np.log2(n_positives))).astype(np.int64)

    def _n_entries(self, batch: Batch) -> int:
        """Return the number of non-zeros of the working sets."""
        return int(self.lengths[np.concatenate(batch.rows)].sum())

    def _improve(self, batch: Batch, shared: np.ndarray) -> Batch:
        """Solve labels on their working sets."""
        problem, m = self.problem, len(batch)
        X, weight, first_entry, lists = self._copy(batch)
        lanes = self._lanes(batch, first_entry, lists[0])
        write_trial_points(
            batch.points, batch.of_shared, shared, lists, self.dense, lanes.points, lanes.state
        )
        y_rows = entry_places(np.zeros(m, np.int64), batch.n_positives)[0].astype(np.int32)
        self.advance(
            X,
            weight,
            read_only(y_rows),
            lanes.state,
            lanes.points,
            np.arange(m),
            np.zeros((1, 0), np.int32),
            np.full(m, -1),
            read_only(np.zeros(0, problem.dtype)),
            self.cg,
            self.scratch,
        )
        return replace(
            batch,
            of_shared=np.zeros(m),
            features=_pieces(lists[1].copy(), lists[0]),
            weights=[lanes.iterate(c).copy() for c in range(m)],
            n_iter=lanes.n_iter,
            n_products=batch.n_products + lanes.n_products,
            objective=lanes.objective,
            gradient_norm=lanes.gradient_norm,
            threshold=lanes.threshold,
        )

    def _copy(
        self, batch: Batch
    ) -> tuple[tuple[np.ndarray, ...], np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]:
        """Return copies of the rows, their weights, where entries of each label begin, and lists.

        The lists are X's numbers of the features of each label.
        """
        m, dtype = len(batch), self.problem.dtype
        row_indptr, rows = pooled(batch.rows)
        total = int(self.lengths[rows].sum())
        out = (
            self._room("indptr", len(rows) + 2 * m, np.int64),
            self._room("indices", total, np.int32),
            self._room("data", total, dtype),
            self._room("weight", len(rows) + m, dtype),
            np.empty(m, np.int64),
        )
        feature_indptr = np.empty(m + 1, np.int64)
        features = self._room("features", total + 1, np.int32)
        copy_rows_of_lanes(
            self.X,
            self.problem.weight,
            self.negatives_weight,
            (row_indptr, rows),
            self.scratch.position,
            out,
            feature_indptr,
            features,
        )
        if self.problem.relevance is not None:
            places, _ = entry_places(self.problem.y_indptr[batch.label], batch.n_positives)
            first, _ = entry_places(row_indptr[:-1] + np.arange(m), batch.n_positives)
            out[3][first] *= self.problem.relevance[places]
        indptr, indices, data, weight = map(read_only, out[:-1])
        lists = feature_indptr, features[: feature_indptr[-1]]
        return (indptr, indices, data), weight, out[-1], lists

    def _lanes(self, batch: Batch, first_entry: np.ndarray, feature_indptr: np.ndarray) -> Lanes:
        m, problem = len(batch), self.problem
        width = np.diff(feature_indptr) + 1
        n_rows = np.array([len(rows) + 1 for rows in batch.rows])
        first_row = np.cumsum(n_rows) - n_rows
        return Lanes(
            self._room("points", int(2 * width.sum()), problem.dtype),
            np.arange(m),
            plus=problem.plus[batch.label],
            minus=problem.minus[batch.label],
            intercept=problem.intercept,
            gap=problem.relative_gap,
            first=2 * (feature_indptr[:-1] + np.arange(m)),
            width=width,
            current=1,
            objective=np.inf,
            gradient_norm=np.inf,
            threshold=batch.tolerance,
            n_iter=batch.n_iter - 1,
            max_iter=problem.max_iter,
            n_rows=n_rows,
            first_row=first_row,
            first_pointer=first_row + np.arange(m),
            first_entry=first_entry,
            n_positives=batch.n_positives,
            first_positive=np.cumsum(batch.n_positives) - batch.n_positives,
        )

    def _look(self, batch: Batch) -> tuple[Batch, Batch, Batch]:
        """Look at all rows; return labels whose sets have changed, solved, and to be left."""
        if not len(batch):
            return batch, batch, batch
        n_rows = np.array([len(rows) for rows in batch.rows])
        least = np.maximum(self.kink, batch.intercept + LEAST)
        levels = np.maximum(least, self._high_levels(batch, n_rows))
        indptr, new, is_whole = self._rows_above(batch, levels)
        scores, losses = self._measure(batch, indptr, new)
        batch, is_solved = self._judge(batch, is_whole & (levels == self.kink), losses)
        found = []
        for rows, score, level, n in zip(_pieces(new, indptr), scores, least, n_rows, strict=True):
            highest = np.partition(score, -n - 1)[-n - 1] if n < len(score) else level
            found.append(rows[score > max(level, highest)])
        n_new = np.array([len(rows) for rows in found])
        is_large = n_rows + n_new > self.most_entries * self.problem.n_samples / self.n_nonzeros
        is_left = ~is_solved & ((n_new == 0) | is_large | (batch.n_looks >= MAX_LOOKS))
        goes_on = ~is_solved & ~is_left
        chosen = [found[c] for c in np.flatnonzero(goes_on).tolist()]
        grown = self._change_sets(batch.take(goes_on), chosen)
        return grown, batch.take(is_solved), batch.take(is_left)

    def _change_sets(self, batch: Batch, new: list[np.ndarray]) -> Batch:
        """Return labels with further rows in their sets, and without those that have no loss."""
        if not len(batch):
            return batch
        scores, _ = self._measure(batch, *pooled(batch.rows))
        rows = []
        for own, score, n, found in zip(batch.rows, scores, batch.n_positives, new, strict=True):
            score[:n] = np.inf
            rows.append(np.append(own[score > self.kink], found))
        return replace(batch, rows=rows, n_looks=batch.n_looks + 1)

    def _judge(
        self, batch: Batch, is_complete: np.ndarray, losses: list[np.ndarray]
    ) -> tuple[Batch, np.ndarray]:
        """Add the losses of rows outside to the objective; tell which labels are solved.

        `is_complete` tells where all rows with a loss are listed.
        """
        outside = np.array([one.sum() for one in losses])
        bound = 0.5 * batch.gradient_norm**2 + outside
        gap = self.problem.relative_gap
        is_certified = bound <= (gap if gap < np.inf else 0.0) * (batch.objective + outside)
        is_solved = is_complete & np.isfinite(bound) & (is_certified | (outside == 0))
        # A gradient of this norm has the same bound.
        norm = np.where(is_solved & (outside > 0), np.sqrt(2.0 * bound), batch.gradient_norm)
        batch = replace(
            batch,
            objective=batch.objective + np.where(is_solved, outside, 0.0),
            gradient_norm=norm,
            threshold=np.where(is_solved & is_certified, np.inf, batch.threshold),
        )
        return batch, is_solved

    def _high_levels(self, batch: Batch, most: np.ndarray) -> np.ndarray:
        """Return scores that more rows exceed than may join, so that others need not be listed."""
        m, size = len(batch), len(self.sample)
        indptr, rows = size * np.arange(m + 1), np.tile(self.sample, m)
        scores = np.sort(np.stack(self._measure(batch, indptr, rows)[0]), axis=1)
        n_above = size * most // self.problem.n_samples + SAMPLE_MORE
        found = scores[np.arange(m), np.maximum(size - 1 - n_above, 0)]
        return np.where(n_above < size, found, -np.inf)

    def _measure(
        self, batch: Batch, indptr: np.ndarray, rows: np.ndarray
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return scores of rows at each label's point, and their losses as negatives."""
        scores, losses = np.empty((2, len(rows)))
        self.measure_rows(
            self.X,
            self.problem.weight,
            self.problem.minus[batch.label],
            batch.points,
            (indptr, rows),
            self.dense,
            scores,
            losses,
        )
        return _pieces(scores, indptr), _pieces(losses, indptr)

    def _rows_above(
        self, batch: Batch, levels: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return for each label the rows outside its set that may have a score above a level.

        They are lists as an indptr and an array, and whether there was room for each.
        """
        points, known = batch.points, pooled(batch.rows)
        lengths, is_whole = np.zeros(len(batch), np.int64), np.ones(len(batch), bool)
        parts = []
        for first in range(0, len(batch), self.n_lanes):
            lanes = np.arange(first, min(first + self.n_lanes, len(batch)))
            counts = self.screen.list_above(lanes, points, levels, self.check)
            listed = np.empty(len(lanes) + 1, np.int64)
            lists = self.screen.candidates
            known_indptr = known[0][first : first + len(lanes) + 1]
            list_new_rows(lists, counts, (known_indptr, known[1]), self.is_known, listed)
            lengths[lanes], is_whole[lanes] = np.diff(listed), counts[: len(lanes)] >= 0
            parts += [lists[c, : lengths[k]].copy() for c, k in enumerate(lanes.tolist())]
        return np.concatenate(([0], np.cumsum(lengths))), np.concatenate(parts), is_whole

    def _room(self, name: str, size: int, dtype: Any) -> np.ndarray:
        """Return work space that is kept for further calls."""
        held = self.rooms.get(name)
        if held is None or len(held) < size:
            held = self.rooms[name] = np.empty(3 * size // 2, dtype)
        return held[:size]


def working_set_bytes(n: int, d: int, n_lanes: int, itemsize: int) -> int:
    """Return about how many bytes a solver takes, without X, its posting lists and the weights."""
    # Copied rows with their features, two points, and a copy of the current one.
    entry = (4 + itemsize) + 4 + 2 * itemsize + (4 + itemsize)
    return n_lanes * ENTRIES_PER_LANE * entry + n * (8 + 4 + 4 + 1) + d * itemsize


def labels_that_pay(problem: OneVsAllProblem, screen: Screen, labels: np.ndarray) -> np.ndarray:
    """Tell for which labels working sets pay, bool (m,).

    Working sets need a loss that ends at a kink and an intercept below it, so that most rows have
    no loss; features that are not negative, so that scores have bounds; and rows whose norms
    float32 can hold. They pay where few rows have features of the positives. If features were
    equally frequent, a row would have ``length**2 / d`` features in common with another one.
    """
    n, d = problem.instances.shape
    n_positives = np.diff(problem.y_indptr)[labels]
    none = np.zeros(len(labels), bool)
    if not (problem.intercept and isinstance(screen, CsrScreen)):
        return none
    length = len(problem.instances.arrays[-1]) / max(n, 1)
    pays = np.sqrt(n_positives) * length**2 <= MOST_COMMON * d
    pays &= (n_positives > 0) & (2 * n_positives < n)
    if not pays.any():
        return none
    postings = problem.postings
    return pays if postings is not None and SMALLEST < postings[1] < LARGEST else none


def gradient_at_zero(
    problem: OneVsAllProblem, sums: InstanceSums, labels: np.ndarray, positives: PositiveSums
) -> np.ndarray:
    """Return the norm of each label's gradient at zero; 0 where too many digits cancel."""
    constant = problem.intercept
    minus = problem.minus[labels]
    both = problem.plus[labels] + minus
    squares = positives.squares + constant * positives.weight**2
    with_total = (positives.with_mean + constant * positives.weight) * sums.weight
    first, last = both**2 * squares, minus**2 * float(np.dot(sums.total, sums.total))
    difference = first - 2.0 * both * minus * with_total + last
    difference[~(difference > _CANCELLED * (first + last))] = 0.0
    return -float(problem.loss.slope(0.0)) * np.sqrt(difference)


def weights_of(
    batch: Batch, prune: float
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """Return the pruned weights of a batch as CSR arrays, and the share of the squares removed."""
    indptr, features, weights = batch.points
    values = np.delete(weights, indptr[1:] + np.arange(len(batch)))
    is_kept = (values != 0) & (np.abs(values) >= np.float64(prune))
    squares = np.square(values, dtype=np.float64)
    # Label by label: a cumulative sum would tie the bits of a label to those before it.
    m = len(batch)
    label = np.repeat(np.arange(m), np.diff(indptr))
    total = np.bincount(label, squares, m)
    removed = np.bincount(label, np.where(is_kept, 0.0, squares), m)
    share = np.divide(removed, total, out=np.zeros(m), where=total > 0)
    indptr = np.concatenate(([0], np.cumsum(is_kept)))[indptr]
    return (indptr, features[is_kept], values[is_kept]), share


def _some(batch: Batch, is_solved: bool) -> Iterator[tuple[Batch, bool]]:
    """Yield a batch with `is_solved`, unless it is empty."""
    if len(batch):
        yield batch, is_solved


def _pieces(values: np.ndarray, indptr: np.ndarray) -> list[np.ndarray]:
    """Return an array as the lists between pointers."""
    return [values[a:b] for a, b in itertools.pairwise(indptr.tolist())]
