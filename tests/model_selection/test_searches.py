"""The searches of scikit-learn take a sparse y and the scorers of this package."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from sklearn_xc import OvALinearXC, topk
from sklearn_xc.exceptions import UnseenLabelWarning
from sklearn_xc.metrics import TopKScorer, get_scorer
from sklearn_xc.model_selection import RareLabelSplit, cross_val_score, cross_validate

CS = [0.01, 1.0, 100.0]
SEARCHES = {
    GridSearchCV: {"param_grid": {"C": CS}},
    HalvingGridSearchCV: {"param_grid": {"C": CS}, "random_state": 0, "min_resources": 30},
}


@pytest.fixture(scope="module")
def data():
    """Return X (90, 12) and a sparse indicator (90, 6)."""
    rng = np.random.default_rng(0)
    Y = sp.random_array((90, 6), density=0.3, random_state=rng, format="csr")
    Y.data[:] = 1
    return Y @ rng.normal(0, 1, (6, 12)) + rng.normal(0, 1, (90, 12)), Y


@pytest.mark.parametrize("kind", SEARCHES)
def test_one_metric(kind, data):
    X, Y = data
    scorer = get_scorer("P@3")
    search = kind(OvALinearXC(), scoring=scorer, cv=RareLabelSplit(3), **SEARCHES[kind]).fit(X, Y)
    assert search.score(X, Y) == scorer(search.best_estimator_, X, Y)
    np.testing.assert_array_equal(topk(search, X, 3), topk(search.best_estimator_, X, 3))
    assert sp.issparse(search.predict(X))
    if kind is GridSearchCV:
        scores = cross_val_score(search.best_estimator_, X, Y, cv=RareLabelSplit(3), scoring="P@3")
        assert search.best_score_ == pytest.approx(scores.mean())


def test_a_search_warns_once_for_all_folds(data):
    X, Y = data
    Y = sp.hstack([Y, sp.eye_array(90, 3)], format="csr")  # three labels with one instance
    search = GridSearchCV(OvALinearXC(), {"C": CS}, scoring=get_scorer("P@1"), cv=KFold(3))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            OvALinearXC().fit(X[3:], Y[3:])
        search.fit(X, Y)
    assert [one.category for one in caught] == 3 * [UnseenLabelWarning]
    assert len({one.lineno for one in caught}) == 2


def test_several_metrics_of_one_pass_in_a_cross_validation(data):
    X, Y = data
    model = make_pipeline(MaxAbsScaler(), OvALinearXC())
    search = GridSearchCV(
        model, {"ovalinearxc__C": CS}, scoring=TopKScorer((1, 3)), refit="PSP@3", cv=2
    )
    result = cross_validate(search, X, Y, cv=2, scoring=["P@1", "PSP@3"])
    for number, (train, test) in enumerate(KFold(2).split(X)):
        fitted = clone(search).fit(X[train], Y[train])
        values = TopKScorer((1, 3))(fitted, X[test], Y[test])
        assert result["test_P@1"][number] == pytest.approx(values["P@1"])
        assert result["test_PSP@3"][number] == pytest.approx(values["PSP@3"])
