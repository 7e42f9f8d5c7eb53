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
    "few": (
        lambda V: V[:-1],
        r"array of floats of shape \(\d+, 12\). Got ndarray float64 of shape",
    ),
    "flat": (
        lambda V: V.ravel(),
        r"array of floats of shape \(\d+, 12\). Got ndarray float64 of s",
    ),
    "list": (lambda V: V.tolist(), r"array of floats of shape .*. Got list of shape \(\d+, 12\)"),
    "integers": (
        lambda V: V.astype(int),
        r"array of floats of shape .*. Got ndarray int64 of shape",
    ),
    "complex": (lambda V: V * 1j, r"array of floats of shape .*. Got ndarray complex128 of shape"),
    "none": (lambda V: None, r"array of floats of shape .*. Got NoneType of shape \(\)"),
}


class TestTheProtocol:
    @pytest.mark.parametrize("change", [
        np.asfortranarray, lambda V: V.astype(np.float32), lambda V: V.astype(np.float16),
        lambda V: V.astype(np.longdouble), lambda V: np.repeat(V, 2, axis=1)[:, ::2],
    ], ids=["Fortran", "float32", "float16", "longdouble", "strided"])  # fmt: skip
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_all_arrays_of_floats_will_do(self, dtype, change, make, documents):
        X, Y, Z = documents
        few = {"max_iter": 1, "classifier_max_iter": 1, "validation_fraction": 0.3}
        model = make(encoder=Own(change, change), label_features=Z, **few)
        model.fit(X.astype(dtype), Y).add_labels(label_features=Z[:2])
        assert model.coef_.dtype == model.label_embeddings_.dtype == dtype
        _, scores = model.predict_topk(X.astype(dtype), 5)
        assert np.isfinite(scores).all()
        assert scores.dtype == dtype
        assert model.embed(X).dtype == dtype

    @pytest.mark.parametrize("scale", [0.99, 30.0, np.nan, np.inf])
    @pytest.mark.parametrize(
        ("which", "of"), [("of_encode", "encode of"), ("of_forward", "V of forward of")]
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

    def test_the_dimension_is_that_of_fit(self, trained, documents):
        expected = trained.embed(documents.X)
        model = copy.deepcopy(trained).set_params(embedding_dim=5)
        np.testing.assert_array_equal(model.embed(documents.X), expected)


@pytest.fixture(scope="module")
def trained(make, documents):
    """Return a model that no test may change."""
    X, Y, Z = documents
    return make(encoder=Own(), label_features=Z, validation_fraction=0.3).fit(X, Y)
