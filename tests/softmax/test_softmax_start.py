"""The start at the means of the classes, against a slow dense twin, and what it does for a fit."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
import scipy.special

from sklearn_xc._input.data import CsrRows
from sklearn_xc.softmax.problem import SoftmaxProblem
from sklearn_xc.softmax.start import best_multiple, start_at_means
from sklearn_xc.softmax.state import SoftmaxState

PRIORS = (1.0, 3.0, 10.0, 30.0, 100.0)


def problem_of(dense, rows, classes, weight=None, n_classes=None):
    X = sp.csr_array(dense)
    indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int32)
    return SoftmaxProblem(
        CsrRows(indptr, indices, X.data, X.shape),
        np.asarray(rows, np.int32),
        np.asarray(classes, np.int32),
        np.ones(len(rows)) if weight is None else np.asarray(weight, np.float64),
        int(np.max(classes)) + 1 if n_classes is None else n_classes,
        0.0,
    )


def start_of(problem, seed=0, n_jobs=None, u=None):
    shape = problem.n_classes, problem.instances.shape[1]
    u = np.full(problem.n_pairs, np.log(problem.n_classes)) if u is None else u
    state = SoftmaxState.at(np.zeros(shape, problem.instances.dtype), u)
    start_at_means(problem, state, seed, n_jobs)
    return state


def assert_untouched(state, u=None):
    assert (state.V == 0).all()
    assert (state.scale == 1).all()
    np.testing.assert_array_equal(state.u, np.log(len(state.V)) if u is None else u)
    assert state.hard.shape == (len(state.u), 0)


def dense_of(problem):
    X = problem.instances
    return sp.csr_array((X.data, X.indices, X.indptr), X.shape).toarray().astype(np.float64)


def observed_weight(problem):
    """Return the weights in units of what is usual, so that a common factor is nothing."""
    weight = problem.weight
    return weight / max(np.median(weight), weight.mean() / 2)


def left_out_scores(problem, prior):
    """Return the scores of each row by means that know nothing of the row, one loop after another.

    The sums of its own classes do without it; so do their numbers of instances.
    """
    dense, weight = dense_of(problem), observed_weight(problem)
    scores = np.zeros((len(dense), problem.n_classes))
    for i in range(len(dense)):
        for k in range(problem.n_classes):
            there = (problem.classes == k) & (problem.rows != i)
            total = (weight[there, None] * dense[problem.rows[there]]).sum(axis=0)
            scores[i, k] = dense[i] @ total / (weight[there].sum() + prior)
    return scores


def log_loss(eta, scores, rows, classes, weight):
    normalisers = scipy.special.logsumexp(eta * scores, axis=1)
    return np.average(normalisers[rows] - eta * scores[rows, classes], weights=weight)


def minimise(scores, rows, classes, weight, most=None):
    """Return the best factor, and its log-loss."""
    reach = 50.0 / np.abs(scores).max() * len(scores[0]) if most is None else most
    found = scipy.optimize.minimize_scalar(
        log_loss,
        bounds=(0.0, reach),
        args=(scores, rows, classes, weight),
        method="bounded",
        options={"xatol": 1e-9 * reach},
    )
    return found.x, found.fun


def prior_and_factor(problem, state):
    """Return c and eta where the scales are ``eta / (n_k + c)``."""
    mass = np.bincount(problem.classes, observed_weight(problem), minlength=problem.n_classes)
    slope, offset = np.polyfit(mass, 1 / state.scale, 1)
    np.testing.assert_allclose(1 / state.scale, offset + slope * mass, rtol=1e-9)
    return offset / slope, 1 / slope


def multiclass(dtype=np.float64, weighted=False, noise=1.0, seed=0, n=90, d=12, n_classes=6):
    rng = np.random.default_rng(seed)
    classes = np.r_[np.arange(n_classes), rng.integers(0, n_classes, n - n_classes) // 2]
    dense = rng.normal(size=(n_classes, d))[classes] + noise * rng.normal(size=(n, d))
    dense *= rng.random((n, d)) < 0.6
    dense[7] = 0
    weight = rng.uniform(0.3, 4.0, n) if weighted else None
    return problem_of(dense.astype(dtype), np.arange(n), classes, weight)


def multilabel(dtype=np.float64, weighted=False, seed=1, n=60, d=15, n_classes=8):
    rng = np.random.default_rng(seed)
    Y = rng.random((n, n_classes)) < np.linspace(0.1, 0.5, n_classes)
    Y[:3] = 0  # rows that no pair names
    Y[3] = True
    topics = rng.normal(size=(n_classes, d))
    dense = Y @ topics + 0.8 * rng.normal(size=(n, d))
    rows, classes = np.nonzero(Y)
    order = rng.permutation(len(rows))  # pairs come in any order
    weight = rng.uniform(0.3, 4.0, n)[rows] if weighted else np.ones(len(rows))
    return problem_of(
        dense.astype(dtype), rows[order], classes[order], weight[order], n_classes + 1
    )  # the last class has no instance


def one_label_each(dtype=np.float64, weighted=False):
    """Few instances a class, so that much is shrunk."""
    return multiclass(dtype, weighted, 0.7, 3, 60, 20, 25)


PROBLEMS = {"multiclass": multiclass, "multilabel": multilabel, "few": one_label_each}
each_problem = pytest.mark.parametrize("make", PROBLEMS.values(), ids=PROBLEMS)


class TestTwin:
    @each_problem
    @pytest.mark.parametrize(("dtype", "weighted"), [(np.float32, False), (np.float64, True)])
    def test_the_best_of_all_priors_and_factors(self, make, dtype, weighted):
        problem = make(dtype, weighted)
        state = start_of(problem)
        pairs = problem.rows, problem.classes, problem.weight
        losses, etas = {}, {}
        for prior in PRIORS:
            etas[prior], losses[prior] = minimise(left_out_scores(problem, prior), *pairs)
        c, eta = prior_and_factor(problem, state)
        prior = min(PRIORS, key=lambda p: abs(np.log(p / c)))
        assert c == pytest.approx(prior, rel=1e-6)
        best = min(losses.values())
        assert best < 0.99 * np.log(problem.n_classes)
        assert losses[prior] <= best + 1e-5
        assert eta == pytest.approx(etas[prior], rel=3e-3)
        found = log_loss(eta, left_out_scores(problem, prior), *pairs)
        assert found <= best + 1e-5
        assert (state.u == state.u[0]).all()
        assert state.u[0] == pytest.approx(found, rel=1e-5)


class TestNoBetterThanGuessing:
    def test_labels_that_do_not_depend_on_x(self):
        rng = np.random.default_rng(0)
        dense = rng.normal(size=(400, 60)).astype(np.float32)
        u = rng.uniform(1.0, 2.0, 400)
        problem = problem_of(dense, np.arange(400), np.arange(400) % 10)
        pairs = problem.rows, problem.classes, problem.weight
        best = min(minimise(left_out_scores(problem, p), *pairs, most=2.0)[1] for p in (1.0, 100.0))
        assert best > 0.9992 * np.log(10)
        assert_untouched(start_of(problem, u=u.copy()), u)


class TestMagnitude:
    @pytest.mark.parametrize("power", [20, 37])
    def test_scores_that_overflow_leave_the_start_at_0(self, power):
        problem = multiclass(np.float32)
        dense = np.clip(dense_of(problem) * 10.0**power, -3e38, 3e38).astype(np.float32)
        assert_untouched(start_of(problem_of(dense, problem.rows, problem.classes)))

    @pytest.mark.parametrize("power", [-9, 8, 17])
    def test_the_same_start_at_any_unit_of_x(self, power):
        problem = multiclass(np.float32)
        small = start_of(problem)
        dense = (dense_of(problem) * 10.0**power).astype(np.float32)
        state = start_of(problem_of(dense, problem.rows, problem.classes))
        np.testing.assert_allclose(state.u, small.u, rtol=1e-4)
        np.testing.assert_allclose(state.scale, small.scale * 100.0**-power, rtol=2e-3)


def multiple_of(scores, at, classes, weight):
    return best_multiple(scores, at, classes, weight, np.zeros(scores.shape[1]))


class TestBestMultiple:
    @pytest.mark.parametrize("seed", range(12))
    def test_equals_scipy(self, seed):
        """Of scores that tell much, little or nothing, of any size, with any number of pairs."""
        rng, dtype = np.random.default_rng(seed), (np.float32, np.float64)[seed // 3 % 2]
        n, n_classes = int(rng.integers(2, 60)), int(rng.integers(2, 80))
        n_pairs = int(rng.integers(n, 3 * n))
        scores = rng.normal(size=(n, n_classes)) * rng.lognormal(size=(n, 1))
        if seed % 3 == 0:
            scores *= rng.random(scores.shape) < 0.1  # mostly zeros
        at, classes = rng.integers(0, n, n_pairs), rng.integers(0, n_classes, n_pairs)
        tells = (-0.3, 0.0, 0.3, 1.0)[seed % 4]
        np.add.at(scores, (at, classes), tells)
        weight = rng.uniform(0.1, 3.0, n_pairs)
        size = 10.0 ** rng.integers(-4, 5)
        scores = (scores * size).astype(dtype)
        eta, loss = multiple_of(scores, at, classes, weight)
        expected, lowest = minimise(scores.astype(np.float64), at, classes, weight)
        precise = 1e-4 if dtype == np.float32 else 1e-5
        assert loss == pytest.approx(lowest, rel=precise)
        exact = log_loss(eta, scores.astype(np.float64), at, classes, weight)
        assert loss == pytest.approx(exact, rel=precise)
        slope = self.slope_at_0(scores, at, classes, weight)
        if slope >= 0:
            assert eta == 0
            assert loss == pytest.approx(np.log(n_classes), rel=1e-6)
        else:
            assert eta > 0
            if lowest < 0.999 * np.log(n_classes):
                assert eta == pytest.approx(expected, rel=0.01)

    @staticmethod
    def slope_at_0(scores, at, classes, weight):
        mean = scores.astype(np.float64).mean(axis=1)
        return np.average(mean[at] - scores[at, classes], weights=weight)

    def test_scores_that_tell_all(self):
        """The optimum is infinite, the log-loss close to 0."""
        at = np.arange(30)
        for dtype in (np.float32, np.float64):
            scores = np.eye(30, dtype=dtype) * dtype(1e-3)
            eta, loss = multiple_of(scores, at, at, np.ones(30))
            assert np.isfinite(eta)
            assert 0 <= loss < 1e-3
