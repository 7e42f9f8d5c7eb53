"""Weights of instances, of positives and of negatives."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from sklearn_xc import ImplicitSoftmaxSGD, OvALinearXC
from sklearn_xc.metrics import propensity
from sklearn_xc.model_selection import cross_validate


def fit(X, y, sample_weight=None, **parameters):
    return OvALinearXC(**{"C": 1.0, "prune": 0, "tol": 1e-9, **parameters}).fit(X, y, sample_weight)


def assert_close(a, b, atol=1e-7):
    np.testing.assert_allclose(a.coef_.toarray(), b.coef_.toarray(), atol=atol)
    np.testing.assert_allclose(a.intercept_, b.intercept_, atol=atol)


@pytest.mark.parametrize(
    ("loss", "init", "class_weight"),
    [
        ("squared_hinge", "ovap", "propensity"),
        ("huber_hinge", "zero", None),
        ("logistic", "msi", None),
    ],
)
def test_a_weight_of_two_is_a_repeated_row_and_of_zero_a_missing_one(class_weight, init, loss, xy):
    X, Y = xy
    counts = np.random.default_rng(0).integers(0, 4, 120)
    rows = np.repeat(np.arange(120), counts)
    parameters = {"init": init, "loss": loss, "class_weight": class_weight}
    weighted, repeated = fit(X, Y, counts, **parameters), fit(X[rows], Y[rows], **parameters)
    assert_close(weighted, repeated)
    for name in ("objective", "gradient_tolerance"):
        np.testing.assert_allclose(
            weighted.fit_report_[name], repeated.fit_report_[name], rtol=1e-9
        )


def test_propensity_weights_are_inverse_propensities(xy):
    X, Y = xy
    inverse = 1 / propensity(np.asarray(Y.sum(axis=0)).ravel(), 120)
    model, expected = fit(X, Y, class_weight="propensity"), fit(X, Y, class_weight=inverse)
    np.testing.assert_array_equal(model.coef_.toarray(), expected.coef_.toarray())
    assert inverse.max() > 1.5 * inverse.min()


@pytest.mark.parametrize(
    ("class_weight", "n_classes"), [("balanced", 2), ("balanced", 4), ({0: 3.0, 1: 0.5}, 2)]
)
def test_class_weights_are_those_of_scikit_learn(class_weight, n_classes, xy):
    X, Y = xy
    places = np.asarray(Y.argmax(axis=1)).ravel() % n_classes
    y = np.where(np.arange(120) < 70, 0, places)  # of uneven frequency
    ours = fit(X, y, class_weight=class_weight)
    theirs = LinearSVC(class_weight=class_weight, tol=1e-9, max_iter=100_000, dual=False)
    theirs.fit(X, y)
    np.testing.assert_allclose(ours.coef_.toarray(), theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)


def relevance_of(Y):
    """Return weights of the pairs of an indicator."""
    weight = sp.csr_array(Y, dtype=float, copy=True)
    weight.data[:] = np.random.default_rng(1).choice([0.2, 1.0, 4.0], weight.nnz)
    return weight


@pytest.mark.parametrize("n_labels", [15, 5])  # logistic: side by side, and one by one
@pytest.mark.parametrize("is_dense", [False, True])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_weights_of_pairs_are_weights_of_the_positives(loss, is_dense, n_labels, xy):
    X, Y = xy[0], xy[1][:, :n_labels]
    weight = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 2.0], 120)
    of_pair = relevance_of(Y)
    if is_dense:
        X, Y, of_pair = X.toarray() + 0.01, Y.toarray(), of_pair.toarray()
    model = OvALinearXC(1.0, loss=loss, prune=0, tol=1e-9, warm_start=True).fit(X, Y)
    model.fit(X, Y, weight, of_pair)
    kept, n_compared = weight > 0, 0
    for j in range(n_labels):
        y, relevance = (sp.csc_array(a[:, [j]]).toarray()[kept, 0] for a in (Y, of_pair))
        if 0 < y.sum() < len(y):
            theirs = (
                LogisticRegression(solver="liblinear", tol=1e-9, max_iter=10_000)
                if loss == "logistic"
                else LinearSVC(tol=1e-9, max_iter=100_000, dual=False)
            ).fit(X[kept], y, weight[kept] * np.where(y > 0, relevance, 1.0))
            np.testing.assert_allclose(model.coef_[[j]].toarray(), theirs.coef_, atol=1e-4)
            np.testing.assert_allclose(model.intercept_[j], theirs.intercept_, atol=1e-4)
            n_compared += 1
    assert n_compared > 2


@pytest.mark.parametrize("estimator", [OvALinearXC(), ImplicitSoftmaxSGD(random_state=0)])
def test_weights_of_pairs_are_routed_and_cut(estimator, xy):
    X, Y = xy
    of_pair = relevance_of(Y)
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_validate(
            estimator.set_fit_request(pair_weight=True),
            X,
            Y,
            cv=2,
            params={"pair_weight": of_pair},
            return_estimator=True,
            return_indices=True,
        )
    rows = found["indices"]["train"][0]
    expected = estimator.fit(X[rows], Y[rows], pair_weight=of_pair[rows])
    coef = [sp.csr_array(one.coef_).toarray() for one in (found["estimator"][0], expected)]
    np.testing.assert_array_equal(*coef)


@pytest.mark.parametrize(
    ("y", "weight", "what"),
    [
        ([0, 1, 1], [[0, 1], [1, 0], [1, 1]], "needs an indicator y.*1-D"),
        (None, [[0, 1], [1, 0]], r"shape \(3, 2\) of y. Got shape \(2, 2\)"),
        (None, [["0", "1"], ["1", "0"], ["1", "1"]], "hold numbers.*dtype <U1"),
        (None, [[0.5, 1], [1, 0], [1, 1]], "Got 0.5 in row 0, column 0, where y holds 0"),
        (None, [[0, 1], [1, 0], [1, 0]], "Got 0.0 in row 2, column 1, where y holds 1"),
        (None, [[0, -1], [1, 0], [1, 1]], "Got -1.0 in row 0, column 1, where y holds 1"),
        (None, [[0, 1], [np.inf, 0], [1, 1]], "Got inf in row 1, column 0, where y holds 1"),
    ],
)
def test_weights_of_other_pairs_are_refused(y, weight, what):
    y = [[0, 1], [1, 0], [1, 1]] if y is None else y
    with pytest.raises(ValueError, match=f"OvALinearXC: pair_weight.*{what}"):
        OvALinearXC().fit(np.eye(3), y, pair_weight=weight)
