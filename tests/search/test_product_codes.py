"""Centroids of blocks, codes of labels and tables of queries, against numpy."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from sklearn_xc._compile.emitters.byte_lanes import LANES, TABLE
from sklearn_xc._input.data import read_only
from sklearn_xc.search.kernels.product_codes import (
    WIDTH,
    cluster_blocks,
    encode_rows,
    fill_tables,
)


def n_blocks_of(dim):
    return 2 * -(-dim // 4)


def padded(rows, dtype=np.float32):
    """Return rows in blocks (n, n_blocks, 2), zero where there are no columns."""
    flat = np.zeros((len(rows), n_blocks_of(rows.shape[1]) * WIDTH), dtype)
    flat[:, : rows.shape[1]] = rows.astype(np.float32)
    return flat.reshape(len(rows), -1, WIDTH)


def nearest(blocks, centroids):
    """Return the codes (n, n_blocks) of rows in blocks."""
    blocks, centroids = blocks.astype(np.float64), centroids.astype(np.float64)
    return ((blocks[..., None] - centroids) ** 2).sum(axis=2).argmin(axis=2)


def slow_centroids(blocks, starts, n_rounds):
    """Return what Lloyd's algorithm makes of centroids that are rows at first."""
    n_blocks = blocks.shape[1]
    places = starts[:, :TABLE].T, np.arange(n_blocks)
    centroids = blocks[places].transpose(1, 2, 0).astype(np.float32)
    for _ in range(n_rounds):
        codes = nearest(blocks, centroids)
        for b in range(n_blocks):
            for c in np.unique(codes[:, b]):
                centroids[b, :, c] = blocks[codes[:, b] == c, b].mean(axis=0, dtype=np.float64)
    return centroids


def cluster(W, rows, first, last, n_rounds, seed=0):
    n_blocks = n_blocks_of(last - first)
    rng = np.random.default_rng(seed)
    starts = np.array([rng.permutation(len(rows))[:TABLE] for _ in range(n_blocks)])
    centroids = np.full((n_blocks, WIDTH, TABLE), np.nan, np.float32)
    halves = np.full((n_blocks, TABLE), np.nan, np.float32)
    arrays = map(read_only, (W, rows, starts))
    cluster_blocks(*arrays, first, last, n_rounds, centroids, halves)
    return starts, centroids, halves


@pytest.mark.parametrize(("first", "last", "n_rounds"), [(0, 16, 0), (3, 4, 5), (2, 11, 5)])
def test_centroids_against_numpy(first, last, n_rounds):
    dtype = np.float32
    rng = np.random.default_rng(last)
    W, rows = rng.normal(size=(150, 16)).astype(dtype), np.sort(rng.permutation(150)[:90])
    starts, centroids, halves = cluster(W, rows, first, last, n_rounds)
    expected = slow_centroids(padded(W[rows, first:last]), starts, n_rounds)
    np.testing.assert_allclose(centroids, expected, atol=1e-5)
    np.testing.assert_allclose(halves, 0.5 * (centroids**2).sum(axis=1), rtol=1e-5)


