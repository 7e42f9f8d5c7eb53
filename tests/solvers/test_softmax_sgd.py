"""The problem's record and bounds, and what an epoch makes of its steps."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
import scipy.special

from sklearn_xc._validation import CsrRows
from sklearn_xc.kernels.negatives import mix_key
from sklearn_xc.solvers import softmax_sgd
from sklearn_xc.solvers.softmax_sgd import (
    Population,
    SgdSettings,
    SoftmaxProblem,
    SoftmaxState,
    run_epoch,
)

K, D = 5, 8
EMPTY = {
    "none": [], "first": [0], "last": [11], "both": [0, 11], "ends": [0, 1, 10, 11],
    "middle": [4, 5, 6], "all": range(12),
}  # fmt: skip


def make_rows(empty=(), dtype=np.float64):
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(12, D)) * (rng.random((12, D)) < 0.5)
    dense[:, 0] += 1.0
    dense[list(empty)] = 0.0
    X = sp.csr_array(dense.astype(dtype))
    indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int32)
    return CsrRows(indptr, indices, X.data, X.shape, was_sparse=True)


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


each_size = pytest.mark.parametrize("batch_size", [1, 4])


@pytest.mark.parametrize("empty", EMPTY.values(), ids=EMPTY)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_squared_norms(empty, dtype):
    problem = make_problem(empty, dtype=dtype)
    expected = (dense_of(problem).astype(np.float64) ** 2).sum(axis=1)
    assert problem.squared_norms.dtype == np.float64
    np.testing.assert_allclose(problem.squared_norms, expected, rtol=1e-14)
    assert (problem.squared_norms[list(empty)] == 0).all()


def test_the_record_cannot_be_written():
    problem = make_problem()
    counts = problem.population.counts
    for name in ("rows", "classes", "weight", "squared_norms"):
        assert not getattr(problem, name).flags.writeable
    assert not counts.flags.writeable


def test_population():
    problem = make_problem()
    assert problem.population.n == problem.n_pairs == 30
    assert problem.population.weight == pytest.approx(problem.weight.sum())
    expected = [np.count_nonzero(problem.classes == k) for k in range(K)]
    np.testing.assert_array_equal(problem.population.counts, expected)


def test_classes_without_pairs_are_counted():
    problem = make_problem()
    problem = problem.take(problem.classes < 2)
    assert problem.population.counts.shape == (K,)
    assert (problem.population.counts[2:] == 0).all()


def test_take():
    problem = make_problem()
    for chosen in (np.array([3, 1, 3]), np.arange(30) % 3 == 0):
        part = problem.take(chosen)
        for name in ("rows", "classes", "weight"):
            np.testing.assert_array_equal(getattr(part, name), getattr(problem, name)[chosen])
        assert part.instances is problem.instances
        assert part.population.n == part.n_pairs == len(problem.rows[chosen])
        assert part.population.weight == pytest.approx(problem.weight[chosen].sum())
        assert part.population.counts.sum() == part.n_pairs


def test_within():
    problem = make_problem()
    others = Population(100, 150.0, np.array([60, 0, 10, 10, 20]))
    is_new = np.arange(30) < 7
    whole = problem.within(others, is_new).population
    assert whole.n == 107
    assert whole.weight == pytest.approx(150.0 + problem.weight[:7].sum())
    expected = others.counts + np.bincount(problem.classes[:7], minlength=K)
    np.testing.assert_array_equal(whole.counts, expected)
    assert problem.within(others, is_new).take(is_new).population.n == 7
    old = problem.within(others, np.zeros(30, bool)).population
    assert (old.n, old.weight) == (100, 150.0)


def optimum(problem):
    """Return W and the log-normalisers less own scores, u, of each pair, at the minimum."""
    X = dense_of(problem)[problem.rows]
    targets = np.eye(K)[problem.classes]

    def value(w):
        scores = X @ w.reshape(K, D).T
        losses = scipy.special.logsumexp(scores, axis=1) - (scores * targets).sum(axis=1)
        gradient = ((scipy.special.softmax(scores, axis=1) - targets).T * problem.weight) @ X
        loss = problem.weight @ losses + problem.alpha / 2 * w @ w
        return loss, gradient.ravel() + problem.alpha * w

    found = scipy.optimize.minimize(value, np.zeros(K * D), jac=True, options={"gtol": 1e-9})
    W = found.x.reshape(K, D)
    scores = X @ W.T
    return W, scipy.special.logsumexp(scores, axis=1) - (scores * targets).sum(axis=1)


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 1.0, 30.0])
def test_bounds_hold_at_the_optimum(alpha):
    problem = make_problem(alpha=alpha)
    W, u = optimum(problem)
    assert 0 < np.linalg.norm(W) <= problem.radius()
    assert u.max() <= problem.largest_normaliser()


def test_bounds():
    problem = make_problem(alpha=0.5)
    radius = np.sqrt(2 / 0.5 * problem.weight.sum() * np.log(K))
    assert problem.radius() == pytest.approx(radius)
    reach = 2 * np.sqrt(problem.squared_norms.max()) * radius
    assert problem.largest_normaliser() == pytest.approx(np.log1p((K - 1) * np.exp(reach)))
    assert make_problem(alpha=0.0).radius() == np.inf
    assert make_problem(alpha=0.0).largest_normaliser() == np.inf


def test_bounds_are_those_of_the_whole():
    problem = make_problem()
    whole = problem.within(Population(70, 100.0, np.full(K, 14)), np.ones(30, bool))
    assert whole.radius() == pytest.approx(
        problem.radius() * np.sqrt(1 + 100.0 / problem.weight.sum())
    )


@each_size
@pytest.mark.parametrize("method", ["umax", "implicit"])
def test_each_pair_is_visited_once(batch_size, method):
    """Rows that no other pair shares, without features: a visit of a pair moves its u alone."""
    problem = make_problem(range(12), alpha=0.0, weight=np.full(30, 0.7))
    state = make_state(problem)
    state.u[:] = 1.3
    before = state.V.copy()
    settings = SgdSettings(method, 2, batch_size, 0)
    epoch_of(problem, settings, slowing=0.0, state=state)
    np.testing.assert_array_equal(state.V, before)
    if batch_size == 1:  # in batches, how much it moves depends on whether the target is sampled
        assert len(np.unique(state.u.round(12))) == 1
    assert (state.u != 1.3).all()


@pytest.mark.parametrize("batch_size", [1, 2, 7, 30, 100])
def test_the_order_holds_each_pair_once(monkeypatch, batch_size):
    """Also where the batches do not divide the number of pairs; sizes differ by 1 at most."""
    seen = []

    def kernels(method):
        def run_steps(*arguments):
            order, *bounds = arguments[5:8]
            seen.extend(order[bounds[0] : bounds[1]])
            return 0.0

        def run_batches(*arguments):
            order, bounds, first, last = arguments[6:10]
            sizes = np.diff(bounds)
            assert sizes.max() <= batch_size
            assert sizes.max() - sizes.min() <= 1
            seen.extend(order[bounds[first] : bounds[last]])
            return 0.0

        return run_steps if batch_size == 1 else run_batches

    monkeypatch.setattr(softmax_sgd, "softmax_kernels", kernels)
    monkeypatch.setattr(softmax_sgd, "softmax_batch_kernels", kernels)
    monkeypatch.setattr(softmax_sgd, "_WORK_PER_CALL", 60.0)
    problem = make_problem()
    orders = []
    for seed, epoch in [(0, 0), (0, 1), (1, 0), (0, 0)]:
        seen.clear()
        epoch_of(problem, SgdSettings("umax", 2, batch_size, seed), epoch)
        assert sorted(seen) == list(range(30))
        orders.append(tuple(seen))
    assert len(set(orders)) == 3
    assert orders[0] == orders[3]


@each_size
@pytest.mark.parametrize("method", ["umax", "implicit", "is"])
@pytest.mark.parametrize("radius", [2.0, np.inf])
def test_calls_of_any_length_give_the_same(monkeypatch, batch_size, method, radius):
    problem, settings = make_problem(), SgdSettings(method, 3, batch_size, 0, radius=radius)
    whole, expected = epoch_of(problem, settings)
    for work in (1.0, 100.0, 300.0):
        monkeypatch.setattr(softmax_sgd, "_WORK_PER_CALL", work)
        objective, state = epoch_of(problem, settings)
        assert objective == pytest.approx(whole, rel=1e-13)
        for name in ("V", "u"):
            found, one_call = getattr(state, name), getattr(expected, name)
            if batch_size == 1 and radius < np.inf:  # the running norm is summed anew
                np.testing.assert_allclose(found, one_call, rtol=1e-12)
            else:
                np.testing.assert_array_equal(found, one_call)


@each_size
def test_an_epoch_depends_on_seed_and_epoch(batch_size):
    problem = make_problem()
    found = [
        epoch_of(problem, SgdSettings("umax", 2, batch_size, seed), epoch)[1].V
        for seed, epoch in [(0, 0), (0, 0), (1, 0), (0, 1)]
    ]
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).any()
    assert (found[0] != found[3]).any()
    assert mix_key(0, 1) != mix_key(1, 0)


@each_size
def test_weights_scale_steps(batch_size):
    """Twice the weight of all changes nothing but for the ridge; of one, its own step."""
    weight = np.random.default_rng(3).uniform(0.5, 2.0, 30)
    settings = SgdSettings("vanilla", 2, batch_size, 0)
    once = epoch_of(make_problem(weight=weight), settings, rate=0.02)
    twice = epoch_of(make_problem(weight=2 * weight, alpha=0.2), settings, rate=0.02)
    assert twice[0] == pytest.approx(once[0], rel=1e-13)
    np.testing.assert_allclose(twice[1].V, once[1].V, rtol=1e-12)
    np.testing.assert_allclose(twice[1].u, once[1].u, rtol=1e-12)

    # From the same weights, in one batch or at a vanishing rate, a step is in proportion.
    rate = 1e-9
    changes = []
    for factor in (1.0, 3.0):
        heavier = weight.copy()
        heavier[7] *= factor
        problem = make_problem(weight=heavier, alpha=0.0)
        state = make_state(problem)
        old = state.u.copy()
        epoch_of(problem, settings, rate=rate, slowing=0.0, state=state)
        # The rate is in units of 1 / (total weight).
        changes.append((state.u - old) / rate * heavier.sum())
    ratios = changes[1] / changes[0]
    assert ratios[7] == pytest.approx(3.0, rel=1e-4)
    np.testing.assert_allclose(np.delete(ratios, 7), 1.0, rtol=1e-4)


@each_size
@pytest.mark.parametrize("method", ["umax", "implicit"])
def test_the_objective_estimates_the_log_loss(batch_size, method):
    """At a vanishing rate and the optimal u, its mean over epochs is the weighted log-loss."""
    problem = make_problem()
    state = make_state(problem)
    scores = (dense_of(problem) @ state.V.T)[problem.rows]
    state.u[:] = scipy.special.logsumexp(scores, axis=1) - scores[np.arange(30), problem.classes]
    settings = SgdSettings(method, 2, batch_size, 0)
    losses = [run_epoch(problem, state, settings, epoch, 1e-12, 0.0) for epoch in range(2000)]
    expected = problem.weight @ state.u / problem.weight.sum()
    error = np.std(losses) / np.sqrt(len(losses))
    assert abs(np.mean(losses) - expected) <= 4 * error
    assert error < 0.01 * expected


@each_size
@pytest.mark.parametrize("method", ["umax", "implicit"])
def test_epochs_of_falling_rates_reach_the_optimum(batch_size, method):
    problem = make_problem(alpha=3.0)
    W, u = optimum(problem)
    state = SoftmaxState.at(np.zeros((K, D)), np.full(30, np.log(K)))
    settings = SgdSettings(method, 2, batch_size, 0, radius=problem.radius())
    mean_W, mean_u = np.zeros((K, D)), np.zeros(30)
    for epoch in range(3000):
        run_epoch(problem, state, settings, epoch, 1.0 / (1 + epoch / 20), 0.0)
        if epoch >= 1000:
            mean_W += state.V * state.scale[:, None] / 2000
            mean_u += state.u / 2000
    np.testing.assert_allclose(mean_W, W, atol=0.05 * np.abs(W).max())
    np.testing.assert_allclose(mean_u, u, atol=0.05 * u.max())


@each_size
@pytest.mark.parametrize("method", ["umax", "implicit"])
def test_more_negatives_than_classes(batch_size, method):
    problem = make_problem()
    most = epoch_of(problem, SgdSettings(method, K if batch_size > 1 else K - 1, batch_size, 0))
    more = epoch_of(problem, SgdSettings(method, 50, batch_size, 0))
    assert more[0] == most[0]
    np.testing.assert_array_equal(more[1].V, most[1].V)


def test_the_radius_counts_scales_that_are_not_folded():
    """The norm at the start of an epoch is that of the weights, whatever their scales."""
    problem, settings = make_problem(), SgdSettings("umax", 2, 1, 0, radius=2.0)
    expected = epoch_of(problem, settings)[1]
    state = make_state(problem)
    state.V *= 8.0
    state.scale[:] = 0.125
    found = epoch_of(problem, settings, state=state)[1]
    np.testing.assert_allclose(found.V, expected.V, rtol=1e-13)
    assert np.linalg.norm(found.V) <= 2.0 * (1 + 1e-12)


def test_fold():
    problem = make_problem(dtype=np.float32)
    state = make_state(problem)
    state.scale[:] = [0.5, 1.0, 0.25, 2.0, 1.0]
    expected = state.V * state.scale[:, None].astype(np.float32)
    state.fold()
    np.testing.assert_array_equal(state.V, expected)
    assert (state.scale == 1).all()
