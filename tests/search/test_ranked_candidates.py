"""Candidates that are chosen and ranked against sorting in numpy."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_xc._input.data import read_only
from sklearn_xc._weights.kernels.ranking import room_to_choose
from sklearn_xc.search.kernels.candidates import (
    choose_of_rows,
    keep_best,
    rank_labels,
)

sizes = st.integers(1, 6)
seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=40, deadline=None)
@given(n=sizes, k=st.integers(1, 9), parts=st.lists(st.integers(0, 300), max_size=4), seed=seeds)
def test_labels_chosen_piece_by_piece_are_the_best(n, k, parts, seed):
    """Scores are few, so that many tie; some are NaN, which nobody chooses."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(-3, 4, (n, sum(parts))).astype(np.float32)
    scores[rng.random(scores.shape) < 0.1] = np.nan
    counts, floors = np.zeros(n, np.int64), np.full(n, -np.inf, np.float32)
    labels = np.full((n, room_to_choose(k)), -1, np.int32)
    best = np.full(labels.shape, np.nan, np.float32)
    first = 0
    for size in parts:
        piece = read_only(np.ascontiguousarray(scores[:, first : first + size]))
        choose_of_rows(piece, first, k, counts, floors, labels, best)
        first += size
    keep_best(k, counts, labels, best)
    for i in range(n):
        own = labels[i, : counts[i]]
        known = np.sort(scores[i][~np.isnan(scores[i])])[::-1]
        assert counts[i] == min(k, len(known))
        assert len(set(own.tolist())) == len(own)
        np.testing.assert_array_equal(best[i, : counts[i]], scores[i, own])
        np.testing.assert_array_equal(np.sort(best[i, : counts[i]])[::-1], known[:k])


@settings(max_examples=40, deadline=None)
@given(n=sizes, n_labels=st.integers(1, 60), d=st.integers(1, 12), k=st.integers(1, 9), seed=seeds)
def test_rank_labels(n, n_labels, d, k, seed):
    rng = np.random.default_rng(seed)
    W = rng.integers(-1, 2, (n_labels, d)).astype(np.float32)
    V = rng.integers(-1, 2, (n, d)).astype(np.float32)
    offsets = np.empty(0, np.float32) if seed % 2 else rng.normal(size=n_labels).astype(np.float32)
    chosen = np.stack([rng.permutation(n_labels) for _ in range(n)]).astype(np.int32)
    n_chosen = rng.integers(0, n_labels + 1, n)
    labels, scores = np.full((n, k), -1, np.int32), np.full((n, k), -np.inf, np.float32)
    counts, of_each = np.full(n, -1), chosen.copy()
    rank_labels(
        read_only(W),
        0,
        read_only(V),
        0,
        read_only(offsets),
        chosen,
        read_only(n_chosen),
        labels,
        scores,
        counts,
    )
    for i in range(n):
        own = np.sort(of_each[i, : n_chosen[i]])
        products = W[own] @ V[i] + (offsets[own] if len(offsets) else np.float32(0))
        order = np.argsort(-products, kind="stable")[:k]
        assert counts[i] == len(order)
        np.testing.assert_array_equal(labels[i, : counts[i]], own[order])
        np.testing.assert_allclose(scores[i, : counts[i]], products[order], rtol=1e-6)
        assert (labels[i, counts[i] :] == -1).all()
