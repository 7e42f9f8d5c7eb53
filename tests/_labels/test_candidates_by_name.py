"""``candidates`` and ``exclude`` by name, around foreign classifiers and inside others."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
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
    column = pd.Series([";".join(own) for own in TAGS])
    assert topk_names(tagger, TEXTS, 3, exclude=column.str.split(";")) == expected
    labels, _ = tagger.predict_topk(TEXTS, 3, exclude=TAGS)
    assert [[NAMES[i] for i in row if i >= 0] for row in labels] == expected


def test_one_list_is_for_all(tagger):
    everything = topk_names(tagger, TEXTS, 5)
    expected = first_of(everything, [["rye", "soup"]] * 8, 5)
    for some in (("rye", "soup", "rye"), pd.Series(["soup", "rye"]), {"soup", "rye"}):
        assert topk_names(tagger, TEXTS, 5, candidates=some) == expected
        assert topk_names(tagger, TEXTS, 5, candidates=[some] * 8) == expected
    assert topk_names(tagger, TEXTS, 5, candidates=[]) == [[]] * 8
    assert topk_names(tagger, TEXTS, 5, exclude=[]) == everything


def foreign_models(X, Y):
    classes = np.array(["x", "y", "z", "u", "v"])[Y.argmax(axis=1)]
    yield LogisticRegression().fit(X, classes)
    yield RandomForestClassifier(5, random_state=0).fit(X, Y)
    yield OneVsRestClassifier(LogisticRegression()).fit(X, Y)
    yield make_pipeline(MaxAbsScaler(), OvALinearXC()).fit(X, Y)
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