def make_index(W, first, last, seed=0):
    """Return centroids, halves, codes and frequencies of all rows of W."""
    _, centroids, halves = cluster(W, np.arange(len(W)), first, last, 4, seed)
    n_groups, n_blocks = -(-len(W) // LANES), len(centroids)
    codes = np.zeros((n_groups, n_blocks // 2, LANES), np.uint8)
    frequencies = np.zeros((n_blocks, TABLE), np.int32)
    index = centroids, halves, codes, frequencies
    encode_rows(W, np.arange(len(W), dtype=np.int32), first, last, *index, True)
    return index


def codes_of_labels(codes, n_labels):
    """Return codes as an array of shape (n_labels, n_blocks)."""
    n_groups, n_pairs, _ = codes.shape
    both = np.stack([codes % TABLE, codes // TABLE], axis=2).reshape(n_groups, 2 * n_pairs, LANES)
    return both.swapaxes(1, 2).reshape(n_groups * LANES, 2 * n_pairs)[:n_labels]


def assert_encoded(index, W, first, last):
    """Every label has the codes of its nearest centroids, and they are counted."""
    centroids, _, codes, frequencies = index
    blocks, own = padded(W[:, first:last], np.float64), codes_of_labels(codes, len(W))
    distances = ((blocks[..., None] - centroids) ** 2).sum(axis=2)
    found = np.take_along_axis(distances, own[..., None].astype(int), axis=2)[..., 0]
    norms = (blocks**2).sum(axis=2) + (centroids**2).sum(axis=1).max()
    assert (found <= distances.min(axis=2) * (1 + 1e-5) + 1e-6 * norms).all()
    counted = [np.bincount(column, minlength=TABLE) for column in own.T]
    np.testing.assert_array_equal(frequencies, counted)
    flat = codes.swapaxes(1, 2).reshape(-1, codes.shape[1])
    assert not flat[len(W) :].any()


steps = st.lists(
    st.tuples(st.sampled_from([0, 1, 7, 70]), st.sampled_from([0.0, 0.1, 1.0, 30.0])), max_size=8
)


@given(steps, st.integers(0, 2**16), st.sampled_from([np.float32, np.float64]))
def test_codes_after_any_updates(changes, seed, dtype):
    """Rows stand still, wander, and leave all centroids behind."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(70, 11)).astype(dtype)
    index = make_index(W, 1, 11, seed)
    assert_encoded(index, W, 1, 11)
    for n_changed, scale in changes:
        rows = rng.permutation(70)[:n_changed].astype(np.int32)
        W[rows] += scale * rng.normal(size=(n_changed, 11))
        encode_rows(read_only(W), read_only(rows), 1, 11, *index, False)
        assert_encoded(index, W, 1, 11)


def tables_of(V, index, n_labels, share):
    centroids, _, _, frequencies = index
    tables = np.full((len(V), len(centroids), TABLE), 99, np.uint8)
    tops, steps = np.full(len(V), np.nan), np.full(len(V), np.nan)
    arrays = map(read_only, (centroids, frequencies))
    fill_tables(read_only(V), *arrays, n_labels, share, tables, tops, steps)
    return tables, tops, steps


@pytest.mark.parametrize(
    ("dim", "share", "scale"), [(1, 0.05, 1.0), (9, 0.001, 1e-8), (40, 1.0, 1e8)]
)
def test_tables_against_numpy(dim, share, scale):
    """Sums of entries are what scores fall short, to half a step each, where they are resolved."""
    dtype = np.float32
    rng = np.random.default_rng(dim)
    n_labels = 800
    W, V = rng.normal(size=(n_labels, dim)).astype(dtype), rng.normal(size=(7, dim)) * scale
    index = make_index(W, 0, dim)
    V = V.astype(dtype)
    tables, tops, steps = tables_of(V, index, n_labels, share)
    centroids, own = index[0].astype(np.float64), codes_of_labels(index[2], n_labels)
    products = np.einsum("nbj,bjc->nbc", padded(V, np.float64), centroids)
    np.testing.assert_allclose(tops, products.max(axis=2).sum(axis=1), rtol=1e-5)
    assert (steps > 0).all()
    blocks = np.arange(len(centroids))
    for table, top, step, product in zip(tables, tops, steps, products, strict=True):
        scores, sums = product[blocks, own].sum(axis=1), table[blocks, own].sum(axis=1, dtype=int)
        is_resolved = (table[blocks, own] < 255).all(axis=1)
        half_steps = step * (0.51 * len(centroids) + 0.01)
        falls = top - scores
        assert (np.abs(step * sums - falls) <= half_steps)[is_resolved].all()
        assert (falls >= 254 * step)[~is_resolved].all()
        if share == 1.0:
            assert (falls < 255 * step).mean() > 0.9
        else:  # the best are told apart: sums do not stop
            assert (sums < 255).mean() >= share
