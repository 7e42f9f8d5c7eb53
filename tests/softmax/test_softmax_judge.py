"""The factor on scores that held-out instances find, how they judge by it, and what it does."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from softmax_inputs import instances_of, problem_of

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax
from sklearn_xc.softmax import _epochs
from sklearn_xc.softmax.factor import best_factor
from sklearn_xc.softmax.judge import Judge, Verdict, standard_error
from sklearn_xc.softmax.pairs import Pairs
from sklearn_xc.softmax.search import Trial, search_rate
from sklearn_xc.solvers.softmax_sgd import SoftmaxState
from sklearn_xc.weights.class_weights import ClassWeights

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(is too high|was still falling):sklearn.exceptions.ConvergenceWarning"
)

ESTIMATORS = [SoftmaxUMax, ImplicitSoftmaxSGD]


def held_out(seed, size, n=40, n_classes=9, dtype=np.float64):
    """Return instances, pairs of one to three classes each, and weights that know something."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 12)).astype(dtype)
    W = rng.normal(size=(n_classes, 12))
    b = rng.normal(size=n_classes)
    scores = X @ W.T + b + 3.0 * rng.gumbel(size=(n, n_classes))
    best = np.argsort(-scores, axis=1)
    count = rng.integers(1, 4, n)
    rows = np.repeat(np.arange(n, dtype=np.int32), count)
    classes = np.concatenate([best[i, :c] for i, c in enumerate(count)]).astype(np.int32)
    pairs = Pairs(rows, classes, np.repeat(rng.integers(1, 4, n).astype(np.float64), count))
    weights = ClassWeights((size * W).astype(dtype), intercept=size * b)
    return X, pairs, weights


def log_proba(X, weights, factor):
    """Return log-probabilities, plainly."""
    scores = factor * (X @ weights.coef.T.astype(np.float64) + weights.intercept)
    return scores - logsumexp(scores, axis=1, keepdims=True)


def plain_log_loss(X, pairs, weights, factor):
    found = log_proba(X, weights, factor)[pairs.rows, pairs.classes]
    return -np.average(found, weights=pairs.weight)


class TestBestFactor:
    @pytest.mark.parametrize("first", [0.1, 1.0, 5.0])
    @pytest.mark.parametrize("size", [1e-3, 0.05, 0.3, 1.0, 30.0])
    @pytest.mark.parametrize("seed", range(4))
    def test_equals_scipy_within_bounds(self, seed, size, first):
        X, pairs, weights = held_out(seed, size)
        bounds = (0.1, 5.0)
        scores = X @ weights.coef.T + weights.intercept
        factor, loss = best_factor(
            scores, pairs.rows, pairs.classes, pairs.weight, first=first, bounds=bounds
        )
        expected = minimize_scalar(
            lambda f: plain_log_loss(X, pairs, weights, f), bounds=bounds, method="bounded",
            options={"xatol": 1e-9},
        )  # fmt: skip
        assert factor == pytest.approx(expected.x, rel=5e-3)
        assert bounds[0] <= factor <= bounds[1]
        assert loss == pytest.approx(expected.fun, abs=1e-5)

    def test_both_bounds_and_the_inside_are_among_them(self):
        found = []
        for size in (1e-3, 0.3, 30.0):
            X, pairs, weights = held_out(0, size)
            scores = X @ weights.coef.T + weights.intercept
            found.append(
                best_factor(
                    scores, pairs.rows, pairs.classes, pairs.weight, first=1.0, bounds=(0.1, 5.0)
                )[0]
            )
        assert found[0] == pytest.approx(5.0, rel=2e-3)
        assert 0.2 < found[1] < 4.0
        assert found[2] == pytest.approx(0.1, rel=2e-3)


