"""Rows in another order, by feature and copied, against lists and scipy, over random shapes."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_xc._input.data import CsrRows, read_only
from sklearn_xc._input.kernels.csr_rows import (
    arrange_rows,
    copy_rows,
    count_features,
    transpose_rows,
)
from sklearn_xc.one_vs_all.problem import arranged

each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
few = settings(max_examples=25, deadline=None)
shapes = {"n": st.integers(0, 8), "d": st.integers(0, 9), "seed": st.integers(0, 2**32 - 1)}


def make_rows(rng, n, d, dtype):
    """Return CSR rows, some of them empty, and each as a list of pairs.

    Features are in any order, and some of the values are zeros.
    """
    features = [rng.permutation(d)[: rng.integers(d + 1) * rng.integers(2)] for _ in range(n)]
    lists = [[(int(j), dtype(rng.integers(-2, 3))) for j in one] for one in features]
    return *map(read_only, as_csr(lists, dtype)), lists


def as_csr(lists, dtype):
    pairs = [pair for one in lists for pair in one]
    indptr = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    return indptr, np.array([j for j, _ in pairs], np.int32), np.array([v for _, v in pairs], dtype)


def room_for(n, dtype):
    """Return ids and values to be overwritten, with one place more, which nobody writes."""
    return np.full(n + 1, -1, np.int32), np.full(n + 1, np.nan, dtype)


def assert_equal(found, expected):
    """Compare ids and values with the expected ones, and the place behind with what it was."""
    for got, wanted, filler in zip(found, expected, (-1, np.nan), strict=True):
        np.testing.assert_array_equal(got, np.append(wanted, filler).astype(got.dtype))


@each_dtype
@few
@given(**shapes)
def test_arrange_rows(dtype, n, d, seed):
    rng = np.random.default_rng(seed)
    *rows, lists = make_rows(rng, n, d, dtype)
    order, number = rng.permutation(n), rng.permutation(d).astype(np.int32)
    arranged = [[(number[j], value) for j, value in lists[i]] for i in order]
    indptr, *expected = as_csr(arranged, dtype)
    found = room_for(indptr[-1], dtype)
    arrange_rows(*rows, order, read_only(number), read_only(indptr), *found)
    assert_equal(found, expected)


@each_dtype
@few
@given(**shapes)
def test_rows_by_feature(dtype, n, d, seed):
    rng = np.random.default_rng(seed)
    indptr, indices, data, lists = make_rows(rng, n, d, dtype)
    by_feature = [[(i, v) for i in range(n) for k, v in lists[i] if k == j] for j in range(d)]
    ends, *expected = as_csr(by_feature, dtype)
    counts = np.full(d, 3)
    count_features(indices, counts)
    np.testing.assert_array_equal(counts, 3 + np.diff(ends))
    places, found = ends[:-1].copy(), room_for(ends[-1], dtype)
    transpose_rows(indptr, indices, data, places, *found)
    assert_equal(found, expected)
    np.testing.assert_array_equal(places, ends[1:])


@each_dtype
@few
@given(**shapes, m=st.integers(0, 9))
def test_copy_rows(dtype, n, d, seed, m):
    """Some more than once, into a matrix with rows between them that are not touched."""
    rng = np.random.default_rng(seed)
    *rows, lists = make_rows(rng, n, d, dtype)
    chosen = rng.integers(0, n, m if n else 0)
    places = rng.permutation(len(chosen) + 2)[: len(chosen)]
    into = [[(-1, np.nan)] * 2 for _ in range(len(chosen) + 2)]
    for i, place in zip(chosen, places, strict=True):
        into[place] = lists[i]
    indptr, *expected = as_csr(into, dtype)
    found = room_for(indptr[-1], dtype)
    copy_rows(*rows, chosen, places, indptr, *found)
    assert_equal(found, expected)


@given(n=st.integers(1, 20), d=st.integers(1, 20), seed=st.integers(0, 2**31))
def test_instances_are_arranged_by_length_and_features_by_frequency(n, d, seed):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=rng.random(), rng=rng, format="csr", dtype=np.float32)
    indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int32)
    rows, order, features = arranged(CsrRows(indptr, indices, X.data, X.shape))
    after = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=X.shape)
    np.testing.assert_array_equal(after.toarray(), X.toarray()[order][:, features])
    assert (np.diff(after.indptr, 2) >= 0).all()
    assert (np.diff((after.toarray() != 0).sum(axis=0)) <= 0).all()
