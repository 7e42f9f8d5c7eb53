"""A fit that starts at the weights of the last one: the same optimum, in fewer steps."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from sklearn_xc import OvALinearXC
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.one_vs_all import warm_start

X, Y = make_xc_classification(n_samples=600, n_features=200, n_labels=40, random_state=0)
NAMES = np.array([f"l{j}" for j in range(40)])


def fit(model, X=X, Y=Y, **parameters):
    return model.set_params(**parameters).fit(X, Y)


@pytest.fixture
def model():
    return OvALinearXC(warm_start=True, label_names=NAMES, C=3.0).fit(X, Y)


def starts(monkeypatch):
    """Return a list that gets the ``WarmStart`` of each fit."""
    found, init = [], warm_start.WarmStart.__init__

    def recorded(self, *args):
        init(self, *args)
        found.append(self)

    monkeypatch.setattr(warm_start.WarmStart, "__init__", recorded)
    return found


@pytest.mark.parametrize(
    ("loss", "is_dense", "n_jobs"),
    [("squared_hinge", False, 2), ("squared_hinge", True, 1), ("logistic", False, 2)],
)
def test_same_optimum_in_fewer_steps(loss, is_dense, n_jobs):
    X_all = X.toarray().astype(np.float64) if is_dense else X
    model = OvALinearXC(warm_start=True, loss=loss, prune=0).fit(X_all[:590], Y[:590])
    warm, cold = (fit(m, X_all, n_jobs=n_jobs) for m in (model, OvALinearXC(loss=loss, prune=0)))
    assert warm.n_iter_.sum() < 0.75 * cold.n_iter_.sum()
    report = warm.fit_report_
    assert (report["status"] == "converged").all()
    np.testing.assert_allclose(report["objective"], cold.fit_report_["objective"], rtol=2e-3)
    assert (report["suboptimality"] <= 1e-3 * report["objective"]).all()


def test_labels_are_matched_by_name(model, monkeypatch):
    found, before = starts(monkeypatch), model.coef_.toarray()
    order = np.random.default_rng(0).permutation(40)[:30]
    names = np.append(NAMES[order], ["new", "newer"])
    Y_new = sp.hstack([Y[:, order], Y[::-1][:, :2]], "csr")
    fit(model, Y=Y_new, label_names=names)
    assert found[0].rows.tolist() == [*order.tolist(), -1, -1]
    np.testing.assert_allclose(model.coef_.toarray()[:30], before[order], atol=0.1)
    assert model.n_iter_[:30].max() <= 2 < model.n_iter_[-2:].max()


def test_features_are_matched_by_name(monkeypatch):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X.toarray().astype(float), columns=[f"w{j}" for j in range(200)])
    model = OvALinearXC(warm_start=True).fit(frame[frame.columns[:150]], Y)
    before = dict(zip(model.feature_names_in_, model.coef_.toarray().T, strict=True))
    found = starts(monkeypatch)
    columns = rng.permutation(frame.columns[20:])
    fit(model, frame[columns])
    prepared = found[0].prepare
    assert prepared is not None
    (starting,) = found
    problem = type("Problem", (), {"n_features": 180, "intercept": 1.0})
    start = starting.sparse_starts(None, problem, np.array([3])).toarray()[0]
    kept = [name for name in columns if name in before]
    assert (start[:-1] != 0).sum() == sum(before[name][3] != 0 for name in kept)
    assert model.n_iter_.sum() < OvALinearXC().fit(frame[columns], Y).n_iter_.sum()


def test_without_names_by_position_if_as_many(model, monkeypatch):
    found = starts(monkeypatch)
    fit(model, X[:, :150])
    assert not found
    fit(model, X[:, 50:])
    assert len(found) == 1


def test_labels_with_mostly_new_positives_start_as_configured(monkeypatch):
    model = OvALinearXC(warm_start=True).fit(X[:200], Y[:200])
    found = starts(monkeypatch)
    fit(model)
    counts = [np.asarray(y.sum(axis=0)).ravel() for y in (Y[:200], Y)]
    expected = counts[1] - counts[0] <= warm_start.MOST_NEW_POSITIVES * counts[1]
    np.testing.assert_array_equal(found[0].rows >= 0, expected)
    cold = OvALinearXC().fit(X, Y)
    np.testing.assert_array_equal(model.coef_.toarray()[~expected], cold.coef_.toarray()[~expected])


@pytest.mark.parametrize(("first", "second"), [("ab", "ab"), ("ab", "abc"), ("abc", "ab")])
def test_classes(first, second, monkeypatch):
    def classes(names):
        return np.array(list(names))[np.argmax(X[:, : len(names)].toarray(), axis=1)]

    model = OvALinearXC(warm_start=True).fit(X, classes(first))
    found = starts(monkeypatch)
    fit(model, Y=classes(second))
    cold = OvALinearXC().fit(X, classes(second))
    assert (found[0].rows >= 0).any() == (first == second)
    np.testing.assert_allclose(
        model.fit_report_["objective"], cold.fit_report_["objective"], rtol=2e-3
    )


def test_a_folder_keeps_the_start_apart(model, tmp_path):
    """A fit from other weights has other bytes."""
    model.set_params(checkpoint_dir=tmp_path).fit(X, Y)
    with pytest.raises(ValueError, match="start is not the same"):
        model.fit(X, Y)
