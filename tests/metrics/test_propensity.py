"""The propensity model: a number by hand, its shape, its errors."""

import math

import numpy as np
import pytest

from sklearn_xc.metrics import propensity


def test_by_hand():
    # n = e**3 rows and B = 3, A = 0.5: C = 2 * 4**0.5 = 4; with a count of 13, 1/p = 1 + 4 / 4.
    assert propensity([13], math.exp(3), A=0.5, B=3.0) == pytest.approx([0.5])


def test_grows_with_the_count_and_stays_a_probability():
    values = propensity(np.arange(1000), n_samples=1000)
    assert (np.diff(values) > 0).all()
    assert 0 < values[0] < values[-1] < 1


def test_own_constants_replace_those_of_the_preset_one_by_one():
    counts = [0, 5]
    np.testing.assert_array_equal(
        propensity(counts, 100, "amazon", A=0.5), propensity(counts, 100, A=0.5, B=2.6)
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"label_counts": [[1, 2]]}, r"label_counts has shape \(1, 2\).*Y.sum\(axis=0\)"),
        ({"label_counts": [1, -1]}, "label_counts: .* Got -1.0 for label 1"),
        ({"label_counts": [np.nan]}, "label_counts contains NaN at entry 0"),
        ({"n_samples": 2}, "n_samples: .* at least 3. Got 2"),
        ({"n_samples": np.inf}, "n_samples: .* Got inf"),
        ({"n_samples": "10"}, "n_samples: .* Got '10'"),
        ({"preset": "eurlex"}, "preset: expected one of .*'amazon'.* Got 'eurlex'"),
        ({"A": 0}, "A: expected a positive number. Got 0"),
        ({"B": np.nan}, "B: expected a positive number. Got nan"),
    ],
)
def test_error_names_argument_and_value(changed, message):
    with pytest.raises(ValueError, match=message):
        propensity(**({"label_counts": [1, 2], "n_samples": 10} | changed))


@pytest.mark.parametrize("A", [1e12, 1e308, 5000.0])
def test_constants_that_leave_no_propensity(A):
    with pytest.raises(ValueError, match=r"^A, B: .* make propensities that float64 cannot hold"):
        propensity([1, 2], 60, A=A, B=1.0)
