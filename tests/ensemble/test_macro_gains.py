"""Rankings for macro-averaged metrics, against all ways to assign labels."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

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


@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_array.toarray])
def test_labels_for_the_metric(container):
    X, Y = make_xc_classification(900, 300, 60, random_state=0, return_X_y=True)
    found = {}
    for objective in (None, "macro_f1"):
        clf = TopKCalibrator(OvALinearXC(), objective=objective, k=3, n_groups=2, random_state=0)
        clf.fit(X[:600], container(sp.csr_array(Y[:600])))
        found[objective] = macro_f1_at_k(Y[600:], clf.predict_topk(X[600:], 3)[0], 3)
    assert found["macro_f1"] > found[None] + 0.01
    predicted = sp.csr_array(clf.predict(X[600:]))
    labels, gains = clf.predict_topk(X[600:], 3)
    assert (np.sort(labels, axis=1) == predicted.indices.reshape(-1, 3)).all()
    _, probabilities = clf.predict_proba_topk(X[600:], 3)
    np.testing.assert_allclose(gains, gains_of(probabilities, labels, clf.gains_), rtol=1e-5)
