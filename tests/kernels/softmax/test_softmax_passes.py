"""Passes of steps and of mini-batches over random shapes against numpy."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from asv_bench.softmax.biased_rules import BIASED_RULES
from sklearn_xc._data import read_only
from sklearn_xc.kernels.compiling.jit import kernel
from sklearn_xc.kernels.softmax.batch import BatchWork, softmax_batch_kernels
from sklearn_xc.kernels.softmax.epoch import softmax_kernels
from sklearn_xc.kernels.softmax.negatives import (
    ClassSampler,
    draw_classes,
    draw_negatives,
    mix_key,
)
from sklearn_xc.kernels.softmax.passes import Ball, Batches, Crew, Draws, Model, Rates, Visits
from sklearn_xc.kernels.softmax.rules import RULES, UMaxSettings
from sklearn_xc.parallel.team import Team

KEY = mix_key(3, 1)
each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
few = settings(max_examples=25, deadline=None)
shapes = {
    "n": st.integers(1, 9), "n_rows": st.integers(1, 5), "d": st.integers(1, 6),
    "n_classes": st.integers(2, 7), "ridge": st.sampled_from([0.0, 0.3]),
    "slowing": st.sampled_from([0.0, 0.5]), "moves": st.sampled_from([0.0, 0.3]),
    "seed": st.integers(0, 2**32 - 1),
}  # fmt: skip


@kernel
def draw_others(sampler, key, step, target, m, drawn, alpha, n_taken):
    return draw_negatives(sampler, key, step, target, m, drawn, alpha, n_taken)


@kernel
def draw_shared(sampler, key, step, m, drawn, alpha):
    return draw_classes(sampler, key, step, m, drawn, alpha)


class Pass:
    """Random rows, some of them empty, pairs, weights, and shares of classes."""

    def __init__(self, rng, n, n_rows, d, n_classes, dtype):
        dense = rng.normal(size=(n_rows, d)) * (rng.random((n_rows, d)) < 0.6)
        dense[rng.random(n_rows) < 0.2] = 0
        X = sp.csr_array(dense.astype(dtype))
        self.X, self.dense = X, X.toarray().astype(float)
        self.rows = rng.integers(0, n_rows, n).astype(np.int32)
        self.classes = rng.integers(0, n_classes, n).astype(np.int32)
        self.weight = rng.uniform(0.2, 2, n)
        self.order = rng.permutation(n)
        self.model = Model(
            (0.5 * rng.normal(size=(n_classes, d))).astype(dtype), rng.uniform(0.5, 1, n_classes),
            rng.normal(size=n_classes), rng.uniform(0, 3, n),
        )  # fmt: skip
        self.shares = rng.uniform(0.2, 3, n_classes)
        self.sampler = ClassSampler.of(self.shares, rng.permutation(n_classes))
        # What the twin moves.
        self.W = self.model.V * self.model.scale[:, None]
        self.b, self.u = self.model.intercept.copy(), self.model.u.copy()

    @property
    def visits(self):
        arrays = self.X.indptr.astype(np.int64), self.X.indices.astype(np.int32), self.X.data
        told = (self.dense**2).sum(axis=1), self.rows, self.classes, self.weight, self.order
        return Visits(tuple(map(read_only, arrays)), *map(read_only, told))

    def check(self, dtype):
        close = {"rtol": 1e-9, "atol": 1e-9}
        if dtype == np.float32:
            close = {"rtol": 1e-3, "atol": 1e-3}
        V, scale, intercept, u = self.model
        np.testing.assert_allclose(V * scale[:, None], self.W, **close)
        np.testing.assert_allclose(intercept, self.b, **close)
        np.testing.assert_allclose(u, self.u, **close)
        return close


@each_dtype
@few
@given(
    **shapes, m=st.integers(1, 6), n_hard=st.integers(0, 3),
    radius=st.sampled_from([np.inf, 1.0]),
)  # fmt: skip
def test_steps_of_pairs(
    dtype, n, n_rows, d, n_classes, ridge, slowing, moves, seed, m, n_hard, radius
):
    """Of U-max: u is raised to its bound where it is far below, and stays between bounds."""
    rng = np.random.default_rng(seed)
    data = Pass(rng, n, n_rows, d, n_classes, dtype)
    m, n_hard = min(m, n_classes - 1), min(n_hard, n_classes - 1)
    others = [np.delete(np.arange(n_classes), y) for y in data.classes]
    hard = np.array([rng.permutation(each)[:n_hard] for each in others], np.int32)
    beta, told = rng.uniform(1, 3, n_classes), UMaxSettings(1.0, 2.5)
    first, last = np.sort(rng.integers(0, n + 1, 2)).tolist()
    squares = (data.W.astype(float) ** 2).sum(axis=1) * (radius < np.inf)
    found = softmax_kernels(RULES["umax"].step)(
        data.visits, first, last, data.model, Ball(radius, squares),
        Rates(1.5, slowing, ridge, moves), read_only(beta), Draws(data.sampler, m, KEY),
        read_only(hard), told,
    )  # fmt: skip
    W, b, u, expected = data.W, data.b, data.u, 0.0
    for t in range(first, last):
        pair = data.order[t]
        x, y, weight = data.dense[data.rows[pair]], data.classes[pair], data.weight[pair]
        drawn, alpha = np.append(hard[pair], [0] * m).astype(np.int64), np.ones(n_hard + m)
        size = draw_others(data.sampler, KEY, t, np.int64(y), m, drawn, alpha, n_hard)
        drawn, alpha = drawn[:size], alpha[:size]
        rate = 1.5 / (1 + slowing * t)
        c = 1 + rate * ridge * beta
        relative, old = W[drawn] @ x + b[drawn] - W[y] @ x - b[y], u[pair]
        expected += weight * (old + np.exp(-old) - 1 + alpha @ np.exp(relative - old))
        bound = np.log1p(np.exp(relative).sum())
        old = bound if old < bound - told[0] else old
        p = rate * weight * alpha * np.exp(relative - old)
        u[pair] = np.clip(old - rate * weight * (1 - np.exp(-old)) + p.sum(), 0, told[1])
        W[drawn] = (W[drawn] - np.outer(p, x)) / c[drawn, None]
        W[y] = (W[y] + p.sum() * x) / c[y]
        b[drawn] -= moves * p / c[drawn]
        b[y] += moves * p.sum() / c[y]
        W *= min(1, radius / max(np.linalg.norm(W), 1e-9))
    close = data.check(dtype)
    assert found == pytest.approx(expected, rel=close["rtol"])
    if radius < np.inf:
        np.testing.assert_allclose(squares, (W**2).sum(axis=1), **close)


@each_dtype
@few
@given(**(shapes | {"n": st.integers(1, 20)}), m=st.integers(1, 7))
def test_steps_of_batches(dtype, n, n_rows, d, n_classes, ridge, slowing, moves, seed, m):
    """Of importance sampling, by one thread: all pairs of a batch step from the same weights."""
    rng = np.random.default_rng(seed)
    data, m = Pass(rng, n, n_rows, d, n_classes, dtype), min(m, n_classes)
    bounds = np.append(np.flatnonzero((np.arange(n) == 0) | (rng.random(n) < 0.3)), n)
    counts, rule = np.bincount(data.classes, minlength=n_classes), BIASED_RULES["is"]
    first, last = int(rng.integers(2)), len(bounds) - 1
    visits, batches = data.visits, Batches(read_only(bounds), read_only(counts), n)
    work = BatchWork.for_pass(visits, batches, m, data.model.V)
    step = softmax_batch_kernels(rule.step, rule.is_implicit)
    with Team(1) as team:
        (found,) = team.run(
            lambda worker: step(
                visits, batches, first, last, data.model, Rates(1.5, slowing, ridge, moves),
                Draws(data.sampler, m, KEY), (), work, Crew(team.barrier, worker, 1),
            )
        )  # fmt: skip
    W, b, u, expected = data.W, data.b, data.u, 0.0
    drawn_share = np.minimum(1, m * data.shares / data.shares.sum())
    for t in range(first, last):
        pairs = data.order[bounds[t] : bounds[t + 1]]
        drawn, alpha = np.empty(m, np.int64), np.empty(m)
        size = draw_shared(data.sampler, KEY, t, m, drawn, alpha)
        drawn, alpha = drawn[:size], alpha[:size]
        rate = 1.5 / (1 + slowing * bounds[t])
        # The ridge is stronger, the rarer a class is drawn or in a batch of this size.
        absent = np.array([math.comb(n - k, len(pairs)) for k in counts]) / math.comb(n, len(pairs))
        c = 1 + rate * ridge / (1 - absent * (1 - drawn_share))
        before, bias = W.copy(), b.copy()
        for pair in pairs:
            x, y, weight = data.dense[data.rows[pair]], data.classes[pair], data.weight[pair]
            scores = before @ x + bias
            odds = np.where(drawn == y, 0, alpha * np.exp(scores[drawn] - scores[y]))
            expected += weight * (u[pair] + np.exp(-u[pair]) - 1 + odds.sum() * np.exp(-u[pair]))
            p = rate * weight / len(pairs) * odds / (1 + odds.sum())
            W[drawn] -= np.outer(p, x)
            W[y] += p.sum() * x
            b[drawn] -= moves * p / c[drawn]
            b[y] += moves * p.sum() / c[y]
        named = np.union1d(drawn, data.classes[pairs])
        W[named] /= c[named, None]
    close = data.check(dtype)
    assert found == pytest.approx(expected, rel=close["rtol"])
