"""The implicit update against a minimiser that knows vectors and no equation."""

import itertools

import numpy as np
import pytest

from sklearn_xc._compile.jit import kernel
from sklearn_xc.softmax.kernels.implicit_step import TINY_NORM, solve_step

compiled_step = kernel(solve_step)

SMALLEST_LOG = -700.0


def solve(A, alpha, squared_norm, q_y, c_y, q, c, u):
    """Return u, p and P of several updates, the arguments one row each."""
    u = np.array(u, np.float64)
    p, total = np.full(q.shape, np.nan), np.full(len(u), np.nan)
    for i, step in enumerate(zip(A, alpha, squared_norm, q_y, c_y, q, c, u, p, strict=True)):
        u[i], total[i] = compiled_step(*step)
    return u, p, total


def objective(at, A, alpha, x, u_old, W_old, ridge):
    """Return value, gradient and Hessian of the proximal objective; row 0 of W is the target."""
    u, W = at[0], at[1:].reshape(W_old.shape)
    m, d = len(alpha), len(x)
    e = A * alpha * np.exp(W[1:] @ x - W[0] @ x - u)
    value = A * (u + np.exp(-u)) + e.sum() + (u - u_old) ** 2 / 2
    value += (((W - W_old) ** 2).sum() + (ridge[:, None] * W**2).sum()) / 2
    # How the exponent of each class moves with all variables.
    rows = np.zeros((m, 1 + (m + 1) * d))
    rows[:, 0] = -1.0
    rows[:, 1 : 1 + d] = -x
    for k in range(m):
        rows[k, 1 + (k + 1) * d : 1 + (k + 2) * d] = x
    gradient = rows.T @ e + np.concatenate(
        [[A * -np.expm1(-u) + u - u_old], (W - W_old + ridge[:, None] * W).ravel()]
    )
    hessian = (rows.T * e) @ rows
    hessian += np.diag(np.concatenate([[1 + A * np.exp(-u)], np.repeat(1 + ridge, d)]))
    return value, gradient, hessian


def minimise(A, alpha, x, u_old, W_old, ridge):
    """Return the u and W of the minimum, by damped Newton."""
    arguments = A, alpha, x, u_old, W_old, ridge
    # With a u that leaves no exponential large.
    u = max(u_old, (np.log(A * alpha) + W_old[1:] @ x - W_old[0] @ x).max())
    at = np.concatenate([[u], W_old.ravel()])
    value, gradient, hessian = objective(at, *arguments)
    for _ in range(500):
        step = -np.linalg.solve(hessian, gradient)
        size = 1.0
        while True:
            with np.errstate(over="ignore", invalid="ignore"):
                trial = objective(at + size * step, *arguments)
            if trial[0] <= value + 1e-14 * abs(value):
                break
            size /= 2
        at = at + size * step
        value, gradient, hessian = trial
        if size == 1 and np.abs(step).max() <= 1e-13 * max(1, np.abs(at).max()):
            break
    else:
        raise AssertionError("the reference does not converge")
    return at[0], at[1:].reshape(W_old.shape)


def make_case(rng, m, spread, largest_scale, with_ridge, norm):
    """Return (A, alpha, x, u~, W~, ridge), scores within +-spread."""
    A = 10 ** rng.uniform(-4, np.log10(largest_scale))
    n_classes = m + 1 + rng.integers(0, 50)
    alpha = np.full(m, (n_classes - 1) / m) * rng.uniform(0.5, 2, m) ** rng.integers(0, 2)
    x = rng.normal(size=3)
    x *= norm / np.linalg.norm(x)
    W = rng.normal(size=(m + 1, 3))
    scores = rng.uniform(-spread, spread, m + 1)
    W += np.outer((scores - W @ x) / norm**2, x)
    ridge = 10 ** rng.uniform(-3, 1, m + 1) * with_ridge
    u_old = rng.choice([0.0, 1e-3, np.log(n_classes), 20.0])
    return A, alpha, x, u_old, W, ridge


def update(A, alpha, x, u_old, W, ridge, intercept=0.0):
    """Return u, all weights and p of the kernel."""
    c = 1 + ridge
    q = W @ x / c + intercept
    one = np.ones(1)
    u, p, total = solve(
        A * one,
        alpha[None],
        x @ x * one,
        q[0] * one,
        c[0] * one,
        q[None, 1:],
        c[None, 1:],
        [u_old],
    )
    moved = np.vstack([W[0] + total[0] * x, W[1:] - np.outer(p[0], x)]) / c[:, None]
    np.testing.assert_allclose(total, p.sum(axis=1), rtol=1e-14)
    return u[0], moved, p[0]


def assert_is_minimum(case, rtol=1e-8, intercept=None):
    """Compare; in the objective, an intercept is a factor on what a class counts for."""
    u, W, p = update(*case, 0.0 if intercept is None else intercept)
    if intercept is not None:
        case = case[0], case[1] * np.exp(intercept[1:] - intercept[0]), *case[2:]
    A, alpha, x, _, W_old, _ = case
    expected_u, expected = minimise(*case)
    np.testing.assert_allclose(u, expected_u, rtol=rtol, atol=1e-14)
    np.testing.assert_allclose(W, expected, rtol=rtol, atol=rtol * np.abs(expected).max())
    # Where P is large, exponents are differences of large numbers, in the reference too.
    exponents = expected[1:] @ x - expected[0] @ x - expected_u
    rounding = 1e-13 * max(1, np.abs(W_old).max() * np.abs(x).sum(), np.abs(exponents).max())
    np.testing.assert_allclose(p, A * alpha * np.exp(exponents), rtol=rtol + rounding)


