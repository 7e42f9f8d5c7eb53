"""Instances and labels of which nothing is known."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc.exceptions import UnseenLabelWarning

CONTAINERS = {"dense": sp.csr_array.toarray, "sparse": sp.csr_array}


UNSEEN = [0, 7, 19]


@pytest.fixture(scope="module")
def data(documents):
    """Return X, Y, Z; some labels have no instance."""
    X, Y, Z = documents
    Y = Y.tolil()
    Y[:, UNSEEN] = 0
    return X, Y.tocsr(), Z


@pytest.fixture(scope="module")
def skewed(documents):
    """Return X, Y, Z and a weight for each row; labels are of many frequencies, some equal."""
    X, Y, Z = documents
    rng = np.random.default_rng(0)
    more = rng.random((160, 20)) < np.repeat([0.0, 0.3, 0.05, 0.6], 5)
    return X, sp.csr_array(((Y.toarray() + more) > 0).astype(float)), Z, rng.uniform(0.5, 2, 160)


def blank(dtype=np.float64, n=3):
    return sp.csr_array((n, 80), dtype=dtype)


class TestInstances:
    @pytest.mark.parametrize(
        ("known", "container", "fraction", "dtype"),
        [
            (True, "dense", 0.3, np.float32),
            (False, "sparse", 0.0, np.float64),
            (False, "dense", 0.3, np.float64),
        ],
    )
    def test_labels_by_frequency(self, known, container, fraction, dtype, make, skewed):
        X, Y, Z, _ = skewed
        X, own = X.astype(dtype), {"label_features": Z} if known else {}
        model = make(validation_fraction=fraction, **own).fit(X, CONTAINERS[container](Y))
        counts = np.asarray(Y.sum(axis=0)).ravel()
        assert len(set(counts)) < 20  # there are ties
        shares = (counts / 160).astype(dtype)
        order = np.argsort(-counts, kind="stable")
        labels, scores = model.predict_topk(blank(dtype), 23)
        assert labels[:, :20].tolist() == [order.tolist()] * 3
        np.testing.assert_array_equal(scores[:, :20], np.tile(shares[order], (3, 1)))
        assert scores.dtype == dtype
        decided = model.decision_function(blank(dtype))
        decided = decided.toarray() if sp.issparse(decided) else decided
        np.testing.assert_array_equal(decided, np.tile(shares, (3, 1)))
        predicted = sp.csr_array(model.predict(blank(dtype))).toarray()
        np.testing.assert_array_equal(predicted, np.tile(shares > model.threshold_, (3, 1)))


class TestLabels:
    def fit(self, make, X, Y, **own):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnseenLabelWarning)
            return make(**own).fit(X, Y)

    @pytest.mark.parametrize(
        ("size", "container", "fusion"),
        [(1, "sparse", "boosting"), (4, "dense", "sum"), (100, "sparse", "sum")],
    )
    def test_they_come_last(self, size, container, fusion, make, data):
        X, Y, _ = data
        own = {"n_candidates": size, "fusion": fusion, "validation_fraction": 0.3}
        model = self.fit(make, X, CONTAINERS[container](Y), **own)
        assert (model.fusion_ is not None) == (fusion != "sum")
        assert model._unseen_labels.tolist() == UNSEEN
        both = sp.vstack([X, -X, blank()]).tocsr()  # cosines below 0, too
        labels, scores = model.predict_topk(both, 22)
        assert labels[:, 17:].tolist() == [[*UNSEEN, -1, -1]] * 323
        np.testing.assert_array_equal(scores[:, 17:20], np.tile(scores[:, [16]] - 1, 3))
        assert (np.diff(scores[:, :17], axis=1) <= 0).all()
        for k in (1, 17, 19):
            fewer, of_fewer = model.predict_topk(both, k)
            assert not np.isin(fewer[:, :17], UNSEEN).any()
            assert (fewer >= 0).all()
            assert np.isfinite(of_fewer).all()
        predicted = sp.csr_array(model.predict(both)).toarray()
        assert not predicted[:, UNSEEN].any()
        decided = model.decision_function(both)
        if container == "sparse":
            assert (np.diff(decided.indptr) == 17).all()
            assert not np.isin(decided.indices, UNSEEN).any()
        else:
            lowest = np.delete(decided, UNSEEN, axis=1).min(axis=1, keepdims=True)
            np.testing.assert_array_equal(decided[:, UNSEEN], np.tile(lowest - 1, 3))

    def test_with_features_they_are_known(self, make, data):
        X, Y, Z = data
        with warnings.catch_warnings():
            warnings.simplefilter("error", UnseenLabelWarning)
            model = make(label_features=Z).fit(X, Y)
        assert not model._unseen_labels.size
        found = (model.embed(Z[UNSEEN]) @ model.label_embeddings_.T).argmax(axis=1)
        assert found.tolist() == UNSEEN

    def test_neither_instance_nor_feature(self, make, data):
        X, Y, Z = data
        Z = Z.tolil()
        Z[[7, 9]] = 0  # label 9 has instances
        model = self.fit(make, X, Y, label_features=Z.tocsr())
        assert model._unseen_labels.tolist() == [7]
        both = sp.vstack([X, -X, blank()]).tocsr()
        labels, scores = model.predict_topk(both, 20)
        assert (labels[:, 19] == 7).all()
        np.testing.assert_array_equal(scores[:, 19], scores[:, 18] - 1)
        assert not model.predict(both)[:, [7]].nnz
        model.add_labels(label_features=sp.csr_array((1, 80)))
        assert model._unseen_labels.tolist() == [7, 20]

    def test_the_warning(self, make, data):
        X, Y, Z = data
        message = r"NGAMEEmbeddingXC: 3 of 20 labels have no training instance \(0, 7, 19\)"
        with pytest.warns(UnseenLabelWarning, match=message) as found:
            make().fit(X, Y)
        assert found[0].filename == __file__
        Z = Z.tolil()
        Z[7] = 0
        with pytest.warns(UnseenLabelWarning, match=r"1 of 20 .* \(7\)"):
            make(label_features=Z.tocsr()).fit(X, Y)
