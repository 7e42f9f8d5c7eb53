"""Classifiers that go on learning, while the encoder stays."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc.embedding import _training
from sklearn_xc.embedding._training import Pool
from sklearn_xc.encoders import bag
from sklearn_xc.samplers import SAMPLERS

NAMES = np.array(["zebra", "ape", "cat", "emu"])


@pytest.fixture(scope="module")
def more(make_documents):
    """Return 80 documents that no fit has seen."""
    return make_documents(n=80, seed=1)


@pytest.fixture
def model(make, documents):
    """Return a fitted model, for the test alone."""
    X, Y, Z = documents
    return make(label_features=Z, validation_fraction=0.25).fit(X, Y)


def as_bytes(*parts):
    return [np.asarray(part).tobytes() for part in parts]


def encoder_bytes(model):
    encoder = model.encoder_
    return as_bytes(encoder.embeddings_, *encoder.block_)


def assert_same_model(a, b):
    for name in ("coef_", "label_embeddings_", "threshold_", "_trained_counts"):
        assert as_bytes(getattr(a, name)) == as_bytes(getattr(b, name)), name
    assert encoder_bytes(a) == encoder_bytes(b)
    for name in ("module", "epoch", "loss", "violations"):
        np.testing.assert_array_equal(a.fit_report_[name], b.fit_report_[name])


def one_class(Y, names=NAMES):
    """Return a 1-D y: the topic of each document, of five."""
    first = sp.csr_array(Y).toarray().argmax(axis=1)
    return names[np.minimum(first // 4, len(names) - 1)]


class TestFirstCall:
    @pytest.mark.parametrize("known", [True, False])
    def test_a_fit(self, known, make, documents):
        X, Y, Z = documents
        own = {"label_features": Z if known else None, "validation_fraction": 0.25}
        weight = np.random.default_rng(0).random(X.shape[0]) + 0.1
        for weights in ({}, {"sample_weight": weight}):
            started = make(**own).partial_fit(X, Y, **weights)
            assert_same_model(started, make(**own).fit(X, Y, **weights))

    def test_classes_that_come_later(self, make, documents, more):
        X, y = documents.X, one_class(documents.Y)
        kept = y != "cat"
        model = make(classifier_learning_rate=0.05)
        model.partial_fit(X[kept], y[kept], classes=NAMES)
        assert model.classes_.tolist() == sorted(NAMES)
        assert model.label_counts_[1] == 0
        assert not model.coef_[1].any()  # nothing is known of it
        for _ in range(12):
            model.partial_fit(X, y)
        assert np.linalg.norm(model.coef_[1]) == pytest.approx(1)
        best = model.predict_topk(more.X, 1, component="classifier")[0][:, 0]
        is_cat = one_class(more.Y) == "cat"
        assert (model.classes_[best] == "cat")[is_cat].mean() > 0.7
        assert (model.classes_[best] == "cat")[~is_cat].mean() < 0.2

    def test_two_classes(self, make, documents):
        X, y = documents.X, one_class(documents.Y) == "ape"
        model = make().partial_fit(X, y)
        coef = model.coef_
        model.partial_fit(X[:40], y[:40])
        assert model.coef_.shape == coef.shape == (2, 12)
        assert model.score(X, y) > 0.9


class TestFurtherCalls:
    def test_the_encoder_stays(self, model, more):
        before, coef = encoder_bytes(model), model.coef_.copy()
        kept = as_bytes(model.label_embeddings_, model.threshold_, *model.fusion_.trees_)
        assert model.partial_fit(more.X, more.Y) is model
        assert encoder_bytes(model) == before
        assert kept == as_bytes(model.label_embeddings_, model.threshold_, *model.fusion_.trees_)
        assert (model.coef_ != coef).any(axis=1).all()
        np.testing.assert_allclose(np.linalg.norm(model.coef_, axis=1), 1)

    def test_labels_in_no_document_stay(self, make, documents):
        X, Y, Z = documents
        model = make(label_features=Z).fit(X, Y)
        coef, rows = model.coef_.copy(), np.flatnonzero(Y[:, :4].sum(axis=1) > 0)
        model.partial_fit(X[rows], Y[rows])
        moved = (model.coef_ != coef).any(axis=1)
        np.testing.assert_array_equal(moved, Y[rows].sum(axis=0) > 0)
        assert not moved.all()

    def test_an_epoch_each(self, model, more, curve_of):
        before, n = model.fit_report_, model.n_iter_
        model.partial_fit(more.X, more.Y).partial_fit(more.X, more.Y)
        assert model.n_iter_ == len(model.fit_report_["loss"]) == n + 2
        assert len(before["loss"]) == n
        assert len(curve_of(model, "encoder")) == 3
        assert len(curve_of(model, "classifier")) == n - 3 + 2

    def test_calls_differ(self, model, more, monkeypatch):
        """Each has positives and mini-batches of its own, and Adam's means go on."""
        drawn, plain = [], Pool.of
        monkeypatch.setattr(Pool, "of", lambda own, far: drawn.append(own) or plain(own, far))
        for n_calls in (1, 2):
            model.partial_fit(more.X, more.Y)
            assert model._steps.n_steps == len(drawn) == 3 * n_calls
        first, second = np.concatenate(drawn[:3]), np.concatenate(drawn[3:])
        assert first.tolist() != second.tolist()
        assert np.isin(first, second).all()

    def test_label_counts_grow(self, model, documents, more):
        frequencies = model._trained_counts
        weight = np.random.default_rng(0).random(80)
        weight[:7] = 0
        for times, own in ((1, None), (2, weight)):
            model.partial_fit(more.X, more.Y, sample_weight=own)
            assert model.label_counts_.dtype == np.int64
            counted = more.Y.sum(axis=0) + (times > 1) * more.Y[7:].sum(axis=0)
            np.testing.assert_array_equal(model.label_counts_, documents.Y.sum(axis=0) + counted)
            assert model.n_samples_fit_ == 160 + 80 + (times > 1) * 73
        np.testing.assert_allclose(
            model._trained_counts, frequencies + more.Y.sum(axis=0) + more.Y.T @ weight
        )

    def test_weights_are_repeated_rows(self, model, more):
        times = 1 + np.arange(80) % 3
        rows = np.repeat(np.arange(80), times)
        other = pickle.loads(pickle.dumps(model)).partial_fit(more.X[rows], more.Y[rows])
        assert_same_model(model.partial_fit(more.X, more.Y, sample_weight=times), other)

    def test_labels_that_have_changed_are_learnt(self, model, documents, more):
        order = np.roll(np.arange(20), 7)
        changed, unseen = documents.Y[:, order].tocsr(), more.Y[:, order].toarray()

        def precision():
            best = model.predict_topk(more.X, 1, component="classifier")[0][:, 0]
            return unseen[np.arange(80), best].mean()

        before = precision()
        model.set_params(classifier_learning_rate=0.05)
        for _ in range(10):
            model.partial_fit(documents.X, changed)
        assert before < 0.2
        assert precision() > 0.6


