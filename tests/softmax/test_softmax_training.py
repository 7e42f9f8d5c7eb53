"""Epochs, searches for hard negatives and for a learning rate, early stopping and the report."""

import numpy as np
import pytest
import scipy.sparse as sp
from softmax_inputs import instances_of, problem_of

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax
from sklearn_xc._weights.class_weights import ClassWeights
from sklearn_xc.exceptions import ConvergenceWarning
from sklearn_xc.softmax import classifier, implicit, pairs, training
from sklearn_xc.softmax.kernels.rules import RULES
from sklearn_xc.softmax.pairs import ClassPairs, hold_out, merge_equal
from sklearn_xc.softmax.sgd import SgdSettings
from sklearn_xc.softmax.state import SoftmaxState
from sklearn_xc.softmax.training import REACH, HeldOutPairs, RateTrial, Schedule, find_rate

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(is too high|was still falling|the last rate):sklearn.exceptions.ConvergenceWarning"
)


@pytest.fixture
def by_log_loss(monkeypatch):
    """Have the log-loss decide: ranks are perfect after an epoch on this data."""
    monkeypatch.setattr(pairs, "_MOST_RANKED", 0)


def zero_state(problem):
    u = np.full(problem.n_pairs, np.log(problem.n_classes))
    return SoftmaxState.at(np.zeros((problem.n_classes, problem.instances.shape[1])), u)


class TestHardNegatives:
    def test_searches_before_epochs(self, monkeypatch):
        """Before the first one only if the weights can rank classes."""
        zero = SoftmaxState.at(np.zeros((3, 2)), np.ones(4))
        other = SoftmaxState.at(np.eye(3, 2), np.ones(4))
        expected = [1, 2, 4, 8, 16, 32, 64]
        assert [e for e in range(100) if training._is_search_due(e, zero)] == expected
        assert [e for e in range(100) if training._is_search_due(e, other)] == [0, *expected]
        monkeypatch.setattr(training, "MOST_SEARCHED", 2)
        assert not training._is_search_due(1, zero)
        assert training._is_search_due(5, other)
        other.hard = np.zeros((4, 1), np.int32)
        assert not any(training._is_search_due(epoch, other) for epoch in range(9))

    @pytest.mark.parametrize(
        ("estimator", "parameters", "most", "n_hard"),
        [
            (ImplicitSoftmaxSGD, {}, 11, 5),
            (ImplicitSoftmaxSGD, {}, 10, 0),
            (ImplicitSoftmaxSGD, {"n_hard_negatives": 2}, 11, 2),
            (SoftmaxUMax, {}, 10, 5),
        ],
    )
    def test_auto(self, estimator, parameters, most, n_hard, make_xy, monkeypatch):
        monkeypatch.setattr(implicit, "MOST_SEARCHED", most)
        problem = problem_of(make_xy)  # of 11 classes
        assert estimator(**parameters)._settings(problem, 0).n_hard == n_hard


class TestTrials:
    @pytest.mark.parametrize(
        ("losses", "loss", "n_epochs"),
        [
            ([3.0, 2.0, 1.0, 2.0, 2.5], 2.0, 3),  # the neighbours of 1 are no better than 2
            ([3.0, 2.0, 1.5, 1.4], 1.5, 4),
            ([4.0], 4.0, 1),
        ],
    )
    def test_a_lucky_epoch_does_not_count(self, losses, loss, n_epochs):
        trial = RateTrial(1.0, tuple(losses))
        assert (trial.loss, trial.n_epochs) == (loss, n_epochs)

    @pytest.mark.parametrize(
        ("target", "decay", "max_iter", "is_out"),
        [
            (np.inf, 1.0, 9, False),
            (1.89, 1.0, 9, True),  # at 0.1 an epoch, the last one ends at 1.9
            (1.91, 1.0, 9, False),
            (2.51, 0.5, 11, False),  # falling rates gain 0.1 in all
            (2.49, 0.5, 11, True),
        ],
    )
    def test_what_cannot_catch_up_ends(self, target, decay, max_iter, is_out):
        schedule = Schedule(1.0, decay)
        assert training._is_out_of_reach(target, [2.7, 2.6], schedule, max_iter) == is_out


