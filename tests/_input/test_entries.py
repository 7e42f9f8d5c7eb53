"""Entries of rows, put together, against lists."""

import numpy as np

from sklearn_xc.embedding.kernels.steps import copy_entries


def make(seed, n=6):
    """Return starts, counts, ids, values with gaps that hold nonsense; row 2 is empty."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 5, n)
    counts[2] = 0
    starts = np.cumsum(counts + 2) - counts - 1
    n_places = starts[-1] + counts[-1] + 2
    return starts, counts, rng.integers(0, 99, n_places).astype(np.int32), rng.random(n_places)


def test_rows_are_copied_one_after_another():
    starts, counts, ids, values = make(0)
    values, n = values.astype(np.float32), int(counts.sum())
    starts, counts = starts[::-1].copy(), counts[::-1].copy()
    out_ids, out_values = np.full(n + 3, -1, np.int32), np.full(n + 3, -1, np.float32)
    assert copy_entries(starts, counts, ids, values, 2, out_ids, out_values) == n + 2
    at = [t for s, c in zip(starts, counts, strict=True) for t in range(s, s + c)]
    assert out_ids.tolist() == [-1, -1, *ids[at], -1]
    assert out_values.tolist() == [-1, -1, *values[at], -1]
