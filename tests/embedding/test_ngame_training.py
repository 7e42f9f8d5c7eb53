"""Steps of Siamese training against brute force, and what epochs report."""

from types import SimpleNamespace

import numpy as np
import pytest

from sklearn_xc._parallel.threads import Team
from sklearn_xc._state.checkpoints import Loop
from sklearn_xc.embedding import _training
from sklearn_xc.embedding._examples import Examples
from sklearn_xc.embedding._training import ClassifierModule, Pool, SiameseTraining
from sklearn_xc.embedding.samplers import InBatchSampler, NgameSampler
from sklearn_xc.embedding.samplers.protocol import Positives

N_LABELS = 9


class Recorder:
    """A module whose vectors stay: it records its steps."""

    def __init__(self, V, Z, moves_instances=True):
        self.V, self.Z, self.moves_instances = V, Z, moves_instances
        self.n_labels = len(Z)
        self.steps = []

    def begin(self, rows, labels, rng):
        self._at = rows, labels
        return self.V[rows], self.Z[labels]

    def learn(self, by_instances, by_labels, rate, team):
        self.steps.append((*self._at, by_instances, by_labels, rate))

    def instances(self):
        return self.V

    last_seen = instances

    def labels(self):
        return self.Z


class Prescribed:
    """A sampler that gives the mini-batches, negatives and choices it is made with."""

    def __init__(self, batches, negatives=None, select=None):
        self._batches, self._negatives, self._select = batches, negatives, select

    def refresh(self, epoch, state):
        pass

    def batches(self, epoch):
        return iter(self._batches)

    def negatives(self, rows):
        return None if self._negatives is None else self._negatives[rows]

    def select(self, losses):
        return None if self._select is None else self._select(losses)


def unit(values):
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def make_vectors(n=14, dim=5, seed=0):
    rng = np.random.default_rng(seed)
    return unit(rng.normal(size=(n, dim))), unit(rng.normal(size=(N_LABELS, dim)))


def make_positives(n=14, seed=0):
    rng = np.random.default_rng(seed)
    own = [np.sort(rng.choice(N_LABELS, rng.integers(1, 4), replace=False)) for _ in range(n)]
    indptr = np.concatenate(([0], np.cumsum([len(labels) for labels in own]))).astype(np.int64)
    return Positives(indptr, np.concatenate(own).astype(np.int32))


def labels_of(positives, i):
    return positives.labels[positives.indptr[i] : positives.indptr[i + 1]]


def excess(V, Z, rows, pool, drawn, positives, margin):
    """Return ``z_k - z_own + margin`` (n, m), 0 for all that do not count."""
    out = np.zeros((len(rows), len(pool)))
    for a, i in enumerate(rows):
        for b, label in enumerate(pool):
            if label not in labels_of(positives, i):
                out[a, b] = max(0, V[i] @ Z[label] - V[i] @ Z[drawn[a]] + margin)
    return out


@pytest.fixture
def drawn(monkeypatch):
    """Return a list of the positives drawn for each mini-batch so far."""
    kept, plain = [], Pool.of

    def of(positives, further):
        kept.append(positives)
        return plain(positives, further)

    monkeypatch.setattr(_training.Pool, "of", of)
    return kept


def train(module, sampler, positives, margin=0.3, rate=0.1, n_epochs=1, n_workers=1, weight=None):
    if weight is None:
        weight = np.ones(len(positives.indptr) - 1)
    training = SiameseTraining(
        module,
        Examples(None, positives, weight),
        sampler,
        margin=margin,
        rate=rate,
        n_epochs=n_epochs,
        seed=0,
        n_workers=n_workers,
    )
    progress = SimpleNamespace(begin=lambda: None, end=lambda task, text: False)
    return training.fit(progress, Loop())


def moved(values, at, step):
    values = values.copy()
    values[at] += step
    return values


