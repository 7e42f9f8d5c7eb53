"""The implicit update of a mini-batch against a minimiser that knows vectors and no equation."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest

from sklearn_xc._compile.jit import kernel
from sklearn_xc.softmax.kernels import implicit_batch
from sklearn_xc.softmax.kernels.implicit_batch import N_WORK, PRECISION, ScoreStep, solve_batch
from sklearn_xc.softmax.kernels.implicit_step import solve_step

compiled_batch, compiled_step = kernel(solve_batch), kernel(solve_step)


class Batch(NamedTuple):
    """Instances `X` of targets `y` that share the classes `drawn`, and weights `W` before.

    `alpha` holds the inverse probability of each drawn class, `b` an intercept of each class.
    """

    A: np.ndarray
    alpha: np.ndarray
    X: np.ndarray
    y: np.ndarray
    drawn: np.ndarray
    W: np.ndarray
    ridge: np.ndarray
    u: np.ndarray
    b: np.ndarray

    @property
    def place(self):
        """Where each target is among the drawn classes, or -1."""
        found = self.drawn[None] == self.y[:, None]
        return np.where(found.any(axis=1), found.argmax(axis=1), -1)

    @property
    def sampled(self):
        """Whether each drawn class is sampled for each instance, and not its target."""
        return self.drawn[None] != self.y[:, None]


def step_of(batch):
    """Return the step of a batch, in scores."""
    c, scores = 1 + batch.ridge, batch.X @ batch.W.T
    group = np.array([batch.y.tolist().index(k) for k in batch.y])
    own = scores[np.arange(len(batch.y)), batch.y] / c[batch.y] + batch.b[batch.y]
    others = np.ascontiguousarray(scores[:, batch.drawn] / c[batch.drawn] + batch.b[batch.drawn])
    return ScoreStep(
        batch.A,
        batch.alpha,
        batch.X @ batch.X.T,
        batch.place,
        group,
        others,
        c[batch.drawn],
        own,
        c[batch.y],
        batch.u.copy(),
    )


def solve(batch, function=compiled_batch):
    """Return the new u, p and the weights it moves W to, from the kernel."""
    step = step_of(batch)
    n, m = step.q.shape
    p, totals = np.full((n, m), np.nan), np.full(n, np.nan)
    worst = function(step, p, totals, np.empty((N_WORK, n, m)), PRECISION)
    assert worst <= 1e-11
    np.testing.assert_allclose(totals, p.sum(axis=1), rtol=1e-13)
    assert (p[~batch.sampled] == 0).all()
    W = batch.W.copy()
    for i in range(n):
        W[batch.drawn] -= np.outer(p[i], batch.X[i])
        W[batch.y[i]] += totals[i] * batch.X[i]
    named = np.union1d(batch.drawn, batch.y)
    W[named] /= (1 + batch.ridge)[named, None]
    return step.u, p, W


def objective(at, batch):
    """Return value, gradient and Hessian of the proximal objective over u and all W."""
    n, (n_classes, d) = len(batch.y), batch.W.shape
    u, W = at[:n], at[n:].reshape(n_classes, d)
    rows, factors = [], []
    for i, (k, alpha) in itertools.product(range(n), zip(batch.drawn, batch.alpha, strict=True)):
        if k != batch.y[i]:
            row = np.zeros((n_classes + 1, d))
            row[k], row[batch.y[i]] = batch.X[i], -batch.X[i]
            rows.append(np.concatenate([-np.eye(n)[i], row[:-1].ravel()]))
            factors.append(batch.A[i] * alpha * np.exp(batch.b[k] - batch.b[batch.y[i]]))
    rows, factors = np.array(rows).reshape(-1, len(at)), np.array(factors)
    e = factors * np.exp(rows @ at)
    value = (batch.A * (u + np.exp(-u))).sum() + e.sum() + ((u - batch.u) ** 2).sum() / 2
    value += (((W - batch.W) ** 2).sum() + (batch.ridge[:, None] * W**2).sum()) / 2
    gradient = rows.T @ e
    gradient[:n] += batch.A * -np.expm1(-u) + u - batch.u
    gradient[n:] += (W - batch.W + batch.ridge[:, None] * W).ravel()
    diagonal = np.concatenate([1 + batch.A * np.exp(-u), np.repeat(1 + batch.ridge, d)])
    return value, gradient, (rows.T * e) @ rows + np.diag(diagonal)


def minimise(batch):
    """Return the u and W of the minimum, by damped Newton; classes not named only shrink."""
    scores = batch.X @ batch.W.T + batch.b
    reach = np.log(batch.A[:, None] * batch.alpha) + scores[:, batch.drawn]
    reach -= scores[np.arange(len(batch.y)), batch.y][:, None]
    u = np.maximum(batch.u, reach.max(axis=1))
    at = np.concatenate([u, batch.W.ravel()])
    value, gradient, hessian = objective(at, batch)
    for _ in range(500):
        step = -np.linalg.solve(hessian, gradient)
        size = 1.0
        while True:
            with np.errstate(over="ignore", invalid="ignore"):
                trial = objective(at + size * step, batch)
            if trial[0] <= value + 1e-14 * abs(value):
                break
            size /= 2
        at = at + size * step
        value, gradient, hessian = trial
        if size == 1 and np.abs(step).max() <= 1e-12 * max(1, np.abs(at).max()):
            break
    else:
        raise AssertionError("the reference does not converge")
    n = len(batch.y)
    return at[:n], at[n:].reshape(batch.W.shape)


def assert_is_minimum(batch, rtol=1e-8):
    u, p, W = solve(batch)
    expected_u, expected = minimise(batch)
    named = np.union1d(batch.drawn, batch.y)
    np.testing.assert_allclose(u, expected_u, rtol=rtol, atol=1e-10)
    atol = rtol * np.abs(expected).max()
    np.testing.assert_allclose(W[named], expected[named], rtol=rtol, atol=atol)
    scores = batch.X @ expected.T + batch.b
    exponents = scores[:, batch.drawn] - scores[np.arange(len(u)), batch.y][:, None]
    exponents = np.log(batch.A[:, None] * batch.alpha) + exponents - expected_u[:, None]
    expected_p = np.where(batch.sampled, np.exp(exponents), 0.0)
    np.testing.assert_allclose(p, expected_p, rtol=3e-8)


def make_batch(seed, n, n_classes, m, largest_scale=1e3, spread=3.0, with_ridge=True, d=3):
    """Return a batch of instances of norm about 1; the scores are within +-spread."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) / np.sqrt(d)
    W = rng.normal(size=(n_classes, d))
    W *= spread / np.abs(X @ W.T).max()
    return Batch(
        10 ** rng.uniform(-3, np.log10(largest_scale), n),
        np.full(m, n_classes / m),
        X,
        rng.integers(0, n_classes, n),
        rng.permutation(n_classes)[:m],
        W,
        10 ** rng.uniform(-3, 0.5, n_classes) * with_ridge,
        rng.uniform(0, 5, n),
        rng.normal(size=n_classes),
    )


