"""The u of instances that come again, learning rates and averages, over pieces and warm starts."""

import numpy as np
import pytest
from scipy.special import log_softmax

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax
from sklearn_xc.metrics import propensity

#: Rates at which a few epochs end worse than they began are of interest here.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*is too high:sklearn.exceptions.ConvergenceWarning"
)

ESTIMATORS = [SoftmaxUMax, ImplicitSoftmaxSGD]
#: A learning rate so small that nothing moves: u and weights can be read as they started.
STILL = 1e-13


@pytest.fixture(params=ESTIMATORS)
def make(request):
    def make(**parameters):
        rate = 0.3 if request.param is SoftmaxUMax else 1.0
        own = {"learning_rate": rate, "random_state": 0, "n_hard_negatives": 0}
        return request.param(**{**own, **parameters})

    return make


@pytest.fixture
def data(xy):
    """Return X and one class per row, "a" to "d"."""
    X, _ = xy
    return X, np.array(list("dbac"))[X.toarray()[:, :4].argmax(axis=1)]


def log_losses(W, b, X, places):
    return -log_softmax(X.toarray() @ W.T + b, axis=1)[np.arange(len(places)), places]


class TestFirstCall:
    def test_one_pass_from_zero_is_a_fit_of_one_epoch_in_another_order(self, make, data):
        X, y = data
        model = make(sampling="uniform").partial_fit(X, y)
        fitted = make(sampling="uniform", max_iter=1, init="zero").fit(X, y)
        assert model.classes_.tolist() == ["a", "b", "c", "d"]
        assert model.coef_.shape == (4, 40)
        assert model.n_iter_ == len(model.fit_report_["loss"]) == 1
        np.testing.assert_array_equal(model.u_index_[:, 0], np.arange(120))
        np.testing.assert_array_equal(model.label_counts_, fitted.label_counts_)
        assert model.score(X, y) > 0.5

    @pytest.mark.parametrize("n_negatives", [1, 3])
    def test_the_objective_of_a_pass_starts_at_guessing_and_ends_at_the_log_loss(
        self, make, data, n_negatives
    ):
        X, y = data
        still = make(
            sampling="uniform", n_negatives=n_negatives, learning_rate=1e-9, fit_intercept=False
        )
        assert still.partial_fit(X, y).fit_report_["loss"][0] == pytest.approx(np.log(4), abs=1e-6)
        # All others: no sample at all.
        still = make(sampling="uniform", n_negatives=3, learning_rate=1e-9)
        places = np.unique(y, return_inverse=True)[1]
        guessing = log_losses(np.zeros((4, 40)), np.log(np.bincount(places)), X, places).mean()
        assert still.partial_fit(X, y).fit_report_["loss"][0] == pytest.approx(guessing, abs=1e-6)
        model = make(sampling="uniform", n_negatives=3, learning_rate=0.03)
        seen = model.partial_fit(X, y).fit_report_["loss"][0]
        after = log_losses(model.coef_, model.intercept_, X, places).mean()
        assert after < seen < guessing
        model.set_params(learning_rate=1e-9).partial_fit(X, y, sample_ids=np.arange(120))
        assert after < model.fit_report_["loss"][1] < seen  # its u are of the first pass

    def test_auto_is_searched_for_once(self, make, data):
        X, y = data
        model = make(learning_rate="auto", max_iter=5).partial_fit(X, y)
        rate = model.learning_rate_
        assert rate in 10.0 ** np.arange(-3, 4)
        model.partial_fit(X[:3], y[:3])
        assert model.learning_rate_ == rate

    @pytest.mark.parametrize("average", [False, True])
    def test_the_same_for_any_n_jobs(self, average, make, data):
        X, y = data
        a, b = (make(learning_rate="auto", n_jobs=j, average=average) for j in (1, 2))
        for rows in (slice(50), slice(30, 120)):
            sample_ids = np.arange(120)[rows]
            a.partial_fit(X[rows], y[rows], classes=list("abcd"), sample_ids=sample_ids)
            b.partial_fit(X[rows], y[rows], classes=list("abcd"), sample_ids=sample_ids)
        assert a.coef_.tobytes() == b.coef_.tobytes()
        assert a.u_.tobytes() == b.u_.tobytes()


