"""``advance`` against the algorithm in dense arrays, and the small kernels beside it."""

import dataclasses

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sklearn_xc._compile.jit import kernel
from sklearn_xc._input.data import read_only
from sklearn_xc.one_vs_all.kernels.block_newton import (
    block_newton_kernel,
    list_weights,
    measure_start,
)
from sklearn_xc.one_vs_all.kernels.lanes import LANE, Lanes
from sklearn_xc.one_vs_all.kernels.newton_direction import APPROACH, LEAST_SHARE
from sklearn_xc.one_vs_all.kernels.newton_step import (
    MAX_HALVINGS,
    SUFFICIENT_DECREASE,
    list_rows,
)
from sklearn_xc.one_vs_all.solver.newton_cg import _lanes, _make_scratch

#: Label of each lane: 7 is on every instance, 4 on none.
LABELS = np.array([2, 0, 7, 4])
#: Conjugate gradients to the end: the direction is that of the Newton system.
EXACT = (0.0, 0.01, 400)

merge = kernel(list_rows)
row_lists = st.lists(st.integers(0, 30), unique=True).map(sorted)


def as_rows(values):
    return np.array(values, np.int32)


class Block:
    """Lanes of a problem; lane k has label ``labels[k]``, and no objective yet."""

    def __init__(self, problem, objective_of, labels=LABELS, room=None, cg=EXACT):
        n, m = problem.n_samples, len(labels)
        self.problem, self.cg = problem, cg
        self.objectives = [objective_of(problem, label) for label in labels]
        self.kink = problem.loss.active_below
        self.advance_lanes = block_newton_kernel(problem.loss, problem.rows_of)
        self.X, self.weight = problem.instances.arrays, problem.weight
        self.y_rows = problem.y_rows
        weight = problem.weight.astype(float)
        mean = weight @ self.objectives[0].rows / weight.sum()
        has_kink = np.isfinite(self.kink)
        self.mean = read_only(mean.astype(problem.dtype) if has_kink else np.zeros(0))
        self.lanes = _lanes(problem, m)
        self.lanes.label[:] = labels
        self.lanes.first_positive[:] = problem.y_indptr[labels]
        self.lanes.n_positives[:] = np.diff(problem.y_indptr)[labels]
        self.lanes.plus[:], self.lanes.minus[:] = problem.plus[labels], problem.minus[labels]
        self.lanes.objective[:] = np.inf
        self.scratch = _make_scratch(problem, False)
        if room is not None:
            indices, data = np.empty(max(room, 0), np.int32), np.empty(max(room, 0), problem.dtype)
            copy = np.empty(n + 1, np.int64), indices, data
            self.scratch = self.scratch._replace(local=copy, room=room)

    def point(self, k):
        return self.lanes.iterate(k)

    def trial(self, k):
        return self.lanes.trial(k)

    def set_trial(self, k, point, slope=None):
        """Give a lane a trial point; the slope defaults to that of the objective."""
        lanes, trial = self.lanes, self.trial(k)
        trial[:] = point
        lanes.trial_norm2[k] = measure_start(trial)
        if np.isfinite(lanes.objective[k]):
            w = self.point(k).astype(float)
            gradient = self.objectives[k].gradient(w)
            lanes.slope[k] = gradient @ (trial - w) if slope is None else slope

    def candidates(self, k):
        """List the rows that a screen would: those above the kink, and a few others; -1 for all."""
        if np.isinf(self.kink) or self.lanes.max_iter[k] > 0:
            return -1
        above = self.objectives[k].rows @ self.trial(k).astype(float) > -self.kink
        some = np.arange(len(above)) % 7 == 3
        return as_rows(np.flatnonzero(above | some))

    def advance(self, occupied=None):
        """Call the kernel with the lists of a screen."""
        occupied = np.arange(len(self.lanes.label)) if occupied is None else np.array(occupied)
        table = np.full((len(occupied), self.problem.n_samples), -1, np.int32)
        counts = np.full(len(occupied), -1)
        for c, k in enumerate(occupied):
            listed = self.candidates(k)
            if not np.isscalar(listed):
                table[c, : len(listed)], counts[c] = listed, len(listed)
        self.advance_lanes(
            *(self.X, self.weight, self.y_rows, self.lanes.state, self.lanes.points),
            *(occupied, table, counts, self.mean, self.cg, self.scratch),
        )

    def start(self, points):
        """Set the start points of the lanes."""
        for k, point in enumerate(points):
            self.set_trial(k, point)
        self.advance()

    def copy_of_lanes(self):
        given = {name: self.lanes.state[name].copy() for name in LANE.names}
        return Lanes(self.lanes.points.copy(), **given)

    def active_rows(self, k, point):
        objective = self.objectives[k]
        margins = objective.signs * (objective.rows @ point)
        return np.flatnonzero(margins < self.kink)

    def share_of_the_step(self, k, step):
        """Return how much of a Newton step may be tried, as the mean of the rows tells."""
        if not len(self.mean):
            return 1.0
        to_kink = -self.kink - self.mean @ self.point(k).astype(float)
        rise = self.mean @ step
        return max(APPROACH * to_kink / rise, LEAST_SHARE) if 0 < APPROACH * to_kink < rise else 1.0

    def is_accepted(self, k):
        """Return whether the objective falls enough at the trial point."""
        lanes = self.lanes
        value = self.objectives[k].value(self.trial(k).astype(float))
        return value <= lanes.objective[k] + SUFFICIENT_DECREASE * lanes.slope[k]


