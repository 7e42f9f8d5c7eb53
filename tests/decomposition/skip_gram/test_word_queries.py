"""What is asked of words and vectors, against brute force in float64."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from sklearn_xc.decomposition.skip_gram.queries import WordVectors


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


def numbers(words):
    """Return the numbers in "w0", "w1", ..."""
    return np.vectorize(lambda word: int(word[1:]), otypes=[int])(words)


def units_of(vectors):
    vectors = np.asarray(vectors, np.float64)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)


def brute_force(vectors, positive, negative, k):
    """Return the numbers of the nearest words, and all cosines with the sum."""
    units = units_of(vectors)
    wanted = units[positive].sum(axis=0) - units[negative].sum(axis=0)
    cosines = units @ wanted / (np.linalg.norm(wanted) or 1.0)
    order = np.lexsort((np.arange(len(units)), -np.round(cosines, 12)))
    return [i for i in order if i not in {*positive, *negative}][:k], cosines


@pytest.fixture
def vectors():
    """Some words have equal vectors, some none, some point the same or the other way."""
    random = np.random.default_rng(0)
    found = random.normal(size=(60, 7)).astype(np.float32)
    found[[5, 33]] = 0
    found[[11, 40, 59]] = found[3]
    found[20] = 4 * found[8]
    found[21] = -found[8]
    return found


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
            lambda: model.similarity("a", "b"),
            lambda: model.most_similar("a"),
            lambda: model.analogy("a", "b", "c"),
            model.get_feature_names_out,
        ):
            with pytest.raises(NotFittedError):
                ask()


class TestSimilarity:
    def test_of_pairs(self, vectors):
        model, units = model_of(vectors), units_of(vectors)
        a, b = np.random.default_rng(1).integers(0, 60, (2, 300))
        found = model.similarity([f"w{i}" for i in a], [f"w{i}" for i in b])
        np.testing.assert_allclose(found, (units[a] * units[b]).sum(axis=1), atol=1e-14)
        assert found.dtype == np.float64
        single = model.similarity("w1", "w2")
        assert type(single) is float
        assert single == pytest.approx(units[1] @ units[2], abs=1e-14)

    def test_what_is_refused(self, vectors):
        model = model_of(vectors, handle_unknown="zero")
        with pytest.raises(ValueError, match=r"^Words.similarity: b must be among .*Got 'w99'"):
            model.similarity("w1", "w99")
        with pytest.raises(ValueError, match=r"a, b must have equal lengths. Got 2, 3"):
            model.similarity(["w1", "w2"], ["w1", "w2", "w3"])
        with pytest.raises(ValueError, match=r"a must be a word or .*Got shape \(1, 1\)"):
            model.similarity([["w1"]], "w2")
        with pytest.raises(TypeError, match=r"b must hold texts only. Got 2"):
            model.similarity("w1", 2)


class TestMostSimilar:
    @pytest.mark.parametrize("k", [4, 1000])
    def test_of_each_word(self, vectors, k):
        model = model_of(vectors)
        found, cosines = model.most_similar(model.words_, k)
        assert found.shape == cosines.shape == (60, min(k, 59))
        for i in range(60):
            expected, all_cosines = brute_force(vectors, [i], [], k)
            assert numbers(found[i]).tolist() == expected
            np.testing.assert_allclose(cosines[i], all_cosines[expected], atol=1e-14)
            alone, its_cosines = model.most_similar(f"w{i}", k)
            assert alone.tolist() == found[i].tolist()
            np.testing.assert_array_equal(its_cosines, cosines[i])

    def test_of_nothing(self, vectors):
        found, cosines = model_of(vectors).most_similar("w5", 4)
        assert found.tolist() == ["w0", "w1", "w2", "w3"]
        assert cosines.tolist() == [0.0] * 4

    @settings(max_examples=40, deadline=None)
    @given(data=st.data())
    def test_of_any_sum(self, data):
        values = st.integers(-2, 2)  # many ties
        n, dim = data.draw(st.integers(2, 12)), data.draw(st.integers(1, 3))
        row = st.lists(values, min_size=dim, max_size=dim)
        vectors = np.array(data.draw(st.lists(row, min_size=n, max_size=n)), np.float32)
        terms = np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=4)))
        signs = np.array([data.draw(st.sampled_from([-1.0, 1.0])) for _ in terms])
        k, units = data.draw(st.integers(1, 15)), units_of(vectors)
        (words,), (cosines,) = model_of(vectors)._nearest(terms[None], signs, k, False)
        found = numbers(words)
        others = [i for i in range(n) if i not in terms]
        assert len(found) == min(k, len(others))
        wanted = signs @ units[terms]
        if np.linalg.norm(wanted) < 1e-9:  # nothing, but for rounding
            assert found.tolist() == others[:k]
            assert not cosines.any()
            return
        all_cosines = units @ wanted / np.linalg.norm(wanted)
        np.testing.assert_allclose(cosines, all_cosines[found], atol=1e-12)
        best = np.sort(all_cosines[others])[::-1][:k]
        np.testing.assert_allclose(cosines, best, atol=1e-12)
        for first, second in pairwise(found):
            assert first < second or (vectors[first] != vectors[second]).any()

    def test_what_is_refused(self, vectors):
        model = model_of(vectors, handle_unknown="zero")
        with pytest.raises(ValueError, match=r"^Words.most_similar: words must be .*Got 'w99'"):
            model.most_similar("w99")
        for k in (0, -1, 1.5, True, "3"):
            with pytest.raises(ValueError, match=r"^Words.most_similar: k must be an integer"):
                model.most_similar("w1", k)


class TestAnalogy:
    @pytest.mark.parametrize("k", [5, 100])
    def test_against_brute_force(self, vectors, k):
        model = model_of(vectors)
        questions = np.random.default_rng(3).integers(0, 60, (50, 3))
        questions[0] = [4, 4, 4]
        questions[1] = [4, 4, 9]
        a, b, c = ([f"w{i}" for i in column] for column in questions.T)
        found, cosines = model.analogy(a, b, c, k)
        width = min(k, 57)
        assert found.shape == cosines.shape == (50, width)
        for i, (first, second, third) in enumerate(questions):
            expected, all_cosines = brute_force(vectors, [second, third], [first], width)
            assert not {*numbers(found[i])} & {*questions[i]}
            if np.linalg.norm(units_of(vectors)[[first, second, third]]) > 0:
                np.testing.assert_allclose(cosines[i], all_cosines[expected], atol=1e-12)
            alone, its_cosines = model.analogy(a[i], b[i], c[i], k)
            assert alone[:width].tolist() == found[i].tolist()
            np.testing.assert_array_equal(its_cosines[:width], cosines[i])

    def test_what_is_refused(self, vectors):
        model = model_of(vectors)
        with pytest.raises(ValueError, match=r"^Words.analogy: c must be among .*Got 'x'"):
            model.analogy("w1", "w2", "x")
        with pytest.raises(ValueError, match=r"a, b, c must have equal lengths. Got 1, 2, 3"):
            model.analogy("w1", ["w1"] * 2, ["w1"] * 3)
        with pytest.raises(ValueError, match=r"^Words.analogy: k must be an integer"):
            model.analogy("w1", "w2", "w3", 0)
