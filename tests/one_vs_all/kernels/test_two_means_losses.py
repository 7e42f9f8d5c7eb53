"""The minimum at two means for every loss, over means that are parallel, zero or of any weight."""

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_xc.one_vs_all.kernels.two_means import two_means_kernel
from sklearn_xc.one_vs_all.losses import LOSSES
from sklearn_xc.one_vs_all.losses.margin import compiled

#: What each loss is of a margin m.
VALUES = {
    "squared_hinge": lambda m: max(0.0, 1 - m) ** 2,
    "logistic": lambda m: np.logaddexp(0, -m),
    "huber_hinge": lambda m: max(0.0, 1 - m) ** 2 if m >= 0 else 1 - 2 * m,
}


def test_every_loss_has_a_twin():
    assert VALUES.keys() == LOSSES.keys()


@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=25, deadline=None)
@given(
    d=st.integers(1, 4), plus=st.sampled_from([0.0, 0.1, 3.0, 200.0]),
    minus=st.sampled_from([0.0, 1.0, 1e4]), is_zero=st.sampled_from([0, 0, 1, 2]),
    seed=st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_no_other_weights_are_better(loss, d, plus, minus, is_zero, seed):
    """Of one feature, means are parallel; the objective is the smallest up to the last step."""
    rng, value = np.random.default_rng(seed), VALUES[loss]
    p, q = (
        rng.normal(size=(2, d)) * rng.choice([0.1, 1, 5], (2, 1)) * [[is_zero != 1], [is_zero != 2]]
    )

    def objective(w):
        return 0.5 * w @ w + plus * value(w @ p) + minus * value(-w @ q)

    kernel = two_means_kernel(compiled(LOSSES[loss]()))
    a, b = kernel(float(p @ p), float(p @ q), float(q @ q), plus, minus)
    found = objective(a * p + b * q)
    best = min(
        scipy.optimize.minimize(objective, start, method="BFGS").fun
        for start in (np.zeros(d), a * p + b * q)
    )
    assert found <= best * (1 + 2e-4) + 1e-9
