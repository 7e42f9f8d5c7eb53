"""The race of OvALinearXCCV: what is left out, and that nothing else follows from it."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import KFold

from sklearn_xc import OvALinearXC, OvALinearXCCV
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.exceptions import GridEdgeWarning
from sklearn_xc.metrics import TopKScorer, get_scorer

FOLDS = KFold(4, shuffle=True, random_state=0)


@pytest.fixture(scope="module")
def data():
    X, Y = make_xc_classification(
        n_samples=800, n_features=150, n_labels=25, nnz_per_row=8, random_state=0, return_X_y=True
    )
    return X.astype(np.float64), Y


@pytest.fixture(scope="module")
def weight():
    return np.random.default_rng(0).integers(0, 4, 800).astype(float)


def fit(data, sample_weight=None, **parameters):
    parameters = {"Cs": 8, "cv": FOLDS, "prune": 0, **parameters}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GridEdgeWarning)
        return OvALinearXCCV(**parameters).fit(*data, sample_weight)


def test_what_was_not_scored_is_nan(data):
    model = fit(data)
    scored = np.isfinite(model.scores_)
    assert 4 <= scored.sum() < 0.6 * scored.size
    assert model.Cs_.shape == (scored.shape[1],)
    for name in ("n_iter", "n_products"):
        np.testing.assert_array_equal(np.isfinite(model.path_report_[name]), scored)
    assert not model.path_report_["n_unsolved"].any()
    run = scored.any(axis=1)
    assert scored[run, model.best_index_].all()
    on_all = np.flatnonzero(scored[run].all(axis=0))
    means = model.scores_[run][:, on_all].mean(axis=0)
    assert model.best_index_ == on_all[np.argmax(means)]
    assert model.best_score_ == means.max()
    assert model.Cs_[model.best_index_] == model.C_


def test_all_scores_when_asked(data):
    whole = fit(data, exhaustive=True)
    assert whole.scores_.shape == (4, 8)
    assert np.isfinite(whole.scores_).all()
    assert whole.best_score_ == whole.scores_.mean(axis=0).max()


@pytest.mark.parametrize("scoring", ["P@1", "nDCG@3", "PSP@3"])
def test_the_scores_are_those_of_all_where_both_exist(scoring, data):
    """At a tolerance where it makes no difference from where a label was solved."""
    part = fit(data, scoring=scoring, tol=1e-8)
    whole = fit(data, scoring=scoring, tol=1e-8, exhaustive=True, Cs=part.Cs_)
    scored = np.isfinite(part.scores_)
    np.testing.assert_allclose(part.scores_[scored], whole.scores_[scored], atol=1e-12)
    means = whole.scores_.mean(axis=0)
    assert means[part.best_index_] > means.max() - 0.015


def test_the_model_is_that_of_the_plain_estimator(data):
    model = fit(data)
    plain = OvALinearXC(model.C_, prune=0).fit(*data)
    np.testing.assert_array_equal(model.coef_.toarray(), plain.coef_.toarray())
    np.testing.assert_array_equal(model.intercept_, plain.intercept_)


@pytest.mark.parametrize("parameters", [{}, {"scoring": "accuracy"}], ids=["rows", "folds"])
def test_threads_change_nothing(parameters, data, monkeypatch):
    monkeypatch.setattr("sklearn_xc.parallel.blocks.MAX_LANES", 4)
    one, two = (fit(data, n_jobs=n_jobs, **parameters) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.scores_, two.scores_)
    np.testing.assert_array_equal(one.coef_.toarray(), two.coef_.toarray())
    for name, values in one.path_report_.items():
        np.testing.assert_array_equal(values, two.path_report_[name])


def test_weights_count_in_the_race(data, weight):
    """A row of weight two is the same as two rows."""
    X, Y = data
    model = fit(data, weight, tol=1e-8)
    assert np.isnan(model.scores_).any()
    rows = np.repeat(np.arange(800), weight.astype(int))
    folds = [tuple(np.flatnonzero(np.isin(rows, part)) for part in fold) for fold in FOLDS.split(X)]
    whole = fit((X[rows], Y[rows]), cv=folds, tol=1e-8, exhaustive=True, Cs=model.Cs_)
    scored = np.isfinite(model.scores_)
    np.testing.assert_allclose(model.scores_[scored], whole.scores_[scored], atol=1e-9)


class TestScorers:
    def test_one_of_a_single_number_races_by_rows(self, data):
        named = fit(data, scoring="nDCG@3")
        scorer = TopKScorer(ks=(3,), metrics=("ndcg",))
        np.testing.assert_array_equal(fit(data, scoring=scorer).scores_, named.scores_)

    def test_others_score_two_folds_and_leave_by_rank(self, data):
        plain = get_scorer("P@1")
        model = fit(data, scoring=lambda model, X, y: plain(model, X, y), Cs=[0.03, 0.1, 0.3, 1, 3])
        scored = np.isfinite(model.scores_).sum(axis=1)
        assert scored.tolist() == [5, 5, 3, 2]
        two = model.scores_[:2].mean(axis=0)
        third = np.isfinite(model.scores_[2])
        assert two[third].min() >= two[~third].max()

    @pytest.mark.parametrize("scoring", ["Cov@3", "MacroF1@1"])
    def test_metrics_of_labels_race_as_others_do(self, scoring, data):
        named = fit(data, scoring=scoring, Cs=[0.1, 1.0])
        scorer = get_scorer(scoring)
        plain = fit(data, scoring=lambda model, X, y: scorer(model, X, y), Cs=[0.1, 1.0])
        np.testing.assert_array_equal(named.scores_, plain.scores_)
        assert np.isfinite(named.scores_).any()

    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("scoring", ["P@2", "R@3", "nDCG@3", "PSP@3", "PSnDCG@2"])
    def test_rows_add_up_to_the_score(self, scoring, weighted, data, weight):
        X, Y = data
        model = OvALinearXC().fit(X[:500], Y[:500])
        weight = weight[500:] if weighted else None
        scorer = get_scorer(scoring)
        score, added = scorer._score_rows(model, X[500:], Y[500:], weight)
        assert score == scorer(model, X[500:], Y[500:], sample_weight=weight)
        assert added.shape == (300,)
        assert added.sum() == pytest.approx(score, rel=1e-12)
        assert len(np.unique(added)) > 2 - (scoring == "P@2")


class TestEdge:
    """Where the best C lies at an end of the grid."""

    def scorer(self, peak):
        def scorer(model, X, y):
            return -abs(np.log(model.C / peak))

        return scorer

    @pytest.mark.parametrize("peak", [0.005, 60.0])
    def test_a_number_of_values_goes_beyond(self, peak, data):
        model = fit(data, Cs=10, scoring=self.scorer(peak))
        assert abs(np.log(model.C_ / peak)) < 0.5 * np.log(10) * 2.5 / 9 + 1e-9
        assert len(model.Cs_) > 10
        np.testing.assert_allclose(np.diff(np.log10(model.Cs_)), 2.5 / 9)
        assert model.scores_.shape == (4, len(model.Cs_))
        assert set(np.logspace(-1.5, 1, 10)) <= set(model.Cs_)

    def test_ten_times_as_far_and_no_farther(self, data):
        with pytest.warns(GridEdgeWarning, match="the best C, 68.1, is the largest of the 13 in"):
            model = OvALinearXCCV(cv=2, scoring=self.scorer(1e9)).fit(*data)
        assert 10 < model.C_ == model.Cs_[-1] <= 100

    def test_an_array_is_taken_as_it_is(self, data):
        with pytest.warns(
            GridEdgeWarning, match="the smallest of the 3 in Cs_. A smaller"
        ) as warned:
            model = OvALinearXCCV([0.1, 0.3, 1.0], cv=2, scoring=self.scorer(0.1)).fit(*data)
        assert model.Cs_.tolist() == [0.1, 0.3, 1.0]
        assert [w.filename for w in warned] == [__file__]

    @pytest.mark.parametrize(
        "parameters",
        [{"Cs": [1.0]}, {"Cs": [1.0, 2.0]}, {"Cs": [0.3, 1.0, 3.0]}, {"Cs": [2.0, 3.0, 4.0]}],
        ids=["one", "two", "inside", "all equal"],
    )
    def test_no_warning(self, parameters, data):
        def scorer(model, X, y):
            return -abs(np.log(model.C)) if model.C < 2 or len(parameters["Cs"]) == 2 else -9.0

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            OvALinearXCCV(cv=2, scoring=scorer, **parameters).fit(*data)


def test_progress_tells_what_is_left(data, capsys):
    model = fit(data, verbose=1)
    printed = capsys.readouterr().out
    n_run = int(np.isfinite(model.scores_).any(axis=1).sum())
    assert "[OvALinearXCCV] fold 1 of 4: scored, " in printed
    assert (f"fold {n_run} of 4: scored, " in printed) or n_run < 4
