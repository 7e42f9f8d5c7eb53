"""Which labels score best, and which are worth to be scored, against brute force."""

from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from sklearn_xc._data import CsrRows, as_csr_rows
from sklearn_xc.embedding import _ranking
from sklearn_xc.embedding._ranking import KnownFeatures, Ranking, each_once
from sklearn_xc.weights import label_weights

N, L, D, DIM = 60, 25, 50, 9
COMPONENTS = ("embedding", "classifier", "features")
EMPTY_INSTANCE, EMPTY_LABEL = 3, 7


class Data(NamedTuple):
    """Embeddings and features of instances, and what is known of labels."""

    X: CsrRows
    V: np.ndarray
    embeddings: np.ndarray
    classifiers: np.ndarray
    F: CsrRows


def make(dtype=np.float64, seed=0):
    """Return rows of any norm, some negative entries, an empty instance, an empty label."""
    rng = np.random.default_rng(seed)
    vectors = [normalize(rng.normal(size=(n, DIM))).astype(dtype) for n in (N, L, L)]
    X, F = (
        sp.random_array((n, D), density=0.1, random_state=rng, data_sampler=rng.normal).tolil()
        for n in (N, L)
    )
    X[EMPTY_INSTANCE] = F[EMPTY_LABEL] = 0
    X, F = (
        sp.diags_array(10.0 ** rng.uniform(-4, 4, matrix.shape[0])) @ matrix.tocsr()
        for matrix in (X, F)
    )
    X, F = (as_csr_rows(sp.csr_array(matrix, dtype=dtype)) for matrix in (X, F))
    return Data(X, *vectors, F)


def dense(rows):
    matrix = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape)
    return matrix.toarray().astype(np.float64)


def all_scores(data):
    """Return the scores of all labels by component, in float64."""
    V = data.V.astype(np.float64)
    return {
        "embedding": V @ data.embeddings.T.astype(np.float64),
        "classifier": V @ data.classifiers.T.astype(np.float64),
        "features": normalize(dense(data.X)) @ normalize(dense(data.F)).T,
    }


NONE, SOME = np.empty(0, np.int64), np.array([0, 3, EMPTY_LABEL, 24])


def ranking_of(data, n_jobs=None, known=True, unseen=NONE):
    features = KnownFeatures(data.F) if known else None
    return Ranking(data.embeddings, data.classifiers, features, unseen, n_jobs)


def assert_best(labels, scores, expected, k, atol):
    """Check against all scores (n, n_labels): the values, and that labels have them."""
    assert labels.shape == scores.shape == (len(expected), k)
    assert labels.dtype == np.int64
    assert all(len(set(row)) == k for row in labels.tolist())
    np.testing.assert_allclose(scores, -np.sort(-expected, axis=1)[:, :k], atol=atol)
    np.testing.assert_allclose(scores, np.take_along_axis(expected, labels, axis=1), atol=atol)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 4, L])
@pytest.mark.parametrize("component", COMPONENTS)
def test_best(component, k, dtype):
    data = make(dtype)
    labels, scores = ranking_of(data).best(component, data.X, data.V, k)
    assert scores.dtype == dtype
    assert_best(labels, scores, all_scores(data)[component], k, 20 * np.finfo(dtype).eps)


