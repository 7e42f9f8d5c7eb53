"""What is asked of words and vectors, against brute force in float64."""

import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from sklearn_xc.decomposition.skip_gram.evaluation import analogy_accuracy, spearman_of_pairs
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
    @pytest.mark.parametrize(
        "make",
        [
            list,
            tuple,
            np.array,
            pd.Series,
            lambda w: np.array(w, object),
            lambda w: pd.Series(w, dtype="string"),
            lambda w: pd.Series(w, dtype="category"),
            lambda w: pd.Series(w, index=[7, 7, 7]),
            lambda w: np.array(w)[:, None],
            lambda w: [[word] for word in w],
            lambda w: pd.DataFrame({"word": w}),
        ],
    )
    def test_words_in_any_form(self, vectors, make):
        found = model_of(vectors).transform(make(["w3", "w59", "w3"]))
        np.testing.assert_array_equal(found, vectors[[3, 59, 3]])
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
            r"Got 'Bred', 'qq', 'buter' and 1 more. Did you mean 'bread', 'butter'\?$"
        )
        with pytest.raises(ValueError, match=message):
            model.transform(["jam", "Bred", "qq", "Bred", "buter", "xx"])
        with pytest.raises(ValueError, match=r"Got 'xyz'.$"):
            model.transform(["xyz"])

    @pytest.mark.parametrize(
        ("words", "error", "message"),
        [
            ("w1", TypeError, "array of words. Got the single word 'w1'"),
            (b"w1", TypeError, "Got the single word b'w1'"),
            ([b"w1"], TypeError, "texts only. Got b'w1' at entry 0"),
            (["w1", None], TypeError, "texts only. Got None at entry 1"),
            (pd.Series(["w1", np.nan]), TypeError, "texts only. Got nan at entry 1"),
            ([["w1"], ["w2", "w3"]], (TypeError, ValueError), r"Got .*\['w1'\]"),
            (np.ones(3), TypeError, "texts only. Got 1.0 at entry 0"),
            ({"w1"}, TypeError, "array of words. Got set"),
            (5, TypeError, "array of words. Got int"),
            (None, TypeError, "array of words. Got NoneType"),
            ([["w1", "w2"]], ValueError, r"shape \(n,\) or \(n, 1\). Got shape \(1, 2\)"),
        ],
    )
    def test_what_is_no_array_of_words(self, vectors, words, error, message):
        with pytest.raises(error, match=f"^Words.transform: words .*{message}"):
            model_of(vectors).transform(words)

    def test_handle_unknown_is_checked(self, vectors):
        with pytest.raises(ValueError, match=r"handle_unknown must be one of .*Got 'ignore'"):
            model_of(vectors, handle_unknown="ignore").transform(["w1"])

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

    def test_names_of_columns(self, vectors):
        model = model_of(vectors)
        names = [f"words{i}" for i in range(7)]
        assert model.get_feature_names_out().tolist() == names
        frame = model.set_output(transform="pandas").transform(pd.DataFrame({"word": ["w2"]}))
        assert frame.columns.tolist() == names
        np.testing.assert_array_equal(frame, vectors[[2]])


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

    def test_one_beside_several(self, vectors):
        model = model_of(vectors)
        words = ["w2", "w9", "w1"]
        expected = [model.similarity("w1", word) for word in words]
        np.testing.assert_array_equal(model.similarity("w1", words), expected)
        np.testing.assert_array_equal(model.similarity(words, "w1"), expected)
        assert model.similarity(["w1"], "w1").shape == (1,)
        assert model.similarity([], "w1").shape == (0,)

    def test_of_zeros_and_parallels(self, vectors):
        model = model_of(vectors)
        assert model.similarity("w5", "w5") == model.similarity("w5", "w1") == 0.0
        assert model.similarity("w8", "w20") == pytest.approx(1.0, abs=1e-12)
        assert model.similarity("w8", "w21") == pytest.approx(-1.0, abs=1e-12)
        everything = [f"w{i}" for i in range(60)]
        assert np.abs(model.similarity(everything, everything)).max() <= 1.0

    def test_what_is_refused(self, vectors):
        model = model_of(vectors, handle_unknown="zero")
        with pytest.raises(ValueError, match=r"^Words.similarity: b must be among .*Got 'w99'"):
            model.similarity("w1", "w99")
        with pytest.raises(ValueError, match=r"a, b must have equal lengths. Got 2, 3"):
            model.similarity(["w1", "w2"], ["w1", "w2", "w3"])
        with pytest.raises(ValueError, match=r"a must be a word or .*Got shape \(1, 1\)"):
            model.similarity([["w1"]], "w2")
        with pytest.raises(TypeError, match=r"b must be an array of words. Got int"):
            model.similarity("w1", 2)


