"""Scores, normalisers and best classes against scipy and numpy."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.special

from sklearn_xc._compile.jit import kernel
from sklearn_xc._input.data import read_only
from sklearn_xc._weights.kernels.class_scores import (
    gather_block,
    log_normalisers,
    mark_words,
    number_features,
    rough_log_normalisers,
    score_classes,
    topk_scores,
)

gather = kernel(gather_block)
number = kernel(number_features)


def make_rows(dtype, n=23, d=90, seed=0):
    """Return rows of 0 to 12 non-zeros, with empty ones first, in the middle and last."""
    rng = np.random.default_rng(seed)
    dense = np.zeros((n, d))
    for i in range(n):
        chosen = rng.choice(d, i % 13, replace=False)
        dense[i, chosen] = rng.normal(size=len(chosen))
    dense[[0, 7, n - 1]] = 0.0
    X = sp.csr_array(dense.astype(dtype))
    X.sort_indices()
    return X


def arrays_of(X):
    return tuple(map(read_only, (X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data)))


@pytest.mark.parametrize(
    ("n_classes", "first", "last", "dtype"),
    [(1, 0, 23, "f4"), (16, 5, 12, "f4"), (33, 22, 23, "f4"), (7, 4, 4, "f4"), (150, 0, 23, "f8")],
)
def test_score_classes(n_classes, first, last, dtype):
    rng = np.random.default_rng(n_classes)
    X = make_rows(dtype)
    V = rng.normal(size=(n_classes, 90)).astype(dtype)
    scale = rng.uniform(0.01, 3.0, n_classes).astype(dtype)
    added, blank = rng.normal(size=(2, n_classes)).astype(dtype)
    scores = np.full((last - first, n_classes), np.nan, dtype)
    score_classes(arrays_of(X), first, last, *map(read_only, (V, scale, added, blank)), scores)
    exact = X[first:last].astype(np.float64) @ (scale[:, None].astype(np.float64) * V).T + added
    is_blank = np.diff(X.indptr)[first:last] == 0
    exact[is_blank] = blank
    np.testing.assert_allclose(scores, exact, atol=200 * np.finfo(dtype).eps)
    assert (scores[is_blank] == blank).all()


@pytest.mark.parametrize(("d", "nnz"), [(1, 300), (64, 0), (64, 300), (65, 1), (100_000, 300)])
def test_number_features(d, nnz):
    rng = np.random.default_rng(d + nnz)
    indices = rng.integers(0, d, nnz).astype(np.int32)
    if nnz:
        indices[[0, -1]] = d - 1
    marks, position = np.zeros(mark_words(d), np.uint64), np.empty(d, np.int32)
    touched, local = np.full(min(nnz, d), -7, np.int32), np.full(nnz + 2, -7, np.int32)
    expected, places = np.unique(indices, return_inverse=True)
    found = number(read_only(indices), marks, position, touched, local)
    assert found == len(expected)
    np.testing.assert_array_equal(touched[:found], expected)
    np.testing.assert_array_equal(local[:nnz], places)
    assert (touched[found:] == -7).all()
    assert (local[nnz:] == -7).all()
    assert (marks == 0).all()
    assert number(indices, marks, position, touched, indices) == found  # in place, once more
    np.testing.assert_array_equal(indices, places)


@pytest.mark.parametrize(
    ("spread", "n_classes", "dtype"),
    [(0.0, 33, "f4"), (30.0, 1, "f4"), (1e6, 33, "f4"), (30.0, 33, "f8")],
)
def test_log_normalisers(spread, n_classes, dtype):
    scores = np.random.default_rng(0).normal(size=(20, n_classes), scale=spread).astype(dtype)
    scores[3] = scores[3, 0]  # all equal
    out = np.full(20, np.nan)
    log_normalisers(scores, out)
    expected = scipy.special.logsumexp(scores.astype(np.float64), axis=1)
    np.testing.assert_allclose(out, expected, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize(
    ("spread", "shift", "n_classes"),
    [(0.0, 0.0, 1), (1.0, -500.0, 33), (200.0, 3e3, 2), (200.0, 3e3, 30_000), (1e6, 0.0, 33)],
)
def test_rough_log_normalisers(spread, n_classes, shift):
    """Also of ties, of one class that leads by far, and of many that are far behind."""
    rng = np.random.default_rng(n_classes)
    scores = (rng.uniform(-0.5, 0.5, (20, n_classes)) * spread + shift).astype(np.float32)
    scores[3] = scores[3, 0]
    scores[4] = np.round(scores[4] / max(spread, 1.0), 1) * max(spread, 1.0)
    scores[5, 1:] = scores[5, 0] - np.float32(spread)
    scores[6, -1] += np.float32(spread)
    out = np.full(20, np.nan)
    rough_log_normalisers(read_only(scores), out)
    expected = scipy.special.logsumexp(scores.astype(np.float64), axis=1)
    assert np.abs(out - expected).max() <= 0.003


@pytest.mark.parametrize(
    ("n_classes", "k", "levels"),  # with one block, two, and the bound
    [(5, 1, 3), (5, 60, 3), (127, 5, 3), (129, 60, 3), (1500, 1, 3), (1500, 60, 1000)],
)
def test_topk_scores(n_classes, k, levels):
    """Few levels make ties; the best score is then often that of several classes."""
    dtype = np.float32
    k = min(k, n_classes)
    rng = np.random.default_rng(levels)
    scores = (rng.integers(0, levels, (6, n_classes)) - 2).astype(dtype)
    scores[1] = np.sort(scores[1])
    scores[2] = np.sort(scores[2])[::-1]
    labels, best = np.full((6, k + 2), -1), np.full((6, k + 2), -np.inf, dtype)
    topk_scores(read_only(scores), k, labels, best)
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(labels[:, :k], expected)
    np.testing.assert_array_equal(best[:, :k], np.take_along_axis(scores, expected, axis=1))
    assert (labels[:, k:] == -1).all()
    assert np.isneginf(best[:, k:]).all()
