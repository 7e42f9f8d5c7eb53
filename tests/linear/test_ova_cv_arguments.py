"""Arguments that OvALinearXCCV alone has: the grid, folds and scorers; and how it ends early."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from sklearn_xc import OvALinearXC, OvALinearXCCV
from sklearn_xc.exceptions import MemoryBudgetError
from sklearn_xc.linear import ova, path
from sklearn_xc.metrics import TopKScorer, get_scorer

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.GridEdgeWarning")
CS = [0.1, 1.0, 10.0]


def fit(X, y, sample_weight=None, **parameters):
    return make(**parameters).fit(X, y, sample_weight)


def make(**parameters):
    return OvALinearXCCV(**{"Cs": CS, "cv": 3, "prune": 0.001, "scoring": "P@3", **parameters})


def assert_same_bytes(a, b):
    np.testing.assert_array_equal(a.scores_, b.scores_)
    np.testing.assert_array_equal(a.coef_.toarray(), b.coef_.toarray())
    np.testing.assert_array_equal(a.intercept_, b.intercept_)
    assert a.C_ == b.C_
    for name in set(a.fit_report_) - {"seconds"}:
        np.testing.assert_array_equal(a.fit_report_[name], b.fit_report_[name])
    for name in a.path_report_:
        np.testing.assert_array_equal(a.path_report_[name], b.path_report_[name])


@pytest.fixture
def model(xy):
    return fit(*xy)


class TestTolerance:
    def test_by_default_folds_are_solved_as_far_as_scores_need(self, xy):
        grid = {"Cs": np.logspace(-1.5, 1, 10), "exhaustive": True}
        model, precise = fit(*xy, **grid), fit(*xy, **grid, tol=0.01)
        assert model.path_report_["n_iter"][:, :5].mean() < 1.3
        assert precise.path_report_["n_iter"][:, :5].mean() > 1.4
        assert (model.fit_report_["suboptimality"] <= 1e-3 * model.fit_report_["objective"]).all()


class TestEcosystem:
    def test_answers(self, model, xy):
        X, Y = xy
        plain = OvALinearXC(C=model.C_, prune=0.001).fit(X, Y)
        assert isinstance(model, OvALinearXC)
        np.testing.assert_array_equal(model.predict_topk(X, 4), plain.predict_topk(X, 4))
        np.testing.assert_array_equal(
            model.decision_function(X).toarray(), plain.decision_function(X).toarray()
        )
        assert model.score(X, Y) == plain.score(X, Y)
        assert str(model.explain(X[[0]], 2)) == str(plain.explain(X[[0]], 2))

    def test_inside_a_search_over_another_parameter(self, xy):
        losses = ["squared_hinge", "logistic"]
        search = GridSearchCV(
            make(), {"loss": losses}, cv=2, scoring=TopKScorer(ks=(1, 3)), refit="P@3"
        ).fit(*xy)
        assert search.best_params_["loss"] in losses
        assert np.isfinite(search.cv_results_["mean_test_P@1"]).all()
        assert_same_bytes(search.best_estimator_, fit(*xy, **search.best_params_))


class TestBadInput:
    @pytest.mark.parametrize(
        ("Cs", "message"),
        [
            ([1.0, 0.0], "Cs must be positive. Got 0.0"),
            ([-1.0], "Cs must be positive. Got -1.0"),
            ([], "Cs must be positive. Got none"),
            ([[1.0, 2.0]], r"Cs has shape \(1, 2\)"),
            ([[1.0], [1.0, 2.0]], "Cs is no array of one dimension"),
            ([np.nan], "Cs contains NaN at entry 0"),
            ([1.0, np.inf], "Cs contains infinity at entry 1"),
            (["1", "2"], "Cs holds '1'"),
            (True, "Cs must be a number. Got True"),
            (np.timedelta64(3, "s"), "Cs must not be a timedelta. Got"),
            (np.array([1, 2], "timedelta64[s]"), "Cs holds dates or times"),
            (np.array(["2020"], "datetime64[Y]"), "Cs holds dates or times"),
        ],
        ids=str,
    )
    def test_cs(self, Cs, message, xy):
        with pytest.raises(ValueError, match=f"OvALinearXCCV: {message}"):
            fit(*xy, Cs=Cs)

    @pytest.mark.parametrize("cv", [b"x", np.array(3)])
    def test_what_gives_no_folds(self, cv, xy):
        with pytest.raises(ValueError, match="OvALinearXCCV: cv must be a number of folds, a"):
            fit(*xy, cv=cv)

    def test_a_grid_that_no_memory_holds(self, xy):
        with pytest.raises(ValueError, match="'Cs' parameter of OvALinearXCCV"):
            fit(*xy, Cs=10**12)

    def test_masks(self, xy):
        X, Y = xy
        with pytest.raises(TypeError, match="OvALinearXCCV: Cs is a masked array"):
            fit(X, Y, Cs=np.ma.array([1.0, 2.0], mask=[0, 1]))
        for arguments in ((np.ma.array(X.toarray()), Y), (X, np.ma.array(Y.toarray()))):
            with pytest.raises(TypeError, match="is a masked array"):
                fit(*arguments)

    def test_scoring_with_several_numbers(self, xy):
        with pytest.raises(
            ValueError, match=r'gives several. Pass one of its names, such as "P@1"'
        ):
            fit(*xy, scoring=TopKScorer(ks=(1, 3), metrics=("precision",)))
        with pytest.raises(ValueError, match=r"one finite number, .* gave {'a': 1, 'b': 2} for C="):
            fit(*xy, scoring=lambda model, X, y: {"a": 1, "b": 2})

    @pytest.mark.parametrize("value", [np.nan, np.inf, None, np.zeros(2), "0.5"], ids=str)
    def test_scores_that_are_no_finite_number(self, value, xy):
        with pytest.raises(ValueError, match=r"one finite number, .* gave .* for C=0\.1"):
            fit(*xy, scoring=lambda model, X, y: value)

    def test_unknown_name_of_a_scorer(self, xy):
        with pytest.raises(ValueError, match=r"^OvALinearXCCV: scoring must be .* Got 'P@'"):
            fit(*xy, scoring="P@")

    def test_folds_that_cannot_be_made(self, xy):
        with pytest.raises(ValueError, match="n_splits=121 greater than the number of samples"):
            fit(*xy, cv=121)
        with pytest.raises(ValueError, match=r"cv: StratifiedKFold.* Use KFold"):
            fit(*xy, cv=StratifiedKFold(3))

    @pytest.mark.parametrize("which", ["test", "training"])
    def test_weights_that_empty_a_fold(self, which, xy):
        weight, halves = np.ones(120), (np.arange(60), np.arange(60, 120))
        weight[:60] = 0
        fold = halves if which == "training" else halves[::-1]
        with pytest.raises(ValueError, match=f"the {which} rows of fold 0 must hold a row of posi"):
            fit(*xy, weight, cv=[fold])

    def test_start_vectors_of_a_wrong_shape(self, xy):
        with pytest.raises(ValueError, match=r"init must have shape \(15, 40\)"):
            fit(*xy, init=np.zeros((3, 2)))

    def test_memory(self, xy, monkeypatch):
        monkeypatch.setattr(path, "solve_block", lambda *a, **k: pytest.fail("allocated"))
        with pytest.raises(MemoryBudgetError, match="the points of a block, 2 x 1 labels x 41"):
            fit(*xy, max_memory="1KB")
        with pytest.raises(ValueError, match="OvALinearXCCV: max_memory must be"):
            fit(*xy, max_memory="plenty")


class TestInterruption:
    @pytest.fixture
    def assert_intact(self, model, xy):
        before = {name: value for name, value in vars(model).items() if name != "n_jobs"}
        top = model.predict_topk(xy[0], 3)

        def check():
            now = {name: value for name, value in vars(model).items() if name != "n_jobs"}
            assert now.keys() == before.keys()
            changed = [n for n in before if now[n] is not before[n] and n.endswith("_")]
            assert changed == []
            np.testing.assert_array_equal(model.predict_topk(xy[0], 3), top)

        return check

    @pytest.mark.parametrize("n_jobs", [1, 2])
    @pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
    def test_an_error_in_a_worker(self, error, n_jobs, model, assert_intact, make_xy, monkeypatch):
        stops, solve_block = [], path.solve_block

        def failing_solve_block(*args, **ends):
            stops.append(args[-1])
            if len(stops) > 4:
                raise error("from a worker")
            return solve_block(*args, **ends)

        monkeypatch.setattr(path, "solve_block", failing_solve_block)
        model.set_params(n_jobs=n_jobs)
        with pytest.raises(error, match="from a worker"):
            model.fit(*make_xy(d=50, n_labels=40))
        assert stops[-1].is_set()
        assert_intact()

    @pytest.mark.parametrize("where", ["scorer", "final fit"])
    def test_an_error_elsewhere(self, where, model, assert_intact, make_xy, monkeypatch):
        def fail(*args, **kwargs):
            raise KeyboardInterrupt

        if where == "scorer":
            model.set_params(scoring=fail)
        else:
            monkeypatch.setattr(ova, "solve_all", fail)
        with pytest.raises(KeyboardInterrupt):
            model.fit(*make_xy(d=50, n_labels=40))
        model.set_params(scoring=get_scorer("P@3"))
        monkeypatch.undo()
        assert model.n_features_in_ == 40
        if where == "final fit":
            assert model.scores_.shape == (3, 3)
