"""exp and log1p of vector loops against mpmath and numpy."""

import numpy as np
import pytest
from vector_loops import each

from sklearn_xc._compile.arithmetic.vector_math import (
    LARGEST_EXPONENT,
    SMALLEST_EXPONENT,
    vector_exp,
    vector_log1p,
)

exp_each, log1p_each = each(vector_exp), each(vector_log1p)

MAX_ULP = 3


def values_of(function, x):
    out = np.full(len(x), np.nan)
    function(x, out)
    return out


def assert_is_close(function, name, x):
    """Compare with the function of this name in mpmath, in units in the last place."""
    mp = pytest.importorskip("mpmath").mp
    values = values_of(function, x)
    with mp.workdps(40):
        for at, value in zip(x, values, strict=True):
            exact = getattr(mp, name)(mp.mpf(at))
            error = abs(mp.mpf(value) - exact)
            assert error <= MAX_ULP * np.spacing(abs(float(exact))), (at, value, exact)


def arguments(rng):
    """Return arguments of exp of all magnitudes, also around halves of log(2)."""
    halves = np.arange(-2042, 2045) * (np.log(2) / 2)
    halves = halves[(halves > SMALLEST_EXPONENT) & (halves < LARGEST_EXPONENT)]
    return np.concatenate(
        [
            rng.uniform(SMALLEST_EXPONENT, LARGEST_EXPONENT, 5000),
            rng.normal(size=5000),
            rng.choice([-1.0, 1.0], 2000) * 10 ** rng.uniform(-300, 2, 2000),
            np.nextafter(halves, -1e3),
            halves,
            np.nextafter(halves, 1e3),
            [0.0, -0.0, 1.0, -1.0, 700.0, -700.0, SMALLEST_EXPONENT, LARGEST_EXPONENT],
        ]
    )


def test_exp():
    assert_is_close(exp_each, "exp", arguments(np.random.default_rng(0)))


def test_exp_out_of_range():
    x = np.array([-np.inf, -1e300, -1e6, -746, -745, -709, 709.5, 710, 1e6, 1e300, np.inf])
    largest = np.exp(LARGEST_EXPONENT)
    np.testing.assert_allclose(values_of(exp_each, x), [0.0] * 6 + [largest] * 5, rtol=1e-15)


@pytest.mark.parametrize("size", [0, 7, 101])
def test_vectors_of_any_length(size):
    """The ends of loops are not vectors."""
    x = np.random.default_rng(size).uniform(-20, 20, size)
    np.testing.assert_allclose(values_of(exp_each, x), np.exp(x), rtol=1e-15)


def test_log1p():
    rng, root = np.random.default_rng(3), np.sqrt(2.0) - 1.0
    x = np.concatenate(
        [
            rng.random(5000),
            10 ** rng.uniform(-300, 0, 3000),
            root + 1e-15 * rng.normal(size=100),
            [0.0, np.nextafter(0.0, 1.0), 1.0, root],
        ]
    )
    assert_is_close(log1p_each, "log1p", x)
