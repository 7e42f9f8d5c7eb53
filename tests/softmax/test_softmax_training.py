"""The parts of a fit: pairs, their u, learning rates, averages, stopping, progress, interrupts."""

import threading
import time
import warnings

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax
from sklearn_xc._checks import check_instances, check_targets
from sklearn_xc.exceptions import ConvergenceWarning
from sklearn_xc.kernels.softmax.rules import RULES
from sklearn_xc.softmax import search, training
from sklearn_xc.softmax.pairs import (
    Normalisers,
    Pairs,
    exact_normalisers,
    largest_sample_id,
    merge_equal,
    pairs_of,
)
from sklearn_xc.softmax.search import GRID, search_rate
from sklearn_xc.softmax.training import Average, History, train
from sklearn_xc.solvers.schedule import Schedule
from sklearn_xc.solvers.softmax_problem import SoftmaxProblem
from sklearn_xc.solvers.softmax_sgd import SgdSettings, SoftmaxState
from sklearn_xc.weights.class_weights import ClassWeights

#: Rates at which a few epochs end worse than they began are of interest here.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*is too high:sklearn.exceptions.ConvergenceWarning"
)

ESTIMATORS = [SoftmaxUMax, ImplicitSoftmaxSGD]


class Someone(BaseEstimator):
    """An estimator to name in messages."""


def targets_of(y):
    return check_targets(Someone(), y, y.shape[0])


def instances_of(X):
    return check_instances(Someone(), X, reset=True)


class TestPairsOf:
    INDICATOR = np.array([[0, 1, 1], [0, 0, 0], [1, 0, 0], [1, 1, 0]])

    @pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csc_matrix])
    def test_indicators(self, container):
        targets = targets_of(container(self.INDICATOR))
        pairs = pairs_of(targets, np.array([1.0, 2.0, 3.0, 4.0]), False)
        assert pairs.rows.tolist() == [0, 0, 2, 3, 3]
        assert pairs.classes.tolist() == [1, 2, 0, 0, 1]
        assert pairs.weight.tolist() == [1, 1, 3, 4, 4]
        assert pairs.rows.dtype == pairs.classes.dtype == np.int32
        assert pairs.weight.dtype == np.float64

    @pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
    def test_the_first_column_only(self, container):
        pairs = pairs_of(targets_of(container(self.INDICATOR)), np.ones(4), True)
        assert pairs.rows.tolist() == [0, 2, 3]
        assert pairs.classes.tolist() == [1, 0, 0]

    def test_weight_zero_is_left_out(self):
        pairs = pairs_of(targets_of(self.INDICATOR), np.array([0.0, 1.0, 1.0, 0.5]), True)
        assert pairs.rows.tolist() == [2, 3]
        assert pairs.weight.tolist() == [1.0, 0.5]

    @pytest.mark.parametrize(
        ("y", "classes"), [("bacb", [1, 0, 2, 1]), ("baab", [1, 0, 0, 1])], ids=["three", "two"]
    )
    @pytest.mark.parametrize("first_only", [False, True])
    def test_classes(self, first_only, y, classes):
        pairs = pairs_of(targets_of(np.array(list(y))), np.array([1.0, 0.0, 2.0, 3.0]), first_only)
        assert pairs.rows.tolist() == [0, 2, 3]
        assert pairs.classes.tolist() == [classes[i] for i in (0, 2, 3)]
        assert pairs.weight.tolist() == [1, 2, 3]

    def test_no_labels(self):
        for first_only in (False, True):
            pairs = pairs_of(targets_of(sp.csr_array((5, 3))), np.ones(5), first_only)
            assert len(pairs.rows) == len(pairs.classes) == len(pairs.weight) == 0


