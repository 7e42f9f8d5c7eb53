"""What features of labels say without training, and labels that no training instance has."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import normalize

from sklearn_xc._data import as_csr_rows
from sklearn_xc.embedding._fusions import FUSIONS

#: Labels without a training instance: one of each topic, and in no order.
UNSEEN = np.array([3, 5, 10, 12, 19])


@pytest.fixture(scope="module")
def data(make_documents):
    """Return X, Y, Z, and the rows that have one of the unseen labels.

    Nearly half of a document is another document, whose labels it has not.
    """
    X, Y, Z = make_documents(n=800, n_more=3)
    X = normalize(X + 0.9 * X[np.random.default_rng(0).permutation(800)])
    return X, Y, Z, Y[:, UNSEEN].sum(axis=1) > 0


@pytest.fixture(scope="module")
def model(make, data):
    """Return a model that was trained on the other rows, with a tree."""
    X, Y, Z, has_unseen = data
    own = {"label_features": Z, "validation_fraction": 0.4, "max_iter": 8}
    return make(**own).fit(X[~has_unseen], Y[~has_unseen])


def ranked(scores):
    return np.lexsort((np.broadcast_to(np.arange(scores.shape[1]), scores.shape), -scores), axis=1)


class TestFeatures:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("k", [1, 6, 20, 23])
    def test_cosines(self, k, dtype, make, documents):
        X, Y, Z = documents
        scale = np.random.default_rng(0).uniform(0.1, 9.0, (2, 160))
        X, Z = (
            sp.csr_array(sp.diags_array(by[: rows.shape[0]]) @ rows).astype(dtype)
            for by, rows in zip(scale, (X, Z), strict=True)
        )
        model = make(label_features=Z).fit(X, Y)
        labels, scores = model.predict_topk(X, k, component="features")
        cosines = (normalize(X.astype(np.float64)) @ normalize(Z.astype(np.float64)).T).toarray()
        assert labels.shape == scores.shape == (160, k)
        assert (labels[:, 20:] == -1).all()
        assert (scores[:, 20:] == -np.inf).all()
        labels, scores = labels[:, :20], scores[:, :20]
        found = np.take_along_axis(cosines, labels, axis=1)
        np.testing.assert_allclose(scores, found, atol=1e-6)
        np.testing.assert_allclose(scores, -np.sort(-cosines, axis=1)[:, :k], atol=1e-6)

    def test_texts(self, make):
        """The ranking of a plain search by tf-idf."""
        names = ["grey whale", "whale song", "bird song", "blue bird"]
        texts = ["a grey bird", "song of a whale", "the blue whale", "grey grey whale", "a bird"]
        vectorizer = TfidfVectorizer().fit(names + texts)
        X = vectorizer.transform(texts * 4)
        own = {"label_features": names, "label_vectorizer": FrozenEstimator(vectorizer)}
        model = make(**own).fit(X, np.arange(20) % 4)
        labels, scores = model.predict_topk(X, 4, component="features")
        cosines = (X @ vectorizer.transform(names).T).toarray()
        np.testing.assert_array_equal(labels, ranked(cosines.round(12)))
        np.testing.assert_allclose(scores, -np.sort(-cosines, axis=1), atol=1e-12)

    def test_training_does_not_matter(self, make, documents):
        X, Y, Z = documents
        answers = [
            make(label_features=Z, max_iter=n_epochs)
            .fit(X, Y)
            .predict_topk(X, 5, component="features")
            for n_epochs in (0, 4)
        ]
        for p, q in zip(*answers, strict=True):
            np.testing.assert_array_equal(p, q)

    def test_of_fit(self, make, documents):
        X, Y, Z = documents
        given, held = make().fit(X, Y, label_features=Z), make(label_features=Z).fit(X, Y)
        for p, q in zip(
            *(m.predict_topk(X, 5, component="features") for m in (given, held)), strict=True
        ):
            np.testing.assert_array_equal(p, q)

    def test_without_label_features(self, make, documents):
        X, Y, Z = documents
        model = make(label_features=Z).fit(X, Y).set_params(label_features=None)
        assert model.predict_topk(X, 1, component="features")[0].shape == (160, 1)
        model.fit(X, Y)
        message = "NGAMEEmbeddingXC: component='features' must have .* Got none: it had none"
        with pytest.raises(ValueError, match=message):
            model.predict_topk(X, component="features")

    def test_the_nearest_features_are_on_the_shortlist(self, make, data):
        """Though their classifiers are far from the best."""
        X, Y, Z, has_unseen = data
        own = {"label_features": Z, "max_iter": 0, "n_candidates": 2, "fusion": "sum"}
        model = make(**own).fit(X[~has_unseen], Y[~has_unseen])
        model.coef_ = np.where(np.isin(np.arange(20), UNSEEN)[:, None], 0, model.coef_)
        texts = Z[UNSEEN]
        assert not (
            model.predict_topk(texts, 2, component="classifier")[0] == UNSEEN[:, None]
        ).any()
        labels, scores = model.predict_topk(texts, 1)
        assert labels[:, 0].tolist() == UNSEEN.tolist()
        # Cosines of 1, 0 and 1, and shorter ones that stand in for means.
        np.testing.assert_allclose(scores, 2 + sum(model._stand_ins))


class TestFusedScores:
    def test_fusion_of_all_five(self, model, data):
        X = data[0]
        scores = []
        for component in ("embedding", "classifier", "features", "mean"):
            labels, values = model.predict_topk(X, 20, component=component)
            scores.append(np.take_along_axis(values, np.argsort(labels, axis=1), axis=1))
        words = model._means.words
        words = sp.csr_array((words.data, words.indices, words.indptr), shape=words.shape)
        scores.append((normalize(X) @ words.T).toarray())
        expected = model.fusion_(np.stack(scores, axis=-1), model._trained_counts)
        labels, values = model.predict_topk(X, 20)
        listed = labels >= 0
        rows = np.nonzero(listed)[0]
        np.testing.assert_allclose(values[listed], expected[rows, labels[listed]], atol=1e-12)
        assert model.fusion_.n_scores_ == 5
        assert len(model.fusion_.trees_.feature) > 3

    def test_unseen_labels_are_found(self, model, data):
        """Of 20 labels, the 3 best by chance hold 0.15 of the unseen ones of an instance."""
        X, Y, _, has_unseen = data
        assert not model.label_counts_[UNSEEN].any()
        labels, _ = model.predict_topk(X[has_unseen], 3)
        hits = np.take_along_axis(Y[has_unseen].toarray(), labels, axis=1)
        found = (hits * np.isin(labels, UNSEEN)).sum() / Y[has_unseen][:, UNSEEN].sum()
        assert found > 0.5

    def test_a_clear_match_is_worth_what_it_is_for_others(self, model, data):
        """An unseen label counts as a rare one: nobody has learnt that they never are."""
        X, Y, _, has_unseen = data
        rows = np.flatnonzero(has_unseen)
        true = Y[rows].toarray()[:, UNSEEN] > 0
        labels = np.tile(UNSEEN, (len(rows), 1))
        scores = model._ranking(with_shortlists=False).scores(
            as_csr_rows(X[rows]), model.embed(X[rows]), labels
        )
        found = model.fusion_(scores, model._trained_counts[labels])
        assert found[true].mean() > 0.2
        assert found[~true].mean() < 0.1 * found[true].mean()
        rarest = model.fusion_.rarest_
        assert 0 < rarest <= np.delete(model._trained_counts, UNSEEN).min()
        as_rare = model.fusion_(scores, np.full(labels.shape, rarest))
        np.testing.assert_array_equal(found, as_rare)

    def test_the_fusion_is_not_taught_by_them(self, make, data, monkeypatch):
        """No pair of a label without instances, though they are on the shortlists."""
        seen = []

        class Recorder:
            def __init__(self, **parameters):
                pass

            def fit(self, pairs, frequencies):
                seen.append((pairs, frequencies))

        monkeypatch.setitem(FUSIONS, "boosting", Recorder)
        X, Y, Z, has_unseen = data
        own = {"label_features": Z, "validation_fraction": 0.4, "n_candidates": 20}
        make(**own).fit(X[~has_unseen], Y[~has_unseen].toarray())
        (((scores, _, is_relevant, weight, _), frequencies),) = seen
        n_held_out = len(scores) / 15
        both = sp.hstack([X, Y]).toarray()[~has_unseen]
        assert n_held_out == int(0.4 * len(np.unique(both, axis=0)))
        assert frequencies.min() > 0
        assert np.isfinite(scores).all()
        assert scores.shape[1] == 5
        assert is_relevant.sum() >= n_held_out
        assert len(frequencies) == len(is_relevant) == len(weight)
