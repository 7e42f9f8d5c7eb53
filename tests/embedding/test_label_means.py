"""Means of the instances of labels, against sums over all pairs."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from sklearn_xc._data import as_csr_rows
from sklearn_xc.embedding._examples import Examples
from sklearn_xc.embedding._label_means import STAND_IN, LabelMeans, best_cosines, best_word_cosines
from sklearn_xc.embedding._texts import TextRows
from sklearn_xc.samplers.protocol import Positives

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
    ranges = [np.arange(first, min(first + step, N)) for first in range(0, N, step)]
    parts = ((rows, V[rows]) for rows in ranges)
    return LabelMeans.of(examples, parts, L, DIM)


def dense(rows):
    return sp.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape).toarray()


def assert_means(means, weighted, V, X, rtol=1e-12):
    np.testing.assert_allclose(means.vectors, normalize(weighted.T @ V), rtol=rtol, atol=1e-12)
    np.testing.assert_allclose(dense(means.words), normalize(weighted.T @ X), rtol=rtol, atol=1e-12)
    np.testing.assert_allclose(means.lengths, np.linalg.norm(weighted.T @ V, axis=1), rtol=rtol)


@pytest.mark.parametrize("step", [N, 7])
def test_are_sums_of_norm_1(step):
    examples, V, weighted = make()
    assert_means(means_of(examples, V, step), weighted, V, dense(examples.X))


def test_keep_float32():
    examples, V, _ = make(dtype=np.float32)
    means = means_of(examples, V)
    assert means.vectors.dtype == means.words.dtype == np.float32


def test_further_instances_count_as_if_they_had_been_there():
    one, V, weighted = make(0)
    other, W, further = make(1, labels=[0, 3, 8])
    means = means_of(one, V)
    before = means.vectors.copy()
    both = means.plus(means_of(other, W))
    X = np.concatenate([dense(one.X), dense(other.X)])
    assert_means(both, np.concatenate([weighted, further]), np.concatenate([V, W]), X, 1e-9)
    np.testing.assert_array_equal(means.vectors, before)


def test_without_words():
    examples, V, weighted = make()
    texts = np.array([f"text {i}" for i in range(N)], object)
    means = means_of(examples._replace(X=TextRows.of(texts)), V.astype(np.float32))
    assert means.words is None
    assert means.plus(means).filled(means.vectors, None).words is None
    np.testing.assert_allclose(means.vectors, normalize(weighted.T @ V), rtol=1e-5, atol=1e-6)


def test_words_beside_texts():
    examples, V, weighted = make(dtype=np.float32)
    texts = np.array([f"text {i}" for i in range(N)], object)
    beside = examples._replace(X=TextRows.of(texts, examples.X))
    means, plain = means_of(beside, V), means_of(examples, V)
    np.testing.assert_array_equal(means.vectors, plain.vectors)
    np.testing.assert_array_equal(dense(means.words), dense(plain.words))
    assert_means(means, weighted, V, dense(examples.X), 1e-5)


def test_best_cosines_in_pieces(monkeypatch):
    monkeypatch.setattr("sklearn_xc.embedding._label_means._PRODUCTS", 4 * L)
    examples, V, _ = make()
    means = means_of(examples, V)
    np.testing.assert_allclose(best_cosines(V, means.vectors), (V @ means.vectors.T).max(axis=1))
    expected = (normalize(dense(examples.X)) @ dense(means.words).T).max(axis=1)
    np.testing.assert_allclose(best_word_cosines(examples.X, means.words), expected)


class TestStandIns:
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
        means = plain.filled(vectors, as_csr_rows(sp.csr_array(words)))
        np.testing.assert_allclose(means.vectors[UNSEEN], STAND_IN * vectors[UNSEEN])
        np.testing.assert_allclose(dense(means.words)[UNSEEN], STAND_IN * words[UNSEEN])
        others = np.delete(np.arange(L), UNSEEN)
        np.testing.assert_array_equal(means.vectors[others], plain.vectors[others])
        np.testing.assert_array_equal(dense(means.words)[others], dense(plain.words)[others])

    def test_go_with_the_first_instance(self, known):
        vectors, words = known
        examples, V, _ = make(1, labels=[0])
        means = means_of(examples, V).filled(vectors, as_csr_rows(sp.csr_array(words)))
        other, W, further = make(2, labels=[3])
        both = means.plus(means_of(other, W))
        np.testing.assert_allclose(both.vectors[3], normalize(further.T @ W)[3])
        np.testing.assert_allclose(dense(both.words)[3], normalize(further.T @ dense(other.X))[3])
        np.testing.assert_allclose(both.vectors[7], STAND_IN * vectors[7])
        np.testing.assert_allclose(dense(both.words)[7], STAND_IN * words[7])
        np.testing.assert_allclose(both.vectors[0], means.vectors[0])

    def test_are_of_labels_that_are_added(self, known):
        vectors, words = known
        examples, V, _ = make()
        means = means_of(examples, V)
        order = np.random.default_rng(0).permutation(L + 2)
        joined = means.joined(vectors[:2], as_csr_rows(sp.csr_array(words[:2])), order)
        expected = np.concatenate([means.vectors, STAND_IN * vectors[:2]])[order]
        np.testing.assert_allclose(joined.vectors, expected)
        expected = np.concatenate([dense(means.words), STAND_IN * words[:2]])[order]
        np.testing.assert_allclose(dense(joined.words), expected)
        assert not joined.lengths[order >= L].any()