class TestMergeEqual:
    @staticmethod
    def random(seed, n=60):
        rng = np.random.default_rng(seed)
        X = rng.choice([0.0, 1.0, -2.0], (n, 3))
        pairs = Pairs(
            np.arange(n, dtype=np.int32), rng.integers(0, 2, n).astype(np.int32), rng.random(n)
        )
        return X, pairs

    def test_equal_pairs_become_one_with_the_sum_of_their_weights(self):
        X, pairs = self.random(0)
        merged, place = merge_equal(instances_of(X), pairs)
        content = np.column_stack([X[pairs.rows], pairs.classes])
        expected, inverse = np.unique(content, axis=0, return_inverse=True)
        assert len(merged.rows) == len(expected) < 60
        found = np.column_stack([X[merged.rows], merged.classes])
        np.testing.assert_array_equal(found[place], content)
        sums = np.bincount(inverse, weights=pairs.weight)
        np.testing.assert_allclose(merged.weight[place], sums[inverse], rtol=1e-14)
        assert np.bincount(place).min() > 0

    def test_the_order_follows_from_the_content(self):
        X, pairs = self.random(1)
        merged, _ = merge_equal(instances_of(X), pairs)
        order = np.random.default_rng(0).permutation(60)
        shuffled = Pairs(pairs.rows, pairs.classes[order], pairs.weight[order])
        again, place = merge_equal(instances_of(X[order]), shuffled)
        np.testing.assert_array_equal(X[order][again.rows], X[merged.rows])
        np.testing.assert_array_equal(again.classes, merged.classes)
        np.testing.assert_allclose(again.weight, merged.weight, rtol=1e-14)
        np.testing.assert_array_equal(X[order][again.rows][place], X[order])

    def test_values_positions_and_classes_all_count(self):
        X = np.array([[1.0, 0, 0], [0, 1, 0], [2, 0, 0], [1, 0, 0], [0, 0, 0], [1, 1, 0]])
        classes = np.array([0, 0, 0, 1, 0, 0], np.int32)
        merged, _ = merge_equal(
            instances_of(X), Pairs(np.arange(6, dtype=np.int32), classes, np.ones(6))
        )
        assert len(merged.rows) == 6

    def test_float32_and_float64_of_the_same_values_give_the_same_order(self):
        X, pairs = self.random(2)
        wide, narrow = (merge_equal(instances_of(X.astype(t)), pairs) for t in ("f8", "f4"))
        np.testing.assert_array_equal(wide[1], narrow[1])

    def test_several_pairs_of_a_row(self):
        pairs = Pairs(np.array([0, 0, 1], np.int32), np.array([0, 1, 0], np.int32), np.ones(3))
        merged, place = merge_equal(instances_of(np.array([[1.0, 2.0], [1.0, 2.0]])), pairs)
        assert sorted(merged.weight.tolist()) == [1, 2]
        assert place[0] == place[2] != place[1]


class TestNormalisers:
    def test_find(self):
        known = Normalisers(np.array([[0, 2], [3, 0], [3, 1]]), np.array([0.1, 0.2, 0.3]))
        asked = np.array([[3, 1], [0, 1], [0, 2], [9, 9 % 3], [3, 0]])
        assert known.find(asked, 3).tolist() == [2, -1, 0, -1, 1]
        assert Normalisers.none().find(asked, 3).tolist() == [-1] * 5
        assert known.find(np.empty((0, 2), np.int64), 3).shape == (0,)

    def test_updated(self):
        known = Normalisers(np.array([[0, 2], [3, 0]]), np.array([0.1, 0.2]))
        new = known.updated(np.array([[5, 0], [3, 0], [0, 0]]), np.array([9.0, 8.0, 7.0]), 3)
        assert new.index.tolist() == [[0, 0], [0, 2], [3, 0], [5, 0]]
        assert new.u.tolist() == [7.0, 0.1, 8.0, 9.0]
        assert known.u.tolist() == [0.1, 0.2]  # what was there is not changed

    def test_largest_sample_id_does_not_wrap(self):
        for n_classes in (2, 3, 1000):
            largest = largest_sample_id(n_classes)
            index = np.array([[0, 0], [largest, n_classes - 1]])
            known = Normalisers.none().updated(index, np.array([1.0, 2.0]), n_classes)
            assert known.index.tolist() == index.tolist()
            assert known.find(index[::-1], n_classes).tolist() == [1, 0]

    def test_exact_normalisers(self):
        rng = np.random.default_rng(0)
        X, W = rng.normal(size=(20, 4)), rng.normal(size=(5, 4))
        pairs = Pairs(
            np.array([0, 0, 7, 19], np.int32), np.array([1, 2, 0, 4], np.int32), np.ones(4)
        )
        found = exact_normalisers(ClassWeights(W), instances_of(X), pairs, None)
        scores = X @ W.T
        expected = np.log(np.exp(scores).sum(axis=1))[pairs.rows]
        expected -= scores[pairs.rows, pairs.classes]
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        zero = exact_normalisers(ClassWeights(0 * W), instances_of(X), pairs, None)
        np.testing.assert_array_equal(zero, np.log(5))


