"""X as texts with features of the caller's, for an encoder that reads the texts."""

import numpy as np
import pytest
import scipy.sparse as sp
from text_models import NAMES, TOPICS, make, make_texts

from sklearn_xc import (
    LabelFeatures,
    NGAMEEmbeddingXC,
    TextsWithFeatures,
)

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
    answers = (model.predict_topk(X, 4), other.predict_topk(X if others_X is None else others_X, 4))
    for mine, others in zip(*answers, strict=True):
        np.testing.assert_array_equal(mine, others)


@pytest.fixture(scope="module")
def data():
    return Codes()


@pytest.fixture(scope="module")
def new():
    return Codes(40, seed=9)


@pytest.fixture(scope="module")
def of_texts(data):
    return make(**UNTRAINED).fit(data.texts, data.Y)


class TestFits:
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


class TestLabels:
    def test_forms(self, data, new):
        own = {"max_iter": 2, "classifier_max_iter": 1}
        fitted = make_given(**own).fit(data.X, data.Y)
        for given in (LABELS, LabelFeatures(LABELS), LabelFeatures(LABELS, classes=np.arange(8))):
            assert_same(make_given(label_features=given, **own).fit(data.X, data.Y), fitted, new.X)
        model = make_given(label_features=None, **own).fit(data.X, data.Y, label_features=LABELS)
        assert_same(model, fitted, new.X)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (LABEL_TEXTS, r"must be TextsWithFeatures\(texts, rows\), as X is. Got texts alone"),
            (label_codes, r"must be TextsWithFeatures\(texts, rows\), as X is. Got ndarray"),
            (None, "must be texts, which the encoder reads. Got None"),
            (LABELS[:5], "a row for each of the 8 labels of y. Got 5 rows"),
            (TextsWithFeatures(LABEL_TEXTS, np.eye(8)), "must have the 12 features of X. Got 8"),
            (TextsWithFeatures(LABEL_TEXTS, label_codes * np.nan), "Input label_features contains"),
            (TextsWithFeatures(LABEL_TEXTS, label_codes * 1e30), r"must have values up to 1e\+15"),
        ],
    )
    def test_that_do_not_fit(self, given, message, data):
        with pytest.raises(ValueError, match=f"^NGAMEEmbeddingXC: label_features.*{message}"):
            make(label_features=given, **UNTRAINED).fit(data.X, data.Y)

    def test_that_texts_alone_do_not_take(self, data, of_texts):
        message = "label_features must be texts alone, as X is. Got TextsWithFeatures"
        with pytest.raises(ValueError, match=message):
            make(label_features=LABELS).fit(data.texts, data.Y)
        with pytest.raises(ValueError, match=message):
            of_texts.add_labels(label_features=LABELS[:1])


class TestAnswers:
    def test_an_encoder_of_rows(self, data):
        message = "X must be a matrix of features, .* Got TextsWithFeatures: pass features"
        model = NGAMEEmbeddingXC(**UNTRAINED, embedding_dim=4)
        with pytest.raises(ValueError, match=message):
            model.fit(data.X, data.Y)
        with pytest.raises(ValueError, match=message):
            model.fit(data.rows, data.Y).predict(data.X)


class TestAfterwards:
    def test_add_labels(self, data, new):
        model = make_given(max_iter=2).fit(data.X, data.Y)
        more = TextsWithFeatures(["kayak", ""], np.eye(N_CODES)[[10, 11]])
        model.add_labels(label_features=more)
        rows = np.eye(N_CODES)[[10, 11, 0]]
        asked = TextsWithFeatures(["kayak", "", "apples"], rows)
        assert model.predict_topk(asked, 1)[0][:, 0].tolist() == [8, 9, 0]
        assert model._described.tolist() == [True] * 10
        with pytest.raises(ValueError, match=r"as X is\. Got texts alone"):
            model.add_labels(label_features=["canoe"])
        with pytest.raises(ValueError, match=r"must have the 12 features of X. Got 3"):
            model.add_labels(label_features=TextsWithFeatures(["canoe"], np.ones((1, 3))))
        names = make_given(max_iter=1, label_names=NAMES).fit(data.X, data.Y)
        held = LabelFeatures(more, classes=["kayak", "raft"])
        assert names.add_labels(label_features=held).classes_.tolist()[8:] == ["kayak", "raft"]
