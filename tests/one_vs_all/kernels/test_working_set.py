"""Each kernel of working sets agrees with a dense reference."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sparse_points import (
    SEEDS,
    Points,
    in_pieces,
    make_rows,
    pooled,
    scales,
)

from sklearn_xc._input.data import read_only
from sklearn_xc.one_vs_all.kernels import working_set
from sklearn_xc.one_vs_all.kernels.lanes import Lanes

NEGATIVES = 1000.0


class Copies:
    """Working sets of some lanes, copied by the kernel: -1 is the row without features."""

    def __init__(self, rng, n, d, m, exponent=0):
        self.instances, self.X = make_rows(rng, n, d, exponent=exponent)
        self.weight = rng.uniform(0.1, 3, n)
        self.n_positives = rng.integers(0, n + 1, m)
        self.rows = []
        for k in self.n_positives:
            some = rng.permutation(n)
            self.rows.append(np.append(some[:k], [*some[k:][: rng.integers(0, n)], -1]))
        row_indptr, rows = pooled([one[one >= 0] for one in self.rows], np.int32)
        total = sum(np.count_nonzero(self.X[one[one >= 0]]) for one in self.rows)
        indptr, indices = np.full(len(rows) + 2 * m, -7), np.full(total, -7, np.int32)
        data, weight, first_entry = np.empty(total), np.empty(len(rows) + m), np.empty(m, np.int64)
        self.indptr, features = np.full(m + 1, -7), np.empty(total + 1, np.int32)
        position = np.full(d, -1, np.int32)
        working_set.copy_rows_of_lanes(
            self.instances.arrays,
            read_only(self.weight),
            NEGATIVES,
            (row_indptr, rows),
            position,
            (indptr, indices, data, weight, first_entry),
            self.indptr,
            features,
        )
        assert (position == -1).all()
        self.features = features[: self.indptr[-1]]
        self.of_lane = in_pieces(self.indptr, self.features)
        self.sets = (indptr, indices, data), weight
        first_row = row_indptr[:-1] + np.arange(m)
        self.places = {
            "n_rows": np.diff(row_indptr) + 1,
            "first_row": first_row,
            "first_pointer": first_row + np.arange(m),
            "first_entry": first_entry,
            "n_positives": self.n_positives,
        }

    def random_pool(self, rng):
        """Return two random points of each lane, one behind the other."""
        n = 2 * (len(self.features) + len(self.rows))
        values = rng.normal(size=n) * 10.0 ** rng.uniform(-4, 1, n)
        return np.where(rng.random(n) < 0.2, 0, values)

    def lanes(self, points):
        """Return lanes with these points."""
        width = np.diff(self.indptr) + 1
        first, m = 2 * (self.indptr[:-1] + np.arange(len(width))), len(width)
        known = {"first": first, "width": width, "trial_norm2": np.nan}
        return Lanes(points, np.arange(m), **known, **self.places)


SIZES = {"n": st.integers(1, 15), "d": st.integers(1, 12), "m": st.integers(1, 5), "seed": SEEDS}


@given(exponent=scales(np.float64), **SIZES)
def test_copies_of_rows(n, d, m, exponent, seed):
    copies = Copies(np.random.default_rng(seed), n, d, m, exponent)
    (indptr, indices, data), weight = copies.sets
    for c, rows in enumerate(copies.rows):
        first, features = copies.places["first_row"][c], copies.of_lane[c]
        own = indptr[first + c : first + c + len(rows) + 1]
        at = copies.places["first_entry"][c]
        entries = slice(at, at + own[-1])
        shape = (len(rows), len(features))
        small = sp.csr_array((data[entries], indices[entries], own), shape=shape)
        dense = np.zeros((len(rows), d))
        dense[:, features] = small.toarray()
        expected = np.where((rows < 0)[:, None], 0, copies.X[rows])
        np.testing.assert_array_equal(dense, expected)
        assert set(features) == set(np.flatnonzero(expected.any(axis=0)))
        assert len(set(features)) == len(features)
        np.testing.assert_array_equal(
            weight[first : first + len(rows)],
            np.where(rows < 0, NEGATIVES, copies.weight[rows]),
        )


@given(**SIZES)
def test_points_with_a_shared_vector(n, d, m, seed):
    rng = np.random.default_rng(seed)
    copies, old = Copies(rng, n, d, m), Points(rng, m, d)
    of_shared, shared = rng.normal(size=m), rng.normal(size=d + 1)
    points = copies.random_pool(rng)
    before, dense, lanes = points.copy(), np.zeros(d), copies.lanes(points)
    lists = copies.indptr, copies.features
    working_set.write_trial_points(old.arrays, of_shared, shared, lists, dense, points, lanes.state)
    assert not dense.any()
    for c, features in enumerate(copies.of_lane):
        expected = np.append(old.dense()[c], old.intercept[c]) + of_shared[c] * shared
        here, other = np.split(np.arange(2 * len(features) + 2) + lanes.first[c], 2)
        np.testing.assert_allclose(points[here], expected[[*features, d]], rtol=1e-12)
        np.testing.assert_allclose(lanes.trial_norm2[c], (points[here][:-1] ** 2).sum())
        np.testing.assert_array_equal(points[other], before[other])
