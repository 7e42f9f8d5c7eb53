"""A bag of embeddings that starts from given vectors of its features, by itself and in a fit."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc import DecompMIPSSkipGram
from sklearn_xc.embedding.encoders import BagOfEmbeddings

DIM = 12


def vectors_of(X, seed=1):
    """Return a vector for each feature; the first two have none."""
    V = np.random.default_rng(seed).normal(size=(X.shape[1], DIM))
    V[:2] = 0.0
    return V


@pytest.mark.parametrize(("dtype", "factor"), [(np.float32, 1e15), (np.float64, 1e-3)])
def test_where_it_starts(documents, dtype, factor):
    X = (3 * documents.X).astype(dtype)
    V = vectors_of(X)
    encoder, usual = BagOfEmbeddings(embedding_init=factor * V), BagOfEmbeddings()
    for one in (encoder, usual):
        one.start(X, DIM, 0)
    assert encoder.embeddings_.dtype == dtype
    assert usual.is_given_ is None
    np.testing.assert_array_equal(encoder.is_given_, np.arange(X.shape[1]) >= 2)
    np.testing.assert_array_equal(encoder.embeddings_[:2], usual.embeddings_[:2])
    given = encoder.embeddings_[2:]
    mean_square = X.power(2).sum() / X.shape[0]
    assert (given**2).sum(axis=1).mean() == pytest.approx(1 / mean_square, rel=1e-5)
    cosines = (given * V[2:]).sum(axis=1) / np.linalg.norm(given, axis=1)
    np.testing.assert_allclose(cosines, np.linalg.norm(V[2:], axis=1), rtol=1e-5)
    # The block and what is random of it are as ever, and a start without vectors forgets them.
    for one, other in zip(encoder.block_, usual.block_, strict=True):
        assert one.tobytes() == other.tobytes()
    encoder.set_params(embedding_init=None).start(X, DIM, 0)
    assert encoder.is_given_ is None
    assert encoder.embeddings_.tobytes() == usual.embeddings_.tobytes()


def test_words_are_what_features_were_told_to_be_called(documents):
    X = documents.X
    names = np.array([f"w{j}" for j in range(X.shape[1])], object)
    pair = ["other", "w5", "w2"], np.arange(3 * DIM).reshape(3, DIM)
    encoder = BagOfEmbeddings(embedding_init=pair)
    encoder.name_features(names)
    encoder.start(X, DIM, 0)
    assert np.flatnonzero(encoder.is_given_).tolist() == [2, 5]
    expected = pair[1][[2, 1]] / np.linalg.norm(pair[1][[2, 1]])
    found = encoder.embeddings_[[2, 5]]
    np.testing.assert_allclose(found / np.linalg.norm(found), expected, atol=1e-7)
    with pytest.raises(ValueError, match="X does not say what its features are called"):
        encoder.start(X, DIM, 0)  # names are those of one start


def test_what_is_refused(make, documents):
    X, Y, Z = documents
    V, d = vectors_of(X), X.shape[1]
    for given, message in {
        "dim": (V[:, 1:], "the embedding, 12. Got 11: set embedding_dim=11"),
        "rows": (V[1:], rf"each of {d} features. Got an array of shape \({d - 1}"),
        "NaN": (np.where(V > 2, np.nan, V), "must be finite. Got NaN or infinity in row"),
        "names": ((["a"], V[:1]), "X does not say what its features are called"),
        "kind": ("word2vec", "Got 'word2vec'"),
        "not fitted": (DecompMIPSSkipGram(), r"must be fitted .*pass \(model.words_"),
    }.values():
        encoder = BagOfEmbeddings(embedding_init=given)
        with pytest.raises(
            (ValueError, TypeError), match=f"^BagOfEmbeddings: embedding_init .*{message}"
        ):
            make(encoder=encoder, label_features=Z).fit(X, Y)


def test_an_instance_of_given_features_alone_is_not_blank(make, documents):
    """Word 2 means what word 3 does, which training shows; word 2 is in no instance."""
    X, Y, Z = (part.toarray() for part in documents)
    X[:, 3], Z[:, 3] = X[:, 2] + X[:, 3], Z[:, 2] + Z[:, 3]
    X[:, 2] = Z[:, 2] = 0.0
    V = np.random.default_rng(0).normal(size=(X.shape[1], DIM))
    V[2] = V[3]
    X, Y, Z = map(sp.csr_array, (X, Y, Z))
    only = sp.csr_array(([1.0], ([0], [2])), shape=(1, X.shape[1]))
    usual = make(label_features=Z).fit(X, Y)
    assert not usual.embed(only).any()
    model = make(encoder=BagOfEmbeddings(embedding_init=V), label_features=Z).fit(X, Y)
    like_it = sp.csr_array(([1.0], ([0], [3])), shape=(1, X.shape[1]))
    assert model.embed(only) @ model.embed(like_it).T > 0.6
    clone_of_random = make(encoder=BagOfEmbeddings(embedding_init=np.vstack([0 * V[:3], V[3:]])))
    assert not clone_of_random.set_params(label_features=Z).fit(X, Y).embed(only).any()
