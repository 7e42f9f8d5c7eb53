"""Folds that are none: refused by all that takes ``cv``, none passes in silence."""

import datetime
import re

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, TimeSeriesSplit

from sklearn_xc import OvALinearXC, OvALinearXCCV
from sklearn_xc._folds import check_folds
from sklearn_xc.model_selection import (
    GridSearchCV,
    cross_val_score,
    cross_validate,
    learning_curve,
)

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


def by_cross_validate(X, y, cv):
    found = cross_validate(OvALinearXC(prune=0), X, y, cv=cv, scoring=["P@1", "nDCG@2"])
    return np.stack([found["test_P@1"], found["test_nDCG@2"]])


def by_cross_val_score(X, y, cv):
    return cross_val_score(OvALinearXC(prune=0), X, y, cv=cv, scoring="P@1")


def by_learning_curve(X, y, cv):
    return learning_curve(OvALinearXC(prune=0), X, y, cv=cv, scoring="P@1", train_sizes=[0.5, 1.0])[
        2
    ]


CALLS = {
    "OvALinearXCCV": fit,
    "cross_validate": by_cross_validate,
    "cross_val_score": by_cross_val_score,
    "learning_curve": by_learning_curve,
}
# Of cross_val_score it is cross_validate that calls scikit-learn.
NAMES = {**{name: name for name in CALLS}, "cross_val_score": "cross_validate"}
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
@pytest.mark.parametrize("dense", [False, True])
def test_all_kinds_of_folds_score_alike(call, dense, data):
    X, y = data[0], data[1].toarray() if dense else data[1]
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
@pytest.mark.parametrize("cv", [2, None, KFold(3), TimeSeriesSplit(3)], ids=str)
def test_splitters_still_split(call, cv, data):
    assert np.isfinite(CALLS[call](*data, cv)).all()


@everywhere
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("make", [list, tuple, Splitter], ids=lambda kind: kind.__name__)
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
        (with_test(["0", "1"]), "fold 1 must be row numbers or a mask. Got dtype <U1"),
        (with_test([None]), "fold 1 must be row numbers or a mask. Got dtype object"),
        (with_test([[0, 1]]), "fold 1 must have one dimension. Got shape (1, 2)"),
        (with_test([[0], [1, 2]]), "must be row numbers or a mask. Got lists of lists"),
        (with_test(5), "fold 1 must have one dimension. Got shape ()"),
        (with_test(np.array([1], "timedelta64[s]")), "fold 1 holds dates or times"),
        ([FOLDS[0], np.arange(3)], "cv must give pairs (train, test) of row numbers, fold 1 is"),
        ([1, 2], "cv must give pairs (train, test) of row numbers, fold 0 is 1"),
    ],
)  # fmt: skip
def test_what_is_no_fold(call, dense, make, folds, message, data):
    X, y = data[0], data[1].toarray() if dense else data[1]
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        CALLS[call](X, y, make(folds))
    assert str(caught.value).startswith(NAMES[call])


@everywhere
def test_masked_rows(call, data):
    with pytest.raises(TypeError, match="test rows of fold 1 is a masked array"):
        CALLS[call](*data, with_test(np.ma.array([1, 2], mask=[0, 1])))


@everywhere
@pytest.mark.parametrize("make", [iter, lambda folds: (fold for fold in folds)])
def test_an_iterator_that_an_earlier_fit_used_up(call, make, data):
    cv = make(FOLDS)
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


class Coloured(GroupKFold):
    """Splits by groups, and asks for one more argument."""

    def split(self, X, y=None, groups=None, colour=None):
        assert len(colour) == len(X)
        return super().split(X, y, groups)

    def get_n_splits(self, X=None, y=None, groups=None, colour=None):
        assert len(colour) == len(X)
        return super().get_n_splits(X, y, groups)


def test_all_that_a_splitter_requests_is_routed_to_it(data):
    (X, Y), model, groups = data, OvALinearXC(prune=0), np.arange(N) % 3
    expected = cross_val_score(model, X, Y, groups=groups, cv=GroupKFold(3), scoring="P@1")
    with sklearn.config_context(enable_metadata_routing=True):
        cv = Coloured(3).set_split_request(colour=True)
        params = {"groups": groups, "colour": groups}
        routed = cross_val_score(model, X, Y, params=params, cv=cv, scoring="P@1")
        search = GridSearchCV(model, {"C": [0.5]}, scoring="P@1", cv=cv).fit(X, Y, **params)
    np.testing.assert_array_equal(routed, expected)
    assert search.best_score_ == pytest.approx(expected.mean())


@pytest.mark.parametrize("function", [cross_validate, cross_val_score, learning_curve])
class TestOtherArguments:
    def test_index_arrays_that_lie(self, function, malformed, data):
        X, y = data
        for name, arguments in (("X", (malformed(sp.csr_array(X)), y)), ("y", (X, malformed(y)))):
            with pytest.raises(ValueError, match=f": {name}: this .* is malformed"):
                function(OvALinearXC(prune=0), *arguments, cv=2)

    def test_masks(self, function, data):
        X, y = data[0], data[1].toarray()
        for arguments in ({"X": np.ma.array(X)}, {"y": np.ma.array(y)},
                          {"groups": np.ma.array(np.arange(N))}):  # fmt: skip
            with pytest.raises(TypeError, match=f": {next(iter(arguments))} is a masked array"):
                function(OvALinearXC(prune=0), **{"X": X, "y": y, **arguments}, cv=2)

    @pytest.mark.parametrize("cv", [0.5, "five", datetime.timedelta(2), -1, 0, 1, True], ids=repr)
    def test_what_makes_no_folds(self, function, cv, data):
        with pytest.raises(ValueError, match=r"cv|n_splits"):
            function(OvALinearXC(prune=0), *data, cv=cv)