@pytest.mark.parametrize("k", [1, 4, L - len(SOME)])
@pytest.mark.parametrize("component", COMPONENTS)
def test_best_of_those_that_are_not_unseen(component, k):
    data = make()
    labels, scores = ranking_of(data, unseen=SOME).best(component, data.X, data.V, k)
    expected = all_scores(data)[component]
    expected[:, SOME] = -np.inf
    assert_best(labels, scores, expected, k, 1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nearest_features(dtype):
    data = make(dtype)
    known = KnownFeatures(data.F)
    kept = np.arange(L) != EMPTY_LABEL
    np.testing.assert_allclose(np.linalg.norm(dense(known.rows), axis=1), kept, atol=1e-6)
    labels, cosines = known.nearest(data.X, 6, None, NONE)
    expected = all_scores(data)["features"]
    assert (expected < 0).any()
    assert_best(labels, cosines, expected, 6, 20 * np.finfo(dtype).eps)
    assert labels[EMPTY_INSTANCE].tolist() == [0, 1, 2, 3, 4, 5]
    assert not cosines[EMPTY_INSTANCE].any()


@pytest.mark.parametrize("known", [True, False])
def test_all_scores_of_some_labels(known):
    data = make()
    labels = np.random.default_rng(1).integers(-1, L, (N, 5))
    ranking = ranking_of(data, known=known)
    out = ranking.scores(data.X, data.V, labels)
    assert out.shape == (N, 5, ranking.n_scores)
    assert ranking.n_scores == 2 + known
    for component, of_labels in zip(COMPONENTS, np.moveaxis(out, 2, 0), strict=False):
        expected = np.take_along_axis(all_scores(data)[component], labels, axis=1)
        expected[labels < 0] = -np.inf
        np.testing.assert_allclose(of_labels, expected, atol=1e-14)


class TestShortlist:
    @pytest.mark.parametrize("size", [1, 3, 10])
    def test_a_union_of_both(self, size):
        data = make()
        scores = all_scores(data)
        listed = ranking_of(data).shortlist(data.X, data.V, size)
        assert listed.shape == (N, 2 * size)
        n_common = 0
        for i, row in enumerate(listed):
            own = row[row >= 0].tolist()
            assert len(own) == len(set(own))
            assert (row[row < 0] == -1).all()
            best = set(np.argsort(-scores["classifier"][i])[:size].tolist())
            cosines = scores["features"][i]
            near = {j for j in np.argsort(-cosines)[:size].tolist() if cosines[j] > 0}
            assert set(own) == best | near
            n_common += len(best & near)
        assert n_common > 0 or size == 1

    def test_no_label_without_a_common_feature(self):
        """Of an instance without features there are the best classifiers alone."""
        data = make()
        listed = ranking_of(data).shortlist(data.X, data.V, 4)[EMPTY_INSTANCE]
        assert (listed >= 0).sum() == 4

    def test_without_features(self):
        data = make()
        ranking = ranking_of(data, known=False)
        listed = ranking.shortlist(data.X, data.V, 4)
        np.testing.assert_array_equal(listed, ranking.best("classifier", data.X, data.V, 4)[0])

    @pytest.mark.parametrize("known", [True, False])
    @pytest.mark.parametrize("size", [L, L + 1, 10**9])
    def test_all_labels(self, size, known):
        data = make()
        listed = ranking_of(data, known=known).shortlist(data.X, data.V, size)
        np.testing.assert_array_equal(listed, np.tile(np.arange(L), (N, 1)))

    @pytest.mark.parametrize("known", [True, False])
    @pytest.mark.parametrize("size", [1, 4, 20, L - len(SOME), L, 10**9])
    def test_no_unseen_label(self, size, known):
        data = make()
        listed = ranking_of(data, known=known, unseen=SOME).shortlist(data.X, data.V, size)
        assert not np.isin(listed, SOME).any()
        n_listed = (listed >= 0).sum(axis=1)
        assert (n_listed >= min(size, L - len(SOME))).all()


class TestBlank:
    """Instances that have a score of 0 with all labels."""

    def rows(self):
        """Return data with rows that lack features, an embedding, both, or what labels share."""
        data = make()
        X, V, F = dense(data.X), data.V.copy(), dense(data.F)
        F[:, :10] = 0
        X[4] = np.arange(D) < 10  # features of no label
        V[[EMPTY_INSTANCE, 5]] = 0
        X[6] = X[4]
        V[6] = 0
        X, F = (as_csr_rows(sp.csr_array(matrix)) for matrix in (X, F))
        return data._replace(X=X, V=V, F=F)

    @pytest.mark.parametrize("known", [True, False])
    @pytest.mark.parametrize("component", [*COMPONENTS, "fused"])
    def test_their_scores_are_zero(self, component, known):
        data = self.rows()
        scores = all_scores(data)
        kinds = (component,) if component != "fused" else COMPONENTS[: 2 + known]
        if component == "features" and not known:
            return
        expected = np.all([(scores[kind] == 0).all(axis=1) for kind in kinds], axis=0)
        assert 0 < expected.sum() < 9
        found = ranking_of(data, known=known).is_blank(component, data.X, data.V)
        np.testing.assert_array_equal(found, expected)


def test_each_once():
    labels = np.array([[4, 2, 4, 2, 4], [-1, 0, -1, 0, 3], [5, 1, 9, 7, 3], [-1] * 5])
    given = labels.copy()
    out = each_once(labels)
    np.testing.assert_array_equal(labels, given)
    kept = [sorted(row[row >= 0].tolist()) for row in out]
    assert kept == [[2, 4], [0, 3], [1, 3, 5, 7, 9], []]
    assert out.shape == labels.shape
    assert (out >= -1).all()


def test_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(_ranking, "TOGETHER", 7)
    monkeypatch.setattr(label_weights, "ROWS_PER_TASK", 11)
    data = make(np.float32)
    answers = []
    for n_jobs in (1, 2, 3):
        ranking = ranking_of(data, n_jobs)
        listed = ranking.shortlist(data.X, data.V, 5)
        answer = [listed, ranking.scores(data.X, data.V, listed)]
        for component in COMPONENTS:
            answer += ranking.best(component, data.X, data.V, 4)
        answers.append([part.tobytes() for part in answer])
    assert answers[1] == answers[0]
    assert answers[2] == answers[0]
