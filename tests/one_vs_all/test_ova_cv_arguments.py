"""Arguments that OvALinearXCCV alone has: the grid, folds and scorers; and how it ends early."""

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from sklearn_xc import OvALinearXCCV
from sklearn_xc.exceptions import MemoryBudgetError
from sklearn_xc.metrics import TopKScorer
from sklearn_xc.one_vs_all import warm_start

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


@pytest.fixture
def model(xy):
    return fit(*xy)


class TestBadInput:
    @pytest.mark.parametrize(
        ("Cs", "message"),
        [
            ([1.0, 0.0], "Cs must be positive. Got 0.0"),
            ([], "Cs must be positive. Got none"),
            ([[1.0, 2.0]], r"Cs has shape \(1, 2\)"),
            ([[1.0], [1.0, 2.0]], "Cs is no array of one dimension"),
            ([np.nan], "Cs contains NaN at entry 0"),
            (True, "Cs must be a number. Got True"),
        ],
        ids=str,
    )
    def test_cs(self, Cs, message, xy):
        with pytest.raises(ValueError, match=f"OvALinearXCCV: {message}"):
            fit(*xy, Cs=Cs)

    def test_scoring_with_several_numbers(self, xy):
        with pytest.raises(
            ValueError, match=r'gives several. Pass one of its names, such as "P@1"'
        ):
            fit(*xy, scoring=TopKScorer(ks=(1, 3), metrics=("precision",)))
        with pytest.raises(ValueError, match=r"one finite number, .* gave {'a': 1, 'b': 2} for C="):
            fit(*xy, scoring=lambda model, X, y: {"a": 1, "b": 2})

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

    def test_memory(self, xy, monkeypatch):
        monkeypatch.setattr(warm_start, "solve_block", lambda *a, **k: pytest.fail("allocated"))
        with pytest.raises(MemoryBudgetError, match="the points of a block, 2 x 1 labels x 41"):
            fit(*xy, max_memory="1KB")
        with pytest.raises(ValueError, match="OvALinearXCCV: max_memory must be"):
            fit(*xy, max_memory="plenty")
