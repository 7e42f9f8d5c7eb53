"""An encoder of texts from outside the package, and small texts with labels for it."""

from types import SimpleNamespace
from zlib import crc32

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from sklearn_xc import LabelFeatures, NGAMEEmbeddingXC
from sklearn_xc._state.checkpoints import restore
from sklearn_xc.embedding.samplers import NgameSampler

NAMES = ["apple", "pear", "plum", "car", "train", "ship", "cat", "dog"]
TOPICS = ["fruit ripe"] * 3 + ["wheels road"] * 3 + ["fur paws"] * 2
FILLERS = ["the", "a", "one", "my", "your", "old", "new", "red", "green", "small"]


class HashedWords(BaseEstimator):
    """Encoder of texts: the mean of trained vectors of hashed words, by plain gradient steps."""

    reads = "texts"

    def __init__(self, n_buckets=2000, boost=30.0):
        self.n_buckets = n_buckets
        self.boost = boost

    def start(self, inputs, dim, seed):
        assert inputs.dtype == object
        assert all(type(text) is str and text for text in inputs)
        self.vectors_ = np.random.default_rng(seed).normal(size=(self.n_buckets, dim))

    def _kept(self):
        return {"vectors": self.vectors_}

    def _resume(self, found):
        restore(self._kept(), found)

    def _sums(self, inputs):
        words = [[crc32(w.encode()) % self.n_buckets for w in text.split()] for text in inputs]
        return words, np.array([self.vectors_[ids].sum(axis=0) for ids in words])

    def encode(self, inputs, n_jobs=None):
        assert isinstance(inputs, np.ndarray)
        assert "" not in inputs
        _, sums = self._sums(inputs)
        return sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)

    def forward(self, inputs, rng, n_jobs=None):
        words, sums = self._sums(inputs)
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        return SimpleNamespace(V=sums / norms, words=words, norms=norms)

    def learn(self, passed, gradient, rate, n_jobs=None):
        V = passed.V
        along = (gradient - (gradient * V).sum(axis=1, keepdims=True) * V) / passed.norms
        for ids, step in zip(passed.words, along, strict=True):
            np.add.at(self.vectors_, ids, -rate * self.boost * step)


def make_texts(n=320, seed=0):
    """Return texts and their labels: fillers, a word of the topic, and the label's number word."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % len(NAMES)
    texts = [
        " ".join([*rng.choice(FILLERS, 3), rng.choice(TOPICS[k].split()), f"{NAMES[k]}s"])
        for k in y
    ]
    return texts, sp.csr_array(np.eye(len(NAMES), dtype=int)[y])


def make(**parameters):
    own = {
        "encoder": HashedWords(),
        "label_features": LabelFeatures(label_texts()),
        "embedding_dim": 16,
        "sampler": NgameSampler(batch_size=32),
        "max_iter": 5,
        "classifier_max_iter": 2,
        "learning_rate": 0.01,
        "random_state": 0,
        "validation_fraction": 0.2,
    }
    return NGAMEEmbeddingXC(**{**own, **parameters})


def label_texts():
    return [f"{name} {topic}" for name, topic in zip(NAMES, TOPICS, strict=True)]


def answers(model, texts):
    return [part.tobytes() for part in model.predict_topk(texts, 4)]