class TestJudge:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("by_instance", [False, True])
    @pytest.mark.parametrize("size", [0.05, 0.3, 1.0, 8.0])
    def test_equals_a_plain_reference(self, size, by_instance, dtype):
        X, pairs, weights = held_out(1, size, dtype=dtype)
        verdict = Judge(instances_of(sp.csr_array(X)), pairs, by_instance=by_instance)(weights)
        best = minimize_scalar(
            lambda f: plain_log_loss(X, pairs, weights, f), bounds=(0.05, 1.5), method="bounded"
        ).x
        assert verdict.best == pytest.approx(best, rel=5e-3)
        assert verdict.factor == min(1.0, verdict.best)
        applied = plain_log_loss(X, pairs, weights, verdict.factor)
        assert verdict.log_loss == pytest.approx(applied, rel=1e-5)
        proba = np.exp(log_proba(X, weights, verdict.best))
        if by_instance:
            is_own = np.zeros(proba.shape, bool)
            is_own[pairs.rows, pairs.classes] = True
            each = -np.log((proba * is_own).sum(axis=1))
            weight = pairs.weight[np.unique(pairs.rows, return_index=True)[1]]
        else:
            each, weight = -np.log(proba[pairs.rows, pairs.classes]), pairs.weight
        np.testing.assert_allclose(verdict.each, each, rtol=1e-4, atol=1e-5)
        assert verdict.loss == pytest.approx(np.average(each, weights=weight), rel=1e-5)

    @pytest.mark.parametrize("size", [1e-4, 0.05, 0.3, 1.0, 8.0, 100.0])
    @pytest.mark.parametrize("seed", range(5))
    def test_the_factor_never_raises_the_held_out_log_loss(self, seed, size):
        X, pairs, weights = held_out(seed, size)
        verdict = Judge(instances_of(sp.csr_array(X)), pairs, by_instance=True)(weights)
        assert 0.05 <= verdict.factor <= 1.0
        assert verdict.log_loss <= plain_log_loss(X, pairs, weights, 1.0) + 1e-9

    def test_scores_that_are_all_equal(self):
        X, pairs, _ = held_out(0, 1.0)
        judge = Judge(instances_of(sp.csr_array(X)), pairs, by_instance=False)
        verdict = judge(ClassWeights(np.zeros((9, 12))))
        assert verdict.factor == 1.0
        assert verdict.loss == pytest.approx(np.log(9))

    def test_where_it_starts_makes_no_difference(self):
        X, pairs, weights = held_out(2, 1.0)
        judge = Judge(instances_of(sp.csr_array(X)), pairs, by_instance=False)
        found = [judge(weights, first).best for first in (0.05, 0.4, 1.0, 1.5)]
        np.testing.assert_allclose(found, found[0], rtol=2e-3)


class TestStandardError:
    def test_of_equal_weights(self):
        values = np.random.default_rng(0).normal(size=50)
        expected = values.std() / np.sqrt(50)
        assert standard_error(values, np.full(50, 3.0)) == pytest.approx(expected)

    def test_the_first_stand_for_all(self):
        values = np.random.default_rng(0).normal(size=50)
        expected = values.std() / np.sqrt(200)
        assert standard_error(values, np.ones(200)) == pytest.approx(expected)

    def test_of_weights(self):
        """Of repeated draws of a weighted mean."""
        rng = np.random.default_rng(0)
        weight = rng.uniform(0.1, 5.0, 400)
        means = rng.normal(size=(2000, 400)) @ (weight / weight.sum())
        error = standard_error(rng.normal(size=400), weight)
        assert error == pytest.approx(means.std(), rel=0.15)


class TestTheLowestRateAsGood:
    @staticmethod
    def search(excess, spread, weight):
        """Return the rate found, where 10 is best and each instance is worse by about `excess`."""
        noise = np.tile([-1.0, 1.0], 50)

        def run(rate, least):
            power = int(np.round(np.log10(rate)))
            worse = {1: 0.0, 0: excess}.get(power, 2.0)
            each = 1.0 + worse + (power == 0) * spread * noise
            verdict = Verdict(float(each.mean()), 1.0, 1.0, 1.0, each)
            return Trial(rate, (verdict.loss,), (verdict,))

        return search_rate(run, 1.0, 1, is_fine=False, weight=weight)[0].rate

    @pytest.mark.parametrize(("excess", "rate"), [(0.09, 1.0), (0.11, 10.0)])
    def test_within_one_standard_error(self, excess, rate):
        """The differences have a standard error of 0.1."""
        assert self.search(excess, 1.0, np.ones(100)) == rate

    def test_without_weights_the_best(self):
        assert self.search(0.02, 1.0, None) == 10.0

    def test_what_diverged_is_not_as_good(self):
        def run(rate, least):
            verdict = Verdict(1.0, 1.0, 1.0, 1.0, np.ones(4))
            return Trial(rate, (), ()) if rate < 1 else Trial(rate, (1.0,), (verdict,))

        assert search_rate(run, 1.0, 1, is_fine=False, weight=np.ones(4))[0].rate == 1.0


