"""Probabilities after a fit with the logistic loss: formula, containers, and when there are any."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from sklearn_xc import OvALinearXC, OvALinearXCCV, TextClassifierXC, topk_names
from sklearn_xc.losses import Logistic, SquaredHinge

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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_after_a_dense_fit_all_labels_have_one_of_their_own(dtype, xy):
    X, Y = xy[0].astype(dtype), xy[1].toarray()
    model = fit(X, Y)
    P, trained = model.predict_proba(X), Y.any(axis=0)
    assert P.dtype == dtype
    np.testing.assert_allclose(
        P[:, trained], expit(model.decision_function(X)[:, trained]), rtol=1e-5
    )
    assert not trained[4]
    assert (P[:, ~trained] == 0).all()
    np.testing.assert_array_equal(P[:, trained] > 0.5, model.predict(X)[:, trained] > 0)


def test_classes_share_one(xy):
    X, y = xy[0], classes_of(xy[1])
    model = fit(X, y)
    P, expected = model.predict_proba(X), expit(model.decision_function(X))
    np.testing.assert_allclose(P, expected / expected.sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))
    np.testing.assert_allclose(np.log(P), model.predict_log_proba(X), atol=1e-12)


def test_two_classes_share_one(xy):
    X, y = xy[0], np.array(["no", "yes"])[(classes_of(xy[1]) > 1).astype(int)]
    model = fit(X, y)
    second = expit(model.decision_function(X))
    np.testing.assert_allclose(
        model.predict_proba(X), np.stack([1 - second, second], axis=1), atol=1e-14
    )


@pytest.mark.parametrize("kind", ["classes", "two classes", "dense", "sparse"])
def test_huge_scores(kind, xy):
    X, Y = xy
    y = {"classes": classes_of(Y), "two classes": classes_of(Y) > 1, "dense": Y.toarray()}
    model = fit(X, y.get(kind, Y))
    P, logs = model.predict_proba(X * 1e8), model.predict_log_proba(X * 1e8)
    if kind == "sparse":
        P, logs = P.data, logs.data
    assert np.isfinite(P).all()
    assert logs.min() < -1e4
    if "classes" in kind:
        np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("kind", ["classes", "two classes", "dense", "sparse"])
@pytest.mark.parametrize("together", [2**22, 28])
def test_best_labels_have_the_same(kind, together, xy, monkeypatch):
    monkeypatch.setattr("sklearn_xc.linear.probabilities._TOGETHER", together)
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


def test_labels_without_an_instance_have_none(xy):
    X, Y = xy
    model = fit(X, Y)
    assert 4 not in model.predict_proba(X).indices
    labels, chances = model.predict_proba_topk(X, Y.shape[1])
    assert (chances[labels == 4] == 0).all()
    assert (chances[labels != 4] > 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_other_losses_have_none(method, xy):
    assert hasattr(OvALinearXC(loss="logistic"), method)
    assert hasattr(OvALinearXC(loss=Logistic()), method)
    assert not hasattr(OvALinearXC(), method)
    assert not hasattr(OvALinearXC(loss=SquaredHinge()).fit(*xy), method)
    with pytest.raises(AttributeError) as error:
        getattr(OvALinearXC(loss="huber_hinge"), method)
    assert "Got loss='huber_hinge', for which TopKCalibrator" in str(error.value.__cause__)


def test_the_fitted_loss_counts(xy):
    model = fit(*xy)
    expected = model.predict_proba(xy[0]).toarray()
    model.set_params(loss="squared_hinge")
    np.testing.assert_array_equal(model.predict_proba(xy[0]).toarray(), expected)
    model.fit(*xy)
    model.set_params(loss="logistic")
    assert not hasattr(model, "predict_proba")
    assert hasattr(copy.copy(model).fit(*xy), "predict_proba")


def test_a_chosen_c_and_texts(xy):
    X, Y = xy
    model = OvALinearXCCV(Cs=[0.1, 1.0], cv=2, loss="logistic", random_state=0).fit(X, Y)
    np.testing.assert_allclose(
        model.predict_proba(X).data, expit(model.decision_function(X).data), rtol=1e-10
    )
    assert not hasattr(OvALinearXCCV(), "predict_proba")
    texts, names = ["red apple", "green pear", "red cherry"] * 4, [["a"], ["p"], ["a", "c"]] * 4
    text = TextClassifierXC(classifier=OvALinearXC(loss="logistic")).fit(texts, names)
    labels, chances = text.predict_proba_topk(["red apple"], 3)
    assert text.classes_[labels[0, 0]] == "a"
    assert (np.diff(chances[0]) <= 0).all()


def test_named_in_a_pipeline(xy):
    X, Y = xy
    pipeline = make_pipeline(MaxAbsScaler(), OvALinearXC(loss="logistic")).fit(X, Y)
    found = topk_names(pipeline, X, 3, return_probabilities=True)
    labels, chances = pipeline[-1].predict_proba_topk(pipeline[:-1].transform(X), 3)
    for row, names, expected in zip(found, labels, chances, strict=True):
        assert [name for name, _ in row] == names.tolist()
        np.testing.assert_allclose([chance for _, chance in row], expected)