class TestAverage:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_the_kth_iterate_has_weight_k(self, dtype):
        rng = np.random.default_rng(0)
        iterates = [rng.normal(size=(3, 2)).astype(dtype) for _ in range(6)]
        intercepts = rng.normal(size=(6, 3))
        average = Average()
        for k, W in enumerate(iterates, 1):
            mean, intercept = average.add(W, intercepts[k - 1])
            expected = np.average(iterates[:k], axis=0, weights=np.arange(1, k + 1))
            np.testing.assert_allclose(mean, expected, rtol=1e-5 if dtype == np.float32 else 1e-13)
            expected = np.average(intercepts[:k], axis=0, weights=np.arange(1, k + 1))
            np.testing.assert_allclose(intercept, expected, rtol=1e-13)
            assert intercept is not intercepts[0]
            assert mean.dtype == dtype
            assert mean is not W


def problem_of(make_xy, alpha=0.0, n=60, scale=1.0):
    X, Y = make_xy(n=n, n_labels=11)
    coo = Y.tocoo()
    rows, classes = (c.astype(np.int32) for c in coo.coords)
    return SoftmaxProblem(instances_of(X * scale), rows, classes, np.ones(len(rows)), 11, alpha)


SETTINGS = SgdSettings(RULES["implicit"], 2, 1, 0, intercept_rate=0.1)


def start(problem):
    u = np.full(problem.n_pairs, np.log(problem.n_classes))
    return np.zeros((problem.n_classes, problem.instances.shape[1])), u


class TestReport:
    COLUMNS = ("loss", "log_loss", "learning_rate", "seconds")

    def test_rows_are_added_below(self):
        history = History()
        history.add(1.0, 2.0, 0.5, 3.0)
        first = history.report()
        assert tuple(first) == self.COLUMNS
        again = History()
        again.add(4.0, np.nan, 0.25, 1.0)
        both = again.report(first)
        np.testing.assert_array_equal(both["log_loss"], [2.0, np.nan])
        np.testing.assert_array_equal(both["loss"], [1.0, 4.0])
        assert len(first["loss"]) == 1
        assert all(len(values) == 0 for values in History().report().values())

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    @pytest.mark.parametrize("decay", [0.5, "1/t"])
    def test_of_a_fit_and_of_partial_fits(self, estimator, decay, xy):
        model = estimator(learning_rate=0.2, decay=decay, max_iter=3, random_state=0).fit(*xy)
        after_fit = model.fit_report_
        model.partial_fit(*xy, sample_ids=np.arange(120))
        report = model.fit_report_
        assert tuple(report) == self.COLUMNS
        for name, values in report.items():
            assert values.dtype == np.float64
            assert values.shape == (4,) == (model.n_iter_,)
            np.testing.assert_array_equal(values[:3], after_fit[name])
        rates = [0.2, 0.1, 0.05, 0.025] if decay == 0.5 else 0.2 / np.arange(1, 5)
        np.testing.assert_allclose(report["learning_rate"], rates)
        assert np.isnan(report["log_loss"]).tolist() == [False, False, False, True]
        assert (report["seconds"] > 0).all()
        assert model.fit(*xy).n_iter_ == 3

    def test_of_partial_fits_alone(self, xy):
        model = ImplicitSoftmaxSGD(learning_rate=0.2, random_state=0)
        for n_calls in (1, 2, 3):
            assert model.partial_fit(*xy).n_iter_ == n_calls
            assert {len(values) for values in model.fit_report_.values()} == {n_calls}


