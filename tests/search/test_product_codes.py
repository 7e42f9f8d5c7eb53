"""Centroids of blocks, codes of labels and tables of queries, against numpy."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from sklearn_xc._compile.emitters.byte_lanes import LANES, TABLE
from sklearn_xc._compile.emitters.centroid_lanes import WIDTH
from sklearn_xc._input.data import read_only
from sklearn_xc.search.kernels.product_codes import cluster_blocks, encode_rows, fill_tables


@pytest.fixture(params=[2, 4])
def width(request):
    return request.param


def n_blocks_of(dim, width):
    return 2 * -(-dim // (2 * width))


def padded(rows, width, dtype=np.float32):
    """Return rows in blocks (n, n_blocks, WIDTH), zero where there are no columns."""
    flat = np.zeros((len(rows), n_blocks_of(rows.shape[1], width) * width), dtype)
    flat[:, : rows.shape[1]] = rows.astype(np.float32)
    out = np.zeros((len(rows), flat.shape[1] // width, WIDTH), dtype)
    out[:, :, :width] = flat.reshape(len(rows), -1, width)
    return out


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


def cluster(W, rows, first, last, width, n_rounds, seed=0):
    n_blocks = n_blocks_of(last - first, width)
    rng = np.random.default_rng(seed)
    starts = np.array([rng.permutation(len(rows))[:TABLE] for _ in range(n_blocks)])
    centroids = np.full((n_blocks, WIDTH, TABLE), np.nan, np.float32)
    halves = np.full((n_blocks, TABLE), np.nan, np.float32)
    arrays = map(read_only, (W, rows, starts))
    cluster_blocks(*arrays, first, last, width, n_rounds, centroids, halves)
    return starts, centroids, halves


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("first", "last"), [(0, 16), (0, 13), (3, 4), (2, 11)])
@pytest.mark.parametrize("n_rounds", [0, 1, 5])
def test_centroids_against_numpy(dtype, first, last, width, n_rounds):
    rng = np.random.default_rng(last)
    W, rows = rng.normal(size=(150, 16)).astype(dtype), np.sort(rng.permutation(150)[:90])
    starts, centroids, halves = cluster(W, rows, first, last, width, n_rounds)
    expected = slow_centroids(padded(W[rows, first:last], width), starts, n_rounds)
    np.testing.assert_allclose(centroids, expected, atol=1e-5)
    np.testing.assert_allclose(halves, 0.5 * (centroids**2).sum(axis=1), rtol=1e-5)


def test_separated_points_are_their_own_centroids():
    """And centroids that no row is nearest to stay where they are."""
    rng = np.random.default_rng(0)
    points = 10 * np.eye(WIDTH)[rng.integers(0, WIDTH, 200)]
    W = np.hstack([points, points[::-1]]).astype(np.float32)
    _, centroids, _ = cluster(W, np.arange(200), 0, 8, WIDTH, 4)
    for block in centroids:
        np.testing.assert_array_equal(np.unique(block.T, axis=0), 10 * np.eye(WIDTH)[::-1])


def make_index(W, first, last, width, seed=0):
    """Return centroids, halves, codes and frequencies of all rows of W."""
    _, centroids, halves = cluster(W, np.arange(len(W)), first, last, width, 4, seed)
    n_groups, n_blocks = -(-len(W) // LANES), len(centroids)
    codes = np.zeros((n_groups, n_blocks // 2, LANES), np.uint8)
    frequencies = np.zeros((n_blocks, TABLE), np.int32)
    index = centroids, halves, codes, frequencies
    encode_rows(W, np.arange(len(W), dtype=np.int32), first, last, width, *index, True)
    return index


def codes_of_labels(codes, n_labels):
    """Return codes as an array of shape (n_labels, n_blocks)."""
    n_groups, n_pairs, _ = codes.shape
    both = np.stack([codes % TABLE, codes // TABLE], axis=2).reshape(n_groups, 2 * n_pairs, LANES)
    return both.swapaxes(1, 2).reshape(n_groups * LANES, 2 * n_pairs)[:n_labels]


def assert_encoded(index, W, first, last, width):
    """Every label has the codes of its nearest centroids, and they are counted."""
    centroids, _, codes, frequencies = index
    blocks, own = padded(W[:, first:last], width, np.float64), codes_of_labels(codes, len(W))
    distances = ((blocks[..., None] - centroids) ** 2).sum(axis=2)
    found = np.take_along_axis(distances, own[..., None].astype(int), axis=2)[..., 0]
    norms = (blocks**2).sum(axis=2) + (centroids**2).sum(axis=1).max()
    assert (found <= distances.min(axis=2) * (1 + 1e-5) + 1e-6 * norms).all()
    counted = [np.bincount(column, minlength=TABLE) for column in own.T]
    np.testing.assert_array_equal(frequencies, counted)
    flat = codes.swapaxes(1, 2).reshape(-1, codes.shape[1])
    assert not flat[len(W) :].any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("first", "last"), [(0, 16), (0, 13), (3, 4), (2, 11)])
@pytest.mark.parametrize("n_labels", [16, 64, 150])
def test_codes_against_numpy(dtype, first, last, width, n_labels):
    W = np.random.default_rng(last).normal(size=(n_labels, 16)).astype(dtype)
    assert_encoded(make_index(W, first, last, width), W, first, last, width)


steps = st.lists(
    st.tuples(st.sampled_from([0, 1, 7, 70]), st.sampled_from([0.0, 0.1, 1.0, 30.0])), max_size=8
)


@given(
    steps, st.integers(0, 2**16), st.sampled_from([np.float32, np.float64]), st.sampled_from([2, 4])
)
def test_codes_after_any_updates(changes, seed, dtype, width):
    """Rows stand still, wander, and leave all centroids behind."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(70, 11)).astype(dtype)
    index = make_index(W, 1, 11, width, seed)
    for n_changed, scale in changes:
        rows = rng.permutation(70)[:n_changed].astype(np.int32)
        W[rows] += scale * rng.normal(size=(n_changed, 11))
        encode_rows(read_only(W), read_only(rows), 1, 11, width, *index, False)
        assert_encoded(index, W, 1, 11, width)


