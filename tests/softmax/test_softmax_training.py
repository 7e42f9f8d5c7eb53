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
from sklearn_xc.softmax import _epochs, classifier, training
from sklearn_xc.softmax._inputs import hold_out
from sklearn_xc.softmax.pairs import (
    Normalisers,
    Pairs,
    exact_normalisers,
    largest_sample_id,
    merge_equal,
    pairs_of,
)
from sklearn_xc.softmax.search import REACH, Trial, search_rate
from sklearn_xc.softmax.training import Average, History, train
from sklearn_xc.solvers.schedule import Schedule
from sklearn_xc.solvers.softmax_problem import SoftmaxProblem
from sklearn_xc.solvers.softmax_sgd import SgdSettings, SoftmaxState
from sklearn_xc.weights.class_weights import ClassWeights

#: Rates at which a few epochs end worse than they began are of interest here.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(is too high|was still falling):sklearn.exceptions.ConvergenceWarning"
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

    @pytest.mark.parametrize(
        ("losses", "patience", "n_epochs"),
        [
            ([5.0, 3.0, 4.0, 3.0, 2.95, 6.0, 0.0], 3, 5),  # 2.95 is better by less than tol
            ([5.0, 3.0, 4.0, 2.8, 2.95, 6.0, 3.0, 0.0], 3, 7),
            ([5.0, 6.0, 0.0], 1, 2),
            ([5.0, 4.0, 3.0, 2.0], 1, 4),
        ],
    )
    def test_patience(self, losses, patience, n_epochs, make_xy):
        problem = problem_of(make_xy)
        state = SoftmaxState.at(*start(problem))
        told = iter(losses)
        W, intercept, history = train(
            problem, state, SETTINGS, Schedule(1.0, 0.9), len(losses),
            monitor=lambda weights: next(told), patience=patience, tol=0.1,
        )  # fmt: skip
        assert history.log_loss == losses[:n_epochs]
        assert W is state.V
        assert intercept is state.intercept

    @pytest.mark.parametrize(
        ("target", "decay", "max_iter", "n_epochs"),
        [
            (np.inf, 1.0, 9, 9),
            (1.9, 1.0, 9, 9),  # at 0.1 an epoch, the last one ends at 1.9, or nearly
            (1.8, 1.0, 9, 2),
            (1.8, 1.0, 11, 11),
            (1.8, 0.5, 11, 2),  # falling rates gain 0.1 in all
            (2.51, 0.5, 11, 11),
            (2.0, "1/t", 9, 2),  # 2 / 3 + ... + 2 / 9 = 2.66 epochs
        ],
    )
    def test_what_cannot_catch_up_ends(self, target, decay, max_iter, n_epochs, make_xy):
        problem = problem_of(make_xy)
        state = SoftmaxState.at(*start(problem))
        if decay == 1.0:
            told = iter(2.7 - 0.1 * np.arange(max_iter) + 1e-9)
        else:
            told = iter([2.7, 2.6, *2.6 - np.arange(1, max_iter)])
        _, _, history = train(
            problem, state, SETTINGS, Schedule(1.0, decay), max_iter,
            monitor=lambda weights: float(next(told)), patience=99, target=target + 1e-6,
        )  # fmt: skip
        assert len(history.log_loss) == n_epochs

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

    @pytest.mark.parametrize("average", [False, True])
    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_it_trains_all_for_the_best_number_of_epochs(self, estimator, average, data):
        X, Y = data
        parameters = {
            "learning_rate": 0.3, "random_state": 0, "decay": 1.0, "average": average,
            "init": "zero",
        }  # fmt: skip
        model = estimator(max_iter=200, early_stopping=True, **parameters).fit(X, Y)
        assert 1 < model.n_iter_ < 100
        whole = estimator(max_iter=model.n_iter_, early_stopping=False, **parameters).fit(X, Y)
        assert model.coef_.tobytes() == whole.coef_.tobytes()
        assert model.u_.tobytes() == whole.u_.tobytes()
        assert (model.fit_report_["log_loss"] != whole.fit_report_["log_loss"]).all()

    @pytest.mark.parametrize("rate", [0.5, "auto"])
    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_trials_know_nothing_of_what_judges_them(self, estimator, rate, data, monkeypatch):
        """Neither their rows, nor their features, nor the start."""
        X, Y = data
        seen, train = [], training.train

        def spy_train(problem, state, *args, **kwargs):
            found = train(problem, state, *args, **kwargs)
            seen.append((problem, state.V.copy()))
            return found

        monkeypatch.setattr(_epochs, "train", spy_train)
        model = estimator(
            learning_rate=rate, max_iter=5, early_stopping=True, validation_fraction=0.25,
            random_state=0,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, Y)
        everything = seen.pop()[0]
        assert everything.n_pairs == Y.nnz
        assert len(seen) == 1 if rate == 0.5 else len(seen) >= 3
        for problem, V in seen:
            kept = np.unique(problem.rows)
            labelled = np.flatnonzero(np.diff(Y.indptr))
            distinct = len(np.unique(everything.rows))
            assert distinct - len(kept) == int(np.ceil(0.25 * distinct))
            # All pairs of a row are on one side.
            assert problem.n_pairs == np.diff(Y.indptr)[kept].sum()
            held = np.setdiff1d(labelled, kept)
            only_held = np.setdiff1d(X[held].indices, X[kept].indices)
            assert not V[:, only_held].any()
            assert V.any()

    def test_equal_rows_are_on_one_side(self, data):
        X, Y = data
        instances = instances_of(sp.vstack([X, X]).tocsr())
        rows, classes = (c.astype(np.int32) for c in sp.vstack([Y, Y]).tocoo().coords)
        merged, _ = merge_equal(instances, Pairs(rows, classes, np.ones(len(rows))))
        kept, held = hold_out(ImplicitSoftmaxSGD(), merged, 0, 14)
        assert (merged.weight == 2).all()
        assert not set(merged.rows[kept] % 200) & set(held.rows % 200)

    def test_only_labels_that_a_trial_can_learn_are_judged(self):
        """Label 3 has one instance: wherever it is, nothing is judged by it."""
        rows, classes = np.arange(20, dtype=np.int32), np.arange(20, dtype=np.int32) % 3
        classes[7] = 3
        pairs, judged = Pairs(rows, classes, np.ones(20)), []
        for seed in range(20):
            kept, held = hold_out(
                ImplicitSoftmaxSGD(validation_fraction=0.3), pairs, seed, 4
            )  # fmt: skip
            assert 3 not in held.classes
            assert len(kept) == 14
            assert not set(kept) & set(held.rows)
            judged.append(len(held.rows))
        assert set(judged) == {5, 6}

    @pytest.mark.parametrize("n", [1, 5])
    def test_where_nothing_can_be_judged_all_are(self, n):
        """One instance, or each of a label of its own."""
        pairs = Pairs(*np.tile(np.arange(n, dtype=np.int32), (2, 1)), np.ones(n))
        kept, held = hold_out(ImplicitSoftmaxSGD(), pairs, 0, 5)
        assert kept.tolist() == held.rows.tolist() == list(range(n))

    @pytest.mark.parametrize("rate", ["auto", 1.0])
    @pytest.mark.parametrize("early_stopping", ["auto", True, False])
    def test_auto_goes_with_the_rate(self, early_stopping, rate, data):
        model = ImplicitSoftmaxSGD(
            early_stopping=early_stopping, learning_rate=rate, decay=1.0, random_state=0
        ).fit(*data)
        stops = rate == "auto" if early_stopping == "auto" else early_stopping
        assert (model.n_iter_ < 50) == stops

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