class TestTrain:
    def test_all_epochs_run_without_patience(self, make_xy):
        problem = problem_of(make_xy)
        state = SoftmaxState.at(*start(problem))
        W, intercept, history = train(problem, state, SETTINGS, Schedule(1.0, 0.9), 4)
        assert W is state.V
        assert intercept is state.intercept
        assert intercept.all()
        assert len(history.loss) == len(set(history.loss)) == 4
        assert np.isnan(history.log_loss).all()
        assert history.learning_rate == pytest.approx([1.0, 0.9, 0.81, 0.729])
        assert len(history.seconds) == 4

    def test_patience(self, make_xy):
        """The log-losses are 5, 3, 4, 3, 2.95, 6: the third after the best stops."""
        problem = problem_of(make_xy)
        state = SoftmaxState.at(*start(problem))
        losses, seen = iter([5.0, 3.0, 4.0, 3.0, 2.95, 6.0, 0.0]), []

        def monitor(weights):
            seen.append((weights.coef * weights.scale[:, None], weights.intercept.copy()))
            return next(losses)

        W, intercept, history = train(
            problem, state, SETTINGS, Schedule(1.0, 0.9), 20, monitor=monitor, patience=3, tol=0.1
        )
        assert history.log_loss == [5.0, 3.0, 4.0, 3.0, 2.95]
        np.testing.assert_array_equal(W, seen[4][0])  # better, if by less than tol
        np.testing.assert_array_equal(intercept, seen[4][1])
        assert (seen[1][0] != W).any()
        assert (seen[1][1] != intercept).any()

    def test_the_best_weights_are_a_copy(self, make_xy):
        problem = problem_of(make_xy, alpha=1.0)
        state = SoftmaxState.at(*start(problem))
        losses, seen = iter([5.0, 1.0, 4.0, 3.0, 2.0]), []

        def monitor(weights):
            seen.append((weights.coef * weights.scale[:, None], weights.intercept.copy()))
            return next(losses)

        W, intercept, history = train(
            problem, state, SETTINGS, Schedule(1.0, 0.9), 5, monitor=monitor, patience=9
        )
        assert len(history.log_loss) == 5
        np.testing.assert_allclose(W, seen[1][0], rtol=1e-15)
        np.testing.assert_array_equal(intercept, seen[1][1])
        np.testing.assert_allclose(state.V, seen[4][0], rtol=1e-15)
        np.testing.assert_array_equal(state.intercept, seen[4][1])
        np.testing.assert_array_equal(state.scale, 1.0)

    def test_a_monitor_that_is_not_finite(self, make_xy):
        problem = problem_of(make_xy)
        state = SoftmaxState.at(*start(problem))
        with pytest.raises(FloatingPointError, match="no longer finite"):
            train(problem, state, SETTINGS, Schedule(1.0, 0.9), 2, monitor=lambda weights: np.nan)

    def test_the_number_of_the_first_epoch_decides_on_the_random_numbers(self, make_xy):
        problem = problem_of(make_xy)
        whole = SoftmaxState.at(*start(problem))
        train(problem, whole, SETTINGS, Schedule(1.0, 1.0), 3)
        parts = SoftmaxState.at(*start(problem))
        train(problem, parts, SETTINGS, Schedule(1.0, 1.0), 1)
        other = SoftmaxState.at(parts.V.copy(), parts.u.copy(), parts.intercept.copy())
        train(problem, parts, SETTINGS, Schedule(1.0, 1.0), 2, first_epoch=1)
        train(problem, other, SETTINGS, Schedule(1.0, 1.0), 2, first_epoch=0)
        np.testing.assert_array_equal(parts.V, whole.V)
        np.testing.assert_array_equal(parts.intercept, whole.intercept)
        assert (other.V != whole.V).any()


