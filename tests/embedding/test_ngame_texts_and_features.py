"""Features that a model makes of its texts, beside an encoder that reads them."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, normalize
from text_models import NAMES, answers, make, make_texts

from sklearn_xc import LabelFeatures
from sklearn_xc.embedding._inputs import TextRows

#: What labels say, in words that texts have.
WORDS = [
    f"{name}s {topic.split(' ')[0]}"
    for name, topic in zip(NAMES, ["fruit"] * 3 + ["wheels"] * 3 + ["fur"] * 2, strict=True)
]
UNTRAINED = {"max_iter": 0, "classifier_max_iter": 0}


def make_with(**parameters):
    return make(**{"label_features": LabelFeatures(WORDS), **parameters})


def tfidf(texts):
    """Return the vectorizer of "tfidf", fitted."""
    return TfidfVectorizer(sublinear_tf=True, dtype=np.float32).fit(sorted(set(texts)))


def dense(rows):
    return sp.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape).toarray()


def assert_same(model, other, texts):
    for mine, others in zip(
        model.predict_topk(texts, 4), other.predict_topk(texts, 4), strict=True
    ):
        np.testing.assert_array_equal(mine, others)
    np.testing.assert_array_equal(model.predict(texts).toarray(), other.predict(texts).toarray())


@pytest.fixture(scope="module")
def data():
    return make_texts()


@pytest.fixture(scope="module")
def new():
    return make_texts(60, seed=9)


@pytest.fixture(scope="module")
def fitted(data):
    return make_with().fit(*data)


@pytest.fixture(scope="module")
def untrained(data):
    """Return a model whose fused scores are the sum of all."""
    return make_with(**UNTRAINED, validation_fraction=0).fit(*data)


class TestAgainstScikitLearn:
    def test_the_vectorizer(self, fitted, data):
        expected = tfidf(data[0])
        assert fitted.vectorizer_.vocabulary_ == expected.vocabulary_
        np.testing.assert_array_equal(fitted.vectorizer_.idf_, expected.idf_)
        assert fitted.vectorizer == "tfidf"

    def test_means_of_features(self, data):
        texts, Y = data
        weight = np.random.default_rng(0).uniform(0.5, 3, len(texts))
        model = make_with(**UNTRAINED).fit(texts, Y, weight)
        X = tfidf(texts).transform(texts)
        sums = (sp.diags_array(weight) @ Y).T @ X
        np.testing.assert_allclose(
            dense(model._means.words), normalize(sums).toarray(), rtol=1e-4, atol=1e-6
        )

    def test_the_sum_is_of_five(self, untrained, data, new):
        texts, Y = new
        vectorizer, model = tfidf(data[0]), untrained
        X, V = vectorizer.transform(texts).toarray(), model.embed(texts)
        words = normalize(data[1].T @ vectorizer.transform(data[0])).toarray()
        means = normalize(data[1].T @ model.embed(data[0]))
        parts = [
            V @ model.label_embeddings_.T,
            V @ model.coef_.T,
            X @ vectorizer.transform(WORDS).toarray().T,
            V @ means.T,
            X @ words.T,
        ]
        labels, scores = model.predict_topk(texts, 8)
        expected = np.take_along_axis(sum(parts), labels, axis=1)
        np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
        assert model.fusion_ is None
        assert model.score(texts, Y) > 0.9

    def test_substitute_norms_are_found(self, data):
        """A label without instances has its own features as their mean, shortened."""
        texts, Y = data
        wide = sp.csr_array(sp.hstack([Y, sp.csr_array((len(texts), 1), dtype=int)]))
        model = make_with(label_features=[*WORDS, "red small old"], max_iter=2).fit(texts, wide)
        own = dense(model._features.rows)[-1]
        assert 0 < model._substitute_norms.words <= 1
        np.testing.assert_allclose(
            dense(model._means.words)[-1], model._substitute_norms.words * own, rtol=1e-5
        )


class TestWithout:
    def test_scores_are_three(self, data, new):
        model = make_with(vectorizer=None, validation_fraction=0).fit(*data)
        assert model.vectorizer_ is None
        assert model._features is None
        assert model._means.words is None
        V = model.embed(new[0])
        scores = V @ (model.label_embeddings_ + model.coef_ + model._means.vectors).T
        labels, found = model.predict_topk(new[0], 8)
        expected = np.take_along_axis(scores, labels, axis=1)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)

    def test_no_word_is_left(self, data):
        """Texts of single letters: there is nothing that the words could say."""
        own = {"max_iter": 1, "classifier_max_iter": 1}
        letters = [text.split()[-1][:1] + f" {i % 2}" for i, text in enumerate(data[0])]
        for texts, *vectorizers in (
            (letters, "tfidf"),
            (data[0], CountVectorizer(min_df=0.999), Nothing()),
        ):
            plain = make_with(vectorizer=None, **own).fit(texts, data[1])
            for vectorizer in vectorizers:
                model = make_with(vectorizer=vectorizer, **own).fit(texts, data[1])
                assert model.vectorizer_ is None
                assert answers(model, texts[:9]) == answers(plain, texts[:9])
                model.add_labels(label_features=["x y"])
                assert model.predict_topk(texts[:3], 9)[0].shape == (3, 9)


class Nothing(BaseEstimator):
    """Makes no feature of any text."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return sp.csr_array((len(X), 0))


