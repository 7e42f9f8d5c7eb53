"""Hashes of rows: equal for equal rows, different for others."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc._input.data import read_only
from sklearn_xc._input.kernels.csr_rows import hash_rows


def bits_of(data):
    """Return the bits of float64 values, zeros of either sign as 0."""
    return np.where(data == 0, 0, data.astype(np.float64).view(np.uint64)).astype(np.uint64)


def hashes(X):
    X = sp.csr_array(X)
    out = np.full((X.shape[0], 2), 99, np.uint64)
    parts = X.indptr.astype(np.int64), X.indices.astype(np.int32), bits_of(X.data)
    hash_rows(*map(read_only, parts), out)
    return out


def as_pairs(out):
    return [tuple(row) for row in out.tolist()]


def stored(rows, d):
    """Return CSR rows with exactly these (indices, values), explicit zeros included."""
    indptr = np.cumsum([0] + [len(indices) for indices, _ in rows])
    indices = np.concatenate([np.asarray(indices, np.int32) for indices, _ in rows])
    data = np.concatenate([np.asarray(values, np.float64) for _, values in rows])
    return sp.csr_array((data, indices, indptr), shape=(len(rows), d))


def test_equal_hashes_are_those_of_equal_rows():
    rng = np.random.default_rng(0)
    dense = rng.integers(-1, 2, (400, 4)) * 1.5
    rows, codes = as_pairs(hashes(dense)), [tuple(row) for row in dense.tolist()]
    assert len(set(codes)) == 81
    by_hash = dict(zip(rows, codes, strict=True))
    assert len(by_hash) == 81
    assert [by_hash[row] for row in rows] == codes


def test_the_same_in_any_matrix():
    rng = np.random.default_rng(1)
    X = sp.random_array((50, 300), density=0.1, format="csr", random_state=rng)
    order = rng.permutation(50)
    np.testing.assert_array_equal(hashes(X[order]), hashes(X)[order])
    wider = sp.hstack([X, sp.csr_array((50, 7))], format="csr")
    np.testing.assert_array_equal(hashes(wider), hashes(X))


def test_explicit_zeros_count_for_nothing():
    X = stored(
        [([1, 4], [2.0, 3.0]), ([0, 1, 4, 6], [0.0, 2.0, 3.0, -0.0]), ([3], [0.0]), ([], [])], 9
    )
    found = hashes(X)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[2], found[3])
    assert (found[0] != found[2]).all()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (([1, 2], [3.0, 5.0]), ([1, 2], [5.0, 3.0])),  # values changed places
        (([1], [3.0]), ([2], [3.0])),  # another feature
        (([1], [3.0]), ([1], [np.nextafter(3.0, 4.0)])),  # by one rounding
        (([0], [1.0]), ([0, 1], [1.0, 1.0])),
        (([1, 2], [1.0, 1.0]), ([0, 3], [1.0, 1.0])),  # the same sum of indices
        (([0], [1.0]), ([2**31 - 2], [1.0])),
    ],
)
def test_different_rows(one, other):
    found = hashes(stored([one, other], 2**31 - 1))
    assert (found[0] != found[1]).all()


def test_no_collision_among_many_rows():
    """Each of the two hashes is good by itself."""
    rng = np.random.default_rng(2)
    dense = np.unique(rng.integers(0, 3, (60_000, 16)).astype(np.float64), axis=0)
    found = hashes(dense)
    assert len(dense) > 59_000
    for column in found.T:
        assert len(np.unique(column)) == len(dense)
    ones = hashes(sp.eye_array(50_000, format="csr"))
    assert len(np.unique(ones[:, 0])) == 50_000
    assert len(np.unique(ones[:, 1])) == 50_000