class TestOneStep:
    @pytest.mark.parametrize(
        ("weighted", "half", "further"),
        [(False, False, True), (True, False, False), (True, True, True)],
    )
    def test_finite_differences(self, weighted, half, further, drawn):
        """Each instance counts by its weight alone: its violations divide its gradient."""
        (V, Z), positives = make_vectors(), make_positives()
        rows = np.array([3, 0, 7, 11, 5, 12])
        chosen = np.array([True, False, True, False, True, True])
        negatives = np.full((14, 3), -1, np.int32)
        if further:
            for i in range(0, 14, 2):
                others = np.setdiff1d(np.arange(N_LABELS), labels_of(positives, i))
                negatives[i, : 1 + i % 3] = others[: 1 + i % 3]
        others = np.setdiff1d(np.arange(14), rows)
        select = (lambda losses: chosen if len(losses) == 6 else None) if half else None
        sampler = Prescribed([rows, others], negatives, select)
        module = Recorder(V, Z)
        weight = np.random.default_rng(8).uniform(0.2, 3, 14) if weighted else np.ones(14)
        train(module, sampler, positives, 0.4, weight=weight)
        weight /= weight.mean()
        (_, pool, by_instances, by_labels, _), _ = module.steps
        assert set(pool) == {*drawn[0], *negatives[rows][negatives[rows] >= 0]}
        assert (np.diff(pool) > 0).all()

        def terms(V, Z):
            return excess(V, Z, rows, pool, drawn[0], positives, 0.4)

        n_violations = np.maximum((terms(V, Z) > 0).sum(axis=1), 1)
        assert n_violations.max() > 1

        def total(V, Z):
            shares = weight[rows] / n_violations * (chosen if half else 1)
            return (shares * terms(V, Z).sum(axis=1)).sum()

        h = 1e-6
        for a, i in enumerate(rows):
            for c in range(5):
                slope = total(moved(V, (i, c), h), Z) - total(moved(V, (i, c), -h), Z)
                assert by_instances[a, c] == pytest.approx(slope / (2 * h), abs=1e-7)
        for b, label in enumerate(pool):
            for c in range(5):
                slope = total(V, moved(Z, (label, c), h)) - total(V, moved(Z, (label, c), -h))
                assert by_labels[b, c] == pytest.approx(slope / (2 * h), abs=1e-7)

    def test_further_negatives_of_one_are_negatives_of_all(self):
        V, Z = make_vectors(n=2)
        positives = Positives(np.arange(3), np.array([0, 1], np.int32))
        negatives = np.array([[4, -1], [-1, -1]], np.int32)
        module = Recorder(V, Z)
        train(module, Prescribed([np.arange(2)], negatives), positives, 2.0)
        ((_, pool, by_instances, _, _),) = module.steps
        assert pool.tolist() == [0, 1, 4]
        np.testing.assert_allclose(by_instances[0], (Z[1] + Z[4]) / 2 - Z[0])
        np.testing.assert_allclose(by_instances[1], (Z[0] + Z[4]) / 2 - Z[1])

    def test_instances_that_stay_have_no_gradient(self):
        module = Recorder(*make_vectors(), moves_instances=False)
        train(module, Prescribed([np.arange(14)]), make_positives())
        assert module.steps[0][2] is None

    @pytest.mark.parametrize("scale", [1e-60, 1e60])
    def test_the_mean_weight_is_nothing_to_learn_from(self, scale):
        weight, found = np.random.default_rng(8).uniform(0.2, 3, 14), []
        for each in (weight, scale * weight):
            module = Recorder(*make_vectors())
            (report,) = train(module, Prescribed([np.arange(14)]), make_positives(), weight=each)
            found.append((*module.steps[0][2:4], report.loss))
        for one, other in zip(*found, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


class TestEpochs:
    def test_the_rate_falls_to_0_in_a_line(self):
        module = Recorder(*make_vectors(n=12))
        batches = np.arange(12).reshape(3, 4)
        train(module, Prescribed(batches), make_positives(12), rate=0.6, n_epochs=2)
        rates = [step[-1] for step in module.steps]
        np.testing.assert_allclose(rates, 0.6 * (1 - np.arange(6) / 6))

    def test_positives_are_drawn_anew_and_all_of_them(self, drawn):
        positives = make_positives()
        module = Recorder(*make_vectors())
        train(module, Prescribed([np.arange(14)]), positives, n_epochs=30)
        found = [set(np.array(drawn)[:, i]) for i in range(14)]
        assert found == [set(labels_of(positives, i)) for i in range(14)]

    @pytest.mark.parametrize("weighted", [False, True])
    def test_reports(self, weighted, drawn):
        """Loss and violations, of chosen instances or not, are those of brute force."""
        (V, Z), positives = make_vectors(), make_positives()
        batches = [np.arange(0, 8), np.arange(8, 14)]
        sampler = Prescribed(batches, select=lambda losses: losses > np.median(losses))
        module = Recorder(V, Z)
        weight = np.random.default_rng(8).uniform(0.2, 3, 14) if weighted else np.ones(14)
        reports = train(module, sampler, positives, 0.5, n_epochs=2, weight=weight)
        assert len(reports) == 2
        for epoch, report in enumerate(reports):
            loss, n_violations, n_negatives = 0.0, 0, 0
            for j in (0, 1):
                rows, pool, *_ = module.steps[2 * epoch + j]
                terms = excess(V, Z, rows, pool, drawn[2 * epoch + j], positives, 0.5)
                loss += (weight[rows] @ terms).sum()
                n_violations += (terms > 0).sum()
                n_negatives += sum(len(set(pool) - {*labels_of(positives, i)}) for i in rows)
            assert report.loss == pytest.approx(loss / weight.sum())
            assert report.violations == pytest.approx(n_violations / n_negatives)


class TestClassifiers:
    def step(self, W, labels, gradient, rate=0.1, times=1, V=None):
        module = ClassifierModule(np.zeros((1, W.shape[1])) if V is None else V, W)
        with Team(1) as team:
            for _ in range(times):
                module.begin(np.zeros(1, np.int64), labels, np.random.default_rng(0))
                module.learn(None, gradient, rate, team)
        return module

    def test_only_the_pool_moves_and_the_norm_stays(self):
        _, W = make_vectors()
        before, labels = W.copy(), np.array([1, 4, 8], np.int32)
        gradient = np.random.default_rng(1).normal(size=(3, 5))
        module = self.step(W, labels, gradient, times=4)
        assert module.labels() is W
        changed = np.flatnonzero((before != W).any(axis=1))
        assert changed.tolist() == [1, 4, 8]
        np.testing.assert_allclose(np.linalg.norm(W, axis=1), 1)
        assert ((W - before)[labels] * gradient).sum() < 0  # downhill

    def test_a_gradient_along_the_vector_moves_nothing(self):
        _, W = make_vectors()
        before, labels = W.copy(), np.arange(N_LABELS, dtype=np.int32)
        self.step(W, labels, np.zeros_like(W))
        np.testing.assert_allclose(W, before, atol=1e-15)
        self.step(W, labels, 2 * before)
        np.testing.assert_allclose(W, before, atol=1e-6)

    def test_a_zero_row_has_norm_1_after_its_first_step(self):
        _, W = make_vectors()
        W[2] = W[3] = 0
        gradient = np.zeros((2, 5))
        gradient[0] = np.arange(1.0, 6.0)
        self.step(W, np.array([2, 3], np.int32), gradient)
        assert np.linalg.norm(W[2]) == pytest.approx(1)
        assert (W[2] < 0).all()
        assert not W[3].any()  # without a gradient, no step


class TestMining:
    def test_near_instances_hit_twice_as_often(self, make, make_documents, curve_of):
        X, Y, Z = make_documents(n=600, n_topics=24, labels_of_topic=5)
        own = {
            "max_iter": 8,
            "classifier_max_iter": 0,
            "learning_rate": 0.02,
            "label_features": Z,
            "validation_fraction": 0.0,
            "embedding_dim": 24,
        }
        shares = {
            type(sampler): curve_of(make(sampler=sampler, **own).fit(X, Y), "encoder")[-1][1]
            for sampler in (InBatchSampler(40), NgameSampler(refresh_interval=1, batch_size=40))
        }
        assert shares[NgameSampler] > 2 * shares[InBatchSampler]
