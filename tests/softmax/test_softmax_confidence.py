"""How sure a softmax model is of its best class, as held-out instances let it be."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.metrics import log_loss

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax
from sklearn_xc._data import as_csr_rows
from sklearn_xc.softmax.confidence import Confidence, SureWeights, learn_confidence
from sklearn_xc.softmax.pairs import Pairs

SURE = Confidence(0.7, (0.8, 0.3, -0.2))
ESTIMATORS = [ImplicitSoftmaxSGD, SoftmaxUMax]


def weights_of(n_classes=9, n_features=7, unseen=(), seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    coef = (3 * rng.normal(size=(n_classes, n_features))).astype(dtype)
    prior = np.log(rng.dirichlet(np.ones(n_classes)))
    return SureWeights(coef, None, rng.normal(size=n_classes), prior, np.array(unseen, np.int64))


def rows_of(X):
    return as_csr_rows(sp.csr_array(X))


def mapped(scores, confidence):
    """Return probabilities, row by row, as the documentation says."""
    found = softmax(scores / confidence.temperature, axis=1)
    a, b, c = confidence.best
    for row in found:
        best = row.argmax()
        p = row[best]
        others = np.delete(row, best)
        sure = 1 / (1 + np.exp(-(a * np.log(p) - b * np.log(1 - p) + c)))
        most = others.max() / (1 - p)
        sure = max(sure, most / (1 + most))
        row *= (1 - sure) / (1 - p)
        row[best] = sure
    return found


def noisy(n=5000, n_classes=6, seed=0):
    """Return instances whose class is another one at random for three in ten.

    Long ones score as if that could not be.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8)) * rng.lognormal(size=(n, 1))
    y = (X @ rng.normal(size=(8, n_classes)) * 4).argmax(axis=1)
    wrong = rng.random(n) < 0.3
    y[wrong] = rng.integers(n_classes, size=wrong.sum())
    return X, y


def calibration_error(proba, right):
    """Return it for the best class, with bins of equally many instances."""
    best = proba.max(axis=1)
    parts = np.array_split(np.argsort(best), 8)
    return sum(len(p) * abs(best[p].mean() - right[p].mean()) for p in parts) / len(best)


@pytest.fixture(scope="module", params=ESTIMATORS)
def fitted(request):
    X, y = noisy()
    model = request.param(random_state=0).fit(X[:3000], y[:3000])
    return model, X, y


class TestProbabilities:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("confidence", [SURE, Confidence(1.6, (1.3, 1.1, 0.4))])
    def test_by_hand(self, confidence, dtype):
        weights = weights_of(dtype=dtype)
        X = rows_of(np.random.default_rng(1).normal(size=(40, 7)).astype(dtype) / 3)
        scores = weights.scores(X, 1)
        expected = mapped(scores.astype(np.float64), confidence)
        order = np.argsort(-scores, axis=1, kind="stable")
        confidence.log_proba(scores, weights)
        np.testing.assert_allclose(
            np.exp(scores), expected, rtol=1e-3 if dtype == np.float32 else 2e-5
        )
        np.testing.assert_allclose(np.exp(scores).sum(axis=1), 1, rtol=1e-5)
        np.testing.assert_array_equal(np.argsort(-scores, axis=1, kind="stable"), order)

    def test_the_best_class_stays_ahead(self):
        """Where the map would put it below the second."""
        weights = SureWeights(np.array([[1.0], [0.9], [-5.0]]), prior=np.zeros(3))
        scores = weights.scores(rows_of([[1.0]]), 1)
        Confidence(1.0, (1.0, 1.0, -4.0)).log_proba(scores, weights)
        first, second, third = np.exp(scores[0])
        assert second < first < second * 1.001
        assert third < 0.01

    def test_plain_is_the_softmax(self):
        weights = weights_of()
        scores = weights.scores(rows_of(np.eye(7)), 1)
        expected = log_softmax(scores, axis=1)
        Confidence().log_proba(scores, weights)
        np.testing.assert_allclose(scores, expected, atol=1e-13)

    def test_classes_that_tie_are_as_sure(self):
        weights = SureWeights(np.array([[2.0], [2.0], [0.0]]), prior=np.zeros(3))
        scores = weights.scores(rows_of([[1.0]]), 1)
        SURE.log_proba(scores, weights)
        np.testing.assert_allclose(np.exp(scores), softmax([[2 / 0.7, 2 / 0.7, 0]], axis=1))

    def test_rows_without_features_keep_the_frequencies(self):
        weights = weights_of()
        scores = weights.scores(rows_of(np.vstack([np.zeros(7), np.ones(7)])), 1)
        SURE.log_proba(scores, weights)
        np.testing.assert_allclose(np.exp(scores[0]), np.exp(weights.prior))

    def test_classes_without_an_instance_have_none(self):
        weights, seen = weights_of(unseen=(2, 5)), [0, 1, 3, 4, 6, 7, 8]
        scores = weights.scores(rows_of(np.eye(7)), 1)
        expected = mapped(scores[:, seen], SURE)
        SURE.log_proba(scores, weights)
        assert (scores[:, [2, 5]] == -np.inf).all()
        np.testing.assert_allclose(np.exp(scores[:, seen]), expected, rtol=2e-5)
        one = weights_of(n_classes=3, unseen=(0, 2))
        scores = one.scores(rows_of(np.eye(7)), 1)
        SURE.log_proba(scores, one)
        np.testing.assert_array_equal(np.exp(scores), [[0, 1, 0]] * 7)

    def test_scores_beyond_exponentials(self):
        weights = SureWeights(np.array([[900.0], [-900.0], [0.0]]), prior=np.zeros(3))
        scores = weights.scores(rows_of([[1.0], [-1.0]]), 1)
        SURE.log_proba(scores, weights)
        assert np.isfinite(scores).all()
        np.testing.assert_allclose(np.exp(scores).sum(axis=1), 1)

    @pytest.mark.parametrize("unseen", [(), (4,)])
    def test_the_best_of_many(self, unseen):
        weights = weights_of(unseen=unseen)
        X = rows_of(np.vstack([np.random.default_rng(1).normal(size=(30, 7)), np.zeros(7)]))
        labels, found = weights.topk_log_proba(X, 4, SURE, 1)
        np.testing.assert_array_equal(labels, weights.topk(X, 4, 1)[0])
        scores = weights.scores(X, 1)
        SURE.log_proba(scores, weights)
        np.testing.assert_array_equal(found, np.take_along_axis(scores, labels, axis=1))