def assert_lane_is_right(block, k):
    """Compare a lane's state and its next step with the dense formulas."""
    lanes, objective = block.lanes, block.objectives[k]
    w, v = block.point(k).astype(float), block.trial(k).astype(float)
    gradient, hessian = objective.gradient(w), objective.hessian(w)
    assert lanes.objective[k] == pytest.approx(objective.value(w), rel=1e-12)
    assert lanes.gradient_norm[k] == pytest.approx(np.linalg.norm(gradient), rel=1e-9, abs=1e-12)
    assert lanes.n_active[k] == len(block.active_rows(k, w))
    assert lanes.norm2[k] == pytest.approx(w[:-1] @ w[:-1], rel=1e-12)
    assert lanes.n_halved[k] == 0
    if lanes.gradient_norm[k] == 0:
        assert lanes.n_products[k] == 0
        return
    step = -np.linalg.lstsq(hessian, gradient)[0]
    tolerance = 20 * float(np.finfo(block.problem.dtype).eps) ** 0.5
    step *= block.share_of_the_step(k, step)
    atol = tolerance * max(1.0, 0.1 * np.abs(step).max())
    np.testing.assert_allclose(v - w, step, rtol=tolerance, atol=atol)
    assert lanes.slope[k] == pytest.approx(gradient @ step, rel=tolerance, abs=tolerance)
    assert lanes.trial_norm2[k] == pytest.approx(v[:-1] @ v[:-1], rel=1e-12)
    assert lanes.n_products[k] >= 1


def assert_scratch_is_as_it_was(block):
    assert (block.scratch.position == -1).all()
    np.testing.assert_array_equal(block.scratch.every_row, np.arange(block.problem.n_samples))


each_variant = pytest.mark.parametrize(
    ("loss", "dtype", "kind"),
    [
        ("squared_hinge", np.float32, "copied"),
        ("squared_hinge", np.float64, "in place"),
        ("squared_hinge", np.float64, "dense"),
        ("huber_hinge", np.float64, "copied"),
        ("logistic", np.float64, "dense"),
    ],
)


@pytest.fixture
def make_block(xy, make_problem, objective_of):
    """Return a function that makes lanes on the shared data, with weights everywhere."""

    def make(loss="squared_hinge", dtype=np.float64, kind="copied", labels=LABELS, **parameters):
        rng = np.random.default_rng(0)
        parameters = {
            "weight": 0.5 + rng.random(120),
            "plus": 0.5 + rng.random(15),
            "minus": 0.5 + rng.random(15),
            **parameters,
        }
        problem = make_problem(*xy, loss=loss, dtype=dtype, dense=kind == "dense", **parameters)
        room = {"copied": xy[0].nnz, "in place": -1, "dense": None}[kind]
        return Block(problem, objective_of, labels, room)

    return make


def random_points(block, scale=0.3):
    """Return start points, one near each of: many, some, few and hardly any active rows."""
    rng = np.random.default_rng(1)
    points = scale * rng.normal(size=(len(LABELS), block.problem.n_features + 1))
    points[:, -1] -= np.array([0, 0.5, 1, 2])
    points[:, -1] *= block.problem.intercept
    return points


@each_variant
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_newton_steps_are_those_of_the_dense_algorithm(
    make_block, loss, dtype, kind, fit_intercept
):
    """From a start, some steps: where each lane goes, what it finds there and where next."""
    block = make_block(loss, dtype, kind, fit_intercept=fit_intercept)
    starts = random_points(block).astype(dtype)
    block.start(starts)
    for k, start in enumerate(starts):
        np.testing.assert_array_equal(block.point(k), start)
        assert_lane_is_right(block, k)
    assert (block.lanes.step_length == 1).all()
    first = block.lanes.gradient_norm.copy()
    for _ in range(4):
        # Near the minimum rounding decides.
        active = np.flatnonzero(block.lanes.gradient_norm > 1e-3 * first)
        before = block.copy_of_lanes()
        is_accepted = {k: block.is_accepted(k) for k in active}
        block.advance(active)
        for k in active:
            if is_accepted[k]:
                assert block.lanes.step_length[k] == 0.5 ** before.n_halved[k]
                np.testing.assert_array_equal(block.point(k), before.trial(k))
                assert_lane_is_right(block, k)
            else:
                assert block.lanes.step_length[k] == -1
    assert_scratch_is_as_it_was(block)


