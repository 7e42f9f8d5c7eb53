"""How often labels are on instances without features."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc._input.blank_rows import LabelFrequencies, features_of, is_blank
from sklearn_xc._input.data import CsrRows, DenseRows

ROWS = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [2.0, 0.0, -1.0], [0.0, 0.0, 0.0]])
PAIRS = np.array([0, 0, 1, 2, 3, 3]), np.array([0, 1, 1, 0, 1, 2])
WEIGHT = np.array([1.0, 2.0, 0.5, 4.0])


def frequencies(blank):
    return LabelFrequencies.of(*PAIRS, WEIGHT, np.array(blank, bool), 4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blank_rows_in_any_container(dtype):
    X = sp.csr_array(ROWS.astype(dtype))
    with_zeros = sp.csr_array(
        (np.array([1.0, 0.0, 2.0, -1.0, -0.0], dtype), [1, 2, 0, 2, 1], [0, 1, 2, 4, 5]),
        shape=(4, 3),
    )
    for rows in (X, with_zeros):
        found = CsrRows(rows.indptr.astype(np.int64), rows.indices, rows.data, (4, 3))
        assert is_blank(found).tolist() == [False, True, False, True]
    assert is_blank(DenseRows(ROWS.astype(dtype))).tolist() == [False, True, False, True]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_that_occur(dtype):
    rows = sp.csr_array((np.array([0.0, 3.0, 1.0], dtype), [1, 2, 0], [0, 2, 3]), shape=(2, 4))
    found = CsrRows(rows.indptr.astype(np.int64), rows.indices, rows.data, (2, 4))
    assert features_of(found).tolist() == [True, False, True, False]
    assert features_of(DenseRows(rows.toarray())).tolist() == [True, False, True, False]
    for container in (found, DenseRows(rows.toarray())):
        assert features_of(container, np.array([1])).tolist() == [True, False, False, False]


def test_counts_are_summed_weights():
    found = frequencies([0, 1, 0, 1])
    np.testing.assert_allclose(found.counts, [1.5, 7.0, 4.0, 0.0])
    np.testing.assert_allclose(found.blank_counts, [0.0, 6.0, 4.0, 0.0])
    assert (found.total, found.blank_total) == (7.5, 6.0)


def test_without_blank_instances_all_speak():
    found = frequencies([0, 0, 0, 0])
    np.testing.assert_array_equal(found.of_blank(), found.counts)


def test_blank_instances_beside_imagined_ones():
    """The mean of the labels of blank instances and of 20 more and 2 % with the labels of all."""
    found = frequencies([0, 1, 0, 1])
    imagined = 20 + 0.02 * 7.5
    shares = (found.blank_counts + imagined * found.counts / 7.5) / (6.0 + imagined)
    np.testing.assert_allclose(found.of_blank() / 7.5, shares)
    many = LabelFrequencies(found.counts, 7.5, 1e9 * found.blank_counts, 6e9)
    np.testing.assert_allclose(many.of_blank() / 7.5, [0, 1, 4 / 6, 0], atol=1e-8)


def test_sums_and_new_labels():
    one, other = frequencies([0, 1, 0, 0]), frequencies([0, 1, 0, 1])
    both = one.plus(other)
    np.testing.assert_allclose(both.counts, 2 * one.counts)
    np.testing.assert_allclose(both.blank_counts, [0, 8, 4, 0])
    assert (both.total, both.blank_total) == (15.0, 8.0)
    order = np.array([5, 0, 1, 4, 2, 3])
    longer = both.with_labels(2, order)
    np.testing.assert_allclose(longer.counts, [0, 3, 14, 0, 8, 0])
    np.testing.assert_allclose(longer.blank_counts, [0, 0, 8, 0, 4, 0])
    assert (longer.total, longer.blank_total) == (15.0, 8.0)
