"""Vectors of words, what the defaults are, what a file holds, what is printed."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import MultiLabelBinarizer

# A label of the common data has no instance.
pytestmark = pytest.mark.filterwarnings("ignore:.*have no training instance")

TOPICS = {
    "sea": "wave ship sail harbour salt",
    "wood": "tree leaf bark moss root",
    "city": "street tram house lamp square",
    "sky": "cloud bird wind sun star",
}


@pytest.fixture
def xy(xy):
    """Drop the label that every instance has: it makes precision@1 perfect."""
    X, Y = xy
    return X, Y[:, [j for j in range(15) if j != 7]]


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    labels = [rng.choice(list(TOPICS), rng.integers(1, 3), replace=False) for _ in range(80)]
    documents = [
        " ".join(rng.choice(" ".join(TOPICS[label] for label in row).split(), 12)) for row in labels
    ]
    return documents, labels


class TestPipelines:
    def test_documents_and_words_have_vectors(self, make, texts):
        """Documents are sums of their words' vectors; words of one topic lie together."""
        documents, labels = texts
        Y = MultiLabelBinarizer(sparse_output=True).fit_transform(labels)
        vectorizer = TfidfVectorizer(dtype=np.float32)
        X = vectorizer.fit_transform(documents)
        model = make(embedding_dim=20, max_iter=30).fit(X, Y)
        vectors = model.embed(vectorizer.transform(documents[:9]))
        assert vectors.shape == (9, 20)
        np.testing.assert_allclose(vectors, (X[:9] @ model.feature_embedding_), atol=1e-5)
        words = {word: model.feature_embedding_[k] for word, k in vectorizer.vocabulary_.items()}
        sums = {name: sum(words[w] for w in text.split()) for name, text in TOPICS.items()}
        own = [words[w] @ sums[t] for t, text in TOPICS.items() for w in text.split()]
        other = [
            words[w] @ sums[s]
            for t, text in TOPICS.items()
            for w in text.split()
            for s in TOPICS
            if s != t
        ]
        assert np.mean(own) > np.mean(other) + 3 * np.std(other)


def value_of(model, name):
    """Return an attribute; of what training did, the losses: seconds differ."""
    return model.fit_report_["loss"] if name == "fit_report_" else getattr(model, name)


class TestProgress:
    def test_a_line_for_the_first_and_the_last_epoch(self, make, xy, capsys):
        model = make(verbose=1, gradient="mips", index="exact").fit(*xy)
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith("[DecompMIPSClassifier] epoch 1 of 3: loss ")
        assert f"epoch 3 of 3: loss {model.fit_report_['loss'][-1]:.4g}, recall@10 of" in lines[-1]
