"""The implicit update of a mini-batch against a minimiser that knows vectors and no equation."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest

from sklearn_xc._compile.jit import kernel
from sklearn_xc.softmax.kernels.implicit_batch import N_WORK, PRECISION, ScoreStep, solve_batch
from sklearn_xc.softmax.kernels.implicit_step import solve_step

compiled_step = kernel(solve_step)


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


def solve(batch):
    """Return the new u, p and the weights it moves W to."""
    step = step_of(batch)
    n, m = step.q.shape
    p, totals = np.full((n, m), np.nan), np.full(n, np.nan)
    worst = solve_batch(step, p, totals, np.empty((N_WORK, n, m)), PRECISION)
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


@pytest.mark.parametrize(
    ("n_classes", "m", "with_ridge", "spread"),
    [
        (2, 1, False, 3.0),
        (2, 1, True, 30.0),
        (2, 2, True, 0.1),
        (2, 2, False, 30.0),
        (3, 1, True, 0.1),
        (3, 2, False, 30.0),
        (3, 3, True, 3.0),
        (10, 4, False, 3.0),
        (10, 4, True, 30.0),
    ],
)
def test_equals_the_minimiser(n_classes, m, with_ridge, spread):
    for seed in range(6):
        n = [1, 2, 3, 5, 8, 8][seed]
        scale = 1e3 if spread < 30 else 30.0
        assert_is_minimum(make_batch(seed, n, n_classes, m, scale, spread, with_ridge))


@pytest.mark.parametrize("targets", ["none", "all", "one", "same outside", "same inside"])
def test_targets_among_the_sampled_classes(targets):
    for seed in range(4):
        batch = make_batch(seed, 6, 10, 4, with_ridge=seed % 2 == 0)
        inside, outside = batch.drawn, np.setdiff1d(np.arange(10), batch.drawn)
        y = {
            "none": outside[[0, 1, 2, 3, 4, 5]],
            "all": inside[[0, 1, 2, 3, 0, 2]],
            "one": np.append(outside[:5], inside[1]),
            "same outside": np.full(6, outside[0]),
            "same inside": np.full(6, inside[2]),
        }[targets]
        assert_is_minimum(batch._replace(y=y))


@pytest.mark.parametrize(
    ("m", "with_ridge", "spread"),
    [(1, True, 1.0), (1, False, 300.0), (3, False, 30.0), (3, True, 300.0)],
)
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


@pytest.mark.parametrize(
    ("shape", "spread", "seed"), [((4, 3, 3), 1.0, 6), ((8, 10, 3), 30.0, 147)]
)
def test_convergence_does_not_stall(shape, spread, seed):
    """Two features only, at one large rate for all."""
    batch = make_batch(seed, *shape, 1e6, spread, seed % 2 == 0, d=2)
    solve(batch._replace(A=np.full(shape[0], 1e6)))