class TestVectorizers:
    @pytest.mark.parametrize(
        "vectorizer",
        [
            CountVectorizer(dtype=np.uint8),
            HashingVectorizer(n_features=64),
            make_pipeline(CountVectorizer(binary=True), Normalizer()),
        ],
        ids=["uint8", "hashes", "pipeline"],
    )
    def test_others(self, vectorizer, data, new):
        model = make_with(vectorizer=vectorizer, **UNTRAINED).fit(*data)
        assert type(model.vectorizer_) is type(vectorizer)
        assert model.vectorizer_ is not vectorizer
        assert "vocabulary_" not in vars(vectorizer)
        X, Z = (
            normalize(model.vectorizer_.transform(texts).astype(float)) for texts in (new[0], WORDS)
        )
        rows = model._with_features(TextRows.of(np.array(new[0], object))).features
        labels, scores = model._features.nearest(rows, 3, None, np.empty(0, int))
        expected = np.take_along_axis((X @ Z.T).toarray(), labels, axis=1)
        np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-6)
        assert model._features.rows.dtype == np.float32


class Made(BaseEstimator):
    """Makes rows of texts by a function."""

    def __init__(self, make=None):
        self.make = make

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return self.make(X)


def ones(X, d=3):
    return sp.csr_array(np.ones((len(X), d)))


WRONG = {
    "dense": (
        lambda X: np.ones((len(X), 3)),
        r"a sparse matrix of .* Got ndarray of shape \(\d+, 3",
    ),
    "rows": (lambda X: ones([*X, ""]), r"of \d+ rows, one for each text.* of shape \(\d+, 3\)"),
    "NaN": (lambda X: ones(X) * np.nan, "must make finite numbers. Got NaN or infinity"),
    "too large": (lambda X: ones(X) * 1e20, r"values up to 1e\+15 in float32. Got 1e\+20 in row 0"),
    "complex": (lambda X: ones(X) * 1j, "of real numbers, .* dtype complex128"),
}


class TestErrors:
    @pytest.mark.parametrize("name", WRONG)
    def test_what_it_makes(self, name, data):
        wrong, message = WRONG[name]
        with pytest.raises(ValueError, match=rf"^NGAMEEmbeddingXC: vectorizer Made:? .*{message}"):
            make_with(vectorizer=Made(wrong), **UNTRAINED).fit(*data)

    def test_other_widths(self, data):
        model = make_with(vectorizer=Made(ones), **UNTRAINED).fit(*data)
        model.vectorizer_ = Made(lambda X: ones(X, 4))
        message = r"of 2 rows, one for each text, and 3 features\. Got .* shape \(2, 4\)"
        with pytest.raises(ValueError, match=message):
            model.predict(data[0][:2])
