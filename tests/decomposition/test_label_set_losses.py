"""Losses of a set of labels against fractions, a quadratic program and finite differences."""

import bisect
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.optimize
import scipy.special
from hypothesis import assume, given
from hypothesis import strategies as st

from sklearn_xc.decomposition.losses import LABEL_SET_LOSSES, MaxMargin, make_label_set_loss

STEP = 1e-6
#: The most that a negative up to the floor may change a gradient.
SLACK = {"margin": 1e-12, "softmax": 1e-3, "triplet": 0.0}

each_loss = pytest.mark.parametrize("loss", LABEL_SET_LOSSES)


def simplex_threshold(values, total):
    """Return the t with ``sum (values - t)_+ = total``: the largest over the leading values."""
    sums = itertools.accumulate(sorted(values, reverse=True))
    return max((s - total) / k for k, s in enumerate(sums, 1))


def meeting_threshold(v, p):
    """Return the t with ``sum (v - t)_+ = sum (t - p)_+``, a line between two of its kinks."""

    def excess(t):
        return sum(max(x - t, 0) for x in v) - sum(max(t - x, 0) for x in p)

    kinks = sorted({*v, *p})
    at = bisect.bisect_left(kinks, 0, key=lambda t: -excess(t))
    a, b = kinks[at - 1], kinks[at]
    return a + (b - a) * excess(a) / (excess(a) - excess(b))


def smoothed_margin(scores, n_positive, mu):
    """Return the smoothed max-margin loss and its gradient, computed without rounding."""
    mu = Fraction(mu)
    p = [Fraction(float(s)) for s in scores[:n_positive]]
    v = [Fraction(float(s)) + 1 for s in scores[n_positive:]]
    if not v or max(v) <= min(p):
        return 0.0, np.zeros(len(scores))
    t_n = t_p = meeting_threshold(v, p)
    if sum(max(x - t_n, 0) for x in v) > mu:
        t_n, t_p = simplex_threshold(v, mu), -simplex_threshold([-x for x in p], mu)
    alpha = [-max(t_p - x, 0) / mu for x in p] + [max(x - t_n, 0) / mu for x in v]
    value = sum(a * x for a, x in zip(alpha, p + v, strict=True))
    value -= mu / 2 * sum(a * a for a in alpha)
    return float(value), np.array([float(a) for a in alpha])


@st.composite
def instances(draw, max_scale=1e4):
    """Draw scores with ties, how many of them are positives, and mu."""
    n_positive, n_negative = draw(st.integers(1, 4)), draw(st.integers(0, 12))
    n = n_positive + n_negative
    score = draw(st.sampled_from([st.integers(-8, 8).map(lambda i: i / 4), st.floats(-2, 2)]))
    scores = np.array(draw(st.lists(score, min_size=n, max_size=n)), np.float64)
    scores *= draw(st.sampled_from([s for s in (0.0, 1e-3, 1.0, 50.0, 1e4) if s <= max_scale]))
    scores += draw(st.sampled_from([0.0, -max_scale, max_scale]))
    mu = draw(st.one_of(st.sampled_from([1e-3, 0.25, 1.0, 5.0, 100.0]), st.floats(1e-3, 100.0)))
    return scores, n_positive, mu


def check_margin(label_set_loss, scores, n_positive, mu):
    value, gradient, _ = label_set_loss("margin", scores, n_positive, mu)
    expected, exact = smoothed_margin(scores, n_positive, mu)
    np.testing.assert_allclose(gradient, exact, atol=1e-12)
    assert value == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(instance=instances())
def test_margin_is_exact(label_set_loss, instance):
    check_margin(label_set_loss, *instance)


@pytest.mark.parametrize(
    ("spread", "n_positive", "mu"),
    [
        ("normal", 5, 1e-3),
        ("normal", 300, 1.0),
        ("equal", 1, 1.0),
        ("equal", 300, 100.0),
        ("powers", 1, 100.0),
        ("powers", 5, 1e-3),
        ("powers", 300, 1.0),
        ("far", 1, 100.0),
        ("far", 300, 1e-3),
    ],
)
def test_margin_is_exact_for_many_labels(label_set_loss, n_positive, mu, spread):
    """Also where each pass drops few labels, and where Newton's method may miss."""
    rng = np.random.default_rng(n_positive)
    scores = {
        "normal": 0.3 * rng.normal(size=700),
        "equal": np.zeros(700),
        "powers": np.where(np.arange(700) < n_positive, 1, -1) * 1.3 ** rng.integers(-60, 30, 700),
        "far": rng.normal(size=700) - 4.0 * (np.arange(700) < n_positive),
    }[spread]
    check_margin(label_set_loss, scores, n_positive, mu)


@given(instance=instances())
def test_softmax_agrees_with_scipy(label_set_loss, instance):
    scores, n_positive, _ = instance
    value, gradient, _ = label_set_loss("softmax", scores, n_positive)
    expected = n_positive * scipy.special.softmax(scores)
    expected[:n_positive] -= 1
    np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-14)
    losses = scipy.special.logsumexp(scores) - scores[:n_positive]
    assert value == pytest.approx(losses.sum(), rel=1e-12, abs=1e-11)


