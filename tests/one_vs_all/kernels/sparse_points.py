"""Rows of all unpleasant kinds, and sparse points: pools for kernels, dense rows for numpy."""

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from sklearn_xc._input.data import CsrRows

SEEDS = st.integers(0, 2**31)
#: Of scores, relative to the sum of the magnitudes of their terms; and what float32 can hold.
ROUNDING, LEAST = 1e-12, 1e-36


def scales(dtype):
    """Return powers of ten that products of two may have in float32."""
    most = 18 if dtype == np.float64 else 15
    return st.sampled_from([-most, -3, 0, 0, 0, 3, most])


def make_rows(rng, n, d, dtype=np.float64, exponent=0, spread=0.0):
    """Return CsrRows, and the same dense in float64: rows and features of all unpleasant kinds."""
    X = rng.uniform(0.01, 1, (n, d)) * 10.0 ** (exponent + rng.uniform(-spread, spread, (n, 1)))
    X *= rng.random((n, d)) < rng.random((n, 1)) * rng.uniform(0.2, 1, d)
    X[rng.random(n) < 0.1] = 0
    X[:, rng.random(d) < 0.1] = 0
    alone = np.flatnonzero(rng.random(n) < 0.2)
    X[np.setdiff1d(np.arange(n), rng.integers(n, size=n))] = X[rng.integers(n)]
    X[alone] = 0
    X[alone, rng.integers(d, size=len(alone))] = 10.0**exponent
    X = X.astype(dtype)
    csr = sp.csr_array(X)
    arrays = csr.indptr.astype(np.int64), csr.indices.astype(np.int32), csr.data
    return CsrRows(*arrays, (n, d)), X.astype(np.float64)


def pooled(lists, dtype):
    """Return an indptr, and lists one behind the other."""
    indptr = np.concatenate(([0], np.cumsum([len(one) for one in lists]))).astype(np.int64)
    return indptr, np.concatenate([np.asarray(one, dtype) for one in lists])


def in_pieces(indptr, values, shift=0):
    """Return the lists, each with `shift` more items than in `indptr`."""
    at = indptr + shift * np.arange(len(indptr))
    return [values[at[c] : at[c + 1]] for c in range(len(indptr) - 1)]


class Points:
    """Random sparse points over d features: pools for kernels, dense rows for numpy."""

    def __init__(self, rng, m, d, dtype=np.float64, exponent=0):
        self.lists = [rng.permutation(d)[: rng.integers(0, d + 1)] for _ in range(m)]
        self.indptr, self.features = pooled(self.lists, np.int32)
        values = []
        for one in self.lists:
            v = rng.normal(size=len(one) + 1) * 10.0 ** rng.uniform(-rng.integers(0, 7), 0)
            v[:-1] *= 10.0 ** rng.choice([0.0, 0.0, 0.0, -2, -5], len(one))
            values.append(np.where(rng.random(len(v)) < 0.1, 0, v) * 10.0**exponent)
        self.values = np.concatenate(values).astype(dtype)
        self.d = d

    @property
    def arrays(self):
        return self.indptr, self.features, self.values

    @property
    def intercept(self):
        return np.array([v[-1] for v in in_pieces(self.indptr, self.values, 1)], np.float64)

    def dense(self):
        """Return the points without intercepts, (m, d)."""
        out = np.zeros((len(self.lists), self.d))
        for row, one, v in zip(
            out, self.lists, in_pieces(self.indptr, self.values, 1), strict=True
        ):
            row[one] = v[:-1]
        return out

    def scores(self, X):
        """Return scores of shape (n, m), and how much of them may be rounding."""
        P, b = self.dense(), self.intercept
        return X @ P.T + b, ROUNDING * (X @ np.abs(P.T) + np.abs(b)) + LEAST

    def move_intercepts(self, to):
        self.values[self.indptr[1:] + np.arange(len(self.lists))] = to


def choose_kinks(rng, X, points):
    """Return kinks at, or next to, the score of some row; some of them where no score can be."""
    scores, _ = points.scores(X)
    m = scores.shape[1]
    kinks = scores[rng.integers(len(X), size=m), np.arange(m)]
    nudge = rng.choice([0, 1e-15, 1e-9, 1e-6, 1e-3, 0.3], m) * rng.choice([-1, 1], m)
    kinks = kinks + nudge * np.abs(kinks - points.intercept)
    return np.where(rng.random(m) < 0.1, points.intercept - rng.choice([0, 1], m), kinks)