class TestSearch:
    @pytest.fixture
    def search(self, monkeypatch, make_xy):
        """Return a search over made-up losses: its power of ten, edge flag and powers tried."""
        problem = problem_of(make_xy)

        def search(loss_of, n_hard=0):
            settings, tried = SgdSettings(RULES["implicit"], 1, 0, n_hard=n_hard), []
            first = training.first_rate(problem)

            def no_epoch(problem, state, settings, schedule, epoch, n_jobs):
                tried.append(np.round(2 * np.log10(schedule.rate / first)) / 2)
                if not np.isfinite(loss_of(tried[-1])):
                    raise FloatingPointError

            monkeypatch.setattr(training, "train_epoch", no_epoch)

            class Losses:
                def __call__(self, weights):
                    return (loss_of(tried[-1]),) * 2

                def keep_scores(self, weights):
                    pass

            trial, at_edge = find_rate(
                problem,
                zero_state(problem),
                settings,
                0.9,
                1,
                1e-3,
                Losses(),
                1,
                lambda trial: None,
            )
            if not trial.losses:
                return None, at_edge, tried
            return np.round(2 * np.log10(trial.rate / first)) / 2, at_edge, tried

        return search

    @pytest.mark.parametrize(
        ("best", "side"), [(-3, 0.1), (-1, -0.1), (0, 0.1), (1, -0.1), (3, 0.1)]
    )
    def test_it_climbs_to_the_lowest_loss(self, side, best, search):
        found, at_edge, tried = search(lambda power: 2.0 + abs(power - best - side))
        assert (found, at_edge) == (best, False)
        assert tried[-1] == best + 5 * side  # half a power towards the better neighbour
        assert {best - 1, best, best + 1} <= set(tried)

    def test_it_may_end_between_two_powers(self, search):
        assert search(lambda power: 1.0 + abs(power + 1.5))[0] == -1.5
        assert search(lambda power: 1.0 + abs(power + 1.5), n_hard=2)[0] in (-1, -2)

    @pytest.mark.parametrize("sign", [-1, 1])
    def test_the_last_rate(self, sign, search):
        assert search(lambda power: 9.0 - sign * power)[:2] == (sign * REACH, True)

    def test_rates_that_diverge_lead_down(self, search):
        assert search(lambda power: np.inf if power > -3 else 9.0 - power)[0] == -3
        assert search(lambda power: np.inf)[0] is None

    def test_small_gains_are_not_followed(self, search):
        found, _, tried = search(lambda power: 5.0 - 0.009 * 5 * power)
        assert found == 1
        assert max(tried) == 1


