"""Bad folds are refused by the functions and estimators that take ``cv``."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import PredefinedSplit

from sklearn_xc import OvALinearXC, OvALinearXCCV
from sklearn_xc._input.arguments import check_folds
from sklearn_xc.model_selection import cross_val_topk

N = 30
FOLDS = [(np.arange(10, 30), np.arange(10)), (np.arange(20), np.arange(20, 30))]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    Y = (rng.random((N, 4)) < 0.4).astype(int)
    Y[np.arange(N), np.arange(N) % 4] = 1
    return Y @ rng.normal(size=(4, 8)) + rng.normal(size=(N, 8)), sp.csr_array(Y)


def fit(X, y, cv):
    return OvALinearXCCV([0.1, 1.0], prune=0, cv=cv, exhaustive=True).fit(X, y).scores_


def score(X, y, cv):
    return cross_val_topk(OvALinearXC(prune=0), X, y, cv=cv).toarray()


CALLS = {"OvALinearXCCV": fit, "cross_val_topk": score}
everywhere = pytest.mark.parametrize("call", CALLS)


class Splitter:
    """A splitter of the user's own."""

    def __init__(self, folds):
        self.folds = folds

    def split(self, X, y=None, groups=None):
        yield from self.folds

    def get_n_splits(self, X=None, y=None, groups=None):
        return len(self.folds)


def mask(rows, n=N):
    found = np.zeros(n, bool)
    found[rows] = True
    return found


def with_test(rows):
    return [FOLDS[0], (FOLDS[1][0], rows)]


def with_train(rows):
    return [(rows, FOLDS[0][1]), FOLDS[1]]


@everywhere
def test_all_kinds_of_folds_score_alike(call, data):
    X, y = data
    expected = CALLS[call](X, y, FOLDS)
    assert np.isfinite(expected).all()
    kinds = [
        iter(FOLDS),
        (fold for fold in FOLDS),
        tuple(map(list, FOLDS)),
        [[part.tolist() for part in fold] for fold in FOLDS],
        [[part.astype(np.uint8) for part in fold] for fold in FOLDS],
        [tuple(map(mask, fold)) for fold in FOLDS],
        Splitter(FOLDS),
    ]
    for cv in kinds:
        np.testing.assert_array_equal(CALLS[call](X, y, cv), expected)


@everywhere
@pytest.mark.parametrize(
    ("folds", "message"),
    [
        ([], "cv gives no folds"),
        (with_train([]), "the training rows of fold 0 must be numbers from 0 to 29, at least one"),
        (with_test(mask([])), "the test rows of fold 1 must be numbers from 0 to 29"),
        (
            with_test(mask(range(5), 29)),
            "fold 1 must be numbers from 0 to 29, at least one, or a m",
        ),
        (with_test([0, N]), "the test rows of fold 1 must be numbers from 0 to 29"),
        (with_test([0, -1]), "the test rows of fold 1 must be numbers from 0 to 29"),
        (with_test([0.0, 1.0]), "the test rows of fold 1 must be numbers from 0 to 29"),
        (with_test([[0, 1]]), "the test rows of fold 1 must be numbers from 0 to 29"),
        ([FOLDS[0], np.arange(3)], "cv must give pairs (train, test) of row numbers, fold 1 is"),
        ([1, 2], "cv must give pairs (train, test) of row numbers, fold 0 is 1"),
    ],
)
def test_bad_folds(call, folds, message, data):
    X, y = data
    for cv in (folds, Splitter(folds)):
        with pytest.raises(ValueError, match=re.escape(message)):
            CALLS[call](X, y, cv)


@everywhere
def test_an_iterator_that_an_earlier_fit_used_up(call, data):
    cv = iter(FOLDS)
    CALLS[call](*data, cv)
    with pytest.raises(ValueError, match=r"cv gives no folds\. .* was used up.* pass a list"):
        CALLS[call](*data, cv)


def test_an_earlier_fit_stays_after_a_refusal(data):
    model = OvALinearXCCV([0.1, 1.0], prune=0, cv=iter(FOLDS)).fit(*data)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="cv gives no folds"):
        model.fit(*data)
    assert vars(model) == before


@everywhere
def test_a_splitter_that_makes_no_fold(call, data):
    with pytest.raises(ValueError, match=r"cv gives no folds\. Got PredefinedSplit"):
        CALLS[call](*data, PredefinedSplit(np.full(N, -1)))


def test_rows_may_come_several_times():
    ((train, test),) = check_folds([([1, 1, 2], [0, 0])], 3, "f")
    assert train.tolist() == [1, 1, 2]
    assert test.tolist() == [0, 0]
    assert train.dtype == np.int64