class TestTheModel:
    @pytest.fixture
    def data(self):
        """Return a few noisy instances with sets of labels: scores soon are too confident."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(120, 60))
        scores = X[:, :10] + 2.0 * rng.gumbel(size=(120, 10))
        Y = (scores >= np.sort(scores, axis=1)[:, -2:-1]).astype(np.int64)
        return X, sp.csr_array(Y)

    @pytest.mark.parametrize("average", [False, True])
    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_it_ranks_as_without_the_factor(self, estimator, average, data, monkeypatch):
        X, Y = data
        scaled = estimator(random_state=0, average=average).fit(X, Y)
        monkeypatch.setattr("sklearn_xc.softmax.classifier.scale_scores", lambda *args: None)
        plain = estimator(random_state=0, average=average).fit(X, Y)
        factor = scaled.score_factor_
        assert 0.05 <= factor < 0.99
        np.testing.assert_allclose(scaled.coef_, factor * plain.coef_, rtol=1e-12)
        np.testing.assert_allclose(scaled.intercept_, factor * plain.intercept_, rtol=1e-12)
        np.testing.assert_array_equal(scaled.predict_topk(X, 10)[0], plain.predict_topk(X, 10)[0])

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_a_given_rate_is_treated_alike(self, estimator, data):
        X, Y = data
        found = estimator(random_state=0).fit(X, Y)
        given = estimator(
            random_state=0, learning_rate=found.learning_rate_, early_stopping=True
        ).fit(X, Y)
        assert given.score_factor_ == found.score_factor_
        assert given.coef_.tobytes() == found.coef_.tobytes()

    @pytest.mark.parametrize(
        "parameters", [{"learning_rate": 1.0}, {"early_stopping": False, "max_iter": 3}]
    )
    def test_without_early_stopping_there_is_none(self, parameters, data):
        assert ImplicitSoftmaxSGD(random_state=0, **parameters).fit(*data).score_factor_ == 1.0

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_further_training_goes_on_from_what_is_answered(self, estimator, data):
        X, Y = data
        model = estimator(random_state=0).fit(X, Y)
        factor, before = model.score_factor_, model.coef_.copy()
        model.learning_rate = 1e-12
        model.learning_rate_ = 1e-12
        model.partial_fit(X[:30], Y[:30])
        assert factor < 1
        assert model.score_factor_ == factor
        np.testing.assert_allclose(model.coef_, before, rtol=1e-6, atol=1e-9)

    def test_a_first_partial_fit_has_none(self, data):
        assert ImplicitSoftmaxSGD(random_state=0).partial_fit(*data).score_factor_ == 1.0

    def test_where_scores_are_too_many_there_is_none(self, data, monkeypatch):
        monkeypatch.setattr(_epochs, "_JUDGED_SCORES", 10)
        assert ImplicitSoftmaxSGD(random_state=0).fit(*data).score_factor_ == 1.0

    @pytest.mark.parametrize("kind", ["sets", "one column each", "classes"])
    def test_only_sets_are_judged_by_instance(self, kind, data, monkeypatch):
        X, Y = data
        y = np.asarray(Y.toarray().argmax(axis=1))
        target = {"sets": Y, "one column each": sp.csr_array(np.eye(10)[y]), "classes": y}[kind]
        seen = []

        def spy(*args, by_instance, **kwargs):
            seen.append(by_instance)
            return Judge(*args, by_instance=by_instance, **kwargs)

        monkeypatch.setattr(_epochs, "Judge", spy)
        ImplicitSoftmaxSGD(random_state=0).fit(X, target)
        assert seen == [kind == "sets"]


class TestNormalisers:
    @pytest.mark.parametrize("factor", [0.05, 0.4, 0.9, 1.0])
    def test_they_are_not_too_low_for_scaled_weights(self, factor, make_xy):
        problem = problem_of(make_xy)
        rng = np.random.default_rng(0)
        W = rng.normal(size=(problem.n_classes, problem.instances.shape[1]))
        b = rng.normal(size=problem.n_classes)

        def losses(W, b):
            weights = ClassWeights(W, intercept=b)
            return weights.log_losses(problem.instances, problem.rows, problem.classes, 1)

        state = SoftmaxState.at(W.copy(), losses(W, b), b)
        mean, mean_b = W.copy(), b.copy()
        _epochs.scale_scores(state, mean, mean_b, factor)
        exact = losses(factor * W, factor * b)
        assert (state.u >= exact - 1e-9).all()
        assert (state.u <= np.maximum(losses(W, b), np.log(problem.n_classes)) + 1e-9).all()
        for weights in (state.V, mean):
            np.testing.assert_allclose(weights, factor * W, rtol=1e-12)
        for intercept in (state.intercept, mean_b):
            np.testing.assert_allclose(intercept, factor * b, rtol=1e-12)

    def test_the_same_array_is_scaled_once(self):
        state = SoftmaxState.at(np.ones((3, 2)), np.zeros(4), np.ones(3))
        _epochs.scale_scores(state, state.V, state.intercept, 0.5)
        assert (state.V == 0.5).all()
        assert (state.intercept == 0.5).all()
