"""The propensity model: a number by hand, its shape, its errors."""

import math

import numpy as np
import pytest

from sklearn_xc.metrics import propensity


def test_by_hand():
    # n = e**3, A = 0.5, B = 0.4: C = 2 * 1.4**0.5; for a count of 13.6, 1/p = 1 + C / 14**0.5.
    assert propensity([13.6], math.exp(3), "wikipedia") == pytest.approx([1 / (1 + 2 * 0.1**0.5)])


def test_grows_with_the_count_and_stays_a_probability():
    values = propensity(np.arange(1000), n_samples=1000)
    assert (np.diff(values) > 0).all()
    assert 0 < values[0] < values[-1] < 1


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
    ],
)
def test_error_names_argument_and_value(changed, message):
    with pytest.raises(ValueError, match=message):
        propensity(**({"label_counts": [1, 2], "n_samples": 10} | changed))
