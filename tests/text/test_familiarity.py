"""Texts unlike those of the training: measured against a loop, warned of, and only then."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from sklearn_xc import NGAMEEmbeddingXC, OvALinearXC, TextClassifierXC, topk
from sklearn_xc.exceptions import UnfamiliarTextWarning
from sklearn_xc.preprocessing import LabelBinarizerXC
from sklearn_xc.text.familiarity import KnownWords

#: Words of two languages, frequent ones first.
ENGLISH = [f"en{i}" for i in range(400)]
GERMAN = [f"de{i}" for i in range(400)]


def texts_of(words, n, seed=0):
    """Return n texts in which a word is the rarer the later it stands."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(3, len(words) + 3)
    return [
        " ".join(rng.choice(words, rng.integers(5, 12), p=share / share.sum())) for _ in range(n)
    ]


TRAIN = texts_of(ENGLISH, 300)
LABELS = [["a"] if "en1 " in text else ["b"] for text in TRAIN]
HELD_OUT, FOREIGN = texts_of(ENGLISH, 250, 1), texts_of(GERMAN, 250, 1)


@pytest.fixture(scope="module")
def tagger():
    return TextClassifierXC(classifier=OvALinearXC(prune=0)).fit(TRAIN, LABELS)


def no_warning(function, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return function(*arguments)


def by_leaving_out(texts, row, min_df=1):
    """Return the share of a text's words that a vectorizer of the other texts would know."""
    vectorizer = CountVectorizer(min_df=min_df).fit(texts[:row] + texts[row + 1 :])
    words = set(texts[row].split())
    return np.mean([word in vectorizer.vocabulary_ for word in words])


@given(
    st.lists(st.lists(st.sampled_from(["aa", "bb", "cc", "dd", "ee"]), min_size=1, max_size=5),
             min_size=4, max_size=8),
    st.sampled_from([1, 2]),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_what_is_usual_is_found_by_leaving_each_text_out(rows, min_df):
    texts = [" ".join([*row, "aa", "bb"]) for row in rows]  # some words stay in any case
    vectorizer = CountVectorizer(min_df=min_df)
    known = KnownWords.of_fit(vectorizer, texts, vectorizer.fit_transform(texts))
    expected = np.mean([by_leaving_out(texts, row, min_df) for row in range(len(texts))])
    assert known.usual_known == pytest.approx(expected)


def test_known_words_scores_and_ranks(tagger):
    texts = ["en0 en1 strange", "strange words", "", "en0 en0 en1"]
    found = tagger.familiarity(texts)
    np.testing.assert_allclose(found.known, [2 / 3, 0, np.nan, 1])
    n = [sum(word in text.split() for text in TRAIN) for word in ("en0", "en1")]
    both = np.log1p(n).sum() / np.log1p(300)
    np.testing.assert_allclose(found.score, [both / 3, 0, np.nan, both / 2])
    assert found.rank[1] < 0.01
    assert np.isnan(found.rank[2])
    assert found.rank[3] > 0.9
    assert 0.9 < found.usual_known < 1
    assert repr(found).startswith("Familiarity of 4 texts: 56% of their words are known (usual: 9")
    assert repr(tagger.familiarity([""])) == "Familiarity of 1 texts, none with words"


def test_ranks_of_held_out_texts_are_those_of_any_texts(tagger):
    rank = tagger.familiarity(HELD_OUT).rank
    # Uniform on [0, 1]; the deviation of a mean of 250 is 0.018.
    assert abs(rank.mean() - 0.5) < 0.07
    assert np.all(tagger.familiarity(FOREIGN).rank < 0.01)


@pytest.mark.parametrize("method", ["predict", "predict_topk", "decision_function"])
def test_a_strange_batch_is_warned_of(tagger, method):
    ask = getattr(tagger, method)
    with pytest.warns(UnfamiliarTextWarning, match="0% of their words are known .* 9.% are usual"):
        ask(FOREIGN)
    no_warning(ask, HELD_OUT)
    no_warning(ask, TRAIN)
    no_warning(ask, FOREIGN[:6])  # too few for a verdict
    no_warning(ask, [""] * 50)
    no_warning(ask, HELD_OUT[:180] + FOREIGN[:20])
    with pytest.warns(UnfamiliarTextWarning):
        ask(FOREIGN[:7])


def test_the_warning_points_to_who_asked(tagger):
    with pytest.warns(UnfamiliarTextWarning) as caught:
        tagger.predict(FOREIGN)
    assert caught[0].filename == __file__


def test_texts_of_rare_words_are_warned_of_in_other_words(tagger):
    is_in = [sum(word in text.split() for text in TRAIN) for word in ENGLISH]
    words = [word for word, n in zip(ENGLISH, is_in, strict=True) if 2 <= n <= 5]
    rare = [" ".join(words[i : i + 5]) for i in range(40)]
    with pytest.warns(UnfamiliarTextWarning, match=r"their words are known, but are rare in the"):
        tagger.predict(rare)


def test_containers_copies_and_older_models(tagger):
    for texts in (np.array(FOREIGN), tuple(FOREIGN)):
        with pytest.warns(UnfamiliarTextWarning):
            tagger.predict(texts)
    copied = pickle.loads(pickle.dumps(tagger))
    with pytest.warns(UnfamiliarTextWarning):
        topk(copied, FOREIGN, 1)
    again = clone(tagger).fit(TRAIN, LABELS)
    np.testing.assert_array_equal(
        again.familiarity(HELD_OUT).rank, copied.familiarity(HELD_OUT).rank
    )
    del copied.__dict__["_known_words"]  # as in a model of an earlier version
    no_warning(copied.predict, FOREIGN)
    with pytest.raises(AttributeError, match="familiarity needs a vectorizer with a vocabulary"):
        copied.familiarity(FOREIGN)


@pytest.mark.parametrize(
    "vectorizer",
    [
        CountVectorizer(), TfidfVectorizer(min_df=3), TfidfVectorizer(min_df=0.01, norm=None),
        CountVectorizer(analyzer="char_wb", ngram_range=(1, 3)), CountVectorizer(binary=True),
        CountVectorizer(vocabulary=ENGLISH), CountVectorizer(analyzer=str.split),
    ],
    ids=lambda one: f"{type(one).__name__}, {one.analyzer}, {one.min_df}",
)  # fmt: skip
def test_other_vectorizers_of_words(vectorizer):
    tagger = TextClassifierXC(vectorizer, OvALinearXC(prune=0)).fit(TRAIN, LABELS)
    with pytest.warns(UnfamiliarTextWarning):
        tagger.predict(FOREIGN)
    no_warning(tagger.predict, HELD_OUT)


@pytest.mark.parametrize(
    "vectorizer",
    [HashingVectorizer(n_features=2**10), make_pipeline(TfidfVectorizer(), Normalizer())],
    ids=["hashing", "pipeline"],
)
def test_vectorizers_without_a_vocabulary_are_passed_over(vectorizer):
    tagger = TextClassifierXC(vectorizer, OvALinearXC(prune=0)).fit(TRAIN, LABELS)
    no_warning(tagger.predict, FOREIGN)
    with pytest.raises(AttributeError, match=r"familiarity needs .* Got (Hashing|Pipeline)"):
        tagger.familiarity(FOREIGN)


def test_what_is_no_text_is_refused(tagger):
    with pytest.raises(ValueError, match="X must be a list of texts"):
        tagger.familiarity("en0")
    with pytest.raises(ValueError, match=r"X must hold texts\. Got 3 in row 1"):
        tagger.familiarity(["en0", 3])


TAGS = ["soup;bread" if i % 2 else "ale;soup;cake" for i in range(60)]
TEXTS = [f"how do I cook number {i} of these in a pan" for i in range(60)]


class TestSwappedColumns:
    @pytest.mark.parametrize("form", ["separator", "lists", "classes", "series"])
    def test_texts_for_labels_are_refused(self, form):
        separator = ";" if form == "separator" else None
        texts = [[text] for text in TEXTS] if form == "lists" else TEXTS
        texts = pd.Series(texts, index=range(9, 69)) if form == "series" else texts
        says = (
            r"^TextClassifierXC: y must hold labels.* X and y seem to be swapped: .* Got .*: 100% "
            r"of it is in one row alone, such as 'how do I cook number 0 .*LabelBinarizerXC\(\)"
        )
        with pytest.raises(ValueError, match=says):
            TextClassifierXC(separator=separator).fit(TAGS, texts)

    def test_labels_that_are_meant_pass_as_an_indicator(self):
        Y = LabelBinarizerXC().fit_transform([[text] for text in TEXTS])
        no_warning(TextClassifierXC(classifier=OvALinearXC(prune=0)).fit, TAGS, Y)

    def test_labels_with_texts_of_their_own_are_warned_of(self):
        model = TextClassifierXC(
            classifier=NGAMEEmbeddingXC(max_iter=1, classifier_max_iter=1, random_state=0),
            label_texts={text: text for text in TEXTS},
        )
        with pytest.warns(UserWarning, match=r"X and y seem to be swapped: almost every row has"):
            model.fit(TAGS, [[text] for text in TEXTS])

    def test_rows_beyond_the_first_are_looked_at_before_it_is_certain(self, monkeypatch):
        monkeypatch.setattr("sklearn_xc.text.swapped_columns._N_LOOKED_AT", 30)
        with pytest.warns(UserWarning, match=r"X and y seem to be swapped: almost every row has"):
            TextClassifierXC(classifier=OvALinearXC(prune=0)).fit(TAGS, 2 * TEXTS[:30])
        with pytest.raises(ValueError, match="y must hold labels"):
            TextClassifierXC().fit(TAGS, TEXTS)

    def test_with_a_separator(self):
        titles = [f"dish {i % 3}" for i in range(60)]
        with pytest.warns(UserWarning, match=r"X and y seem to be swapped: ';' stands between"):
            TextClassifierXC(separator=";").fit(TAGS, titles)

    def test_the_right_way_round(self):
        no_warning(TextClassifierXC(separator=";").fit, TEXTS, TAGS)
        lists = [tags.split(";") for tags in TAGS]
        no_warning(TextClassifierXC().fit, TEXTS, lists)
        classes = [tags[:3] for tags in TAGS]
        no_warning(TextClassifierXC(classifier=OvALinearXC(prune=0)).fit, TEXTS, classes)
        rare = [[f"a tag of its own {i}"] for i in range(60)]  # shorter than the texts
        no_warning(TextClassifierXC(classifier=OvALinearXC(prune=0)).fit, TEXTS, rare)

    def test_an_iterator_of_names_is_read_once(self):
        tagger = TextClassifierXC(separator=";").fit(TEXTS, iter(TAGS))
        assert tagger.classes_.tolist() == ["ale", "bread", "cake", "soup"]


@pytest.mark.parametrize(("given", "real"), [(",", ";"), (";", ","), (";", "|"), (",", "\t")])
def test_another_separator_than_that_of_the_data(given, real):
    y = [f"soup{real}bread", f"ale{real}soup", "cake"] * 10
    texts = TRAIN[:30]
    with pytest.warns(UserWarning, match=rf"no row holds the separator '{given}', .* pass separ"):
        TextClassifierXC(separator=given).fit(texts, y)
    no_warning(TextClassifierXC(separator=real).fit, texts, y)
    single = ["soup", "bread", "ale and cake"] * 10
    no_warning(TextClassifierXC(separator=given).fit, texts, single)
