"""Folds of all kinds, and bad ones, where ``cv`` is taken."""

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


everywhere = pytest.mark.parametrize("call", [fit, score])


class Splitter:
    """A splitter of the user's own."""

    def split(self, X, y=None, groups=None):
        yield from FOLDS

    def get_n_splits(self, X=None, y=None, groups=None):
        return len(FOLDS)


def mask(rows, n=N):
    found = np.zeros(n, bool)
    found[rows] = True
    return found


def with_test(rows):
    return [FOLDS[0], (FOLDS[1][0], rows)]


@everywhere
def test_all_kinds_of_folds_score_alike(call, data):
    expected = call(*data, FOLDS)
    assert np.isfinite(expected).all()
    lists = [[part.tolist() for part in fold] for fold in FOLDS]
    masks = [tuple(map(mask, fold)) for fold in FOLDS]
    for cv in (iter(FOLDS), lists, masks, Splitter()):
        np.testing.assert_array_equal(call(*data, cv), expected)


@pytest.mark.parametrize(
    ("folds", "message"),
    [
        ([], "f: cv gives no folds"),
        (with_test([]), "the test rows of fold 1 are none"),
        ([(mask([]), FOLDS[0][1])], "the training rows of fold 0 are none"),
        (with_test(mask(range(5), 29)), "test rows of fold 1 are a mask of 29 entries, X has 30"),
        (with_test([0, N]), "the test rows of fold 1 must be from 0 to 29. Got 30"),
        (with_test([0, -1]), "the test rows of fold 1 must be from 0 to 29. Got -1"),
        (with_test([0.0, 1.0]), "fold 1 must be row numbers or a mask. Got dtype float64"),
        (with_test([[0, 1]]), "fold 1 must have one dimension. Got shape (1, 2)"),
        (with_test([[0], [1, 2]]), "must be row numbers or a mask. Got lists of lists"),
        (with_test(np.ma.array([1, 2], mask=[0, 1])), "test rows of fold 1 is a masked array"),
        ([1, 2], "cv must give pairs (train, test) of row numbers, fold 0 is 1"),
    ],
)
def test_bad_folds(folds, message):
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        check_folds(folds, N, "f", folds)


@everywhere
def test_folds_are_checked(call, data):
    with pytest.raises(ValueError, match="the test rows of fold 1 are none"):
        call(*data, with_test([]))
    with pytest.raises(ValueError, match=r"cv gives no folds\. Got PredefinedSplit"):
        call(*data, PredefinedSplit(np.full(N, -1)))
    cv = iter(FOLDS)
    call(*data, cv)
    with pytest.raises(ValueError, match=r"cv gives no folds. This .* was used up.* pass a list"):
        call(*data, cv)


def test_rows_may_come_several_times():
    ((train, test),) = check_folds([([1, 1, 2], [0, 0])], 3, "f")
    assert (train.tolist(), test.tolist()) == ([1, 1, 2], [0, 0])
    assert train.dtype == np.int64
