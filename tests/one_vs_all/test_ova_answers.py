"""Answers are those of the weights: scores, ties, two classes, many labels, unpleasant rows."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc import OvALinearXC, _warnings


def fit(X, y, **parameters):
    return OvALinearXC(**{"prune": 0, **parameters}).fit(X, y)


def assert_same_model(a, b):
    """Compare coefficients, intercepts and report bit for bit, except for the seconds."""
    np.testing.assert_array_equal(a.coef_.toarray(), b.coef_.toarray())
    np.testing.assert_array_equal(a.intercept_, b.intercept_)
    for name in set(a.fit_report_) - {"seconds"}:
        np.testing.assert_array_equal(a.fit_report_[name], b.fit_report_[name])


@pytest.fixture
def model(xy):
    return fit(*xy)


@pytest.fixture
def scores(model, xy, blank_counts):
    """The dense scores of every label."""
    found = xy[0].toarray() @ model.coef_.toarray().T + model.intercept_
    n_positive = blank_counts(*xy)
    found[3] = (2 * n_positive - 120) / (1 + 120)  # the empty instance
    found[:, 4] = np.delete(found, 4, axis=1).min(axis=1) - 1  # the label without positives
    return found


class TestSparseTargets:
    def test_decision_function_holds_the_top_k_scores_and_nothing_else(self, model, xy, scores):
        X, _ = xy
        model.set_params(top_k=4)
        answer = model.decision_function(X)
        order = np.argsort(-scores, axis=1, kind="stable")
        assert np.diff(answer.indptr).tolist() == [4] * 120
        for i in range(120):
            np.testing.assert_array_equal(answer[[i]].indices, np.sort(order[i, :4]))
        stored = answer.toarray()[np.arange(120)[:, None], order[:, :4]]
        np.testing.assert_allclose(stored, np.take_along_axis(scores, order[:, :4], 1), atol=1e-13)

    def test_predict_holds_the_positive_scores_among_the_top_k(self, model, xy, scores):
        X, _ = xy
        np.testing.assert_array_equal(model.predict(X).toarray(), scores > 0)
        model.set_params(top_k=1)
        few = model.predict(X)
        best = scores.argmax(axis=1)
        assert np.diff(few.indptr).max() == 1
        np.testing.assert_array_equal(few.indices, best[scores.max(axis=1) > 0])


class TestTopK:
    @pytest.mark.parametrize("k", [1, 5, 15])
    def test_the_k_best_come_best_first(self, k, model, xy, scores):
        labels, best = model.predict_topk(xy[0], k)
        assert labels.dtype == np.int64
        assert labels.shape == best.shape == (120, k)
        np.testing.assert_allclose(best, -np.sort(-scores, axis=1)[:, :k], atol=1e-13)
        np.testing.assert_allclose(np.take_along_axis(scores, labels, 1), best, atol=1e-13)

    @pytest.mark.parametrize("y", [["no", "yes"], [3, -1]], ids=str)
    def test_two_classes(self, y, xy):
        X, Y = xy
        model = fit(X, np.array(y)[(Y[:, [0]].toarray()[:, 0] > 0).astype(int)])
        score = model.decision_function(X)
        labels, best = model.predict_topk(X, 3)
        np.testing.assert_array_equal(labels[:, 0], score > 0)
        np.testing.assert_array_equal(labels[:, 1], score <= 0)
        assert (labels[:, 2] == -1).all()
        np.testing.assert_array_equal(best[:, 0], np.abs(score))
        np.testing.assert_array_equal(best[:, 1], -np.abs(score))
        np.testing.assert_array_equal(model.classes_[labels[:, 0]], model.predict(X))


class TestInstances:
    def test_more_than_65536_features(self, xy):
        """The informative features come after 65,536 others; narrow indices would miss them."""
        X, Y = xy
        offset = 65_530
        wide = sp.csr_array((X.data, X.indices + offset, X.indptr), shape=(120, offset + 40))
        model, expected = fit(wide, Y, tol=1e-6), fit(X, Y, tol=1e-6)
        assert model.coef_.shape == (15, offset + 40)
        assert model.coef_.indices.min() >= offset
        np.testing.assert_allclose(
            model.coef_[:, offset:].toarray(), expected.coef_.toarray(), atol=1e-6
        )
        np.testing.assert_allclose(
            model.predict_topk(wide)[1], expected.predict_topk(X)[1], atol=1e-5
        )


def test_coef_is_read_only(xy):
    model = OvALinearXC().fit(*xy)
    for array in (model.coef_.data, model.coef_.indices, model.coef_.indptr):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 10**6


@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_array.toarray])
def test_next_to_nothing_predicted_is_said_once(container, monkeypatch):
    monkeypatch.setattr(_warnings, "_given", set())
    X, Y = np.ones((40, 1)), np.tile(np.eye(4, dtype=int), (10, 1))  # a quarter has each label
    model = OvALinearXC().fit(X, container(sp.csr_array(Y)))
    with pytest.warns(UserWarning, match="predict gave 40 of 40 instances no label.*topk"):
        model.predict(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(X)
        monkeypatch.setattr(_warnings, "_given", set())
        model.predict(X[:5])  # too few to say
        Y[20:] = 0  # most instances have no label
        OvALinearXC().fit(X, container(sp.csr_array(Y))).predict(X)