class TestSameBytes:
    @pytest.mark.parametrize("sampler", sorted(SAMPLERS))
    def test_n_jobs(self, sampler, make, documents, more, monkeypatch):
        X, Y, Z = documents
        monkeypatch.setattr(_training, "_LEAST_WORK", 1)
        monkeypatch.setattr(bag, "_TOGETHER", 16)
        monkeypatch.setattr(bag, "_LEAST_WORK", 1)
        models = []
        for n_jobs in (1, 2, 3):
            model = make(label_features=Z, sampler=sampler, n_jobs=n_jobs).partial_fit(X, Y)
            models.append(model.partial_fit(more.X, more.Y).partial_fit(X, Y))
        assert_same_model(models[1], models[0])
        assert_same_model(models[2], models[0])

    def test_a_pickle_between_calls(self, model, documents, more):
        read = model
        for X, Y in (more[:2], documents[:2], more[:2]):
            read = pickle.loads(pickle.dumps(read)).partial_fit(X, Y)
            model.partial_fit(X, Y)
        assert_same_model(read, model)


class TestBadCalls:
    def test_divergence(self, make, documents):
        """It takes a rate at which float32 overflows."""
        X, Y, _ = documents
        model = make().fit(X.astype(np.float32), Y).set_params(classifier_learning_rate=1e300)
        before = pickle.dumps(model)
        message = r"training diverged at classifier_learning_rate=1e\+300"
        with np.errstate(all="ignore"), pytest.raises(ValueError, match=message):
            model.partial_fit(X, Y)
        assert pickle.dumps(model) == before
