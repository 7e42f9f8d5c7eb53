"""Single steps against a slow twin, and their mean against the gradient of what they minimise."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
import scipy.special

from sklearn_xc._compile.arithmetic import sampling
from sklearn_xc._compile.arithmetic.sampling import ClassSampler, draw_negatives, mix_key
from sklearn_xc._compile.jit import kernel
from sklearn_xc._input.data import read_only
from sklearn_xc.softmax.kernels.epoch import SMALLEST_SCALE, softmax_kernels
from sklearn_xc.softmax.kernels.passes import Draws, Model, Rates, Visits
from sklearn_xc.softmax.kernels.rules import RULES
from sklearn_xc.softmax.sampling import expected_touches

K, D = 6, 7
#: What steps of intercepts are multiplied by.
INTERCEPT_RATE = 0.3
#: What the rules are told.
SETTINGS = {"umax": (1.0,), "raman": (1.0,)}


def make_data(dtype=np.float64, weighted=True, n_classes=K):
    """Return 7 rows, two of them empty and two the same, and 11 pairs."""
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(7, D)) * (rng.random((7, D)) < 0.6)
    dense[[2, 6]] = 0.0
    dense[4] = dense[3]
    X = sp.csr_array(dense.astype(dtype))
    rows = np.array([0, 0, 1, 2, 3, 4, 4, 5, 6, 5, 1], np.int32)
    weight = rng.uniform(0.2, 2.0, len(rows)) if weighted else np.ones(len(rows))
    return SimpleNamespace(
        arrays=(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data),
        dense=X.toarray().astype(np.float64),
        squared_norms=(X.toarray().astype(np.float64) ** 2).sum(axis=1),
        rows=rows,
        classes=rng.integers(0, n_classes, len(rows)).astype(np.int32),
        weight=weight / weight.mean(),
        order=rng.permutation(len(rows)),
        V=(0.5 * rng.normal(size=(n_classes, D))).astype(dtype),
        scale=rng.uniform(0.5, 1.0, n_classes),
        intercept=np.random.default_rng(7).normal(size=n_classes),
        intercept_rate=INTERCEPT_RATE,
        u=rng.uniform(0.1, 3.0, len(rows)),
        n=len(rows),
        hard=np.empty((len(rows), 0), np.int32),
        sampler=ClassSampler.of(np.ones(n_classes), rng.permutation(n_classes)),
    )


def with_uneven_shares(data):
    """Draw one class in half of the steps with two draws, and another rarely."""
    shares = np.full(len(data.V), 1.0)
    shares[1], shares[2] = 3.0, 0.2
    data.sampler = ClassSampler.of(shares, np.arange(len(shares))[::-1])
    return data


def with_hard(data, n_hard):
    """Give each pair some of the other classes."""
    rng = np.random.default_rng(n_hard)
    others = [np.delete(np.arange(len(data.V)), y) for y in data.classes]
    data.hard = np.array([rng.permutation(each)[:n_hard] for each in others], np.int32)
    return data


def make_beta(data, m, n_classes=K):
    """Return n over the number of the n pairs whose step is expected to touch each class."""
    counts = np.bincount(data.classes, minlength=n_classes)
    visits = np.ones(data.n, np.int64)
    problem = SimpleNamespace(
        counts=counts, classes=data.classes, visits=visits, n_classes=n_classes
    )
    return data.n / expected_touches(problem, data.hard, data.sampler, m)


def run(
    data, method, first, last, *, rate, slowing, ridge, m, setting=None, key=None, function=None
):
    """Return the sum of the objectives and, after the steps, all that moves."""
    model = Model(*(x.copy() for x in (data.V, data.scale, data.intercept, data.u)))
    V, scale, intercept, u = model
    rule = RULES[method]
    told = SETTINGS.get(method) if setting is None else setting
    if rule.settings:
        rule = rule._replace(settings=type(rule.settings)(*told))
    inputs = (data.squared_norms, data.rows, data.classes, data.weight, data.order)
    visits = Visits(tuple(map(read_only, data.arrays)), *map(read_only, inputs))
    objective = (softmax_kernels(rule.step) if function is None else function)(
        visits,
        first,
        last,
        model,
        Rates(rate, float(slowing), ridge, data.intercept_rate),
        read_only(make_beta(data, m, len(V))),
        Draws(data.sampler, m, mix_key(0, 0) if key is None else key),
        read_only(data.hard),
        rule.settings,
    )
    return objective, V, scale, u, intercept


# The twin: rules of plain scores s = x.w + b, returning the new u, what moves away from each
# sampled class and towards the target.


def _sigmoid(z):
    return scipy.special.expit(z)


def slow_umax(A, alpha, norm, s_y, c_y, b_y, s, c, b, u, setting):
    proven = np.log(1 + np.exp(s - s_y).sum())
    if u < proven - setting[0]:
        u = proven
    p = A * alpha * np.exp(s - s_y - u)
    return max(u - A * (1 - np.exp(-u)) + p.sum(), 0), p, p.sum()


def slow_implicit(A, alpha, norm, s_y, c_y, b_y, s, c, b, u, setting):
    """Solve for u between bounds, where for each u the sum of p is found between bounds."""

    def each(total, u_new):
        z = np.log(A * alpha) + (s - b) / c + b - u_new
        z -= (s_y - b_y) / c_y + b_y + total * norm / c_y
        if norm == 0:
            return np.exp(z)
        return c / norm * scipy.special.wrightomega(z + np.log(norm / c)).real

    def total_at(u_new):
        high = each(0.0, u_new).sum() + 1e-300
        return scipy.optimize.brentq(
            lambda total: total - each(total, u_new).sum(), 0, high, xtol=1e-300, rtol=1e-14
        )

    def condition(u_new):
        return A * -np.expm1(-u_new) + u_new - u - total_at(u_new)

    new_u = scipy.optimize.brentq(condition, -1e-9, u + total_at(0.0) + 1e-9, xtol=1e-15)
    total = total_at(new_u)
    return new_u, each(total, new_u), total


def slow_ove(A, alpha, norm, s_y, c_y, b_y, s, c, b, u, setting):
    p = A * alpha * _sigmoid(s - s_y)
    return u, p, p.sum()


def slow_nce(A, alpha, norm, s_y, c_y, b_y, s, c, b, u, setting):
    """Each of m classes out of K - 1 comes m / (K - 1) times: their odds are alpha exp(s)."""
    odds = alpha * np.exp(s)
    return u, A * odds / (1 + odds), A / (1 + alpha[0] * np.exp(s_y))


def slow_is(A, alpha, norm, s_y, c_y, b_y, s, c, b, u, setting):
    odds = alpha * np.exp(s - s_y)
    p = A * odds / (1 + odds.sum())
    return u, p, p.sum()


def slow_scent(A, alpha, norm, s_y, c_y, b_y, s, c, b, u, setting):
    odds = alpha * np.exp(s - s_y)
    normaliser = (np.exp(u) + 1 + odds.sum()) / 2
    return np.log(normaliser), A * odds / normaliser, A * odds.sum() / normaliser


def slow_raman(A, alpha, norm, s_y, c_y, b_y, s, c, b, v, setting):
    """The gradient in v and the scores of ``v - s_y + exp(s_y - v) + sum alpha exp(s - v)``."""
    proven = np.log(np.exp(s_y) + np.exp(s).sum())
    v = proven if v < proven - setting[0] else v
    own, p = A * np.exp(s_y - v), A * alpha * np.exp(s - v)
    return v - A + own + p.sum(), p, A - own


SLOW_RULES = {
    "umax": slow_umax,
    "implicit": slow_implicit,
    "ove": slow_ove,
    "nce": slow_nce,
    "is": slow_is,
    "scent": slow_scent,
    "raman": slow_raman,
}
#: Those of ``ImplicitSoftmaxSGD`` and, by default, ``SoftmaxUMax``.
METHODS = ("umax", "implicit")


@kernel
def draw(sampler, key, step, target, m, drawn, alpha, n_taken):
    return draw_negatives(sampler, key, step, target, m, drawn, alpha, n_taken)


def draws_of(data, m):
    """Return the classes of each step, the hard ones first, and what each counts for."""
    steps = []
    for t, pair in enumerate(data.order):
        hard = data.hard[pair]
        drawn, alpha = np.empty(len(hard) + m, np.int64), np.ones(len(hard) + m)
        drawn[: len(hard)] = hard
        target = np.int64(data.classes[pair])
        n = draw(data.sampler, mix_key(0, 0), t, target, m, drawn, alpha, len(hard))
        steps.append((drawn[:n], alpha[:n]))
    return steps


def slow_steps(data, method, first, last, *, rate, slowing, ridge, m, setting=None):
    """Return the sum of the objectives and, after the steps, all weights, u and intercepts."""
    W, u = data.V.astype(np.float64) * data.scale[:, None], data.u.copy()
    intercept, h = data.intercept.copy(), data.intercept_rate
    setting = SETTINGS.get(method) if setting is None else setting
    beta = make_beta(data, m, len(W))
    draws, objective = draws_of(data, m), 0.0
    for t in range(first, last):
        pair, (drawn, alpha) = data.order[t], draws[t]
        x, y, weight = data.dense[data.rows[pair]], data.classes[pair], data.weight[pair]
        now = rate / (1 + slowing * t)
        c = 1 + now * ridge * beta
        b_y, b = intercept[y], intercept[drawn]
        s_y, s, old = W[y] @ x + b_y, W[drawn] @ x + b, u[pair]
        sampled = alpha @ np.exp(np.minimum(s - s_y - old, 700))
        objective += weight * (old + np.exp(-old) - 1 + sampled)
        u[pair], p, gain = SLOW_RULES[method](
            now * weight, alpha, x @ x + h, s_y, c[y], b_y, s, c[drawn], b, old, setting
        )
        intercept[drawn] -= h * p / c[drawn]
        intercept[y] += h * gain / c[y]
        W[drawn] = (W[drawn] - np.outer(p, x)) / c[drawn][:, None]
        W[y] = (W[y] + gain * x) / c[y]
    return objective, W, u, intercept


def assert_equals_twin(data, method, first=0, last=None, tol=1e-10, **settings):
    last = data.n if last is None else last
    objective, V, scale, u, intercept = run(data, method, first, last, **settings)
    expected = slow_steps(data, method, first, last, **settings)
    W = V * scale[:, None]
    np.testing.assert_allclose(objective, expected[0], rtol=tol)
    np.testing.assert_allclose(W, expected[1], rtol=tol, atol=tol * np.abs(expected[1]).max())
    np.testing.assert_allclose(u, expected[2], rtol=tol, atol=tol)
    np.testing.assert_allclose(intercept, expected[3], rtol=tol, atol=tol)
    return V, scale


each_method = pytest.mark.parametrize("method", METHODS)


@pytest.mark.parametrize(
    ("method", "n_hard", "m"),
    [("umax", 1, 5), ("umax", 2, 2), ("implicit", 2, 2), ("implicit", 5, 1)],
)
def test_hard_negatives_equal_the_twin(method, n_hard, m):
    """Of 5 other classes, so that some steps have none to sample."""
    data = with_hard(make_data(), n_hard)
    settings = {"rate": 0.3, "slowing": 0.01, "ridge": 0.1, "m": m}
    assert_equals_twin(data, method, **settings)
    assert_equals_twin(with_uneven_shares(data), method, 4, 9, **settings)


@pytest.mark.parametrize(
    ("method", "m", "ridge"),
    [
        *((method, *how) for method in METHODS for how in ((1, 0.0), (2, 0.1), (5, 0.1))),
        *((method, 2, 0.1) for method in SLOW_RULES if method not in METHODS),
    ],
)
def test_equals_the_twin(method, m, ridge):
    data, settings = make_data(), {"slowing": 0.01, "ridge": ridge, "m": m}
    assert_equals_twin(data, method, rate=0.3, **settings)
    assert_equals_twin(with_uneven_shares(data), method, rate=0.03, **settings)


@each_method
def test_equals_the_twin_in_float32(method):
    data = make_data(np.float32)
    assert_equals_twin(data, method, rate=0.3, slowing=0.0, ridge=0.1, m=3, tol=3e-5)


@pytest.mark.parametrize(("method", "dtype"), [("umax", np.float32), ("implicit", np.float64)])
def test_small_scales_go_into_the_weights(method, dtype):
    data = make_data(dtype)
    data.scale[:] = 2 * SMALLEST_SCALE
    data.V = (data.V / data.scale[:, None]).astype(dtype)
    tol = 1e-10 if dtype == np.float64 else 1e-4
    settings = {"rate": 0.3, "slowing": 0.0, "ridge": 10.0, "m": 3}
    V, scale = assert_equals_twin(data, method, 0, 1, tol=tol, **settings)
    assert (scale == 1).any()
    assert (scale >= SMALLEST_SCALE).all()
    assert (np.abs(V[scale == 1]) < 100).all()


# The mean of small steps is the gradient. The loop runs in Python, with draws of our choice.

RATE = 1e-8
N_DRAWN = 2


def step_from(monkeypatch, data, method, pair, start, ridge, setting):
    """Return the change of weights, intercepts and u by a step drawn from a start, per rate."""
    monkeypatch.setattr(sampling, "random_unit", lambda key, step: start)
    data.order = np.arange(data.n)
    _, V, scale, u, b = run(
        data,
        method,
        pair,
        pair + 1,
        rate=RATE,
        slowing=0.0,
        ridge=ridge,
        m=N_DRAWN,
        setting=setting,
        key=np.uint64(0),
        function=softmax_kernels(RULES[method].step).py_func,
    )
    W = data.V * data.scale[:, None]
    by_b = (b - data.intercept) / (RATE * data.intercept_rate)
    return (V * scale[:, None] - W) / RATE, by_b, (u - data.u) / RATE


def starts_of(data, target):
    """Return the middles of all intervals of starts that draw the same classes; and lengths."""
    line = np.append(data.sampler.start, 1.0)
    own = data.sampler.place[target]
    gap = line[own + 1] - line[own]
    line = np.where(np.arange(len(line)) > own, line - gap, line)  # without the target
    ends = np.unique(np.concatenate([[0, 1], (line * N_DRAWN / (1 - gap)) % 1.0]))
    return 0.5 * (ends[1:] + ends[:-1]), np.diff(ends)


def double_sum_gradient(data, W, u, alpha):
    scores = data.dense[data.rows] @ W.T + data.intercept
    own = scores[np.arange(data.n), data.classes]
    others = data.weight[:, None] * np.exp(scores - own[:, None] - u[:, None])
    others[np.arange(data.n), data.classes] = 0
    by_u = data.weight * (1 - np.exp(-u)) - others.sum(axis=1)
    others[np.arange(data.n), data.classes] = -others.sum(axis=1)
    return others.T @ data.dense[data.rows] + alpha * W, others.sum(axis=0), by_u


def mean_step(monkeypatch, data, method, ridge, setting):
    """Return the mean change over all pairs and all draws of classes."""
    total_W, total_u = np.zeros_like(data.V), np.zeros_like(data.u)
    total_b = np.zeros_like(data.intercept)
    for pair in range(data.n):
        for start, length in zip(*starts_of(data, data.classes[pair]), strict=True):
            by_W, by_b, by_u = step_from(monkeypatch, data, method, pair, start, ridge, setting)
            total_W += by_W * length
            total_b += by_b * length
            total_u += by_u * length
    return total_W / data.n, total_b / data.n, total_u / data.n


def assert_gradient(data, ridge, by_W, by_b, by_u):
    """Compare mean steps, n times, with the gradient of the double sum."""
    W = data.V * data.scale[:, None]
    gradient = double_sum_gradient(data, W, data.u, ridge * data.n)
    for found, expected in zip((by_W, by_b, by_u), gradient, strict=True):
        np.testing.assert_allclose(-found * data.n, expected, rtol=1e-5, atol=1e-5)


each_gradient = pytest.mark.parametrize(
    ("method", "setting"), [("umax", (np.inf,)), ("implicit", None)]
)


@each_gradient
@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_steps_are_unbiased(monkeypatch, method, setting, ridge):
    """The rate is in units of 1 / n: n times the mean step is the gradient of the sum."""
    data = with_uneven_shares(make_data())
    assert_gradient(data, ridge, *mean_step(monkeypatch, data, method, ridge, setting))


@each_gradient
def test_steps_with_hard_negatives_are_unbiased(monkeypatch, method, setting):
    """For any hard negatives, the same ones for each pair among them."""
    for same, n_hard, ridge in ((False, 1, 0.5), (True, 1, 0.5), (False, 5, 0.0)):
        data = with_uneven_shares(with_hard(make_data(), n_hard))
        if same:
            own = data.classes[:, None]
            first = np.arange(n_hard, dtype=np.int32)
            data.hard = (first + (first >= own)).astype(np.int32)
        assert_gradient(data, ridge, *mean_step(monkeypatch, data, method, ridge, setting))
