"""Encoders that read texts, from outside the package: fits, answers, and what is refused."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer
from text_models import label_texts, make, make_texts


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
        assert fitted.score(new, Y_new) > untrained.score(new, Y_new) + 0.2
        assert fitted.coef_.dtype == np.float32
        assert not hasattr(fitted, "n_features_in_")
        np.testing.assert_allclose(np.linalg.norm(fitted.embed(new), axis=1), 1, rtol=1e-6)

    def test_equal_texts_are_one_with_the_sum_of_their_weights(self, data):
        texts, Y = data
        own = {"max_iter": 2, "classifier_max_iter": 1}
        expected = make(**own).fit(texts, Y).coef_
        order = np.random.default_rng(3).permutation(2 * len(texts))
        twice, Y2 = 2 * texts, sp.csr_array(sp.vstack([Y, Y]))
        doubled = make(**own).fit([twice[i] for i in order], Y2[order])
        weighted = make(**own).fit(texts, Y, np.full(len(texts), 2.0))
        for model in (doubled, weighted):
            np.testing.assert_array_equal(model.coef_, expected)
        more = [*texts, "nothing of this counts"]
        without = make(**own).fit(more, sp.vstack([Y, Y[:1]], "csr"), np.r_[np.ones(320), 0])
        np.testing.assert_array_equal(without.coef_, expected)

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
        with pytest.raises(
            ValueError, match=r"label_features must be texts alone, as X is. Got ndarray"
        ):
            make(label_features=np.eye(8)).fit(texts, Y)