@each_variant
@pytest.mark.parametrize(("factor", "promise"), [(1.5, 40), (30, 1), (-1, -1)])
def test_a_step_too_long_is_halved_until_it_decreases_enough(
    make_block, loss, dtype, kind, factor, promise
):
    """Newton steps too long, slopes that promise too much, and steps that go up."""
    block = make_block(loss, dtype, kind)
    block.start(random_points(block))
    for k in range(len(LABELS)):
        w = block.point(k).astype(float)
        block.set_trial(k, w + factor * (block.trial(k) - w))
        block.lanes.slope[k] *= promise
    lanes, n_halved = block.lanes, np.zeros(len(LABELS), int)
    left = list(range(len(LABELS)))
    while left:
        k, before, is_accepted = left[0], block.copy_of_lanes(), block.is_accepted(left[0])
        block.advance([k])
        if is_accepted:
            assert lanes.step_length[k] == 0.5 ** n_halved[k]
            np.testing.assert_array_equal(block.point(k), before.trial(k))
            assert_lane_is_right(block, k)
            left.pop(0)
            continue
        n_halved[k] += 1
        w, v = before.iterate(k).astype(float), before.trial(k).astype(float)
        np.testing.assert_array_equal(block.point(k), before.iterate(k))
        atol = 3 * np.finfo(dtype).eps * max(np.abs(w).max(), np.abs(v).max())
        np.testing.assert_allclose(block.trial(k), 0.5 * (w + v), rtol=0, atol=atol)
        trial = block.trial(k)[:-1].astype(float)
        assert lanes.trial_norm2[k] == pytest.approx(trial @ trial, rel=1e-12)
        assert lanes.slope[k] == 0.5 * before.slope[k]
        assert lanes.objective[k] == before.objective[k]
        assert lanes.n_products[k] == 0
        assert lanes.step_length[k] == (-1 if n_halved[k] <= MAX_HALVINGS else 0)
        if lanes.step_length[k] == 0:
            left.pop(0)
    assert (n_halved > 0).any()
    assert (n_halved <= MAX_HALVINGS).all() == (factor > 0)
    assert_scratch_is_as_it_was(block)


