"""Proxies that take steps, against numpy written out slowly."""

import numpy as np
import pytest

from sklearn_xc._training.adam import Entries
from sklearn_xc.decomposition.moving_rows import MovingProxies

K, DIM, N = 7, 4, 5


def drawn_entries(rng, dtype):
    """Return the gradient of N instances by the scores of three labels each, and as a matrix."""
    ids = np.concatenate([rng.choice(K, 3, replace=False) for _ in range(N)]).astype(np.int32)
    values = rng.normal(size=3 * N).astype(dtype)
    G = np.zeros((N, K))
    G[np.repeat(np.arange(N), 3), ids] = values
    return Entries(np.arange(0, 3 * N, 3), np.full(N, 3), ids, values), G


def rows_of(proxies):
    return np.column_stack([2 * proxies, -(proxies**2).sum(axis=1)])


def test_rows_of_proxies_score_by_distance():
    rng, dtype = np.random.default_rng(0), np.float32
    proxies, V = rng.normal(size=(K, DIM)).astype(dtype), rng.normal(size=(N, DIM)).astype(dtype)
    moving = MovingProxies(2 * proxies)
    expected = (V**2).sum(axis=1)[:, None] - ((V[:, None] - proxies) ** 2).sum(axis=2)
    assert moving.values.dtype == dtype
    np.testing.assert_allclose(moving.queries(V) @ moving.values.T, expected, atol=1e-5)
    offsets = MovingProxies.offsets_of(moving.vectors)
    np.testing.assert_allclose(offsets, moving.values[:, -1], rtol=1e-6)
    assert offsets.dtype == dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_steps(dtype):
    rng = np.random.default_rng(1)
    expected = rng.normal(size=(K, DIM)).astype(dtype).astype(np.float64)
    moving = MovingProxies((2 * expected).astype(dtype))
    tol = {"rtol": 2e-4, "atol": 2e-4} if dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-11}
    for rate in (0.3, 0.01, 2.0, 0.1, 0.05):
        entries, G = drawn_entries(rng, dtype)
        V = rng.normal(size=(N, DIM)).astype(dtype)
        gradient = 2 * (G.T @ V - G.sum(axis=0)[:, None] * expected)
        has = G.any(axis=0)
        before = moving.values.astype(np.float64)
        moved, lengths = moving.step(entries, V, rate)
        steps = rate * gradient / (1 + 2 * rate * np.abs(G).sum(axis=0))[:, None]
        expected = expected - steps
        np.testing.assert_array_equal(np.sort(moved), np.flatnonzero(has))
        way = np.linalg.norm(moving.values - before, axis=1)
        assert not way[~has].any()
        np.testing.assert_allclose(lengths, way[moved], rtol=1e-3 if dtype == np.float32 else 1e-9)
        np.testing.assert_allclose(0.5 * moving.vectors, expected, **tol)
        scores = (V**2).sum(axis=1)[:, None] - ((V[:, None] - expected) ** 2).sum(axis=2)
        np.testing.assert_allclose(moving.queries(V) @ moving.values.T, scores, **tol)
        np.testing.assert_allclose(moving.sums(entries), 2 * G @ expected, **tol)
    np.testing.assert_allclose(moving.values, rows_of(expected), **tol)


def test_no_step_goes_farther_than_to_the_farthest_instance():
    rng = np.random.default_rng(2)
    proxies = rng.normal(size=(K, DIM))
    moving = MovingProxies(2 * proxies)
    entries, G = drawn_entries(rng, np.float64)
    V = rng.normal(size=(N, DIM))
    moving.step(entries, V, 1e6)
    way = np.linalg.norm(0.5 * moving.vectors - proxies, axis=1)
    away = np.linalg.norm(proxies[:, None] - V, axis=2)
    farthest = np.where(G.T != 0, away, 0).max(axis=1)
    assert (way <= farthest * (1 + 1e-9)).all()
    assert (way > 0.01 * farthest)[G.any(axis=0)].all()