@given(instance=instances())
def test_triplet_agrees_with_its_definition(label_set_loss, instance):
    scores, n_positive, _ = instance
    value, gradient, _ = label_set_loss("triplet", scores, n_positive)
    violations = scores[n_positive:, None] - scores[None, :n_positive] + 1
    assert value == pytest.approx(np.maximum(violations, 0).sum(), rel=1e-12)
    hits = scores[n_positive:, None] > scores[None, :n_positive] - 1
    np.testing.assert_array_equal(gradient, [*-hits.sum(axis=0), *hits.sum(axis=1)])


@each_loss
def test_gradient_agrees_with_finite_differences(label_set_loss, loss):
    scores = 2.0 * np.random.default_rng(3).normal(size=12)
    gradient = label_set_loss(loss, scores, 2, 20.0)[1]
    moves = STEP * np.eye(12)
    up, down = (
        np.array([label_set_loss(loss, scores + s * m, 2, 20.0)[0] for m in moves]) for s in (1, -1)
    )
    assert abs(gradient).max() > 0
    np.testing.assert_allclose(gradient, (up - down) / (2 * STEP), atol=1e-6)


@each_loss
@given(instance=instances(), depth=st.sampled_from([0.0, 1e-6, 1.0, 1e4]), copies=st.booleans())
def test_a_negative_up_to_the_floor_changes_nothing(label_set_loss, loss, instance, depth, copies):
    scores, n_positive, mu = instance
    value, gradient, floor = label_set_loss(loss, scores, n_positive, mu)
    n_new = 3 if copies and loss != "softmax" else 1
    more = np.append(scores, n_new * [floor - depth])
    after, changed, _ = label_set_loss(loss, more, n_positive, mu)
    # The floor is a score, and so has the rounding of one; a smoothed gradient divides it by mu.
    rounding = 4 * np.spacing(abs(more).max()) / mu if loss == "margin" else 0.0
    expected = np.append(gradient, np.zeros(n_new))
    np.testing.assert_allclose(changed, expected, rtol=0, atol=SLACK[loss] + rounding)
    if loss != "softmax":
        assert after == pytest.approx(value, rel=1e-12, abs=1e-12 + mu * rounding)


@each_loss
@given(instance=instances())
def test_labels_below_the_support_floor_are_not_needed(label_set_loss, loss, instance):
    scores, n_positive, mu = instance
    assume(len(scores) > n_positive)
    negatives = scores[n_positive:]
    value, gradient, floor = label_set_loss(loss, scores, n_positive, mu)
    parameters = MaxMargin(mu).parameters if loss == "margin" else ()
    known = LABEL_SET_LOSSES[loss]().support_floor(
        negatives.max(), scores[:n_positive].min(), parameters
    )
    assert known <= floor + 4 * np.spacing(abs(scores).max())
    kept = np.append(np.ones(n_positive, bool), negatives > known)
    assert abs(gradient[~kept]).max(initial=0.0) <= 4 * np.spacing(abs(scores).max()) / mu
    restricted, part, _ = label_set_loss(loss, scores[kept], n_positive, mu)
    np.testing.assert_allclose(part, gradient[kept], rtol=1e-13, atol=1e-11)
    assert restricted == pytest.approx(value, rel=1e-12, abs=1e-12)


@each_loss
def test_nan_is_not_swallowed(label_set_loss, loss):
    for at in (0, 1, 2, 5):
        scores = np.linspace(0.5, -0.5, 6)
        scores[at] = math.nan
        assert math.isnan(label_set_loss(loss, scores, 2)[0]), at


def test_smoothing_is_a_positive_number():
    for smoothing in (0, -1.0, math.nan, math.inf, "1", None, True):
        message = rf"MaxMargin: smoothing must be .* number\. Got {smoothing!r}\."
        with pytest.raises(ValueError, match=message):
            make_label_set_loss(MaxMargin(smoothing=smoothing))


class Foreign:
    """A loss from outside the package."""

    parameters = (1.0,)

    @staticmethod
    def gradient(scores, n_positive, n, parameters, out, work):
        return 0.0, 0.0

    @staticmethod
    def support_floor(largest_negative, smallest_positive, parameters):
        return 0.0


class Bound(Foreign):
    def gradient(self, scores, n_positive, n, parameters, out, work):
        return 0.0, 0.0


class Arity(Foreign):
    """Functions with too few arguments."""

    @staticmethod
    def gradient(scores, n_positive, n, parameters, out):
        return 0.0, 0.0


class Floorless(Foreign):
    @staticmethod
    def support_floor(largest_negative, smallest_positive, parameters):
        pass


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ("hinge", "must be one of 'margin', 'softmax', 'triplet', .* Got 'hinge'"),
        (Foreign, r"must be one of .* Got the class Foreign; .* such as Foreign\(\)"),
        (None, "must be one of .* Got None"),
        (Bound(), "gradient of Bound must be a static method"),
        (Arity(), r"gradient of .*Arity.* cannot be compiled: .*argument"),
        (Floorless(), r"support_floor of .*Floorless.* must return a number. Got none"),
    ],
)
def test_what_is_no_loss_is_told(loss, message):
    with pytest.raises(ValueError, match=f"Me: loss.*{message}|Me: loss: {message}"):
        make_label_set_loss(loss, "Me: loss")