class TestMostSimilar:
    @pytest.mark.parametrize("k", [1, 4, 58, 59, 60, 1000])
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

    def test_ties_go_to_the_first_word(self, vectors):
        found, cosines = model_of(vectors).most_similar("w11", 3)
        assert found.tolist()[:2] == ["w3", "w40"]
        assert found[2] == "w59"
        assert cosines[0] == cosines[1] == cosines[2]

    def test_of_nothing(self, vectors):
        found, cosines = model_of(vectors).most_similar("w5", 4)
        assert found.tolist() == ["w0", "w1", "w2", "w3"]
        assert cosines.tolist() == [0.0] * 4

    @settings(max_examples=60, deadline=None)
    @given(data=st.data())
    def test_of_any_sum(self, data):
        values = st.integers(-2, 2)  # many ties
        n, dim = data.draw(st.integers(2, 12)), data.draw(st.integers(1, 3))
        row = st.lists(values, min_size=dim, max_size=dim)
        vectors = np.array(data.draw(st.lists(row, min_size=n, max_size=n)), np.float32)
        terms = st.lists(st.integers(0, n - 1), max_size=4)
        positive, negative = data.draw(terms), data.draw(terms)
        k = data.draw(st.integers(1, 15))
        if not positive and not negative:
            positive = [0]
        given_words = {
            "positive": [f"w{i}" for i in positive],
            "negative": [f"w{i}" for i in negative],
        }
        found, cosines = model_of(vectors).most_similar(k=k, **given_words)
        units = units_of(vectors)
        wanted = units[positive].sum(axis=0) - units[negative].sum(axis=0)
        if np.linalg.norm(wanted) < 1e-9:  # nothing, but for rounding
            others = [i for i in range(n) if i not in {*positive, *negative}][:k]
            assert numbers(found).tolist() == others
            assert not cosines.any()
            return
        expected, all_cosines = brute_force(vectors, positive, negative, k)
        assert len(found) == len(expected)
        # Directions are equal but for rounding where cosines are; equal rows keep their order.
        np.testing.assert_allclose(cosines, all_cosines[numbers(found)], atol=1e-12)
        np.testing.assert_allclose(cosines, all_cosines[expected], atol=1e-12)
        order = numbers(found)
        for first, second in pairwise(order):
            if (vectors[first] == vectors[second]).all():
                assert first < second

    def test_of_a_sum(self, vectors):
        model = model_of(vectors)
        found, cosines = model.most_similar(positive=["w1", "w2"], negative="w4", k=5)
        expected, all_cosines = brute_force(vectors, [1, 2], [4], 5)
        assert numbers(found).tolist() == expected
        np.testing.assert_allclose(cosines, all_cosines[expected], atol=1e-14)
        found, _ = model.most_similar(negative=["w8"], k=1)
        assert found.tolist() == ["w21"]
        assert model.most_similar(positive="w1")[0].tolist() == model.most_similar("w1")[0].tolist()

    def test_what_is_refused(self, vectors):
        model = model_of(vectors, handle_unknown="zero")
        with pytest.raises(ValueError, match=r"^Words.most_similar: words must be .*Got 'w99'"):
            model.most_similar("w99")
        with pytest.raises(ValueError, match=r"negative must be among .*Got 'x'"):
            model.most_similar(positive=["w1"], negative="x")
        with pytest.raises(ValueError, match=r"either words or positive .*Got neither"):
            model.most_similar()
        with pytest.raises(ValueError, match=r"either words or positive .*Got both"):
            model.most_similar("w1", positive="w2")
        with pytest.raises(ValueError, match=r"must name a word. Got none"):
            model.most_similar(positive=[], negative=[])
        for k in (0, -1, 1.5, True, "3"):
            with pytest.raises(ValueError, match=r"^Words.most_similar: k must be an integer"):
                model.most_similar("w1", k)