class TestAuto:
    def test_the_rate_is_no_worse_than_its_neighbours(self, make_xy, by_log_loss):
        X, Y = make_xy(n=300)
        model, losses = SoftmaxUMax(random_state=0).fit(X, Y), []
        for factor in (0.1, 1.0, 10.0):
            rate = factor * model.learning_rate_
            other = SoftmaxUMax(random_state=0, learning_rate=rate, early_stopping=True).fit(X, Y)
            losses.append(other.fit_report_["log_loss"][-1])
        assert losses[1] <= min(losses) + 0.02
        assert model.fit_report_["log_loss"][-1] == losses[1]  # it is the same fit

    def test_a_failed_training_is_repeated_at_a_tenth_of_the_rate(self, make_xy, monkeypatch):
        """A loss above that of the trial on what is trained on now, or a divergence."""
        X, Y = make_xy(n=200)
        plain = SoftmaxUMax(random_state=0).fit(X, Y)
        calls, find = [], classifier.find_rate

        def lucky(*args):
            trial, at_edge = find(*args)
            calls.append(trial.rate)
            losses = tuple(loss - 9.0 * (len(calls) == 1) for loss in trial.losses)
            return trial._replace(losses=losses), at_edge

        monkeypatch.setattr(classifier, "find_rate", lucky)
        model = SoftmaxUMax(random_state=0).fit(X, Y)
        np.testing.assert_allclose(calls, [plain.learning_rate_, 0.1 * plain.learning_rate_])
        assert model.learning_rate_ == calls[1]
        monkeypatch.undo()
        run, n_runs = SoftmaxUMax._run_epochs, []
        monkeypatch.setattr(
            SoftmaxUMax,
            "_run_epochs",
            lambda self, *a: n_runs.append(1) or ([] if len(n_runs) == 1 else run(self, *a)),
        )
        again = SoftmaxUMax(random_state=0).fit(X, Y)
        assert again.learning_rate_ == pytest.approx(0.1 * plain.learning_rate_)

    def test_a_warning_at_the_last_rate(self, xy, monkeypatch):
        find = classifier.find_rate
        monkeypatch.setattr(classifier, "find_rate", lambda *args: (find(*args)[0], True))
        with pytest.warns(ConvergenceWarning, match=r"ended at .*, the last rate that it tries"):
            ImplicitSoftmaxSGD(random_state=0).fit(*xy)

    def test_no_rate_converges(self, xy, monkeypatch):
        monkeypatch.setattr(classifier, "find_rate", lambda *args: (RateTrial(1.0), False))
        with pytest.raises(ValueError, match=r"at any of the rates tried\. Lower learning"):
            SoftmaxUMax().fit(*xy)


class TestHoldOut:
    def test_equal_rows_are_on_one_side(self, make_xy):
        X, Y = make_xy(n=200)
        instances = instances_of(sp.vstack([X, X]).tocsr())
        rows, classes = (c.astype(np.int32) for c in sp.vstack([Y, Y]).tocoo().coords)
        merged = merge_equal(instances, ClassPairs(rows, classes, np.ones(len(rows))))
        kept, held = hold_out(ImplicitSoftmaxSGD(), merged, 0, False)
        assert (merged.weight == 2).all()
        assert not set(kept.rows % 200) & set(held.rows % 200)

    def test_every_instance_is_on_one_side(self):
        rows, classes = np.arange(20, dtype=np.int32), np.arange(20, dtype=np.int32) % 3
        classes[7] = 3
        for seed in range(20):
            kept, held = hold_out(
                ImplicitSoftmaxSGD(validation_fraction=0.3),
                ClassPairs(rows, classes, np.ones(20)),
                seed,
                False,
            )
            assert (len(kept.rows), len(held.rows)) == (14, 6)
            assert not set(kept.rows) & set(held.rows)

    @pytest.mark.parametrize("n", [1, 5])
    def test_all_where_nothing_would_be_left(self, n):
        """One instance, or each of a label of its own."""
        all_pairs = ClassPairs(*np.tile(np.arange(n, dtype=np.int32), (2, 1)), np.ones(n))
        kept, held = hold_out(ImplicitSoftmaxSGD(), all_pairs, 0, False)
        assert kept.rows.tolist() == held.rows.tolist() == list(range(n))

    def test_what_is_held_out_has_no_part_in_trials(self, make_xy, monkeypatch):
        """Neither its rows, nor its features."""
        X, Y = make_xy(n=200)
        seen, find = [], classifier.find_rate

        def spy(problem, state, *args):
            seen.append((problem, state.V.copy()))
            return find(problem, state, *args)

        monkeypatch.setattr(classifier, "find_rate", spy)
        SoftmaxUMax(early_stopping=True, validation_fraction=0.25, random_state=0).fit(X, Y)
        ((problem, V),) = seen
        kept = np.unique(problem.rows)
        assert problem.n_pairs == np.diff(Y.indptr)[kept].sum()  # all pairs of a row
        held = np.setdiff1d(np.flatnonzero(np.diff(Y.indptr)), kept)
        assert len(held) >= 50
        assert not V[:, np.setdiff1d(X[held].indices, X[kept].indices)].any()


