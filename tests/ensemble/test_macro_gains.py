"""Rankings for macro-averaged metrics, against all ways to assign labels."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import recall_score

from sklearn_xc import OvALinearXC, TopKCalibrator
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.ensemble.macro_gains import gains_of, macro_gains
from sklearn_xc.metrics import macro_f1_at_k

N, N_LABELS = 7, 4


def utility(given, p, share, objective):
    """Return the sum of the labels' metrics, one label given to each of some instances."""
    t, q = np.zeros(N_LABELS), np.zeros(N_LABELS)
    for row, label in enumerate(given):
        t[label] += p[row, label] / len(p)
        q[label] += 1 / len(p)
    return (t / share if objective == "macro_recall" else 2 * t / (q + share)).sum()


@pytest.mark.parametrize(("objective", "least"), [("macro_recall", 1 - 1e-12), ("macro_f1", 0.95)])
def test_nearly_the_best_of_all_assignments(objective, least):
    """The largest recall; for F1, fixed a and b cannot express all, but far more than the order."""
    of_gains, of_order = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        p = rng.random((N, N_LABELS)) * np.array([0.9, 0.5, 0.2, 0.1])
        share = p.mean(axis=0)
        labels = np.tile(np.arange(N_LABELS), (N, 1))
        gains = macro_gains(p, labels, np.ones(N), share, 1, objective)
        given = gains_of(p, labels, gains).argmax(axis=1)
        ways = itertools.product(range(N_LABELS), repeat=N)
        best = max(utility(way, p, share, objective) for way in ways)
        of_gains.append(utility(given, p, share, objective) / best)
        of_order.append(utility(p.argmax(axis=1), p, share, objective) / best)
    assert np.mean(of_gains) >= least
    assert np.mean(of_order) < 0.9


def test_weights_are_repeated_instances_and_padding_is_never_given():
    rng = np.random.default_rng(0)
    p, labels = rng.random((30, 3)), np.array([rng.permutation(6)[:3] for _ in range(30)])
    labels[::4, 2] = -1
    share, count = rng.random(6), rng.integers(1, 4, 30)
    weighted = macro_gains(p, labels, count.astype(float), share, 3, "macro_f1")
    repeated = (np.repeat(values, count, axis=0) for values in (p, labels))
    expected = macro_gains(*repeated, np.ones(count.sum()), share, 3, "macro_f1")
    np.testing.assert_allclose(weighted, expected)
    assert np.isneginf(gains_of(p, labels, weighted)[::4, 2]).all()


def fitted(X, y, estimator=None, **own):
    own = {"objective": "macro_f1", "k": 3, "n_groups": 2, "random_state": 0, **own}
    return TopKCalibrator(estimator or OvALinearXC(), **own).fit(X, y)


@pytest.fixture(scope="module")
def data():
    X, Y = make_xc_classification(900, 300, 60, random_state=0, return_X_y=True)
    return X[:600], Y[:600], X[600:], Y[600:]


@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_array.toarray])
def test_labels_for_the_metric(container, data):
    X, Y, X_test, Y_test = data
    found = {}
    for objective in (None, "macro_recall", "macro_f1"):
        clf = fitted(X, container(sp.csr_array(Y)), objective=objective)
        found[objective] = macro_f1_at_k(Y_test, clf.predict_topk(X_test, 3)[0], 3)
    assert found["macro_f1"] > max(found[None], found["macro_recall"]) + 0.01
    predicted = sp.csr_array(clf.predict(X_test))
    labels, gains = clf.predict_topk(X_test, 3)
    assert (np.sort(labels, axis=1) == predicted.indices.reshape(-1, 3)).all()
    same, probabilities = clf.predict_proba_topk(X_test, 3)
    np.testing.assert_array_equal(labels, same)
    np.testing.assert_allclose(gains, gains_of(probabilities, labels, clf.gains_), rtol=1e-5)


def test_labels_beyond_top_k_come_last(data):
    """Lists of any length, of candidates and of all scores have one order."""
    X, Y, X_test, _ = data
    clf = fitted(X, Y.toarray(), top_k=10)
    labels, gains = clf.predict_topk(X_test, 20)
    assert (gains[:, 9:10] > gains[:, 10:]).all()
    np.testing.assert_array_equal(labels[:, :4], clf.predict_topk(X_test, 4)[0])
    every = np.arange(60)
    np.testing.assert_array_equal(labels[:, :12], clf.predict_topk(X_test, 12, candidates=every)[0])
    scores = clf.decision_function(X_test)
    np.testing.assert_allclose(np.take_along_axis(scores, labels, axis=1), gains, rtol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_classes(n_classes, data):
    """The first is predicted, and the rarest is found more often."""
    X, Y, X_test, Y_test = data
    y, y_test = (
        np.minimum(one.toarray().argmax(axis=1) // 9, n_classes - 1) for one in (Y, Y_test)
    )
    recalls = []
    for objective in (None, "macro_recall"):
        clf = fitted(X, y, objective=objective)
        predicted = clf.predict(X_test)
        recalls.append(recall_score(y_test, predicted, average=None))
    rarest = np.bincount(y_test).argmin()
    assert recalls[1][rarest] > recalls[0][rarest]
    np.testing.assert_array_equal(predicted, clf.predict_topk(X_test, 1)[0][:, 0])


class Lists(ClassifierMixin, BaseEstimator):
    """Lists one label for each row, and none for some."""

    def fit(self, X, y):
        self.classes_ = np.arange(y.shape[1])
        return self

    def predict_topk(self, X, k=5):
        labels, scores = np.full((X.shape[0], k), -1), np.full((X.shape[0], k), -np.inf)
        labels[::2, 0], scores[::2, 0] = 59, 1.0
        return labels, scores


@pytest.mark.parametrize("objective", [None, "macro_f1"])
def test_rows_with_short_lists(objective, data):
    X, Y, X_test, _ = data
    for container in (sp.csr_array, sp.csr_array.toarray):
        clf = fitted(X, container(sp.csr_array(Y)), Lists(), objective=objective, cv=0.2)
        scores = sp.csr_array(clf.decision_function(X_test))
        assert scores.shape == (300, 60)
        if objective:
            predicted = sp.csr_array(clf.predict(X_test)).toarray()
            assert predicted[::2, 59].all()
            assert predicted.sum() == 150
