"""Means of the instances of labels, against sums over all pairs."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from sklearn_xc._input.data import as_csr_rows
from sklearn_xc.embedding import _examples
from sklearn_xc.embedding._examples import (
    SUBSTITUTE_NORM,
    Examples,
    LabelMeans,
    SubstituteNorms,
)
from sklearn_xc.embedding._inputs import TextRows
from sklearn_xc.embedding.samplers.protocol import Positives

N, L, D, DIM = 40, 9, 15, 5
UNSEEN = 4


def make(seed=0, dtype=np.float64, labels=None):
    """Return examples, their embeddings, and the indicator times the weights."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((N, D), density=0.2, rng=rng, format="csr", dtype=dtype)
    Y = rng.random((N, L)) < 0.3
    Y[:, UNSEEN] = False
    if labels is not None:
        Y[:, np.setdiff1d(np.arange(L), labels)] = False
    Y = sp.csr_array(Y)
    weight = rng.uniform(0.1, 3, N)
    positives = Positives(Y.indptr.astype(np.int64), Y.indices.astype(np.int32))
    V = normalize(rng.standard_normal((N, DIM))).astype(dtype)
    return Examples(as_csr_rows(X), positives, weight), V, Y.toarray() * weight[:, None]


def means_of(examples, V, step=N):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_examples, "_CHUNK_ROWS", step)
        return LabelMeans.of(examples, V, L)


def dense(rows):
    return sp.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape).toarray()


def assert_means(means, weighted, V, X, rtol=1e-12):
    np.testing.assert_allclose(means.vectors, normalize(weighted.T @ V), rtol=rtol, atol=1e-12)
    np.testing.assert_allclose(dense(means.words), normalize(weighted.T @ X), rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("step", [N, 7])
def test_are_sums_of_norm_1(step):
    examples, V, weighted = make()
    assert_means(means_of(examples, V, step), weighted, V, dense(examples.X))


def test_without_words():
    examples, V, weighted = make()
    texts = np.array([f"text {i}" for i in range(N)], object)
    means = means_of(examples._replace(X=TextRows.of(texts)), V.astype(np.float32))
    assert means.words is None
    assert means.filled(means.vectors, None, SubstituteNorms()).words is None
    np.testing.assert_allclose(means.vectors, normalize(weighted.T @ V), rtol=1e-5, atol=1e-6)


def test_words_beside_texts():
    examples, V, weighted = make(dtype=np.float32)
    texts = np.array([f"text {i}" for i in range(N)], object)
    beside = examples._replace(X=TextRows.of(texts, examples.X))
    means, plain = means_of(beside, V), means_of(examples, V)
    np.testing.assert_array_equal(means.vectors, plain.vectors)
    np.testing.assert_array_equal(dense(means.words), dense(plain.words))
    assert_means(means, weighted, V, dense(examples.X), 1e-5)


class TestSubstitutes:
    @pytest.fixture
    def known(self):
        rng = np.random.default_rng(5)
        vectors = normalize(rng.standard_normal((L, DIM)))
        words = normalize(rng.random((L, D)))
        return vectors, words

    def test_are_of_labels_without_instances(self, known):
        vectors, words = known
        examples, V, _ = make()
        plain = means_of(examples, V)
        means = plain.filled(vectors, as_csr_rows(sp.csr_array(words)), SubstituteNorms())
        np.testing.assert_allclose(means.vectors[UNSEEN], SUBSTITUTE_NORM * vectors[UNSEEN])
        np.testing.assert_allclose(dense(means.words)[UNSEEN], SUBSTITUTE_NORM * words[UNSEEN])
        others = np.delete(np.arange(L), UNSEEN)
        np.testing.assert_array_equal(means.vectors[others], plain.vectors[others])
        np.testing.assert_array_equal(dense(means.words)[others], dense(plain.words)[others])

    def test_are_of_labels_that_are_added(self, known):
        vectors, words = known
        examples, V, _ = make()
        means = means_of(examples, V)
        order = np.random.default_rng(0).permutation(L + 2)
        joined = means.joined(
            vectors[:2], as_csr_rows(sp.csr_array(words[:2])), order, SubstituteNorms()
        )
        expected = np.concatenate([means.vectors, SUBSTITUTE_NORM * vectors[:2]])[order]
        np.testing.assert_allclose(joined.vectors, expected)
        expected = np.concatenate([dense(means.words), SUBSTITUTE_NORM * words[:2]])[order]
        np.testing.assert_allclose(dense(joined.words), expected)
