"""Scores, normalisers, losses and best classes of dense weights against numpy."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.special

from sklearn_xc._input.data import CsrRows
from sklearn_xc._weights import class_weights
from sklearn_xc._weights.class_weights import ClassWeights

D = 90


def make_rows(n, dtype=np.float64, d=D):
    """Return n rows, a few of them empty: the first, the last and one between."""
    rng = np.random.default_rng(n)
    dense = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.1)
    dense[[0, n // 2, n - 1]] = 0.0
    X = sp.csr_array(dense.astype(dtype))
    indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int32)
    return CsrRows(indptr, indices, X.data, X.shape)


def make_weights(n_classes, dtype, with_scale):
    """Return weights, with scales, intercepts and a prior or without."""
    rng = np.random.default_rng(n_classes)
    coef = rng.normal(size=(n_classes, D)).astype(dtype)
    scale = rng.uniform(0.1, 2.0, n_classes)
    return (
        ClassWeights(coef, scale, *rng.normal(size=(2, n_classes)))
        if with_scale
        else (ClassWeights(coef))
    )


def exact_scores(weights, X):
    dense = sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape).astype(np.float64)
    W = weights.coef.astype(np.float64) * weights.scale[:, None]
    scores = dense @ W.T + weights.intercept.astype(np.float64)
    scores[np.diff(X.indptr) == 0] = weights.prior
    return scores


@pytest.mark.parametrize(
    ("n_classes", "with_scale", "dtype"),
    [(1, True, np.float32), (70, False, np.float32), (70, True, np.float64)],
)
def test_log_losses_of_pairs_in_any_order(n_classes, with_scale, dtype):
    """Rows repeat, are out of order, and some are not named at all."""
    weights = make_weights(n_classes, dtype, with_scale)
    X, rng = make_rows(40, dtype), np.random.default_rng(0)
    rows = np.concatenate([[39, 0, 7, 7, 3, 39, 20], rng.integers(0, 30, 30)])
    classes = rng.integers(0, n_classes, len(rows))
    scores = exact_scores(weights, X)
    expected = scipy.special.logsumexp(scores, axis=1)[rows] - scores[rows, classes]
    found = weights.log_losses(X, rows.astype(np.int32), classes.astype(np.int32), None)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, atol=400 * np.finfo(dtype).eps)


@pytest.mark.parametrize(
    ("k", "n_classes", "with_scale", "dtype"),
    [
        (3, 1, False, np.float32),
        (3, 70, False, np.float32),
        (70, 70, True, np.float32),
        (75, 70, True, np.float64),
    ],
)
def test_topk(k, n_classes, with_scale, dtype):
    """Rows without features score the prior; where there is none, all their classes tie."""
    weights = make_weights(n_classes, dtype, with_scale)
    X = make_rows(40, dtype)
    labels, scores = weights.topk(X, k, None)
    assert labels.shape == scores.shape == (40, k)
    assert labels.dtype == np.int64
    assert scores.dtype == dtype
    kept = min(k, n_classes)
    all_scores = weights.scores(X, None)
    expected = np.argsort(-all_scores, axis=1, kind="stable")[:, :kept]
    np.testing.assert_array_equal(labels[:, :kept], expected)
    np.testing.assert_array_equal(scores[:, :kept], np.take_along_axis(all_scores, expected, 1))
    blank = np.argsort(-weights.prior, kind="stable")[:kept]
    np.testing.assert_array_equal(labels[[0, -1], :kept], [blank, blank])
    assert (labels[:, kept:] == -1).all()
    assert np.isneginf(scores[:, kept:]).all()


class TestHardest:
    @staticmethod
    def pairs(n_classes, n=40):
        """Return pairs whose rows repeat, are out of order, and leave some out."""
        rng = np.random.default_rng(n_classes)
        rows = np.concatenate([[n - 1, 0, 7, 7, 3, n - 1, n // 2], rng.integers(0, 30, 60)])
        return rows.astype(np.int32), rng.integers(0, n_classes, len(rows)).astype(np.int32)

    @staticmethod
    def expected(scores, rows, classes, n_hard):
        """Return the best of the other classes; ties go to the smaller class."""
        order = np.argsort(-scores[rows], axis=1, kind="stable")
        return np.array(
            [each[each != y][:n_hard] for each, y in zip(order, classes, strict=True)]
        ).reshape(len(rows), n_hard)

    @pytest.mark.parametrize(("n_classes", "n_hard"), [(2, 0), (3, 2), (70, 5), (70, 69)])
    def test_against_numpy(self, n_classes, n_hard):
        dtype = np.float32
        weights, X = make_weights(n_classes, dtype, True), make_rows(40, dtype)
        rows, classes = self.pairs(n_classes)
        hard, losses = weights.hardest(X, rows, classes, n_hard, None)
        assert hard.dtype == np.int32
        assert losses.dtype == np.float64
        expected = self.expected(weights.scores(X, None), rows, classes, n_hard)
        np.testing.assert_array_equal(hard, expected)
        exact = weights.log_losses(X, rows, classes, None)
        assert np.abs(losses - exact).max() <= 0.003
        assert (losses >= 0).all()


@pytest.mark.parametrize(("n_classes", "dtype"), [(1, np.float64), (70, np.float32)])
def test_scores_beyond_the_range_of_floats(n_classes, dtype):
    """Whichever class it is: not even the top-k of the others is well defined."""
    X, largest = make_rows(40, dtype), np.finfo(dtype).max
    rows = np.flatnonzero(np.diff(X.indptr) > 1)[-1:].astype(np.int32)
    at = X.indptr[rows[0]]
    for k in {0, n_classes // 2, n_classes - 1}:
        coef = make_weights(n_classes, dtype, False).coef.copy()
        for signs in ((1, 1), (1, -1)):  # inf, and NaN
            coef[k, X.indices[at : at + 2]] = np.sign(X.data[at : at + 2]) * signs * largest
            weights = ClassWeights(coef)
            wide = CsrRows(X.indptr, X.indices, X.data * dtype(1e3), X.shape)
            calls = (
                lambda w=weights, x=wide: w.scores(x, None),
                lambda w=weights, x=wide: w.topk(x, 3, 2),
                lambda w=weights, x=wide: w.log_normalisers(x, 1),
                lambda w=weights, x=wide: w.log_losses(x, rows, rows * 0, None),
                lambda w=weights, x=wide: w.hardest(x, rows, rows * 0, 0, None),
            )
            for call in calls:
                with pytest.raises(FloatingPointError, match=f"range of {np.dtype(dtype).name}"):
                    call()


@pytest.mark.parametrize(("rows_per_task", "n_jobs"), [(1, 1), (7, 2)])
def test_threads_and_tasks_change_no_bit(monkeypatch, rows_per_task, n_jobs):
    dtype = np.float32
    weights, X = make_weights(70, dtype, True), make_rows(40, dtype)
    rows = np.random.default_rng(0).integers(0, 40, 100)
    classes = rows % 70

    def everything(n_jobs):
        return (
            weights.scores(X, n_jobs),
            weights.log_normalisers(X, n_jobs),
            weights.log_losses(X, rows, classes, n_jobs),
            *weights.topk(X, 5, n_jobs),
            *weights.hardest(X, rows, classes, 4, n_jobs),
        )

    expected = everything(1)
    monkeypatch.setattr(class_weights, "_CHUNK_ROWS", rows_per_task)
    for found, value in zip(everything(n_jobs), expected, strict=True):
        assert found.tobytes() == value.tobytes()


@pytest.mark.parametrize("cost", [0, 5, 1e9])
def test_scores_of_pairs_are_those_of_all(cost, monkeypatch):
    monkeypatch.setattr(class_weights, "_COST_OF_PAIR", cost)
    rng = np.random.default_rng(0)
    weights = make_weights(30, np.float64, True)
    coef, scale, intercept = (
        part.copy() for part in (weights.coef, weights.scale, weights.intercept)
    )
    coef[:20, :20], coef[:, 85:] = 0, 0
    for part in (coef, scale, intercept):
        part[25] = part[26]
    weights = ClassWeights(coef, scale, intercept, weights.prior)
    X = sp.random_array((50, D), density=0.1, random_state=rng).tolil()
    X[0], X[1], X[2] = 0, np.eye(D)[3], np.eye(D)[88]
    X = sp.csr_array(X)
    X = CsrRows(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, X.shape)
    asked = rng.random((50, 30)) < rng.choice([0.0, 0.1, 0.9], 50)[:, None]
    asked[:3] = np.arange(30) < 10
    asked[:, 25:27] = asked[:, 25:26]
    indptr, classes = sp.csr_array(asked).indptr.astype(np.int64), np.nonzero(asked)[1]
    found = weights.pair_scores(X, indptr, classes, None)
    np.testing.assert_allclose(found, weights.scores(X, None)[asked], atol=1e-12)
    if cost in (0, 1e9):
        np.testing.assert_array_equal(found[classes == 25], found[classes == 26])
    large = CsrRows(X.indptr, X.indices, X.data * 1e308, X.shape).take(np.array([7]))
    with pytest.raises(FloatingPointError, match="range of float64"), np.errstate(all="ignore"):
        weights.pair_scores(large, np.array([0, 30]), np.arange(30), None)
