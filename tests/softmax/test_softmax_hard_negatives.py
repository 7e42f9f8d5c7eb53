"""Hard negatives: when they are searched for, what they change, and what they must not."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import log_softmax
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax
from sklearn_xc._checks import check_instances
from sklearn_xc.kernels.softmax.rules import RULES
from sklearn_xc.softmax import _epochs, implicit, training
from sklearn_xc.softmax.training import Average, train
from sklearn_xc.solvers.schedule import Schedule
from sklearn_xc.solvers.softmax_problem import SoftmaxProblem
from sklearn_xc.solvers.softmax_sgd import SgdSettings, SoftmaxState

#: Rates at which a few epochs end worse than they began are of interest here.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(is too high|was still falling|the last rate):sklearn.exceptions.ConvergenceWarning"
)

ESTIMATORS = [SoftmaxUMax, ImplicitSoftmaxSGD]
SEARCHED = [1, 2, 4, 8, 16, 32, 64]
#: A learning rate so small that nothing moves.
STILL = 1e-13


def learned(model, name):
    """Return an attribute of a fitted model, or a column of its report."""
    return model.fit_report_[name] if name in model.fit_report_ else getattr(model, name)


@pytest.fixture(params=ESTIMATORS)
def make(request):
    def make(**parameters):
        rate = 0.3 if request.param is SoftmaxUMax else 1.0
        return request.param(
            **{"learning_rate": rate, "random_state": 0, "n_hard_negatives": 3, **parameters}
        )

    return make


@pytest.fixture
def data(xy):
    """Return X and one class per row, "a" to "d"."""
    X, _ = xy
    return X, np.array(list("dbac"))[X.toarray()[:, :4].argmax(axis=1)]


@pytest.fixture
def searches(monkeypatch):
    """Return a list that grows by the state, the settings and n_jobs of each search."""
    seen = []

    def spy(module):
        search = module.search_hard_negatives

        def search_and_tell(problem, state, settings, n_jobs):
            search(problem, state, settings, n_jobs)
            seen.append((problem, state, settings, n_jobs))

        monkeypatch.setattr(module, "search_hard_negatives", search_and_tell)

    spy(training)
    spy(_epochs)
    return seen


class TestWhen:
    def test_among_very_many_classes_once(self, monkeypatch):
        """Before the first epoch whose weights tell one class from another."""
        monkeypatch.setattr(training, "MOST_SEARCHED", 2)
        state = SoftmaxState.at(np.zeros((3, 2)), np.ones(4))
        assert not training._is_search_due(0, state)
        assert not training._is_search_due(1, state)
        state.V[0] = 1.0
        assert all(training._is_search_due(epoch, state) for epoch in range(9))
        state.hard = np.zeros((4, 1), np.int32)
        assert not any(training._is_search_due(epoch, state) for epoch in range(9))

    def test_epochs(self):
        """Before the first one only where the weights tell one class from another."""
        zero = SoftmaxState.at(np.zeros((3, 2)), np.ones(4))
        other = SoftmaxState.at(np.eye(3, 2), np.ones(4))
        assert [e for e in range(100) if training._is_search_due(e, zero)] == SEARCHED
        assert [e for e in range(100) if training._is_search_due(e, other)] == [0, *SEARCHED]

    @pytest.mark.parametrize("first_epoch", [0, 5])
    def test_training_searches_before_those_epochs(self, first_epoch, xy, monkeypatch):
        """Of this training, whatever the number of its first epoch."""
        X, Y = xy
        instances = check_instances(ImplicitSoftmaxSGD(), X, reset=True)
        rows, classes = (c.astype(np.int32) for c in Y.tocoo().coords)
        problem = SoftmaxProblem(instances, rows, classes, np.ones(len(rows)), 15, 0.0)
        events = []
        run_epoch, search = training.run_epoch, training.search_hard_negatives

        def told_run_epoch(problem, state, *args):
            events.append(state.hard.shape[1])
            return run_epoch(problem, state, *args)

        def told_search(*args):
            events.append("search")
            search(*args)

        monkeypatch.setattr(training, "run_epoch", told_run_epoch)
        monkeypatch.setattr(training, "search_hard_negatives", told_search)
        for n_hard in (0, 4):
            events.clear()
            state = SoftmaxState.at(np.zeros((15, 40)), np.full(len(rows), np.log(15)))
            settings = SgdSettings(RULES["implicit"], 1, 1, 0, n_hard)
            train(
                problem, state, settings, Schedule(1.0, 0.9), 10, first_epoch=first_epoch,
                average=Average(),
            )  # fmt: skip
            expected = [0]  # nothing is known of the classes before the first epoch
            for epoch in range(1, 10):
                expected += ["search"] * (epoch in SEARCHED and n_hard > 0) + [n_hard]
            assert events == expected

    @pytest.mark.parametrize(("init", "times"), [("zero", 4), ("means", 5)])
    def test_a_fit(self, init, times, make, xy, searches):
        """Before the first epoch from means alone; here they say less than intercepts."""
        make(max_iter=10, n_jobs=2, init=init, fit_intercept=init == "zero").fit(*xy)
        assert len(searches) == times
        for problem, state, settings, n_jobs in searches:
            assert state.hard.shape == (problem.n_pairs, 3)
            assert settings.n_hard == 3
            assert n_jobs == 2
            assert (state.hard != problem.classes[:, None]).all()

    def test_none_are_asked_for(self, make, xy, searches):
        model = make(n_hard_negatives=0, max_iter=10).fit(*xy)
        model.partial_fit(*xy)
        assert not searches

    @pytest.mark.parametrize("batch_size", [1, 4])
    def test_auto(self, batch_size, xy, searches, monkeypatch):
        """5 for single steps; none for implicit steps among many classes."""
        batches = ImplicitSoftmaxSGD(
            learning_rate=1.0, max_iter=2, batch_size=batch_size, random_state=0
        ).fit(*xy)
        assert {settings.n_hard for _, _, settings, _ in searches} == (
            {5} if batch_size == 1 else set()
        )
        searches.clear()
        monkeypatch.setattr(implicit, "MOST_SEARCHED", 14)
        batches.fit(*xy)
        assert not searches
        monkeypatch.setattr(training, "MOST_SEARCHED", 14)
        SoftmaxUMax(learning_rate=0.1, max_iter=9, random_state=0).fit(*xy)
        assert len(searches) == 1

    def test_a_partial_fit_searches_from_weights_that_are_not_zero(self, make, data, searches):
        X, y = data
        model = make().partial_fit(X, y)
        assert not searches
        model.partial_fit(X[:50], y[:50])
        ((problem, state, _, _),) = searches
        assert state.hard.shape == (problem.n_pairs, 3) == (50, 3)


class TestSameBytes:
    @staticmethod
    def assert_same(a, b, names=("coef_", "intercept_", "u_", "loss", "log_loss")):
        for name in names:
            assert learned(a, name).tobytes() == learned(b, name).tobytes(), name

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("rate", [1.0, "auto"])
    def test_n_jobs(self, rate, dtype, make, make_xy):
        """More rows than the 512 that one task scores."""
        X, Y = make_xy(n=1300)
        a, b = (
            make(n_jobs=j, max_iter=4, learning_rate=rate).fit(X.astype(dtype), Y) for j in (1, 2)
        )
        self.assert_same(a, b)
        assert a.learning_rate_ == b.learning_rate_
        a.partial_fit(X.astype(dtype), Y), b.partial_fit(X.astype(dtype), Y)
        self.assert_same(a, b, ("coef_", "intercept_", "u_", "loss"))

    def test_the_order_of_the_rows(self, make, make_xy):
        X, Y = make_xy(n=700)
        weight = np.random.default_rng(1).choice([0.0, 1.0, 2.5, 9.0], 700)
        order = np.random.default_rng(0).permutation(700)
        a = make(max_iter=5).fit(X, Y, weight)
        b = make(max_iter=5).fit(X[order], Y[order], weight[order])
        self.assert_same(a, b, ("coef_", "intercept_", "loss", "log_loss"))

    @pytest.mark.parametrize("alpha", [0.0, 0.5])
    def test_a_weight_is_so_many_rows(self, alpha, make, xy):
        X, Y = xy
        counts = np.random.default_rng(0).integers(0, 4, 120)
        rows = np.random.default_rng(1).permutation(np.repeat(np.arange(120), counts))
        weighted = make(alpha=alpha, max_iter=5).fit(X, Y, counts)
        repeated = make(alpha=alpha, max_iter=5).fit(X[rows], Y[rows])
        self.assert_same(weighted, repeated, ("coef_", "intercept_", "loss", "log_loss"))

    def test_the_same_twice_and_another_seed(self, make, xy):
        a, b, c = (make(max_iter=5, random_state=seed).fit(*xy) for seed in (0, 0, 1))
        self.assert_same(a, b)
        assert (a.coef_ != c.coef_).any()

    def test_they_change_the_model(self, make, xy):
        assert (make(max_iter=5).fit(*xy).coef_ != make(n_hard_negatives=2).fit(*xy).coef_).any()


def reference(name):
    """Return X, y and the ridge, learning rate and epochs of an estimator and a data set."""
    if name == "iris":
        X, y = load_iris(return_X_y=True)
        return (X - X.mean(axis=0)) / X.std(axis=0), y, 1.0, 3.0, 400
    X, y = load_digits(return_X_y=True)
    return normalize(X[:300]), y[:300], 0.5, 10.0, 600


def objective(W, b, X, y, alpha, weight):
    log_proba = log_softmax(X @ W.T + b, axis=1)
    return 0.5 * alpha * (W * W).sum() - weight @ log_proba[np.arange(len(y)), y]


class TestMaximum:
    """The maximum of the likelihood, with whatever negatives."""

    @pytest.mark.parametrize(
        ("estimator", "name", "n_hard", "n_negatives", "is_weighted"),
        [
            (SoftmaxUMax, "iris", 2, 1, True), (SoftmaxUMax, "digits", 5, 2, True),
            (SoftmaxUMax, "digits", 50, 1, False), (ImplicitSoftmaxSGD, "iris", 1, 1, True),
            (ImplicitSoftmaxSGD, "digits", 2, 1, False),
        ],
    )  # fmt: skip
    def test_it_is_that_of_logistic_regression(
        self, estimator, name, n_hard, n_negatives, is_weighted
    ):
        X, y, alpha, rate, max_iter = reference(name)
        weight = np.ones(len(y))
        if is_weighted:
            weight = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 2.5], len(y))
        model = estimator(
            alpha, n_negatives=n_negatives, n_hard_negatives=n_hard, learning_rate=rate,
            decay="1/t", average=True, max_iter=max_iter, random_state=0,
        ).fit(X, y, weight)  # fmt: skip
        best = LogisticRegression(C=1 / alpha, tol=1e-9, max_iter=10_000).fit(X, y, weight)
        least = objective(best.coef_, best.intercept_, X, y, alpha, weight)
        found = objective(model.coef_, model.intercept_, X, y, alpha, weight)
        assert least * (1 - 1e-9) < found < least * (1 + 1e-3)


class TestAllOthers:
    @pytest.mark.parametrize("n_hard", [14, 15, 1000])
    def test_more_than_there_are(self, n_hard, make, xy):
        a, b = (make(n_hard_negatives=h, max_iter=8, alpha=0.1).fit(*xy) for h in (14, n_hard))
        assert a.coef_.tobytes() == b.coef_.tobytes()
        assert np.isfinite(a.coef_).all()
        assert a.fit_report_["log_loss"][-1] < 0.9 * np.log(15)
        # Nothing is left to sample, however many are asked for.
        c = make(n_hard_negatives=n_hard, n_negatives=9, max_iter=2).fit(*xy).coef_
        assert np.isfinite(c).all()

    def test_two_classes(self, make, data):
        X, y = data
        y = y < "c"
        model = make(
            n_hard_negatives=5, alpha=1.0, decay="1/t", learning_rate=3.0, max_iter=300
        ).fit(X, y)
        assert model.score(X, y) > 0.8
        best = LogisticRegression(C=2.0, tol=1e-9).fit(X, y)
        expected = -best.predict_log_proba(X)[np.arange(120), y.astype(int)].mean()
        assert model.fit_report_["log_loss"][-1] == pytest.approx(expected, rel=0.01)

    def test_steps_are_exact(self, make, xy):
        """The objective is that of all classes: it does not vary from one epoch to the next."""
        X, Y = xy
        Y = Y[:, [j for j in range(15) if j != 4]]  # 4 has no instance, so no probability
        model = make(n_hard_negatives=13, max_iter=6, warm_start=True).fit(X, Y)
        model.set_params(learning_rate=STILL, max_iter=10).fit(X, Y)
        rows, places = model.u_index_.T
        log_losses = -log_softmax(X @ model.coef_.T + model.intercept_, axis=1)[rows, places]
        expected = np.mean(model.u_ + np.exp(log_losses - model.u_) - 1)
        np.testing.assert_allclose(model.fit_report_["loss"][1:], expected, rtol=1e-8)
        few = make(n_hard_negatives=3, max_iter=6, warm_start=True).fit(X, Y)
        few.set_params(learning_rate=STILL, max_iter=10).fit(X, Y)
        assert few.fit_report_["loss"][1:].std() > 1e-5


class TestPartialFit:
    @pytest.mark.parametrize(
        ("make", "average"), [(SoftmaxUMax, True), (ImplicitSoftmaxSGD, False)], indirect=["make"]
    )
    def test_chunks_come_to_where_fit_comes(self, average, make, data):
        X, y = data
        parameters = {"alpha": 3.0, "decay": "1/t", "n_hard_negatives": 1, "average": average}
        if isinstance(make(), ImplicitSoftmaxSGD):
            parameters["learning_rate"] = 5.0
        model, fitted = make(**parameters), make(max_iter=60, **parameters).fit(X, y)
        order = np.random.default_rng(0).permutation(120)
        for _ in range(60):
            for rows in np.array_split(order, 5):
                model.partial_fit(X[rows], y[rows], classes=list("abcd"), sample_ids=rows)
        places = np.searchsorted(model.classes_, y)
        found, expected = (
            objective(m.coef_, m.intercept_, X.toarray(), places, 3.0, np.ones(120))
            for m in (model, fitted)
        )
        assert found == pytest.approx(expected, rel=0.03)
        assert found < 0.9 * 120 * np.log(4)
        assert model.u_.shape == (120,)

    def test_after_a_fit(self, make, xy):
        model = make(max_iter=5).fit(*xy)
        before = model.fit_report_["log_loss"][-1]
        for _ in range(10):
            model.partial_fit(*xy, sample_ids=np.arange(120))
        assert len(model.fit_report_["loss"]) == 15
        assert model.u_.shape == (xy[1].nnz,)
        log_losses = -model.predict_log_proba(xy[0]).toarray()[tuple(model.u_index_.T)]
        assert log_losses.mean() < before

    @pytest.mark.parametrize("n_rows", [1, 2])
    def test_few_rows(self, n_rows, make, data):
        X, y = data
        model = make(alpha=0.1)
        for i in range(0, 40, n_rows):
            model.partial_fit(X[i : i + n_rows], y[i : i + n_rows], classes=list("abcd"))
        assert np.isfinite(model.coef_).all()
        assert model.n_samples_fit_ == 40

    def test_another_number_of_them(self, make, xy):
        model = make().partial_fit(*xy)
        for n_hard in (0, 5, 14, 99):
            model.set_params(n_hard_negatives=n_hard).partial_fit(*xy)
        assert np.isfinite(model.coef_).all()


def test_warm_starts_and_early_stopping(make, xy):
    X, Y = xy
    model = make(max_iter=200, early_stopping=True, n_iter_no_change=3, decay=1.0).fit(X, Y)
    assert model.n_iter_ < 200
    model.set_params(warm_start=True, early_stopping=False, max_iter=3).fit(X, Y)
    assert model.fit_report_["log_loss"].shape == (3,)
    assert np.isfinite(model.coef_).all()


def test_rows_without_features(make):
    """All classes tie for them; what is sampled for the others moves u."""
    Y = sp.csr_array(np.eye(6)[np.arange(30) % 6])
    model = make(max_iter=5, sampling="uniform").fit(sp.csr_array((30, 4)), Y)
    assert not model.coef_.any()
    assert model.u_.mean() == pytest.approx(np.log(6), rel=0.05)