@pytest.mark.parametrize(("n_classes", "m"), [(2, 1), (2, 2), (3, 1), (3, 2), (3, 3), (10, 4)])
@pytest.mark.parametrize("with_ridge", [False, True])
@pytest.mark.parametrize("spread", [0.1, 3.0, 30.0])
def test_equals_the_minimiser(n_classes, m, with_ridge, spread):
    for seed in range(6):
        n = [1, 2, 3, 5, 8, 8][seed]
        scale = 1e3 if spread < 30 else 30.0
        assert_is_minimum(make_batch(seed, n, n_classes, m, scale, spread, with_ridge))


@pytest.mark.parametrize(("n_classes", "m"), [(2, 2), (3, 3), (10, 4), (12, 11)])
@pytest.mark.parametrize("with_ridge", [False, True])
def test_classes_of_unequal_probability(n_classes, m, with_ridge):
    """From 1 to 1000, also for instances that repeat, are empty, or have a sampled target."""
    for seed in range(6):
        n = [1, 2, 5, 8, 9, 12][seed]
        batch = make_batch(seed, n, n_classes, m, 100.0, with_ridge=with_ridge)
        rng = np.random.default_rng(seed)
        alpha = 10 ** np.append(0.0, rng.uniform(0, 3, m - 1))
        assert_is_minimum(batch._replace(alpha=alpha))
        if n > 4:
            batch.X[1], batch.X[2] = batch.X[0], 0.0
            batch.y[3:] = batch.drawn[rng.integers(0, m, n - 3)]
            assert_is_minimum(batch._replace(alpha=alpha))


