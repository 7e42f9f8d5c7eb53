"""Scores, normalisers, losses and best classes of dense weights against numpy."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.special

from sklearn_xc._data import CsrRows
from sklearn_xc.exceptions import MemoryBudgetError
from sklearn_xc.weights import class_weights
from sklearn_xc.weights.class_weights import ClassWeights

D = 90


@pytest.fixture(params=[np.float32, np.float64])
def dtype(request):
    return request.param


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


@pytest.fixture(params=[1, 2, 70])
def n_classes(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["plain", "scaled"])
def weights(request, n_classes, dtype):
    return make_weights(n_classes, dtype, request.param)


def test_scores(weights, dtype):
    X = make_rows(40, dtype)
    scores = weights.scores(X, None)
    assert scores.dtype == dtype
    tolerance = 200 * np.finfo(dtype).eps
    np.testing.assert_allclose(scores, exact_scores(weights, X), atol=tolerance)


def test_x_is_read_in_the_type_of_the_weights(weights, dtype):
    X = make_rows(40, np.float64 if dtype == np.float32 else np.float32)
    scores = weights.scores(X, None)
    assert scores.dtype == dtype
    np.testing.assert_allclose(scores, exact_scores(weights, X), atol=1e-4)


def test_log_normalisers(weights, dtype):
    X = make_rows(40, dtype)
    found = weights.log_normalisers(X, None)
    assert found.dtype == np.float64
    expected = scipy.special.logsumexp(exact_scores(weights, X), axis=1)
    np.testing.assert_allclose(found, expected, atol=200 * np.finfo(dtype).eps)


def test_log_losses_of_pairs_in_any_order(weights, n_classes, dtype):
    """Rows repeat, are out of order, and some are not named at all."""
    X, rng = make_rows(40, dtype), np.random.default_rng(0)
    rows = np.concatenate([[39, 0, 7, 7, 3, 39, 20], rng.integers(0, 30, 30)])
    classes = rng.integers(0, n_classes, len(rows))
    scores = exact_scores(weights, X)
    expected = scipy.special.logsumexp(scores, axis=1)[rows] - scores[rows, classes]
    found = weights.log_losses(X, rows.astype(np.int32), classes.astype(np.int32), None)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, atol=400 * np.finfo(dtype).eps)


def test_log_losses_of_no_pairs(weights):
    nothing = np.empty(0, np.int32)
    assert weights.log_losses(make_rows(5, weights.coef.dtype), nothing, nothing, None).size == 0


@pytest.mark.parametrize("k", [1, 3, 70, 75])
def test_topk(weights, n_classes, dtype, k):
    """Rows without features score the prior; where there is none, all their classes tie."""
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

    @pytest.mark.parametrize("with_scale", [False, True])
    @pytest.mark.parametrize(
        ("n_classes", "n_hard"), [(2, 0), (2, 1), (3, 1), (3, 2), (70, 1), (70, 5), (70, 69)]
    )
    def test_against_numpy(self, dtype, n_classes, n_hard, with_scale):
        weights, X = make_weights(n_classes, dtype, with_scale), make_rows(40, dtype)
        rows, classes = self.pairs(n_classes)
        hard, losses = weights.hardest(X, rows, classes, n_hard, None)
        assert hard.dtype == np.int32
        assert losses.dtype == np.float64
        expected = self.expected(weights.scores(X, None), rows, classes, n_hard)
        np.testing.assert_array_equal(hard, expected)
        exact = weights.log_losses(X, rows, classes, None)
        assert np.abs(losses - exact).max() <= 0.003
        assert (losses >= 0).all()

    @pytest.mark.parametrize("n_hard", [1, 3, 6])
    def test_ties_go_to_the_smaller_class(self, dtype, n_hard):
        """The own class is not among them, wherever it stands."""
        weights, X = ClassWeights(np.zeros((7, D), dtype)), make_rows(40, dtype)
        classes = np.arange(7, dtype=np.int32)
        hard, losses = weights.hardest(X, np.full(7, 3, np.int32), classes, n_hard, None)
        for y in range(7):
            assert hard[y].tolist() == [k for k in range(7) if k != y][:n_hard]
        np.testing.assert_allclose(losses, np.log(7), atol=0.003)

    def test_some_tie(self, dtype):
        weights, X = make_weights(70, dtype, False), make_rows(40, dtype)
        coef = weights.coef.copy()
        coef[10:40] = coef[5]
        weights = ClassWeights(coef)
        rows, classes = self.pairs(70)
        for n_hard in (1, 4, 33, 69):
            found, _ = weights.hardest(X, rows, classes, n_hard, None)
            expected = self.expected(weights.scores(X, None), rows, classes, n_hard)
            np.testing.assert_array_equal(found, expected)

    def test_all_others(self, dtype):
        weights, X = make_weights(9, dtype, True), make_rows(40, dtype)
        rows, classes = self.pairs(9)
        hard, _ = weights.hardest(X, rows, classes, 8, None)
        everything = np.sort(np.column_stack([hard, classes]), axis=1)
        np.testing.assert_array_equal(everything, np.tile(np.arange(9), (len(rows), 1)))

    def test_a_loss_is_never_negative(self, dtype):
        """Where the own class leads by far, the rough normaliser may be below its score."""
        X = make_rows(40, dtype)
        rows = np.arange(40, dtype=np.int32)
        weights = ClassWeights(100 * make_weights(70, dtype, False).coef)
        best = weights.topk(X, 1, None)[0][:, 0].astype(np.int32)
        _, losses = weights.hardest(X, rows, best, 3, None)
        assert (losses >= 0).all()
        np.testing.assert_allclose(losses, weights.log_losses(X, rows, best, None), atol=0.003)

    @pytest.mark.parametrize("size", [1e7, 1e39])
    def test_large_scores(self, size):
        X, rows = make_rows(40), np.arange(40, dtype=np.int32)
        weights = ClassWeights(size * make_weights(70, np.float64, False).coef)
        best = weights.topk(X, 1, None)[0][:, 0].astype(np.int32)
        _, losses = weights.hardest(X, rows, best, 3, None)
        np.testing.assert_allclose(losses, weights.log_losses(X, rows, best, None), atol=0.003)

    @pytest.mark.parametrize("offset", [-1e4, 1e4])
    def test_scores_far_from_zero(self, dtype, offset):
        weights, X = make_weights(37, dtype, True), make_rows(40, dtype)
        coef = weights.coef.copy()
        coef[:, 5] += offset
        weights = ClassWeights(coef, np.asarray(weights.scale, np.float64))
        rows, classes = self.pairs(37)
        hard, losses = weights.hardest(X, rows, classes, 5, None)
        expected = self.expected(weights.scores(X, None), rows, classes, 5)
        np.testing.assert_array_equal(hard, expected)
        exact = weights.log_losses(X, rows, classes, None)
        np.testing.assert_allclose(losses, exact, atol=0.003)

    def test_one_row(self, dtype):
        weights, X = make_weights(70, dtype, False), make_rows(40, dtype).take(np.array([3]))
        rows, classes = np.zeros(2, np.int32), np.array([69, 0], np.int32)
        hard, _ = weights.hardest(X, rows, classes, 69, None)
        expected = self.expected(weights.scores(X, None), rows, classes, 69)
        np.testing.assert_array_equal(hard, expected)

    def test_no_pairs(self, dtype):
        nothing = np.empty(0, np.int32)
        hard, losses = make_weights(70, dtype, False).hardest(
            make_rows(5, dtype), nothing, nothing, 3, None
        )
        assert hard.shape == (0, 3)
        assert losses.shape == (0,)


@pytest.mark.parametrize("n_classes", [1, 7, 70, 1500])
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


@pytest.mark.parametrize("rows_per_task", [1, 7, 512])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_and_tasks_change_no_bit(monkeypatch, dtype, rows_per_task, n_jobs):
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
    monkeypatch.setattr(class_weights, "_ROWS_PER_TASK", rows_per_task)
    for found, value in zip(everything(n_jobs), expected, strict=True):
        assert found.tobytes() == value.tobytes()


def test_every_thread_has_rows(monkeypatch):
    """But no task is so short that the weights would be read for a few rows."""
    weights, X = make_weights(70, np.float64, True), make_rows(40)
    monkeypatch.setattr(class_weights, "_LEAST_ROWS", 8)
    for n_jobs, expected in ((1, [40]), (2, [20, 20]), (3, [12, 14, 14]), (16, [8] * 5)):
        sizes = []
        weights._map_scores(
            lambda first, last, _, sizes=sizes: sizes.append(last - first), X, n_jobs
        )
        assert sorted(sizes) == expected


def test_many_classes_make_short_tasks(monkeypatch):
    """One row at a time if its scores are more than a task may hold."""
    weights, X = make_weights(70, np.float64, True), make_rows(40)
    expected = weights.scores(X, 1)
    sizes = []
    for n_scores in (1, 70 * 3):
        monkeypatch.setattr(class_weights, "_SCORES_PER_TASK", n_scores)
        weights._map_scores(lambda first, last, scores: sizes.append(last - first), X, 1)
        np.testing.assert_array_equal(weights.scores(X, 1), expected)
    assert sizes == [1] * 40 + [3] * 13 + [1]


def test_scores_that_do_not_fit_into_memory(monkeypatch):
    weights = make_weights(70, np.float64, False)
    empty = np.empty(0)
    n = 2**45
    X = CsrRows(np.zeros(1, np.int64), empty.astype(np.int32), empty, (n, D))
    with pytest.raises(MemoryBudgetError, match=f"{n} instances x 70 classes.*predict_topk"):
        weights.scores(X, None)


def test_the_weights_cannot_be_written(weights):
    assert not weights.coef.flags.writeable
    assert not weights.scale.flags.writeable
    assert weights.scale.dtype == weights.coef.dtype


@pytest.mark.parametrize("with_scale", [False, True])
def test_some_classes_score_the_bits_that_they_score_among_all(with_scale, dtype):
    """Also of rows that these have no weight for, and of rows that none has."""
    weights = make_weights(70, dtype, with_scale)
    coef = weights.coef.copy()
    coef[:40, :20] = 0
    coef[:, 85:] = 0
    scale, intercept = weights.scale.astype(np.float64), weights.intercept
    weights = ClassWeights(coef, scale, intercept, weights.prior)
    X = sp.random_array((50, D), density=0.1, random_state=np.random.default_rng(1)).tolil()
    X[0], X[1], X[2] = 0, np.eye(D)[3], np.eye(D)[88]
    X = sp.csr_array(X, dtype=dtype)
    indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int32)
    X = CsrRows(indptr, indices, X.data, X.shape)
    everything = weights.scores(X, None)
    for classes in ([3], [0, 7, 39], np.arange(10, 70, 3)):
        found = weights.scorer_of(np.array(classes), None)(X)
        np.testing.assert_array_equal(found, everything[:, classes])


def test_a_copy_of_some_weights_asks_for_room():
    weights = make_weights(70, np.float64, False)
    with pytest.raises(MemoryBudgetError, match=r"^who: .*the weights of 3 classes x 90 features"):
        weights.scorer_of(np.arange(3), None, 3 * 90 * 8 - 1, "who")


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
