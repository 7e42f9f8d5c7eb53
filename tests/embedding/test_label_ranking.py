"""Which labels score best, and which are worth to be scored, against brute force."""

from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from sklearn_xc._input.data import CsrRows, as_csr_rows
from sklearn_xc.embedding._examples import LabelMeans
from sklearn_xc.embedding._ranking import KnownFeatures, LabelRanking

N, L, D, DIM = 60, 25, 50, 9
KINDS = ("embedding", "classifier", "features", "mean")
EMPTY_INSTANCE, EMPTY_LABEL = 3, 7


class Data(NamedTuple):
    """Embeddings and features of instances, and what is known of labels."""

    X: CsrRows
    V: np.ndarray
    embeddings: np.ndarray
    classifiers: np.ndarray
    means: np.ndarray
    F: CsrRows


def make(dtype=np.float64, seed=0):
    """Return rows of any norm, some negative entries, an empty instance, an empty label."""
    rng = np.random.default_rng(seed)
    vectors = [normalize(rng.normal(size=(n, DIM))).astype(dtype) for n in (N, L, L, L)]
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
        "mean": V @ data.means.T.astype(np.float64),
    }


NONE, SOME = np.empty(0, np.int64), np.array([0, 3, EMPTY_LABEL, 24])


def ranking_of(data, n_jobs=None, known=True, unseen=NONE):
    features = KnownFeatures(data.F) if known else None
    means = LabelMeans(data.means, None)
    return LabelRanking(data.embeddings, data.classifiers, features, means, unseen, n_jobs)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nearest_features(dtype):
    data = make(dtype)
    known = KnownFeatures(data.F)
    kept = np.arange(L) != EMPTY_LABEL
    np.testing.assert_allclose(np.linalg.norm(dense(known.rows), axis=1), kept, atol=1e-6)
    labels, cosines = known.nearest(data.X, 6, None, NONE)
    expected = all_scores(data)["features"]
    assert (expected < 0).any()
    atol = 20 * np.finfo(dtype).eps
    np.testing.assert_allclose(cosines, -np.sort(-expected, axis=1)[:, :6], atol=atol)
    np.testing.assert_allclose(cosines, np.take_along_axis(expected, labels, axis=1), atol=atol)
    assert labels[EMPTY_INSTANCE].tolist() == [0, 1, 2, 3, 4, 5]
    assert not cosines[EMPTY_INSTANCE].any()


@pytest.mark.parametrize("known", [True, False])
def test_all_scores_of_some_labels(known):
    data = make()
    labels = np.random.default_rng(1).integers(-1, L, (N, 5))
    ranking = ranking_of(data, known=known)
    out = ranking.scores(data.X, data.V, labels)
    assert out.shape == (N, 5, ranking.n_scores)
    assert ranking.n_scores == 3 + known
    kinds = [kind for kind in KINDS if known or kind != "features"]
    for component, of_labels in zip(kinds, np.moveaxis(out, 2, 0), strict=True):
        expected = np.take_along_axis(all_scores(data)[component], labels, axis=1)
        expected[labels < 0] = -np.inf
        np.testing.assert_allclose(of_labels, expected, atol=1e-14)


class TestShortlist:
    @pytest.mark.parametrize("size", [1, 10])
    def test_a_union_of_both(self, size):
        data = make()
        scores = all_scores(data)
        listed = ranking_of(data).shortlist(data.X, data.V, size)
        assert listed.shape == (N, 3 * size)
        n_common = 0
        for i, row in enumerate(listed):
            own = row[row >= 0].tolist()
            assert len(own) == len(set(own))
            assert (row[row < 0] == -1).all()
            best = set(np.argsort(-scores["classifier"][i])[:size].tolist())
            cosines = scores["features"][i]
            near = {j for j in np.argsort(-cosines)[:size].tolist() if cosines[j] > 0}
            means = set(np.argsort(-scores["mean"][i])[:size].tolist())
            assert set(own) == best | near | means
            n_common += len(best & near)
        assert n_common > 0 or size == 1

    @pytest.mark.parametrize(("known", "size"), [(True, L), (False, L), (True, 10**9)])
    def test_all_labels(self, size, known):
        data = make()
        listed = ranking_of(data, known=known).shortlist(data.X, data.V, size)
        np.testing.assert_array_equal(listed, np.tile(np.arange(L), (N, 1)))

    @pytest.mark.parametrize(
        ("known", "size"),
        [(True, 1), (False, 4), (True, L - len(SOME)), (False, L - len(SOME)), (True, 10**9)],
    )
    def test_no_unseen_label(self, size, known):
        data = make()
        listed = ranking_of(data, known=known, unseen=SOME).shortlist(data.X, data.V, size)
        assert not np.isin(listed, SOME).any()
        n_listed = (listed >= 0).sum(axis=1)
        assert (n_listed >= min(size, L - len(SOME))).all()


@pytest.mark.parametrize("known", [True, False])
def test_blank_instances_score_0_with_all_labels(known):
    data = make()
    X, V, F = dense(data.X), data.V.copy(), dense(data.F)
    F[:, :10] = 0
    X[4] = X[6] = np.arange(D) < 10  # features of no label
    V[[EMPTY_INSTANCE, 5, 6]] = 0
    X, F = (as_csr_rows(sp.csr_array(matrix)) for matrix in (X, F))
    found = ranking_of(data._replace(X=X, F=F), known=known).is_blank(X, V)
    expected = [EMPTY_INSTANCE, 6] if known else [EMPTY_INSTANCE, 5, 6]
    assert np.flatnonzero(found).tolist() == expected
