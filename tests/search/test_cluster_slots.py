"""Rows that are kept by cluster, moved and searched, against lists of labels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_xc._input.data import read_only
from sklearn_xc.search.kernels.clusters import (
    Layout,
    fill_slots,
    move_labels,
    refresh_rows,
    search_clusters,
)

each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
few = settings(max_examples=25, deadline=None)
shapes = {
    "n_labels": st.integers(0, 12), "n_clusters": st.integers(1, 5), "d": st.integers(0, 4),
    "seed": st.integers(0, 2**32 - 1),
}  # fmt: skip
FIRST = 1


def make_layout(rng, n_labels, n_clusters, d, dtype, spare=3):
    """Return an empty layout, and the labels of each cluster in the order of their slots."""
    cluster = rng.integers(0, n_clusters, n_labels).astype(np.int32)
    members = [rng.permutation(np.flatnonzero(cluster == c)).tolist() for c in range(n_clusters)]
    size = np.array([len(one) for one in members], np.int64)
    room, begin = size + rng.integers(0, 3, n_clusters), np.empty(n_clusters, np.int64)
    order = rng.permutation(n_clusters)
    begin[order] = np.cumsum(room[order]) - room[order]
    slot, taken = np.empty(n_labels, np.int64), int(room.sum())
    for one, at in zip(members, begin, strict=True):
        slot[one] = at + np.arange(len(one))
    layout = Layout(
        np.full((taken + spare, d), np.nan, dtype), np.full(taken + spare, -1, np.int32), begin,
        size, room, np.array([taken]), slot, cluster, rng.uniform(0, 2, n_labels),
    )  # fmt: skip
    return layout, members


def make_weights(rng, n_labels, d, dtype):
    """Return rows of few values, so that many are the same, with columns that are not copied."""
    return rng.integers(-2, 3, (n_labels, FIRST + d + 1)).astype(dtype)


def filled(rng, n_labels, n_clusters, d, dtype, spare=3):
    layout, members = make_layout(rng, n_labels, n_clusters, d, dtype, spare)
    W = make_weights(rng, n_labels, d, dtype)
    fill_slots(read_only(W), FIRST, layout)
    return W, layout, members


@each_dtype
@few
@given(**shapes)
def test_fill_slots(dtype, n_labels, n_clusters, d, seed):
    rng = np.random.default_rng(seed)
    W, layout, members = filled(rng, n_labels, n_clusters, d, dtype)
    labels, rows = np.full(len(layout.labels), -1), np.full(layout.rows.shape, np.nan)
    for one, at in zip(members, layout.begin, strict=True):
        labels[at : at + len(one)] = one
        rows[at : at + len(one)] = W[one, FIRST : FIRST + d]
    np.testing.assert_array_equal(layout.labels, labels)
    np.testing.assert_array_equal(layout.rows, rows)


def augmented(rows, bound):
    """Return rows with the number that brings them to the bound, longer ones with 0."""
    norm2 = (rows**2).sum(axis=1)
    return np.column_stack([rows, np.sqrt(np.maximum(0.0, bound**2 - norm2))])


@each_dtype
@few
@given(
    **shapes, bound=st.sampled_from([0.0, 3.0, 9.0]), rounding=st.sampled_from([0.0, 0.5]),
    scale=st.sampled_from([0.0, 0.1, 3.0]),
)  # fmt: skip
def test_refresh_rows(dtype, n_labels, n_clusters, d, seed, bound, rounding, scale):
    """Some rows do not move, some are not finite, and some gaps are endless."""
    rng = np.random.default_rng(seed)
    W, layout, _ = filled(rng, n_labels, n_clusters, d, dtype)
    layout.gap[rng.random(n_labels) < 0.2] = np.inf
    changed = rng.permutation(n_labels)[: rng.integers(n_labels + 1)]
    old, slots = W[changed, FIRST : FIRST + d].astype(float), layout.slot[changed]
    W += (scale * rng.normal(size=W.shape) * (rng.random((n_labels, 1)) < 0.8)).astype(dtype)
    W[rng.random(n_labels) < 0.1] = np.nan
    rows, gap, new = layout.rows.copy(), layout.gap.copy(), W[changed, FIRST : FIRST + d]
    rows[slots] = new
    move = augmented(new.astype(float), bound) - augmented(old, bound)
    gap[changed] -= 2 * np.linalg.norm(move, axis=1)
    loose = np.full(len(changed) + 1, -1, np.int32)
    n_loose = refresh_rows(read_only(W), FIRST, read_only(changed), bound, rounding, layout, loose)
    np.testing.assert_array_equal(layout.rows, rows)
    np.testing.assert_allclose(layout.gap, gap, rtol=1e-9, atol=1e-9)
    expected = changed[~(layout.gap[changed] > rounding)]
    assert loose.tolist() == [*expected, *[-1] * (len(loose) - len(expected))]
    assert n_loose == len(expected)


class SlowLayout:
    """Lists of labels, one for each cluster, where they begin and what room they have."""

    def __init__(self, layout, members):
        self.members, self.free = [list(one) for one in members], int(layout.free[0])
        self.begin, self.room = layout.begin.tolist(), layout.room.tolist()
        self.n_slots = len(layout.labels)

    def move(self, label, new):
        """Move a label; return whether there was room."""
        (old,) = [c for c, one in enumerate(self.members) if label in one]
        if new == old:
            return True
        if len(self.members[new]) == self.room[new]:
            wanted = len(self.members[new]) * 3 // 2 + 8
            if self.free + wanted > self.n_slots:
                return False
            self.begin[new], self.room[new] = self.free, wanted
            self.free += wanted
        self.members[new].append(label)
        last = self.members[old].pop()
        if last != label:
            self.members[old][self.members[old].index(label)] = last
        return True


@each_dtype
@few
@given(**shapes, spare=st.sampled_from([0, 8, 9, 30, 100]), passed=st.integers(0, 3))
def test_move_labels(dtype, n_labels, n_clusters, d, seed, spare, passed):
    """To any clusters, their own among them, until the free slots do not do."""
    rng = np.random.default_rng(seed)
    W, layout, members = filled(rng, n_labels, n_clusters, d, dtype, spare)
    labels = rng.permutation(n_labels)[: rng.integers(n_labels + 1)].astype(np.int32)
    nearest = rng.integers(0, n_clusters, len(labels)).astype(np.int32)
    if rng.random() < 0.5:  # many to one cluster
        nearest[rng.random(len(labels)) < 0.8] = 0
    gap, done = rng.uniform(5, 6, len(labels)), min(passed, len(labels))
    slow, expected_gap = SlowLayout(layout, members), layout.gap.copy()
    stop = done
    while stop < len(labels) and slow.move(labels[stop], nearest[stop]):
        expected_gap[labels[stop]] = gap[stop]
        stop += 1
    assert move_labels(labels, nearest, gap, done, layout) == stop
    waiting = labels[stop : stop + 1]  # its gap may be written already
    expected_gap[waiting] = layout.gap[waiting]
    np.testing.assert_array_equal(layout.gap, expected_gap)
    assert layout.begin.tolist() == slow.begin
    assert layout.room.tolist() == slow.room
    assert layout.free.tolist() == [slow.free]
    assert layout.size.tolist() == [len(one) for one in slow.members]
    for c, (one, at) in enumerate(zip(slow.members, slow.begin, strict=True)):
        assert layout.labels[at : at + len(one)].tolist() == one
        assert (layout.cluster[one] == c).all()
        np.testing.assert_array_equal(layout.slot[one], at + np.arange(len(one)))
        np.testing.assert_array_equal(layout.rows[at : at + len(one)], W[one, FIRST : FIRST + d])


@each_dtype
@few
@given(
    n_labels=st.one_of(st.integers(0, 12), st.integers(100, 400)), n_clusters=st.integers(1, 5),
    d=st.integers(0, 9), n=st.integers(0, 4), seed=st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_search_clusters(dtype, n_labels, n_clusters, d, n, seed):
    """Whole numbers: sums are exact, clusters and labels tie. Some clusters are empty."""
    rng = np.random.default_rng(seed)
    W, layout, members = filled(rng, n_labels, n_clusters, d, dtype)
    V = rng.integers(-1, 2, (n, d)).astype(dtype)
    centroids = rng.integers(-1, 2, (n_clusters, d + 1)).astype(dtype)
    n_candidates = int(rng.integers(n_labels + 1)) // int(rng.choice([1, 8]))
    first, last = np.sort(rng.integers(0, n + 1, 2)).tolist()
    labels = np.full((n, n_candidates), -1, np.int32)
    scores, counts = np.full((n, n_candidates), np.nan, dtype), np.full(n, -1)
    search_clusters(
        read_only(V), first, last, read_only(centroids), layout, n_candidates, labels, scores,
        counts,
    )  # fmt: skip
    expected = np.full_like(labels, -1), np.full_like(scores, np.nan), np.full(n, -1)
    for i in range(first, last):
        seen = []
        for c in np.argsort(-(centroids[:, :d] @ V[i]), kind="stable"):
            if len(seen) < n_candidates:
                seen += members[c]
        seen = np.sort(np.array(seen, int))
        products = W[seen, FIRST : FIRST + d] @ V[i]
        best = np.argsort(-products, kind="stable")[:n_candidates]
        expected[0][i], expected[1][i], expected[2][i] = seen[best], products[best], n_candidates
    for found, wanted in zip((labels, scores, counts), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
