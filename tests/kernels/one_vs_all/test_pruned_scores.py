"""Scores of a sample before pruning and after it, against dense rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_xc._data import read_only
from sklearn_xc.kernels.one_vs_all.pruning import pruning_kernel
from sklearn_xc.kernels.rows import csr_rows, dense_rows
from sklearn_xc.losses import LOSSES
from sklearn_xc.losses.margin import compiled

K, KINK = 3, -1.0
few, many = (settings(max_examples=n, deadline=None) for n in (25, 60))
shapes = {"n": st.integers(1, 12), "d": st.integers(0, 6), "seed": st.integers(0, 2**32 - 1)}


def as_rows(numbers):
    return read_only(np.array(numbers, np.int32))


def quarters(rng, shape, dtype):
    """Return numbers whose products and sums are exact, zeros among them."""
    return (rng.integers(-4, 5, shape) / 4).astype(dtype) * (rng.random(shape) < 0.7)


class Sample:
    """A sample of random rows, and all that is kept of it; the same again by slow loops."""

    def __init__(self, rng, n, d, dtype, has_kink=True):
        self.dense, self.has_kink = quarters(rng, (n, d), dtype).astype(dtype), has_kink
        self.rows = np.flatnonzero(rng.random(n) < rng.choice([0.3, 0.9])).astype(np.int32)
        self.place = np.full(n, -1, np.int32)
        self.place[self.rows] = np.arange(len(self.rows))
        m = len(self.rows)
        self.scores, self.scored = np.full((2, m), -np.inf), np.empty(m, np.int32)
        self.best, self.n_above = np.full((2, m, K), -np.inf), np.zeros(2)
        self.of_positives, self.n = np.full((3, 6 * n + 1), np.nan), 0
        self.expected_best = [[[-np.inf] * K for _ in range(m)] for _ in range(2)]
        self.expected_above, self.expected_positives = [0, 0], []

    @property
    def csr(self):
        X = sp.csr_array(self.dense)
        arrays = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data
        return tuple(map(read_only, arrays))

    @property
    def arrays(self):
        """What kernels are told of the sample, and what they write."""
        told = read_only(self.rows), read_only(self.place)
        written = self.scores, self.scored, self.best, self.n_above, self.of_positives, self.n
        return told, written

    def take_up(self, known, positives, before, after):
        """Take up a label, whose scores are looked at in the known rows only."""
        of_side = [self.dense.astype(float) @ w[:-1] + w[-1] for w in (before, after)]
        kink = KINK if self.has_kink else -np.inf
        for i in positives:
            if self.place[i] >= 0:
                told = [s[i] if s[i] > kink else -np.inf for s in of_side]
                self.expected_positives.append([self.place[i], *told])
        for i in sorted(set(known) - set(positives)):
            for side, s in enumerate(of_side):
                if self.place[i] >= 0 and s[i] > kink:
                    best = self.expected_best[side][self.place[i]]
                    best[:] = sorted([*best, s[i]], reverse=True)[:K]
                    self.expected_above[side] += s[i] > 0

    def check(self):
        assert self.n == len(self.expected_positives)
        found = self.of_positives[:, : self.n].T
        np.testing.assert_array_equal(found, np.reshape(self.expected_positives, (-1, 3)))
        assert np.isnan(self.of_positives[:, self.n :]).all()
        np.testing.assert_array_equal(self.best, np.reshape(self.expected_best, self.best.shape))
        assert self.n_above.tolist() == self.expected_above
        assert (self.scores == -np.inf).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rows_of", [csr_rows, dense_rows], ids=["csr", "dense"])
@few
@given(**shapes)
def test_score_sample(rows_of, loss, dtype, n, d, seed):
    """Six labels in turn; rows are in several lists, and some are in none."""
    rng = np.random.default_rng(seed)
    loss = compiled(LOSSES[loss]())
    sample = Sample(rng, n, d, dtype, loss.has_kink)
    X = sample.csr if rows_of is csr_rows else (read_only(sample.dense),)
    for _ in range(6):
        lists = [np.flatnonzero(rng.random(n) < rng.random()) for _ in range(3)]
        before = 2 * quarters(rng, d + 1, dtype)
        after = np.where(np.abs(before) < 0.75, 0, before).astype(dtype)
        after[-1] = before[-1]
        told, written = sample.arrays
        sample.n = pruning_kernel(loss, rows_of).score_sample(
            X, *map(as_rows, lists), *told, before, after, *written
        )
        known = np.concatenate(lists) if loss.has_kink else np.arange(n)
        sample.take_up(known.tolist(), lists[2].tolist(), before, after)
    sample.check()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", ["squared_hinge", "huber_hinge"])
@many
@given(**shapes, m=st.integers(0, 4), prune=st.sampled_from([0.0, 0.5, 1.0, 9.0]))
def test_score_sets(loss, dtype, n, d, seed, m, prune):
    """Working sets with numbers in them that are no rows; a weight as large as `prune` stays."""
    rng = np.random.default_rng(seed)
    sample = Sample(rng, n, d, dtype)
    positives = [np.flatnonzero(rng.random(n) < 0.3) for _ in range(6)]
    labels = rng.permutation(6)[:m]
    sets, features, points = [], [], []
    for label in labels:
        others = np.setdiff1d(np.arange(n), positives[label])
        others = others[rng.random(len(others)) < rng.random()]
        sets.append(rng.permutation([*positives[label], *others, *[-1] * rng.integers(3)]))
        features.append(rng.permutation(d)[: rng.integers(d + 1)])
        points.append(2 * quarters(rng, len(features[-1]) + 1, dtype))
        before = np.zeros(d + 1)
        before[[*features[-1], d]] = points[-1]
        after = np.where(np.abs(before) >= prune, before, 0)
        after[d] = before[d]
        known = [int(i) for i in sets[-1] if i >= 0]
        sample.take_up(known, positives[label].tolist(), before, after)

    def pooled(lists, dtype):
        lengths = [len(one) for one in lists]
        values = np.concatenate([np.empty(0), *lists]).astype(dtype)
        return np.cumsum([0, *lengths]), values

    row_indptr, rows = pooled(sets, np.int32)
    indptr, features = pooled(features, np.int32)
    y_indptr, y_rows = pooled(positives, np.int32)
    vectors, largest = np.zeros((2, d + 1), dtype), max(map(len, sets), default=0)
    in_sample = np.full(largest + 1, -7, np.int32)
    told, written = sample.arrays
    sample.n = pruning_kernel(compiled(LOSSES[loss]()), csr_rows).score_sets(
        sample.csr, read_only(y_indptr), read_only(y_rows), labels, row_indptr, rows, indptr,
        features, pooled(points, dtype)[1], prune, *told, vectors, in_sample[:largest], *written,
    )  # fmt: skip
    sample.check()
    assert in_sample[largest] == -7
    assert (vectors[:, :-1] == 0).all()
