"""Solves labels on working sets: the few rows that may have a loss at the solution.

A row without a loss at the solution does not affect it, so the solution over the rows with one is
that over all rows. They are found step by step:

1. The first working set of a label are its positives and the rows most similar to them.
2. The label is solved there, roughly at first; no vector is longer than the number of features of
   these rows.
3. A look at all rows finds those outside the set with a loss at this solution. The minimum over the
   set is a lower bound on that over all rows, so what these rows lose is all that they add to the
   distance from the minimum. If the certificate holds, the label is solved. Otherwise they join the
   set, and rows far from a loss leave it.

A look is a screen of all rows, for 64 labels at a time. Labels on which most rows have a loss, for
instance because a positive has no features, are left to ``newton_cg``, and so are those that it
solves faster: see ``labels_that_pay``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from sklearn_xc._input.data import entry_places, read_only
from sklearn_xc.one_vs_all.kernels.block_newton import Scratch
from sklearn_xc.one_vs_all.kernels.lanes import Lanes
from sklearn_xc.one_vs_all.kernels.row_search import (
    LARGEST,
    SMALLEST,
    find_high_levels,
    keep_highest,
    list_new_rows,
    list_similar_rows,
    losses_of_rows_kernel,
)
from sklearn_xc.one_vs_all.kernels.working_set import (
    copy_rows_of_lanes,
    describe_positives,
    keep_near_rows,
    list_points,
    mix_points,
    move_points,
    take_lists,
)
from sklearn_xc.one_vs_all.problem import (
    InstanceSums,
    OneVsAllProblem,
    PositiveSums,
    sample_of,
)
from sklearn_xc.one_vs_all.solver.screening import CsrScreen, Screen

#: Labels solved together, and non-zeros copied at a time, per lane of a block.
LABELS_PER_LANE = 4
ENTRIES_PER_LANE = 2**15
#: Similar rows in the first working set of a label with one positive; more grow with the logarithm
#: of their number. Similar rows are searched for in this share of the non-zeros.
FIRST_ROWS = 350
FIRST_POSTINGS = 0.01
#: They pay where what they save, by rows and by features, is more than what they cost: fitted to
#: the CPU time with and without sets of labels with 1 to 255 positives, on eight sets of data.
ROWS, FEATURES = 50_000, 1_250
#: Certificate of the first solution.
FIRST_GAP = 0.1
#: Least distance of the start's intercept below the kink for a label that starts at a given point.
SLACK = 0.01
#: Rows join a set if they are above the intercept by LEAST, and after a rough solution above the
#: kink by ABOVE. If the intercept is nearer to the kink than FIRST_SLACK, the set had too few rows
#: to hold it down: as many join as are highest, and the set grows by this factor.
LEAST, ABOVE = 0.0015, 0.15
FIRST_SLACK, FIRST_TIMES = 0.2, 3
#: Size of the sample that bounds the scores of the rows that may join: rows need not be listed if
#: this factor times the wanted share of the sample, plus SAMPLE_MORE, is above them.
SAMPLE_ROWS, SAMPLE_TIMES, SAMPLE_MORE = 512, 2.0, 6
#: Rows below the kink by this share of the intercept's distance from it leave the set.
FAR = 0.1
#: Largest set, as a share of the rows, and most looks, before a label is left to ``newton_cg``.
LARGEST_SET, MAX_LOOKS = 0.25, 12
#: A difference of squared norms below this share of its terms has lost too many digits.
_CANCELLED = 1e-6
_MAX_LANES = 64
#: Lists of a batch by their pointers, and 1 if they hold an intercept in addition.
_POOLS = {"row_indptr": [("rows", 0)], "indptr": [("features", 0), ("weights", 1)]}


@dataclass
class Batch:
    """State of some labels: arrays with one number each, and lists, one after the other.

    Points have their intercept last: that of label c begins at ``indptr[c] + c``.

    Attributes
    ----------
    place, label, n_positives : ndarray of int64
        Position among the labels to be solved, label, and number of positives.
    tolerance, of_positives, of_shared : ndarray of float64
        Gradient tolerance, and start as multiples of two vectors.
    row_indptr, rows : ndarray of int64 and int32
        Working sets: positives, -1 for the instance without features, and others.
    indptr, features, weights : ndarray of int64, int32 and float
        Current points.
    is_tight, is_precise : ndarray of bool
        Whether the label was solved to its tolerance; whether a look found no more rows above the
        intercept by LEAST, so that the next one lists all rows with a loss.
    n_looks, n_iter, n_products : ndarray of int64
    objective, gradient_norm, threshold : ndarray of float64
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
    weights: np.ndarray
    is_tight: np.ndarray
    is_precise: np.ndarray
    n_looks: np.ndarray
    n_iter: np.ndarray
    n_products: np.ndarray
    objective: np.ndarray
    gradient_norm: np.ndarray
    threshold: np.ndarray

    def __len__(self) -> int:
        return len(self.place)

    @property
    def lists(self) -> tuple[np.ndarray, np.ndarray]:
        """Working sets, as kernels read them."""
        return self.row_indptr, self.rows

    @property
    def points(self) -> tuple[np.ndarray, ...]:
        """Current points, as kernels read them."""
        return self.indptr, self.features, self.weights

    @property
    def intercept(self) -> np.ndarray:
        """Current intercepts, float64."""
        return self.weights[self.indptr[1:] + np.arange(len(self))].astype(np.float64)

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


