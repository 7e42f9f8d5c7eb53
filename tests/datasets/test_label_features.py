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
    ("given", "expected"),
    [
        (sp.csr_array((20560, 61000)), "LabelFeatures(20,560 labels x 61,000 sparse features)"),
        (np.zeros((2, 3)), "LabelFeatures(2 labels x 3 dense features)"),
        ([[0, 1], [2, 3]], "LabelFeatures(2 labels x 2 dense features)"),
        (pd.DataFrame({"a": [1.0, 2.0]}), "LabelFeatures(2 labels x 1 dense features)"),
        (pd.Series(["a", "b"], index=[5, 6]), "LabelFeatures(2 label texts)"),
        (("a", "b", ""), "LabelFeatures(3 label texts)"),
    ],
)
def test_kinds_and_their_repr(given, expected):
    assert repr(LabelFeatures(given)) == expected


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


@pytest.mark.parametrize("missing", [None, np.nan, b"c", 7])
def test_texts_have_no_gaps(missing):
    for given in (["a", "b", missing], pd.Series(["a", "b", missing], dtype=object)):
        with pytest.raises(TypeError, match=rf"a text for each label. Got {missing!r}"):
            LabelFeatures(given)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (np.ma.masked_array(np.eye(2), np.eye(2)), TypeError, "is a masked array"),
        (np.ma.masked_array(["a", "b"], [0, 1]), TypeError, "is a masked array"),
        (np.zeros((2, 2), "M8[s]"), ValueError, "holds dates or times"),
        ([[np.datetime64("2020", "D")]] * 2, ValueError, "holds dates or times"),
        (pd.DataFrame({"a": pd.date_range("2020", periods=2)}), ValueError, "dates or times"),
        (sp.coo_array(np.ones(3)), ValueError, r"of 2 dimensions was expected. Got shape \(3,\)"),
    ],
    ids=range(6),
)
def test_what_is_not_what_it_looks_like(given, error, message):
    with pytest.raises(error, match=f"LabelFeatures: features:? ?.*{message}"):
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

    def test_without_them_all_rows_are_taken(self):
        held = LabelFeatures(features("dense"))
        assert held.classes is None
        assert held.of_classes(np.array(["any"])) is held

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

    def test_they_pickle(self):
        held = pickle.loads(pickle.dumps(LabelFeatures(np.eye(2), classes=["b", "a"])))
        assert held.classes.tolist() == ["b", "a"]
