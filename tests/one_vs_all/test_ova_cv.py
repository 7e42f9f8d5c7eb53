"""How OvALinearXCCV chooses C: against explicit loops and GridSearchCV."""

import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold

from sklearn_xc import OvALinearXC, OvALinearXCCV
from sklearn_xc.exceptions import ConvergenceWarning
from sklearn_xc.metrics import get_scorer

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.GridEdgeWarning")
CS = [0.01, 0.1, 1.0, 10.0]
FOLDS = KFold(3, shuffle=True, random_state=0)
SHUFFLED = StratifiedKFold(3, shuffle=True, random_state=0)


@pytest.fixture
def xy(make_xy):
    """Leave out the label that every instance has: it makes precision@1 perfect."""
    X, Y = make_xy(n=200)
    return X, Y[:, [j for j in range(15) if j != 7]]


def fit(X, y, sample_weight=None, **parameters):
    """Fit with all scores, which do not depend on a race."""
    parameters = {"Cs": CS, "cv": 3, "prune": 0.001, "exhaustive": True, **parameters}
    return OvALinearXCCV(**parameters).fit(X, y, sample_weight)


def cold_scores(X, y, folds, scorer, weight=None, Cs=CS, **parameters):
    """Return what an explicit loop of cold fits scores."""
    ones = np.ones(X.shape[0])
    weight = ones if weight is None else weight
    scores = np.empty((len(folds), len(Cs)))
    for fold, (train, test) in enumerate(folds):
        for c, C in enumerate(Cs):
            model = OvALinearXC(**{"prune": 0.001, **parameters, "C": C})
            model.fit(X[train], y[train], weight[train])
            scores[fold, c] = scorer(model, X[test], y[test], sample_weight=weight[test])
    return scores


def assert_is_a_fit_with_the_best_c(model, X, y, weight=None):
    parameters = {
        name: value
        for name, value in model.get_params().items()
        if name in OvALinearXC().get_params()
    }
    plain = OvALinearXC(C=model.C_, **parameters).fit(X, y, weight)
    np.testing.assert_array_equal(model.coef_.toarray(), plain.coef_.toarray())
    np.testing.assert_array_equal(model.intercept_, plain.intercept_)
    for name in set(plain.fit_report_) - {"seconds"}:
        np.testing.assert_array_equal(model.fit_report_[name], plain.fit_report_[name])


class TestScores:
    """At tight tolerances, where cold and warm weights are equal up to rounding."""

    @pytest.mark.parametrize(
        ("loss", "scoring"),
        [("squared_hinge", "P@1"), ("huber_hinge", "nDCG@3"), ("logistic", "PSP@5")],
    )
    def test_a_loop_of_cold_fits_scores_the_same(self, loss, scoring, xy):
        model = fit(*xy, scoring=scoring, loss=loss, tol=1e-7)
        folds = list(FOLDS.split(xy[0]))
        expected = cold_scores(*xy, folds, get_scorer(scoring), loss=loss, tol=1e-7)
        np.testing.assert_allclose(model.scores_, expected, atol=1e-12)
        assert len(np.unique(expected.mean(axis=0))) > 2
        assert model.best_score_ == expected.mean(axis=0).max()
        assert model.Cs_[model.best_index_] == model.C_
        assert_is_a_fit_with_the_best_c(model, *xy)

    @pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning")
    @pytest.mark.parametrize(
        "parameters",
        [
            {"fit_intercept": False},
            {"class_weight": "propensity"},
            {"class_weight": np.arange(1.0, 15.0)},
            {"init": "ovap++"},
            {"init": np.full((14, 40), 0.1)},
            {"prune": 0.3},
        ],
        ids=lambda p: ",".join(p),
    )
    def test_parameters_reach_the_folds(self, parameters, xy):
        scorer = get_scorer("P@3")
        model = fit(*xy, scoring=scorer, tol=1e-8, **parameters)
        folds = list(FOLDS.split(xy[0]))
        expected = cold_scores(*xy, folds, scorer, tol=1e-8, **parameters)
        np.testing.assert_allclose(model.scores_, expected, atol=1e-12)
        assert_is_a_fit_with_the_best_c(model, *xy)

    def test_weights_reach_fits_and_scores(self, xy):
        X, Y = xy
        weight = np.random.default_rng(0).integers(0, 4, 200).astype(float)
        model = fit(X, Y, weight, tol=1e-8)
        folds = list(FOLDS.split(X))
        expected = cold_scores(X, Y, folds, get_scorer("P@1"), weight, tol=1e-8)
        np.testing.assert_allclose(model.scores_, expected, atol=1e-12)
        assert np.abs(model.scores_ - fit(X, Y, tol=1e-8).scores_).max() > 0.01
        assert_is_a_fit_with_the_best_c(model, X, Y, weight)

    def test_classes(self, xy):
        X, _ = xy
        y = np.array(["b", "a", "d", "c"])[X.toarray()[:, :4].argmax(axis=1)]
        scorer = get_scorer("P@1")
        folds = list(SHUFFLED.split(X, y))
        model = fit(X, y, tol=1e-8)
        np.testing.assert_allclose(model.scores_, cold_scores(X, y, folds, scorer, tol=1e-8))
        assert_is_a_fit_with_the_best_c(model, X, y)
        two = fit(X, y == "a", scoring="balanced_accuracy", tol=1e-8)
        folds = list(SHUFFLED.split(X, y == "a"))
        scorer = get_scorer("balanced_accuracy")
        expected = cold_scores(X, y == "a", folds, scorer, tol=1e-8)
        np.testing.assert_allclose(two.scores_, expected)
        assert two.decision_function(X).shape == (200,)


class TestFolds:
    def test_rows_masks_and_generators(self, xy):
        folds = list(FOLDS.split(xy[0]))
        masks = [tuple(np.isin(np.arange(200), rows) for rows in fold) for fold in folds]
        expected = fit(*xy).scores_
        np.testing.assert_array_equal(fit(*xy, cv=masks).scores_, expected)
        np.testing.assert_array_equal(fit(*xy, cv=iter(folds)).scores_, expected)
        backwards = [(train[::-1], test[::-1]) for train, test in folds]
        np.testing.assert_allclose(fit(*xy, cv=backwards).scores_, expected)
        assert fit(*xy, cv=ShuffleSplit(2, random_state=0)).scores_.shape == (2, 4)


class TestReport:
    def test_unsolved_labels_are_counted_once(self, xy):
        with pytest.warns(ConvergenceWarning) as warned:
            model = fit(*xy, max_iter=1, tol=1e-6)
        ours = [str(w.message) for w in warned if "fits to the folds" in str(w.message)]
        assert len(ours) == 1
        assert all(str(w.message).startswith("OvALinearXCCV: ") for w in warned)
        assert all(w.filename == __file__ for w in warned[-2:])  # of the final fit
        found = re.search(r"in (\d+) of 12 fits to the folds, up to (\d+) labels", ours[0])
        assert int(found[1]) > 5
        assert int(found[2]) > 5
        assert model.scores_.shape == (3, 4)


def test_parameters_but_c_and_their_defaults_are_those_of_the_plain_estimator():
    own, plain = OvALinearXCCV().get_params(), OvALinearXC().get_params()
    del plain["C"], plain["warm_start"]
    assert {name: own[name] for name in plain} == plain
    assert set(own) - set(plain) == {"Cs", "cv", "scoring", "exhaustive", "random_state"}
    assert clone(OvALinearXCCV(3, cv=2)).get_params()["Cs"] == 3
