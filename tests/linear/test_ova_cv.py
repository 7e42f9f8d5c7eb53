"""How OvALinearXCCV chooses C: against explicit loops and GridSearchCV."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit, StratifiedKFold

from sklearn_xc import OvALinearXC, OvALinearXCCV
from sklearn_xc.exceptions import ConvergenceWarning
from sklearn_xc.losses import LOSSES
from sklearn_xc.metrics import TopKScorer, get_scorer

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

    @pytest.mark.parametrize("scoring", ["P@1", "nDCG@3", "PSP@5"])
    @pytest.mark.parametrize("loss", LOSSES)
    def test_a_loop_of_cold_fits_scores_the_same(self, loss, scoring, xy):
        model = fit(*xy, scoring=scoring, loss=loss, tol=1e-7)
        folds = list(FOLDS.split(xy[0]))
        expected = cold_scores(*xy, folds, get_scorer(scoring), loss=loss, tol=1e-7)
        np.testing.assert_allclose(model.scores_, expected, atol=1e-12)
        assert len(np.unique(expected.mean(axis=0))) > 2
        assert model.best_score_ == expected.mean(axis=0).max()
        assert model.Cs_[model.best_index_] == model.C_
        assert_is_a_fit_with_the_best_c(model, *xy)

    def test_at_the_default_tolerance_within_the_stopping_rule(self, xy):
        expected = cold_scores(*xy, list(FOLDS.split(xy[0])), get_scorer("P@3"))
        assert np.abs(fit(*xy, scoring="P@3").scores_ - expected).max() < 0.03

    @pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning")
    @pytest.mark.parametrize(
        "parameters",
        [
            {"fit_intercept": False},
            {"regularize_intercept": False},
            {"class_weight": "propensity", "negative_weight": 0.5},
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

    def test_dense_instances(self, xy):
        X, Y = xy[0].toarray(), xy[1].toarray()
        folds = list(FOLDS.split(X))
        expected = cold_scores(X, Y, folds, get_scorer("P@1"), tol=1e-8)
        np.testing.assert_allclose(fit(X, Y, tol=1e-8).scores_, expected, atol=1e-12)

    def test_grid_search_chooses_the_same(self, xy):
        X, Y = xy
        for scoring in ("P@1", "PSP@3"):
            search = GridSearchCV(
                OvALinearXC(prune=0.001, tol=1e-6),
                {"C": CS},
                cv=FOLDS,
                scoring=get_scorer(scoring),
            ).fit(X, Y)
            model = fit(X, Y, cv=FOLDS, scoring=scoring, tol=1e-6)
            assert search.best_params_["C"] == model.C_
            expected = search.best_estimator_.coef_.toarray()
            np.testing.assert_array_equal(model.coef_.toarray(), expected)


class TestGrid:
    def test_a_number_of_cs_is_a_logarithmic_grid(self, xy):
        Cs = fit(*xy, Cs=6).Cs_
        np.testing.assert_allclose(np.log10(Cs), np.linspace(-1.5, 1, 6))
        assert fit(*xy, Cs=1).Cs_.shape == (1,)

    def test_any_order(self, xy):
        a, b = fit(*xy), fit(*xy, Cs=[10.0, 0.01, 1.0, 0.1, 1.0])
        assert b.Cs_.tolist() == CS
        np.testing.assert_array_equal(a.scores_, b.scores_)

    def test_a_tie_goes_to_the_smallest(self, xy):
        model = fit(*xy, scoring=lambda model, X, y: 0.5 * (model.C > 0.05))
        assert model.C_ == 0.1
        assert model.best_score_ == 0.5


class TestFolds:
    def test_an_int_shuffles_classes_by_the_seed(self, xy):
        y = np.sort(np.arange(200) % 4)
        model = fit(xy[0], y)
        np.testing.assert_array_equal(model.scores_, fit(xy[0], y, cv=SHUFFLED).scores_)
        assert (model.scores_ != fit(xy[0], y, random_state=1).scores_).any()
        assert (model.scores_ != fit(xy[0], y, cv=StratifiedKFold(3)).scores_).any()

    def test_an_int_shuffles_an_indicator_by_the_seed(self, xy):
        model = fit(*xy)
        np.testing.assert_array_equal(model.scores_, fit(*xy, cv=FOLDS).scores_)
        other = fit(*xy, random_state=1)
        assert (other.scores_ != model.scores_).any()
        assert model.scores_.shape == (3, 4)
        assert fit(*xy, cv=None).scores_.shape == (5, 4)

    def test_rows_masks_and_generators(self, xy):
        folds = list(FOLDS.split(xy[0]))
        masks = [tuple(np.isin(np.arange(200), rows) for rows in fold) for fold in folds]
        expected = fit(*xy).scores_
        np.testing.assert_array_equal(fit(*xy, cv=masks).scores_, expected)
        np.testing.assert_array_equal(fit(*xy, cv=iter(folds)).scores_, expected)
        backwards = [(train[::-1], test[::-1]) for train, test in folds]
        np.testing.assert_allclose(fit(*xy, cv=backwards).scores_, expected)
        assert fit(*xy, cv=ShuffleSplit(2, random_state=0)).scores_.shape == (2, 4)

    def test_a_row_drawn_twice_has_twice_the_weight(self, xy):
        X, Y = xy
        train = np.r_[np.arange(100), np.arange(50), np.arange(100)]
        test = np.arange(100, 200)
        model = fit(X, Y, cv=[(train, test)], tol=1e-8)
        expected = cold_scores(X, Y, [(train, test)], get_scorer("P@1"), tol=1e-8)
        np.testing.assert_allclose(model.scores_, expected, atol=1e-12)

    def test_labels_without_positives_in_training(self, xy):
        X, Y = xy
        rare = sp.csr_array((np.ones(1), ([5], [0])), shape=(200, 1))
        Y = sp.hstack([Y, rare, rare], format="csr")
        model = fit(X, Y)
        assert np.isfinite(model.scores_).all()
        assert model.coef_.shape == (16, 40)
        y = np.zeros(200, int)
        y[:100] = 1
        y[3] = 2
        with pytest.warns(UserWarning, match="least populated class"):
            of_classes = fit(X, y)
        assert of_classes.classes_.tolist() == [0, 1, 2]
        halves = [(np.arange(100), np.arange(100, 200)), (np.arange(100, 200), np.arange(100))]
        assert fit(X, y, cv=halves).scores_.tolist() == [[0.0] * 4] * 2


class TestReport:
    def test_steps_are_reported(self, xy):
        model = fit(*xy)
        assert set(model.path_report_) == {"n_iter", "n_products", "n_unsolved"}
        for values in model.path_report_.values():
            assert values.shape == (3, 4)
        assert (model.path_report_["n_products"] >= model.path_report_["n_iter"]).all()
        assert (model.path_report_["n_iter"] >= 1).all()
        assert not model.path_report_["n_unsolved"].any()

    def test_unsolved_labels_are_counted_once(self, xy):
        with pytest.warns(ConvergenceWarning) as warned:
            model = fit(*xy, max_iter=1, tol=1e-6)
        ours = [str(w.message) for w in warned if "fits to the folds" in str(w.message)]
        assert len(ours) == 1
        assert all(str(w.message).startswith("OvALinearXCCV: ") for w in warned)
        assert all(w.filename == __file__ for w in warned[-2:])  # of the final fit
        n_unsolved = model.path_report_["n_unsolved"]
        assert n_unsolved.max() > 5
        assert f"in {(n_unsolved > 0).sum()} of 12 fits" in ours[0]
        assert f"up to {n_unsolved.max()} labels" in ours[0]

    def test_progress(self, xy, capsys):
        fit(*xy)
        assert capsys.readouterr().out == ""
        fit(*xy, verbose=1)
        assert "[OvALinearXCCV] fold 3 of 3: scored" in capsys.readouterr().out


class TestScoring:
    def test_one_top_k_pass_for_each_c(self, xy, monkeypatch):
        calls, predict_topk = [], OvALinearXC.predict_topk

        def counting_predict_topk(self, X, k=5):
            calls.append((self.C, X.shape[0], k))
            return predict_topk(self, X, k)

        monkeypatch.setattr(OvALinearXC, "predict_topk", counting_predict_topk)
        fit(*xy, scoring="nDCG@4", cv=[(np.arange(150), np.arange(150, 200))])
        assert calls == [(C, 50, 4) for C in CS]

    def test_a_top_k_scorer_of_one_number(self, xy):
        scorer = TopKScorer(ks=(3,), metrics=("psp",), propensities=np.linspace(0.2, 1, 14))
        named = get_scorer("PSP@3", propensities=np.linspace(0.2, 1, 14))
        np.testing.assert_array_equal(
            fit(*xy, scoring=scorer).scores_, fit(*xy, scoring=named).scores_
        )

    def test_propensities_are_those_of_the_training_rows(self, xy):
        seen = []

        def scorer(model, X, y):
            seen.append((model.n_samples_fit_, model.label_counts_.tolist()))
            return 0.0

        model = fit(*xy, scoring=scorer)
        train, _ = next(FOLDS.split(xy[0]))
        assert seen[0] == (133, xy[1][train].sum(axis=0).tolist())
        assert model.n_samples_fit_ == 200

    def test_a_callable_without_weights(self, xy):
        def scorer(model, X, y):
            return model.score(X, y)

        weight = np.arange(1.0, 201.0) / 100
        folds = list(FOLDS.split(xy[0]))
        model = fit(*xy, weight, scoring=scorer, tol=1e-8)

        def unweighted(model, X, y, sample_weight):
            return scorer(model, X, y)

        expected = cold_scores(*xy, folds, unweighted, weight, tol=1e-8)
        np.testing.assert_allclose(model.scores_, expected, atol=1e-12)


def test_parameters_but_c_and_their_defaults_are_those_of_the_plain_estimator():
    own, plain = OvALinearXCCV().get_params(), OvALinearXC().get_params()
    del plain["C"]
    assert {name: own[name] for name in plain} == plain
    assert set(own) - set(plain) == {"Cs", "cv", "scoring", "exhaustive", "random_state"}
    assert clone(OvALinearXCCV(3, cv=2)).get_params()["Cs"] == 3
