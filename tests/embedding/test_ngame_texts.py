"""Encoders that read texts, from outside the package: fits, answers, and what is refused."""

import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from text_models import NAMES, HashedWords, answers, label_texts, make, make_texts

from sklearn_xc import topk
from sklearn_xc.model_selection import cross_val_score as sparse_cross_val_score
from sklearn_xc.samplers import SAMPLERS


class Dense(BaseEstimator):
    """Encoder of sparse rows: X E, by plain gradient steps. It needs nothing of the package."""

    def __init__(self, boost=30.0):
        self.boost = boost

    def start(self, inputs, dim, seed):
        assert type(inputs) is sp.csr_array
        self.E_ = np.random.default_rng(seed).normal(size=(inputs.shape[1], dim))

    def encode(self, inputs, n_jobs=None):
        assert type(inputs) is sp.csr_array
        return self.forward(inputs, None).V

    def forward(self, inputs, rng, n_jobs=None):
        sums = inputs @ self.E_
        norms = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
        return SimpleNamespace(V=sums / norms, X=inputs, norms=norms)

    def learn(self, passed, gradient, rate, n_jobs=None):
        assert type(n_jobs) is int
        V = passed.V
        along = (gradient - (gradient * V).sum(axis=1, keepdims=True) * V) / passed.norms
        self.E_ -= rate * self.boost * (passed.X.T @ along)


@pytest.fixture(scope="module")
def data():
    return make_texts()


@pytest.fixture(scope="module")
def fitted(data):
    return make().fit(*data)


class TestFits:
    def test_it_learns(self, fitted, data):
        new, Y_new = make_texts(80, seed=9)
        own = {"max_iter": 0, "classifier_max_iter": 0, "fusion": "sum", "vectorizer": None}
        untrained = make(**own).fit(*data)
        for component in ("embedding", "classifier", "fused"):
            found = fitted.predict_topk(new, 1, component=component)[0][:, 0]
            assert (found == Y_new.toarray().argmax(axis=1)).mean() > 0.9, component
        assert fitted.score(new, Y_new) > untrained.score(new, Y_new) + 0.2
        assert fitted.coef_.dtype == np.float32
        assert not hasattr(fitted, "n_features_in_")
        np.testing.assert_allclose(np.linalg.norm(fitted.embed(new), axis=1), 1, rtol=1e-6)

    @pytest.mark.parametrize("sampler", sorted(SAMPLERS))
    @pytest.mark.parametrize("n_shards", [1, 3])
    def test_samplers_and_shards(self, sampler, n_shards, data):
        model = make(sampler=sampler, n_shards=n_shards).fit(*data)
        assert model.score(*data) > 0.7

    @pytest.mark.parametrize(
        "kind",
        [tuple, np.array, lambda t: np.array(t, object), pd.Series],
        ids=["tuple", "array of str", "array of objects", "Series"],
    )
    def test_sequences_of_all_kinds(self, kind, fitted, data):
        texts, Y = data
        model = make(label_features=kind(label_texts())).fit(kind(texts), Y)
        assert answers(model, kind(texts[:9])) == answers(fitted, texts[:9])

    def test_equal_texts_are_one_with_the_sum_of_their_weights(self, fitted, data):
        texts, Y = data
        order = np.random.default_rng(3).permutation(2 * len(texts))
        twice, Y2 = 2 * texts, sp.csr_array(sp.vstack([Y, Y]))
        doubled = make().fit([twice[i] for i in order], Y2[order])
        weighted = make().fit(texts, Y, np.full(len(texts), 2.0))
        for model in (doubled, weighted):
            np.testing.assert_array_equal(model.coef_, fitted.coef_)
        more = [*texts, "nothing of this counts"]
        without = make().fit(more, sp.csr_array(sp.vstack([Y, Y[:1]])), np.r_[np.ones(320), 0])
        np.testing.assert_array_equal(without.coef_, fitted.coef_)

    def test_an_empty_text_is_a_row_without_features(self, data):
        texts, Y = data
        texts = ["", *texts[1:]]
        model = make(label_features=[*label_texts()[:-1], ""]).fit(texts, Y)
        labels, scores = model.predict_topk(["", "apples"], 3)
        shares = model._shares(model.coef_.dtype)
        np.testing.assert_array_equal(labels[0], np.argsort(-shares, kind="stable")[:3])
        np.testing.assert_array_equal(scores[0], shares[labels[0]])
        assert labels[1, 0] == 0
        assert not model.label_embeddings_[-1].any()
        assert not model.embed([""]).any()

    def test_new_words_are_left_to_the_encoder(self, fitted):
        assert fitted.embed(["never seen before"]).any()

    def test_1_d(self, data):
        texts, Y = data
        y = np.array(NAMES)[Y.toarray().argmax(axis=1)]
        order = np.argsort(NAMES)
        model = make(label_features=[label_texts()[i] for i in order]).fit(texts, y)
        assert (model.predict(texts) == y).mean() > 0.9


