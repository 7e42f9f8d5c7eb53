"""Steps of mini-batches against numpy, and their mean against the gradient."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from asv_bench.softmax.biased_softmax import explicit_batch_step
from sklearn_xc._compile.arithmetic import sampling
from sklearn_xc._compile.arithmetic.sampling import (
    ClassSampler,
    class_shares,
    draw_classes,
    mix_key,
)
from sklearn_xc._compile.jit import kernel
from sklearn_xc._input.data import read_only
from sklearn_xc._weights.kernels import class_scores
from sklearn_xc.softmax.kernels.batch import BatchWork, softmax_batch_kernels
from sklearn_xc.softmax.kernels.implicit_batch import N_WORK, PRECISION, ScoreStep, solve_batch
from sklearn_xc.softmax.kernels.passes import Batches, Draws, Model, Rates, Visits
from sklearn_xc.softmax.kernels.rules import RULES

D = 7
KEY = mix_key(0, 0)


@kernel
def draw_step(sampler, step, m, drawn, alpha):
    return draw_classes(sampler, KEY, step, m, drawn, alpha)


#: What steps of intercepts are multiplied by.
INTERCEPT_RATE = 0.3


def make_data(n_classes, dtype=np.float64, seed=0):
    """Return 7 rows, two of them empty and two the same, and 12 pairs, two of them the same."""
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(7, D)) * (rng.random((7, D)) < 0.6)
    dense[[2, 6]] = 0.0
    dense[4] = dense[3]
    X = sp.csr_array(dense.astype(dtype))
    rows = np.array([0, 0, 0, 1, 2, 3, 4, 4, 5, 6, 5, 1], np.int32)
    classes = rng.integers(0, n_classes, len(rows)).astype(np.int32)
    classes[1] = classes[0]
    weight = rng.uniform(0.2, 2.0, len(rows))
    return SimpleNamespace(
        arrays=(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data),
        dense=X.toarray().astype(np.float64),
        rows=rows,
        classes=classes,
        counts=np.bincount(classes, minlength=n_classes),
        weight=weight / weight.mean(),
        order=rng.permutation(len(rows)),
        V=(0.5 * rng.normal(size=(n_classes, D))).astype(dtype),
        scale=rng.uniform(0.5, 1.0, n_classes),
        intercept=np.random.default_rng(7).normal(size=n_classes),
        u=rng.uniform(0.1, 3.0, len(rows)),
        n=len(rows),
        sampler=ClassSampler.of(np.ones(n_classes), rng.permutation(n_classes)),
    )


def with_uneven_shares(data):
    """Draw one class in half of the steps with two draws, and another rarely."""
    shares = np.full(len(data.V), 1.0)
    shares[1], shares[0] = 3.0, 0.2
    data.sampler = ClassSampler.of(shares, np.arange(len(shares))[::-1])
    return data


def kernels(method):
    rule = RULES[method]
    return softmax_batch_kernels(rule.batch_step or explicit_batch_step(rule.step))


def run(data, method, bounds, first, last, *, rate, slowing, ridge, m, function=None):
    """Return the sum of the objectives and, after the steps, all that moves."""
    model = Model(*(x.copy() for x in (data.V, data.scale, data.intercept, data.u)))
    function = kernels(method) if function is None else function
    norms = (data.dense**2).sum(axis=1)
    inputs = norms, data.rows, data.classes, data.weight, data.order
    visits = Visits(tuple(map(read_only, data.arrays)), *map(read_only, inputs))
    batches = Batches(read_only(np.array(bounds)), read_only(data.counts), data.n)
    rates, draws = Rates(rate, slowing, ridge, INTERCEPT_RATE), Draws(data.sampler, m, KEY)
    work = BatchWork.for_pass(visits, batches, m, data.V)
    objective = function(visits, batches, first, last, model, rates, draws, work)
    return objective, model.V, model.scale, model.u, model.intercept


# An intrinsic of the kernels, for loops that run in Python.


def lowest_bit(word):
    return np.uint64((int(word) & -int(word)).bit_length() - 1)


def slow_shrinkage(data, size, m, now, ridge):
    """Return c of each class: the ridge comes as rarely as the class, and as much stronger."""
    share = np.minimum(1.0, m * class_shares(data.sampler))
    absent = np.array([math.comb(data.n - k, size) / math.comb(data.n, size) for k in data.counts])
    return 1 + now * ridge / (1 - absent * (1 - share))


def slow_is_moves(A, alpha, sampled, s, own):
    """Return p of importance sampling, each pair from the same weights."""
    odds = np.where(sampled, alpha * np.exp(s - own[:, None]), 0.0)
    return A[:, None] * odds / (1 + odds.sum(axis=1, keepdims=True))


def slow_implicit_moves(A, alpha, X, y, drawn, s, own, c, intercept, u):
    """Return the new u and p of the implicit update, as its own function finds them."""
    place = np.array([drawn.tolist().index(k) if k in drawn else -1 for k in y])
    group = np.array([y.tolist().index(k) for k in y])
    u, p, totals = u.copy(), np.empty(s.shape), np.empty(len(y))
    b, b_y = intercept[drawn], intercept[y]
    q, q_y = (s - b) / c[drawn] + b, (own - b_y) / c[y] + b_y
    gram = X @ X.T + INTERCEPT_RATE
    step = ScoreStep(A, alpha, gram, place, group, q, c[drawn], q_y, c[y], u)
    solve_batch(step, p, totals, np.empty((N_WORK, *s.shape)), PRECISION)
    return u, p


def slow_batches(data, method, bounds, first, last, *, rate, slowing, ridge, m):
    W, u = data.V.astype(np.float64) * data.scale[:, None], data.u.copy()
    intercept = data.intercept.copy()
    objective, overlaps = 0.0, 0
    for step in range(first, last):
        pairs = data.order[bounds[step] : bounds[step + 1]]
        drawn, alpha = np.empty(m, np.int64), np.empty(m)
        n_drawn = draw_step(data.sampler, step, m, drawn, alpha)
        drawn, alpha = drawn[:n_drawn], alpha[:n_drawn]
        now = rate / (1 + slowing * bounds[step])
        c = slow_shrinkage(data, len(pairs), m, now, ridge)
        X, y, weight = data.dense[data.rows[pairs]], data.classes[pairs], data.weight[pairs]
        s = X @ W[drawn].T + intercept[drawn]
        own = (X * W[y]).sum(axis=1) + intercept[y]
        sampled = drawn[None] != y[:, None]
        overlaps += (~sampled).sum()
        old, A = u[pairs], now * weight / len(pairs)
        terms = np.where(sampled, alpha * np.exp(s - own[:, None] - old[:, None]), 0).sum(axis=1)
        objective += weight @ (old + np.exp(-old) - 1 + terms)
        if method == "implicit":
            u[pairs], p = slow_implicit_moves(A, alpha, X, y, drawn, s, own, c, intercept, old)
        else:
            p = slow_is_moves(A, alpha, sampled, s, own)
        moved = W.copy()
        for i in range(len(pairs)):
            moved[drawn] -= np.outer(p[i], X[i])
            moved[y[i]] += p[i].sum() * X[i]
            intercept[drawn] -= INTERCEPT_RATE * p[i] / c[drawn]
            intercept[y[i]] += INTERCEPT_RATE * p[i].sum() / c[y[i]]
        named = np.union1d(drawn, y)
        moved[named] /= c[named][:, None]
        W = moved
    return objective, W, u, intercept, overlaps


def assert_equals_twin(data, method, bounds, first=0, last=None, tol=1e-9, **settings):
    """Compare; return V, scale and how many sampled classes were targets."""
    last = len(bounds) - 1 if last is None else last
    objective, V, scale, u, b = run(data, method, bounds, first, last, **settings)
    expected, W, expected_u, expected_b, overlaps = slow_batches(
        data, method, bounds, first, last, **settings
    )
    np.testing.assert_allclose(objective, expected, rtol=tol)
    np.testing.assert_allclose(b, expected_b, rtol=tol, atol=tol)
    np.testing.assert_allclose(V * scale[:, None], W, rtol=tol, atol=tol * np.abs(W).max())
    np.testing.assert_allclose(u, expected_u, rtol=tol, atol=tol)
    return V, scale, overlaps


@pytest.mark.parametrize(
    ("n_classes", "m", "ridge", "size"),
    [(2, 1, 0.0, 5), (2, 2, 0.3, 2), (3, 3, 0.3, 12), (12, 9, 0.0, 12), (20, 1, 0.3, 12)],
)
def test_one_step_equals_numpy(n_classes, m, ridge, size):
    """All of 12 pairs hold repeated rows, repeated pairs and empty rows."""
    data = make_data(n_classes)
    _, _, overlaps = assert_equals_twin(
        data, "implicit", [0, size], rate=2.0, slowing=0.0, ridge=ridge, m=m
    )
    if m == n_classes:
        assert overlaps == size


@pytest.mark.parametrize(
    ("method", "m"), [("implicit", 1), ("implicit", 4), ("implicit", 9), ("is", 4)]
)
def test_several_steps_of_uneven_sizes(method, m):
    bounds = [0, 1, 4, 9, 12]
    for seed in range(3):
        data = make_data(10, seed=seed)
        settings = {"rate": 3.0, "slowing": 0.2, "ridge": 0.1, "m": m}
        assert_equals_twin(data, method, bounds, **settings)
        assert_equals_twin(with_uneven_shares(data), method, bounds, 1, 3, **settings)


def test_float32():
    data, bounds = make_data(10, np.float32), [0, 5, 9, 12]
    assert_equals_twin(data, "implicit", bounds, rate=2.0, slowing=0.1, ridge=0.1, m=4, tol=1e-4)


@pytest.mark.parametrize(
    ("method", "shares"),
    [
        ("implicit", lambda data: data),
        ("implicit", with_uneven_shares),
        ("is", with_uneven_shares),
    ],
)
def test_the_mean_step_follows_the_gradient(monkeypatch, method, shares):
    """Over all batches and all draws of classes; the loops run in Python, with starts of ours."""
    rate, ridge, size, n_classes, m = 3e-9, 0.5, 2, 4, 2
    data = shares(make_data(n_classes))
    chosen = [0, 1, 3, 5, 6, 9]
    data.rows, data.classes = data.rows[chosen], data.classes[chosen]
    data.weight, data.u, data.n = data.weight[chosen], data.u[chosen], len(chosen)
    data.weight = data.weight / data.weight.mean()
    data.counts = np.bincount(data.classes, minlength=n_classes)
    forced = []
    monkeypatch.setattr(sampling, "random_unit", lambda key, step: forced[-1])
    monkeypatch.setattr(class_scores, "lowest_bit", lowest_bit)
    W = data.V * data.scale[:, None]
    batches = list(itertools.combinations(range(data.n), size))
    ends = np.unique(np.concatenate([[0, 1], (data.sampler.start * m) % 1.0]))
    starts = list(zip(0.5 * (ends[1:] + ends[:-1]), np.diff(ends), strict=True))
    by_W, by_b, by_u = np.zeros_like(W), np.zeros(n_classes), np.zeros(data.n)
    for batch, (start, length) in itertools.product(batches, starts):
        forced.append(start)
        data.order = np.array(batch)
        _, V, scale, u, b = run(
            data,
            method,
            [0, size],
            0,
            1,
            rate=rate,
            slowing=0.0,
            ridge=ridge,
            m=m,
            function=kernels(method).py_func,
        )
        by_W += length * (V * scale[:, None] - W) / rate
        by_b += length * (b - data.intercept) / (rate * INTERCEPT_RATE)
        by_u += length * (u - data.u) / rate
    by_W *= data.n / len(batches)
    by_b *= data.n / len(batches)
    by_u *= data.n / len(batches)

    # The gradient of the double sum, or the mean gradient of sampled losses.
    X = data.dense[data.rows]
    scores = X @ W.T + data.intercept
    relative = scores - scores[np.arange(data.n), data.classes][:, None]
    moves = np.zeros((data.n, n_classes))
    for i, y in enumerate(data.classes):
        if method == "implicit":
            moves[i] = np.exp(relative[i] - data.u[i])
            moves[i, y] = 0
        else:
            for start, length in starts:
                forced.append(start)
                drawn, alpha = np.empty(m, np.int64), np.empty(m)
                n_drawn = draw_classes(data.sampler, KEY, 0, m, drawn, alpha)
                drawn, alpha = drawn[:n_drawn], alpha[:n_drawn]
                others = drawn != y
                odds = alpha[others] * np.exp(relative[i, drawn[others]])
                moves[i, drawn[others]] += length * odds / (1 + odds.sum())
    totals = moves.sum(axis=1)
    moves[np.arange(data.n), data.classes] = -totals
    gradient = (data.weight[:, None] * moves).T @ X + ridge * data.n * W
    np.testing.assert_allclose(-by_W, gradient, rtol=1e-5, atol=1e-5)
    gradient = (data.weight[:, None] * moves).sum(axis=0)
    np.testing.assert_allclose(-by_b, gradient, rtol=1e-5, atol=1e-5)
    expected = data.weight * (1 - np.exp(-data.u) - totals) if method == "implicit" else 0 * by_u
    np.testing.assert_allclose(-by_u, expected, rtol=1e-5, atol=1e-5)
