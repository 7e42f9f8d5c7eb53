"""Steps of single rows and sums over them, against dense matrices."""

import numpy as np
import pytest

from sklearn_xc._training.kernels.row_moves import add_drift, add_rows, group_entries, move_rows

N_ROWS, DIM = 9, 5


def make_entries(seed=0, n=6, dtype=np.float64):
    """Return starts, counts, ids, values with gaps that hold nonsense, and the dense matrix.

    Instance 2 has no entries, and the last one has two for the same row.
    """
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 5, n)
    counts[2], counts[-1] = 0, 3
    starts = np.cumsum(counts + 2) - counts - 1
    ids = np.full(starts[-1] + counts[-1] + 2, 10**6, np.int32)
    values = np.full(len(ids), np.nan, dtype)
    G = np.zeros((n, N_ROWS))
    for i in range(n):
        own = slice(starts[i], starts[i] + counts[i])
        ids[own] = rng.choice(N_ROWS - 1, counts[i], replace=False)  # nobody has the last row
        values[own] = rng.normal(size=counts[i])
        if i == n - 1:
            ids[own.start + 1] = ids[own.start]
        np.add.at(G[i], ids[own], values[own].astype(np.float64))
    return starts, counts, ids, values, G


def group(starts, counts, ids):
    """Return rows, bounds, order, owners and the number of rows."""
    n_entries = int(counts.sum())
    slots = np.full(N_ROWS, -1, np.int32)
    rows = np.full(min(n_entries, N_ROWS), -5, np.int32)
    bounds = np.full(len(rows) + 1, -5, np.int64)
    order, owners = np.full(n_entries, -5, np.int64), np.full(n_entries, -5, np.int64)
    n = group_entries(starts, counts, ids, slots, rows, bounds, order, owners)
    assert (slots == -1).all()
    return rows, bounds, order, owners, n


@pytest.mark.parametrize("seed", range(5))
def test_groups_hold_each_entry_once_by_instance(seed):
    starts, counts, ids, _, _ = make_entries(seed)
    rows, bounds, order, owners, n = group(starts, counts, ids)
    owner_of = {t: i for i in range(len(starts)) for t in range(starts[i], starts[i] + counts[i])}
    first_seen = list(dict.fromkeys(ids[t] for t in owner_of))
    assert rows[:n].tolist() == first_seen
    assert bounds[0] == 0
    assert bounds[n] == len(owner_of)
    for r in range(n):
        own = slice(bounds[r], bounds[r + 1])
        assert order[own].tolist() == [t for t in owner_of if ids[t] == rows[r]]
    assert owners.tolist() == [owner_of[t] for t in order]


def move(W, entries, V, rate, last_rate=np.nan):
    starts, counts, ids, values = entries
    rows, bounds, order, owners, n = group(starts, counts, ids)
    rates = W.dtype.type(rate), W.dtype.type(last_rate)
    before, lengths = W.copy(), np.full(n, np.nan, W.dtype)
    move_rows(W, rows, bounds, order, owners, values, V, *rates, lengths)
    gone = np.linalg.norm(W - before, axis=1)[rows[:n]]
    np.testing.assert_allclose(lengths, gone, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_plain_steps(dtype):
    *entries, G = make_entries(0, dtype=dtype)
    rng = np.random.default_rng(1)
    W, V = (rng.normal(size=(n, DIM)).astype(dtype) for n in (N_ROWS, 6))
    before = W.copy()
    move(W, entries, V, 0.3)
    expected = before - 0.3 * (G.T @ V.astype(np.float64))
    tol = 1e-14 if dtype == np.float64 else 1e-6
    np.testing.assert_allclose(W, expected, atol=tol)
    untouched = ~G.any(axis=0)
    assert untouched[-1]
    assert W[untouched].tobytes() == before[untouched].tobytes()
    assert np.abs(W - before)[~untouched].max() > 0.1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_any_number_of_rows(dtype):
    """0 to 12 of them; and the bits of a sum do not depend on the others."""
    rng = np.random.default_rng(0)
    counts = np.arange(13)
    starts = np.cumsum(counts) - counts
    ids = rng.integers(0, 50, counts.sum()).astype(np.int32)
    values, W = rng.normal(size=len(ids)).astype(dtype), rng.normal(size=(50, 37)).astype(dtype)
    out = np.full((13, 37), np.nan, dtype)
    add_rows(W, starts, counts, ids, values, out)
    for i, (start, count) in enumerate(zip(starts, counts, strict=True)):
        own = slice(start, start + count)
        expected = values[own].astype(np.float64) @ W[ids[own]]
        np.testing.assert_allclose(out[i], expected, atol=1e-13 if dtype == np.float64 else 1e-5)
        alone = np.full((1, 37), np.nan, dtype)
        add_rows(W, np.zeros(1, np.int64), counts[i : i + 1], ids[own], values[own], alone)
        assert alone.tobytes() == out[i].tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_that_have_gone_too_far_are_due_and_begin_again(dtype):
    rng = np.random.default_rng(0)
    drift, expected = np.zeros(N_ROWS, np.float32), np.zeros(N_ROWS)
    n_due = 0
    for _ in range(20):
        rows = rng.permutation(N_ROWS)[:4].astype(np.int32)
        lengths, due = rng.uniform(0, 1, 4).astype(dtype), np.full(4, -1, np.int32)
        n = add_drift(rows, lengths, drift, 1.5, due)
        expected[rows] += lengths
        too_far = rows[expected[rows] > 1.5]
        np.testing.assert_array_equal(due[:n], too_far)
        expected[too_far] = 0
        np.testing.assert_allclose(drift, expected, atol=1e-5)
        n_due += n
    assert n_due > 5