@pytest.mark.parametrize("with_ridge", [False, True])
@pytest.mark.parametrize("targets", ["none", "all", "one", "same outside", "same inside"])
def test_targets_among_the_sampled_classes(targets, with_ridge):
    for seed in range(4):
        batch = make_batch(seed, 6, 10, 4, with_ridge=with_ridge)
        inside, outside = batch.drawn, np.setdiff1d(np.arange(10), batch.drawn)
        y = {
            "none": outside[[0, 1, 2, 3, 4, 5]],
            "all": inside[[0, 1, 2, 3, 0, 2]],
            "one": np.append(outside[:5], inside[1]),
            "same outside": np.full(6, outside[0]),
            "same inside": np.full(6, inside[2]),
        }[targets]
        assert_is_minimum(batch._replace(y=y))


@pytest.mark.parametrize("y", [[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 2, 3], [4, 4, 4, 0]])
@pytest.mark.parametrize("n_drawn", [2, 5])
@pytest.mark.parametrize("largest_scale", [1.0, 1e3])
def test_repeated_instances(y, n_drawn, largest_scale):
    """With the same target and with different ones: the Gram matrix has rank 1."""
    for seed in range(3):
        batch = make_batch(seed, 4, 5, n_drawn, largest_scale)
        batch = batch._replace(X=np.repeat(batch.X[:1], 4, axis=0), y=np.array(y))
        assert_is_minimum(batch)
        assert_is_minimum(batch._replace(u=np.full(4, 1.5), A=np.full(4, largest_scale)))


@pytest.mark.parametrize("empty", [[0], [1, 3], [0, 1, 2, 3]])
def test_rows_without_features(empty):
    for seed in range(3):
        batch = make_batch(seed, 4, 5, 3)
        batch.X[empty] = 0.0
        assert_is_minimum(batch)


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("with_ridge", [False, True])
@pytest.mark.parametrize("spread", [1.0, 30.0, 300.0])
def test_one_instance_is_a_single_step(m, with_ridge, spread):
    for seed in range(10):
        batch = make_batch(seed, 1, 6, m, 1e5, spread, with_ridge)
        if not batch.sampled.all():
            continue
        batch.alpha[:] *= 10.0 ** np.arange(m) if seed % 3 == 0 else 1.0
        u, p, _ = solve(batch)
        A, alpha, gram, _, _, q, c, own, c_y, old_u = step_of(batch)
        expected = np.full(m, np.nan)
        new_u, _ = compiled_step(
            A[0], alpha, gram[0, 0], own[0], c_y[0], q[0], c, old_u[0], expected
        )
        np.testing.assert_allclose(u, [new_u], rtol=1e-8, atol=1e-13)
        np.testing.assert_allclose(p, [expected], rtol=1e-7)


def test_the_order_of_instances_and_classes_makes_no_difference():
    batch = make_batch(3, 6, 5, 4, 100.0)
    u, p, W = solve(batch)
    rows, classes = np.random.default_rng(0).permutation(6), [2, 0, 3, 1]
    other = batch._replace(
        A=batch.A[rows],
        X=batch.X[rows],
        y=batch.y[rows],
        u=batch.u[rows],
        alpha=batch.alpha[classes],
        drawn=batch.drawn[classes],
    )
    other_u, other_p, other_W = solve(other)
    np.testing.assert_allclose(other_u, u[rows], rtol=1e-9)
    np.testing.assert_allclose(other_p, p[rows][:, classes], rtol=1e-8)
    np.testing.assert_allclose(other_W, W, rtol=1e-8, atol=1e-9)