class TestIndex:
    def test_u_is_kept_under_the_same_number(self, make, data):
        X, y = data
        numbers = np.arange(120)[::-1] * 7
        model = make().partial_fit(X, y, sample_ids=numbers)
        before = model.u_.copy()
        places = np.searchsorted(model.classes_, y)
        exact = log_losses(model.coef_, model.intercept_, X, places)[::-1]
        assert np.abs(before - exact).max() > 0.05
        np.testing.assert_array_equal(model.u_index_[:, 0], np.sort(numbers))
        model.set_params(learning_rate=STILL)
        if isinstance(model, SoftmaxUMax):
            model.set_params(delta=1e6)  # nothing is lifted
        model.partial_fit(X, y, sample_ids=numbers)
        np.testing.assert_allclose(model.u_, before, atol=1e-9)
        some = np.array([3, 50, 7])
        model.partial_fit(X[some], y[some], sample_ids=numbers[some])
        np.testing.assert_allclose(model.u_, before, atol=1e-9)

    def test_only_the_u_of_the_given_numbers_moves(self, make, data):
        X, y = data
        model = make().partial_fit(X, y, sample_ids=np.arange(120))
        before = model.u_.copy()
        model.partial_fit(X[10:20], y[10:20], sample_ids=np.arange(10, 20))
        moved = np.flatnonzero(model.u_ != before)
        assert set(moved) <= set(range(10, 20))
        assert len(moved) > 5

    def test_another_class_under_the_same_number_is_a_new_pair(self, make, data):
        X, y = data
        model = make(learning_rate=STILL).partial_fit(X, y, sample_ids=np.arange(120))
        other = np.where(y == "a", "b", "a")
        model.partial_fit(X[:9], other[:9], sample_ids=np.arange(9))
        assert model.u_.shape == (129,)
        assert (np.unique(model.u_index_[:, 0], return_counts=True)[1][:9] == 2).all()

    def test_without_numbers_instances_are_new_and_start_at_the_exact_normaliser(self, make, data):
        X, y = data
        model = make().partial_fit(X, y)
        before = model.u_.copy()
        places = np.searchsorted(model.classes_, y)
        exact = log_losses(model.coef_, model.intercept_, X, places)
        model.set_params(learning_rate=STILL).partial_fit(X, y)
        np.testing.assert_array_equal(model.u_index_[:, 0], np.arange(240))
        np.testing.assert_array_equal(model.u_[:120], before)
        np.testing.assert_allclose(model.u_[120:], exact, atol=1e-9)
        assert np.abs(exact - np.log(4)).max() > 0.5

    def test_new_numbers_do_not_meet_given_ones(self, make, data):
        X, y = data
        model = make().partial_fit(X[:5], y[:5], classes=list("abcd"), sample_ids=[9, 2, 400, 1, 0])
        model.partial_fit(X[5:8], y[5:8])
        assert model.u_index_[:, 0].tolist() == [0, 1, 2, 9, 400, 401, 402, 403]

    def test_after_fit_numbers_are_those_of_its_rows(self, make, data):
        X, y = data
        model = make(max_iter=5).fit(X, y)
        before = model.u_.copy()
        model.set_params(learning_rate=STILL)
        model.partial_fit(X[40:60], y[40:60], sample_ids=np.arange(40, 60))
        np.testing.assert_allclose(model.u_, before, atol=1e-9)
        model.partial_fit(X[40:60], y[40:60])
        np.testing.assert_array_equal(model.u_index_[120:, 0], np.arange(120, 140))

    def test_large_numbers(self, make, data):
        X, y = data
        largest = (2**63 - 1) // 4 - 1
        model = make().partial_fit(X[:2], y[:2], classes=list("abcd"), sample_ids=[largest, 3])
        assert model.u_index_[:, 0].tolist() == [3, largest]
        with pytest.raises(ValueError, match=f"ids must be between 0 and {largest}. Got 0 to "):
            model.partial_fit(X[:2], y[:2], sample_ids=[0, largest + 1])


