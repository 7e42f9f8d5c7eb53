"""Instances and labels of which nothing is known."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc.exceptions import UnseenLabelWarning

CONTAINERS = {"dense": sp.csr_array.toarray, "sparse": sp.csr_array}
DTYPES = [np.float32, np.float64]


UNSEEN = [0, 7, 19]


@pytest.fixture(scope="module")
def data(documents):
    """Return X, Y, Z; some labels have no instance."""
    X, Y, Z = documents
    Y = Y.tolil()
    Y[:, UNSEEN] = 0
    return X, Y.tocsr(), Z


def components(model):
    return ("fused", "embedding", "classifier", *(("features",) * (model._features is not None)))


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
    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("fraction", [0.0, 0.3])
    @pytest.mark.parametrize("container", CONTAINERS)
    @pytest.mark.parametrize("known", [True, False])
    def test_labels_by_frequency(self, known, container, fraction, dtype, make, skewed):
        X, Y, Z, _ = skewed
        X, own = X.astype(dtype), {"label_features": Z} if known else {}
        model = make(validation_fraction=fraction, **own).fit(X, CONTAINERS[container](Y))
        counts = np.asarray(Y.sum(axis=0)).ravel()
        assert len(set(counts)) < 20  # there are ties
        shares = (counts / 160).astype(dtype)
        order = np.argsort(-counts, kind="stable")
        for component in components(model):
            labels, scores = model.predict_topk(blank(dtype), 23, component=component)
            assert labels[:, :20].tolist() == [order.tolist()] * 3
            np.testing.assert_array_equal(scores[:, :20], np.tile(shares[order], (3, 1)))
            assert scores.dtype == dtype
        decided = model.decision_function(blank(dtype))
        decided = decided.toarray() if sp.issparse(decided) else decided
        np.testing.assert_array_equal(decided, np.tile(shares, (3, 1)))
        predicted = sp.csr_array(model.predict(blank(dtype))).toarray()
        np.testing.assert_array_equal(predicted, np.tile(shares > model.threshold_, (3, 1)))

    def test_among_others(self, make, skewed):
        """The answer to a row does not depend on the rows beside it."""
        X, Y, Z, _ = skewed
        model = make(label_features=Z, validation_fraction=0.3).fit(X, Y)
        both = sp.vstack([X[:5], blank(n=2), X[5:9]]).tocsr()
        for component in components(model):
            alone = [
                model.predict_topk(part, 6, component=component)
                for part in (X[:5], blank(n=2), X[5:9])
            ]
            for found, parts in zip(
                model.predict_topk(both, 6, component=component),
                zip(*alone, strict=True),
                strict=True,
            ):
                np.testing.assert_array_equal(found, np.concatenate(parts))

    def test_a_word_that_no_label_has(self, make, skewed):
        """The cosine of features knows nothing then; the encoder has learnt of the word."""
        X, Y, Z, _ = skewed
        Z = Z.tolil()
        Z[:, :3] = 0
        model = make(label_features=Z.tocsr()).fit(X, Y)
        word = sp.csr_array(([1.0], ([0], [2])), shape=(1, 80))
        frequent = np.argsort(-np.asarray(Y.sum(axis=0)).ravel(), kind="stable")
        assert (
            model.predict_topk(word, 20, component="features")[0][0].tolist() == frequent.tolist()
        )
        for component in ("fused", "embedding", "classifier"):
            assert (
                model.predict_topk(word, 20, component=component)[0][0].tolist()
                != frequent.tolist()
            )

    @pytest.mark.parametrize("n_second", [40, 80, 120])
    def test_two_classes(self, n_second, make, documents):
        y = np.arange(160) < n_second
        model = make(validation_fraction=0.3).fit(documents.X, y)
        shares = np.array([160 - n_second, n_second]) / 160
        np.testing.assert_array_equal(model.decision_function(blank()), [shares[1] - shares[0]] * 3)
        assert model.predict(blank()).tolist() == [n_second > 80] * 3
        labels, scores = model.predict_topk(blank(), 2)
        assert labels.tolist() == [[0, 1] if n_second <= 80 else [1, 0]] * 3
        np.testing.assert_array_equal(scores, np.tile(-np.sort(-shares), (3, 1)))

    def test_further_instances_count(self, make, skewed):
        X, Y, Z, weight = skewed
        model = make(label_features=Z).fit(X, Y)
        rare = int(np.asarray(Y.sum(axis=0)).ravel().argmin())
        only = sp.lil_array((160, 20))
        only[:, rare] = 1
        model.partial_fit(X, only.tocsr(), sample_weight=3 * weight)
        labels, scores = model.predict_topk(blank(n=1), 1)
        assert labels[0, 0] == rare
        expected = (3 * weight.sum() + Y[:, [rare]].sum()) / (3 * weight.sum() + 160)
        assert scores[0, 0] == pytest.approx(expected)
        model.add_labels(label_features=Z[:2])
        labels, scores = model.predict_topk(blank(n=1), 22)
        assert labels[0, -2:].tolist() == [20, 21]
        assert scores[0, -2:].tolist() == [0, 0]

    def test_they_are_no_lesson_for_the_fusion(self, make, skewed):
        """Nobody asks it of them."""
        X, Y, Z, _ = skewed
        own = {"label_features": Z, "validation_fraction": 0.4}
        X = X.tolil()
        X[::2] = 0
        model = make(**own).fit(X.tocsr(), Y)
        assert model.fusion_ is not None
        assert make(**own).fit(sp.csr_array((160, 80)), Y).fusion_ is None


class TestLabels:
    def fit(self, make, X, Y, **own):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnseenLabelWarning)
            return make(**own).fit(X, Y)

    @pytest.mark.parametrize("fusion", ["boosting", "sum"])
    @pytest.mark.parametrize("container", CONTAINERS)
    @pytest.mark.parametrize("size", [1, 4, 100])
    def test_they_come_last(self, size, container, fusion, make, data):
        X, Y, _ = data
        own = {"n_candidates": size, "fusion": fusion, "validation_fraction": 0.3}
        model = self.fit(make, X, CONTAINERS[container](Y), **own)
        assert (model.fusion_ is not None) == (fusion != "sum")
        assert model._unseen_labels.tolist() == UNSEEN
        both = sp.vstack([X, -X, blank()]).tocsr()  # cosines below 0, too
        for component in components(model):
            labels, scores = model.predict_topk(both, 22, component=component)
            assert labels[:, 17:].tolist() == [[*UNSEEN, -1, -1]] * 323
            np.testing.assert_array_equal(scores[:, 17:20], np.tile(scores[:, [16]] - 1, 3))
            assert (np.diff(scores[:, :17], axis=1) <= 0).all()
            assert np.isfinite(scores[:, :20]).all()
            for k in (1, 5, 17, 19):
                fewer, of_fewer = model.predict_topk(both, k, component=component)
                assert component == "fused" or fewer.tolist() == labels[:, :k].tolist()
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
        found = model.predict_topk(Z[UNSEEN], 1, component="features")[0][:, 0]
        assert found.tolist() == UNSEEN

    def test_neither_instance_nor_feature(self, make, data):
        X, Y, Z = data
        Z = Z.tolil()
        Z[[7, 9]] = 0  # label 9 has instances
        model = self.fit(make, X, Y, label_features=Z.tocsr())
        assert model._unseen_labels.tolist() == [7]
        both = sp.vstack([X, -X, blank()]).tocsr()
        for component in components(model):
            labels, scores = model.predict_topk(both, 20, component=component)
            assert (labels[:, 19] == 7).all()
            np.testing.assert_array_equal(scores[:, 19], scores[:, 18] - 1)
        assert not model.predict(both)[:, [7]].nnz
        model.add_labels(label_features=sp.csr_array((1, 80)))
        assert model._unseen_labels.tolist() == [7, 20]
        Y = sp.lil_array((160, 21))
        Y[:, 7] = 1
        model.partial_fit(X, Y.tocsr())
        assert model._unseen_labels.tolist() == [20]
        assert model.predict_topk(X, 1, component="classifier")[0].tolist() != [[20]] * 160

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
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            make().partial_fit(X, Y)

    def test_labels_that_are_added(self, make, documents):
        X, Y, Z = documents
        model = make(label_features=Z).fit(X, Y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.add_labels(label_features=Z[:2])
        empty = sp.csr_array((1, 80))
        with pytest.warns(UnseenLabelWarning, match=r"1 of 23 labels .* \(22\)") as found:
            model.add_labels(label_features=empty)
        assert found[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.add_labels(label_features=Z[:2])

    def test_a_later_instance(self, make, data, documents):
        model = self.fit(make, *data[:2])
        before = pickle.dumps(model)
        model.partial_fit(*documents[:2])
        assert not model._unseen_labels.size
        assert len(pickle.loads(before)._unseen_labels) == 3
        assert np.isin(UNSEEN, model.predict_topk(documents.X, 5)[0]).all()