def largest_violation(mp, batch, u, p):
    """Return how far the conditions, with all vectors in mpmath, are from 0, over their terms."""
    A, alpha, gram, place, group, q, c, own, c_y, old_u = step_of(batch)
    n, m = q.shape
    exact = [[mp.mpf(value) for value in row] for row in p]
    P = [mp.fsum(row) for row in exact]
    worst = mp.mpf(0)
    for i in range(n):
        new_u = mp.mpf(u[i])
        terms = [A[i] * -mp.expm1(-new_u), new_u, -mp.mpf(old_u[i]), -P[i]]
        equations = [terms]
        # How far the score of the target moves, and those of the sampled classes.
        moved = [
            mp.mpf(gram[i, j]) * (P[j] if group[j] == group[i] else -exact[j][place[i]])
            for j in range(n)
            if group[j] == group[i] or place[i] >= 0
        ]
        target = [mp.mpf(own[i])] + [term / mp.mpf(c_y[i]) for term in moved]
        for k in range(m):
            if k == place[i]:
                continue
            moved = [
                mp.mpf(gram[i, j]) * (P[j] if place[j] == k else -exact[j][k]) / mp.mpf(c[k])
                for j in range(n)
            ]
            terms = [mp.log(mp.mpf(A[i]) * mp.mpf(alpha[k])), mp.mpf(q[i, k]), *moved, -new_u]
            terms += [-term for term in target]
            exponent = mp.fsum(terms)
            if exponent < -700:
                assert p[i, k] < 1e-300
            else:
                equations.append([*terms, -mp.log(exact[i][k])])
        for terms in equations:
            size = max(abs(term) for term in terms)
            if size > 1e-280:
                worst = max(worst, abs(mp.fsum(terms)) / size)
    return worst


@pytest.mark.parametrize("spread", [1.0, 700.0])
@pytest.mark.parametrize("largest_scale", [10.0, 1e6])
@pytest.mark.parametrize(("n", "n_classes", "m"), [(1, 3, 2), (4, 3, 3), (8, 10, 3)])
def test_optimality_at_large_scores_and_scales(spread, largest_scale, n, n_classes, m):
    mp = pytest.importorskip("mpmath").mp
    for seed in range(5):
        batch = make_batch(seed, n, n_classes, m, largest_scale, spread, seed % 2 == 0, d=6)
        batch.A[:] = np.where(seed == 0, largest_scale, batch.A)
        if n == 8 and seed == 1:
            batch.X[3] = batch.X[2]
            batch.X[5] = 0.0
        u, p, _ = solve(batch)
        assert (u >= 0).all()
        with mp.workdps(60):
            assert largest_violation(mp, batch, u, p) <= 1e-10


def test_steps_that_are_too_long_are_halved(monkeypatch):
    """The loops of the kernel in Python, with the lengths of its steps written down."""
    batch = make_batch(7, 4, 6, 3, 1e6, 3.0)._replace(A=np.full(4, 1e6))
    sizes = []
    move_logs = implicit_batch._move_logs

    def record(step, curvature, old, direction, size, log_p, p):
        sizes.append(size)
        move_logs(step, curvature, old, direction, size, log_p, p)

    monkeypatch.setattr(implicit_batch, "_move_logs", record)
    u, p, _ = solve(batch, solve_batch)
    assert min(sizes) < 1
    assert len(sizes) < 100
    expected_u, expected, _ = solve(batch)
    np.testing.assert_allclose(u, expected_u, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(p, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("shape", "spread", "seed"), [((4, 3, 3), 1.0, 6), ((8, 10, 3), 30.0, 147)]
)
def test_convergence_does_not_stall(shape, spread, seed):
    """Two features only, at one large rate for all."""
    batch = make_batch(seed, *shape, 1e6, spread, seed % 2 == 0, d=2)
    solve(batch._replace(A=np.full(shape[0], 1e6)))
