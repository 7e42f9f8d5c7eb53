"""Labels that come after fit: found by what is known of them, and learnt later."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc import LabelFeatures

N_OLD = 15
#: One label of each topic comes last, and is new.
ORDER = np.r_[np.flatnonzero(np.arange(20) % 4 != 3), np.flatnonzero(np.arange(20) % 4 == 3)]


@pytest.fixture(scope="module")
def data(make_documents):
    """Return X, Y, Z of documents, of which the last five labels are new, and who has one."""
    X, Y, Z = make_documents(n=300)
    Y, Z = Y[:, ORDER].tocsr(), Z[ORDER].tocsr()
    return X, Y, Z, Y[:, N_OLD:].sum(axis=1) > 0


@pytest.fixture(scope="module")
def trained(make, data):
    """Return a model of the old labels that no test may change."""
    X, Y, Z, has_new = data
    own = {"label_features": Z[:N_OLD], "validation_fraction": 0.25, "max_iter": 8}
    return make(**own).fit(X[~has_new], Y[~has_new, :N_OLD])


@pytest.fixture
def model(trained):
    """Return a model of the old labels, for the test alone."""
    return copy.deepcopy(trained)


def as_bytes(*parts):
    return [np.asarray(part).tobytes() for part in parts]


class TestDocumentsOfNewLabels:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_as_if_they_had_been_there(self, dtype, make, data):
        """Without training, a label that is added is one without instances."""
        X, Y, Z, has_new = data
        # Nothing is held out: how long stand-ins for means are would follow from all labels there.
        own = {"max_iter": 0, "classifier_max_iter": 0, "fusion": "sum", "validation_fraction": 0}
        X = X.astype(dtype)
        added = make(label_features=Z[:N_OLD], **own).fit(X[~has_new], Y[~has_new, :N_OLD])
        added.add_labels(label_features=Z[N_OLD:].astype(np.float32))
        known = make(label_features=Z, **own).fit(X[~has_new], Y[~has_new])
        assert added.coef_.dtype == dtype
        for p, q in zip(added.predict_topk(X, 6), known.predict_topk(X, 6), strict=True):
            np.testing.assert_allclose(p, q, atol=1e-6)


class TestWhatIsKept:
    def test_bytes_of_old_labels(self, model, data):
        X, _, Z, _ = data
        names = ("coef_", "label_embeddings_", "label_counts_")
        before = as_bytes(*(getattr(model, name) for name in names))
        others = as_bytes(model.threshold_, model.embed(X), *model.fusion_.trees_)
        held = model.coef_
        model.add_labels(label_features=Z[N_OLD:])
        assert as_bytes(*(getattr(model, name)[:N_OLD] for name in names)) == before
        assert as_bytes(model.threshold_, model.embed(X), *model.fusion_.trees_) == others
        assert held.shape == (N_OLD, 12)
        for name in names:
            assert len(getattr(model, name)) == 20

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_scores_of_old_labels(self, dtype, make, data):
        """To the bit: features that were scaled once more would have other roundings."""
        X, Y, Z, has_new = data
        X, scale = X.astype(dtype), np.random.default_rng(0).uniform(0.1, 9.0, Z.nnz)
        Z = sp.csr_array((Z.data * scale, Z.indices, Z.indptr), shape=Z.shape).astype(dtype)
        model = make(label_features=Z[:N_OLD], fusion="sum")
        model.fit(X[~has_new], Y[~has_new, :N_OLD].toarray())
        before = model.decision_function(X)
        for first in range(N_OLD, 20):
            model.add_labels(label_features=Z[[first]])
        assert model.decision_function(X)[:, :N_OLD].tobytes() == before.tobytes()

    def test_new_ones_are_their_embeddings(self, model, data):
        new = data[2][N_OLD:]
        model.add_labels(label_features=new)
        for vectors in (model.coef_, model.label_embeddings_):
            np.testing.assert_array_equal(vectors[N_OLD:], model.embed(new))
        assert not model.label_counts_[N_OLD:].any()
        assert model.classes_.tolist() == list(range(20))


@pytest.fixture
def by_class(make, data):
    """Return a model of one class each, of 17 of 20 names in another order, and the names."""
    X, Y, Z, _ = data
    names = np.array([f"label {30 - j}" for j in range(20)])
    y = names[Y.toarray().argmax(axis=1)]
    old = np.isin(y, names[:17])
    return make(label_features=LabelFeatures(Z, classes=names)).fit(X[old], y[old]), Z, names


def test_classes_stay_sorted(by_class):
    model, Z, names = by_class
    with pytest.raises(ValueError, match="already"):
        model.add_labels(label_features=LabelFeatures(Z, classes=names))
    model.add_labels(label_features=LabelFeatures(Z, classes=names), classes=names[[18, 17]])
    model.add_labels(label_features=LabelFeatures(Z[19:], classes=names[19:]))
    assert model.classes_.tolist() == sorted(names)
    np.testing.assert_array_equal(model.label_embeddings_, model.embed(Z[np.argsort(names)]))


class TestErrors:
    def test_fitted_without_label_features(self, make, data):
        X, Y, Z, _ = data
        model = make().fit(X, Y)
        before = pickle.dumps(model)
        with pytest.raises(ValueError, match=r"NGAMEEmbeddingXC.add_labels needs a fit with label"):
            model.add_labels(label_features=Z)
        assert pickle.dumps(model) == before

    @pytest.mark.parametrize(
        ("features", "classes", "message"),
        [
            (lambda Z: Z, range(20, 40), "None after an indicator y, .* from 15 on. Got range"),
            (lambda Z: Z[:, :79], None, "label_features must have the 80 features of X. Got 79"),
            (lambda Z: Z * np.nan, None, "label_features: .* contains NaN"),
            (lambda Z: ["a name"], None, "label_features must be features, .* Got texts"),
        ],
    )
    def test_an_indicator(self, features, classes, message, model, data):
        before = pickle.dumps(model)
        with pytest.raises(ValueError, match=message):
            model.add_labels(label_features=features(data[2]), classes=classes)
        assert pickle.dumps(model) == before

    @pytest.mark.parametrize(
        ("classes", "message"),
        [
            (None, "classes must name the 2 new labels. Got None"),
            (["gnu"], "classes must name the 2 new labels, one each. Got 1"),
            (["gnu", "t3"], "classes must be new and distinct. Got one that is known already"),
            ([7, 8], "classes must be of the kind of those known, <U3. Got int64"),
        ],
        ids=str,
    )
    def test_one_class_each(self, classes, message, make, data):
        X, Y, Z, _ = data
        y = np.array([f"t{j}" for j in range(20)])[Y.toarray().argmax(axis=1)]
        model = make(label_features=Z).fit(X, y)
        before = pickle.dumps(model)
        with pytest.raises(ValueError, match=message):
            model.add_labels(label_features=Z[:2], classes=classes)
        assert pickle.dumps(model) == before

    def test_two_classes(self, make, data):
        X, Y, Z, _ = data
        model = make(label_features=Z[:2]).fit(X, Y.toarray().argmax(axis=1) > 7)
        before = pickle.dumps(model)
        with pytest.raises(ValueError, match="add_labels would make more than two classes of two"):
            model.add_labels(label_features=Z[:1], classes=[2])
        assert pickle.dumps(model) == before
