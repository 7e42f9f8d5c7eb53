"""``train_test_split`` of indicators; of all else it is scikit-learn's."""

import inspect

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.model_selection

from sklearn_xc.exceptions import UnseenLabelWarning
from sklearn_xc.model_selection import train_test_split


@pytest.fixture
def indicator():
    """Return a CSR indicator (60, 30) whose labels have two positives or more."""
    rng = np.random.default_rng(0)
    Y = rng.random((60, 30)) < 0.03
    Y[rng.permutation(60), np.repeat(np.arange(30), 2)] = True
    return sp.csr_array(Y.astype(np.int8))


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csc_array, lambda Y: Y.toarray()])
@pytest.mark.parametrize("sizes", [{}, {"test_size": 0.5}, {"train_size": 45}, {"test_size": 20}])
def test_every_label_is_in_the_training_part(indicator, container, sizes):
    stratify = container(indicator)
    rows = np.arange(60)
    parts = train_test_split(rows, indicator, stratify=stratify, random_state=0, **sizes)
    train, test, Y_train, Y_test = parts
    theirs = sklearn.model_selection.train_test_split(rows, random_state=0, **sizes)
    assert [len(train), len(test)] == [len(part) for part in theirs]
    assert len(np.union1d(train, test)) == 60
    assert (Y_train.sum(axis=0) > 0).all()
    np.testing.assert_array_equal(Y_train.toarray(), indicator.toarray()[train])
    np.testing.assert_array_equal(Y_test.toarray(), indicator.toarray()[test])
    again = train_test_split(rows, stratify=indicator, random_state=0, **sizes)
    np.testing.assert_array_equal(again[0], train)


def test_containers_stay(indicator):
    frame = pd.DataFrame({"a": range(60)}, index=range(100, 160))
    texts = [str(i) for i in range(60)]
    X_train, _, texts_train, _, Y_train, _ = train_test_split(
        frame, texts, sp.csc_array(indicator), stratify=indicator, random_state=0
    )
    assert isinstance(X_train, pd.DataFrame)
    assert isinstance(texts_train, list)
    assert Y_train.format == "csr"
    assert [int(text) for text in texts_train] == X_train["a"].tolist()


class _Tensor(np.ndarray):
    """An array whose entries are arrays without dimensions, as of PyTorch."""

    def __iter__(self):
        return (np.ndarray.__getitem__(self, (i, ...)) for i in range(len(self)))


@pytest.mark.parametrize(
    "stratify",
    [None, [0, 1] * 30, (np.arange(60) % 3).view(_Tensor),
     np.array(["a", "b", "c"] * 20), np.arange(60).reshape(60, 1) % 3,
     np.stack([np.arange(60) % 3, np.arange(60) % 2], axis=1)],
    ids=["none", "list", "tensor", "texts", "column", "columns of classes"],
)  # fmt: skip
def test_all_else_is_scikit_learns(stratify):
    arguments = {"stratify": stratify, "random_state": 3, "test_size": 0.3}
    ours = train_test_split(np.arange(60), **arguments)
    theirs = sklearn.model_selection.train_test_split(np.arange(60), **arguments)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_same_parameters_as_scikit_learn():
    ours = inspect.signature(train_test_split).parameters
    theirs = inspect.signature(sklearn.model_selection.train_test_split).parameters
    assert [(p.name, p.kind, p.default) for p in ours.values()] == [
        (p.name, p.kind, p.default) for p in theirs.values()
    ]


def test_labels_without_room(indicator):
    with pytest.warns(UnseenLabelWarning, match=r"labels have no training instance"):
        train_test_split(np.arange(60), stratify=indicator, train_size=3)


@pytest.mark.parametrize(
    ("arrays", "changed", "message"),
    [
        ((), {}, "expected at least one array to split. Got none"),
        ((np.arange(60),), {"shuffle": False}, "stratify needs shuffle=True. Got shuffle=False"),
        ((np.arange(59),), {}, "stratify must have 59 rows, as the arrays. Got 60"),
        ((np.arange(60), np.arange(9)), {}, "inconsistent numbers of samples"),
        ((np.arange(60),), {"test_size": 1.5}, "test_size=1.5"),
        ((np.arange(60),), {"test_size": 0.6, "train_size": 0.6}, "sum of test_size and train"),
        ((np.arange(60),), {"stratify": "threes"}, "stratify: .* must be a binary indicator"),
    ],
)
def test_bad_input(indicator, arrays, changed, message):
    if changed.get("stratify") == "threes":
        changed = {"stratify": indicator * 3}
    with pytest.raises(ValueError, match=message):
        train_test_split(*arrays, **{"stratify": indicator, **changed})


@pytest.mark.parametrize("is_stratified", [True, False])
def test_a_matrix_that_points_outside_its_shape_is_refused(is_stratified):
    """Taking rows of it would read memory that is not its own."""
    X, Y = sp.csr_array(np.eye(8)), sp.csr_array(np.eye(4)[np.arange(8) // 2])
    X.indptr[-1] = 10**6
    with pytest.raises(ValueError, match=r"^train_test_split: arrays\[1\]"):
        train_test_split(Y, X, stratify=Y if is_stratified else None)
