"""Where tol is None, each label's objective is at most 0.001 above its minimum, and says so."""

import numpy as np
import pytest

from sklearn_xc import OvALinearXC


def fit(X, Y, **parameters):
    return OvALinearXC(**{"prune": 0, "n_jobs": 1, **parameters}).fit(X, Y)


def gaps(report, exact):
    return (report["objective"] - exact["objective"]) / exact["objective"]


@pytest.fixture(scope="module")
def clouds():
    """Standardised dense features, labels that are nearly separable: objectives fall a long way."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 30))
    scores = X @ rng.normal(size=(30, 12))
    Y = (scores > np.quantile(scores, np.linspace(0.8, 0.995, 12), axis=0).diagonal()).astype(int)
    return X, Y


@pytest.mark.parametrize(
    ("init", "loss"), [("zero", "squared_hinge"), ("ovap++", "squared_hinge"), ("msi", "logistic")]
)
def test_every_label_is_near_its_optimum(init, loss, clouds):
    X, Y = clouds
    exact = fit(X, Y, loss=loss, tol=1e-6).fit_report_
    report = fit(X, Y, loss=loss, init=init).fit_report_
    assert (report["status"] == "converged").all()
    assert (report["suboptimality"] <= 0.001 * report["objective"]).all()
    assert (report["gradient_norm"] < report["gradient_tolerance"]).all()
    assert (gaps(report, exact) <= 0.001).all()


def test_the_rule_alone_has_no_such_bound(clouds):
    X, Y = clouds
    exact = fit(X, Y, tol=1e-6).fit_report_
    report = fit(X, Y, tol=1.0).fit_report_
    assert (report["status"] == "converged").all()
    assert gaps(report, exact).max() > 0.01
