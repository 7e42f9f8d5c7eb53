"""Label features that say whose each row is, where a fold has some of the classes only."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import KFold, cross_val_score

from sklearn_xc import LabelFeatures, OvALinearXC, StackingXC


@pytest.fixture(scope="module")
def data(make_documents):
    """Return X, one class each as a name, label features, and the sorted names."""
    X, Y, Z = make_documents(n=240)
    names = np.array([f"label {30 - j}" for j in range(20)])  # not in the order of the rows
    return X, names[Y.toarray().argmax(axis=1)], Z, names


@pytest.mark.parametrize("as_texts", [False, True])
def test_rows_of_the_classes_that_are_there(as_texts, data, make):
    X, y, Z, names = data
    there = ~np.isin(y, names[[3, 11]])
    kept = np.flatnonzero(~np.isin(names, names[[3, 11]]))
    rows = np.array([[f"row {j}"] for j in range(20)])[:, 0] if as_texts else Z

    def with_rows(features):
        own = {"label_vectorizer": Lookup(Z)} if as_texts else {}
        return make(label_features=features, **own).fit(X[there], y[there])

    of_part = kept[np.argsort(names[kept])]
    plain = with_rows(LabelFeatures(rows[of_part]))
    named = with_rows(LabelFeatures(rows, classes=names))
    assert named.classes_.tolist() == sorted(names[kept])
    np.testing.assert_array_equal(named.coef_, plain.coef_)
    np.testing.assert_array_equal(named.label_embeddings_, plain.label_embeddings_)


class Lookup:
    """Makes of "row 7" the seventh row of a matrix."""

    def __init__(self, Z):
        self.Z = Z

    def transform(self, texts):
        return self.Z[[int(text.split()[1]) for text in texts]]


def test_an_indicator_has_its_columns(data, make, make_documents):
    X, Y, Z = make_documents(n=160)
    plain = make(label_features=Z).fit(X, Y)
    order = np.random.default_rng(0).permutation(20)
    named = make(label_features=LabelFeatures(Z[order], classes=order)).fit(X, Y)
    np.testing.assert_array_equal(named.coef_, plain.coef_)


def test_folds_and_stacks(data, make):
    """Each of five folds lacks a class that one instance has; a bare matrix is refused there."""
    X, y, Z, names = data
    rare = np.flatnonzero(y == names[0])[1:]
    kept = np.setdiff1d(np.arange(len(y)), rare)
    held = LabelFeatures(Z, classes=names)
    folds = KFold(3, shuffle=True, random_state=0)
    scores = cross_val_score(make(label_features=held), X[kept], y[kept], cv=folds)
    assert (scores > 0.5).all()
    members = [("ova", OvALinearXC()), ("ngame", make(label_features=held))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = StackingXC(members, cv=folds, random_state=0).fit(X[kept], y[kept])
    assert model.score(X[kept], y[kept]) > 0.7
    members[1] = ("ngame", make(label_features=LabelFeatures(Z[np.argsort(names)])))
    with pytest.raises(ValueError, match=r"for each of the 19 labels.*LabelFeatures\(features, cl"):
        StackingXC(members, cv=folds, random_state=0).fit(X[kept], y[kept])


def test_added_labels(data, make):
    X, y, Z, names = data
    old = np.isin(y, names[:17])
    model = make(label_features=LabelFeatures(Z, classes=names)).fit(X[old], y[old])
    with pytest.raises(ValueError, match="already"):
        model.add_labels(label_features=LabelFeatures(Z, classes=names))
    model.add_labels(label_features=LabelFeatures(Z, classes=names), classes=names[[18, 17]])
    model.add_labels(label_features=LabelFeatures(Z[19:], classes=names[19:]))
    assert model.classes_.tolist() == sorted(names)
    plain = make(label_features=LabelFeatures(Z[:17], classes=names[:17])).fit(X[old], y[old])
    plain.add_labels(label_features=Z[17:], classes=names[17:])
    np.testing.assert_array_equal(model.label_embeddings_, plain.label_embeddings_)


def test_what_is_missing(data, make, make_documents):
    X, y, Z, names = data
    held = LabelFeatures(Z[1:], classes=names[1:])
    with pytest.raises(ValueError, match=r"1 of 20 classes have none, the first is 'label 30'"):
        make(label_features=held).fit(X, y)
    X, Y, Z = make_documents(n=160)
    model = make(label_features=Z[:15]).fit(X, Y[:, :15])
    with pytest.raises(ValueError, match=r"row for each class of y. 1 of 5 .* first is 16"):
        model.add_labels(label_features=LabelFeatures(Z[15:], classes=[15, 17, 18, 19, 20]))
