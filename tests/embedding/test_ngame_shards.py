"""Classifiers trained in random parts of the labels, each on its own."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils import check_random_state

from sklearn_xc._sklearn import InvalidParameterError
from sklearn_xc.embedding import _examples, _training
from sklearn_xc.embedding._examples import label_shards
from sklearn_xc.embedding._modules import ClassifierModule
from sklearn_xc.embedding._training import Pool, SiameseTraining
from sklearn_xc.encoders import bag
from sklearn_xc.samplers import SAMPLERS

N_LABELS = 20


def shards_of(model):
    """Return the labels of each shard of a model."""
    seed = int(check_random_state(model.random_state).randint(2**31 - 1))
    return label_shards(N_LABELS, model.n_shards, seed + 1)


def assert_same_model(a, b):
    for name in ("coef_", "label_embeddings_", "threshold_"):
        assert np.asarray(getattr(a, name)).tobytes() == np.asarray(getattr(b, name)).tobytes()
    for name in ("module", "epoch", "loss", "violations"):
        np.testing.assert_array_equal(a.fit_report_[name], b.fit_report_[name])


class TestSameBytes:
    @pytest.mark.parametrize("sampler", sorted(SAMPLERS))
    def test_n_jobs(self, sampler, make, documents, monkeypatch):
        X, Y, Z = documents
        monkeypatch.setattr(_training, "_LEAST_WORK", 1)
        monkeypatch.setattr(bag, "_TOGETHER", 16)
        monkeypatch.setattr(bag, "_LEAST_WORK", 1)
        own = {"label_features": Z, "sampler": sampler, "n_shards": 4}
        models = [make(n_jobs=n_jobs, **own).fit(X, Y) for n_jobs in (1, 2, 3)]
        assert_same_model(models[1], models[0])
        assert_same_model(models[2], models[0])

    def test_one_shard_is_none(self, make, documents):
        X, Y, Z = documents
        assert_same_model(
            make(label_features=Z, n_shards=1).fit(X, Y), make(label_features=Z).fit(X, Y)
        )

    def test_the_order_of_rows(self, make, documents):
        X, Y, Z = documents
        order = np.random.default_rng(0).permutation(X.shape[0])
        own = {"label_features": Z, "n_shards": 3}
        assert_same_model(make(**own).fit(X, Y), make(**own).fit(X[order], Y[order]))

    def test_weights_are_repeated_rows(self, make, documents):
        X, Y, Z = documents
        times = 1 + np.arange(X.shape[0]) % 3
        rows = np.repeat(np.arange(X.shape[0]), times)
        own = {"label_features": Z, "n_shards": 3, "max_iter": 0, "validation_fraction": 0.0}
        weighted = make(**own).fit(X, Y, sample_weight=times)
        assert_same_model(weighted, make(**own).fit(X[rows], Y[rows]))
        assert (weighted.coef_ != make(**own).fit(X, Y).coef_).any()


class TestAnotherModel:
    @pytest.mark.parametrize("n_shards", [2, 3])
    def test_the_classifiers_differ(self, n_shards, make, documents):
        X, Y, Z = documents
        whole = make(label_features=Z).fit(X, Y)
        model = make(label_features=Z, n_shards=n_shards).fit(X, Y)
        np.testing.assert_array_equal(model.label_embeddings_, whole.label_embeddings_)
        assert (model.coef_ != whole.coef_).any(axis=1).all()
        assert (model.coef_ != model.label_embeddings_).any(axis=1).all()
        np.testing.assert_allclose(np.linalg.norm(model.coef_, axis=1), 1)
        np.testing.assert_array_equal(model.label_counts_, whole.label_counts_)

    def test_it_learns(self, make, documents):
        """From no training of the encoder, so that the classifiers do all of it."""
        X, Y, Z = documents
        own = {"max_iter": 0, "label_features": Z[np.roll(np.arange(N_LABELS), 7)]}
        own = {**own, "classifier_learning_rate": 0.05, "classifier_max_iter": 15}
        best = [
            make(**own, n_shards=n_shards).set_params(**more).fit(X, Y)
            .predict_topk(X, 1, component="classifier")[0][:, 0]
            for n_shards, more in ((3, {}), (3, {"classifier_max_iter": 0}))
        ]  # fmt: skip
        after, before = (Y.toarray()[np.arange(X.shape[0]), labels].mean() for labels in best)
        assert before < 0.2
        assert after > 0.5

    def test_each_shard_draws_on_its_own(self, make, documents, monkeypatch):
        """Shards of one seed would have the same mini-batches, where they have the same rows."""
        X, Y, Z = documents
        seeds, plain = [], SiameseTraining.__init__

        def noted(self, *args):
            seeds.append(args[-3])
            plain(self, *args)

        monkeypatch.setattr(SiameseTraining, "__init__", noted)
        make(label_features=Z, n_shards=4, validation_fraction=0.0).fit(X, Y)
        assert len(seeds) == len(set(seeds)) == 5  # and the encoder

    def test_a_report_an_epoch(self, make, documents, curve_of):
        X, Y, Z = documents
        model = make(label_features=Z, n_shards=3, classifier_max_iter=5).fit(X, Y)
        epochs = curve_of(model, "classifier")
        assert len(epochs) == 5
        assert len(curve_of(model, "encoder")) == 3
        assert all(loss > 0 and 0 < share < 1 for loss, share in epochs)
        none = make(label_features=Z, n_shards=3, classifier_max_iter=0).fit(X, Y)
        assert curve_of(none, "classifier") == []
        np.testing.assert_array_equal(none.coef_, none.label_embeddings_)

    @pytest.mark.parametrize("sampler", sorted(SAMPLERS))
    @pytest.mark.parametrize("n_shards", [N_LABELS, 10**6])
    def test_a_shard_for_each_label(self, n_shards, sampler, make, documents, curve_of):
        """There are no negatives, and nothing to learn."""
        X, Y, Z = documents
        model = make(label_features=Z, n_shards=n_shards, sampler=sampler).fit(X, Y)
        np.testing.assert_allclose(model.coef_, model.label_embeddings_, atol=1e-15)
        assert [loss for loss, _ in curve_of(model, "classifier")] == [0.0, 0.0]

    def test_shards_without_instances(self, make, make_documents, curve_of):
        X, Y, Z = make_documents(rare=15)
        own = {"label_features": Z, "validation_fraction": 0.0}
        model = make(n_shards=10, **own).fit(X, Y)
        shards = shards_of(model)
        assert any((shard >= 5).all() for shard in shards)
        np.testing.assert_array_equal(model.coef_[5:], model.label_embeddings_[5:])
        assert len(curve_of(model, "classifier")) == 2

    def test_two_classes(self, make, documents):
        X, Y, _ = documents
        y = Y.toarray().argmax(axis=1) > 7
        assert make(n_shards=5).fit(X, y).score(X, y) > 0.9


class TestNegatives:
    @pytest.mark.parametrize("sampler", sorted(SAMPLERS))
    def test_they_come_from_the_shard(self, sampler, make, documents, monkeypatch):
        """What instances have of other shards changes, and classifiers of the shard do not."""

        def as_given(X, indptr, labels, weight):
            rows = np.flatnonzero(np.diff(indptr) > 0)
            return rows, weight[rows]

        # The order of the instances follows from their content, and the mini-batches from that.
        monkeypatch.setattr(_examples, "distinct_instances", as_given)
        X, Y, Z = documents
        own = {"label_features": Z, "sampler": sampler, "n_shards": 3, "max_iter": 0,
               "validation_fraction": 0.0, "classifier_max_iter": 3}  # fmt: skip
        model = make(**own).fit(X, Y)
        shard = shards_of(model)[1]
        others = np.setdiff1d(np.arange(N_LABELS), shard)
        changed = Y.toarray()
        changed[:, others] = changed[:, np.roll(others, 5)]
        assert (changed.sum(axis=1) > 0).all()
        other = make(**own).fit(X, sp.csr_array(changed))
        assert other.coef_[shard].tobytes() == model.coef_[shard].tobytes()
        assert (other.coef_[others] != model.coef_[others]).any(axis=1).all()
        whole, other = (
            make(**{**own, "n_shards": 1}).fit(X, each) for each in (Y, sp.csr_array(changed))
        )
        assert (other.coef_[shard] != whole.coef_[shard]).any()

    def test_pools_of_a_shard(self, make, documents, monkeypatch):
        """Each pool is of the module's labels, as many as the shard has."""
        pools, modules, plain = [], [], Pool.of

        def of(positives, further):
            pools.append(plain(positives, further))
            return pools[-1]

        class Kept(ClassifierModule):
            def __init__(self, V, W, *rest):
                super().__init__(V, W, *rest)
                modules.append((len(V), len(W)))

        monkeypatch.setattr(Pool, "of", of)
        monkeypatch.setattr("sklearn_xc.embedding._trainable.ClassifierModule", Kept)
        X, Y, Z = documents
        own = {"max_iter": 0, "validation_fraction": 0.0, "n_shards": 3}
        model = make(label_features=Z, **own).fit(X, Y)
        shards = shards_of(model)
        assert [len(shard) for shard in shards] == [7, 7, 6]
        assert [n_labels for _, n_labels in modules] == [7, 7, 6]
        distinct = np.unique(np.hstack([X.toarray(), Y.toarray()]), axis=0)[:, -N_LABELS:]
        assert [n for n, _ in modules] == [(distinct[:, s].sum(axis=1) > 0).sum() for s in shards]
        assert max(pool.labels.max() for pool in pools) == 6


@pytest.mark.parametrize("n_shards", [0, -1, 1.5, None])
def test_out_of_range(n_shards, make, documents):
    with pytest.raises(InvalidParameterError, match=f"'n_shards' .* Got {n_shards}"):
        make(n_shards=n_shards).fit(*documents[:2])
