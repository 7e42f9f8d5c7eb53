"""Weights of the instances: gradients, means, frequencies, and pairs of the tree."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc._data import as_csr_rows
from sklearn_xc.embedding._examples import Examples
from sklearn_xc.embedding._fusions import FUSIONS
from sklearn_xc.embedding._modules import ClassifierModule
from sklearn_xc.embedding._training import Pool, SiameseTraining, TripletLoss
from sklearn_xc.samplers.protocol import Positives


class TestRealWeights:
    def test_they_change_all(self, make, documents):
        X, Y, Z = documents
        own = {"label_features": Z, "validation_fraction": 0.3}
        weight = np.random.default_rng(0).uniform(0.1, 3.0, X.shape[0])
        plain = make(**own).fit(X, Y)
        weighted = make(**own).fit(X, Y, sample_weight=weight)
        assert (weighted.coef_ != plain.coef_).any(axis=1).all()
        assert (weighted.label_embeddings_ != plain.label_embeddings_).any(axis=1).all()
        np.testing.assert_allclose(np.linalg.norm(weighted.coef_, axis=1), 1)

    def test_frequencies(self, make, documents):
        X, Y, Z = documents
        own = {"label_features": Z, "validation_fraction": 0.0}
        weight = np.random.default_rng(0).uniform(0.1, 3.0, X.shape[0])
        model = make(**own).fit(X, Y, sample_weight=weight)
        np.testing.assert_allclose(model._trained_counts, Y.T @ weight)
        np.testing.assert_array_equal(make(**own).fit(X, Y)._trained_counts, Y.sum(axis=0))

    def test_means_of_instances_are_weighted(self, make, documents):
        """Without label features a label is the mean of its instances."""
        X, Y, _ = documents
        own = {"max_iter": 0, "classifier_max_iter": 0, "validation_fraction": 0.0}
        weight = np.random.default_rng(0).uniform(0.1, 3.0, X.shape[0])
        model = make(**own).fit(X, Y, sample_weight=weight)
        means = model.embed(sp.csr_array(sp.csr_array(Y * weight[:, None]).T @ X))
        np.testing.assert_allclose(model.label_embeddings_, means, atol=1e-12)

    def test_pairs_of_the_fusion_weigh_as_their_instances(self, make, documents, monkeypatch):
        seen = []

        class Recorder:
            def __init__(self, **parameters):
                pass

            def fit(self, pairs, frequencies):
                seen.append(pairs.weight)

        monkeypatch.setitem(FUSIONS, "boosting", Recorder)
        X, Y, Z = documents
        given = np.random.default_rng(0).uniform(0.1, 3.0, X.shape[0])
        own = {"label_features": Z, "validation_fraction": 0.3, "n_candidates": 20}
        make(**own).fit(X, Y.toarray(), sample_weight=given)
        targets = Y.indptr.astype(np.int64), Y.indices
        total = Examples.distinct(as_csr_rows(X), *targets, given).weight
        of_instances = seen[0].reshape(-1, 20)
        assert (of_instances == of_instances[:, :1]).all()
        assert np.isin(of_instances[:, 0], total).all()
        assert len(np.unique(of_instances)) == len(of_instances) == int(0.3 * len(total))

    def test_what_weighs_more_is_learnt_better(self, make, documents):
        """Half of the documents have wrong labels, and next to no weight."""
        X, Y, Z = documents
        wrong = np.arange(X.shape[0]) // 20 % 2 == 1
        both = Y.tolil()
        both[wrong] = Y[:, np.roll(np.arange(20), 7)][wrong]
        own = {"classifier_max_iter": 15, "classifier_learning_rate": 0.05, "label_features": Z}
        scores = [
            make(**own)
            .fit(X, both.tocsr(), sample_weight=np.where(wrong, light, 1.0))
            .predict_topk(X, 1, component="classifier")[0][:, 0]
            for light in (0.01, 1.0)
        ]
        right, mixed = (Y.toarray()[np.arange(X.shape[0]), best].mean() for best in scores)
        assert right > 0.9
        assert right > mixed + 0.1


class Recorder:
    """A sampler of one mini-batch; as a module it keeps the gradients of vectors that stay."""

    def __init__(self, V=None, Z=None, moves_instances=True):
        self.V, self.Z, self.moves_instances = V, Z, moves_instances
        self.n_labels = None if Z is None else len(Z)

    def refresh(self, epoch, state):
        self.rows = np.arange(state.n)[::-1].copy()

    def batches(self, epoch):
        yield self.rows

    def negatives(self, rows):
        return None

    def select(self, losses):
        return None

    def begin(self, rows, labels, rng):
        self.at = rows, labels
        return self.V[rows], self.Z[labels]

    def learn(self, by_instances, by_labels, rate, team):
        self.gradients = by_instances, by_labels

    def instances(self):
        return self.V

    last_seen = instances

    def labels(self):
        return self.Z


def unit(values):
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def make_step(n=12, n_labels=8, dim=4, seed=0):
    """Return vectors, one or two labels of each instance, and weights."""
    rng = np.random.default_rng(seed)
    V, Z = unit(rng.normal(size=(n, dim))), unit(rng.normal(size=(n_labels, dim)))
    sets = [np.sort(rng.choice(n_labels, 1 + i % 2, replace=False)) for i in range(n)]
    positives = Positives(np.cumsum([0, *map(len, sets)]), np.concatenate(sets).astype(np.int32))
    return V, Z, positives, rng.uniform(0.1, 4.0, n)


def step_of(module, positives, weight, monkeypatch, margin=0.5):
    """Train for an epoch of one step; return the positives drawn and the report."""
    drawn, plain = [], Pool.of
    monkeypatch.setattr(Pool, "of", lambda own, further: drawn.append(own) or plain(own, further))
    training = SiameseTraining(
        module, positives, weight, Recorder(), TripletLoss(margin), 0.1, 1, 0, 1, lambda: None
    )
    (report,) = training.run()
    return drawn[0], report


def losses_of(V, Z, rows, drawn, positives, margin=0.5):
    """Return the loss of each row in turn, and its violations, one pair at a time."""
    losses, n_violations = np.zeros(len(rows)), np.zeros(len(rows), int)
    for a, i in enumerate(rows):
        own = positives.labels[positives.indptr[i] : positives.indptr[i + 1]]
        for label in np.unique(drawn):
            excess = V[i] @ Z[label] - V[i] @ Z[drawn[a]] + margin
            if label not in own and excess > 0:
                losses[a] += excess
                n_violations[a] += 1
    return losses, n_violations


def slope(function, at, h=1e-6):
    out = np.zeros_like(at)
    for index in np.ndindex(at.shape):
        up, down = at.copy(), at.copy()
        up[index] += h
        down[index] -= h
        out[index] = (function(up) - function(down)) / (2 * h)
    return out


class TestSteps:
    def test_gradients_against_finite_differences(self, monkeypatch):
        V, Z, positives, weight = make_step()
        module = Recorder(V, Z)
        drawn, report = step_of(module, positives, weight, monkeypatch)
        rows, labels = module.at
        losses, n_violations = losses_of(V, Z, rows, drawn, positives)
        share = weight[rows] / weight.mean() / np.maximum(n_violations, 1)
        assert (n_violations > 1).sum() > 3

        def objective(V, Z):
            return share @ losses_of(V, Z, rows, drawn, positives)[0]

        by_instances, by_labels = module.gradients
        np.testing.assert_allclose(
            by_instances, slope(lambda at: objective(at, Z), V)[rows], atol=1e-8
        )
        np.testing.assert_allclose(
            by_labels, slope(lambda at: objective(V, at), Z)[labels], atol=1e-8
        )
        assert report.loss == pytest.approx(weight[rows] @ losses / weight.sum())

    def test_a_step_of_classifiers(self, monkeypatch):
        """Adam's first step along the sphere, written out."""
        V, Z, positives, weight = make_step(seed=1)
        drawn, _ = step_of(recorder := Recorder(V, Z, False), positives, weight, monkeypatch)
        rows, labels = recorder.at
        _, n_violations = losses_of(V, Z, rows, drawn, positives)
        share = weight[rows] / weight.mean() / np.maximum(n_violations, 1)
        gradient = slope(lambda at: share @ losses_of(V, at, rows, drawn, positives)[0], Z)
        along = gradient - (gradient * Z).sum(axis=1, keepdims=True) * Z
        expected = Z - 0.1 * np.sqrt(1e-3) * along / (np.sqrt(1e-3) * np.abs(along) + 1e-8)
        W = Z.copy()
        step_of(ClassifierModule(V, W), positives, weight, monkeypatch)
        assert len(labels) > 4
        np.testing.assert_allclose(W[labels], unit(expected)[labels], atol=1e-5)
        plain = Z.copy()
        step_of(ClassifierModule(V, plain), positives, np.ones(12), monkeypatch)
        assert np.abs(W - plain).max() > 0.01