class TestEarlyStopping:
    @pytest.fixture
    def data(self, make_xy):
        """Return X and Y without label 4, which has no instance."""
        X, Y = make_xy(n=200)
        return X, Y[:, [j for j in range(15) if j != 4]]

    @staticmethod
    def find_held(model, Y):
        """Tell of each u whether it is where it started, at the frequency of its class."""
        losses = -np.log(Y.sum(axis=0) / Y.nnz)[model.u_index_[:, 1]]
        return np.isclose(model.u_, losses, rtol=1e-13, atol=0)

    @pytest.mark.parametrize("average", [False, True])
    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_it_stops_and_returns_the_best(self, estimator, average, data):
        X, Y = data
        parameters = {"learning_rate": 3.0, "random_state": 0, "decay": 1.0, "average": average}
        if estimator is SoftmaxUMax:
            parameters["learning_rate"] = 1.0
        model = estimator(
            max_iter=200, early_stopping=True, n_iter_no_change=4, **parameters
        ).fit(X, Y)  # fmt: skip
        assert 4 < model.n_iter_ < 200
        assert len(model.fit_report_["log_loss"]) == len(model.fit_report_["loss"]) == model.n_iter_
        best = int(model.fit_report_["log_loss"].argmin())
        assert best < model.n_iter_ - 1
        # The same fit, cut at its best epoch, ends where that one was best.
        with warnings.catch_warnings():  # it may still have been falling
            warnings.simplefilter("ignore", ConvergenceWarning)
            cut = estimator(
                max_iter=best + 1, early_stopping=True, n_iter_no_change=best + 1, **parameters
            ).fit(X, Y)  # fmt: skip
        np.testing.assert_array_equal(cut.coef_, model.coef_)
        np.testing.assert_array_equal(
            cut.fit_report_["log_loss"], model.fit_report_["log_loss"][: best + 1]
        )

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_held_out_pairs_are_never_trained(self, estimator, data):
        X, Y = data
        model = estimator(
            learning_rate=0.5, max_iter=10, early_stopping=True, validation_fraction=0.25,
            n_iter_no_change=10, random_state=0,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, Y)
        is_held = self.find_held(model, Y)
        rows = model.u_index_[:, 0]
        held = np.unique(rows[is_held])
        filled = np.diff(X.indptr) > 0
        assert len(held[filled[held]]) in (49, 50)
        # All pairs of a row are on one side.
        assert not set(held) & set(rows[~is_held][filled[rows[~is_held]]])
        without = np.ones(200)
        without[held] = 0
        # A model that has never seen them, nor their features alone, has the same zeros.
        kept = np.flatnonzero(without)
        used = np.unique(X[kept].indices)
        assert not model.coef_[:, np.setdiff1d(np.arange(40), used)].any()

    def test_equal_rows_are_on_one_side(self, data):
        X, Y = data
        X, Y = sp.vstack([X, X]).tocsr(), sp.vstack([Y, Y]).tocsr()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = ImplicitSoftmaxSGD(
                learning_rate=1.0, max_iter=5, early_stopping=True, random_state=0
            ).fit(X, Y)
        is_held = self.find_held(model, Y)
        assert 0 < is_held.mean() < 0.2
        half = len(is_held) // 2
        np.testing.assert_array_equal(is_held[:half], is_held[half:])

    def test_without_it_all_epochs_are_run(self, data):
        model = ImplicitSoftmaxSGD(
            learning_rate=1e-9, max_iter=12, n_iter_no_change=1, tol=1.0, random_state=0
        ).fit(*data)
        assert model.n_iter_ == 12


class TestProgress:
    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_verbose(self, estimator, xy, capsys):
        model = estimator(learning_rate=0.5, max_iter=30, random_state=0)
        model.fit(*xy)
        assert capsys.readouterr().out == ""
        model.set_params(verbose=1).fit(*xy)
        lines = capsys.readouterr().out.splitlines()
        assert 2 <= len(lines) <= 8
        assert lines[0].startswith(f"[{estimator.__name__}] epoch 1 of 30: ")
        last = model.fit_report_["log_loss"][-1]
        assert f"epoch 30 of 30: log-loss {last:.4g}, " in lines[-1]


