"""The search for a learning rate, by itself and as ``learning_rate="auto"``."""

import numpy as np
import pytest
from softmax_inputs import problem_of

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax
from sklearn_xc.exceptions import ConvergenceWarning
from sklearn_xc.softmax import _epochs, classifier
from sklearn_xc.softmax.pairs import Pairs
from sklearn_xc.softmax.search import REACH, Trial, search_rate
from sklearn_xc.softmax.training import History
from sklearn_xc.weights.class_weights import ClassWeights

#: Rates at which a few epochs end worse than they began are of interest here.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(is too high|was still falling):sklearn.exceptions.ConvergenceWarning"
)

ESTIMATORS = [SoftmaxUMax, ImplicitSoftmaxSGD]


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
    def test_the_rate_has_the_lowest_held_out_log_loss_of_its_neighbours(
        self, estimator, make_xy, monkeypatch
    ):
        """Where ranks do not judge."""
        monkeypatch.setattr("sklearn_xc.softmax.judge._MOST_CLASSES", 0)
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
    def test_the_unit_of_x_makes_no_difference(self, estimator, power, make_xy, monkeypatch):
        """But to the order of the instances, which follows from their content.

        By log-loss: ranks, nearly perfect here, depend more on which instances are held out.
        """
        monkeypatch.setattr("sklearn_xc.softmax.judge._MOST_CLASSES", 0)
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
