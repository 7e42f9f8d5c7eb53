"""Weights of words, and a search over C in a pipeline."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer

from sklearn_xc import OvALinearXC


@pytest.fixture
def xy(xy):
    """Drop the label that every instance has: it makes precision@1 perfect."""
    X, Y = xy
    return X, Y[:, [j for j in range(15) if j != 7]]


TOPICS = {
    "sea": "wave ship sail harbour salt",
    "wood": "tree leaf bark moss root",
    "city": "street tram house lamp square",
    "sky": "cloud bird wind sun star",
}


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    labels = [rng.choice(list(TOPICS), rng.integers(1, 3), replace=False) for _ in range(80)]
    documents = [
        " ".join(rng.choice(" ".join(TOPICS[label] for label in row).split(), 12)) for row in labels
    ]
    return documents, labels


@pytest.fixture(scope="module")
def text_model(texts):
    documents, labels = texts
    binarizer = MultiLabelBinarizer(sparse_output=True)
    Y = binarizer.fit_transform(labels)
    pipeline = make_pipeline(TfidfVectorizer(dtype=np.float32), OvALinearXC(prune=0))
    return pipeline.fit(documents, Y), binarizer, Y


def test_explanation_with_the_words_of_a_vectorizer(text_model):
    pipeline, binarizer, _ = text_model
    names = pipeline[0].get_feature_names_out()
    sea = int(np.flatnonzero(binarizer.classes_ == "sea")[0])
    explanation = pipeline[-1].explain(
        pipeline[0].transform(["ship tree salt"]), sea, feature_names=names
    )
    positive = explanation.features[explanation.contributions > 0]
    assert set(positive) == {"ship", "salt"}