class TestSearch:
    def test_the_grid(self):
        np.testing.assert_allclose(GRID, [1e-3, 1e-2, 1e-1, 1, 10, 100, 1000])

    @pytest.mark.parametrize("n_jobs", [1, 2])
    @pytest.mark.parametrize("best", [0, 3, 6])
    @pytest.mark.parametrize("batch_size", [1, 4])
    def test_the_lowest_log_loss_wins(self, batch_size, best, n_jobs, make_xy, monkeypatch):
        problem = problem_of(make_xy)
        W, u = start(problem)
        rates = GRID * batch_size

        def trial(part, state, settings, schedule, max_iter, **kwargs):
            assert max_iter == 7
            assert schedule.decay == 0.8
            state.V[:] = schedule.rate
            return state.V, state.intercept, None

        monkeypatch.setattr(search, "train", trial)
        settings = SgdSettings(RULES["implicit"], 2, batch_size, 0)
        found = search_rate(
            problem, SoftmaxState.at(W, u), settings, 0.8, 7, rates,
            lambda found, part: abs(np.log(found.coef[0, 0] / rates[best])), n_jobs,
        )  # fmt: skip
        assert found == rates[best]
        assert not W.any()
        np.testing.assert_array_equal(u, np.log(11))

    def test_trials_that_diverge_lose(self, make_xy, monkeypatch):
        problem = problem_of(make_xy)

        def trial(part, state, settings, schedule, max_iter, **kwargs):
            if schedule.rate > 0.05:
                raise FloatingPointError
            state.V[:] = schedule.rate
            return state.V, state.intercept, None

        def log_loss(weights, part):
            return np.nan if weights.coef[0, 0] == GRID[1] else 1.0

        monkeypatch.setattr(search, "train", trial)
        arguments = (problem, SoftmaxState.at(*start(problem)), SETTINGS, 0.9, 5, GRID)
        assert search_rate(*arguments, log_loss, 1) == GRID[0]
        with pytest.raises(FloatingPointError, match="no learning rate"):
            search_rate(*arguments, lambda V, part: np.inf, 1)

    def test_a_tenth_of_large_data_is_tried(self, make_xy, monkeypatch):
        monkeypatch.setattr(search, "_FEWEST", 10)
        problem = problem_of(make_xy, n=400)
        sizes, train = [], search.train

        def trial(part, *args, **kwargs):
            sizes.append(part.n_pairs)
            return train(part, *args, **kwargs)

        monkeypatch.setattr(search, "train", trial)
        state = SoftmaxState.at(*start(problem))
        search_rate(problem, state, SETTINGS, 0.9, 2, GRID, lambda V, part: 1.0, 1)
        assert sizes == [int(np.ceil(0.1 * problem.n_pairs))] * 7

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_the_best_rate_of_a_fit(self, estimator, make_xy):
        """All pairs are tried where they are few, so that a fit at each rate says which is best."""
        X, Y = make_xy(n=60)
        model = estimator(max_iter=5, random_state=0).fit(X, Y)
        losses = [
            estimator(max_iter=5, random_state=0, learning_rate=rate)
            .fit(X, Y)
            .fit_report_["log_loss"][-1]
            for rate in GRID
        ]
        assert len(model.u_) < 256  # all are monitored
        assert model.learning_rate_ == GRID[int(np.argmin(losses))]
        assert model.fit_report_["log_loss"][-1] == min(losses)

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_no_rate_converges(self, estimator, xy, monkeypatch):
        def diverge(*args, **kwargs):
            raise FloatingPointError

        monkeypatch.setattr(search, "train", diverge)
        with pytest.raises(ValueError, match=r"diverged at any of the rates tried. Lower learning"):
            estimator().fit(*xy)


