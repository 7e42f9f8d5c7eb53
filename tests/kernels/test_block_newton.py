"""The kernels of a Newton iteration against the formulas they stand for, lane by lane."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc.kernels.block_newton import CHUNK, DAMPING, block_newton_kernels
from sklearn_xc.losses import LOSSES

#: Label of each lane; -1 is an empty lane. 4 has no positives, 7 only positives.
LABELS = np.array([2, 0, 7, -1, 4])
N = 2 * CHUNK + 44
PLUS = np.array([1.0, 3.0, 0.5, 0.0, 2.0])
MINUS = np.array([1.0, 0.25, 2.0, 0.0, 1.0])


@pytest.fixture(params=LOSSES)
def loss_name(request):
    return request.param


@pytest.fixture(params=[np.float32, np.float64])
def dtype(request):
    return request.param


@pytest.fixture
def block(loss_name, dtype, make_xy, make_problem, compiled_loss):
    """Return a problem, its kernels, and lanes with random contents."""
    rng = np.random.default_rng(0)
    X, Y = make_xy(n=N)
    problem = make_problem(X, Y, dtype=dtype, loss=loss_name, weight=0.5 + rng.random(N))
    d, lanes = problem.n_features, len(LABELS)
    dense = sp.csr_array((problem.data, problem.indices, problem.indptr), shape=(N, d)).toarray()
    return SimpleNamespace(
        problem=problem,
        kernels=block_newton_kernels(LOSSES[loss_name]),
        value=np.vectorize(compiled_loss(loss_name, "value"), otypes=[np.float64]),
        is_active=np.vectorize(compiled_loss(loss_name, "is_active"), otypes=[bool]),
        rows=np.hstack([dense, np.ones((N, 1))]).astype(np.float64),
        positive=np.column_stack([Y[:, [j]].toarray()[:, 0] * (j >= 0) for j in LABELS]) > 0,
        S=rng.normal(size=(N, lanes)).astype(dtype),
        P=rng.normal(size=(d + 1, lanes)).astype(dtype),
        XP=rng.normal(size=(N, lanes)).astype(dtype),
        W=rng.normal(size=(d + 1, lanes)).astype(dtype),
        lam=np.array([1, 0.5, 0.25, 0, 1], dtype),
        loss_sum=np.full(lanes, 7.0),
        n_active=np.full(lanes, 7),
        rtol=1e3 * np.finfo(dtype).eps,
    )


def full_step(block, keep, S, XP):
    p = block.problem
    block.kernels.try_full_step(
        p.indptr, p.indices, p.data, p.weight, keep, S, block.P, XP, block.loss_sum, block.n_active
    )


def assert_sums_are_those_at(block, scores):
    """Compare the sums over "every row a negative" with those at dense `scores`."""
    expected = (block.problem.weight[:, None] * block.value(-scores)).sum(axis=0)
    np.testing.assert_allclose(block.loss_sum, expected, rtol=block.rtol)
    margins = -scores.astype(block.S.dtype)
    wrong = np.abs(block.n_active - block.is_active(margins).sum(axis=0))
    assert (wrong <= (np.abs(margins - 1) < 1e-5).sum(axis=0)).all()


def test_try_full_step(block):
    keep = np.array([1, 0, 1, 1, 0], block.S.dtype)
    S, XP = block.S.copy(), np.full_like(block.XP, 9)
    full_step(block, keep, S, XP)
    np.testing.assert_array_equal(S, block.S * keep)
    expected = block.rows @ block.P
    np.testing.assert_allclose(XP, expected, rtol=block.rtol, atol=block.rtol)
    assert_sums_are_those_at(block, S.astype(np.float64) + XP)


def test_try_step(block):
    S, XP = block.S.copy(), block.XP.copy()
    block.kernels.try_step(block.problem.weight, S, XP, block.lam, block.loss_sum, block.n_active)
    np.testing.assert_array_equal(S, block.S)
    np.testing.assert_array_equal(XP, block.XP)
    assert_sums_are_those_at(block, S.astype(np.float64) + block.lam * XP)


def test_a_backtracking_lane_changes_nothing_for_the_lanes_beside_it(block):
    """try_step looks again at the lanes that had enough decrease: the bits must stay."""
    XP = np.empty_like(block.XP)
    full_step(block, np.ones_like(block.lam), block.S, XP)
    loss_sum, n_active = block.loss_sum.copy(), block.n_active.copy()
    block.kernels.try_step(
        block.problem.weight, block.S, XP, block.lam, block.loss_sum, block.n_active
    )
    whole = block.lam == 1
    np.testing.assert_array_equal(block.loss_sum[whole], loss_sum[whole])
    np.testing.assert_array_equal(block.n_active[whole], n_active[whole])


def test_correct_positives(block):
    p, weight = block.problem, block.problem.weight[:, None].astype(np.float64)
    scores = block.S.astype(np.float64) + block.lam * block.XP
    block.loss_sum[:] = (weight * block.value(-scores)).sum(axis=0)
    before = block.loss_sum.copy()
    block.kernels.correct_positives(
        p.y_indptr, p.y_rows, LABELS, p.weight, block.S, block.XP, block.lam, PLUS, MINUS,
        block.loss_sum,
    )  # fmt: skip
    signs, factors = np.where(block.positive, 1, -1), np.where(block.positive, PLUS, MINUS)
    expected = (weight * factors * block.value(signs * scores)).sum(axis=0)
    expected[LABELS < 0] = before[LABELS < 0]
    np.testing.assert_allclose(block.loss_sum, expected, rtol=block.rtol, atol=block.rtol)


def test_accept_step(block):
    """Lane 1 gets no room for a list, the others as much as they need."""
    S, W = block.S.copy(), block.W.copy()
    scores = block.S + block.lam * block.XP
    active = block.is_active(-scores)
    room = np.where(np.arange(5) == 1, 0, active.sum(axis=0))
    list_start = np.concatenate(([0], np.cumsum(room)))
    list_stop, lists = np.full(5, -1), np.full(list_start[-1], -1, np.int32)
    norm2 = np.full(5, 7.0)
    block.kernels.accept_step(
        S, block.XP, W, block.P, block.lam, list_start, list_stop, lists, norm2
    )
    np.testing.assert_allclose(S, scores, rtol=block.rtol)
    np.testing.assert_allclose(W, block.W + block.lam * block.P, rtol=block.rtol, atol=block.rtol)
    np.testing.assert_allclose(norm2, (W[:-1].astype(np.float64) ** 2).sum(axis=0), rtol=block.rtol)
    np.testing.assert_array_equal(list_stop, list_start[:-1] + room)
    for k in (0, 2, 3, 4):
        listed = lists[list_start[k] : list_stop[k]]
        np.testing.assert_array_equal(listed, np.flatnonzero(block.is_active(-S[:, k])))


@pytest.mark.parametrize(("intercept", "ridge"), [(1, 1), (1, 0), (0, 0)])
def test_certify(block, dense_objective, intercept, ridge):
    p, prune = block.problem, 0.3
    lanes = np.flatnonzero(LABELS >= 0)
    W = block.W[:, lanes].astype(np.float64)
    W[-1] *= intercept
    pruned = W.copy()
    pruned[:-1][np.abs(W[:-1]) < prune] = 0
    V = np.hstack([W, pruned])
    out, m = np.empty((3, len(lanes))), len(lanes)
    block.kernels.certify(
        p.indptr, p.indices, p.data, p.y_indptr, p.y_rows, LABELS[lanes], p.weight, V, PLUS[lanes],
        MINUS[lanes], float(intercept), float(ridge), np.empty((CHUNK, 2 * m)),
        np.empty((p.n_features + 1, m)), out,
    )  # fmt: skip
    for c, k in enumerate(lanes):
        reference = dense_objective(
            block.rows[:, :-1], block.positive[:, k], p.loss_name, PLUS[k], MINUS[k],
            p.weight.astype(np.float64), bool(intercept), bool(ridge),
        )  # fmt: skip
        assert out[0, c] == pytest.approx(reference.value(W[:, c]), rel=1e-12)
        assert out[1, c] == pytest.approx(np.linalg.norm(reference.gradient(W[:, c])), rel=1e-12)
        assert out[2, c] == pytest.approx(reference.value(pruned[:, c]), rel=1e-12)


class Directions:
    """Lanes that stand at given weights, and one call of ``newton_directions``."""

    def __init__(self, block, W, fill, cg):
        p, (d1, lanes) = block.problem, W.shape
        n, d, dtype = p.n_samples, d1 - 1, W.dtype
        self.S, self.W = np.zeros((n, lanes), dtype), np.zeros_like(W)
        self.P, XP = W.copy(), np.empty((n, lanes), dtype)
        norm2, list_stop = np.empty(lanes), np.empty(lanes, np.int64)
        block.P = self.P
        full_step(block, np.zeros(lanes, dtype), self.S, XP)
        list_start = np.concatenate(([0], np.cumsum(np.where(fill, block.n_active, 0))))
        lists = np.empty(list_start[-1], np.int32)
        block.kernels.accept_step(
            self.S, XP, self.W, self.P, np.ones(lanes, dtype), list_start, list_stop, lists, norm2
        )
        self.sign, self.position = np.zeros(n, np.int8), np.full(d, -1, np.int32)
        self.threshold, self.running = np.zeros(lanes), LABELS >= 0
        self.out = np.full((5, lanes), 7.0)
        self.call = lambda: block.kernels.newton_directions(
            p.indptr, p.indices, p.data, p.y_indptr, p.y_rows, LABELS, p.weight, self.W, self.S,
            self.P, norm2, self.running, fill, list_start, list_stop, lists, PLUS, MINUS,
            p.intercept, p.ridge, cg, self.threshold, self.sign, self.position,
            np.empty(d, np.int32), np.empty(n, np.int32), np.empty(n + 1, np.int64),
            np.empty(p.data.size, np.int32), np.empty(p.data.size, dtype), np.empty((2, n)),
            np.empty((2, d + 2)), np.empty((5, d + 2), dtype), self.out,
        )  # fmt: skip


@pytest.mark.parametrize("listed", [True, False], ids=["active rows", "all rows"])
@pytest.mark.parametrize("intercepts", [(True, True), (True, False), (False, True)], ids=str)
def test_newton_directions_solve_the_newton_system(
    block, dense_objective, dtype, listed, intercepts
):
    fit_intercept, regularize_intercept = intercepts
    p = block.problem = dataclasses.replace(
        block.problem, fit_intercept=fit_intercept, regularize_intercept=regularize_intercept
    )
    W = 0.3 * block.W
    W[-1] = (W[-1] - 3) * fit_intercept  # few active rows: other features move along w
    fill = np.full(len(LABELS), listed)
    eps = float(np.finfo(dtype).eps)
    lanes = Directions(block, W, fill, (eps, 0.01, 300))
    lanes.running[1] = False
    lanes.call()
    # The model's decrease is solved to eps, hence the step to its root.
    tolerance = {"rtol": 20 * eps**0.5, "atol": 20 * eps**0.5}
    for k in (0, 2, 4):
        reference = dense_objective(
            block.rows[:, :-1], block.positive[:, k], p.loss_name, PLUS[k], MINUS[k],
            p.weight.astype(np.float64), *intercepts,
        )  # fmt: skip
        w = W[:, k].astype(np.float64)
        gradient, hessian = reference.gradient(w), reference.hessian(w)
        if not regularize_intercept:
            hessian[-1, -1] += DAMPING * abs(gradient[-1])
        step = -np.linalg.lstsq(hessian, gradient)[0]
        np.testing.assert_allclose(lanes.P[:, k], step, **tolerance)
        regularized = step * reference.ridge
        expected = [
            np.linalg.norm(gradient), gradient @ step, w @ regularized, step @ regularized,
        ]  # fmt: skip
        np.testing.assert_allclose(lanes.out[:4, k], expected, **tolerance)
        assert lanes.out[4, k] >= 1
    assert not lanes.P[:, [1, 3]].any()
    assert not lanes.out[:, [1, 3]].any()
    # Left as they were found, for the next call.
    assert not lanes.sign.any()
    assert (lanes.position == -1).all()


def test_a_lane_below_its_threshold_gets_no_direction(block):
    lanes = Directions(block, block.W, np.zeros(len(LABELS), bool), (0.5, 0.01, 100))
    lanes.threshold[:] = [0, np.inf, np.inf, 0, 0]
    lanes.call()
    assert not lanes.P[:, [1, 2]].any()
    assert not lanes.out[1:, [1, 2]].any()
    assert (lanes.out[0, [1, 2]] > 0).all()
    assert lanes.P[:, 0].any()
