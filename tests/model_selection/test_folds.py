"""Bad folds are refused by the functions and estimators that take ``cv``."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import PredefinedSplit

from sklearn_xc import OvALinearXC, OvALinearXCCV
from sklearn_xc._input.folds import check_folds
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
@pytest.mark.parametrize("make", [list, Splitter], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    ("folds", "message"),
    [
        ([], "cv gives no folds"),
        (with_test([]), "the test rows of fold 1 are none"),
        (with_train([]), "the training rows of fold 0 are none"),
        (with_test(mask([])), "the test rows of fold 1 are none"),
        (with_test(mask(range(5), 29)), "test rows of fold 1 are a mask of 29 entries, X has 30"),
        (with_train(mask(range(5), 31)), "training rows of fold 0 are a mask of 31 entries, X has"),
        (with_test([0, N]), "the test rows of fold 1 must be from 0 to 29. Got 30"),
        (with_train([0, 2**40]), "training rows of fold 0 must be from 0 to 29. Got 1099511627776"),
        (with_test([0, -1]), "the test rows of fold 1 must be from 0 to 29. Got -1"),
        (with_test([0.0, 1.0]), "fold 1 must be row numbers or a mask. Got dtype float64"),
        (with_test([[0, 1]]), "fold 1 must have one dimension. Got shape (1, 2)"),
        (with_test([[0], [1, 2]]), "must be row numbers or a mask. Got lists of lists"),
        ([FOLDS[0], np.arange(3)], "cv must give pairs (train, test) of row numbers, fold 1 is"),
        ([1, 2], "cv must give pairs (train, test) of row numbers, fold 0 is 1"),
    ],
)  # fmt: skip
def test_bad_folds(call, make, folds, message, data):
    X, y = data
    with pytest.raises(ValueError, match=re.escape(message)):
        CALLS[call](X, y, make(folds))


@everywhere
def test_masked_rows(call, data):
    with pytest.raises(TypeError, match="test rows of fold 1 is a masked array"):
        CALLS[call](*data, with_test(np.ma.array([1, 2], mask=[0, 1])))


@everywhere
def test_an_iterator_that_an_earlier_fit_used_up(call, data):
    cv = iter(FOLDS)
    CALLS[call](*data, cv)
    with pytest.raises(ValueError, match=r"cv gives no folds. This .* was used up.* pass a list"):
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