class TestTrialLoss:
    @pytest.mark.parametrize(
        ("losses", "loss", "n_epochs"),
        [
            ([3.0, 2.0, 1.0, 2.0, 2.5], 2.0, 3),  # the neighbours of 1 are no better than 2
            ([3.0, 2.0, 1.5, 1.4], 1.5, 4),
            ([1.0, 9.0, 1.0, 2.0], 2.0, 4),
            ([4.0], 4.0, 1),
        ],
    )
    def test_a_lucky_epoch_does_not_count(self, losses, loss, n_epochs):
        trial = Trial(1.0, tuple(losses))
        assert (trial.loss, trial.n_epochs) == (loss, n_epochs)

    def test_one_that_diverged(self):
        assert Trial(1.0, ()).loss == np.inf


class TestSearch:
    @staticmethod
    def search(loss_of, n_jobs=1, middle=1.0):
        """Return what is found, whether it is the last rate, and the powers tried, in order."""
        tried = []

        def run(rate, least):
            power = np.round(2 * np.log10(rate / middle)) / 2
            tried.append(power)
            loss = loss_of(power)
            return Trial(rate, (loss,) if np.isfinite(loss) else ())

        found, at_edge = search_rate(run, middle, n_jobs)
        return np.round(2 * np.log10(found.rate / middle)) / 2, at_edge, tried

    @pytest.mark.parametrize("n_jobs", [1, 2])
    @pytest.mark.parametrize("middle", [1.0, 64.0])
    @pytest.mark.parametrize("best", [-3, -2, -1, 0, 1, 2, 3])
    @pytest.mark.parametrize("side", [-0.1, 0.1])
    def test_it_climbs_to_the_lowest_log_loss(self, side, best, middle, n_jobs):
        found, at_edge, tried = self.search(
            lambda power: 2.0 + abs(power - best - side), n_jobs, middle
        )
        assert found == best
        assert not at_edge
        beyond = best + int(np.sign(best))  # one more is tried, to know that it is worse
        powers = range(min(-1, beyond), max(1, beyond) + 1)
        assert sorted(tried[:-1]) == list(powers)
        assert tried[-1] == best + 5 * side  # between the best two

    @pytest.mark.parametrize("best", [-2.5, -0.5, 0.5, 1.5])
    def test_it_may_end_between_two_powers(self, best):
        found, at_edge, _ = self.search(lambda power: 1.0 + abs(power - best))
        assert found == best
        assert not at_edge

    def test_rates_are_powers_of_ten_and_their_threefolds(self):
        rates = []

        def run(rate, least):
            rates.append(rate)
            return Trial(rate, (1.0 + abs(np.log10(rate) + 1.4),))

        assert search_rate(run, 1.0, 1)[0].rate == 0.03
        np.testing.assert_allclose(sorted(rates), [0.01, 0.03, 0.1, 1, 10])

    @pytest.mark.parametrize("sign", [-1, 1])
    def test_it_ends_at_the_last_rate_and_says_so(self, sign):
        found, at_edge, tried = self.search(lambda power: 9.0 - sign * power)
        assert (found, at_edge) == (sign * REACH, True)
        assert sorted(tried[:-1]) == sorted(sign * np.arange(-1, REACH + 1))
        assert tried[-1] == sign * (REACH - 0.5)

    def test_powers_of_ten_alone(self):
        tried = []

        def run(rate, least):
            tried.append(rate)
            return Trial(rate, (1.0,))

        search_rate(run, 1.0, 1, is_fine=False)
        assert tried == [1.0, 0.1, 10.0]

    @pytest.mark.parametrize("loss", [0.05, 1.0, 8.0])
    def test_what_gains_nothing_is_not_followed(self, loss):
        """Less than 0.01, or less than 1%."""
        found, at_edge, tried = self.search(lambda power: loss + 0.009 * max(1, loss) * power)
        assert (found, at_edge) == (-1, False)
        assert sorted(tried) == [-1, -0.5, 0, 1]

    def test_rates_that_diverge_lead_down(self):
        found, _, tried = self.search(lambda power: np.inf if power > -3 else 9.0 - power)
        assert found == -3
        assert sorted(tried) == [-4, -3.5, -3, -2, -1, 0, 1]

    def test_all_diverge(self):
        with pytest.raises(FloatingPointError, match="no learning rate"):
            self.search(lambda power: np.inf)

    def test_the_lower_of_two_that_tie(self):
        assert self.search(lambda power: 1.0)[0] == -1

    def test_later_trials_are_told_the_lowest_log_loss(self):
        told = []

        def run(rate, least):
            told.append(least)
            return Trial(rate, (9.0 - np.round(np.log10(rate)),))

        search_rate(run, 1.0, 1)
        assert told == [np.inf, 9.0, 9.0, 8.0, 7.0, 6.0, 5.0]


