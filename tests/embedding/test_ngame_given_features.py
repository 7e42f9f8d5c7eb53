"""X as texts with features of the caller's, for an encoder that reads the texts."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, normalize
from text_models import NAMES, TOPICS, make, make_texts

import sklearn_xc
from sklearn_xc import (
    LabelFeatures,
    NGAMEEmbeddingXC,
    StackingXC,
    TextsWithFeatures,
    ThresholdTuner,
    TopKCalibrator,
    topk,
)
from sklearn_xc.embedding._model import COMPONENTS
from sklearn_xc.model_selection import cross_val_score as sparse_cross_val_score
from sklearn_xc.model_selection import cross_val_topk, cross_validate
from sklearn_xc.storage import classes

LABEL_TEXTS = [f"{name}s {topic}" for name, topic in zip(NAMES, TOPICS, strict=True)]
UNTRAINED = {"max_iter": 0, "classifier_max_iter": 0}
N_CODES = 12


class Codes:
    """Texts, labels, and codes of both that have nothing to do with words: sparse, float64."""

    def __init__(self, n=240, seed=0):
        self.texts, self.Y = make_texts(n, seed)
        rng = np.random.default_rng((seed, 1))
        rows = np.zeros((n, N_CODES))
        rows[np.arange(n), self.Y.indices] = 1
        rows[np.arange(n), rng.integers(0, N_CODES, n)] += rng.uniform(0.2, 2, n)
        self.rows = sp.csr_array(rows)
        self.X = TextsWithFeatures(self.texts, self.rows)


label_codes = np.eye(8, N_CODES)
label_codes[:, 9] = 0.25
LABELS = TextsWithFeatures(LABEL_TEXTS, label_codes)


def make_given(**parameters):
    return make(**{"label_features": LabelFeatures(LABELS), **parameters})


def assert_same(model, other, X, others_X=None):
    for component in COMPONENTS:
        for mine, others in zip(
            model.predict_topk(X, 4, component=component),
            other.predict_topk(X if others_X is None else others_X, 4, component=component),
            strict=True,
        ):
            np.testing.assert_array_equal(mine, others, err_msg=component)


@pytest.fixture(scope="module")
def data():
    return Codes()


@pytest.fixture(scope="module")
def new():
    return Codes(40, seed=9)


@pytest.fixture(scope="module")
def fitted(data):
    return make_given().fit(data.X, data.Y)


@pytest.fixture(scope="module")
def of_texts(data):
    return make(**UNTRAINED).fit(data.texts, data.Y)


class TestFits:
    def test_what_it_has(self, fitted):
        assert fitted.n_features_in_ == N_CODES
        assert fitted.vectorizer_ is None
        assert fitted.fusion_.n_scores_ == 5
        assert fitted._features.rows.dtype == fitted.coef_.dtype == np.float32

    def test_cosines_and_means(self, fitted, data, new):
        labels, scores = fitted.predict_topk(new.X, 8, component="features")
        cosines = normalize(new.rows) @ normalize(label_codes).T
        expected = np.take_along_axis(cosines, labels, axis=1)
        np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-6)
        words = fitted._means.words
        means = sp.csr_array((words.data, words.indices, words.indptr), shape=words.shape)
        expected = normalize(data.Y.T @ data.rows).toarray()
        np.testing.assert_allclose(means.toarray(), expected, rtol=1e-4, atol=1e-6)

    def test_as_if_the_vectorizer_had_made_them(self, data, new):
        """The bytes of a model of texts alone, with its own rows given."""
        own = {"max_iter": 3, "classifier_max_iter": 2}
        alone = make(label_features=LABEL_TEXTS, **own).fit(data.texts, data.Y)

        def pair(texts):
            return TextsWithFeatures(texts, alone.vectorizer_.transform(texts))

        model = make(label_features=pair(LABEL_TEXTS), **own).fit(pair(data.texts), data.Y)
        assert_same(model, alone, pair(new.texts), new.texts)
        assert model.threshold_ == alone.threshold_

    def test_the_encoder_does_not_see_them(self, data):
        texts = [f"{text} {i}" for i, text in enumerate(data.texts)]  # all of them differ
        own = {"max_iter": 2, "classifier_max_iter": 2}
        plain = make(label_features=LABEL_TEXTS, vectorizer=None, **own).fit(texts, data.Y)
        X = TextsWithFeatures(texts, data.rows)
        model = make_given(**own).fit(X, data.Y)
        np.testing.assert_array_equal(model.label_embeddings_, plain.label_embeddings_)
        np.testing.assert_array_equal(model.coef_, plain.coef_)
        np.testing.assert_array_equal(model.embed(X), plain.embed(texts))

    @pytest.mark.parametrize(
        "kind",
        [
            lambda rows: rows.toarray(), lambda rows: rows.tocoo(), lambda rows: rows.tolil(),
            lambda rows: sp.csr_matrix(rows), lambda rows: rows.toarray().tolist(),
            lambda rows: rows.astype(np.float32), lambda rows: pd.DataFrame(rows.toarray()),
        ],
        ids=["dense", "coo", "lil", "csr_matrix", "lists", "float32", "frame"],
    )  # fmt: skip
    def test_rows_of_all_kinds(self, kind, fitted, data, new):
        model = make_given().fit(TextsWithFeatures(pd.Series(data.texts), kind(data.rows)), data.Y)
        assert_same(model, fitted, TextsWithFeatures(new.texts, kind(new.rows)), new.X)

    def test_names_of_features(self, data):
        names = [f"code {i}" for i in range(N_CODES)]
        frame = pd.DataFrame(data.rows.toarray(), columns=names)
        model = make_given(**UNTRAINED).fit(TextsWithFeatures(data.texts, frame), data.Y)
        assert model.feature_names_in_.tolist() == names
        model.predict(TextsWithFeatures(data.texts, frame))
        other = TextsWithFeatures(data.texts, frame[names[::-1]])
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(other)
        model.set_params(label_features=LABEL_TEXTS).fit(data.texts, data.Y)
        assert not hasattr(model, "feature_names_in_")
        assert not hasattr(model, "n_features_in_")
        assert model.vectorizer_ is not None

    def test_equal_instances_are_equal_in_both(self, data, new):
        order = np.random.default_rng(3).permutation(480)
        twice = TextsWithFeatures(2 * data.texts, sp.vstack([data.rows, data.rows]))
        Y2 = sp.csr_array(sp.vstack([data.Y, data.Y]))
        own = {"max_iter": 2, "classifier_max_iter": 2}
        doubled = make_given(**own).fit(twice[order], Y2[order])
        weighted = make_given(**own).fit(data.X, data.Y, np.full(240, 2.0))
        assert_same(doubled, weighted, new.X)
        texts = ["one apple", "one apple", "a cat", "a cat"]
        rows = sp.csr_array(np.array([[1.0, 0], [0, 1], [1, 1], [1, 1]]))
        model = make(label_features=TextsWithFeatures(["x", "y"], np.eye(2)), **UNTRAINED)
        model.fit(TextsWithFeatures(texts, rows), np.array([[1, 0], [1, 0], [0, 1], [0, 1]]))
        means = model._means.words
        np.testing.assert_allclose(
            sp.csr_array((means.data, means.indices, means.indptr), shape=(2, 2)).toarray(),
            np.full((2, 2), np.sqrt(0.5)), rtol=1e-6,
        )  # fmt: skip

    def test_empty_texts_with_features(self, data, new):
        texts = ["" if i < 5 else text for i, text in enumerate(data.texts)]
        named = TextsWithFeatures([*LABEL_TEXTS[:-1], ""], label_codes)
        Y = data.Y.toarray()
        Y[:, 7] = 0
        model = make_given(label_features=named, max_iter=2)
        model.fit(TextsWithFeatures(texts, data.rows), sp.csr_array(Y))
        assert model._described.all()
        assert not model._unseen_labels.size
        assert not model.label_embeddings_[7].any()
        rows = np.zeros((3, N_CODES))
        rows[0, 7] = rows[2, 11] = 1
        blank = TextsWithFeatures(["", "", "new"], rows)
        shares = model._shares(np.float32)
        labels, scores = model.predict_topk(blank, 3, component="features")
        assert labels[0, 0] == 7
        for row in (1, 2):  # nothing, and a code that no label has
            np.testing.assert_array_equal(scores[row], np.sort(shares)[::-1][:3])
        assert not model.embed(blank)[:2].any()
        labels, scores = model.predict_topk(blank, 8)
        assert 7 in labels[0]
        np.testing.assert_array_equal(scores[1], np.sort(shares)[::-1])
        assert not np.array_equal(scores[2], scores[1])

    def test_threads_change_nothing(self, fitted, data, new):
        assert_same(make_given(n_jobs=2).fit(data.X, data.Y), fitted, new.X)

    def test_a_vectorizer_is_not_used(self, fitted, data, new):
        for vectorizer in (None, TfidfVectorizer()):
            model = make_given(vectorizer=vectorizer).fit(data.X, data.Y)
            assert model.vectorizer_ is None
            assert_same(model, fitted, new.X)


class TestLabels:
    def test_forms(self, fitted, data, new):
        for given in (LABELS, LabelFeatures(LABELS), LabelFeatures(LABELS, classes=np.arange(8))):
            assert_same(make_given(label_features=given).fit(data.X, data.Y), fitted, new.X)
        model = make_given(label_features=None).fit(data.X, data.Y, label_features=LABELS)
        assert_same(model, fitted, new.X)

    def test_of_classes(self, data):
        y = np.array(NAMES)[data.Y.indices]
        held = LabelFeatures(LABELS, classes=NAMES)
        model = make_given(label_features=held, max_iter=2).fit(data.X, y)
        assert (model.predict(data.X) == y).mean() > 0.9
        some = np.flatnonzero(np.isin(y, NAMES[:5]))
        model = make_given(label_features=held, **UNTRAINED).fit(data.X[some], y[some])
        assert model.classes_.tolist() == sorted(NAMES[:5])

    def test_texts_and_the_vectorizer_of_the_rows(self, data, new):
        vectorizer = TfidfVectorizer().fit(data.texts + LABEL_TEXTS)
        rows, label_rows = vectorizer.transform(data.texts), vectorizer.transform(LABEL_TEXTS)
        own = {"label_vectorizer": FrozenEstimator(vectorizer), "max_iter": 2}
        X = TextsWithFeatures(data.texts, rows)
        model = make(label_features=LabelFeatures(LABEL_TEXTS), **own).fit(X, data.Y)
        pair = TextsWithFeatures(LABEL_TEXTS, label_rows)
        given = make(label_features=pair, max_iter=2).fit(X, data.Y)
        others = TextsWithFeatures(new.texts, vectorizer.transform(new.texts))
        assert_same(model, given, others)
        # Of rows that are there nothing has to be made.
        assert_same(make(label_features=pair, **own).fit(X, data.Y), given, others)
        model.add_labels(label_features=["old red cars"])
        given.set_params(label_vectorizer=vectorizer).add_labels(label_features=["old red cars"])
        assert_same(model, given, others)

    @pytest.mark.parametrize(
        ("given", "says"),
        [
            (
                LABEL_TEXTS,
                r"must have features, .* TextsWithFeatures\(.* or as label_vectorizer",
            ),
            (label_codes, "must be a text for each label, which the encoder reads. Got a matrix"),
            (None, "must be a text for each label, which the encoder reads. Got None"),
            (LABELS[:5], "a row for each of the 8 labels of y. Got 5 rows"),
            (TextsWithFeatures(LABEL_TEXTS, np.eye(8)), "have 8 features, X has 12: both must"),
            (TextsWithFeatures(LABEL_TEXTS, label_codes * np.nan), "Input label_features contains"),
            (TextsWithFeatures(LABEL_TEXTS, label_codes * 1e30), r"must have values up to 1e\+15"),
            (TextsWithFeatures(LABEL_TEXTS, label_codes * 1e-30), "a value of at least 1e-15"),
        ],
    )
    def test_that_do_not_fit(self, given, says, data):
        with pytest.raises(ValueError, match=f"^NGAMEEmbeddingXC: label_features.*{says}"):
            make(label_features=given, **UNTRAINED).fit(data.X, data.Y)

    def test_that_texts_alone_do_not_take(self, data, of_texts):
        message = "label_features must be texts alone, as X is. Got TextsWithFeatures"
        with pytest.raises(ValueError, match=message):
            make(label_features=LABELS).fit(data.texts, data.Y)
        with pytest.raises(ValueError, match=message):
            of_texts.add_labels(label_features=LABELS[:1])

    def test_of_an_encoder_of_rows(self, data):
        model = make(encoder="bag", label_features=LABELS, **UNTRAINED)
        with pytest.raises(ValueError, match=r"features or texts, .* Got TextsWithFeatures"):
            model.fit(data.rows, data.Y)


class TestAnswers:
    ASKED = (
        "predict", "predict_topk", "decision_function", "embed", "score", "partial_fit",
    )  # fmt: skip

    @staticmethod
    def ask(model, method, X, Y):
        arguments = (X, Y) if method in ("score", "partial_fit") else (X,)
        return getattr(model, method)(*arguments)

    @pytest.mark.parametrize("method", ASKED)
    def test_pairs_are_needed(self, method, fitted, data):
        message = (
            r"^NGAMEEmbeddingXC: X must be TextsWithFeatures, as in fit, of 12 features\. Got {}\."
        )
        for X in (data.texts, data.rows, np.array(data.texts)):
            with pytest.raises(ValueError, match=message.format(type(X).__name__)):
                self.ask(fitted, method, X, data.Y)

    @pytest.mark.parametrize("method", ASKED)
    def test_of_as_many_features(self, method, fitted, data):
        X = TextsWithFeatures(data.texts, data.rows[:, :5])
        with pytest.raises(ValueError, match=r"X has 5 features, but .* expecting 12 features"):
            self.ask(fitted, method, X, data.Y)

    @pytest.mark.parametrize("method", ASKED)
    def test_texts_alone_are_needed(self, method, data, of_texts):
        message = "X must be texts alone, as in fit, of which the vectorizer makes features. Got Te"
        with pytest.raises(ValueError, match=message):
            self.ask(of_texts, method, data.X, data.Y)

    def test_texts_alone_without_a_vectorizer(self, data):
        model = make(vectorizer=None, **UNTRAINED).fit(data.texts, data.Y)
        with pytest.raises(ValueError, match=r"X must be texts alone, as in fit\. Got TextsWithFe"):
            model.predict(data.X)

    def test_an_encoder_of_rows(self, data):
        message = "X must be a matrix of features, .* Got TextsWithFeatures: pass its features"
        model = NGAMEEmbeddingXC(**UNTRAINED, embedding_dim=4)
        with pytest.raises(ValueError, match=message):
            model.fit(data.X, data.Y)
        with pytest.raises(ValueError, match=message):
            model.fit(data.rows, data.Y).predict(data.X)

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            (lambda rows: rows * np.nan, "Input X contains NaN"),
            (lambda rows: rows * 1e30, r"X: features must have values up to 1e\+15 in float32"),
            (lambda rows: rows * 1e-30, "X: features must have a value of at least 1e-15"),
            (lambda rows: rows[:, :0], "0 feature"),
            (lambda rows: rows * 1j, "Complex data not supported"),
        ],
        ids=["NaN", "large", "tiny", "no features", "complex"],
    )
    def test_values(self, change, says, data):
        with pytest.raises(ValueError, match=says):
            make_given().fit(TextsWithFeatures(data.texts, change(data.rows)), data.Y)

    def test_no_rows(self, fitted, data):
        with pytest.raises(ValueError, match="at least one text"):
            fitted.predict(data.X[:0])
        with pytest.raises(ValueError, match=r"y has 239 rows and X has 240"):
            make_given().fit(data.X, data.Y[1:])

    def test_malformed_features(self, fitted, data):
        X = TextsWithFeatures(data.texts, data.rows.copy())
        X.features.indices[3] = 99
        for call in (fitted.predict, fitted.predict_topk, lambda X: make_given().fit(X, data.Y)):
            with pytest.raises(ValueError, match="column index 99"):
                call(X)


class TestAfterwards:
    def test_partial_fit(self, data, new):
        model = make_given(max_iter=2).fit(data.X, data.Y)
        model.partial_fit(new.X, new.Y)
        words = model._means.words
        expected = normalize(data.Y.T @ data.rows + new.Y.T @ new.rows).toarray()
        means = sp.csr_array((words.data, words.indices, words.indptr), shape=words.shape)
        np.testing.assert_allclose(means.toarray(), expected, rtol=1e-4, atol=1e-6)
        first = make_given(max_iter=2).partial_fit(data.X, data.Y)
        assert_same(first, make_given(max_iter=2).fit(data.X, data.Y), new.X)

    def test_add_labels(self, data, new):
        model = make_given(max_iter=2).fit(data.X, data.Y)
        more = TextsWithFeatures(["kayak", ""], np.eye(N_CODES)[[10, 11]])
        model.add_labels(label_features=more)
        rows = np.eye(N_CODES)[[10, 11, 0]]
        asked = TextsWithFeatures(["kayak", "", "apples"], rows)
        labels, _ = model.predict_topk(asked, 1, component="features")
        assert labels[:, 0].tolist() == [8, 9, 0]
        assert model._described.tolist() == [True] * 10
        with pytest.raises(ValueError, match="must have features, as X has beside its texts"):
            model.add_labels(label_features=["canoe"])
        with pytest.raises(ValueError, match="have 3 features, X has 12"):
            model.add_labels(label_features=TextsWithFeatures(["canoe"], np.ones((1, 3))))
        wide = sp.csr_array(sp.hstack([data.Y, sp.csr_array((240, 2), dtype=int)]))
        assert model.partial_fit(data.X, wide).coef_.shape[0] == 10
        names = make_given(max_iter=1, label_names=NAMES).fit(data.X, data.Y)
        held = LabelFeatures(more, classes=["kayak", "raft"])
        assert names.add_labels(label_features=held).classes_.tolist()[8:] == ["kayak", "raft"]

    def test_pickles_and_folders(self, fitted, new, tmp_path, monkeypatch):
        assert_same(pickle.loads(pickle.dumps(fitted)), fitted, new.X)
        monkeypatch.setitem(classes.MODULES, "HashedWords", "text_models")
        fitted.save(tmp_path / "model")
        again = sklearn_xc.load(tmp_path / "model", verify=True)
        assert_same(again, fitted, new.X)
        held = again.label_features.features
        assert type(held) is TextsWithFeatures
        np.testing.assert_array_equal(held.features, label_codes)
        with pytest.raises(ValueError, match="as in fit, of 12 features"):
            again.predict(new.texts)

    def test_checkpoints(self, data, new, tmp_path):
        def fit(X):
            own = {"max_iter": 2, "checkpoint_dir": tmp_path / "fit"}
            return make_given(**own).fit(X, data.Y)

        model = fit(data.X)
        assert_same(fit(data.X), model, new.X)
        for other in (
            TextsWithFeatures(data.texts, data.rows * 2),
            TextsWithFeatures([*data.texts[1:], "other"], data.rows),
        ):
            with pytest.raises(ValueError, match="other data: X is not the same"):
                fit(other)


class TestInsideOthers:
    def test_of_scikit_learn(self, data):
        Y = data.Y.toarray()
        model = make_given(max_iter=1)
        assert cross_val_score(model, data.X, Y, cv=KFold(3)).min() > 0.9
        search = GridSearchCV(model, {"encoder__n_buckets": [50, 2000]}, cv=KFold(2))
        search.fit(data.X, Y)
        assert search.best_score_ > 0.8
        assert search.best_estimator_.n_features_in_ == N_CODES
        X_train, X_test, Y_train, Y_test = train_test_split(data.X, data.Y, random_state=0)
        assert type(X_train) is TextsWithFeatures
        assert make_given(max_iter=1).fit(X_train, Y_train).score(X_test, Y_test) > 0.9

    def test_of_this_package(self, fitted, data, new):
        model = make_given(max_iter=1)
        assert sparse_cross_val_score(model, data.X, data.Y, cv=KFold(3)).min() > 0.9
        found = cross_validate(model, data.X, data.Y, cv=KFold(2), return_estimator=True)
        assert all(one.n_features_in_ == N_CODES for one in found["estimator"])
        scored = cross_val_topk(model, data.X, data.Y, k=1, cv=KFold(3))
        assert (scored.indices == data.Y.indices).mean() > 0.9
        np.testing.assert_array_equal(topk(fitted, new.X, 3)[0], fitted.predict_topk(new.X, 3)[0])
        own = sp.csr_array(np.eye(8)[np.arange(40) % 8])
        labels, _ = fitted.predict_topk(new.X, 2, candidates=own)
        assert (labels[:, 0] == np.arange(40) % 8).all()
        labels, _ = fitted.predict_topk(new.X, 2, exclude=own)
        assert (labels != (np.arange(40) % 8)[:, None]).all()

    @pytest.mark.parametrize(
        "around",
        [
            lambda model: ThresholdTuner(model, cv=3, random_state=0),
            lambda model: TopKCalibrator(model, cv=3, random_state=0),
            lambda model: StackingXC([("a", model), ("b", model)], cv=0.3, random_state=0),
            lambda model: make_pipeline(FunctionTransformer(), model),
        ],
        ids=["tuner", "calibrator", "stack", "pipeline"],
    )
    def test_around(self, around, data, new):
        model = around(make_given(max_iter=1)).fit(data.X, data.Y)
        labels, scores = topk(model, new.X, 2)
        assert (labels[:, 0] == new.Y.indices).mean() > 0.9
        np.testing.assert_array_equal(topk(pickle.loads(pickle.dumps(model)), new.X, 2)[1], scores)
        if not hasattr(model, "steps"):
            assert model.n_features_in_ == N_CODES
