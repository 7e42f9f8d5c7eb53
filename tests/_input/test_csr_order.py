"""The order of rows and features changes nothing else."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sklearn_xc._input.data import CsrRows
from sklearn_xc._input.kernels.csr_rows import copy_rows, count_features, transpose_rows
from sklearn_xc.one_vs_all.problem import arranged


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


def test_copy_rows():
    rng = np.random.default_rng(0)
    X = sp.random_array((9, 7), density=0.4, rng=rng, format="csr")
    order, places = rng.integers(0, 9, 6), rng.permutation(6)
    expected = X[order[np.argsort(places)]]
    out = np.full(expected.nnz, -1, np.int32), np.full(expected.nnz, np.nan)
    copy_rows(X.indptr, X.indices, X.data, order, places, expected.indptr, *out)
    np.testing.assert_array_equal(out[0], expected.indices)
    np.testing.assert_array_equal(out[1], expected.data)


def test_transpose_rows():
    X = sp.random_array((9, 7), density=0.4, rng=np.random.default_rng(0), format="csr")
    expected, counts = X.tocsc(), np.zeros(7, np.int64)
    count_features(X.indices, counts)
    np.testing.assert_array_equal(counts, np.diff(expected.indptr))
    out = np.full(X.nnz, -1, np.int32), np.full(X.nnz, np.nan)
    transpose_rows(X.indptr, X.indices, X.data, expected.indptr[:-1].astype(np.int64), *out)
    np.testing.assert_array_equal(out[0], expected.indices)
    np.testing.assert_array_equal(out[1], expected.data)
