"""Instances that are held out, and the number of epochs that they decide on."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from softmax_inputs import instances_of

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax
from sklearn_xc.exceptions import ConvergenceWarning
from sklearn_xc.softmax import _epochs, training
from sklearn_xc.softmax._inputs import hold_out
from sklearn_xc.softmax.pairs import Pairs, merge_equal

#: Rates at which a few epochs end worse than they began are of interest here.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(is too high|was still falling):sklearn.exceptions.ConvergenceWarning"
)

ESTIMATORS = [SoftmaxUMax, ImplicitSoftmaxSGD]


class TestEarlyStopping:
    @pytest.fixture
    def data(self, make_xy):
        """Return X and Y without label 4, which has no instance."""
        X, Y = make_xy(n=200)
        return X, Y[:, [j for j in range(15) if j != 4]]

    @pytest.mark.parametrize("average", [False, True])
    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_it_trains_all_for_the_best_number_of_epochs(
        self, estimator, average, data, monkeypatch
    ):
        """By log-loss: by rank, all that these instances need is known after an epoch."""
        monkeypatch.setattr("sklearn_xc.softmax.judge._MOST_CLASSES", 0)
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
        # The best trial is run again, for what held-out instances say of its probabilities.
        assert len(seen) == 2 if rate == 0.5 else len(seen) >= 4
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
