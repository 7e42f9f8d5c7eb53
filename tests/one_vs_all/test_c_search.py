"""The choice of C: which values are scored on which folds, and that nothing else depends on it."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import KFold

from sklearn_xc import OvALinearXCCV
from sklearn_xc._parallel.progress import Progress, Task
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.exceptions import GridEdgeWarning
from sklearn_xc.one_vs_all.ova_cv import search

FOLDS = KFold(4, shuffle=True, random_state=0)


def choose(scores, grid=None, **how):
    """Return ``search`` over a table of scores, and the calls that it made."""
    n_folds, n_values = scores.shape
    calls = []

    def score(fold, values):
        calls.append((fold, list(values)))
        return scores[fold, list(values)]

    grid = range(n_values) if grid is None else grid
    progress = Progress(Task(), None, "fold", n_folds)
    found = search(score, n_folds, n_values, grid, progress, exhaustive=False, **how)
    return *found, calls


@pytest.mark.parametrize("top", [0, 5, 11])
def test_the_first_fold_goes_to_the_peak(top):
    scores = np.tile(-np.abs(np.arange(12.0) - top), (5, 1))
    best, found, n_run, calls = choose(scores, range(1, 11))
    assert best == top
    assert calls[0] == (0, [3, 4, 5, 6])
    assert [len(values) for fold, values in calls if fold > 0] == [3, 2]
    assert n_run == 3
    scored = np.isfinite(found)
    np.testing.assert_array_equal(found[scored], scores[scored])


def test_survivors_are_the_best_by_their_means():
    scores = np.array([[5, 6, 7, 8.0], [9, 9, 1, 3.0], [0, 5, 9, 9.0], [1, 1, 1, 1], [1, 1, 1, 1]])
    best, _, n_run, calls = choose(scores)
    assert calls == [(0, [0, 1, 2, 3]), (1, [1, 2, 3]), (2, [1, 3])]
    assert (best, n_run) == (1, 3)  # means 6.67, 6.67


@pytest.fixture(scope="module")
def data():
    X, Y = make_xc_classification(
        n_samples=800, n_features=150, n_labels=25, nnz_per_row=8, random_state=0, return_X_y=True
    )
    return X.astype(np.float64), Y


def fit(data, sample_weight=None, **parameters):
    parameters = {"Cs": 8, "cv": FOLDS, "prune": 0, **parameters}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GridEdgeWarning)
        return OvALinearXCCV(**parameters).fit(*data, sample_weight)


def test_scores_are_those_of_all_values_where_both_exist(data):
    """At a tolerance where the start of a label makes no difference; weights included."""
    weight = np.random.default_rng(0).integers(0, 4, 800).astype(float)
    part = fit(data, weight, tol=1e-8)
    whole = fit(data, weight, tol=1e-8, exhaustive=True, Cs=part.Cs_)
    scored = np.isfinite(part.scores_)
    assert 4 <= scored.sum() < 0.6 * scored.size
    np.testing.assert_allclose(part.scores_[scored], whole.scores_[scored], atol=1e-12)
    assert part.Cs_[part.best_index_] == part.C_


class TestEdge:
    """The best C lies at an end of the grid."""

    def scorer(self, peak):
        return lambda model, X, y: -abs(np.log(model.C / peak))

    @pytest.mark.parametrize("peak", [0.005, 60.0])
    def test_a_number_of_values_goes_beyond(self, peak, data):
        model = fit(data, Cs=10, scoring=self.scorer(peak))
        assert abs(np.log(model.C_ / peak)) < 0.5 * np.log(10) * 2.5 / 9 + 1e-9
        np.testing.assert_allclose(np.diff(np.log10(model.Cs_)), 2.5 / 9)
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


def test_progress_tells_what_is_left(data, capsys):
    fit(data, verbose=1)
    assert "[OvALinearXCCV] fold 1 of 4: scored, 3 values of C left" in capsys.readouterr().out
