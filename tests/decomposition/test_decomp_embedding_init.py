"""A hidden layer that starts from given vectors of its features."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.frozen import FrozenEstimator

from sklearn_xc import DecompMIPSClassifier, DecompMIPSSkipGram
from sklearn_xc.exceptions import MemoryBudgetError

D, DIM = 30, 6
WORDS = [f"w{j}" for j in range(D)]


@pytest.fixture
def data():
    """Return sparse rows of 30 features, the last of which none has, and classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 200)
    X = (rng.random((200, D)) < 0.08) * rng.random((200, D))
    X[np.arange(200), y] = 1.0
    X[:, -1] = 0.0
    return sp.csr_array(X), y


@pytest.fixture
def vectors():
    """Return a vector for each feature; features 3 and 4 have none."""
    V = np.random.default_rng(1).normal(size=(D, DIM))
    V[[3, 4]] = 0.0
    return V


@pytest.fixture(scope="module")
def skip_gram():
    """Return vectors of the words w0, w1, ... w19, and of others."""
    rng = np.random.default_rng(0)
    sentences = [[f"w{j}" for j in rng.integers(0, 20, 6)] + ["other"] for _ in range(300)]
    return DecompMIPSSkipGram(DIM, subsample=None, max_iter=2, random_state=0).fit(sentences)


def hardly_trained(make, **parameters):
    """Return an estimator whose layer stays where it starts."""
    return make(embedding_dim="auto", max_iter=1, learning_rate=1e-9, average=False, **parameters)


def test_where_it_starts(make, data, vectors):
    model = hardly_trained(make, embedding_init=1e5 * vectors).fit(*data)
    at_random = hardly_trained(make).set_params(embedding_dim=DIM).fit(*data)
    start, usual = model.feature_embedding_, at_random.feature_embedding_
    assert model.embedding_dim_ == DIM
    has_vector = vectors.any(axis=1)
    np.testing.assert_allclose(start[~has_vector], usual[~has_vector], atol=1e-6)
    scale = 0.3 / np.sqrt((vectors[has_vector] ** 2).sum(axis=1).mean())
    np.testing.assert_allclose(start[has_vector], scale * vectors[has_vector], atol=1e-6)
    # Without a vector, a feature of no training instance says nothing; with one it does.
    assert not usual[-1].any()
    assert start[-1].any()
    one = sp.csr_array(([1.0], ([0], [D - 1])), shape=(1, D))
    assert np.isfinite(model.decision_function(one)).all()


@pytest.mark.parametrize(("dtype", "given"), [(np.float32, np.float64), (np.float64, np.int8)])
def test_dtypes(make, data, vectors, dtype, given):
    V = np.round(10 * vectors).astype(given)
    model = make(embedding_dim=DIM, embedding_init=V).fit(data[0].astype(dtype), data[1])
    assert model.feature_embedding_.dtype == dtype
    assert model.score(*data) > 0.9


def test_words_are_names_of_features(make, data, skip_gram):
    X, y = data
    frame = pd.DataFrame(X.toarray(), columns=WORDS)
    zeros = DecompMIPSSkipGram(**skip_gram.get_params()).set_params(handle_unknown="zero")
    vars(zeros).update({k: v for k, v in vars(skip_gram).items() if k.endswith("_")})
    array = zeros.transform(WORDS)
    assert array.any(axis=1).sum() == 20
    expected = make(embedding_init=array).fit(X, y).coef_
    pair = skip_gram.words_, skip_gram.vectors_
    for given in (skip_gram, FrozenEstimator(skip_gram), pair, (pair[0].tolist(), pair[1])):
        model = make(embedding_init=given).fit(frame, y)
        assert model.coef_.tobytes() == expected.tobytes()
    for given in (skip_gram, pair):
        with pytest.raises(ValueError, match="X does not say what its features are called"):
            make(embedding_init=given).fit(X, y)


def test_no_word_in_common(make, data, skip_gram):
    frame = pd.DataFrame(data[0].toarray(), columns=[f"f{j}" for j in range(D)])
    message = "must have words that are names of features. Got none: words are .*features 'f0', "
    with pytest.raises(ValueError, match=message):
        make(embedding_init=skip_gram).fit(frame, data[1])


def refusals():
    V = np.ones((D, DIM))
    nan, huge = V.copy(), V.copy()
    nan[2, 1], huge[2, 1] = np.nan, 1e300
    return {
        "rows": (V[1:], ValueError, r"a row for each of 30 features. Got an array of shape \(29,"),
        "dimension": (V[:, 1:], ValueError, "=6 does not go with .* dimension 5"),
        "NaN": (nan, ValueError, "must be finite. Got NaN or infinity in row 2"),
        "too large": (huge, ValueError, r"must be finite in float32, .* Got 1e\+300"),
        "zeros": (0 * V, ValueError, "Got zeros alone"),
        "sparse": (sp.csr_array(V), TypeError, "Got csr_array"),
        "not fitted": (DecompMIPSSkipGram(), ValueError, r"must be fitted .*pass \(model.words_"),
        "lengths": ((WORDS[1:], V), ValueError, "Got 29 words and 30 vectors"),
        "no words": ((np.arange(D), V), TypeError, "a list of texts with the vectors. Got"),
    }


@pytest.mark.parametrize("name", refusals())
def test_what_is_refused(make, data, name):
    given, kind, message = refusals()[name]
    X = data[0].astype(np.float32)
    with pytest.raises(kind, match=rf"^DecompMIPSClassifier: embedding_(init|dim).*{message}"):
        make(embedding_init=given).fit(X, data[1])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"metric": "mahalanobis", "embedding_dim": "auto"}, "Got metric='mahalanobis'"),
        ({"embedding_dim": 0}, "embedding_dim=0 does not go with embedding_init"),
        ({"embedding_dim": None}, "embedding_dim=None does not go with embedding_init"),
    ],
)
def test_parameters_that_do_not_fit(make, data, vectors, parameters, message):
    with pytest.raises(ValueError, match=message):
        make(embedding_init=vectors, **parameters).fit(*data)


def test_memory_is_counted(data, vectors):
    model = DecompMIPSClassifier(embedding_init=np.tile(vectors, 2000), max_memory="6MB")
    with pytest.raises(MemoryBudgetError, match="30 features x 12000"):
        model.fit(*data)