class TestPasses:
    @pytest.mark.parametrize(
        ("estimator", "parameters"),
        [
            (SoftmaxUMax, {"learning_rate": 1.0}),
            (ImplicitSoftmaxSGD, {}),
            (ImplicitSoftmaxSGD, {"n_negatives": 3, "batch_size": 4, "learning_rate": 20.0}),
            (ImplicitSoftmaxSGD, {"average": True}),
        ],
    )
    def test_chunks_with_numbers_come_to_where_fit_comes(self, estimator, parameters, data):
        X, y = data
        parameters = {
            "learning_rate": 5.0, "random_state": 0, "n_hard_negatives": 0, **parameters,
        }  # fmt: skip
        model, fitted = (estimator(3.0, decay="1/t", max_iter=60, **parameters) for _ in range(2))
        fitted.fit(X, y)
        order = np.random.default_rng(0).permutation(120)
        for _ in range(60):
            for rows in np.array_split(order, 5):
                model.partial_fit(X[rows], y[rows], classes=list("abcd"), sample_ids=rows)
        places = np.searchsorted(model.classes_, y)
        objectives = [
            log_losses(m.coef_, m.intercept_, X, places).sum() + 1.5 * (m.coef_**2).sum()
            for m in (model, fitted)
        ]
        assert objectives[0] == pytest.approx(objectives[1], rel=0.02)
        assert objectives[0] < 0.9 * 120 * np.log(4)
        assert model.u_.shape == (120,)

    def test_counts(self, make, data):
        X, y = data
        model = make().partial_fit(X[:70], y[:70], classes=list("abcd"))
        model.partial_fit(X[50:], y[50:])
        assert model.n_samples_fit_ == 140
        expected = [(y[:70] == c).sum() + (y[50:] == c).sum() for c in "abcd"]
        assert model.label_counts_.tolist() == expected
        assert propensity(model.label_counts_, model.n_samples_fit_).shape == (4,)
        assert model.n_iter_ == 2
        assert model.fit_report_["loss"].shape == (2,)
        model = make(max_iter=3).fit(X, y)
        model.partial_fit(X[:10], y[:10])
        assert model.n_iter_ == len(model.fit_report_["loss"]) == 4
        assert model.n_samples_fit_ == 130

    def test_the_rate_falls_with_the_passes_over_all_pairs(self, make, data):
        """At STILL, weights move by the rate alone: by a tenth at the tenth of a "1/t" schedule."""
        X, y = data
        model = make(decay=0.5, learning_rate=1e-6)
        steps, W = [], 0.0
        for _ in range(3):
            model.partial_fit(X, y, sample_ids=np.arange(120))
            steps.append(np.linalg.norm(model.coef_ - W))
            W = model.coef_.copy()
        ratios = np.array(steps[1:]) / steps[:-1]
        np.testing.assert_allclose(ratios, 0.5, rtol=0.25)

    def test_average(self, make, data):
        """The k-th iterate has weight k."""
        X, y = data
        plain, model = make(), make(average=True)
        iterates = []
        for k in range(1, 5):
            plain.partial_fit(X, y, sample_ids=np.arange(120))
            model.partial_fit(X, y, sample_ids=np.arange(120))
            iterates.append(plain.coef_.copy())
            expected = np.average(iterates, axis=0, weights=np.arange(1, k + 1))
            np.testing.assert_allclose(model.coef_, expected, atol=1e-14)
        assert np.abs(model.coef_ - iterates[-1]).max() > 0.01

    def test_average_after_fit(self, make, data):
        X, y = data
        model = make(average=True, max_iter=3).fit(X, y)
        mean = model.coef_.copy()
        model.partial_fit(X, y, sample_ids=np.arange(120))
        plain = make(max_iter=3).fit(X, y).partial_fit(X, y, sample_ids=np.arange(120))
        np.testing.assert_allclose(model.coef_, mean + 0.4 * (plain.coef_ - mean), atol=1e-14)

    def test_weights(self, make, data):
        X, y = data
        weight = np.random.default_rng(0).choice([0.0, 1.0, 2.5], 120)
        model = make().partial_fit(X, y, sample_weight=weight)
        np.testing.assert_array_equal(model.u_index_[:, 0], np.flatnonzero(weight))
        scaled = make().partial_fit(X, y, sample_weight=4 * weight)
        np.testing.assert_allclose(scaled.coef_, model.coef_, atol=1e-12)
        assert (make().partial_fit(X, y).coef_ != model.coef_).any()