class TestLearning:
    def held_out(self, n=4000, noise=0.3, n_classes=9):
        """Return weights, instances, pairs, scores and classes, drawn by the softmax with noise."""
        weights = weights_of(n_classes=n_classes)
        rng = np.random.default_rng(2)
        X = rows_of(rng.normal(size=(n, 7)) / 3)
        scores = weights.scores(X, 1)
        chances = (1 - noise) * softmax(2 * scores, axis=1) + noise / n_classes
        y = (chances.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=n_classes - 1)
        pairs = Pairs(np.arange(n, dtype=np.int32), y.astype(np.int32), np.ones(n))
        return weights, X, pairs, scores, y

    def test_it_lowers_the_log_loss(self):
        weights, X, pairs, scores, y = self.held_out()
        found = learn_confidence(weights, X, pairs, 1)
        before = log_loss(y, softmax(scores, axis=1))
        assert log_loss(y, mapped(scores, found)) < before - 0.05
        best = mapped(scores, found).max(axis=1)
        right = scores.argmax(axis=1) == y
        for low, high in ((0.5, 0.65), (0.65, 1.0)):  # below, the second class is a bound
            inside = (best > low) & (best <= high)
            assert inside.sum() > 200
            assert abs(best[inside].mean() - right[inside].mean()) < 0.04

    def test_it_is_the_least_of_its_loss(self):
        weights, X, pairs, scores, y = self.held_out(n=2000)
        found = learn_confidence(weights, X, pairs, 1)
        p = softmax(scores / found.temperature, axis=1).max(axis=1)
        right = scores.argmax(axis=1) == y

        def loss(numbers):
            a, b, c = numbers
            odds = a * np.log(p) - b * np.log1p(-p) + c
            away = (a - 1) ** 2 + (b - 1) ** 2 + c**2
            return np.logaddexp(0, odds).sum() - odds[right].sum() + 4 * away

        least = minimize(loss, np.zeros(3), method="BFGS")
        assert (least.x[:2] > 0).all()
        np.testing.assert_allclose(found.best, least.x, atol=0.01)

    def test_right_probabilities_are_left_alone(self):
        weights, X, _, scores, _ = self.held_out()
        rng = np.random.default_rng(5)
        y = (softmax(scores, axis=1).cumsum(axis=1) < rng.random((len(scores), 1))).sum(axis=1)
        pairs = Pairs(
            np.arange(len(y), dtype=np.int32), y.clip(max=8).astype(np.int32), np.ones(len(y))
        )
        assert learn_confidence(weights, X, pairs, 1).is_plain

    def test_few_instances_say_nothing(self):
        weights, X, pairs, _, _ = self.held_out()
        assert learn_confidence(weights, X, pairs.take(np.arange(10)), 1).is_plain

    def test_classes_that_are_new_make_it_less_sure(self):
        weights, X, pairs, scores, y = self.held_out(noise=0.0)
        known = SureWeights(
            weights.coef, None, weights.intercept, weights.prior, np.array([0, 1, 2, 3])
        )
        found = learn_confidence(known, X, pairs, 1)
        left = mapped(scores[:, 4:], found).max(axis=1)
        plain = softmax(scores[:, 4:], axis=1).max(axis=1)
        right = 4 + scores[:, 4:].argmax(axis=1) == y
        assert abs(left.mean() - right.mean()) < 0.06  # the second class is a bound
        assert plain.mean() > right.mean() + 0.1

    def test_order_and_repetition_make_no_difference(self):
        weights, X, pairs, _, _ = self.held_out(n=1200)
        found = learn_confidence(weights, X, pairs, 1)
        order = np.random.default_rng(0).permutation(1200)
        place = np.argsort(order).astype(np.int32)
        moved = Pairs(place[pairs.rows], pairs.classes, pairs.weight)  # content stays in order
        assert learn_confidence(weights, X.take(order), moved, 1) == found
        twice = Pairs(pairs.rows, pairs.classes, 2 * pairs.weight)
        again = Pairs(*(np.repeat(part, 2) for part in (pairs.rows, pairs.classes, pairs.weight)))
        np.testing.assert_allclose(
            learn_confidence(weights, X, twice, 1).best,
            learn_confidence(weights, X, again, 1).best, rtol=1e-6,
        )  # fmt: skip

    def test_pieces_make_no_difference(self, monkeypatch):
        weights, X, pairs, _, _ = self.held_out(n=700)
        found = learn_confidence(weights, X, pairs, 1)
        monkeypatch.setattr("sklearn_xc.softmax.confidence.ROOM_OF_SCORES", 9 * 64)
        again = learn_confidence(weights, X, pairs, 1)
        assert again.temperature == found.temperature
        np.testing.assert_allclose(again.best, found.best, rtol=1e-9)

    def test_rows_without_features_are_not_asked(self):
        weights, X, pairs, _, _ = self.held_out(n=800)
        blank = rows_of(np.vstack([np.zeros((500, 7)), sp.csr_array(
            (X.data, X.indices, X.indptr), shape=X.shape).toarray()]))  # fmt: skip
        classes = np.concatenate([np.zeros(500, np.int32), pairs.classes])
        more = Pairs(np.arange(1300, dtype=np.int32), classes, np.ones(1300))
        assert learn_confidence(weights, blank, more, 1) == learn_confidence(weights, X, pairs, 1)


