"""Answers are those of the weights: probabilities, the rule of predict, and the observations."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import log_softmax

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax

#: Rates at which a few epochs end worse than they began are of interest here.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*is too high:sklearn.exceptions.ConvergenceWarning"
)


def fit(X, y, estimator=ImplicitSoftmaxSGD, sample_weight=None, **parameters):
    parameters = {"learning_rate": 1.0, "max_iter": 4, "random_state": 0, **parameters}
    return estimator(**parameters).fit(X, y, sample_weight)


def assert_same_model(a, b):
    for name in ("coef_", "intercept_", "label_counts_"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), name)
    for name in ("loss", "log_loss"):
        np.testing.assert_array_equal(a.fit_report_[name], b.fit_report_[name], name)


def scores_of(model, X):
    """Return scores; those of classes without an instance, which have no probability, are -inf."""
    scores = X.toarray().astype(np.float64) @ model.coef_.T.astype(np.float64)
    is_blank = ~scores.any(axis=1)
    scores += model.intercept_
    shares = model._frequencies.of_blank() / model._frequencies.total
    with np.errstate(divide="ignore"):
        scores[is_blank] = np.log(shares)
    scores[:, model.label_counts_ == 0] = -np.inf
    return scores


@pytest.fixture
def places(xy):
    return xy[0].toarray()[:, :4].argmax(axis=1)


@pytest.fixture
def partly_labelled(xy):
    """Return X and Y where label 7, which every row has, is left out: many rows have none."""
    X, Y = xy
    Y = Y[:, [j for j in range(15) if j != 7]]
    assert 0 < (np.diff(Y.indptr) == 0).sum() < 60
    return X, Y


class TestSparseTargets:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_sparse_answers_hold_the_top_k(self, dtype, xy):
        X, Y = xy
        X = X.astype(dtype)
        model = fit(X, Y, top_k=4)
        scores = scores_of(model, X)
        found = model.set_params(top_k=15).decision_function(X)
        assert found.nnz == 120 * 14
        found = found.toarray()
        found[:, 4] = -np.inf
        order = np.argsort(-found, kind="stable")
        model.set_params(top_k=4)
        rows = np.arange(120)[:, None]
        everything = {
            "decision_function": scores,
            "predict_log_proba": log_softmax(scores, axis=1),
            "predict_proba": np.exp(log_softmax(scores, axis=1)),
        }
        for method, expected in everything.items():
            answer = getattr(model, method)(X)
            assert answer.dtype == dtype
            assert np.diff(answer.indptr).tolist() == [4] * 120
            stored = answer.toarray()[rows, order[:, :4]]
            tol = 1e-12 if dtype == np.float64 else 1e-5
            np.testing.assert_allclose(stored, expected[rows, order[:, :4]], rtol=tol, atol=tol)
            for i in (0, 3, 119):
                np.testing.assert_array_equal(answer[[i]].indices, np.sort(order[i, :4]))

    def test_a_score_of_zero_is_stored(self, xy):
        X, Y = xy
        model = fit(X, Y, top_k=6, fit_intercept=False)
        answer = model.decision_function(X[[3]])  # the empty instance
        assert answer.indices.tolist() == [0, 1, 2, 3, 5, 6]  # label 4 has no instance
        assert answer.data.tolist() == [0.0] * 6


class TestProbabilities:
    @pytest.mark.parametrize(
        ("kind", "estimator"),
        [("classes", SoftmaxUMax), ("two classes", SoftmaxUMax), ("dense", ImplicitSoftmaxSGD)],
    )
    def test_rows_sum_to_one_over_all_classes(self, kind, estimator, places, xy):
        X, Y = xy
        y = {"classes": places, "two classes": places > 1, "dense": Y.toarray()}[kind]
        model = fit(X, y, estimator, alpha=0.1)
        proba = model.predict_proba(X)
        assert proba.shape == (120, len(model.classes_))
        seen = model.label_counts_ > 0
        assert ((proba > 0) == seen).all()
        np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-14)
        expected = log_softmax(scores_of(model, X), axis=1)
        np.testing.assert_allclose(model.predict_log_proba(X), expected, atol=1e-13)
        np.testing.assert_allclose(np.log(proba[:, seen]), expected[:, seen], atol=1e-13)


class TestPredictionOfIndicators:
    @pytest.mark.parametrize("container", [sp.csr_array, sp.csr_array.toarray])
    def test_labels_with_more_than_half_of_an_even_share(self, container, partly_labelled):
        """Of a row with as many labels as a labelled row has in the mean."""
        X, Y = partly_labelled
        model = fit(X, container(Y), max_iter=20)
        counts = np.diff(Y.indptr)
        threshold = 0.5 / counts[counts > 0].mean()
        assert threshold != pytest.approx(0.5 * 120 / Y.nnz, rel=0.05)
        proba = np.exp(log_softmax(scores_of(model, X), axis=1))
        assert np.abs(proba - threshold).min() > 1e-6
        predicted = model.predict(X)
        predicted = predicted.toarray() if sp.issparse(predicted) else predicted
        np.testing.assert_array_equal(predicted, proba > threshold)
        assert 0.3 < predicted.sum() / Y.nnz < 3


class TestClasses:
    def test_two_classes(self, places, xy):
        X, _ = xy
        second = places > 1
        model = fit(X, np.where(second, "yes", "no"))
        assert model.coef_.shape == (2, 40)
        assert model.label_counts_.tolist() == [(~second).sum(), second.sum()]
        score = model.decision_function(X)
        assert score.shape == (120,)
        both = scores_of(model, X)
        np.testing.assert_allclose(score, both[:, 1] - both[:, 0], atol=1e-13)
        np.testing.assert_allclose(
            model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-score)), atol=1e-13
        )
        np.testing.assert_array_equal(model.predict(X) == "yes", score > 0)
        labels, best = model.predict_topk(X, 3)
        assert (labels[:, 2] == -1).all()
        np.testing.assert_array_equal(labels[:, 0], score > 0)
        np.testing.assert_allclose(np.sort(both, axis=1)[:, ::-1], best[:, :2], atol=1e-13)


class TestUnpleasantRows:
    @pytest.mark.parametrize("container", [sp.csr_array, sp.csr_array.toarray])
    def test_rows_without_labels_are_passed_over(self, container, partly_labelled):
        X, Y = partly_labelled
        labelled = np.flatnonzero(np.diff(Y.indptr))
        model = fit(X, container(Y))
        without = fit(X[labelled], container(Y[labelled]))
        assert_same_model(model, without)
        assert model.n_samples_fit_ == 120
        predicted = (sp.csr_array(m.predict(X)).toarray() for m in (model, without))
        np.testing.assert_array_equal(*predicted)

    def test_empty_label_columns(self, xy):
        X, Y = xy
        model = fit(X, Y, max_iter=20)
        counts = np.asarray(Y.sum(axis=0)).ravel()
        np.testing.assert_array_equal(model.label_counts_, counts)
        assert counts[4] == 0
        assert model.coef_[4].any()  # it is a negative of every row
        proba = model.predict_proba(X).toarray()
        assert proba[:, 4].mean() < 1 / 15 < proba[:, 7].mean()
