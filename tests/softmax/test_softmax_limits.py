"""Limits: weights of instances, divergence and overflow."""

import numpy as np
import pytest

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax

#: Rates at which a few epochs end worse than they began are of interest here.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(is too high|was still falling|the last rate):sklearn.exceptions.ConvergenceWarning"
)


def make():
    return SoftmaxUMax(learning_rate=0.3, max_iter=3, random_state=0)


class TestWeights:
    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            (1e306, r"sample_weight must sum to less than 1e\+304 over all"),
            (1e307, "sample_weight must sum to less than .* Got inf"),
            (np.inf, "sample_weight contains infinity"),
        ],
    )
    def test_bad_weights(self, weight, message, xy):
        with pytest.raises(ValueError, match=message):
            make().fit(*xy, sample_weight=np.full(120, weight))

    @pytest.mark.parametrize("factor", [1e-300, 1e300])
    def test_tiny_and_huge_weights(self, factor, xy):
        expected, found = make().fit(*xy), make().fit(*xy, np.full(120, factor))
        np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-10)


class TestDivergence:
    @pytest.mark.parametrize(
        ("rate", "dtype", "factor"), [(1e3, np.float64, 1000.0), (1e15, np.float32, 1.0)]
    )
    def test_implicit_steps_never_diverge(self, rate, factor, dtype, xy):
        X, Y = (xy[0] * factor).astype(dtype), xy[1]
        model = ImplicitSoftmaxSGD(
            learning_rate=rate, n_negatives=3, max_iter=10, random_state=0
        ).fit(X, Y)
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.predict_log_proba(X).data).all()


def test_a_sum_of_squares_may_overflow():
    """The square of each row is a float64, their sum is not."""
    X, y = 1.3e154 * np.eye(6)[np.arange(60) % 6], np.arange(60) % 3
    model = SoftmaxUMax(learning_rate=1e-300, init="zero", max_iter=1, random_state=0)
    model.fit(X, y)
    assert np.isfinite(model.intercept_).all()
    assert (model.intercept_ != np.log(1 / 3)).all()
