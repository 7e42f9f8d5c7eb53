"""LabelFeatures arrives whole where a bare matrix with as many rows as X is sliced."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler

from sklearn_xc import LabelFeatures

#: As many labels as instances: what cross-validation mistakes for instances.
N = 12


class Recorder(ClassifierMixin, BaseEstimator):
    """Notes what arrives in fit, in a list that all clones share."""

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


def n_rows(features):
    return features.shape[0] if hasattr(features, "shape") else len(features)


def search(estimator, **fit_parameters):
    name = "ngame__c" if isinstance(estimator, Pipeline) else "c"
    GridSearchCV(estimator, {name: [1, 2]}, cv=KFold(2)).fit(X, Y, **fit_parameters)


def validate(estimator, **fit_parameters):
    cross_validate(estimator, X, Y, cv=KFold(2), params=fit_parameters)


def in_pipeline(estimator):
    return Pipeline([("scaler", MaxAbsScaler()), ("ngame", estimator)])


@pytest.mark.parametrize("run", [search, validate])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("pipeline", [False, True])
def test_fit_parameter_arrives_whole(run, kind, routing, pipeline, arrived):
    held = LabelFeatures(features(kind))
    with sklearn.config_context(enable_metadata_routing=routing):
        estimator = Recorder()
        if routing:
            estimator.set_fit_request(label_features=True)
        name = "ngame__label_features" if pipeline and not routing else "label_features"
        run(in_pipeline(estimator) if pipeline else estimator, **{name: held})
    assert {n for n, _ in arrived} >= {N // 2}
    assert all(Z is held for _, Z in arrived)


@pytest.mark.parametrize("run", [search, validate])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pipeline", [False, True])
def test_constructor_parameter_arrives_whole_and_is_not_copied(run, kind, pipeline, arrived):
    held = LabelFeatures(features(kind))
    estimator = Recorder(held)
    run(in_pipeline(estimator) if pipeline else estimator)
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


def test_holds_what_came_without_a_copy():
    for kind in KINDS:
        Z = features(kind)
        held = LabelFeatures(Z)
        assert held.features is Z
        assert held.n_labels == N
        assert held.is_text == kind.startswith("text")


@pytest.mark.parametrize("kind", KINDS)
def test_pickles(kind):
    held = pickle.loads(pickle.dumps(LabelFeatures(features(kind))))
    assert repr(held) == repr(LabelFeatures(features(kind)))
    assert n_rows(held.features) == N


@pytest.mark.parametrize(
    ("given", "came"),
    [
        ("a text", "Got str"),
        (None, "Got NoneType"),
        ((row for row in np.eye(2)), "Got generator"),
        ([1.0, 2.0], r"Got ndarray of shape \(2,\)"),
        ([[1.0], [2.0, 3.0]], "Got list"),
        (np.zeros((2, 2, 2)), r"Got ndarray of shape \(2, 2, 2\)"),
        (LabelFeatures(["a"]), "Got LabelFeatures"),
        ({"a": 1}, "Got dict"),
    ],
)
def test_anything_else_is_refused(given, came):
    with pytest.raises(TypeError, match=f"matrix .* or a sequence of label texts. {came}"):
        LabelFeatures(given)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_malformed_matrices(kind):
    """scipy's conversions would read and write outside of arrays."""
    Z = kind(np.eye(4, 6))
    for name in ("indices", "col"):
        if hasattr(Z, name):
            setattr(Z, name, getattr(Z, name).copy())
            getattr(Z, name)[1] = 10**6
    with pytest.raises(ValueError, match=r"features: this .* is malformed: .* index 1000000 is"):
        LabelFeatures(Z)


def test_empty_features_are_refused():
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
        with pytest.raises(ValueError, match=r"one entry for each of the 3 rows. Got shape \(2,\)"):
            LabelFeatures(np.eye(3), classes=["a", "b"])
        with pytest.raises(ValueError, match=r"classes must be distinct. Got 'a' more than once"):
            LabelFeatures(np.eye(3), classes=["a", "b", "a"])
        held = LabelFeatures(np.eye(3), classes=["a", "b", "c"])
        with pytest.raises(
            ValueError, match=r"it must have .* 2 of 3 classes have none.* 'x'; .* 'a'"
        ):
            held.of_classes(np.array(["a", "x", "y"]), "it")
