"""Probabilities after a fit with the logistic loss: formula, containers, and when there are any."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from sklearn_xc import OvALinearXC
from sklearn_xc.one_vs_all.losses import Logistic, SquaredHinge

METHODS = ("predict_proba", "predict_log_proba", "predict_proba_topk")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.UnseenLabelWarning")


def fit(X, y, **parameters):
    return OvALinearXC(loss="logistic", prune=0, **parameters).fit(X, y)


def classes_of(Y):
    """Return one class for each instance, four in all."""
    return np.asarray(Y.toarray()[:, :12].sum(axis=1), int) % 4


def test_those_of_the_logistic_regression_of_each_label(xy):
    X, Y = xy
    P = fit(X, Y, tol=1e-9).predict_proba(X).toarray()
    X, Y = X.toarray(), Y.toarray() > 0
    for label in set(range(Y.shape[1])) - {4, 7}:  # those have one class
        reference = LogisticRegression(C=16, solver="liblinear", tol=1e-10, max_iter=10_000)
        expected = reference.fit(X, Y[:, label]).predict_proba(X)[:, 1]
        some = X.any(axis=1)  # a row without features is scored by how frequent the label is
        np.testing.assert_allclose(P[some, label], expected[some], atol=1e-5)


@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix])
def test_after_a_sparse_fit_the_best_labels_are_stored(make, xy):
    X, Y = xy
    model = fit(X, make(Y), top_k=3)
    scores, P = model.decision_function(X), model.predict_proba(X)
    assert type(P) is make
    np.testing.assert_array_equal(P.indptr, scores.indptr)
    np.testing.assert_array_equal(P.indices, scores.indices)
    assert (np.diff(P.indptr) == 3).all()
    np.testing.assert_allclose(P.data, expit(scores.data), rtol=1e-12)
    logs = model.predict_log_proba(X)
    np.testing.assert_array_equal(logs.indices, P.indices)
    np.testing.assert_allclose(logs.data, np.log(expit(scores.data)), rtol=1e-10)


@pytest.mark.parametrize(
    ("kind", "together"), [("classes", 2**22), ("two classes", 28), ("dense", 28), ("sparse", 28)]
)
def test_best_labels_have_the_same(kind, together, xy, monkeypatch):
    monkeypatch.setattr("sklearn_xc.one_vs_all.model._CHUNK_SCORES", together)
    X, Y = xy
    y = {"classes": classes_of(Y), "two classes": classes_of(Y) > 1, "dense": Y.toarray()}
    model = fit(X, y.get(kind, Y))
    n_labels = len(model.classes_)
    labels, chances = model.predict_proba_topk(X, n_labels + 2)
    np.testing.assert_array_equal(labels, model.predict_topk(X, n_labels + 2)[0])
    assert (chances[labels < 0] == 0).all()
    P = model.predict_proba(X)
    P = P.toarray() if sp.issparse(P) else P
    found = np.take_along_axis(P, labels[:, :n_labels], axis=1)
    np.testing.assert_allclose(chances[:, :n_labels], found, rtol=1e-10, atol=1e-15)
    allowed = np.random.default_rng(0).random(P.shape) < 0.5
    for arguments in ({"candidates": allowed}, {"exclude": ~allowed}):
        some, own = model.predict_proba_topk(X, 3, **arguments)
        np.testing.assert_array_equal(some, model.predict_topk(X, 3, **arguments)[0])
        expected = np.where(some < 0, 0, np.take_along_axis(P, some, axis=1))
        np.testing.assert_allclose(own, expected, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("method", METHODS)
def test_other_losses_have_none(method, xy):
    assert hasattr(OvALinearXC(loss="logistic"), method)
    assert hasattr(OvALinearXC(loss=Logistic()), method)
    assert not hasattr(OvALinearXC(), method)
    assert not hasattr(OvALinearXC(loss=SquaredHinge()).fit(*xy), method)
    with pytest.raises(AttributeError) as error:
        getattr(OvALinearXC(loss="huber_hinge"), method)
    assert "Got loss='huber_hinge', for which TopKCalibrator" in str(error.value.__cause__)