class TestWorkingSets:
    """Lanes with rows of their own, copied out of X."""

    @staticmethod
    def give_sets(block, chosen, *, share=1.0, as_in_X=False, gap=np.inf, max_iter=1000):
        """Give some lanes copies of all rows, or a share of them; return rows and features of each.

        In random order, the positives first, without the features that no row has, unless
        `as_in_X`.
        """
        rng, problem, m = np.random.default_rng(2), block.problem, len(block.lanes.label)
        indptr, indices, data = problem.instances.arrays
        n, d = problem.instances.shape
        X = sp.csr_array((data, indices, indptr), shape=(n, d))
        rows, features = [np.zeros(0, int)] * m, [np.arange(d)] * m
        positives, copies = [np.zeros(0, int)] * m, [sp.csr_array((0, d), dtype=X.dtype)] * m
        for k in chosen:
            of_label = problem.positives(block.lanes.label[k])
            rows[k] = np.arange(n)
            if not as_in_X:
                drawn = rng.permutation(n)[: round(share * n)]
                is_positive = np.isin(drawn, of_label)
                rows[k] = np.concatenate((drawn[is_positive], drawn[~is_positive]))
                features[k] = rng.permutation(np.unique(X[rows[k]].indices))
            positives[k] = np.flatnonzero(np.isin(rows[k], of_label))
            copies[k] = X[rows[k]][:, features[k]]
        n_rows = np.array([len(listed) for listed in rows])
        n_entries = np.array([copy.nnz for copy in copies])
        block.X = tuple(
            read_only(np.concatenate([getattr(c, name) for c in copies]).astype(dtype))
            for name, dtype in (("indptr", "i8"), ("indices", "i4"), ("data", X.dtype))
        )
        block.weight = read_only(problem.weight[np.concatenate(rows)])
        block.y_rows = read_only(as_rows(np.concatenate(positives)))
        block.mean = read_only(np.zeros(0, X.dtype))
        width = np.array([len(listed) + 1 for listed in features])
        n_positives = np.array([len(listed) for listed in positives])
        lanes = block.lanes
        block.lanes = Lanes(
            np.zeros(2 * width.sum(), problem.dtype),
            lanes.label,
            **{name: lanes.state[name] for name in ("plus", "minus", "intercept", "objective")},
            gap=gap,
            n_rows=n_rows,
            first_row=np.cumsum(n_rows) - n_rows,
            first_pointer=np.cumsum(n_rows + 1) - n_rows - 1,
            first_entry=np.cumsum(n_entries) - n_entries,
            n_positives=n_positives,
            first_positive=np.cumsum(n_positives) - n_positives,
            first=2 * (np.cumsum(width) - width),
            width=width,
            n_iter=-1,
            max_iter=max_iter,
        )
        return rows, features

    @staticmethod
    def start(block, features, points):
        """Make points in the features of X the trial points of lanes that have no objective yet."""
        for k, point in enumerate(points):
            block.set_trial(k, point[[*features[k], -1]])

    @staticmethod
    def spread(block, features, point):
        """Write a point in the features of X, float64."""
        out = np.zeros(block.problem.n_features + 1)
        out[features], out[-1] = point[:-1], point[-1]
        return out

    @pytest.mark.parametrize(
        ("loss", "dtype", "kind", "share"),
        [
            ("squared_hinge", np.float32, "copied", 0.4),
            ("squared_hinge", np.float64, "in place", 1.0),
            ("huber_hinge", np.float64, "copied", 1.0),
            ("huber_hinge", np.float64, "in place", 0.4),
        ],
    )
    def test_a_lane_reaches_the_minimum_over_its_rows(self, make_block, loss, dtype, kind, share):
        block = make_block(loss, dtype, kind)
        m = len(LABELS)
        rows, features = self.give_sets(block, range(m), share=share)
        lanes = block.lanes
        lanes.threshold[:] = enough = {np.float32: 1e-2, np.float64: 1e-8}[dtype]
        self.start(block, features, random_points(block))
        block.advance()
        for k in range(m):
            whole = block.objectives[k]
            objective = dataclasses.replace(
                whole,
                X=whole.X[rows[k]],
                positive=whole.positive[rows[k]],
                weight=whole.weight[rows[k]],
            )
            w = self.spread(block, features[k], block.point(k))
            gradient = objective.gradient(w)
            assert lanes.objective[k] == pytest.approx(objective.value(w), rel=1e-12)
            assert lanes.gradient_norm[k] == pytest.approx(np.linalg.norm(gradient), abs=1e-11)
            assert lanes.gradient_norm[k] <= lanes.threshold[k] == enough
            assert lanes.norm2[k] == pytest.approx(w[:-1] @ w[:-1], rel=1e-12)
            margins = objective.signs * (objective.rows @ w)
            assert lanes.n_active[k] == (margins < block.kink).sum()
            assert 1 <= lanes.n_iter[k] <= lanes.n_products[k]
            found = scipy.optimize.minimize(
                objective.value,
                np.zeros(len(w)),
                jac=objective.gradient,
                hess=objective.hessian,
                method="trust-exact",
                options={"gtol": 1e-10, "maxiter": 500},
            )
            near = 1e-6 + enough  # the curvature is 1 or more
            assert lanes.objective[k] == pytest.approx(found.fun, abs=near**2)
            np.testing.assert_allclose(w, found.x, rtol=0, atol=near)
        assert_scratch_is_as_it_was(block)


@given(others=row_lists, positives=row_lists)
def test_list_rows_writes_the_union_with_signs_and_no_more(others, positives):
    union = sorted({*others, *positives})
    rows, sign = np.full(len(union) + 1, -7, np.int32), np.full(len(union) + 1, 7.0)
    assert merge(as_rows(others), as_rows(positives), rows, sign) == len(union)
    assert rows.tolist() == [*union, -7]
    assert sign.tolist() == [1.0 if row in positives else -1.0 for row in union] + [7.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_that_are_listed(dtype):
    point = np.array([0.5, -0.125, 0.0, 0.25, -0.3, 7.0], dtype)
    features, values = np.full(6, -1, np.int32), np.full(6, np.nan, dtype)
    n, removed = list_weights(point, 0.25, features, values)
    np.testing.assert_array_equal(features[:n], [0, 3, 4])
    np.testing.assert_array_equal(values[:n], point[[0, 3, 4]])
    assert removed == pytest.approx(0.125**2 / (point[:-1].astype(float) ** 2).sum())
    n, removed = list_weights(point, 0.0, features, values)
    assert (n, removed) == (4, 0.0)
    assert list_weights(np.zeros(3, dtype), 0.1, features, values) == (0, 0.0)
