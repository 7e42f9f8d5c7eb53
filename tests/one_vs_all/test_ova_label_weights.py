"""Weights of instances, of positives and of negatives."""

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from sklearn_xc import OvALinearXC
from sklearn_xc.metrics import propensity


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
