"""Rows of a sparse and of a dense matrix through one interface, against numpy."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc._compile.jit import kernel
from sklearn_xc._input.data import read_only
from sklearn_xc._input.kernels.csr_rows import add_row_pair, row_dot_pair
from sklearn_xc.one_vs_all.kernels import dense_rows, sparse_rows
from sklearn_xc.one_vs_all.kernels.block_newton import row_sums_kernel

DTYPE = np.float32
NAMES = (
    *("prefetch_row", "row_dot", "row_dot_double", "add_row", "add_row_and_squares"),
    *("is_compactable", "compact"),
)
KINDS = {
    module: {name: kernel(getattr(module, name)) for name in NAMES}
    for module in (sparse_rows, dense_rows)
}


def arrays_of(module, X):
    """Return a dense X as the arguments of `module`."""
    if module is dense_rows:
        return (read_only(np.ascontiguousarray(X, DTYPE)),)
    X = sp.csr_array(X, dtype=DTYPE)
    parts = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data
    return tuple(read_only(part) for part in parts)


@pytest.fixture(params=KINDS, ids=["csr", "dense"])
def module(request):
    return request.param


@pytest.fixture
def functions(module):
    return KINDS[module]


@pytest.fixture(name="X")
def random_rows():
    """Return dense rows with many zeros; row 3 is all zeros, and so is the last."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 9)) * (rng.random((12, 9)) < 0.5)
    X[[3, 11]] = 0
    return X.astype(np.float32).astype(np.float64)


def each_row(X):
    return [(np.uint32(i), row) for i, row in enumerate(X)]


def test_pairs(X):
    rng = np.random.default_rng(1)
    one, two = rng.normal(size=(2, 9)).astype(DTYPE)
    rows = arrays_of(sparse_rows, X)
    dot, add = kernel(row_dot_pair), kernel(add_row_pair)
    atol = 20 * float(np.finfo(DTYPE).eps)
    for i, row in each_row(X):
        expected = row @ one.astype(np.float64), row @ two.astype(np.float64)
        assert dot(rows, i, one, two) == pytest.approx(expected, abs=atol)
        moved = one.copy(), two.copy()
        add(rows, i, DTYPE(2), moved[0], DTYPE(-3), moved[1])
        np.testing.assert_allclose(moved[0], one + 2 * row, rtol=1e-6)
        np.testing.assert_allclose(moved[1], two - 3 * row, rtol=1e-6, atol=1e-6)


def test_row_dot(X, module, functions):
    vector = np.random.default_rng(1).normal(size=9).astype(DTYPE)
    rows = arrays_of(module, X)
    for i, row in each_row(X):
        expected = row @ vector.astype(np.float64)
        atol = 20 * float(np.finfo(DTYPE).eps)
        assert functions["row_dot"](rows, i, vector) == pytest.approx(expected, abs=atol)
        assert functions["row_dot_double"](rows, i, vector) == pytest.approx(expected, abs=1e-14)


def test_add_row(X, module, functions):
    rows = arrays_of(module, X)
    for i, row in each_row(X):
        out = np.arange(9.0)
        functions["add_row"](rows, i, DTYPE(-1.5), out)
        np.testing.assert_allclose(out, np.arange(9) - 1.5 * row, atol=2e-6)


def test_add_row_and_squares(X, module, functions):
    rows = arrays_of(module, X)
    for i, row in each_row(X):
        out, squares = np.arange(9.0), np.ones(9)
        functions["add_row_and_squares"](rows, i, -1.5, 0.3, out, squares)
        np.testing.assert_allclose(out, np.arange(9) - 1.5 * row, atol=1e-14)
        np.testing.assert_allclose(squares, 1 + 0.3 * row**2, atol=1e-14)


def test_a_copy_of_sparse_rows_numbers_the_features_as_they_are_met(X):
    rows = arrays_of(sparse_rows, X)
    chosen = np.array([3, 4, 11, 0], np.int32)
    nnz = np.count_nonzero(X[chosen])
    position, touched = np.full(9, -1, np.int32), np.empty(9, np.int32)
    # No more room than asked for, and a row more than needed.
    out = np.empty(6, np.int64), np.empty(nnz, np.int32), np.empty(nnz, DTYPE)
    assert KINDS[sparse_rows]["is_compactable"](rows, chosen, nnz)
    assert not KINDS[sparse_rows]["is_compactable"](rows, chosen, nnz - 1)
    n_local = KINDS[sparse_rows]["compact"](rows, chosen, position, touched, out)
    indptr, indices, data = out
    local = sp.csr_array((data, indices, indptr[:5]), shape=(4, n_local)).toarray()
    np.testing.assert_array_equal(local, X[chosen][:, touched[:n_local]])
    assert set(touched[:n_local]) == set(np.flatnonzero(X[chosen].any(axis=0)))
    np.testing.assert_array_equal(position[touched[:n_local]], np.arange(n_local))
    assert (position >= 0).sum() == n_local


def test_dense_rows_are_never_copied(X):
    rows, functions = arrays_of(dense_rows, X), KINDS[dense_rows]
    chosen, position = np.arange(2, dtype=np.int32), np.full(9, -1, np.int32)
    assert not functions["is_compactable"](rows, chosen, 10**9)
    assert functions["compact"](rows, chosen, position, position.copy(), rows) == 0
    assert (position == -1).all()


def test_add_rows_sums_weighted_rows_and_the_constant_feature(X, module):
    weight = np.random.default_rng(1).random(12).astype(DTYPE)
    chosen = np.array([0, 3, 3, 10], np.int32)
    out = np.ones(10)
    row_sums_kernel(module)(arrays_of(module, X), read_only(chosen), read_only(weight), out)
    rows = np.hstack([X, np.ones((12, 1))])[chosen]
    expected = 1 + (weight[chosen, None].astype(np.float64) * rows).sum(axis=0)
    np.testing.assert_allclose(out, expected, rtol=1e-14)


def test_features_beyond_65536():
    rows = np.array([0, 1]), np.array([70_000], np.int32), np.ones(1)
    vector = np.zeros(70_001)
    vector[[70_000, 70_000 - 65_536]] = 3.0, 100.0
    functions, first = KINDS[sparse_rows], np.uint32(0)
    assert functions["row_dot"](rows, first, vector) == 3.0
    assert functions["row_dot_double"](rows, first, vector) == 3.0
    functions["add_row"](rows, first, 1.0, vector)
    assert vector[70_000] == 4.0
    squares = np.zeros(70_001)
    functions["add_row_and_squares"](rows, first, 1.0, 1.0, vector, squares)
    assert vector[70_000] == 5.0
    assert np.flatnonzero(squares).tolist() == [70_000]
    total = np.zeros(70_002)
    row_sums_kernel(sparse_rows)(rows, np.zeros(1, np.int32), np.ones(1), total)
    assert np.flatnonzero(total).tolist() == [70_000, 70_001]