class TestAnalogy:
    @pytest.mark.parametrize("k", [1, 5, 100])
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

    def test_order_is_that_of_3cosadd(self, vectors):
        units = units_of(vectors)
        found, _ = model_of(vectors).analogy("w1", "w2", "w4", 10)
        scores = units @ units[2] - units @ units[1] + units @ units[4]
        scores[[1, 2, 4]] = -np.inf
        assert numbers(found).tolist() == np.argsort(-scores, kind="stable")[:10].tolist()

    def test_one_word_beside_several(self, vectors):
        model = model_of(vectors)
        found, _ = model.analogy("w1", ["w2", "w3"], "w4", 2)
        assert found.tolist() == [model.analogy("w1", b, "w4", 2)[0].tolist() for b in ("w2", "w3")]

    def test_what_is_refused(self, vectors):
        model = model_of(vectors)
        with pytest.raises(ValueError, match=r"^Words.analogy: c must be among .*Got 'x'"):
            model.analogy("w1", "w2", "x")
        with pytest.raises(ValueError, match=r"a, b, c must have equal lengths. Got 1, 2, 3"):
            model.analogy("w1", ["w1"] * 2, ["w1"] * 3)
        with pytest.raises(ValueError, match=r"^Words.analogy: k must be an integer"):
            model.analogy("w1", "w2", "w3", 0)


class TestAgreementWithPeople:
    def test_spearman(self, vectors):
        model, units = model_of(vectors), units_of(vectors)
        random = np.random.default_rng(4)
        a, b = random.integers(0, 70, (2, 200))  # some are unknown
        scores = random.integers(0, 11, 200)  # some are equal
        is_known = (a < 60) & (b < 60)
        cosines = (units[a[is_known]] * units[b[is_known]]).sum(axis=1).round(12)
        expected = np.corrcoef(rankdata(cosines), rankdata(scores[is_known]))[0, 1]
        words = [f"w{i}" for i in a], [f"w{i}" for i in b]
        for of in (model, (model.words_, model.vectors_), (list(model.words_), vectors.tolist())):
            rho, n_used = spearman_of_pairs(of, *words, scores)
            assert rho == pytest.approx(expected, abs=1e-12)
            assert n_used == is_known.sum()

    def test_spearman_of_too_little(self, vectors):
        model = model_of(vectors)
        assert spearman_of_pairs(model, [], [], []) == (pytest.approx(math.nan, nan_ok=True), 0)
        rho, n_used = spearman_of_pairs(model, ["w1", "x"], ["w2", "w3"], [1, 2])
        assert (math.isnan(rho), n_used) == (True, 1)
        rho, n_used = spearman_of_pairs(model, ["w1", "w1"], ["w2", "w3"], [2, 2])
        assert (math.isnan(rho), n_used) == (True, 2)

    def test_analogies(self, vectors):
        model = model_of(vectors)
        random = np.random.default_rng(5)
        questions = [random.choice(60, 3, replace=False).tolist() for _ in range(40)]
        answers = [brute_force(vectors, [b, c], [a], 1)[0][0] for a, b, c in questions]
        answers[::4] = [questions[i][0] for i in range(0, 40, 4)]  # wrong, as they are excluded
        asked = [[f"w{i}" for i in (*q, d)] for q, d in zip(questions, answers, strict=True)]
        asked += [["w1", "w2", "w3", "x"], ["x", "w2", "w3", "w4"]]
        for of in (model, (model.words_, vectors)):
            assert analogy_accuracy(of, asked) == (0.75, 40)
            assert analogy_accuracy(of, np.array(asked)) == (0.75, 40)
        accuracy, n_used = analogy_accuracy(model, [["x"] * 4])
        assert (math.isnan(accuracy), n_used) == (True, 0)
        assert analogy_accuracy((["a", "b", "c"], np.eye(3)), [["a", "b", "c", "a"]]) == (0.0, 1)

    def test_what_is_refused(self, vectors):
        model = model_of(vectors)
        with pytest.raises(ValueError, match=r"questions must have shape \(n, 4\). Got .*\(1, 3\)"):
            analogy_accuracy(model, [["w1", "w2", "w3"]])
        with pytest.raises(TypeError, match=r"model must be fitted and .*Got Words"):
            analogy_accuracy(Words(), [["w1"] * 4])
        with pytest.raises(ValueError, match=r"words must be distinct. Got 'a' at entries 0 and 1"):
            analogy_accuracy((["a", "a"], np.eye(2)), [["a"] * 4])
        with pytest.raises(
            ValueError, match=r"vectors must be an array .*\(1, dim\). Got .*\(2, 2\)"
        ):
            spearman_of_pairs((["a"], np.eye(2)), ["a"], ["a"], [1])
        with pytest.raises(ValueError, match=r"a and b must have the same shape"):
            spearman_of_pairs(model, ["w1"], ["w1", "w2"], [1])
        with pytest.raises(ValueError, match=r"scores has shape \(2,\), expected \(1,\)"):
            spearman_of_pairs(model, ["w1"], ["w2"], [1, 2])
        with pytest.raises(TypeError, match=r"a must be an array of words. Got the single"):
            spearman_of_pairs(model, "w1", ["w2"], [1])
