"""Labels that come after fit: found by what is known of them, and learnt later."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator

from sklearn_xc import LabelFeatures
from sklearn_xc.encoders.bag import BagOfEmbeddings

COMPONENTS = ("embedding", "classifier", "features", "fused")
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


def recall(model, X, Y, k, component):
    """Return the share of the labels that are among the k best."""
    labels, _ = model.predict_topk(X, k, component=component)
    return np.take_along_axis(Y.toarray(), labels, axis=1).sum() / Y.sum()


class TestDocumentsOfNewLabels:
    @pytest.mark.parametrize("component", COMPONENTS)
    def test_they_are_found(self, component, model, data):
        """The best of 20 by chance has a share of 0.05."""
        X, Y, Z, has_new = data
        only_new = sp.csr_array(Y * (np.arange(20) >= N_OLD))[has_new]
        assert model.add_labels(label_features=Z[N_OLD:]) is model
        assert recall(model, X[has_new], only_new, 1, component) > 0.4
        assert recall(model, X[has_new], only_new, 3, component) > 0.8

    def test_old_ones_still_are(self, model, data):
        X, Y, Z, has_new = data
        before = model.score(X[~has_new], Y[~has_new, :N_OLD])
        model.add_labels(label_features=Z[N_OLD:])
        assert model.score(X[~has_new], Y[~has_new]) > before - 0.1

    def test_predictions_have_their_columns(self, model, data):
        X, _, Z, has_new = data
        predicted = model.add_labels(label_features=Z[N_OLD:]).predict(X[has_new])
        assert predicted.shape == (has_new.sum(), 20)
        assert predicted[:, N_OLD:].sum() > 0
        assert model.decision_function(X).shape == (300, 20)

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
        for component in COMPONENTS:
            for p, q in zip(
                added.predict_topk(X, 6, component=component),
                known.predict_topk(X, 6, component=component),
                strict=True,
            ):
                np.testing.assert_allclose(p, q, atol=1e-6)


class TestWhatIsKept:
    def test_bytes_of_old_labels(self, model, data):
        X, _, Z, _ = data
        names = ("coef_", "label_embeddings_", "label_counts_", "_trained_counts")
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

    def test_one_by_one_or_together(self, model, data):
        X, _, Z, _ = data
        other = pickle.loads(pickle.dumps(model))
        model.add_labels(label_features=Z[N_OLD:])
        for first in range(N_OLD, 20):
            other.add_labels(label_features=LabelFeatures(Z[[first]].toarray()))
        for method in ("predict_topk", "embed"):
            for p, q in zip(getattr(model, method)(X), getattr(other, method)(X), strict=True):
                np.testing.assert_array_equal(p, q)

    def test_a_pickle(self, model, data):
        X, _, Z, _ = data
        model.add_labels(label_features=Z[N_OLD:])
        read = pickle.loads(pickle.dumps(model))
        for component in COMPONENTS:
            answers = (each.predict_topk(X, 5, component=component) for each in (model, read))
            for p, q in zip(*answers, strict=True):
                assert p.tobytes() == q.tobytes()


class TestTexts:
    TOPICS = ("whale", "volcano", "violin", "harbour")

    def make_texts(self, names, seed=0, n=30):
        rng = np.random.default_rng(seed)
        texts, y = [], []
        for name in names:
            for _ in range(n):
                texts.append(" ".join([name, *rng.choice(["old", "new", "large", "small"], 2)]))
                y.append(name)
        return texts, np.array(y)

    @pytest.fixture
    def texts_model(self, make):
        """Return a model of three of the topics, and the vectorizer of all words."""
        vectorizer = TfidfVectorizer().fit(self.make_texts([*self.TOPICS, "ape", "zebra"])[0])
        names = sorted(self.TOPICS[:3])
        texts, y = self.make_texts(names)
        model = make(label_features=names, label_vectorizer=FrozenEstimator(vectorizer))
        return model.fit(vectorizer.transform(texts), y), vectorizer

    def test_classes_stay_sorted(self, texts_model):
        model, vectorizer = texts_model
        model.add_labels(
            label_features=["zebra", "ape", "harbour"], classes=["zebra", "ape", "harbour"]
        )
        names = ["ape", "harbour", "violin", "volcano", "whale", "zebra"]
        assert model.classes_.tolist() == names
        assert model.label_counts_.tolist()[:2] == [0, 0]
        assert (model.label_counts_ > 0).tolist() == [False, False, True, True, True, False]
        np.testing.assert_array_equal(
            model.label_embeddings_, model.embed(vectorizer.transform(names))
        )
        texts, y = self.make_texts(names, seed=1)
        X = vectorizer.transform(texts)
        for component in ("embedding", "features"):
            best = model.predict_topk(X, 1, component=component)[0][:, 0]
            assert (model.classes_[best] == y).mean() > 0.9, component
        assert (model.predict(X) == y).mean() > 0.9
        assert model.score(X, y) > 0.9

    def test_longer_names_are_whole(self, texts_model):
        model, _ = texts_model
        model.add_labels(label_features=["harbour"], classes=["harbour of the old town"])
        assert model.classes_[0] == "harbour of the old town"

    def test_they_learn(self, texts_model):
        model, vectorizer = texts_model
        model.add_labels(label_features=["harbour"], classes=["harbour"])
        texts, y = self.make_texts(self.TOPICS, seed=1)
        coef = model.coef_.copy()
        model.partial_fit(vectorizer.transform(texts), y)
        assert (model.coef_[0] != coef[0]).any()
        assert model.label_counts_[0] == 30


class TestPartialFitAfterwards:
    def test_more_columns(self, model, data):
        """Documents of the new labels are not those that their features promise."""
        X, Y, Z, has_new = data
        model.add_labels(label_features=Z[N_OLD:]).set_params(classifier_learning_rate=0.05)
        Y = Y[:, np.r_[:N_OLD, np.roll(np.arange(N_OLD, 20), 1)]].tocsr()
        counts, new = model.label_counts_.copy(), sp.csr_array(Y * (np.arange(20) >= N_OLD))
        before = recall(model, X[has_new], new[has_new], 3, "classifier")
        for _ in range(8):
            model.partial_fit(X, Y)
        np.testing.assert_array_equal(model.label_counts_, counts + 8 * Y.sum(axis=0))
        np.testing.assert_allclose(np.linalg.norm(model.coef_, axis=1), 1)
        assert before < 0.2
        assert recall(model, X[has_new], new[has_new], 3, "classifier") > 0.7

    def test_between_two_calls(self, model, data):
        X, Y, Z, has_new = data
        model.partial_fit(X[~has_new], Y[~has_new, :N_OLD]).add_labels(label_features=Z[N_OLD:])
        assert model._steps is None  # means of gradients of as many labels as there were
        coef = model.coef_.copy()
        with pytest.raises(ValueError, match="y has 15 label columns, before it had 20"):
            model.partial_fit(X[~has_new], Y[~has_new, :N_OLD])
        model.partial_fit(X, Y)
        assert (model.coef_ != coef).any(axis=1).all()


class TestErrors:
    def test_before_fit(self, make, data):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            make().add_labels(label_features=data[2])

    def test_fitted_without_label_features(self, make, data):
        X, Y, Z, _ = data
        model = make().fit(X, Y)
        before = pickle.dumps(model)
        with pytest.raises(ValueError, match=r"NGAMEEmbeddingXC.add_labels needs a fit with label"):
            model.add_labels(label_features=Z)
        assert pickle.dumps(model) == before

    @pytest.mark.parametrize(
        ("features", "classes", "error", "message"),
        [
            (
                lambda Z: Z,
                range(20, 40),
                ValueError,
                "None after an indicator y, .* from 15 on. Got range",
            ),
            (lambda Z: Z[:, :79], None, ValueError, "label_features have 79 features, X has 80"),
            (lambda Z: Z * np.nan, None, ValueError, "label_features: .* contains NaN"),
            (lambda Z: Z[:0], None, ValueError, "features must not be empty"),
            (lambda Z: ["a name"], None, ValueError, "are texts, label_vectorizer is None"),
            (lambda Z: "a name", None, TypeError, "a matrix with a row for each label, or a seq"),
            (lambda Z: None, None, TypeError, "a matrix with a row for each label, or a seq"),
        ],
        ids=["classes", "width", "nan", "empty", "texts", "text", "none"],
    )
    def test_an_indicator(self, features, classes, error, message, model, data):
        before = pickle.dumps(model)
        with pytest.raises(error, match=message):
            model.add_labels(label_features=features(data[2]), classes=classes)
        assert pickle.dumps(model) == before

    @pytest.mark.parametrize(
        ("classes", "message"),
        [
            (None, "classes must name the 2 new labels. Got None"),
            (["gnu"], "classes must name the 2 new labels, one each. Got 1"),
            ([["gnu", "yak"]], r"classes must be a sequence .*. Got list of shape \(1, 2\)"),
            (["gnu", ["yak"]], "classes must be a sequence of class labels: .*inhomogeneous"),
            ({"gnu"}, r"classes must be a sequence of class labels. Got set of shape"),
            (["gnu", None], "classes must not be missing, entry 1 is None"),
            (["gnu", np.nan], "classes must not be missing, entry 1 is nan"),
            (["gnu", 3], "classes must be of one kind that can be sorted"),
            ([b"gnu", b"yak"], "classes must be of the kind of those known, <U3. Got .S3"),
            (
                np.array(["2020", "2021"], "M8[Y]"),
                "of the kind of those known, <U3. Got datetime64",
            ),
            (["gnu", "gnu"], "classes must be new and distinct. Got one that is known already"),
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

    def test_numbers_and_names(self, make, data):
        """Joined in one array, numbers would become texts."""
        X, Y, Z, _ = data
        model = make(label_features=Z).fit(X, Y.toarray().argmax(axis=1))
        before = pickle.dumps(model)
        with pytest.raises(ValueError, match=r"of the kind of those known, int64. Got <U3"):
            model.add_labels(label_features=Z[:1], classes=["gnu"])
        assert pickle.dumps(model) == before
        assert model.add_labels(label_features=Z[:1], classes=[-3]).classes_.tolist() == [
            -3,
            *range(20),
        ]

    @pytest.mark.parametrize(
        ("known", "new", "expected"),
        [
            (np.uint8, [30, 31], "n"), (np.int64, np.array([30, 31], object), np.int64),
            (np.float64, [30, 31], np.float64), (np.float64, [2**53 + 1, 3], None),
            (np.int64, [30.0, 31.0], None), (np.int64, [False, True], None),
            (np.int64, [2**63, 2**63 + 1], None), (np.int64, [2**70, 2**71], None),
            (np.float64, np.array([1, 2], "m8[s]"), None),
            (object, ["gnu", "yak"], object), (object, [30, 31], None),
            ("U", np.array(["gnu", "yak"], object), "U"), ("U", "gy", None),
        ],
        ids=str,
    )  # fmt: skip
    def test_kinds_of_classes(self, known, new, expected, make, data):
        """No class may become another one, or two the same, where arrays are joined."""
        X, Y, Z, _ = data
        y = Y.toarray().argmax(axis=1)
        y = y.astype(str).astype(object) if known is object else y.astype(known)
        model = make(label_features=Z).fit(X, y)
        before = pickle.dumps(model)
        if expected is None:
            with pytest.raises(ValueError, match="NGAMEEmbeddingXC: classes must be"):
                model.add_labels(label_features=Z[:2], classes=new)
            assert pickle.dumps(model) == before
            return
        old = model.classes_.tolist()
        model.add_labels(label_features=Z[:2], classes=new)
        assert sorted([*old, *list(new)]) == model.classes_.tolist()
        if expected not in ("n", "U"):
            assert model.classes_.dtype == expected
        assert {type(one) for one in model.classes_.tolist()} == {type(old[0])}

    def test_masked_classes(self, make, data):
        X, Y, Z, _ = data
        model = make(label_features=Z).fit(X, Y.toarray().argmax(axis=1))
        with pytest.raises(TypeError, match="NGAMEEmbeddingXC: classes is a masked array"):
            model.add_labels(label_features=Z[:2], classes=np.ma.masked_array([30, 31], [0, 1]))

    @pytest.mark.parametrize("wrap", [LabelFeatures, lambda Z: Z])
    def test_malformed_features(self, wrap, model, data):
        """They are checked when they are used, too: a holder does not copy."""
        held, before = wrap(data[2][N_OLD:].copy()), pickle.dumps(model)
        getattr(held, "features", held).indices[0] = 10**6
        with pytest.raises(ValueError, match=r"NGAMEEmbeddingXC: label_features: .* is malf"):
            model.add_labels(label_features=held)
        assert pickle.dumps(model) == before

    def test_two_classes(self, make, data):
        X, Y, Z, _ = data
        model = make(label_features=Z[:2]).fit(X, Y.toarray().argmax(axis=1) > 7)
        before = pickle.dumps(model)
        with pytest.raises(ValueError, match="add_labels would make more than two classes of two"):
            model.add_labels(label_features=Z[:1], classes=[2])
        assert pickle.dumps(model) == before

    def test_an_interruption(self, model, data, monkeypatch):
        def interrupted(*args, **kwargs):
            raise KeyboardInterrupt

        before = pickle.dumps(model)
        with monkeypatch.context() as patch:
            patch.setattr(BagOfEmbeddings, "encode", interrupted)
            with pytest.raises(KeyboardInterrupt):
                model.add_labels(label_features=data[2][N_OLD:])
        assert pickle.dumps(model) == before
