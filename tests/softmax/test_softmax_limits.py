"""Limits: weights of instances, divergence and overflow."""

import numpy as np
import pytest

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax

#: Rates at which a few epochs end worse than they began are of interest here.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(is too high|was still falling|the last rate):sklearn.exceptions.ConvergenceWarning"
)


@pytest.fixture(params=[SoftmaxUMax, ImplicitSoftmaxSGD])
def make(request):
    def make(**parameters):
        return request.param(
            **{"learning_rate": 0.3, "max_iter": 3, "random_state": 0, **parameters}
        )

    return make


class TestWeights:
    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            (np.ones(119), r"sample_weight has shape \(119,\), expected \(120,\)"),
            (np.ones((120, 1)), r"sample_weight has shape \(120, 1\), expected \(120,\)"),
            (-np.ones(120), r"sample_weight must not be negative, row 0 holds -1.0"),
            (np.zeros(120), "all entries of sample_weight are zero"),
            (np.full(120, 1e306), r"sample_weight must sum to less than 1e\+304 over all"),
            (np.full(120, 1e307), "sample_weight must sum to less than .* Got inf"),
            (np.full(120, np.nan), "sample_weight contains NaN"),
            (np.full(120, np.inf), "sample_weight contains infinity"),
        ],
        ids=range(8),
    )
    def test_bad_weights(self, weight, message, make, xy):
        with pytest.raises(ValueError, match=message):
            make().fit(*xy, sample_weight=weight)

    @pytest.mark.parametrize("factor", [1e-300, 1e300])
    def test_tiny_and_huge_weights(self, factor, make, xy):
        expected = make().fit(*xy).coef_
        np.testing.assert_allclose(
            make().fit(*xy, np.full(120, factor)).coef_, expected, atol=1e-10
        )


class TestDivergence:
    @pytest.mark.parametrize(("dtype", "factor"), [(np.float32, 1.0), (np.float64, 1000.0)])
    @pytest.mark.parametrize("rate", [1e3, 1e15])
    @pytest.mark.parametrize("batch_size", [1, 8])
    def test_implicit_steps_never_diverge(self, batch_size, rate, factor, dtype, xy):
        X, Y = (xy[0] * factor).astype(dtype), xy[1]
        model = ImplicitSoftmaxSGD(
            learning_rate=rate, batch_size=batch_size, n_negatives=3, max_iter=10, random_state=0
        ).fit(X, Y)
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.predict_log_proba(X).data).all()


#: Steps that go through code of their own.
STEPS = {
    "U-max": (SoftmaxUMax, {}),
    "U-max, ridge": (SoftmaxUMax, {"alpha": 0.1}),
    "U-max, hard": (SoftmaxUMax, {"n_hard_negatives": 2}),
    "implicit": (ImplicitSoftmaxSGD, {}),
    "implicit, hard": (ImplicitSoftmaxSGD, {"n_hard_negatives": 2}),
    "batches": (ImplicitSoftmaxSGD, {"batch_size": 4}),
    "batches, ridge": (ImplicitSoftmaxSGD, {"batch_size": 4, "alpha": 0.1}),
}


class TestOverflow:
    """Numbers whose squares, sums or products no float holds: an error, and nothing has changed."""

    @staticmethod
    def make(step, **parameters):
        estimator, own = STEPS[step]
        return estimator(
            **{"learning_rate": 1.0, "max_iter": 3, "random_state": 0, **own, **parameters}
        )

    @staticmethod
    def assert_finite(model, X):
        for values in (model.coef_, model.intercept_, model.fit_report_["loss"]):
            assert np.isfinite(values).all()
        assert np.isfinite(model.predict_proba(X).data).all()

    def test_a_sum_of_squares(self):
        """The square of each row is a float64, their sum is not."""
        X, y = 1.3e154 * np.eye(6)[np.arange(60) % 6], np.arange(60) % 3
        model = SoftmaxUMax(learning_rate=1e-300, init="zero", max_iter=1, random_state=0)
        model.fit(X, y)
        assert np.isfinite(model.intercept_).all()
        assert (model.intercept_ != np.log(1 / 3)).all()
