"""From label columns to distinct problems, and back to one weight matrix."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sklearn_xc._input.data import read_only
from sklearn_xc.one_vs_all import training
from sklearn_xc.one_vs_all.starts import Zero
from sklearn_xc.one_vs_all.training import assemble_weights, group_equal_problems


def test_labels_are_grouped_by_rows_and_weights(make_problem):
    Y = sp.csc_array(np.array([[1, 0, 1, 0, 1, 0], [0, 0, 0, 1, 0, 0], [1, 0, 1, 0, 1, 0]]))
    ones, other = np.ones(6), np.array([1, 1, 2, 1, 1, 1.0])
    for plus, minus, groups in (
        (ones, ones, [4, 5, 4, 3, 4, 5]),
        (other, ones, [4, 5, 2, 3, 4, 5]),
        (ones, other, [4, 5, 2, 3, 4, 5]),
    ):
        problem = make_problem(np.eye(3), Y, plus=plus, minus=minus)
        assert group_equal_problems(problem, Zero()).tolist() == groups


def overwrite(array, n):
    """Do the worst that ``release`` may do to released items."""
    array[:n] = 77


@given(
    n_rows=st.integers(1, 12),
    n_labels=st.integers(1, 20),
    cuts=st.lists(st.integers(0, 12), max_size=3),
    seed=st.integers(0, 2**31),
    at_a_time=st.integers(1, 40),
)
def test_blocks_are_stacked_in_the_order_of_the_labels(n_rows, n_labels, cuts, seed, at_a_time):
    """Labels may share a row of the stacked solutions, or leave one unused.

    A row is still there for each label that needs it, whatever is given back on the way.
    """
    rng = np.random.default_rng(seed)
    stacked = rng.normal(size=(n_rows, 5)) * (rng.random((n_rows, 5)) < 0.5)
    row_of_label = rng.integers(0, n_rows, n_labels)
    row_of_label[0] = n_rows - 1
    edges = sorted({0, n_rows, *(c for c in cuts if c < n_rows)})
    solutions = []
    for start, stop in itertools.pairwise(edges):
        part = sp.csr_array(stacked[start:stop])
        solutions.append(
            SimpleNamespace(
                labels=np.arange(start, stop),
                indptr=part.indptr,
                indices=part.indices.copy(),
                values=part.data.copy(),
            )
        )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "CHUNK_WEIGHTS", at_a_time)
        patch.setattr(training, "release", overwrite)
        coef = assemble_weights(solutions, row_of_label, 5)
    assert coef.has_canonical_format
    assert coef.indices.dtype == coef.indptr.dtype == np.int32  # a third less than with int64
    np.testing.assert_array_equal(coef.toarray(), stacked[row_of_label])
    assert solutions == []


@given(
    n_labels=st.integers(0, 12),
    d=st.integers(1, 20),
    seed=st.integers(0, 2**31),
)
def test_features_get_their_original_numbers(n_labels, d, seed):
    """Each label's weights go with their features, which rise again."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(n_labels, d)) * (rng.random((n_labels, d)) < rng.random())
    columns = rng.permutation(d).astype(np.int32)
    rows = sp.csr_array(weights.astype(np.float32))
    solution = SimpleNamespace(
        labels=np.arange(n_labels),
        indptr=rows.indptr.astype(np.int64),
        indices=rows.indices.astype(np.int32),
        values=rows.data,
    )
    training._restore_features(solution, read_only(columns))
    found = solution
    assert (found.indptr.dtype, found.indices.dtype) == (np.int64, np.int32)
    assert found.values.dtype == np.float32
    for start, stop in itertools.pairwise(found.indptr):
        assert (np.diff(found.indices[start:stop]) > 0).all()
    expected = np.empty((n_labels, d), np.float32)
    expected[:, columns] = weights
    after = sp.csr_array((found.values, found.indices, found.indptr), shape=(n_labels, d))
    np.testing.assert_array_equal(after.toarray(), expected)
