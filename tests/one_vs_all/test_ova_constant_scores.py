"""Rows of which no feature has a weight: labels by how frequent they were."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc import OvALinearXC


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


@pytest.mark.parametrize(
    ("loss", "C", "fit_intercept"),
    [("squared_hinge", 0.01, True), ("huber_hinge", 100.0, False), ("logistic", 100.0, True)],
)
def test_the_most_frequent_labels_come_first(loss, C, fit_intercept, data):
    X, Y = data
    model = OvALinearXC(prune=0.01, C=C, loss=loss, fit_intercept=fit_intercept)
    model.fit(X, Y)
    labels, scores = model.predict_topk(sp.csr_array((1, 9)), 6)
    np.testing.assert_array_equal(labels[0], np.argsort(-model.label_counts_))
    assert np.isfinite(scores).all()
    if C > 1:
        assert not np.array_equal(labels[0], np.argsort(-model.intercept_))


def test_the_score_is_that_of_the_best_constant(data):
    X, Y = data
    model = OvALinearXC(C=3.0, class_weight=2.0).fit(X, Y)
    positive = (28 * model.label_counts_ + 400 * Y.toarray()[0]) / 29  # row 0 is blank
    p, q = 3.0 * 2.0 * positive, 3.0 * (400 - positive)
    expected = 2 * (p - q) / (1 + 2 * (p + q))
    found = model.decision_function(sp.csr_array((1, 9))).toarray()[0]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