class TestInterrupt:
    @pytest.fixture
    def fitted(self, xy):
        return ImplicitSoftmaxSGD(learning_rate=1.0, max_iter=3, random_state=0).fit(*xy)

    @pytest.fixture
    def assert_intact(self, fitted, xy):
        before = dict(vars(fitted))
        arrays = fitted.coef_.copy(), fitted.u_.copy(), fitted.predict_topk(xy[0], 3)

        def check():
            for name in set(before) - set(fitted.get_params()):
                assert vars(fitted)[name] is before[name], name
            np.testing.assert_array_equal(fitted.coef_, arrays[0])
            np.testing.assert_array_equal(fitted.u_, arrays[1])
            np.testing.assert_array_equal(fitted.predict_topk(xy[0], 3), arrays[2])

        return check

    @pytest.mark.parametrize("rate", [1.0, "auto"])
    @pytest.mark.parametrize("warm_start", [False, True])
    @pytest.mark.parametrize("average", [False, True])
    def test_control_c(
        self, average, warm_start, rate, fitted, assert_intact, make_xy, monkeypatch, interrupt_main
    ):
        X, Y = make_xy(seed=1)
        run_epoch, calls = training.run_epoch, []

        def interrupted_run_epoch(*args):
            calls.append(args)
            if len(calls) == 3:
                interrupt_main()
            return run_epoch(*args)

        monkeypatch.setattr(training, "run_epoch", interrupted_run_epoch)
        fitted.set_params(
            warm_start=warm_start, average=average, learning_rate=rate, max_iter=100_000
        )
        with pytest.raises(KeyboardInterrupt):
            fitted.fit(X, Y)
        assert 3 <= len(calls) < 1000
        assert_intact()
        monkeypatch.undo()
        assert fitted.set_params(max_iter=2).fit(X, Y).n_iter_ == 2

    def test_no_trial_runs_on(self, fitted, make_xy, monkeypatch, interrupt_main):
        run_epoch, calls, end = training.run_epoch, [], threading.Event()

        def slow_run_epoch(*args):
            if end.is_set():
                raise FloatingPointError
            calls.append(args)
            if len(calls) == 10:
                interrupt_main()
            time.sleep(0.002)
            return run_epoch(*args)

        monkeypatch.setattr(training, "run_epoch", slow_run_epoch)
        fitted.set_params(learning_rate="auto", n_jobs=2, max_iter=2000)
        try:
            with pytest.raises(KeyboardInterrupt):
                fitted.fit(*make_xy(seed=1))
            time.sleep(0.2)
            done = len(calls)
            time.sleep(0.2)
            assert len(calls) == done
        finally:
            end.set()

    @pytest.mark.parametrize("n_jobs", [1, 2])
    @pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
    def test_an_error_in_a_trial(self, error, n_jobs, fitted, assert_intact, make_xy, monkeypatch):
        def failing_train(*args, **kwargs):
            raise error("from a trial")

        monkeypatch.setattr(search, "train", failing_train)
        fitted.set_params(learning_rate="auto", n_jobs=n_jobs)
        with pytest.raises(error, match="from a trial"):
            fitted.fit(*make_xy(d=50))
        assert_intact()

    @pytest.mark.parametrize("average", [False, True])
    @pytest.mark.parametrize("is_mapped", [False, True])
    def test_an_interrupted_partial_fit_changes_nothing(
        self, average, is_mapped, xy, monkeypatch, tmp_path
    ):
        model = ImplicitSoftmaxSGD(
            learning_rate=1.0, max_iter=3, random_state=0, average=average
        ).fit(*xy)  # fmt: skip
        if is_mapped:
            joblib.dump(model, tmp_path / "model.joblib")
            model = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
        before = dict(vars(model))
        coef, u = model.coef_.copy(), model.u_.copy()

        def interrupted_run_epoch(problem, state, *args):
            state.V += 1.0
            state.u += 1.0
            state.scale[:] = 0.5
            raise KeyboardInterrupt

        monkeypatch.setattr("sklearn_xc.softmax._epochs.run_epoch", interrupted_run_epoch)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(*xy, sample_ids=np.arange(120))
        assert all(value is before[name] for name, value in vars(model).items())
        np.testing.assert_array_equal(model.coef_, coef)
        np.testing.assert_array_equal(model.u_, u)
        monkeypatch.undo()
        assert model.partial_fit(*xy, sample_ids=np.arange(120)).n_iter_ == 4