class TestAfterwards:
    def test_partial_fit_and_add_labels(self, data):
        texts, Y = data
        model = make().fit(texts, Y)
        coef = model.coef_
        model.partial_fit(*make_texts(64, seed=4))
        assert (model.coef_ != coef).any()
        model.add_labels(label_features=["kayak paddle"])
        assert model.predict_topk(["kayak paddle"], 1, component="embedding")[0][0, 0] == len(NAMES)
        wide = sp.csr_array(sp.hstack([Y, sp.csr_array((len(texts), 1), dtype=int)]))
        model.partial_fit(texts, wide)
        assert model.coef_.shape == (len(NAMES) + 1, 16)
        first = make().partial_fit(texts, Y)
        np.testing.assert_array_equal(first.coef_, coef)

    def test_stored(self, fitted, data):
        again = pickle.loads(pickle.dumps(fitted))
        assert answers(again, data[0]) == answers(fitted, data[0])

    def test_clones_and_searches(self, fitted, data):
        texts, Y = data
        again = clone(fitted).fit(texts, Y)
        np.testing.assert_array_equal(again.coef_, fitted.coef_)
        assert cross_val_score(make(), texts, Y.toarray(), cv=KFold(3)).min() > 0.6
        search = GridSearchCV(make(), {"encoder__n_buckets": [50, 2000]}, cv=KFold(3))
        assert search.fit(texts, Y.toarray()).best_score_ > 0.6

    def test_tools_of_the_package(self, fitted, data):
        texts, Y = data
        np.testing.assert_array_equal(topk(fitted, texts, 3)[0], fitted.predict_topk(texts, 3)[0])
        pipeline = make_pipeline(FunctionTransformer(), make()).fit(texts, Y)
        np.testing.assert_array_equal(topk(pipeline, texts, 3)[0], topk(fitted, texts, 3)[0])
        scores = [
            sparse_cross_val_score(make(), kind(texts), Y, cv=KFold(3))
            for kind in (list, np.array, pd.Series)
        ]
        assert min(scores[0]) > 0.6
        np.testing.assert_array_equal(scores[0], scores[1])
        np.testing.assert_array_equal(scores[0], scores[2])

    def test_tags(self):
        tags = make().__sklearn_tags__().input_tags
        assert (tags.string, tags.one_d_array, tags.two_d_array, tags.sparse) == (1, 1, 0, 0)
        tags = make(encoder="bag").__sklearn_tags__().input_tags
        assert (tags.string, tags.one_d_array, tags.two_d_array, tags.sparse) == (0, 0, 1, 1)

    def test_another_fit_forgets_the_features(self, data):
        texts, Y = data
        X = TfidfVectorizer().fit_transform(texts)
        model = make(encoder="bag", label_features=None).fit(X, Y)
        assert model.n_features_in_ == X.shape[1]
        model.set_params(encoder=HashedWords(), label_features=label_texts()).fit(texts, Y)
        assert not hasattr(model, "n_features_in_")

    def test_threads_change_nothing(self, fitted, data):
        model = make(n_jobs=2).fit(*data)
        np.testing.assert_array_equal(model.coef_, fitted.coef_)


class TestErrors:
    def test_texts_for_an_encoder_of_rows(self, data):
        texts, Y = data
        message = r"X must be a matrix of features, .* Got texts: .* make_pipeline\(TfidfVectorizer"
        for X in (texts, np.array(texts), pd.Series(texts)):
            with pytest.raises(ValueError, match=message):
                make(encoder="bag").fit(X, Y)

    def test_a_matrix_for_an_encoder_of_texts(self, fitted, data):
        texts, Y = data
        X = TfidfVectorizer().fit_transform(texts)
        for matrix in (X, X.toarray()):
            message = r"X must be a sequence of texts, .*encoder='bag' .* Got \w+ of shape \(320, "
            with pytest.raises(ValueError, match=message):
                make().fit(matrix, Y)
            with pytest.raises(ValueError, match=message):
                fitted.predict(matrix)
        with pytest.raises(ValueError, match=r"label_features must be a text .* Got a matrix"):
            make(label_features=np.eye(8)).fit(texts, Y)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda t: [*t[:-1], None], "a sequence of texts. Got None at position 319"),
            (lambda t: [*t[:-1], 3.5], r"a sequence of texts. Got 3\.5 at position 319"),
            (lambda t: pd.Series([*t[:-1], np.nan]), "Got nan at position 319"),
            (lambda t: [b"bytes"] * len(t), "Got b'bytes' at position 0"),
            (lambda t: "text", "a sequence of texts, .* Got str"),
            (lambda t: 7, "a sequence of texts, .* Got int"),
            (lambda t: [], "at least one text"),
        ],
        ids=range(7),
    )
    def test_no_texts(self, change, message, data):
        with pytest.raises(ValueError, match=f"NGAMEEmbeddingXC: X must .*{message}"):
            make().fit(change(data[0]), data[1])

    def test_labels(self, data):
        texts, Y = data
        with pytest.raises(ValueError, match=r"label_features must be a text for each.* Got None"):
            make(label_features=None).fit(texts, Y)
        with pytest.raises(
            ValueError, match=r"label_vectorizer must be None.* Got TfidfVectorizer"
        ):
            make(label_vectorizer=TfidfVectorizer()).fit(texts, Y)
        with pytest.raises(ValueError, match=r"a row for each of the 8 labels of y. Got 7 rows"):
            make(label_features=label_texts()[1:]).fit(texts, Y)
        model = make(vectorizer=None, max_iter=0, classifier_max_iter=0).fit(texts, Y)
        with pytest.raises(ValueError, match="Got none: its encoder reads texts"):
            model.predict_topk(texts, 2, component="features")

    def test_what_it_reads(self, data):

        class Images(HashedWords):
            reads = "images"

        with pytest.raises(
            ValueError, match=r"encoder Images must declare reads = 'rows' or .*imag"
        ):
            make(encoder=Images()).fit(*data)


def test_an_encoder_of_rows_from_outside(data):
    texts, Y = data
    vectorizer = TfidfVectorizer().fit([*texts, *label_texts()])
    X, Z = vectorizer.transform(texts), vectorizer.transform(label_texts())
    encoder = Dense()
    model = make(encoder=encoder, label_features=Z).fit(X, Y)
    assert vars(encoder) == {"boost": 30.0}
    new, Y_new = make_texts(80, seed=9)
    assert model.score(vectorizer.transform(new), Y_new) > 0.9
    assert model.fit_report_["loss"][7] < 0.5 * model.fit_report_["loss"][0]
