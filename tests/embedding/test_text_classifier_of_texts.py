"""A TextClassifierXC around a classifier that reads texts itself: by HashedWords, without torch."""

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from text_models import NAMES, HashedWords, make_texts

from sklearn_xc import (
    LabelFeatures,
    NGAMEEmbeddingXC,
    OvALinearXC,
    StackingXC,
    TextClassifierXC,
)

TEXTS, Y = make_texts()
TAGS = [[NAMES[k]] for k in np.argmax(Y.toarray(), axis=1)]


def ngame(**parameters):
    settings = {"max_iter": 3, "classifier_max_iter": 2, "embedding_dim": 16, "random_state": 0}
    return NGAMEEmbeddingXC(HashedWords(), **{**settings, **parameters})


def words():
    return make_pipeline(TfidfVectorizer(dtype=np.float32), OvALinearXC())


@pytest.mark.parametrize("container", [list, pd.Series])
def test_it_is_given_the_texts_and_the_names(container):
    tagger = TextClassifierXC(classifier=ngame()).fit(container(TEXTS), TAGS)
    assert tagger.vectorizer_ is None
    names = sorted(set(NAMES))
    assert tagger.classes_.tolist() == names
    by_hand = ngame(label_features=LabelFeatures(names))
    indicator = tagger.encode_targets(TAGS)
    by_hand.fit(TEXTS, indicator)
    expected = by_hand.predict_topk(TEXTS[:20], 3)
    for one, other in zip(tagger.predict_topk(container(TEXTS[:20]), 3), expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert tagger.score(TEXTS, TAGS) > 0.8
    with pytest.raises(ValueError, match="This classifier reads texts"):
        tagger.explain(TEXTS[0], names[0])


def test_label_texts_stay_texts_and_names_without_one_are_empty():
    given = {"apple": "fruit ripe", "kiwi": "fruit green"}
    tagger = TextClassifierXC(classifier=ngame(), label_texts=given).fit(TEXTS, TAGS)
    known = tagger.classifier_.label_features
    texts = dict(zip(known.classes, known.features, strict=True))
    assert texts == {**dict.fromkeys(NAMES, ""), **given}
    assert "kiwi" in tagger.classes_


def test_of_a_stack_only_members_that_read_texts_are_given_names():
    bag = make_pipeline(
        TfidfVectorizer(dtype=np.float32), NGAMEEmbeddingXC(max_iter=1, classifier_max_iter=1)
    )
    stack = StackingXC(
        [("texts", ngame()), ("bag", bag), ("words", words())], cv=0.3, random_state=0
    )
    tagger = TextClassifierXC(classifier=stack).fit(TEXTS, TAGS)
    members = dict(tagger.classifier_.estimators)
    assert members["texts"].label_features.features == sorted(NAMES)
    assert members["bag"][-1].label_features is None
    assert tagger.score(TEXTS, TAGS) > 0.8
