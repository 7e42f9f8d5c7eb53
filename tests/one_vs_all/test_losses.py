"""Every loss of the registry: derivatives, convexity, extremes, and its compiled form."""

import itertools
import math

import numpy as np
import pytest

from sklearn_xc.one_vs_all.losses import LOSSES
from sklearn_xc.one_vs_all.losses.margin import compiled

FUNCTIONS = ("value", "slope", "curvature")
MARGINS = np.concatenate([np.linspace(-6.0, 6.0, 241) + 1e-3, [-30.0, 30.0]])
EXTREMES = [-1e4, -100.0, -1.0, 0.0, 1.0, 100.0, 1e4]
STEP = 1e-6

each_loss = pytest.mark.parametrize("loss", LOSSES)


@each_loss
@pytest.mark.parametrize(("function", "derivative"), [("value", "slope"), ("slope", "curvature")])
def test_derivatives_agree_with_finite_differences(loss, function, derivative, compiled_loss):
    f, derivative = compiled_loss(loss, function), compiled_loss(loss, derivative)
    for margin in MARGINS:
        expected = (f(margin + STEP) - f(margin - STEP)) / (2 * STEP)
        assert derivative(margin) == pytest.approx(expected, rel=1e-5, abs=1e-8), margin


@each_loss
def test_value_is_convex_nonnegative_and_falls_with_the_margin(loss, compiled_loss):
    value, slope = compiled_loss(loss, "value"), compiled_loss(loss, "slope")
    values = np.array([value(m) for m in MARGINS])
    slopes = np.array([slope(m) for m in sorted(MARGINS)])
    assert (values >= 0).all()
    assert (slopes <= 0).all()
    assert slopes[0] < -0.5
    assert (np.diff(slopes) >= 0).all()
    for a, b in zip(MARGINS[:-5], MARGINS[5:], strict=True):
        assert value((a + b) / 2) <= (value(a) + value(b)) / 2 + 1e-12


@each_loss
def test_from_active_below_on_there_is_no_loss_and_below_it_there_is(loss, compiled_loss):
    value, slope, curvature = (compiled_loss(loss, name) for name in FUNCTIONS)
    kink = LOSSES[loss]().active_below
    for margin in [*MARGINS, *EXTREMES, kink, np.nextafter(kink, 0)]:
        if margin >= kink:
            assert value(margin) == slope(margin) == curvature(margin) == 0.0, margin
        elif abs(margin) <= 30:
            assert value(margin) > 0, margin
            assert slope(margin) < 0, margin
    assert math.isfinite(kink) or value(30.0) > 0


@each_loss
def test_compiled_agrees_with_python_and_does_not_overflow(loss, compiled_loss):
    for name, margin in itertools.product(FUNCTIONS, EXTREMES):
        with np.errstate(all="raise", under="ignore"):
            expected = getattr(compiled(LOSSES[loss]()), name)(margin)
        assert math.isfinite(expected)
        found = compiled_loss(loss, name)(np.float32(margin))
        assert found == pytest.approx(expected, rel=3e-7, abs=1e-37), (name, margin)
