"""The problem's record and bounds, and what an epoch makes of its steps."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
import scipy.special

from sklearn_xc._input.data import CsrRows
from sklearn_xc.softmax import sgd as softmax_sgd
from sklearn_xc.softmax.kernels.rules import RULES
from sklearn_xc.softmax.problem import SoftmaxProblem
from sklearn_xc.softmax.sgd import SgdSettings, run_epoch, search_hard_negatives
from sklearn_xc.softmax.state import SoftmaxState

K, D = 5, 8


def settings_of(method, *counts, **others):
    """Return settings by the name of a rule."""
    return SgdSettings(RULES[method], *counts, **others)


def make_rows(empty=(), dtype=np.float64):
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(12, D)) * (rng.random((12, D)) < 0.5)
    dense[:, 0] += 1.0
    dense[list(empty)] = 0.0
    X = sp.csr_array(dense.astype(dtype))
    indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int32)
    return CsrRows(indptr, indices, X.data, X.shape)


def make_problem(empty=(0, 5, 11), alpha=0.1, dtype=np.float64, weight=None):
    """Return a problem of 30 pairs of 12 rows."""
    rng = np.random.default_rng(1)
    n = 30
    return SoftmaxProblem(
        make_rows(empty, dtype),
        np.concatenate([np.arange(12), rng.integers(0, 12, n - 12)]).astype(np.int32),
        rng.integers(0, K, n).astype(np.int32),
        rng.uniform(0.5, 2.0, n) if weight is None else weight,
        K,
        alpha,
    )


def make_state(problem, seed=2):
    rng = np.random.default_rng(seed)
    V = (0.5 * rng.normal(size=(K, D))).astype(problem.instances.data.dtype)
    return SoftmaxState.at(V, rng.uniform(0.5, 2.0, problem.n_pairs))


def epoch_of(problem, settings, epoch=0, rate=0.3, slowing=0.01, state=None):
    """Return the objective and the state after an epoch, its scales folded."""
    state = make_state(problem) if state is None else state
    objective = run_epoch(problem, state, settings, epoch, rate, slowing)
    state.fold()
    return objective, state


def dense_of(problem):
    X = problem.instances
    return sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape).toarray()


each_step = pytest.mark.parametrize("method", ["umax", "implicit"])


@pytest.mark.parametrize("empty", [[], [0, 1, 10, 11], [4, 5, 6], range(12)], ids=str)
def test_squared_norms(empty):
    problem = make_problem(empty, dtype=np.float32)
    expected = (dense_of(problem).astype(np.float64) ** 2).sum(axis=1)
    assert problem.squared_norms.dtype == np.float64
    np.testing.assert_allclose(problem.squared_norms, expected, rtol=1e-14)
    assert (problem.squared_norms[list(empty)] == 0).all()


@pytest.mark.parametrize("is_weighted", [False, True])
def test_the_order_holds_each_visit_once(monkeypatch, is_weighted):
    seen = []

    def kernels(*rule):
        def run_steps(visits, first, last, *arguments):
            seen.extend(visits.order[first:last])
            return 0.0

        return run_steps

    monkeypatch.setattr(softmax_sgd, "_CHUNK_WORK", 60.0)
    problem = make_problem(weight=None if is_weighted else np.ones(30))
    expected = np.repeat(np.arange(30), problem.visits).tolist()
    assert (len(expected) > 30) == is_weighted
    orders = []
    for seed, epoch in [(0, 0), (0, 1), (1, 0), (0, 0)]:
        seen.clear()
        epoch_of(problem, settings_of("umax", 2, seed, kernels=kernels), epoch)
        assert sorted(seen) == expected
        orders.append(tuple(seen))
    assert len(set(orders)) == 3
    assert orders[0] == orders[3]


@each_step
def test_calls_of_any_length_give_the_same(monkeypatch, method):
    problem, settings = make_problem(), settings_of(method, 3, 0)
    whole, expected = epoch_of(problem, settings)
    for work in (1.0, 100.0, 300.0):
        monkeypatch.setattr(softmax_sgd, "_CHUNK_WORK", work)
        objective, state = epoch_of(problem, settings)
        assert objective == pytest.approx(whole, rel=1e-13)
        for name in ("V", "u"):
            np.testing.assert_array_equal(getattr(state, name), getattr(expected, name))


def gradient(problem, state):
    """Return the exact gradient of the double sum in W, and in u."""
    X, n = dense_of(problem)[problem.rows], problem.n_pairs
    W = state.V * state.scale[:, None]
    scores = X @ W.T
    own = scores[np.arange(n), problem.classes]
    others = problem.weight[:, None] * np.exp(scores - own[:, None] - state.u[:, None])
    others[np.arange(n), problem.classes] = 0
    by_u = problem.weight * (1 - np.exp(-state.u)) - others.sum(axis=1)
    others[np.arange(n), problem.classes] = -others.sum(axis=1)
    return others.T @ X + problem.alpha * W, by_u


def moves_of(problem, settings, rate=1e-8):
    """Return how an epoch moves W and u, over the rate and in units of 1 / (total weight)."""
    state = make_state(problem)
    by_W, by_u = gradient(problem, state)
    W, u = state.V.copy(), state.u.copy()
    epoch_of(problem, settings, rate=rate, slowing=0.0, state=state)
    unit = rate * problem.visits.sum() / problem.weight.sum()
    return (state.V - W) / unit, -by_W, (state.u - u) / unit, -by_u


WEIGHTS = {
    "equal": (np.full(30, 0.7), 0),
    "random": (np.random.default_rng(3).uniform(0.5, 2.0, 30), 2),
    "one heavy": (np.r_[np.ones(29), 40.0], 0),
    "mostly light": (np.r_[np.full(25, 1e-3), np.full(5, 10.0)], K - 1),
}


@pytest.mark.parametrize(("weight", "n_hard"), WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("method", ["vanilla", "implicit"])
def test_an_epoch_of_all_classes_is_the_gradient(method, weight, n_hard):
    """In however many visits: the step of a pair is in proportion to its weight."""
    problem = make_problem(weight=weight)
    settings = settings_of(method, K, 0, n_hard)
    by_W, expected_W, by_u, expected_u = moves_of(problem, settings)
    np.testing.assert_allclose(by_W, expected_W, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(by_u, expected_u, rtol=1e-4, atol=1e-4)


class TestHardNegatives:
    @pytest.mark.parametrize(
        ("n_hard", "dtype"), [(1, np.float64), (3, np.float32), (50, np.float64)]
    )
    def test_search(self, dtype, n_hard):
        """By the scaled weights, with u at the log-loss, whatever it was."""
        problem = make_problem(dtype=dtype)
        state = make_state(problem)
        state.scale[:] = np.random.default_rng(0).uniform(0.2, 3.0, K)
        V = state.V.copy()
        search_hard_negatives(problem, state, settings_of("umax", 1, 0, n_hard), None)
        np.testing.assert_array_equal(state.V, V)
        scores = (dense_of(problem) @ (V * state.scale[:, None]).T)[problem.rows]
        own = scores[np.arange(30), problem.classes]
        u = scipy.special.logsumexp(scores, axis=1) - own
        np.testing.assert_allclose(state.u, u, atol=0.003)
        assert state.hard.shape == (30, min(n_hard, K - 1))
        scores[np.arange(30), problem.classes] = -np.inf
        is_empty = problem.squared_norms[problem.rows] == 0  # ties
        best = np.argsort(-scores, axis=1, kind="stable")[:, : min(n_hard, K - 1)]
        np.testing.assert_array_equal(state.hard[~is_empty], best[~is_empty])
        for hard, y in zip(state.hard, problem.classes, strict=True):
            assert len({*hard.tolist(), y}) == len(hard) + 1


@each_step
def test_the_objective_estimates_the_log_loss(method):
    """At a vanishing rate and the optimal u, its mean over epochs is the weighted log-loss."""
    problem = make_problem()
    state = make_state(problem)
    scores = (dense_of(problem) @ state.V.T)[problem.rows]
    state.u[:] = scipy.special.logsumexp(scores, axis=1) - scores[np.arange(30), problem.classes]
    settings = settings_of(method, 2, 0)
    losses = [run_epoch(problem, state, settings, epoch, 1e-12, 0.0) for epoch in range(1000)]
    expected = problem.weight @ state.u / problem.weight.sum()
    error = np.std(losses) / np.sqrt(len(losses))
    assert abs(np.mean(losses) - expected) <= 4 * error
    assert error < 0.014 * expected