@dataclass
class WorkingSetSolver:
    """Solves labels of a problem with non-negative sparse instances, an intercept, and a kink.

    Parameters
    ----------
    problem : OneVsAllProblem
    screen : CsrScreen
    negatives_weight : float
        Weight of the instance without features in each working set. It represents the many that are
        outside, so that the intercept stays below the kink. A label at whose solution this instance
        has a loss is left.
    advance : callable
        Of ``block_newton_kernel``.
    cg : tuple
    scratch : Scratch
    n_lanes : int
        Determines the memory.
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
        self.lanes_per_screen = min(n_lanes, _MAX_LANES)
        self.most_entries = ENTRIES_PER_LANE * n_lanes
        self.X = problem.instances.arrays
        self.Y = problem.y_indptr, problem.y_rows
        self.lengths = np.diff(self.X[0])
        self.n_nonzeros = len(self.X[-1])
        self.kink = -float(problem.loss.active_below)
        self.losses_of_rows = losses_of_rows_kernel(problem.loss)
        self.sample = sample_of(n, SAMPLE_ROWS)
        assert problem.postings is not None
        self.by_feature, _ = problem.postings
        self.dense, self.dense2 = np.zeros(d + 1, problem.dtype), np.zeros(d + 1)
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
            batch = self._empty_batch(some, labels[some], tolerance[some])
            if points is None:
                mixed = replace(batch, of_positives=of_positives[some], of_shared=of_shared[some])
                batch = self._begin(mixed, shared)
            else:
                batch, left = self._begin_at(points[some], batch)
                yield from _some(left, np.ones(len(left), bool), False)
            while len(batch):
                self.check()
                batch = self._improve(batch, shared)
                is_finite = np.isfinite(batch.objective)
                yield from _some(batch, ~is_finite, False)
                batch, solved, left = self._look(batch.take(is_finite))
                yield from _some(solved, np.ones(len(solved), bool), True)
                yield from _some(left, np.ones(len(left), bool), False)

    def _describe(self, labels: np.ndarray, mean: np.ndarray) -> PositiveSums:
        """Return the properties of the sums of the positives."""
        out = np.empty((3, len(labels)))
        touched, weight = self.scratch.touched, self.problem.weight
        describe_positives(
            self.X, weight, self.Y, labels, read_only(mean), self.dense2, touched, out
        )
        return PositiveSums(*out)

    def _begin(self, batch: Batch, shared: np.ndarray) -> Batch:
        """Return labels with their first working sets."""
        row_indptr = np.empty(len(batch) + 1, np.int64)
        self.found = list_similar_rows(
            self.X,
            self.problem.weight,
            self.by_feature,
            self.Y,
            batch.label,
            (batch.of_positives, batch.of_shared, shared),
            self._first_rows(batch.n_positives),
            int(FIRST_POSTINGS * self.n_nonzeros),
            (self.dense2, self.scratch.touched, self.scores, self.met),
            row_indptr,
            self.found,
        )
        return replace(batch, row_indptr=row_indptr, rows=self.found[: row_indptr[-1]].copy())

    def _begin_at(self, points: Any, batch: Batch) -> tuple[Batch, Batch]:
        """Return labels that start at points, (m, d + 1), with the rows that have a loss there.

        The second batch are those for which working sets do not pay.
        """
        problem = self.problem
        m = len(batch)
        n_positives = batch.n_positives
        weights = points[:, :-1].tocsr()
        intercept = points[:, [-1]].toarray()[:, 0]
        indptr = weights.indptr.astype(np.int64)
        lengths = np.diff(weights.indptr)
        start = np.empty(indptr[-1] + m, problem.dtype)
        start[entry_places(indptr[:-1] + np.arange(m), lengths)[0]] = weights.data
        start[indptr[1:] + np.arange(m)] = np.minimum(intercept, self.kink - SLACK)
        row_indptr = np.concatenate(([0], np.cumsum(n_positives + 1)))
        rows = np.full(row_indptr[-1], -1, np.int32)
        positives = problem.y_rows[entry_places(problem.y_indptr[batch.label], n_positives)[0]]
        rows[entry_places(row_indptr[:-1], n_positives)[0]] = positives
        batch = replace(
            batch,
            row_indptr=row_indptr,
            rows=rows,
            indptr=indptr,
            features=weights.indices.astype(np.int32),
            weights=start,
            n_iter=np.zeros(m, np.int64),
        )
        batch, _, left = self._look(batch)
        return batch, left

    def _empty_batch(self, place: np.ndarray, labels: np.ndarray, tolerance: np.ndarray) -> Batch:
        """Return labels without working sets and points."""
        m = len(labels)
        values: dict[str, Any] = {field.name: np.zeros(m) for field in fields(Batch)}
        for pool, lists in _POOLS.items():
            values[pool] = np.zeros(m + 1, np.int64)
            for name, shift in lists:
                dtype = self.problem.dtype if shift else np.int32
                values[name] = np.zeros(shift * m, dtype)
        values |= {name: np.full(m, np.inf) for name in ("objective", "gradient_norm")}
        values |= {name: np.zeros(m, np.int64) for name in ("n_looks", "n_products")}
        values |= {name: np.zeros(m, bool) for name in ("is_tight", "is_precise")}
        values |= {"n_iter": np.full(m, -1)}
        n_positives = np.diff(self.problem.y_indptr)[labels]
        values |= {"place": place, "label": labels, "n_positives": n_positives}
        return Batch(**values | {"tolerance": tolerance})

    def _first_rows(self, n_positives: np.ndarray) -> np.ndarray:
        """Return about how many rows the first working sets have, int64."""
        return (FIRST_ROWS * _growth(n_positives)).astype(np.int64)

    def _improve(self, batch: Batch, shared: np.ndarray) -> Batch:
        """Solve labels on their working sets, as many at a time as there is room for."""
        lengths = np.where(batch.rows < 0, 0, self.lengths[batch.rows])
        sizes = np.add.reduceat(lengths, batch.row_indptr[:-1])
        chunk = np.cumsum(sizes) // self.most_entries
        parts = [self._improve_some(batch.take(chunk == c), shared) for c in np.unique(chunk)]
        return parts[0] if len(parts) == 1 else _joined(parts)

    def _improve_some(self, batch: Batch, shared: np.ndarray) -> Batch:
        problem = self.problem
        m = len(batch)
        has_point = bool(batch.n_iter[0] >= 0)
        is_tight = np.full(m, has_point)
        X, weight, first_entry, lists = self._copy(batch)
        feature_indptr, features = lists
        lanes = self._lanes(batch, is_tight, first_entry, feature_indptr)
        state, points = lanes.state, lanes.points
        if has_point:
            move_points(batch.points, lists, self.dense, points, state)
        else:
            mixtures = batch.of_positives, batch.of_shared, shared
            mix_points(X, weight, state, lists, mixtures, self.dense2, points)
        y_rows = entry_places(np.zeros(m, np.int64), batch.n_positives)[0].astype(np.int32)
        all_rows = np.zeros((1, 0), np.int32), np.full(m, -1)
        no_mean = read_only(np.zeros(0, problem.dtype))
        self.advance(
            X,
            weight,
            read_only(y_rows),
            state,
            points,
            np.arange(m),
            *all_rows,
            no_mean,
            self.cg,
            self.scratch,
        )
        n_products = batch.n_products + lanes.n_products
        weights = np.empty(int(feature_indptr[-1]) + m, problem.dtype)
        list_points(state, points, feature_indptr, weights)
        intercept = weights[feature_indptr[1:] + np.arange(m)].astype(np.float64)
        kinks = self.kink - FAR * np.maximum(self.kink - intercept, 0.0)
        kept = np.empty(len(batch.rows), np.bool_)
        keep_near_rows(X, state, points, kinks, kept)
        return replace(
            batch,
            row_indptr=np.concatenate(([0], np.cumsum(kept)))[batch.row_indptr],
            rows=batch.rows[kept],
            indptr=feature_indptr,
            features=features.copy(),
            weights=weights,
            is_tight=is_tight,
            n_iter=lanes.n_iter,
            n_products=n_products,
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
        m = len(batch)
        dtype = self.problem.dtype
        total = int(self.lengths[batch.rows[batch.rows >= 0]].sum())
        out = (
            self._room("indptr", len(batch.rows) + m, np.int64),
            self._room("indices", total, np.int32),
            self._room("data", total, dtype),
            self._room("weight", len(batch.rows), dtype),
            np.empty(m, np.int64),
        )
        feature_indptr = np.empty(m + 1, np.int64)
        features = self._room("features", total + 1, np.int32)
        copy_rows_of_lanes(
            self.X,
            self.problem.weight,
            self.negatives_weight,
            batch.lists,
            self.scratch.position,
            out,
            feature_indptr,
            features,
        )
        indptr, indices, data, weight = map(read_only, out[:-1])
        lists = feature_indptr, features[: feature_indptr[-1]]
        return (indptr, indices, data), weight, out[-1], lists

    def _lanes(
        self,
        batch: Batch,
        is_tight: np.ndarray,
        first_entry: np.ndarray,
        feature_indptr: np.ndarray,
    ) -> Lanes:
        m = len(batch)
        problem = self.problem
        width = np.diff(feature_indptr) + 1
        return Lanes(
            self._room("points", int(2 * width.sum()), problem.dtype),
            np.arange(m),
            plus=problem.plus[batch.label],
            minus=problem.minus[batch.label],
            intercept=problem.intercept,
            gap=np.where(is_tight, problem.relative_gap, FIRST_GAP),
            first=2 * (feature_indptr[:-1] + np.arange(m)),
            width=width,
            current=1,
            objective=np.inf,
            gradient_norm=np.inf,
            threshold=np.where(is_tight, batch.tolerance, np.inf),
            n_iter=np.maximum(batch.n_iter, 0) - 1,
            max_iter=problem.max_iter,
            n_rows=np.diff(batch.row_indptr),
            first_row=batch.row_indptr[:-1],
            first_pointer=batch.row_indptr[:-1] + np.arange(m),
            first_entry=first_entry,
            n_positives=batch.n_positives,
            first_positive=np.cumsum(batch.n_positives) - batch.n_positives,
        )

    def _look(self, batch: Batch) -> tuple[Batch, Batch, Batch]:
        """Look at all rows; return labels whose sets have grown, solved, and to be left."""
        slack = self.kink - batch.intercept
        new_indptr, new = self._rows_outside(batch, slack)
        batch, is_solved = self._judge(batch, slack, new_indptr, new)
        n_old = np.diff(batch.row_indptr)
        most, levels = self._most_new(batch, slack)
        is_cut = keep_highest(self.X, batch.points, levels, most, new_indptr, new, self.dense)
        new = new[: new_indptr[-1]]
        n_new = np.diff(new_indptr)
        n_rows = n_old + n_new
        indptr = np.concatenate(([0], np.cumsum(n_rows)))
        rows = np.empty(indptr[-1], np.int32)
        rows[entry_places(indptr[:-1], n_old)[0]] = batch.rows
        rows[entry_places(indptr[:-1] + n_old, n_new)[0]] = new
        batch = replace(
            batch,
            row_indptr=indptr,
            rows=rows,
            n_looks=batch.n_looks + 1,
            is_precise=(batch.is_precise | (batch.is_tight & (n_new == 0))) & ~is_cut,
        )
        n = self.problem.n_samples
        is_large = (n_rows > LARGEST_SET * n) | (n_rows * self.n_nonzeros / n > self.most_entries)
        is_left = (batch.is_tight & (slack <= 0) & (n_new == 0)) | is_large
        is_left |= batch.n_looks >= MAX_LOOKS
        is_left &= ~is_solved
        return batch.take(~is_solved & ~is_left), batch.take(is_solved), batch.take(is_left)

    def _judge(
        self, batch: Batch, slack: np.ndarray, new_indptr: np.ndarray, new: np.ndarray
    ) -> tuple[Batch, np.ndarray]:
        """Add the losses of rows outside to the objective; tell which labels are solved."""
        outside = np.zeros(len(batch))
        self.losses_of_rows(
            self.X,
            self.problem.weight,
            self.problem.minus[batch.label],
            batch.points,
            (new_indptr, new),
            self.dense,
            outside,
        )
        bound = 0.5 * batch.gradient_norm**2 + outside
        gap = self.problem.relative_gap
        is_certified = bound <= (gap if gap < np.inf else 0.0) * (batch.objective + outside)
        is_seen = batch.is_precise | (slack >= LEAST)
        is_solved = batch.is_tight & (slack > 0) & is_seen & (is_certified | (outside == 0))
        # A gradient of this norm has the same bound.
        norm = np.where(is_solved & (outside > 0), np.sqrt(2.0 * bound), batch.gradient_norm)
        batch = replace(
            batch,
            objective=batch.objective + np.where(is_solved, outside, 0.0),
            gradient_norm=norm,
            threshold=np.where(is_solved & is_certified, np.inf, batch.threshold),
        )
        return batch, is_solved

    def _most_new(self, batch: Batch, slack: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how many rows may join each set, and the score above which all may.

        After a rough solution a set at most doubles, or grows by FIRST_TIMES its size.
        """
        most = np.where(slack < FIRST_SLACK, FIRST_TIMES, 1) * np.diff(batch.row_indptr)
        is_first = batch.n_iter <= 0  # nothing is solved yet
        most[is_first] = self._first_rows(batch.n_positives[is_first])
        most[batch.is_tight] = self.problem.n_samples
        return most, np.where(slack < FIRST_SLACK, np.inf, self.kink + ABOVE)

    def _high_levels(self, batch: Batch, slack: np.ndarray) -> np.ndarray:
        """Return scores that more rows exceed than may join, so that others need not be listed."""
        most, levels = self._most_new(batch, slack)
        share = len(self.sample) / self.problem.n_samples
        wanted = (SAMPLE_TIMES * share * most).astype(np.int64) + SAMPLE_MORE
        high = np.empty(len(batch))
        find_high_levels(self.X, self.sample, batch.points, wanted, high, self.dense)
        return np.minimum(high, levels)

    def _rows_outside(self, batch: Batch, slack: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return for each label the rows outside its set that may have a loss.

        If the intercept is near the kink or above it, nearly all may: those above the intercept are
        returned, until there are none.
        """
        is_near = (slack < LEAST) & ~batch.is_precise
        least = np.maximum(
            batch.intercept + LEAST, self.kink + np.where(batch.is_tight, 0.0, ABOVE)
        )
        kinks = np.where(is_near, least, self.kink)
        kinks = np.maximum(kinks, self._high_levels(batch, slack))
        which = np.flatnonzero(kinks > batch.intercept)
        lengths = np.zeros(len(batch), np.int64)
        parts = [np.zeros(0, np.int32)]
        for first in range(0, len(which), self.lanes_per_screen):
            lanes = which[first : first + self.lanes_per_screen]
            counts = self.screen.list_above(lanes, batch.points, kinks, self.check)
            some = np.zeros(len(batch), bool)
            some[lanes] = True
            known = batch.take(some)
            listed = np.empty(len(lanes) + 1, np.int64)
            lists = self.screen.candidates
            list_new_rows(lists, counts, known.lists, self.is_known, listed)
            lengths[lanes] = np.diff(listed)
            parts += [lists[c, : lengths[k]].copy() for c, k in enumerate(lanes.tolist())]
        return np.concatenate(([0], np.cumsum(lengths))), np.concatenate(parts)

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
    return n_lanes * ENTRIES_PER_LANE * entry + n * (8 + 4 + 4 + 1) + d * (8 + itemsize)


def labels_that_pay(problem: OneVsAllProblem, screen: Screen, labels: np.ndarray) -> np.ndarray:
    """Tell for which labels working sets pay, bool (m,).

    Working sets need a loss that ends at a kink and an intercept below it, so that most rows have
    no loss; features that are not negative, so that scores have bounds; and rows whose norms
    float32 can hold. They save looks, which cost time in proportion to the non-zeros and to the
    number of features, and cost time in proportion to the non-zeros of the first set.
    """
    n, d = problem.instances.shape
    n_positives = np.diff(problem.y_indptr)[labels]
    none = np.zeros(len(labels), bool)
    if not (problem.intercept and isinstance(screen, CsrScreen)):
        return none
    length = max(len(problem.instances.arrays[-1]), 1) / max(n, 1)
    pays = n / ROWS + d / FEATURES / length >= _growth(np.maximum(n_positives, 1))
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


def _growth(n_positives: np.ndarray) -> np.ndarray:
    """Return the size of first sets relative to that of a label with one positive."""
    return 1.0 + np.log2(n_positives)


def weights_of(
    batch: Batch, prune: float
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """Return the pruned weights of a batch as CSR arrays, and the share of the squares removed."""
    values = np.delete(batch.weights, batch.indptr[1:] + np.arange(len(batch)))
    is_kept = (values != 0) & (np.abs(values) >= np.float64(prune))
    indptr = np.concatenate(([0], np.cumsum(is_kept)))[batch.indptr]
    squares = np.concatenate(([0.0], np.cumsum(np.square(values, dtype=np.float64))))
    removed = np.concatenate(([0.0], np.cumsum(np.where(is_kept, 0.0, np.diff(squares)))))
    total = np.diff(squares[batch.indptr])
    share = np.divide(
        np.diff(removed[batch.indptr]), total, out=np.zeros(len(batch)), where=total > 0
    )
    return (indptr, batch.features[is_kept], values[is_kept]), share


def _some(batch: Batch, which: np.ndarray, is_solved: bool) -> Iterator[tuple[Batch, bool]]:
    """Yield the chosen labels of a batch, if any, with `is_solved`."""
    if which.any():
        yield batch.take(which), is_solved


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
