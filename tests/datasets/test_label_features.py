"""LabelFeatures arrives whole where a bare matrix with as many rows as X is sliced."""

import copy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler

from sklearn_xc import LabelFeatures

#: As many labels as instances: cross-validation would take the labels for instances.
N = 12


class Recorder(ClassifierMixin, BaseEstimator):
    """Records the arguments of fit in a list that all clones share."""

    arrived = []  # noqa: RUF012

    def __init__(self, label_features=None, c=1):
        self.label_features = label_features
        self.c = c

    def fit(self, X, y, label_features=None):
        self.classes_ = np.arange(N)
        given = self.label_features if label_features is None else label_features
        self.arrived.append((X.shape[0], given))
        return self

    def score(self, X, y, sample_weight=None):
        return 0.0


@pytest.fixture
def arrived():
    Recorder.arrived.clear()
    return Recorder.arrived


X = np.arange(3.0 * N).reshape(N, 3)
Y = np.eye(N, dtype=int)


def features(kind):
    """Return label features of a kind, not those of the instances."""
    Z = np.eye(N, 3)
    return {
        "sparse": sp.csr_array(Z),
        "dense": Z,
        "texts": [f"label {j}" for j in range(N)],
        "text array": np.array([f"label {j}" for j in range(N)]),
    }[kind]


KINDS = ["sparse", "dense", "texts", "text array"]


@pytest.mark.parametrize(
    ("kind", "routing", "pipeline"),
    [("sparse", False, False), ("texts", False, True), ("dense", True, True)],
)
def test_it_is_not_cut_into_folds(kind, routing, pipeline, arrived):
    held = LabelFeatures(features(kind))
    with sklearn.config_context(enable_metadata_routing=routing):
        estimator, prefix = Recorder(), ""
        if routing:
            estimator.set_fit_request(label_features=True)
        if pipeline:
            estimator, prefix = Pipeline([("s", MaxAbsScaler()), ("ngame", estimator)]), "ngame__"
        name = "label_features" if routing else f"{prefix}label_features"
        GridSearchCV(estimator, {f"{prefix}c": [1, 2]}, cv=2).fit(X, Y, **{name: held})
        cross_validate(estimator, X, Y, cv=2, params={name: held})
    cross_validate(Recorder(held), X, Y, cv=2)
    assert {n for n, _ in arrived} >= {N // 2}
    assert all(Z is held for _, Z in arrived)


def test_has_no_rows_and_no_length():
    held = LabelFeatures(features("dense"))
    for name in ("__len__", "shape", "__array__", "__getitem__", "__iter__"):
        assert not hasattr(held, name)


def test_copies_are_the_same_object():
    held = LabelFeatures(features("dense"))
    assert copy.copy(held) is held
    assert copy.deepcopy([held])[0] is held
    assert clone(Recorder(held)).label_features is held
    assert held.features is not LabelFeatures(held.features)
    assert LabelFeatures(held.features) != held


@pytest.mark.parametrize(
    ("given", "came"),
    [
        ("a text", "Got str"),
        (None, r"Got ndarray of shape \(\)"),
        ([1.0, 2.0], r"Got ndarray of shape \(2,\)"),
        (LabelFeatures(["a"]), "Got LabelFeatures"),
        ({"a": 1}, "Got dict"),
    ],
)
def test_anything_else_is_refused(given, came):
    with pytest.raises(TypeError, match=f"matrix .* or a sequence of label texts. {came}"):
        LabelFeatures(given)


@pytest.mark.parametrize("malformed", ["column"], indirect=True)
def test_refused_matrices(malformed):
    with pytest.raises(ValueError, match=r"features: this .* is malformed: "):
        LabelFeatures(malformed(sp.csr_array(np.eye(4, 6))))
    with pytest.raises(ValueError, match=r"features must not be empty. Got shape \(0, 3\)"):
        LabelFeatures(np.empty((0, 3)))


class TestClasses:
    CLASSES = tuple(f"class {j:02d}" for j in range(N))

    @pytest.mark.parametrize("kind", ["sparse", "dense", "texts", "text array", "frame"])
    def test_rows_of_some(self, kind):
        Z = pd.DataFrame(np.eye(N, 3)) if kind == "frame" else features(kind)
        held = LabelFeatures(Z, classes=self.CLASSES)
        assert held.of_classes(np.array(self.CLASSES)) is held
        some = held.of_classes(np.array(self.CLASSES)[[7, 2, 5]])
        assert some.classes.tolist() == ["class 07", "class 02", "class 05"]
        assert some.n_labels == 3
        if "text" in kind:
            assert list(some.features) == ["label 7", "label 2", "label 5"]
        else:
            rows = some.features.toarray() if kind == "sparse" else np.asarray(some.features)
            assert rows.tolist() == np.eye(N, 3)[[7, 2, 5]].tolist()

    def test_what_is_refused(self):
        with pytest.raises(ValueError, match="each of the 3 rows, all distinct"):
            LabelFeatures(np.eye(3), classes=["a", "b"])
        with pytest.raises(ValueError, match="each of the 3 rows, all distinct"):
            LabelFeatures(np.eye(3), classes=["a", "b", "a"])
        held = LabelFeatures(np.eye(3), classes=["a", "b", "c"])
        with pytest.raises(
            ValueError, match=r"it must have .* 2 of 3 classes have none.* 'x'; .* 'a'"
        ):
            held.of_classes(np.array(["a", "x", "y"]), "it")