@pytest.mark.parametrize(
    ("m", "spread", "with_ridge"),  # m = 1 and 2 with all others sampled: K = 2 and 3
    [
        (1, 0.1, True),
        (1, 30.0, False),
        (2, 3.0, False),
        (2, 30.0, True),
        (5, 0.1, False),
        (5, 3.0, True),
        (5, 30.0, True),
    ],
)
def test_equals_the_minimiser(m, spread, with_ridge):
    rng = np.random.default_rng(m)
    for _ in range(25):
        norm = rng.choice([0.3, 1.0, 3.0])
        assert_is_minimum(make_case(rng, m, spread, 1e3, with_ridge, norm))


@pytest.mark.parametrize(("norm", "with_ridge"), [(0.0, False), (0.0, True), (1e-120, True)])
def test_rows_without_features(norm, with_ridge):
    """Weights only shrink; u goes its own way."""
    rng = np.random.default_rng(6)
    for scale, (m, u_old) in itertools.product(
        [1e-4, 0.1, 1.0, 1e3], [(1, 0.0), (3, 1e-3), (1, 1.0), (3, 8.0)]
    ):
        x = np.full(3, norm)
        assert x @ x < TINY_NORM
        ridge = rng.uniform(0, 1, m + 1) * with_ridge
        case = scale, np.full(m, 7.0), x, u_old, rng.normal(size=(m + 1, 3)), ridge
        assert_is_minimum(case)


@pytest.mark.parametrize(
    ("norm", "with_ridge", "m"),
    [(0.0, True, 3), (1e-120, True, 1), (1.0, True, 3), (1.0, False, 1)],
)
def test_intercepts(norm, with_ridge, m):
    """The ridge does not shrink them; a row without features scores them and nothing else."""
    rng = np.random.default_rng(8)
    for scale, u_old, spread in itertools.product([1e-3, 1.0, 1e3], [0.0, 1.0, 8.0], [1.0, 15.0]):
        W, x = rng.normal(size=(m + 1, 3)), np.array([norm, 0.0, 0.0])
        ridge = rng.uniform(0, 1, m + 1) * with_ridge
        intercept = rng.uniform(-spread, spread, m + 1)
        case = scale, np.full(m, 7.0), x, u_old, W, ridge
        assert_is_minimum(case, intercept=intercept)


def hard_cases(m, n=300):
    """Return arguments of `solve` at scores up to 700 and scales up to 1e6."""
    rng = np.random.default_rng(m)
    A = 10 ** rng.uniform(-3, 6, n)
    A[::5] = 1e6
    spread = rng.choice([1.0, 30.0, 700.0], n)
    q_y, q = rng.uniform(-1, 1, n) * spread, rng.uniform(-1, 1, (n, m)) * spread[:, None]
    q_y[::7], q[::7] = -700.0, 700.0
    q_y[1::7], q[1::7] = 700.0, -700.0
    c_y, c = 1 + 10 ** rng.uniform(-6, 0, n), 1 + 10 ** rng.uniform(-6, 0, (n, m))
    squared_norm = 10 ** rng.uniform(-1, 2, n)
    squared_norm[::2] = 1.0
    alpha = np.repeat(10 ** rng.uniform(0, 4, n)[:, None], m, axis=1)
    u = 10 ** rng.uniform(-2, 2.5, n)
    return A, alpha, squared_norm, q_y, c_y, q, c, u


def largest_violation(mp, case, u, p, total):
    """Return how far the optimality equations of one update are from 0, over their terms."""
    A, alpha, squared_norm, q_y, c_y, q, c, u_old = case
    A, N, u, P = mp.mpf(A), mp.mpf(squared_norm), mp.mpf(u), mp.fsum(map(mp.mpf, p))
    equations = [[A * -mp.expm1(-u), u, -mp.mpf(u_old), -P], [P, -mp.mpf(total)]]
    own = mp.mpf(q_y) + P * N / mp.mpf(c_y)
    for k in range(len(p)):
        score = mp.mpf(q[k]) - mp.mpf(p[k]) * N / mp.mpf(c[k])
        exponent = mp.log(A * mp.mpf(alpha[k])) + score - own - u
        if exponent < SMALLEST_LOG:  # p is 0 or next to it
            assert p[k] < 1e-300
        else:
            shift = mp.mpf(p[k]) * N / mp.mpf(c[k])
            terms = mp.log(A * mp.mpf(alpha[k])), mp.mpf(q[k]), -shift, -own, -u
            equations.append([*terms, -mp.log(mp.mpf(p[k]))])
    worst = mp.mpf(0)
    for terms in equations:
        size = max(abs(term) for term in terms)
        if size > 1e-280:
            worst = max(worst, abs(mp.fsum(terms)) / size)
    return worst


@pytest.mark.parametrize("m", [1, 4])
def test_optimality_at_large_scores_and_scales(m):
    mp = pytest.importorskip("mpmath").mp
    cases = hard_cases(m)
    u, p, total = solve(*cases)
    assert np.isfinite(u).all()
    assert np.isfinite(p).all()
    assert (u >= 0).all()
    with mp.workdps(60):
        violations = [
            largest_violation(mp, [part[i] for part in cases], u[i], p[i], total[i])
            for i in range(len(u))
        ]
    assert max(violations) <= 1e-10
