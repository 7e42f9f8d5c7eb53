"""What a fitted model holds and answers, against brute force."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import normalize
from sklearn.tree import DecisionTreeRegressor
from threadpoolctl import threadpool_limits

from sklearn_xc import LabelFeatures
from sklearn_xc._input.data import as_csr_rows
from sklearn_xc._input.equal_rows import distinct_instances
from sklearn_xc.embedding import ngame
from sklearn_xc.embedding._examples import Examples, held_out, labels_of_rows
from sklearn_xc.embedding.encoders import BagOfEmbeddings
from sklearn_xc.embedding.samplers.protocol import Positives

NAMES = np.array(["zebra", "ape", "cat", "emu"])


def cosines(model, X, component):
    """Return the scores of all labels in float64."""
    if component == "features":
        return (normalize(X) @ normalize(model.label_features).T).toarray()
    if component == "mean of features":
        words = model._means.words
        words = sp.csr_array((words.data, words.indices, words.indptr), shape=words.shape)
        return (normalize(X) @ words.T).toarray()
    of_component = {"embedding": model.label_embeddings_, "mean": model._means.vectors}
    vectors = of_component.get(component, model.coef_)
    return model.embed(X).astype(np.float64) @ vectors.astype(np.float64).T


def all_cosines(model, X):
    """Return the scores that are fused."""
    if model.fusion != "boosting":
        return [cosines(model, X, each) for each in ("embedding", "classifier")]
    known = () if model.label_features is None else ("features",)
    kinds = ("embedding", "classifier", *known, "mean", "mean of features")
    return [cosines(model, X, each) for each in kinds]


def fused(model, X):
    """Return the fused scores of all labels: the scores, and the value of the tree."""
    scores = all_cosines(model, X)
    if model.fusion_ is None:
        return sum(scores)
    return model.fusion_(np.stack(scores, axis=-1), model._seen.counts)


def shortlisted(model, X, size):
    """Return which labels have the best classifiers, nearest features or means, (n, n_labels)."""
    found = np.zeros((X.shape[0], len(model.classes_)), bool)
    kinds = ("classifier", "features", "mean")
    for component in kinds if model.fusion == "boosting" else kinds[:1]:
        scores = cosines(model, X, component)
        best = ranked(scores)[:, :size]
        is_near = component != "features" or np.take_along_axis(scores, best, axis=1) > 0
        np.put_along_axis(found, best, np.take_along_axis(found, best, axis=1) | is_near, axis=1)
    return found


def ranked(scores):
    return np.lexsort((np.broadcast_to(np.arange(scores.shape[1]), scores.shape), -scores), axis=1)


def same_answers(a, b, names=("coef_", "label_embeddings_", "threshold_", "label_counts_")):
    for name in names:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), name)


class TestComponents:
    @pytest.mark.parametrize("fusion", ["boosting", "tree", "sum"])
    def test_fused_scores_of_the_shortlist(self, fusion, make, documents):
        X, Y, Z = documents
        model = make(label_features=Z, fusion=fusion, n_candidates=5, validation_fraction=0.3)
        model.fit(X, Y)
        assert (model.fusion_ is not None) == (fusion != "sum")
        listed = shortlisted(model, X, 5)
        assert set(listed.sum(axis=1)) <= {*range(5, 16 if fusion == "boosting" else 6)}
        expected = np.where(listed, fused(model, X), -np.inf)
        labels, scores = model.predict_topk(X, 3)
        np.testing.assert_allclose(scores, np.take_along_axis(expected, labels, axis=1), atol=1e-6)
        np.testing.assert_allclose(scores, -np.sort(-expected, axis=1)[:, :3], atol=1e-6)

    def test_the_tree_of_the_paper(self, make, documents, monkeypatch):
        """Appendix C: descriptors of pairs of the shortlist and of true labels, depth 7, the sum.

        A shortlist of 2 lacks some that are true.
        """
        held = []
        fit = ngame.NGAMEEmbeddingXC._fit_fusion

        def keep(model, examples, V, seed):
            fit(model, examples, V, seed)
            known = model.label_embeddings_, model.coef_, model._seen.counts
            held.append((examples, V, seed, *map(np.copy, known)))

        monkeypatch.setattr(ngame.NGAMEEmbeddingXC, "_fit_fusion", keep)
        X, Y, Z = documents
        own = {"label_features": Z, "validation_fraction": 0.3, "n_candidates": 2}
        model = make(fusion="tree", **own).fit(X, Y)
        ((examples, V, seed, labels, classifiers, counts),) = held
        relevant = np.split(examples.positives.labels, examples.positives.indptr[1:-1])
        descriptors, tags, weights = [], [], []
        for x, own, weight in zip(V, relevant, examples.weight, strict=True):
            listed = np.argsort(-(classifiers @ x), kind="stable")[:2]
            for label in sorted({*listed.tolist(), *own.tolist()}):
                own_scores = labels[label] @ x, classifiers[label] @ x
                descriptors.append([*own_scores, counts[label]])
                tags.append(label in own)
                weights.append(weight)
        tree = DecisionTreeRegressor(max_depth=7, random_state=seed)
        tree.fit(np.array(descriptors, np.float32), tags, sample_weight=weights)
        E = model.embed(X)
        both = E @ model.label_embeddings_.T, E @ model.coef_.T
        frequency = np.broadcast_to(model._seen.counts, both[0].shape)
        descriptors = np.stack([*both, frequency], axis=-1).reshape(-1, 3)
        expected = tree.predict(descriptors).reshape(both[0].shape) + sum(both)
        found, scores = model.predict_topk(X, 2)
        expected = np.take_along_axis(expected, found, axis=1)
        np.testing.assert_allclose(scores, expected, rtol=1e-6)

    def test_more_than_the_shortlist(self, fitted, documents):
        """The shortlist grows to k."""
        X = documents.X
        assert fitted.n_candidates == 8
        labels, scores = fitted.predict_topk(X, 12)
        listed = shortlisted(fitted, X, 12)
        assert (listed.sum(axis=1) < 20).any()
        assert np.take_along_axis(listed, labels, axis=1).all()
        expected = np.where(listed, fused(fitted, X), -np.inf)
        np.testing.assert_allclose(scores, -np.sort(-expected, axis=1)[:, :12], atol=1e-6)


class TestModules:
    def test_without_epochs_of_the_classifiers(self, make, documents, curve_of):
        X, Y, Z = documents
        model = make(classifier_max_iter=0, label_features=Z).fit(X, Y)
        np.testing.assert_array_equal(model.coef_, model.label_embeddings_)
        assert model.coef_ is not model.label_embeddings_
        assert curve_of(model, "classifier") == []
        assert len(curve_of(model, "encoder")) == model.n_iter_ == 3

    def test_without_epochs_of_the_encoder(self, make, documents, curve_of):
        """The encoder is as it started."""
        X, Y, Z = documents
        model = make(max_iter=0, classifier_max_iter=1, label_features=Z).fit(X, Y)
        assert curve_of(model, "encoder") == []
        assert not model.encoder_.block_.B.any()
        sums = normalize(Z @ model.encoder_.embeddings_)
        np.testing.assert_allclose(model.label_embeddings_, sums, atol=1e-12)
        assert (model.coef_ != model.label_embeddings_).any()

    def test_losses_fall(self, make, documents, curve_of):
        X, Y, Z = documents
        model = make(max_iter=10, classifier_max_iter=5, label_features=Z).fit(X, Y)
        encoder, classifier = curve_of(model, "encoder"), curve_of(model, "classifier")
        assert (len(encoder), len(classifier)) == (10, 5)
        assert encoder[-1][0] < 0.5 * encoder[0][0]
        assert classifier[-1][0] < classifier[0][0]
        assert model.n_iter_ == len(pd.DataFrame(model.fit_report_)) == 15
        assert (model.fit_report_["seconds"] > 0).all()

    def test_a_label_without_instances_keeps_its_embedding(self, make, make_documents):
        X, Y, Z = make_documents(rare=2)
        model = make(label_features=Z).fit(X, Y)
        np.testing.assert_array_equal(model.coef_[-2:], model.label_embeddings_[-2:])
        assert (model.coef_[:-2] != model.label_embeddings_[:-2]).any(axis=1).all()


class TestAutomaticSettings:
    @pytest.mark.parametrize(
        ("n_own", "expected"), [(1, (5, 10)), (1.5, (8, 15)), (3, (15, 20)), (6, (20, 20))]
    )
    def test_epochs(self, n_own, expected, make, curve_of):
        """Each pair is drawn 5 and 10 times, in at most 20 epochs."""
        rng = np.random.default_rng(0)
        n_of_row = np.full(60, int(n_own))
        n_of_row[: int(60 * (n_own % 1))] += 1
        Y = np.zeros((60, 9))
        for row, n in zip(Y, n_of_row, strict=True):
            row[rng.choice(9, n, replace=False)] = 1
        own = {"max_iter": "auto", "classifier_max_iter": "auto", "validation_fraction": 0.0}
        model = make(**own).fit(sp.csr_array(rng.random((60, 5))), sp.csr_array(Y))
        assert tuple(len(curve_of(model, each)) for each in ("encoder", "classifier")) == expected


class TestEncoders:
    def test_an_instance_is_cloned(self, make, documents):
        X, Y, Z = documents
        encoder = BagOfEmbeddings()
        model = make(encoder=encoder, label_features=Z).fit(X, Y)
        assert vars(encoder) == {"embedding_init": None}
        assert model.encoder_ is not encoder
        assert model.encoder is encoder

    def test_embed(self, fitted, documents):
        X, _, Z = documents
        expected = fitted.encoder_.encode(as_csr_rows(X))
        np.testing.assert_array_equal(fitted.embed(X), expected)
        np.testing.assert_array_equal(fitted.embed(X.toarray()), expected)
        np.testing.assert_array_equal(fitted.embed(Z), fitted.label_embeddings_)


class TestLabelFeatures:
    def test_a_label_without_instances_is_found_by_its_words(self, make, make_documents):
        X, Y, Z = make_documents(n=300, rare=3)
        model = make(label_features=Z, max_iter=6).fit(X, Y)
        assert (model.label_counts_[-3:] == 0).all()
        words = Z[-3:].toarray() * (Z[:-3].toarray().max(axis=0) == 0)  # not those of the topic
        labels, _ = model.predict_topk(sp.csr_array(words), 1)
        assert labels[:, 0].tolist() == [17, 18, 19]

    def test_without_them_means_are_taken(self, make, documents):
        X, Y, _ = documents
        model = make(validation_fraction=0.0).fit(X, Y)
        means = sp.csr_array(normalize(sp.csr_array(Y.T @ X)))
        np.testing.assert_allclose(model.label_embeddings_, model.embed(means), atol=1e-9)
        same_answers(model, make(validation_fraction=0.0, label_features=means).fit(X, Y), ())

    def test_means_of_what_is_trained_on(self, make, documents):
        """Held-out instances are in no mean that the encoder reads, unless they are many."""
        X, Y, _ = documents
        model = make(validation_fraction=0.1, classifier_max_iter=0).fit(X, Y)
        kept = np.setdiff1d(np.arange(160), held_out_rows(model, X, Y))
        means = sp.csr_array(normalize(sp.csr_array(Y[kept].T @ X[kept])))
        np.testing.assert_allclose(model.label_embeddings_, model.embed(means), atol=1e-9)

    def test_those_of_fit_go_before_those_of_the_constructor(self, make, documents):
        X, Y, Z = documents
        expected = make(label_features=Z).fit(X, Y)
        other = sp.csr_array(Z.toarray()[::-1])
        for holder in (Z, LabelFeatures(Z)):
            same_answers(make(label_features=other).fit(X, Y, label_features=holder), expected)
        for holder in (Z.toarray(), sp.csc_matrix(Z)):
            same_answers(make(label_features=holder).fit(X, Y), expected)


def instance_numbers(X, Y):
    """Return a number for each row, the same for rows that are equal, labels included."""
    both = np.hstack([X.toarray(), Y.toarray()])
    return np.unique(both, axis=0, return_inverse=True)[1].ravel()


def one_of_each(X, Y, rows):
    """Return some of the rows: one of equal ones."""
    return rows[np.unique(instance_numbers(X, Y)[rows], return_index=True)[1]]


def held_out_rows(model, X, Y):
    """Return the rows that the model has not been trained on: held out by its split."""
    indptr, labels = Y.indptr.astype(np.int64), Y.indices
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    found, _ = distinct_instances(as_csr_rows(X), indptr, labels, np.ones(X.shape[0]))
    positives = labels_of_rows(Positives(indptr, labels), found)
    n_wanted = min(ngame._MOST_HELD_OUT, int(model.validation_fraction * len(found)))
    examples = Examples(as_csr_rows(X).take(found), positives, np.ones(len(found)))
    _, chosen = held_out(examples, Y.shape[1], n_wanted, seed)
    numbers = instance_numbers(X, Y)
    return np.flatnonzero(np.isin(numbers, numbers[found[chosen]]))


class TestHeldOut:
    def test_all_are_trained_on_in_the_end(self, make, documents):
        X, Y, Z = documents
        model = make(label_features=Z, validation_fraction=0.3).fit(X, Y)
        every = make(label_features=Z, validation_fraction=0.0).fit(X, Y)
        same_answers(every, model, ("coef_", "label_embeddings_"))
        np.testing.assert_array_equal(every._means.vectors, model._means.vectors)
        assert model.fusion_ is not None

    def test_few_leave_the_encoder(self, make, documents, monkeypatch):
        """With a tenth, classifiers and means are those of all, for the encoder of the others."""
        X, Y, Z = documents
        model = make(label_features=Z, validation_fraction=0.1).fit(X, Y)
        kept = np.setdiff1d(np.arange(160), held_out_rows(model, X, Y))
        others = make(label_features=Z, validation_fraction=0.0).fit(X[kept], Y[kept])
        same_answers(others, model, ("label_embeddings_",))
        assert (others.coef_ != model.coef_).any()
        every = make(label_features=Z, validation_fraction=0.0).fit(X, Y)
        np.testing.assert_array_equal(every._seen.counts, model._seen.counts)
        trained = [m.fit_report_["module"].tolist() for m in (model, every)]
        assert trained[0] == trained[1]
        V = model.embed(X)
        means = normalize(np.asarray(Y.T @ V))
        np.testing.assert_allclose(model._means.vectors, means, atol=1e-6)

    @pytest.mark.parametrize(("n", "share"), [(160, 0.3), (2000, 0.15), (5000, 0.1), (10**6, 0.01)])
    def test_how_many_are_held_out(self, n, share, make):
        assert make(validation_fraction="auto")._n_to_hold_out(n) == int(share * n)
        assert make(validation_fraction=0.1)._n_to_hold_out(n) == min(10_000, n // 10)

    def test_labels_with_one_instance_hold_nothing_out(self, make, documents):
        model = make(validation_fraction=0.5).fit(documents.X[:20], np.arange(20))
        assert model._seen.counts.tolist() == [1] * 20
        assert model.fusion_ is None


class TestThreshold:
    @pytest.mark.parametrize("container", [sp.csr_array, sp.csr_array.toarray])
    def test_as_many_labels_as_there_are(self, container, make, documents):
        X, Y, Z = documents
        model = make(label_features=Z, validation_fraction=0.0, fusion="sum").fit(X, container(Y))
        rows = one_of_each(X, Y, np.arange(160))
        predicted = sp.csr_array(model.predict(X[rows]))
        assert predicted.nnz == Y[rows].nnz
        listed = shortlisted(model, X[rows], model.top_k)
        expected = listed & (fused(model, X[rows]) > model.threshold_)
        np.testing.assert_array_equal(predicted.toarray() != 0, expected)

    def test_zero_after_classes(self, make, documents):
        assert make().fit(documents.X, np.arange(160) % 4).threshold_ == 0


class TestVerbose:
    def test_a_line_for_each_epoch(self, make, documents, capsys):
        make(verbose=1, validation_fraction=0.0).fit(*documents[:2])
        lines = capsys.readouterr().out.splitlines()
        lines = [line for line in lines if "encoder epoch 2" not in line]  # at most one a second
        pattern = (
            r"\[NGAMEEmbeddingXC\] {} epoch {} of {}: loss \S+, \S+ % of negatives within the "
            r"margin, \S+ s(, about \S+ s left)?"
        )
        expected = [("encoder", i, 3) for i in (1, 3)] + [("classifier", i, 2) for i in (1, 2)]
        for line, which in zip(lines, expected, strict=True):
            assert re.fullmatch(pattern.format(*which), line)


def test_threads_of_blas_change_no_bit(make, make_documents):
    """An odd number of labels: BLAS rounds the last ones by how its threads share them out."""
    X, Y, Z = make_documents(n=160, n_topics=13, labels_of_topic=37)
    model = make(label_features=Z).fit(X, Y.toarray())
    scores = []
    for n_threads in (1, 2, 3):
        with threadpool_limits(n_threads, user_api="blas"):
            scores.append(model.decision_function(X).tobytes())
    assert scores[0] == scores[1] == scores[2]
