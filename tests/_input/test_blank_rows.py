"""How often labels are on instances without features."""

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.data import (
    CsrRows,
    DenseRows,
    LabelFrequencies,
    features_of,
    is_blank,
    shares_any,
)

ROWS = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [2.0, 0.0, -1.0], [0.0, 0.0, 0.0]])
PAIRS = np.array([0, 0, 1, 2, 3, 3]), np.array([0, 1, 1, 0, 1, 2])
WEIGHT = np.array([1.0, 2.0, 0.5, 4.0])


def frequencies(blank):
    return LabelFrequencies.of(*PAIRS, WEIGHT, np.array(blank, bool), 4)


def test_blank_rows_in_any_container():
    with_zeros = sp.csr_array(
        (np.array([1.0, 0.0, 2.0, -1.0, -0.0]), [1, 2, 0, 2, 1], [0, 1, 2, 4, 5]), shape=(4, 3)
    )
    for rows in (sp.csr_array(ROWS), with_zeros, sp.csr_array((4, 3))):
        found = CsrRows(rows.indptr.astype(np.int64), rows.indices, rows.data, (4, 3))
        assert is_blank(found).tolist() == (rows.count_nonzero(axis=1) == 0).tolist()
        assert shares_any(found, np.arange(3) == 2).tolist() == [
            2 in rows[[i]].indices for i in range(4)
        ]
    assert is_blank(DenseRows(ROWS)).tolist() == [False, True, False, True]


def test_features_that_occur():
    rows = sp.csr_array((np.array([0.0, 3.0, 1.0]), [1, 2, 0], [0, 2, 3]), shape=(2, 4))
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


def test_without_blank_instances_all_count():
    found = frequencies([0, 0, 0, 0])
    np.testing.assert_array_equal(found.of_blank(), found.counts)


def test_blank_instances_beside_added_ones():
    """The mean of the labels of blank instances and of 20 more and 2 % with the labels of all."""
    found = frequencies([0, 1, 0, 1])
    added = 20 + 0.02 * 7.5
    shares = (found.blank_counts + added * found.counts / 7.5) / (6.0 + added)
    np.testing.assert_allclose(found.of_blank() / 7.5, shares)
    many = LabelFrequencies(found.counts, 7.5, 1e9 * found.blank_counts, 6e9)
    np.testing.assert_allclose(many.of_blank() / 7.5, [0, 1, 4 / 6, 0], atol=1e-8)


def test_new_labels():
    longer = frequencies([0, 1, 0, 1]).with_labels(2, np.array([5, 0, 1, 4, 2, 3]))
    np.testing.assert_allclose(longer.counts, [0, 1.5, 7, 0, 4, 0])
    np.testing.assert_allclose(longer.blank_counts, [0, 0, 6, 0, 4, 0])
    assert (longer.total, longer.blank_total) == (7.5, 6.0)
