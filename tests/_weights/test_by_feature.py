"""Label weights arranged by feature, against the matrix they came from."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc._weights.by_feature import COLUMN_SHARE, COLUMN_WORK, arrange_by_feature


def make(n_labels, dtype=np.float32):
    """Return weights with features on no label, one, all, and just below and at the share."""
    rng = np.random.default_rng(0)
    at_share = int(np.ceil(COLUMN_SHARE * n_labels))
    W = np.zeros((n_labels, 40), dtype)
    for j in range(40):
        count = [0, 1, n_labels, at_share - 1, at_share][j] if j < 5 else rng.integers(n_labels)
        W[rng.permutation(n_labels)[:count], j] = rng.normal(size=count)
    return W


def unarranged(weights, n_labels):
    """Return the dense matrix that the arrays hold."""
    W = np.zeros((n_labels, len(weights.slot)), weights.values.dtype)
    for j, slot in enumerate(weights.slot):
        if slot >= 0:
            W[:, j] = weights.columns[slot, :n_labels]
        kept = slice(weights.indptr[j], weights.indptr[j + 1])
        W[weights.labels[kept], j] += weights.values[kept]
    return W


@pytest.mark.parametrize("n_labels", [1, 255, 256, 1001])
def test_all_weights_are_kept(n_labels):
    W = make(n_labels)
    weights = arrange_by_feature(sp.csr_array(W))
    np.testing.assert_array_equal(unarranged(weights, n_labels), W)
    assert weights.values.dtype == weights.columns.dtype == W.dtype
    np.testing.assert_array_equal(weights.by_label().toarray(), W)
    assert not weights.columns[:, n_labels:].any()
    assert weights.columns.shape[1] % 64 == 0
    counts = (W != 0).sum(axis=0)
    expected = counts >= (COLUMN_SHARE * n_labels if n_labels >= 256 else np.inf)
    np.testing.assert_array_equal(weights.slot >= 0, expected)
    np.testing.assert_array_equal(weights.work, np.where(expected, COLUMN_WORK * n_labels, counts))
    np.testing.assert_allclose(weights.reach, np.abs(W).sum(axis=1).max(), rtol=1e-6)
    assert not any(array.flags.writeable for array in weights.arrays[:-1])