class TestEstimators:
    def test_new_instances_are_right_as_often_as_said(self, fitted):
        model, X, y = fitted
        assert not model._confidence.is_plain
        plain = softmax(model.decision_function(X[3000:]), axis=1)
        proba = model.predict_proba(X[3000:])
        assert log_loss(y[3000:], proba) < log_loss(y[3000:], plain) - 0.03
        right = model.predict(X[3000:]) == y[3000:]
        assert calibration_error(proba, right) < 0.7 * calibration_error(plain, right)

    def test_it_is_what_the_attributes_say(self, fitted):
        model, X, _ = fitted
        scores = model.decision_function(X)
        told = Confidence(model.temperature_, tuple(model.best_map_))
        np.testing.assert_allclose(model.predict_proba(X), mapped(scores, told), rtol=1e-4)
        np.testing.assert_array_equal(model.predict_proba(X).argmax(axis=1), scores.argmax(axis=1))
        copy = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))

    def test_nothing_is_learned_where_nothing_is_held_out(self, fitted):
        _, X, y = fitted
        for parameters in ({"learning_rate": 1.0}, {"early_stopping": False}):
            model = ImplicitSoftmaxSGD(random_state=0, max_iter=3, **parameters).fit(X, y)
            assert model.temperature_ == 1.0
            np.testing.assert_array_equal(model.best_map_, [1, 1, 0])
            np.testing.assert_allclose(
                model.predict_proba(X), softmax(model.decision_function(X), axis=1), rtol=1e-10
            )

    def test_further_training_leaves_it(self, fitted):
        model, X, y = fitted
        kept = pickle.loads(pickle.dumps(model))
        before = kept._confidence
        kept.partial_fit(X[:200], y[:200])
        assert kept._confidence == before
        kept.set_params(warm_start=True, learning_rate=0.1, early_stopping=True).fit(
            X[:300], y[:300]
        )
        assert kept._confidence == before
        kept.set_params(warm_start=False, early_stopping=False).fit(X[:300], y[:300])
        assert kept._confidence.is_plain
        first = ImplicitSoftmaxSGD(random_state=0).partial_fit(X[:300], y[:300])
        assert first.temperature_ == 1.0

    def test_unfitted(self):
        model = ImplicitSoftmaxSGD()
        for name in ("temperature_", "best_map_"):
            with pytest.raises(AttributeError, match="ImplicitSoftmaxSGD is not fitted yet"):
                getattr(model, name)

    @pytest.mark.parametrize("container", [sp.csr_array, np.asarray])
    def test_label_sets(self, container, fitted):
        """What is predicted follows the probabilities that are told."""
        _, X, y = fitted
        Y = np.eye(6, dtype=int)[y]
        Y[:, 0] |= X[:, 0] > 1
        model = ImplicitSoftmaxSGD(random_state=0, max_iter=10).fit(X, container(Y))
        model._confidence = SURE
        proba = model.predict_proba(X)
        predicted = model.predict(X)
        if sp.issparse(proba):
            proba, predicted = proba.toarray(), predicted.toarray()
        np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-5)
        threshold = 0.5 / Y.sum(axis=1).mean()
        clear = np.abs(proba / threshold - 1) > 1e-6
        np.testing.assert_array_equal((predicted > 0)[clear], (proba > threshold)[clear])

    def test_jobs_change_no_bit(self, fitted):
        model, X, y = fitted
        other = type(model)(**{**model.get_params(), "n_jobs": 2}).fit(X[:3000], y[:3000])
        assert other._confidence == model._confidence
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
