"""``candidates`` and ``exclude`` by name, around foreign classifiers and inside others."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from sklearn_xc import (
    OvALinearXC,
    SoftmaxUMax,
    TextClassifierXC,
    TopKCalibrator,
    topk,
    topk_names,
)

TEXTS = [
    "how to freeze a clear soup",
    "freezing bread dough",
    "a clear soup stock",
    "rye bread",
    "rye bread dough",
    "stock of bones",
    "freezing stock",
    "bread with soup",
]
TAGS = [
    ["freezing", "soup"],
    ["bread", "freezing"],
    ["soup", "stock"],
    ["bread", "rye"],
    ["bread", "rye"],
    ["stock"],
    ["freezing", "stock"],
    ["bread", "soup"],
]
NAMES = ["bread", "freezing", "rye", "soup", "stock"]


@pytest.fixture(scope="module")
def tagger():
    return TextClassifierXC(classifier=OvALinearXC()).fit(TEXTS, TAGS)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6))
    Y = (rng.random((40, 5)) < 0.4).astype(int)
    Y[:5] = np.eye(5, dtype=int)
    return X, Y


def first_of(lists, allowed, k):
    return [[one for one in row if one in own][:k] for row, own in zip(lists, allowed, strict=True)]


def test_tags_that_an_item_has_are_not_suggested(tagger):
    everything = topk_names(tagger, TEXTS, 5)
    expected = first_of(everything, [set(NAMES) - set(own) for own in TAGS], 3)
    assert topk_names(tagger, TEXTS, 3, exclude=TAGS) == expected
    assert topk_names(tagger, TEXTS, 3, exclude=tagger.encode_targets(TAGS)) == expected
    assert topk_names(tagger, TEXTS, 3, exclude=[set(own) for own in TAGS]) == expected
    labels, _ = tagger.predict_topk(TEXTS, 3, exclude=TAGS)
    assert [[NAMES[i] for i in row if i >= 0] for row in labels] == expected


def test_one_list_is_for_all(tagger):
    everything = topk_names(tagger, TEXTS, 5)
    expected = first_of(everything, [["rye", "soup"]] * 8, 5)
    for some in (
        ["soup", "rye"],
        ("rye", "soup", "rye"),
        np.array(["rye", "soup"]),
        pd.Series(["soup", "rye"]),
        {"soup", "rye"},
    ):
        assert topk_names(tagger, TEXTS, 5, candidates=some) == expected
        assert topk_names(tagger, TEXTS, 5, candidates=[some] * 8) == expected
    assert topk_names(tagger, TEXTS, 5, candidates=[]) == [[]] * 8
    assert topk_names(tagger, TEXTS, 5, exclude=[]) == everything


def test_names_that_are_given_name_candidates(data):
    X, Y = data
    model, letters = OvALinearXC().fit(X, Y), list("abcde")
    expected = first_of(topk_names(model, X, 5, names=letters), [["b", "d"]] * 40, 5)
    assert topk_names(model, X, 5, names=letters, candidates=["d", "b"]) == expected
    numbers = first_of(topk_names(model, X, 5), [[1, 3]] * 40, 5)
    assert topk_names(model, X, 5, candidates=[[3, 1]] * 40) == numbers
    with pytest.raises(ValueError, match=r"topk_names: candidates must be .* Got 1\."):
        topk_names(model, X, names=letters, candidates=[1])


def foreign_models(X, Y):
    classes = np.array(["x", "y", "z", "u", "v"])[Y.argmax(axis=1)]
    yield LogisticRegression().fit(X, classes)
    yield RandomForestClassifier(5, random_state=0).fit(X, Y)
    yield OneVsRestClassifier(LogisticRegression()).fit(X, Y)
    yield make_pipeline(MaxAbsScaler(), OvALinearXC()).fit(X, Y)
    yield GridSearchCV(OvALinearXC(), {"C": [0.5, 1.0]}, cv=2).fit(X, Y)
    yield LogisticRegression().fit(X, classes == "y")


def test_around_other_classifiers(data):
    X, Y = data
    for model in foreign_models(X, Y):
        labels, scores = topk(model, X, 5)
        n_labels = int(labels.max()) + 1
        allowed = np.random.default_rng(1).random((40, n_labels)) < 0.5
        for arguments in ({"candidates": sp.csr_array(allowed)}, {"exclude": ~allowed}):
            found, values = topk(model, X, 3, **arguments)
            for i in range(40):
                own = [
                    (one, s)
                    for one, s in zip(labels[i], scores[i], strict=True)
                    if one >= 0 and allowed[i, one]
                ][:3]
                own += [(-1, -np.inf)] * (3 - len(own))
                assert found[i].tolist() == [one for one, _ in own]
                np.testing.assert_allclose(values[i], [s for _, s in own])


def test_bad_names(tagger):
    for arguments, match in (
        ({"exclude": ["sooup"]}, r"exclude must be members of .* such as 'bread'. Got 'sooup'\."),
        ({"exclude": TAGS[:3]}, "a list of names for each of 8 instances. Got 3"),
        ({"exclude": [["soup"], "rye"]}, "names for all instances, or a list of names for each"),
        ({"exclude": [["soup"]] * 7 + [[["rye"]]]}, r"Got \['rye'\]"),
        ({"candidates": TAGS, "exclude": ["soup"]}, "must not be given together"),
        ({"candidates": pd.DataFrame(np.ones((8, 5)), columns=NAMES[::-1])}, "columns of classes_"),
    ):
        for ask, who in ((topk_names, "topk_names"), (type(tagger).predict_topk, "TextClass")):
            with pytest.raises(ValueError, match=rf"^{who}.*{match}"):
                ask(tagger, TEXTS, 3, **arguments)
    with_unknown = [[*own, "never heard of"] for own in TAGS]
    for ask in (topk_names, type(tagger).predict_topk):
        found, expected = (ask(tagger, TEXTS, 3, exclude=own) for own in (with_unknown, TAGS))
        assert np.array_equal(found, expected) if ask is not topk_names else found == expected
    frame = pd.DataFrame(np.eye(5)[[3] * 8], columns=NAMES)
    assert topk_names(tagger, TEXTS, 3, candidates=frame) == [["soup"]] * 8


def test_probabilities_by_name(data):
    X, Y = data
    calibrated = TopKCalibrator(OvALinearXC(), n_groups=1, random_state=0).fit(X, Y)
    labels, chances = calibrated.predict_proba_topk(X, 3)
    found = topk_names(calibrated, X, 3, return_probabilities=True)
    assert (np.diff(chances, axis=1) > 0).any()  # of scores that fall
    expected = [list(zip(*both, strict=True)) for both in zip(labels, chances, strict=True)]
    assert found == [sorted(row, key=lambda pair: -pair[1]) for row in expected]
    softmax = SoftmaxUMax(learning_rate=0.1, max_iter=2, random_state=0).fit(X, Y)
    forest = RandomForestClassifier(5, random_state=0).fit(X, Y)
    dense = softmax.predict_proba(X)
    of_forest = np.column_stack([one[:, -1] for one in forest.predict_proba(X)])
    for model, all_chances in ((softmax, dense), (forest, of_forest)):
        for row, own in enumerate(
            topk_names(model, X, 2, return_probabilities=True, exclude=[0, 2])
        ):
            assert len(own) == 2
            for name, chance in own:
                assert chance == pytest.approx(all_chances[row, name])
    few = SoftmaxUMax(learning_rate=0.1, max_iter=2, random_state=0, top_k=2)
    few.fit(X, sp.csr_array(Y))
    for row, own in enumerate(topk_names(few, X, 3, return_probabilities=True)):
        assert np.isnan(own[2][1])
        assert own[0][1] == pytest.approx(few.predict_proba(X)[[row]].max())


CELLS = [" ; ".join(own) for own in TAGS]


@pytest.fixture(scope="module")
def of_cells():
    return TextClassifierXC(classifier=OvALinearXC(), separator=";").fit(TEXTS, CELLS)


class TestTextsOfSeveralNames:
    """What ``fit`` takes with a separator, as a column beside the texts."""

    @pytest.mark.parametrize("argument", ["candidates", "exclude"])
    def test_each_is_split_as_in_fit(self, argument, of_cells):
        for column, own in (
            (CELLS, TAGS),
            (np.array(CELLS), TAGS),
            (pd.Series(CELLS, index=range(5, 13)), TAGS),
            (["soup;bread;", *CELLS[1:]], [["soup", "bread"], *TAGS[1:]]),
            (["", None, np.nan, *CELLS[3:]], [[], [], [], *TAGS[3:]]),
            ([*CELLS[:4], *TAGS[4:]], TAGS),
            ([None, *TAGS[1:]], [[], *TAGS[1:]]),
        ):
            expected = topk_names(of_cells, TEXTS, 5, **{argument: own})
            assert topk_names(of_cells, TEXTS, 5, **{argument: column}) == expected
            inside = make_pipeline(of_cells)
            assert topk_names(inside, TEXTS, 5, **{argument: column}) == expected
            labels, _ = of_cells.predict_topk(TEXTS, 5, **{argument: column})
            assert [[NAMES[i] for i in row if i >= 0] for row in labels] == expected

    def test_unknown_names_may_be_excluded_only(self, of_cells):
        cells = [f"{cell};umami" for cell in CELLS]
        expected = topk_names(of_cells, TEXTS, 5, exclude=TAGS)
        assert topk_names(of_cells, TEXTS, 5, exclude=cells) == expected
        with pytest.raises(ValueError, match=r"candidates must be members of .* Got 'umami'\."):
            topk_names(of_cells, TEXTS, 5, candidates=cells)

    def test_single_names_are_for_all_but_in_a_column_beside_x(self, of_cells):
        one = [own[0] for own in TAGS]
        table = pd.DataFrame({"text": TEXTS, "tag": one}, index=range(3, 11))
        everything = topk_names(of_cells, TEXTS, 5)
        of_each = first_of(everything, [[name] for name in one], 5)
        for_all = first_of(everything, [set(one)] * 8, 5)
        assert topk_names(of_cells, table["text"], 5, candidates=table["tag"]) == of_each
        for some in (one, table["tag"], table["tag"].iloc[:3]):
            among = for_all if len(some) == 8 else first_of(everything, [set(some)] * 8, 5)
            assert topk_names(of_cells, TEXTS, 5, candidates=some) == among