class TestAuto:
    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_the_rate_has_the_lowest_held_out_log_loss_of_its_neighbours(self, estimator, make_xy):
        X, Y = make_xy(n=300)
        model = estimator(random_state=0).fit(X, Y)
        losses = []
        for factor in (0.1, 1.0, 10.0):
            other = estimator(
                random_state=0, learning_rate=factor * model.learning_rate_, early_stopping=True
            ).fit(X, Y)
            losses.append(other.fit_report_["log_loss"][-1])
        assert losses[1] <= min(losses) + 0.02
        assert model.fit_report_["log_loss"][-1] == losses[1]  # it is the same fit

    @pytest.mark.parametrize("power", [-40, -7, 9, 40])
    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_the_unit_of_x_makes_no_difference(self, estimator, power, make_xy):
        """But to the order of the instances, which follows from their content."""
        X, Y = make_xy(n=200)
        plain = estimator(random_state=0, fit_intercept=False).fit(X, Y)
        scaled = estimator(random_state=0, fit_intercept=False).fit(X * 10.0**power, Y)
        ratio = scaled.learning_rate_ * 100.0**power / plain.learning_rate_
        assert 0.09 < ratio < 11
        np.testing.assert_allclose(
            scaled.fit_report_["log_loss"][-1], plain.fit_report_["log_loss"][-1], rtol=0.2
        )

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_labels_that_nothing_is_known_of(self, estimator):
        """No rate is better than the start: what is found does little."""
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(400, 10)), rng.integers(0, 20, 400)
        X_test, y_test = rng.normal(size=(400, 10)), rng.integers(0, 20, 400)
        model = estimator(random_state=0).fit(X, y)
        proba = model.predict_log_proba(X_test)
        assert -proba[np.arange(400), y_test].mean() < 1.02 * np.log(20)

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_weights_are_rows(self, estimator, make_xy):
        X, Y = make_xy(n=150)
        weight = np.random.default_rng(0).integers(0, 4, 150)
        rows = np.random.default_rng(1).permutation(np.repeat(np.arange(150), weight))
        a = estimator(random_state=0).fit(X, Y, weight)
        b = estimator(random_state=0).fit(X[rows], Y[rows])
        assert a.learning_rate_ == b.learning_rate_
        assert a.coef_.tobytes() == b.coef_.tobytes()

    def test_a_fit_that_goes_astray_is_done_again_at_a_lower_rate(self, make_xy, monkeypatch):
        X, Y = make_xy(n=200)
        plain = SoftmaxUMax(random_state=0).fit(X, Y)
        answers = [True, False]
        monkeypatch.setattr(classifier, "went_astray", lambda *args: answers.pop(0))
        again = SoftmaxUMax(random_state=0).fit(X, Y)
        assert not answers
        assert again.learning_rate_ == pytest.approx(0.1 * plain.learning_rate_, rel=1e-12)
        same = SoftmaxUMax(
            random_state=0, learning_rate=again.learning_rate_, early_stopping=True
        ).fit(X, Y)
        assert same.coef_.tobytes() == again.coef_.tobytes()

    @pytest.mark.parametrize(("loss", "astray"), [(0.9, False), (1.1, True)])
    def test_what_is_trained_on_must_be_known_better_than_before(self, loss, astray, make_xy):
        """Log-losses of 1 when held out, and of log(11) by weights of 0."""
        problem = problem_of(make_xy)
        pairs = Pairs(problem.rows, problem.classes, problem.weight)
        weights = ClassWeights(np.zeros((11, problem.instances.shape[1])))
        found = Trial(1.0, (np.log(11) / loss,))
        model = ImplicitSoftmaxSGD(tol=0.01)
        assert _epochs.went_astray(model, problem.instances, weights, found, pairs) == astray

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_without_early_stopping_trials_are_judged_at_their_end(self, estimator, make_xy):
        X, Y = make_xy(n=200)
        model = estimator(random_state=0, early_stopping=False, max_iter=7).fit(X, Y)
        assert model.n_iter_ == 7
        whole = estimator(random_state=0, learning_rate=model.learning_rate_, max_iter=7).fit(X, Y)
        assert model.coef_.tobytes() == whole.coef_.tobytes()

    def test_a_warning_at_the_last_rate(self, xy, monkeypatch):
        def trial(problem, state, settings, schedule, *args, **kwargs):
            history = History()
            history.add(0.0, 9.0 - np.log10(schedule.rate), schedule.rate, 0.0)
            state.V[:] = 0.0
            return state.V, state.intercept, history

        monkeypatch.setattr(_epochs, "train", trial)
        monkeypatch.setattr(classifier, "went_astray", lambda *args: False)
        with pytest.warns(ConvergenceWarning, match=r"ended at .*, the last rate that it tries"):
            ImplicitSoftmaxSGD(tol=1e-9, max_iter=1).fit(*xy)

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_no_rate_converges(self, estimator, xy, monkeypatch):
        def diverge(*args, **kwargs):
            raise FloatingPointError

        monkeypatch.setattr(_epochs, "train", diverge)
        with pytest.raises(ValueError, match=r"diverged at any of the rates tried. Lower learning"):
            estimator().fit(*xy)

    def test_few_of_many_held_out_rows_judge(self, monkeypatch):
        pairs = Pairs(
            np.repeat(np.arange(100, dtype=np.int32), 2), np.tile([0, 1], 100), np.ones(200)
        )
        monkeypatch.setattr(_epochs, "_JUDGED_SCORES", 30 * 7)
        monkeypatch.setattr(_epochs, "_LEAST_JUDGED", 20)
        assert np.unique(_epochs._some_of(pairs, 7).rows).tolist() == list(range(30))
        assert len(_epochs._some_of(pairs, 7).rows) == 60
        assert len(np.unique(_epochs._some_of(pairs, 70).rows)) == 20
        assert _epochs._some_of(pairs, 2) is pairs


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
        assert fitted.set_params(max_iter=2, learning_rate=1.0).fit(X, Y).n_iter_ == 2

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

        monkeypatch.setattr(_epochs, "train", failing_train)
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
