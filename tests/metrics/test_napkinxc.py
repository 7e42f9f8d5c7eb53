"""The metrics against those of napkinXC, an independent implementation."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc.metrics import (
    ndcg_at_k,
    precision_at_k,
    propensity,
    psndcg_at_k,
    psp_at_k,
    recall_at_k,
)

napkinxc = pytest.importorskip("napkinxc.metrics")

K = 5


@pytest.fixture(scope="module")
def problem():
    """Skewed label frequencies, empty rows, rows of all lengths, short rankings."""
    rng = np.random.default_rng(7)
    n_samples, n_labels = 300, 60
    Y = rng.random((n_samples, n_labels)) < 0.6 / np.arange(1, n_labels + 1)
    Y[::17] = False
    noisy = Y + rng.normal(0, 0.6, Y.shape)
    topk = np.argsort(-noisy, axis=1)[:, :K]
    for row, length in enumerate(rng.integers(2, K + 1, n_samples)):
        topk[row, length:] = -1
    rankings = [[int(label) for label in row if label >= 0] for row in topk]
    return sp.csr_matrix(Y.astype(np.float64)), topk, rankings


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (precision_at_k, "precision_at_k"),
        (recall_at_k, "recall_at_k"),
        (ndcg_at_k, "ndcg_at_k"),
    ],
)
def test_plain_metrics(problem, ours, theirs):
    Y, topk, rankings = problem
    expected = getattr(napkinxc, theirs)(Y, rankings, k=K)
    assert 0.1 < expected.min() < expected.max() < 0.95
    np.testing.assert_allclose(ours(Y, topk, range(1, K + 1)), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("ours", "theirs"), [(psp_at_k, "psprecision_at_k"), (psndcg_at_k, "psndcg_at_k")]
)
def test_propensity_scored_metrics(problem, ours, theirs):
    Y, topk, rankings = problem
    inverse = napkinxc.Jain_et_al_inverse_propensity(Y)
    expected = getattr(napkinxc, theirs)(Y, rankings, inverse, k=K)
    assert 0.1 < expected.min() < expected.max() < 0.95
    actual = ours(Y, topk, range(1, K + 1), propensities=1 / inverse)
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("preset", "A", "B"), [("default", 0.55, 1.5), ("wikipedia", 0.5, 0.4), ("amazon", 0.6, 2.6)]
)
def test_propensity(problem, preset, A, B):
    Y = problem[0]
    counts = np.asarray(Y.sum(axis=0)).ravel()
    expected = np.ravel(napkinxc.Jain_et_al_propensity(Y, A, B))
    np.testing.assert_allclose(propensity(counts, Y.shape[0], preset), expected, rtol=1e-12)
