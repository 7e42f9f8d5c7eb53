"""Epochs at a given rate: averages, reports, when they end, progress."""

import numpy as np
import pytest
from softmax_inputs import problem_of

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax
from sklearn_xc.kernels.softmax.rules import RULES
from sklearn_xc.softmax.training import Average, History, train
from sklearn_xc.solvers.schedule import Schedule
from sklearn_xc.solvers.softmax_sgd import SgdSettings, SoftmaxState

#: Rates at which a few epochs end worse than they began are of interest here.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(is too high|was still falling):sklearn.exceptions.ConvergenceWarning"
)

ESTIMATORS = [SoftmaxUMax, ImplicitSoftmaxSGD]
SETTINGS = SgdSettings(RULES["implicit"], 2, 1, 0, intercept_rate=0.1)


def start(problem):
    u = np.full(problem.n_pairs, np.log(problem.n_classes))
    return np.zeros((problem.n_classes, problem.instances.shape[1])), u


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
