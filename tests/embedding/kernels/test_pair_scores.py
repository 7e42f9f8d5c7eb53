"""Scores of pairs of an instance and a label, beside dense products in numpy."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from sklearn_xc._input.data import as_csr_rows, read_only
from sklearn_xc.embedding.kernels.scores import score_features, score_vectors

N, L, D = 30, 11, 40
EMPTY_INSTANCE, EMPTY_LABEL = 4, 6


def make(dtype=np.float64, dim=13, m=7, seed=0):
    """Return V, Z, W, features of instances and labels in CSR, and labels of which some are -1."""
    rng = np.random.default_rng(seed)
    V, Z, W = (rng.normal(size=(n, dim)).astype(dtype) for n in (N, L, L))
    X, F = (sp.random_array((n, D), density=0.2, random_state=rng).tolil() for n in (N, L))
    X[EMPTY_INSTANCE] = F[EMPTY_LABEL] = 0
    X, F = (7 * X).tocsr().astype(dtype), normalize(F.tocsr()).astype(dtype)
    labels = rng.integers(-1, L, (N, m))
    labels[:3] = -1
    labels[EMPTY_INSTANCE, 0], labels[5:8, 1] = 0, EMPTY_LABEL
    return V, Z, W, X, F, labels


def run(V, Z, W, X, F, labels, values=None):
    values = np.zeros(D) if values is None else values
    out = np.full((*labels.shape, 3), np.nan, V.dtype)
    rows = [tuple(map(read_only, as_csr_rows(matrix).arrays)) for matrix in (X, F)]
    for column, vectors in enumerate((Z, W)):
        score_vectors(read_only(V), read_only(vectors), read_only(labels), column, out)
    score_features(*rows, read_only(labels), values, 2, out)
    return out


def expected_scores(V, Z, W, X, F, labels):
    """Return all three scores, one pair at a time, in float64."""
    X, F = X.toarray().astype(np.float64), F.toarray().astype(np.float64)
    out = np.full((*labels.shape, 3), -np.inf)
    for i, row in enumerate(labels):
        norm = np.sqrt((X[i] ** 2).sum())
        for j, label in enumerate(row):
            if label >= 0:
                cosine = X[i] @ F[label] / norm if norm > 0 else 0.0
                products = [V[i].astype(np.float64) @ U[label] for U in (Z, W)]
                out[i, j] = *products, cosine
    return out


@pytest.mark.parametrize(
    ("dtype", "dim"), [(np.float32, 1), (np.float32, 32), (np.float32, 13), (np.float64, 13)]
)
def test_all_scores(dtype, dim):
    data = make(dtype, dim)
    out, expected = run(*data), expected_scores(*data)
    assert out.dtype == dtype
    np.testing.assert_array_equal(out == -np.inf, expected == -np.inf)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=30 * np.finfo(dtype).eps)
    assert (out[..., 2] > 0.1).any()
    assert out[EMPTY_INSTANCE, 0, 2] == out[6, 1, 2] == 0