@pytest.mark.parametrize("by_rank", [False, True])
def test_the_validation_loss(by_rank):
    """Against loops over instances."""
    rng = np.random.default_rng(0)
    X, W, b = rng.normal(size=(30, 6)), rng.normal(size=(9, 6)), rng.normal(size=9)
    W[1], b[1] = W[0], b[0]  # ties
    Y = rng.random((30, 9)) < 0.3
    Y[:, 0] |= ~Y.any(axis=1)
    weight = rng.uniform(0.5, 2.0, 30)
    rows, classes = (c.astype(np.int32) for c in np.nonzero(Y))
    scores = X @ W.T + b
    log_proba = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    expected = -np.average(log_proba[rows, classes], weights=weight[rows])
    pairs = ClassPairs(rows, classes, weight[rows])
    loss = HeldOutPairs(instances_of(X), pairs.take(np.arange(len(rows))), pairs, 9, by_rank, 1)
    criterion, log_loss = loss(ClassWeights(W, None, b))
    assert log_loss == pytest.approx(expected)
    if not by_rank:
        assert criterion == log_loss
        return
    reciprocal = [1 / (1 + (s[~y] >= s[y].max()).sum()) for s, y in zip(scores, Y, strict=True)]
    assert criterion == pytest.approx(1 - np.average(reciprocal, weights=weight) + 0.01 * expected)


class TestEarlyStopping:
    def test_it_trains_all_for_the_best_number_of_epochs(self, make_xy, by_log_loss):
        X, Y = make_xy(n=200)
        Y = Y[:, [j for j in range(15) if j != 4]]  # 4 has no instance
        parameters = {"learning_rate": 0.3, "random_state": 0, "decay": 1.0, "init": "zero"}
        model = ImplicitSoftmaxSGD(max_iter=200, early_stopping=True, **parameters).fit(X, Y)
        assert 1 < model.n_iter_ < 100
        whole = ImplicitSoftmaxSGD(max_iter=model.n_iter_, **parameters).fit(X, Y)
        assert model.coef_.tobytes() == whole.coef_.tobytes()
        assert (model.fit_report_["log_loss"] != whole.fit_report_["log_loss"]).all()

    def test_warnings(self, make_xy, by_log_loss):
        xy = make_xy(n=100)
        late = ImplicitSoftmaxSGD(learning_rate=1e-3, early_stopping=True, tol=0.0, max_iter=3)
        with pytest.warns(ConvergenceWarning, match=r"still falling by over tol=0 after .* Raise"):
            late.set_params(init="zero").fit(*xy)
        with pytest.warns(ConvergenceWarning, match=r"has 2.71: learning_rate=1000 is too"):
            SoftmaxUMax(learning_rate=1e3, max_iter=3, random_state=0).fit(*xy)


class TestReport:
    @pytest.mark.parametrize(
        ("estimator", "decay"), [(SoftmaxUMax, 0.5), (ImplicitSoftmaxSGD, "1/t")]
    )
    def test_columns(self, estimator, decay, xy):
        model = estimator(learning_rate=0.2, decay=decay, max_iter=3, random_state=0).fit(*xy)
        report = model.fit_report_
        assert tuple(report) == ("loss", "log_loss", "learning_rate", "seconds")
        assert all(c.shape == (model.n_iter_,) == (3,) for c in report.values())
        rates = [0.2, 0.1, 0.05] if decay == 0.5 else 0.2 / np.arange(1, 4)
        np.testing.assert_allclose(report["learning_rate"], rates)
        assert np.isfinite(report["log_loss"]).all()
        assert (report["seconds"] > 0).all()