def tables_of(V, width, index, n_labels, share):
    centroids, _, _, frequencies = index
    tables = np.full((len(V), len(centroids), TABLE), 99, np.uint8)
    tops, steps = np.full(len(V), np.nan), np.full(len(V), np.nan)
    arrays = map(read_only, (centroids, frequencies))
    fill_tables(read_only(V), width, *arrays, n_labels, share, tables, tops, steps)
    return tables, tops, steps


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dim", [1, 4, 9, 40])
@pytest.mark.parametrize("share", [0.001, 0.05, 1.0])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_tables_against_numpy(dtype, dim, width, share, scale):
    """Sums of entries are what scores fall short, to half a step each, where they are resolved."""
    rng = np.random.default_rng(dim)
    n_labels = 800
    W, V = rng.normal(size=(n_labels, dim)).astype(dtype), rng.normal(size=(7, dim)) * scale
    index = make_index(W, 0, dim, width)
    V = V.astype(dtype)
    tables, tops, steps = tables_of(V, width, index, n_labels, share)
    centroids, own = index[0].astype(np.float64), codes_of_labels(index[2], n_labels)
    products = np.einsum("nbj,bjc->nbc", padded(V, width, np.float64), centroids)
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


def test_the_steps_follow_the_share(width):
    """The fewer labels are wanted, the finer is the resolution of the best."""
    rng = np.random.default_rng(0)
    W, V = rng.normal(size=(800, 40)).astype(np.float32), rng.normal(size=(5, 40))
    index = make_index(W, 0, 40, width)
    coarse, middle, fine = (
        tables_of(V, width, index, 800, share)[2] for share in (1.0, 0.05, 1e-3)
    )
    assert (fine < middle).all()
    assert (middle < coarse).all()


@pytest.mark.parametrize("value", [0.0, 1e-42])
def test_a_query_of_nothing_is_of_one_opinion(value, width):
    W = np.random.default_rng(0).normal(size=(100, 8)).astype(np.float32)
    V = np.full((2, 8), value, np.float32)
    tables, tops, steps = tables_of(V, width, make_index(W, 0, 8, width), 100, 0.1)
    assert not tables.any()
    np.testing.assert_allclose(tops, 0, atol=1e-38)
    np.testing.assert_allclose(steps, 0, atol=1e-38)


def test_labels_that_are_all_alike(width):
    W = np.full((100, 8), 2.5, np.float32)
    V = np.array([[1.0] * 8, [-1.0] * 8], np.float32)
    tables, tops, steps = tables_of(V, width, make_index(W, 0, 8, width), 100, 0.1)
    assert not tables.any()
    np.testing.assert_allclose(tops, [20.0, -20.0])
    assert (steps == 0).all()
