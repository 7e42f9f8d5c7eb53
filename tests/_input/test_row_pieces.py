"""Ranges of rows cover all rows once, and hold about as many entries."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sklearn_xc._input import data
from sklearn_xc._input.data import CsrRows


@given(lengths=st.lists(st.integers(0, 9), max_size=30), most=st.integers(1, 12))
def test_pieces(lengths, most):
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    before, data.ENTRIES = data.ENTRIES, most
    try:
        pieces = list(data.row_pieces(indptr))
    finally:
        data.ENTRIES = before
    rows = [row for first, last in pieces for row in range(first, last)]
    assert rows == list(range(len(lengths)))
    for first, last in pieces:
        assert indptr[last] - indptr[first] <= most + 9


@given(seed=st.integers(0, 2**31))
def test_rows_are_taken(seed):
    rng = np.random.default_rng(seed)
    dense = rng.integers(0, 3, (8, 5)) * (rng.random((8, 5)) < 0.8)
    indptr, indices = np.arange(0, 41, 5), np.tile(np.arange(5, dtype=np.int32), 8)
    X = CsrRows(indptr, indices, dense.ravel().astype(float), (8, 5))
    rows = rng.integers(0, 8, 6)
    taken, without = X.take(rows), X.without_zeros()
    np.testing.assert_array_equal(taken.to_dense().values, dense[rows])
    np.testing.assert_array_equal(without.take(rows).to_dense().values, dense[rows])
    assert without.data.all()
