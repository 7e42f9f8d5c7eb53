"""Texts of documents and labels, vectorizers, and parameters of the encoder."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sklearn_xc import LabelFeatures, topk
from sklearn_xc.encoders import BagOfEmbeddings
from sklearn_xc.metrics import TopKScorer

TOPICS = {
    "sea": "wave ship sail harbour salt",
    "wood": "tree leaf bark moss root",
    "city": "street tram house lamp square",
    "sky": "cloud bird wind sun star",
}
LAST = "ngameembeddingxc"


@pytest.fixture(scope="module")
def texts():
    """Return documents, an indicator of their topics, and texts of the topics."""
    rng = np.random.default_rng(0)
    Y = sp.csr_array(np.eye(4, dtype=int)[np.arange(96) % 4])
    words = [text.split() for text in TOPICS.values()]
    made = [" ".join(rng.choice(words[j], 3, replace=False)) for j in np.arange(96) % 4]
    names = [f"{name} {text.split()[0]} {text.split()[1]}" for name, text in TOPICS.items()]
    return made, Y, names


@pytest.fixture(scope="module")
def vectorizer(texts):
    return FrozenEstimator(TfidfVectorizer().fit([*texts[0], *texts[2]]))


class TestPipelines:
    def test_texts_of_documents_and_labels(self, make, texts, vectorizer):
        made, Y, names = texts
        own = {"max_iter": 10}
        model = make(label_features=names, label_vectorizer=vectorizer, **own)
        pipeline = make_pipeline(vectorizer, model).fit(made, Y)
        assert pipeline.score(made, Y) > 0.9
        labels, _ = topk(pipeline, ["sail harbour", "leaf", "tram lamp", "bird star"], 2)
        assert labels[:, 0].tolist() == [0, 1, 2, 3]
        direct = make(label_features=vectorizer.transform(names), **own)
        direct.fit(vectorizer.transform(made), Y)
        np.testing.assert_array_equal(pipeline[-1].coef_, direct.coef_)

    def test_a_vectorizer_that_is_fitted_again(self, make, texts, vectorizer):
        """The words of the labels are then others: a message says so."""
        made, Y, names = texts
        model = make(label_features=names, label_vectorizer=vectorizer)
        with pytest.raises(ValueError, match="with the vectorizer that made X"):
            make_pipeline(TfidfVectorizer(), model).fit(made, Y)


class TestSearches:
    def test_label_texts_and_a_frozen_vectorizer(self, make, texts, vectorizer):
        made, Y, names = texts
        holder = LabelFeatures(names)
        model = make(label_features=holder, label_vectorizer=vectorizer, max_iter=10)
        search = GridSearchCV(
            make_pipeline(vectorizer, model), {f"{LAST}__sampler": ["ngame", "in_batch"]}, cv=3,
            scoring=TopKScorer(ks=(1,)), refit="P@1", error_score="raise",
        ).fit(made, Y)  # fmt: skip
        assert search.best_score_ > 0.9

    def test_parameters_of_the_encoder(self, make, documents):
        X, Y, Z = documents
        model = make(encoder=BagOfEmbeddings(), label_features=LabelFeatures(Z))
        search = GridSearchCV(
            model, {"encoder__residual": [True, False]}, cv=2, error_score="raise"
        ).fit(X, Y)
        has_block = search.best_estimator_.encoder_.block_ is not None
        assert has_block == search.best_params_["encoder__residual"]
        assert vars(model.encoder) == {"residual": True, "dropout": 0.0, "embedding_init": None}


class TestPandas:
    def test_a_series_of_label_texts(self, make, texts, vectorizer):
        made, Y, names = texts
        X = vectorizer.transform(made)
        a, b = (
            make(label_features=given, label_vectorizer=vectorizer).fit(X, Y)
            for given in (names, pd.Series(names, index=[7, 5, 3, 1]))
        )
        np.testing.assert_array_equal(a.coef_, b.coef_)


class TestClones:
    def test_clone(self, make, documents):
        X, Y, Z = documents
        holder, encoder = LabelFeatures(Z), BagOfEmbeddings(residual=False)
        model = make(label_features=holder, encoder=encoder, margin=0.2).fit(X, Y)
        again = clone(model)
        assert not [name for name in vars(again) if name.endswith("_")]
        assert again.label_features is holder
        assert again.encoder is not encoder
        assert again.encoder.get_params() == {
            "residual": False,
            "dropout": 0.0,
            "embedding_init": None,
        }
        np.testing.assert_array_equal(again.fit(X, Y).coef_, model.coef_)

    def test_a_vectorizer_that_is_not_frozen_is_named(self, make, texts):
        made, Y, names = texts
        vectorizer = TfidfVectorizer().fit([*made, *names])
        model = clone(make(label_features=names, label_vectorizer=vectorizer))
        with pytest.raises(NotFittedError, match=r"frozen\.FrozenEstimator"):
            model.fit(vectorizer.transform(made), Y)
