"""Vectors of words, also in gensim."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from sklearn_xc.decomposition.skip_gram.words import WordVectors


class Words(WordVectors, BaseEstimator):
    """A transformer that is given what others learn."""

    def __init__(self, words=None, vectors=None, handle_unknown="error"):
        self.words = words
        self.vectors = vectors
        self.handle_unknown = handle_unknown

    def fit(self, X=None, y=None):
        self.words_ = np.asarray(self.words)
        self.vectors_ = np.asarray(self.vectors, np.float32)
        return self


def model_of(vectors, **parameters):
    return Words([f"w{i}" for i in range(len(vectors))], vectors, **parameters).fit()


@pytest.fixture
def vectors():
    return np.random.default_rng(0).normal(size=(60, 7)).astype(np.float32)


class TestTransform:
    def test_words_in_any_form(self, vectors):
        words = ["w3", "w59", "w3"]
        for form in (
            words,
            np.array(words),
            pd.Series(words, dtype="string"),
            pd.Series(words, dtype="category", index=[7, 7, 7]),
            np.array(words)[:, None],
            pd.DataFrame({"word": words}),
        ):
            found = model_of(vectors).transform(form)
            np.testing.assert_array_equal(found, vectors[[3, 59, 3]], repr(form))
            assert found.dtype == np.float32

    def test_zeros_for_unknown_words(self, vectors):
        model = model_of(vectors, handle_unknown="zero")
        found = model.transform(["x", "w4", "", "W4"])
        np.testing.assert_array_equal(found, [np.zeros(7), vectors[4], np.zeros(7), np.zeros(7)])

    def test_unknown_words_and_what_was_meant(self):
        model = Words(["bread", "butter", "jam"], np.eye(3)).fit()
        message = (
            r"^Words.transform: words must be among the 3 words of the model. "
            r'handle_unknown="zero" gives other ones zeros. '
            r"Got 'Bred', 'qq', 'buter' and 1 more. Did you mean 'bread'\?$"
        )
        with pytest.raises(ValueError, match=message):
            model.transform(["jam", "Bred", "qq", "Bred", "buter", "xx"])
        with pytest.raises(ValueError, match=r"Got 'xyz'.$"):
            model.transform(["xyz"])

    @pytest.mark.parametrize(
        ("words", "error", "message"),
        [
            ("w1", TypeError, "array of words. Got the single word 'w1'"),
            ([b"w1"], TypeError, "texts only. Got b'w1' at entry 0"),
            (["w1", None], TypeError, "texts only. Got None at entry 1"),
            ({"w1"}, TypeError, "texts only. Got {'w1'}"),
            ([["w1", "w2"]], ValueError, r"shape \(n,\) or \(n, 1\). Got shape \(1, 2\)"),
        ],
    )
    def test_what_is_no_array_of_words(self, vectors, words, error, message):
        with pytest.raises(error, match=f"^Words.transform: words .*{message}"):
            model_of(vectors).transform(words)

    def test_not_fitted(self):
        model = Words()
        for ask in (
            lambda: model.transform(["a"]),
            model.to_keyed_vectors,
            model.get_feature_names_out,
        ):
            with pytest.raises(NotFittedError):
                ask()


def test_gensim_has_the_words_and_vectors(vectors):
    pytest.importorskip("gensim")
    keyed = model_of(vectors).to_keyed_vectors()
    assert keyed.index_to_key == [f"w{i}" for i in range(60)]
    np.testing.assert_array_equal(keyed.vectors, vectors)
    assert not np.shares_memory(keyed.vectors, vectors)
