"""Encoders of a user's own: those that keep to the protocol, and those that do not."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from sklearn_xc.embedding.encoders import BagOfEmbeddings


class Own(BaseEstimator):
    """A bag of embeddings whose answers are changed by a function, from a number of calls on."""

    def __init__(self, of_encode=None, of_forward=None, after=0):
        self.of_encode = of_encode
        self.of_forward = of_forward
        self.after = after

    def start(self, inputs, dim, seed):
        self.bag_, self.n_encoded_, self.n_passes_ = BagOfEmbeddings(), 0, 0
        self.bag_.start(inputs, dim, seed)

    def encode(self, inputs, n_jobs=None):
        V = self.bag_.encode(inputs, n_jobs)
        self.n_encoded_ += 1
        is_due = self.of_encode is not None and self.n_encoded_ > self.after
        return self.of_encode(V) if is_due else V

    def forward(self, inputs, rng, n_jobs=None):
        own = self.bag_.forward(inputs, rng)
        self.n_passes_ += 1
        is_due = self.of_forward is not None and self.n_passes_ > self.after
        return SimpleNamespace(V=self.of_forward(own.V) if is_due else own.V, own=own)

    def learn(self, passed, gradient, rate, n_jobs=None):
        assert gradient.dtype == self.bag_.embeddings_.dtype
        self.bag_.learn(passed.own, gradient, rate, n_jobs)


SHAPES = {
    "narrow": (lambda V: V[:, :5], r"array of floats of shape \(\d+, 12\). Got ndarray float64 of"),
    "list": (lambda V: V.tolist(), r"array of floats of shape .*. Got list of shape \(\d+, 12\)"),
    "integers": (lambda V: V.astype(int), r"array of floats of shape .*. Got ndarray int64 of"),
}


class TestTheProtocol:
    @pytest.mark.parametrize(
        ("which", "of", "scale"),
        [
            ("of_encode", "encode of", 0.99),
            ("of_encode", "encode of", np.nan),
            ("of_forward", "V of forward of", 30.0),
            ("of_forward", "V of forward of", np.inf),
        ],
    )
    def test_norms(self, which, of, scale, make, documents):
        X, Y, Z = documents

        def scaled(V):
            return V * np.where(np.arange(len(V)) == 7, scale, 1)[:, None]

        model = make(encoder=Own(**{which: scaled}), label_features=Z)
        advice = "divide rows" if np.isfinite(scale) else "values are too large, or training div"
        message = f"{of} encoder Own must return rows of norm 1, .* in row 7: {advice}"
        with pytest.raises(ValueError, match=f"NGAMEEmbeddingXC: {message}"):
            model.fit(X, Y)
        assert not [name for name in vars(model) if name.endswith("_")]

    @pytest.mark.parametrize("which", SHAPES)
    def test_answers(self, which, trained, documents):
        """The encoder of a fitted model goes wrong."""
        X, Y, Z = documents
        model = copy.deepcopy(trained)
        model.encoder_.of_encode, message = SHAPES[which]
        for call in (
            lambda: model.predict(X),
            lambda: model.decision_function(X),
            lambda: model.embed(X),
            lambda: model.add_labels(label_features=Z[:3]),
            lambda: model.fit(X, Y),
        ):
            model.encoder = Own(SHAPES[which][0])
            with pytest.raises(ValueError, match=f"encode of encoder Own must return an {message}"):
                call()


@pytest.fixture(scope="module")
def trained(make, documents):
    """Return a model that no test may change."""
    X, Y, Z = documents
    return make(encoder=Own(), label_features=Z, validation_fraction=0.3).fit(X, Y)
