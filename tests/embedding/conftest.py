"""What the tests of embeddings share: estimators that train fast, and small documents by topic."""

from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from sklearn_xc import NGAMEEmbeddingXC
from sklearn_xc.embedding.samplers import NgameSampler


class Documents(NamedTuple):
    """Sparse rows of words (n, d) and labels (n, n_labels), and the words of each label."""

    X: sp.csr_array
    Y: sp.csr_array
    Z: sp.csr_array


def _make(**parameters):
    own = {
        "embedding_dim": 12,
        "max_iter": 3,
        "classifier_max_iter": 2,
        "learning_rate": 0.01,
        "n_candidates": 8,
        "sampler": NgameSampler(refresh_interval=2, batch_size=30),
        "validation_fraction": 0.1,
        "random_state": 0,
    }
    return NGAMEEmbeddingXC(**{**own, **parameters})


def _make_documents(
    n=160, n_topics=5, labels_of_topic=4, seed=0, dtype=np.float64, rare=0, n_more=2
):
    """Return documents of one topic each, with one to `n_more` of its labels.

    A topic has 4 words of its own and a label 3, of which its own row consists, and one of the
    topic. The last `rare` labels have no document. Some documents may be equal, labels included.
    """
    rng = np.random.default_rng(seed)
    n_labels = n_topics * labels_of_topic
    n_features = 4 * n_topics + 3 * n_labels
    own_words = 4 * n_topics + np.arange(3 * n_labels).reshape(n_labels, 3)
    topics = np.arange(n_labels) // labels_of_topic
    X, Y = np.zeros((n, n_features)), np.zeros((n, n_labels))
    for i in range(n):
        first = i % (n_labels - rare)
        near = np.flatnonzero(topics[: n_labels - rare] == topics[first])
        more = rng.choice(near, min(rng.integers(0, n_more), len(near)), replace=False)
        for label in {first, *more.tolist()}:
            Y[i, label] = 1
            X[i, rng.choice(own_words[label], 2, replace=False)] += 1
        X[i, 4 * topics[first] + rng.choice(4, 2, replace=False)] += 1
        X[i, rng.choice(4 * n_topics)] += 0.5
    Z = np.zeros((n_labels, n_features))
    np.put_along_axis(Z, own_words, 1.0, axis=1)
    Z[np.arange(n_labels), 4 * topics] = 1
    made = (normalize(values) for values in (X, Z))
    X, Z = (sp.csr_array(values.astype(dtype)) for values in made)
    return Documents(X, sp.csr_array(Y), Z)


def curve(model, module):
    """Return losses and shares of violations of a module, epoch by epoch."""
    report = model.fit_report_
    own = report["module"] == module
    assert report["epoch"][own].tolist() == list(range(1, own.sum() + 1))
    return list(zip(report["loss"][own].tolist(), report["violations"][own].tolist(), strict=True))


@pytest.fixture(scope="session")
def curve_of():
    """Return a function: losses and shares of violations of a module, epoch by epoch."""
    return curve


@pytest.fixture(scope="session")
def make():
    """Return a function that makes an estimator: 12 dimensions, few epochs, random_state 0."""
    return _make


@pytest.fixture(scope="session")
def make_documents():
    """Return a function that makes documents, labels, and the words of the labels."""
    return _make_documents


@pytest.fixture(scope="session")
def documents():
    """Return 160 documents with 20 labels."""
    return _make_documents()


@pytest.fixture(scope="session")
def fitted(documents):
    """Return a model of the documents that no test may change."""
    return _make(label_features=documents.Z, validation_fraction=0.25).fit(*documents[:2])
