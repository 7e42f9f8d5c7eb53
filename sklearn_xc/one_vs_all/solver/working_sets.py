"""Solves labels on working sets: the few rows that may have a loss at the solution.

A row without a loss at the solution has no part in it, so that the solution over the rows with one
is that over all rows. Which they are is found step by step:

1. A label's first working set are its positives and the rows that resemble them most.
2. It is solved there; no vector is longer than the features of these rows.
3. All rows with a loss at this solution, before pruning or after, that are not in the set are
   looked for. If there are none, the label is solved, with the certificate that a solver over all
   rows would give. Else they join the set, from which those far from a loss go.

Rows with a loss are found by posting lists: a score above the kink needs a feature whose weight
matters, and where few rows have one, few are looked at. Otherwise a screen of all rows decides, for
64 labels at a time. Both list exactly the rows with a loss, and some below the kink, so that a
change of the weights that is small enough needs no other look.

A label on which most rows have a loss, as where a positive has no features, is left to
``newton_cg``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from sklearn_xc._input.data import read_only
from sklearn_xc.one_vs_all.kernels.lanes import NEWTON, PRUNED, Lanes, Rows, Scratch, WorkingSets
from sklearn_xc.one_vs_all.kernels.row_search import (
    find_high_levels,
    keep_highest,
    list_new_rows,
    list_rows_above,
    list_similar_rows,
)
from sklearn_xc.one_vs_all.kernels.working_set import (
    copy_rows_of_lanes,
    count_entries,
    describe_positives,
    keep_near_rows,
    list_pruned,
    mix_points,
    move_points,
    order_by_length,
    prune_points,
    take_lists,
)
from sklearn_xc.one_vs_all.solver.problem import InstanceSums, OneVsAllProblem, PositiveSums
from sklearn_xc.one_vs_all.solver.screening import CsrScreen, Screen

#: Labels that are worked on together, and non-zeros that are copied at a time, for each lane that a
#: block may have.
LABELS_PER_LANE, ENTRIES_PER_LANE = 4, 2**15
#: Rows of the first working set for a label with one positive: the root of this share of the
#: non-zeros, between these, as what is forgotten costs a look at them all. It grows with the
#: logarithm of the number of positives. They are found among this share of the non-zeros.
FIRST_SHARE, FIRST_ROWS, FIRST_POSTINGS = 1 / 36, (150, 350), 0.01
#: Working sets pay for a label with one positive from so many rows on, for others in proportion to
#: the first set; and where rows have more non-zeros than this, in proportion to these: before, to
#: read all rows in a screen costs less than to copy some and read them on their own, and long rows
#: have more to do with each other.
FEWEST_ROWS, LONG_ROW = 14_000, 10
#: They do not pay for a label whose features have more than this share of the non-zeros, those left
#: out that hardly matter where it starts.
LARGEST_NEIGHBOURHOOD = 0.25
#: The first solution need only be so near to the optimum, as a share of its objective; and rows
#: join the set whose score is so far above the kink.
FIRST_GAP, FIRST_ABOVE = 0.1, 0.15
#: Where its intercept is nearer to the kink than this, the first set had too few rows to hold it
#: down, and most rows listed are none of its own: only so many times as many as it had join.
FIRST_SLACK, FIRST_TIMES = 0.2, 3
#: A label that starts at a given point starts with an intercept so far below the kink at least.
START_SLACK = 0.01
#: Rows need not be listed that are below as many of a sample as these times those that may join
#: would be of it, and so many more.
SAMPLE_ROWS, SAMPLE_TIMES, SAMPLE_MORE = 512, 2.0, 6
#: While the intercept is nearer to the kink than this, rows are looked for that are farther above.
LEAST_SLACK = 0.0015
#: Passes also list rows below the kink by at most this share of its distance from the intercept;
#: rows that are below it by that share leave.
MARGIN, FAR = 0.03, 0.1
#: What features may add to a score that are left out, as a share of the same distance.
REST = 0.4
#: A pass reads posting lists with at most this share of the non-zeros; a screen costs as much.
PASS_POSTINGS = 0.01
#: A label is left whose set would have more than this share of the rows, and after so many passes.
LARGEST_SET, MAX_PASSES = 0.25, 12
#: The longest row must be between these: sums over posting lists are taken in float32.
_SMALL, _LARGE = 1e-20, 1e20
#: A squared norm that is a smaller share of its terms has lost too many digits.
_CANCELLED = 1e-6
_MAX_LANES = 64


@dataclass
class Batch:
    """Labels on their way: arrays with one number each, and pools of lists, one behind the other.

    Points have their intercept last: that of label c is from ``indptr[c] + c`` on.

    Attributes
    ----------
    place, label, n_positives : ndarray of int64
        Place among the labels to be solved, label, and positives.
    tolerance, of_positives, of_shared : ndarray of float64
        Gradient norm at which it rests, and its start as multiples of two vectors.
    row_indptr, rows : ndarray of int64 and int32
        Working sets: positives, -1 for the instance without features, and others.
    indptr, features : ndarray of int64 and int32
        Features of the points.
    stand : ndarray of float
        Where a label stands.
    seen_indptr, seen_features, seen : ndarray of int64, int32 and float
        Where it stood when rows were looked for.
    kink : ndarray of float64
        The score from which on rows were listed.
    is_tight, is_precise : ndarray of bool
        Whether it was solved to its tolerance; whether all rows with a loss are looked for.
    n_passes, n_iter, n_products : ndarray of int64
    objective, gradient_norm, threshold, pruned_objective : ndarray of float64
    rise : ndarray of float64
        The most by which the score of a row of norm 1 rose since, intercepts aside.
    """

    place: np.ndarray
    label: np.ndarray
    n_positives: np.ndarray
    tolerance: np.ndarray
    of_positives: np.ndarray
    of_shared: np.ndarray
    row_indptr: np.ndarray
    rows: np.ndarray
    indptr: np.ndarray
    features: np.ndarray
    stand: np.ndarray
    seen_indptr: np.ndarray
    seen_features: np.ndarray
    seen: np.ndarray
    kink: np.ndarray
    is_tight: np.ndarray
    is_precise: np.ndarray
    n_passes: np.ndarray
    n_iter: np.ndarray
    n_products: np.ndarray
    objective: np.ndarray
    gradient_norm: np.ndarray
    threshold: np.ndarray
    pruned_objective: np.ndarray
    rise: np.ndarray

    def __len__(self) -> int:
        return len(self.place)

    @property
    def intercept(self) -> np.ndarray:
        """Where they stand, their intercepts, float64."""
        return self.stand[self.indptr[1:] + np.arange(len(self))].astype(np.float64)

    def take(self, which: np.ndarray) -> "Batch":
        """Return some of the labels."""
        if which.all():
            return self
        which = np.flatnonzero(which)
        values: dict[str, Any] = {}
        for pool, lists in _POOLS.items():
            indptr = getattr(self, pool)
            lengths = (indptr[1:] - indptr[:-1])[which]
            values[pool] = ends = np.concatenate(([0], np.cumsum(lengths)))
            for name, shift in lists:
                old = getattr(self, name)
                values[name] = np.empty(ends[-1] + shift * len(which), old.dtype)
                take_lists(indptr, which, shift, old, ends, values[name])
        for field in fields(self):
            if field.name not in values:
                values[field.name] = getattr(self, field.name)[which]
        return Batch(**values)


#: Of each pool its lists, and whether they hold an intercept more.
_POOLS = {
    "row_indptr": [("rows", 0)],
    "indptr": [("features", 0), ("stand", 1)],
    "seen_indptr": [("seen_features", 0), ("seen", 1)],
}


class WorkingSetSolver:
    """Solves labels of a problem with non-negative sparse instances, an intercept, and a kink.

    Parameters
    ----------
    problem : OneVsAllProblem
    data : Rows
        The same for kernels.
    screen : CsrScreen
    negatives_weight : float
        Of the instance without features that stands for the many that no working set has, so that
        the intercept stays below the kink. A label at whose solution it has a loss is left.
    advance : callable
        Of ``block_newton_kernels``.
    cg : tuple
    scratch : Scratch
    n_lanes : int
        By which memory is measured.
    check : callable
        Called now and then, so that Ctrl-C is heard.
    """

    def __init__(
        self,
        problem: OneVsAllProblem,
        data: Rows,
        screen: CsrScreen,
        negatives_weight: float,
        advance: Callable[..., None],
        cg: tuple,
        scratch: Scratch,
        n_lanes: int,
        check: Callable[[], None],
    ) -> None:
        self.problem, self.data, self.screen = problem, data, screen
        self.negatives_weight = problem.dtype.type(max(negatives_weight, 1.0))
        self.advance, self.cg, self.scratch, self.check = advance, cg, scratch, check
        n, d = problem.instances.shape
        self.labels_per_batch = LABELS_PER_LANE * n_lanes
        self.lanes_per_screen = min(n_lanes, _MAX_LANES)
        self.most_entries = ENTRIES_PER_LANE * n_lanes
        self.mean_length = len(problem.instances.arrays[-1]) / max(n, 1)
        self.X = problem.instances.arrays
        self.kink = -float(problem.loss.active_below)
        self.sample = sample_of(n, SAMPLE_ROWS)
        assert problem.postings is not None
        self.by_feature, self.longest_row = problem.postings
        self.dense, self.dense2 = np.zeros(d + 1, problem.dtype), np.zeros(d + 1)
        self.scores, self.met = np.zeros(n + 1, np.float32), np.empty(n + 1, np.int32)
        self.seen = np.zeros(n, np.uint8)
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
            Those with fewer positives than negatives, and with both.
        initialiser, prepared
            As ``solve_block`` takes them.
        sums : InstanceSums
            Over the instances.
        rounding : float
            A gradient at zero of at most so much for each unit of loss weight counts as zero.

        Yields
        ------
        batch : Batch
            Some of the labels, `place` of which is their place in `labels`.
        is_solved : bool
            Whether they are solved, or left as they are.
        """
        positives = self._describe(labels, sums.total / sums.weight)
        mixtures = initialiser.mixtures(prepared, self.problem, positives)
        points = None if mixtures else initialiser.sparse_starts(prepared, self.problem, labels)
        if mixtures is None and points is None:
            return
        none = np.zeros(len(labels))
        of_positives, of_shared, shared = mixtures or (none, none, np.zeros(0))
        at_zero = gradient_at_zero(self.problem, sums, labels, positives)
        both = self.problem.plus[labels] + self.problem.minus[labels]
        is_good = (at_zero > rounding * both) & np.isfinite(of_positives + of_shared)
        tolerance = self.problem.relative_tolerance[labels] * at_zero
        place = np.flatnonzero(is_good)
        for first in range(0, len(place), self.labels_per_batch):
            some = place[first : first + self.labels_per_batch]
            if points is None:
                batch, left = self._begin(
                    some, labels[some], tolerance[some], of_positives[some], of_shared[some], shared
                )
            else:
                batch, left = self._begin_at(points[some], some, labels[some], tolerance[some])
            yield from _some(left, np.ones(len(left), bool), False)
            while len(batch):
                self.check()
                batch = self._improve(batch, shared)
                is_finite = np.isfinite(batch.objective)
                is_solved = is_finite & (batch.intercept < self.kink) & self._hardly_moved(batch)
                yield from _some(batch, is_solved, True)
                yield from _some(batch, ~is_finite, False)
                batch, solved, left = self._verify(batch.take(is_finite & ~is_solved))
                yield from _some(solved, np.ones(len(solved), bool), True)
                yield from _some(left, np.ones(len(left), bool), False)

    def _describe(self, labels: np.ndarray, mean: np.ndarray) -> PositiveSums:
        """Return what is known of the sums of the positives."""
        out = np.empty((3, len(labels)))
        describe_positives(
            self.X,
            self.problem.weight,
            self.problem.y_indptr,
            self.problem.y_rows,
            labels,
            read_only(mean),
            self.dense2,
            self.scratch.touched,
            out,
        )
        return PositiveSums(*out)

    def _begin(
        self,
        place: np.ndarray,
        labels: np.ndarray,
        tolerance: np.ndarray,
        of_positives: np.ndarray,
        of_shared: np.ndarray,
        shared: np.ndarray,
    ) -> tuple[Batch, Batch]:
        """Return labels with their first working sets, and those for which these do not pay."""
        problem, m = self.problem, len(labels)
        n_positives = np.diff(problem.y_indptr)[labels]
        n_nonzeros = len(self.by_feature[1])
        row_indptr = np.empty(m + 1, np.int64)
        self.found, is_left = list_similar_rows(
            self.X,
            problem.weight,
            self.by_feature,
            self.longest_row,
            (problem.y_indptr, problem.y_rows),
            labels,
            (of_positives, of_shared, shared),
            self.kink,
            REST,
            self._first_rows(n_positives),
            (int(FIRST_POSTINGS * n_nonzeros), int(LARGEST_NEIGHBOURHOOD * n_nonzeros)),
            (self.dense2, self.scratch.touched, self.scores, self.met),
            row_indptr,
            self.found,
        )
        batch = replace(
            self._nowhere(place, labels, tolerance),
            of_positives=of_positives,
            of_shared=of_shared,
            row_indptr=row_indptr,
            rows=self.found[: row_indptr[-1]].copy(),
        )
        return batch.take(~is_left), batch.take(is_left)

    def _begin_at(
        self, points: Any, place: np.ndarray, labels: np.ndarray, tolerance: np.ndarray
    ) -> tuple[Batch, Batch]:
        """Return labels that stand at points, (m, d + 1), with the rows that have a loss there.

        The second are those for which working sets do not pay.
        """
        problem, m = self.problem, len(labels)
        weights, intercept = points[:, :-1].tocsr(), points[:, [-1]].toarray()[:, 0]
        indptr, lengths = weights.indptr.astype(np.int64), np.diff(weights.indptr)
        stand = np.empty(indptr[-1] + m, problem.dtype)
        stand[_ranges(indptr[:-1] + np.arange(m), lengths)] = weights.data
        stand[indptr[1:] + np.arange(m)] = np.minimum(intercept, self.kink - START_SLACK)
        n_positives = np.diff(problem.y_indptr)[labels]
        row_indptr = np.concatenate(([0], np.cumsum(n_positives + 1)))
        rows = np.full(row_indptr[-1], -1, np.int32)
        positives = problem.y_rows[_ranges(problem.y_indptr[labels], n_positives)]
        rows[_ranges(row_indptr[:-1], n_positives)] = positives
        batch = replace(
            self._nowhere(place, labels, tolerance),
            row_indptr=row_indptr,
            rows=rows,
            indptr=indptr,
            features=weights.indices.astype(np.int32),
            stand=stand,
            n_iter=np.zeros(m, np.int64),
        )
        batch, _, left = self._verify(batch)
        return batch, left

    def _nowhere(self, place: np.ndarray, labels: np.ndarray, tolerance: np.ndarray) -> Batch:
        """Return labels that have no working sets yet."""
        m = len(labels)
        ends, zeros, infinite = np.zeros(m + 1, np.int64), np.zeros(m, np.int64), np.full(m, np.inf)
        point, none = np.zeros(m, self.problem.dtype), np.empty(0, np.int32)
        return Batch(
            place=place,
            label=labels,
            n_positives=np.diff(self.problem.y_indptr)[labels],
            tolerance=tolerance,
            of_positives=np.zeros(m),
            of_shared=np.zeros(m),
            row_indptr=ends,
            rows=none,
            indptr=ends,
            features=none,
            stand=point,
            seen_indptr=ends,
            seen_features=none,
            seen=point,
            kink=infinite.copy(),
            is_tight=np.zeros(m, bool),
            is_precise=np.zeros(m, bool),
            n_passes=zeros,
            n_iter=zeros - 1,
            n_products=zeros,
            objective=infinite,
            gradient_norm=infinite,
            threshold=np.zeros(m),
            pruned_objective=np.full(m, np.nan),
            rise=np.zeros(m),
        )

    def _first_rows(self, n_positives: np.ndarray) -> np.ndarray:
        """Return about how many rows the first working sets have, int64."""
        first = (FIRST_SHARE * len(self.by_feature[1])) ** 0.5
        first = min(max(first, FIRST_ROWS[0]), FIRST_ROWS[1])
        return (first * _growth(n_positives)).astype(np.int64)

    def _improve(self, batch: Batch, shared: np.ndarray) -> Batch:
        """Solve labels on their working sets, as many at a time as there is room for."""
        lengths = np.diff(self.X[0])
        sizes = np.add.reduceat(
            np.where(batch.rows < 0, 0, lengths[batch.rows]), batch.row_indptr[:-1]
        )
        chunk = np.cumsum(sizes) // self.most_entries
        parts = [self._improve_some(batch.take(chunk == c), shared) for c in np.unique(chunk)]
        return parts[0] if len(parts) == 1 else _joined(parts)

    def _improve_some(self, batch: Batch, shared: np.ndarray) -> Batch:
        problem, m = self.problem, len(batch)
        has_point = bool(batch.n_iter[0] >= 0)
        is_tight = np.full(m, has_point)
        sets, feature_indptr, features = self._copy(batch, is_tight)
        features = features[: feature_indptr[-1]]
        most = int(sets.n_rows.max())
        lanes = self._lanes(batch, is_tight, feature_indptr, most)
        if has_point:
            move_points(
                batch.indptr,
                batch.features,
                batch.stand,
                feature_indptr,
                features,
                self.dense,
                lanes.points,
                lanes.trial_norm2,
            )
        else:
            mix_points(
                sets,
                feature_indptr,
                features,
                batch.of_positives,
                batch.of_shared,
                shared,
                self.dense2,
                lanes.points,
                lanes.trial_norm2,
            )
        room, none = np.empty((1, most + 1), np.int32), np.zeros(m, np.int64)
        occupied = np.arange(m)
        self.advance(self.data, sets, lanes, occupied, room, none, self.cg, self.scratch)
        n_products = batch.n_products + lanes.n_products
        stand, rises = np.empty(int(feature_indptr[-1]) + m, problem.dtype), np.empty(m)
        prune_points(
            lanes,
            problem.prune,
            feature_indptr,
            features,
            batch.seen_indptr,
            batch.seen_features,
            batch.seen,
            self.dense,
            stand,
            rises,
        )
        intercept = stand[feature_indptr[1:] + np.arange(m)].astype(np.float64)
        kinks = self.kink - FAR * np.maximum(self.kink - intercept, LEAST_SLACK)
        kept = np.empty(len(batch.rows), np.bool_)
        keep_near_rows(sets, lanes, problem.prune, kinks, kept)
        if has_point:
            lanes.purpose[:] = PRUNED
            self.advance(self.data, sets, lanes, occupied, room, none, self.cg, self.scratch)
        sums = np.concatenate(([0], np.cumsum(kept)))
        return replace(
            batch,
            row_indptr=sums[batch.row_indptr],
            rows=batch.rows[kept],
            indptr=feature_indptr,
            features=features.copy(),
            stand=stand,
            is_tight=is_tight,
            n_iter=lanes.n_iter,
            n_products=n_products,
            objective=lanes.objective,
            gradient_norm=lanes.gradient_norm,
            threshold=lanes.threshold,
            pruned_objective=lanes.pruned_objective,
            rise=rises,
        )

    def _copy(
        self, batch: Batch, is_tight: np.ndarray
    ) -> tuple[WorkingSets, np.ndarray, np.ndarray]:
        """Return copies of the rows, and X's numbers of their features."""
        problem, m, dtype = self.problem, len(batch), self.problem.dtype
        order_by_length(self.X, batch.n_positives, batch.row_indptr, batch.rows)
        entries = np.empty(m, np.int64)
        count_entries(self.X, batch.row_indptr, batch.rows, entries)
        total = int(entries.sum())
        indptr = self._room("indptr", len(batch.rows) + m, np.int64)
        indices, data = self._room("indices", total, np.int32), self._room("data", total, dtype)
        weight, first_entry = self._room("weight", len(batch.rows), dtype), np.empty(m, np.int64)
        feature_indptr = np.empty(m + 1, np.int64)
        features = self._room("features", total + 1, np.int32)
        copy_rows_of_lanes(
            self.X,
            problem.weight,
            self.negatives_weight,
            batch.row_indptr,
            batch.rows,
            self.scratch.position,
            indptr,
            indices,
            data,
            weight,
            first_entry,
            feature_indptr,
            features,
        )
        y_indptr = np.concatenate(([0], np.cumsum(batch.n_positives)))
        y_rows = _ranges(np.zeros(m, np.int64), batch.n_positives).astype(np.int32)
        sets = WorkingSets(
            np.diff(batch.row_indptr),
            batch.row_indptr[:-1].copy(),
            first_entry,
            read_only(indptr),
            read_only(indices),
            read_only(data),
            read_only(weight),
            read_only(y_indptr),
            read_only(y_rows),
            np.where(is_tight, problem.relative_gap, FIRST_GAP),
            problem.max_iter,
        )
        return sets, feature_indptr, features

    def _lanes(
        self, batch: Batch, is_tight: np.ndarray, feature_indptr: np.ndarray, most: int
    ) -> Lanes:
        m, problem = len(batch), self.problem
        width = np.diff(feature_indptr) + 1

        def zeros(kind: type = float) -> np.ndarray:
            return np.zeros(m, kind)

        return Lanes(
            label=np.arange(m),
            plus=problem.plus[batch.label],
            minus=problem.minus[batch.label],
            points=self._room("points", int(2 * width.sum()), problem.dtype),
            first=2 * (feature_indptr[:-1] + np.arange(m)),
            width=width,
            current=np.ones(m, np.int64),
            purpose=np.full(m, NEWTON),
            objective=np.full(m, np.inf),
            norm2=zeros(),
            trial_norm2=zeros(),
            slope=zeros(),
            n_unseen=zeros(int),
            n_flat=zeros(int),
            active=np.empty((m, most), np.int32),
            n_active=zeros(int),
            step_length=zeros(),
            gradient_norm=np.full(m, np.inf),
            threshold=np.where(is_tight, batch.tolerance, np.inf),
            n_iter=np.maximum(batch.n_iter, 0) - 1,
            n_products=zeros(int),
            pruned_objective=zeros(),
        )

    def _hardly_moved(self, batch: Batch) -> np.ndarray:
        """Tell where no row outside the set can have a loss, as the last look had a margin."""
        before = batch.seen[batch.seen_indptr[1:] + np.arange(len(batch))].astype(np.float64)
        rise = batch.rise * self.longest_row + np.maximum(batch.intercept - before, 0.0)
        return batch.is_tight & (rise <= 0.999 * (self.kink - batch.kink))

    def _verify(self, batch: Batch) -> tuple[Batch, Batch, Batch]:
        """Look for rows that belong to the sets; return those that go on, are solved, or left."""
        slack = self.kink - batch.intercept
        is_rough = ~batch.is_precise & (slack < LEAST_SLACK)
        new_indptr, new = self._new_rows(batch, is_rough, slack)
        again = is_rough & (np.diff(new_indptr) == 0) & (slack > 0)
        if again.any():
            batch.is_precise = batch.is_precise | again
            some = batch.take(again)
            precise = self._new_rows(some, np.zeros(len(some), bool), slack[again])
            new_indptr, new = _merged(again, precise, (new_indptr, new))
            batch.kink[again] = some.kink
        n_old = np.diff(batch.row_indptr)
        n_wanted, levels = self._wanted(batch, slack)
        is_cut = keep_highest(
            self.X,
            batch.indptr,
            batch.features,
            batch.stand,
            self.problem.prune,
            levels,
            n_wanted,
            new_indptr,
            new,
            self.dense,
        )
        batch.kink[is_cut] = np.inf  # not all rows above any score are in the set
        new = new[: new_indptr[-1]]
        n_new = np.diff(new_indptr)
        batch = replace(
            batch,
            seen_indptr=batch.indptr,
            seen_features=batch.features,
            seen=batch.stand,
            n_passes=batch.n_passes + 1,
        )
        is_precise = (~is_rough | again) & ~is_cut
        is_solved = (n_new == 0) & is_precise & batch.is_tight & (slack > 0)
        n_rows = n_old + n_new
        activates_many = batch.is_tight & (slack <= 0) & (is_precise | (n_new == 0))
        is_large = n_rows > LARGEST_SET * self.problem.n_samples
        is_large |= n_rows * self.mean_length > self.most_entries
        is_left = activates_many | is_large | (batch.n_passes >= MAX_PASSES)
        is_left &= ~is_solved
        indptr = np.concatenate(([0], np.cumsum(n_rows)))
        rows = np.empty(indptr[-1], np.int32)
        rows[_ranges(indptr[:-1], n_old)] = batch.rows
        rows[_ranges(indptr[:-1] + n_old, n_new)] = new
        full = replace(batch, row_indptr=indptr, rows=rows)
        return full.take(~is_solved & ~is_left), full.take(is_solved), full.take(is_left)

    def _kinks(self, batch: Batch, is_rough: np.ndarray, slack: np.ndarray) -> np.ndarray:
        """Return the scores from which on rows are listed."""
        margin = np.where(is_rough, np.minimum(slack - LEAST_SLACK, 0.0), MARGIN * slack)
        margin = np.where(is_rough & ~batch.is_tight, np.minimum(margin, -FIRST_ABOVE), margin)
        return self.kink - margin

    def _wanted(self, batch: Batch, slack: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how many rows may join each set, and above which score all may."""
        is_near, n_old = slack < FIRST_SLACK, np.diff(batch.row_indptr)
        n_wanted = np.where(is_near, FIRST_TIMES, 1) * n_old
        is_first = np.isinf(batch.objective)  # nothing is solved yet
        n_wanted[is_first] = self._first_rows(batch.n_positives[is_first])
        n_wanted[batch.is_tight] = self.problem.n_samples
        return n_wanted, np.where(is_near, np.inf, self.kink + FIRST_ABOVE)

    def _high_levels(self, batch: Batch, slack: np.ndarray) -> np.ndarray:
        """Return scores that more rows are above than may join: the others need not be listed."""
        n_wanted, levels = self._wanted(batch, slack)
        sample = self.sample
        share = len(sample) / self.problem.n_samples
        high = np.empty(len(batch))
        find_high_levels(
            self.X,
            sample,
            batch.indptr,
            batch.features,
            batch.stand,
            self.problem.prune,
            (SAMPLE_TIMES * share * n_wanted).astype(np.int64) + SAMPLE_MORE,
            high,
            self.dense,
        )
        return np.minimum(high, levels)

    def _new_rows(
        self, batch: Batch, is_rough: np.ndarray, slack: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return for each label the rows above a score that are not in its set."""
        kinks = self._kinks(batch, is_rough, slack)
        batch.kink = np.maximum(kinks, self._high_levels(batch, slack))
        m = len(batch)
        indptr = np.empty(m + 1, np.int64)
        most = int(PASS_POSTINGS * len(self.by_feature[1]))
        self.found, is_left = list_rows_above(
            self.X,
            self.by_feature,
            self.longest_row,
            (batch.indptr, batch.features, batch.stand),
            self.problem.prune,
            batch.kink,
            REST,
            most,
            (batch.row_indptr, batch.rows),
            (self.dense, self.scores, self.met),
            indptr,
            self.found,
        )
        is_left &= kinks > batch.intercept
        if not is_left.any():
            return indptr, self.found[: indptr[-1]].copy()
        ends, parts = [0], []
        which = np.flatnonzero(is_left)
        for first in range(0, len(which), self.lanes_per_screen):
            lanes = which[first : first + self.lanes_per_screen]
            counts = self.screen.list_above(
                lanes, batch.indptr, batch.features, batch.stand, batch.kink, self.check
            )
            some = np.zeros(m, bool)
            some[lanes] = True
            known, listed = batch.take(some), np.empty(len(lanes) + 1, np.int64)
            lists = self.screen.candidates
            list_new_rows(lists, counts, known.row_indptr, known.rows, self.seen, listed)
            lengths = np.diff(listed).tolist()
            parts += [lists[c, :length].copy() for c, length in enumerate(lengths)]
            ends += (ends[-1] + listed[1:]).tolist()
        screened = np.array(ends), np.concatenate(parts)
        return _merged(is_left, screened, (indptr, self.found[: indptr[-1]]))

    def _room(self, name: str, size: int, dtype: Any) -> np.ndarray:
        held = self.rooms.get(name)
        if held is None or len(held) < size:
            held = self.rooms[name] = np.empty(3 * size // 2, dtype)
        return held[:size]


def working_set_bytes(n: int, d: int, n_lanes: int, itemsize: int) -> int:
    """Return about how many bytes a solver takes besides X, also by feature, and the weights."""
    if n < FEWEST_ROWS:
        return 0
    # Copied rows with their features, two points, and these again as they stand and stood.
    entry = (4 + itemsize) + 4 + 2 * itemsize + 2 * (4 + itemsize)
    return n_lanes * ENTRIES_PER_LANE * entry + n * (4 + 4 + 1) + d * (8 + itemsize)


def labels_that_pay(problem: OneVsAllProblem, screen: Screen, labels: np.ndarray) -> np.ndarray:
    """Tell for which labels working sets pay; they only work where this says so.

    There must be a loss that ends at a kink, and an intercept below it, so that most rows have
    none; a feature must not be able to lower what another one adds, so that nothing is overlooked;
    there must be rows enough, and they must be of a length that float32 can hold.

    Parameters
    ----------
    problem : OneVsAllProblem
    screen : Screen
        Of its instances.
    labels : ndarray of int64 of shape (m,)

    Returns
    -------
    ndarray of bool of shape (m,)
    """
    n, n_positives = problem.n_samples, np.diff(problem.y_indptr)[labels]
    none = np.zeros(len(labels), bool)
    if not (problem.intercept and isinstance(screen, CsrScreen)):
        return none
    pays = has_rows_enough(n, len(problem.instances.arrays[-1]), n_positives)
    pays &= (n_positives > 0) & (2 * n_positives < n)
    if not pays.any():
        return none
    postings = problem.postings
    return pays if postings is not None and _SMALL < postings[1] < _LARGE else none


def has_rows_enough(n: int, n_nonzeros: int, n_positives: np.ndarray) -> np.ndarray:
    """Tell for which labels so many rows, with so many non-zeros, are enough for a working set."""
    fewest = FEWEST_ROWS * max(1.0, n_nonzeros / max(n, 1) / LONG_ROW)
    return fewest * _growth(np.maximum(n_positives, 1)) <= n


def sample_of(n: int, size: int) -> np.ndarray:
    """Return rows of a sample, at even distances; all if they are not more."""
    size = min(n, size)
    return read_only((np.arange(size) * n // max(size, 1)).astype(np.int32))


def gradient_at_zero(
    problem: OneVsAllProblem, sums: InstanceSums, labels: np.ndarray, positives: PositiveSums
) -> np.ndarray:
    """Return the norm of each label's gradient at zero; 0 where too many digits cancel."""
    constant, minus = problem.intercept, problem.minus[labels]
    both = problem.plus[labels] + minus
    squares = positives.squares + constant * positives.weight**2
    with_total = (positives.with_mean + constant * positives.weight) * sums.weight
    first, last = both**2 * squares, minus**2 * float(np.dot(sums.total, sums.total))
    difference = first - 2.0 * both * minus * with_total + last
    difference[~(difference > _CANCELLED * (first + last))] = 0.0
    return -float(problem.loss.slope(0.0)) * np.sqrt(difference)


def _growth(n_positives: np.ndarray) -> np.ndarray:
    """Return how many times the rows of a label with one positive the first set of others has."""
    return 1.0 + np.log2(n_positives)


def weights_of(batch: Batch, prune: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the pruned weights of a batch as CSR arrays, features in no order."""
    indptr = np.empty(len(batch) + 1, np.int64)
    features = np.empty_like(batch.features)
    values = np.empty(len(features), batch.stand.dtype)
    list_pruned(batch.indptr, batch.features, batch.stand, prune, indptr, features, values)
    # Copies: most weights are pruned, and what is kept must not hold on to the room of all.
    return indptr, features[: indptr[-1]].copy(), values[: indptr[-1]].copy()


def _some(batch: Batch, which: np.ndarray, is_solved: bool) -> Iterator[tuple[Batch, bool]]:
    """Yield some labels of a batch, if any, with an answer."""
    if which.any():
        yield batch.take(which), is_solved


def _ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return ``starts[k], starts[k] + 1, ...``, so many of each, one behind the other."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(total)


def _merged(
    which: np.ndarray, own: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return lists of rows: for some labels from `own`, which has these alone, else from `other`.

    Both are an indptr and rows; those of `other` are empty for these labels.
    """
    lengths = np.diff(other[0])
    lengths[which] = np.diff(own[0])
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    rows = np.empty(indptr[-1], np.int32)
    rows[_ranges(indptr[:-1][which], lengths[which])] = own[1]
    rows[_ranges(indptr[:-1][~which], lengths[~which])] = other[1]
    return indptr, rows


def _joined(parts: list[Batch]) -> Batch:
    """Return several batches as one."""
    values: dict[str, Any] = {}
    for field in fields(Batch):
        arrays = [getattr(part, field.name) for part in parts]
        if field.name in _POOLS:
            lengths = np.concatenate([np.diff(array) for array in arrays])
            values[field.name] = np.concatenate(([0], np.cumsum(lengths)))
        else:
            values[field.name] = np.concatenate(arrays)
    return Batch(**values)
