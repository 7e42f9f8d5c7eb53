"""Rows of which no feature has a weight: labels by how frequent they were."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc import OvALinearXC, OvALinearXCCV
from sklearn_xc.losses import LOSSES


@pytest.fixture(name="data")
def frequencies():
    """Return X and Y in which intercepts rank labels otherwise than their frequencies do.

    A frequent label that a common feature tells has a lower intercept than a rare one.
    """
    rng = np.random.default_rng(0)
    shares = np.array([0.05, 0.3, 0.02, 0.4, 0.1, 0.2])
    Y = rng.random((400, 6)) < shares
    X = Y @ np.eye(6, 9) * (1 + rng.random((400, 9)))
    X[:, 6] = 1 - Y.max(axis=1)  # on every row that has no label
    X[:, 7] = rng.random(400) < 0.3
    X[0] = 0
    return sp.csr_array(X), sp.csr_array(Y.astype(int))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_most_frequent_labels_come_first(C, fit_intercept, dtype, loss, data):
    X, Y = data
    model = OvALinearXC(prune=0.01, C=C, loss=loss, fit_intercept=fit_intercept)
    model.fit(X.astype(dtype), Y)
    labels, scores = model.predict_topk(sp.csr_array((1, 9)), 6)
    np.testing.assert_array_equal(labels[0], np.argsort(-model.label_counts_))
    assert np.isfinite(scores).all()
    if C > 1:
        assert not np.array_equal(labels[0], np.argsort(-model.intercept_))


def test_all_answers_agree(data):
    X, Y = data
    blank = sp.csr_array((2, 9))
    for y in (Y, Y.toarray()):
        model = OvALinearXC().fit(X, y)
        labels, scores = model.predict_topk(blank, 6)
        dense = model.decision_function(blank)
        dense = dense.toarray() if sp.issparse(dense) else dense
        np.testing.assert_array_equal(np.take_along_axis(dense, labels, axis=1), scores)
        explanation = model.explain(blank[[0]], labels[0, 0])
        assert explanation.score == explanation.intercept == scores[0, 0]
        predicted = model.predict(blank)
        predicted = predicted.toarray() if sp.issparse(predicted) else predicted
        np.testing.assert_array_equal(predicted, dense > 0)
        again = pickle.loads(pickle.dumps(model)).predict_topk(blank, 6)
        np.testing.assert_array_equal(again[1], scores)


def test_the_score_is_that_of_the_best_constant(data):
    X, Y = data
    model = OvALinearXC(C=3.0, class_weight=2.0).fit(X, Y)
    positive = (28 * model.label_counts_ + 400 * Y.toarray()[0]) / 29  # row 0 is blank
    p, q = 3.0 * 2.0 * positive, 3.0 * (400 - positive)
    expected = 2 * (p - q) / (1 + 2 * (p + q))
    found = model.decision_function(sp.csr_array((1, 9))).toarray()[0]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_label_is_predicted_if_most_instances_have_it(data):
    X, _ = data
    Y = np.zeros((400, 3), int)
    Y[:250, 0], Y[:150, 1], Y[:, 2] = 1, 1, 1
    model = OvALinearXC().fit(X, Y)
    assert model.predict(np.zeros((1, 9))).tolist() == [[1, 0, 1]]
    two = OvALinearXC().fit(X, np.where(Y[:, 0], "often", "seldom"))
    assert two.predict(np.zeros((1, 9))).tolist() == ["often"]
    three = OvALinearXC().fit(X, np.repeat(["a", "b", "c"], [100, 180, 120]))
    assert three.predict(np.zeros((1, 9))).tolist() == ["b"]


def test_weights_of_instances_count(data):
    X, Y = data
    weight = np.where(Y.toarray()[:, 2] > 0, 500.0, 1.0)
    model = OvALinearXC().fit(X, Y, weight)
    assert model.predict_topk(sp.csr_array((1, 9)), 1)[0][0, 0] == 2
    assert model.label_counts_.argmax() == 3


def test_features_without_a_weight_are_as_none(data):
    """Such as a word that no training text has."""
    X, Y = data
    model = OvALinearXC().fit(X, Y)
    assert not model.coef_[:, [8]].nnz
    unknown = sp.csr_array(([5.0], [8], [0, 1]), shape=(1, 9))
    for a, b in zip(
        model.predict_topk(unknown, 6), model.predict_topk(sp.csr_array((1, 9)), 6), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    explanation = model.explain(unknown, 0)
    assert explanation.features.size == 0
    assert explanation.score == model.decision_function(unknown)[0, 0]


def test_a_row_with_a_feature_is_scored_by_weights_and_intercepts(data):
    X, Y = data
    model = OvALinearXC().fit(X, Y)
    rows = X[np.diff(X.indptr) > 0]
    expected = rows @ model.coef_.toarray().T + model.intercept_
    np.testing.assert_allclose(model.decision_function(rows).toarray(), expected, atol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning")
def test_a_model_without_weights_ranks_by_frequency(data):
    X, Y = data
    model = OvALinearXC(prune=1e9).fit(X, Y)
    labels, _ = model.predict_topk(X, 6)
    np.testing.assert_array_equal(labels, np.tile(np.argsort(-model.label_counts_), (400, 1)))


def test_cross_validation_scores_such_rows_alike(data):
    X, Y = data
    model = OvALinearXCCV(Cs=[0.1, 10], cv=2).fit(X, Y)
    single = OvALinearXC(C=model.C_).fit(X, Y)
    for a, b in zip(
        model.predict_topk(sp.csr_array((1, 9)), 6),
        single.predict_topk(sp.csr_array((1, 9)), 6),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)
