"""Encoders of a user's own: those that keep to the protocol, and those that do not."""

import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from sklearn_xc.encoders import BagOfEmbeddings


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


def with_nan(V):
    V = V.copy()
    V[len(V) // 2, 0] = np.nan
    return V


def with_infinity(V):
    V = V.copy()
    V[-1, -1] = -np.inf
    return V


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
        model.fit(X.astype(dtype), Y).partial_fit(X.astype(dtype), Y).add_labels(
            label_features=Z[:2]
        )
        assert model.coef_.dtype == model.label_embeddings_.dtype == dtype
        for component in ("fused", "embedding", "classifier", "features"):
            _, scores = model.predict_topk(X.astype(dtype), 5, component=component)
            assert np.isfinite(scores).all()
            assert scores.dtype == dtype
        assert model.embed(X).dtype == dtype

    @pytest.mark.parametrize("which", SHAPES)
    def test_wrong_shapes(self, which, make, documents):
        X, Y, Z = documents
        change, message = SHAPES[which]
        for own, of in (
            ({"of_encode": change}, "encode"),
            ({"of_forward": change}, "V of forward"),
        ):
            expected = "NGAMEEmbeddingXC: "
            expected += f"{of} of encoder Own" if of == "encode" else f"encoder Own: {of}"
            for after in (0, 1):
                model = make(encoder=Own(**own, after=after), label_features=Z)
                with pytest.raises(ValueError, match=f"{expected} must return an {message}"):
                    model.fit(X, Y)
                assert not [name for name in vars(model) if name.endswith("_")]

    @pytest.mark.parametrize("scale", [0.5, 0.99, 1.01, 30.0])
    @pytest.mark.parametrize(("which", "of", "max_iter"), [
        ("of_encode", "encode of encoder Own", 0), ("of_encode", "encode of encoder Own", 3),
        ("of_forward", "encoder Own: V of forward", 3),
    ])  # fmt: skip
    def test_norms(self, which, of, max_iter, scale, make, documents):
        X, Y, Z = documents

        def scaled(V):
            return V * np.where(np.arange(len(V)) == 7, scale, 1)[:, None]

        model = make(encoder=Own(**{which: scaled}), label_features=Z, max_iter=max_iter)
        message = f"{of} must have rows of norm 1, or 0 .* Got norm {scale:g} in row 7"
        with pytest.raises(ValueError, match=f"NGAMEEmbeddingXC: {message}"):
            model.fit(X, Y)
        assert not [name for name in vars(model) if name.endswith("_")]

    @pytest.mark.parametrize("change", [with_nan, with_infinity])
    def test_no_numbers(self, change, make, documents):
        X, Y, Z = documents
        message = "training diverged at learning_rate=0.01: encoder Own has NaN or infin"
        with pytest.raises(ValueError, match=message):
            make(encoder=Own(change), label_features=Z).fit(X, Y)
        message = "NGAMEEmbeddingXC: encoder Own gives NaN or infinity before it has learnt"
        with pytest.raises(ValueError, match=message):
            make(encoder=Own(of_forward=change), label_features=Z).fit(X, Y)


@pytest.fixture(scope="module")
def trained(make, documents):
    """Return a model that no test may change."""
    X, Y, Z = documents
    return make(encoder=Own(), label_features=Z, validation_fraction=0.3).fit(X, Y)


class TestAnswers:
    """The encoder of a fitted model goes wrong."""

    @pytest.fixture
    def model(self, trained):
        return copy.deepcopy(trained)

    @pytest.mark.parametrize("which", SHAPES)
    def test_wrong_shapes(self, which, model, documents):
        model.encoder_.of_encode, message = SHAPES[which]
        before = model.coef_.copy()
        for call in self.calls(model, documents):
            with pytest.raises(ValueError, match=f"encode of encoder Own must return an {message}"):
                call()
        np.testing.assert_array_equal(model.coef_, before)

    @pytest.mark.parametrize(
        ("change", "row"),
        [(with_nan, "row 80|a row|new label 1"), (with_infinity, "row 159|a row|new label 2")],
    )
    def test_no_numbers(self, change, row, model, documents):
        model.encoder_.of_encode = change
        before = pickle.dumps((model.coef_, model.label_counts_, model.classes_))
        for call in self.calls(model, documents):
            message = rf"encoder Own gives NaN or infinity for ({row})\. Are its values as"
            with pytest.raises(ValueError, match=message):
                call()
        assert pickle.dumps((model.coef_, model.label_counts_, model.classes_)) == before

    def calls(self, model, documents):
        X, Y, Z = documents
        yield from (
            lambda: model.predict(X), lambda: model.predict_topk(X),
            lambda: model.predict_topk(X, 3, component="embedding"),
            lambda: model.decision_function(X),
            lambda: model.embed(X), lambda: model.partial_fit(X, Y),
            lambda: model.add_labels(label_features=Z[:3]), lambda: model.score(X, Y),
        )  # fmt: skip

    def test_the_dimension_is_that_of_fit(self, model, documents):
        expected = model.embed(documents.X)
        model.set_params(embedding_dim=5)
        np.testing.assert_array_equal(model.embed(documents.X), expected)

    @pytest.mark.parametrize("n_jobs", [0, True, 1.5, "two"])
    def test_threads(self, n_jobs, model, documents):
        model.n_jobs = n_jobs
        for call in self.calls(model, documents):
            with pytest.raises((ValueError, TypeError), match="n_jobs"):
                call()