class TestErrors:
    @pytest.fixture
    def model(self, make, data):
        return make().partial_fit(*data)

    @pytest.fixture
    def assert_refused(self, model, data):
        """A call that fails changes nothing."""
        before = {k: np.array(v) for k, v in vars(model).items() if k.endswith("_")}
        u = model.u_.copy()

        def check(match, X=data[0], y=data[1], **arguments):
            with pytest.raises(ValueError, match=match):
                model.partial_fit(X, y, **arguments)
            for name, value in before.items():
                np.testing.assert_array_equal(getattr(model, name), value, name)
            np.testing.assert_array_equal(model.u_, u)

        return check

    @pytest.mark.parametrize(
        ("sample_ids", "match"),
        [
            (np.zeros(120, int), "sample_ids must hold distinct numbers, .* Got 0 120 times."),
            (np.r_[3, np.arange(119)], "sample_ids must hold distinct numbers, .* Got 3 2 times."),
            (np.arange(120) - 1, r"sample_ids must be between 0 and \d+. Got -1 to 118"),
            (np.arange(120.0), r"120 integers, one for each row of X. Got dtype float64"),
            (np.arange(119), r"120 integers, .* shape \(119,\)."),
            (np.arange(240).reshape(120, 2), r"120 integers, .* shape \(120, 2\)."),
            (np.arange(120) > 0, "120 integers, .* dtype bool"),
            (np.full(120, "a"), "120 integers, .* dtype <U1"),
            (~np.arange(120, dtype=np.uint64), "sample_ids must be between 0 and"),
        ],
    )
    def test_sample_ids(self, sample_ids, match, assert_refused):
        assert_refused(match, sample_ids=sample_ids)

    def test_a_first_call_that_fails_leaves_nothing(self, make, data):
        X, y = data
        model = make()
        for arguments in ({"sample_ids": np.zeros(120, int)}, {"sample_weight": np.zeros(120)}):
            with pytest.raises(ValueError, match=r"Got 0 120 times|are zero"):
                model.partial_fit(X, y, **arguments)
            assert not [name for name in vars(model) if name.endswith("_")]
        assert model.partial_fit(X[:, :3], y).n_features_in_ == 3


class TestWarmStart:
    @pytest.mark.parametrize("average", [False, True])
    def test_epochs_add_up(self, average, make, data):
        """With a constant rate: a warm start begins the schedule anew."""
        X, y = data
        whole = make(max_iter=5, decay=1.0).fit(X, y)
        model = make(max_iter=3, decay=1.0, warm_start=True, average=average).fit(X, y)
        model.set_params(max_iter=2, average=False).fit(X, y)
        np.testing.assert_array_equal(model.coef_, whole.coef_)
        np.testing.assert_array_equal(model.u_, whole.u_)
        np.testing.assert_array_equal(model.fit_report_["loss"], whole.fit_report_["loss"][3:])
        assert model.n_iter_ == 2

    def test_u_is_kept(self, make, data):
        X, y = data
        model = make(max_iter=4, warm_start=True).fit(X, y)
        u = model.u_.copy()
        model.set_params(learning_rate=STILL).fit(X, y)
        np.testing.assert_allclose(model.u_, u, atol=1e-9)
        cold = make(max_iter=4, learning_rate=STILL, init="zero").fit(X, y)
        shares = np.unique(y, return_counts=True)[1] / len(y)
        np.testing.assert_allclose(cold.u_, -np.log(shares)[cold.u_index_[:, 1]], atol=1e-9)
        cold = make(max_iter=4, learning_rate=STILL, init="zero", fit_intercept=False).fit(X, y)
        np.testing.assert_allclose(cold.u_, np.log(4), atol=1e-9)

    def test_new_rows_and_classes_of_rows_start_at_the_exact_normaliser(self, make, data):
        X, y = data
        model = make(max_iter=4, warm_start=True).fit(X[:100], y[:100])
        u, W, b = model.u_.copy(), model.coef_.copy(), model.intercept_.copy()
        other = y.copy()
        other[:10] = np.where(y[:10] == "a", "b", "a")
        model.set_params(learning_rate=STILL).fit(X, other)
        exact = log_losses(W, b, X, np.searchsorted(model.classes_, other))
        np.testing.assert_allclose(model.u_[10:100], u[10:], atol=1e-9)
        np.testing.assert_allclose(model.u_[100:], exact[100:], atol=1e-9)
        np.testing.assert_allclose(model.u_[:10], exact[:10], atol=1e-9)

    def test_it_goes_on_after_partial_fits(self, make, data):
        X, y = data
        model, plain = make(warm_start=True, max_iter=1), make()
        model.partial_fit(X, y)
        plain.partial_fit(X, y)
        model.set_params(learning_rate=STILL).fit(X, y)
        np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-9)
