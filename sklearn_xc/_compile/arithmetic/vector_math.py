"""exp and log1p without a branch or call, so that loops over them become vector code.

Within 3 units in the last place. The argument of exp is reduced to ``x - n log(2)``, at most
log(2) / 2, for the Taylor series. Sums in kernels may be reordered, which would undo the usual
reduction by a log(2) in two parts: the greater part is subtracted among integers, where nothing is
lost. ``log(1 + x)`` is ``2 artanh(x / (x + 2))``, or log(2) more than that of ``(x - 1) / 2``.
"""

import numpy as np

from sklearn_xc._compile.jit import inlined

#: Below, exp is 0: soon its value would not have all of its bits.
SMALLEST_EXPONENT = -708.0
#: Greater arguments of exp count as this one.
LARGEST_EXPONENT = 709.0
_LOG2_E = 1.4426950408889634
_LOG_2 = 0.6931471805599453
_UNIT = 2.0**-52
#: log(2) in units, rounded, and the remainder.
_LOG_2_UNITS = np.int64(3121657384082680)
_LOG_2_REST = -8.783183432405266e-17
_BIAS = np.int64(1023)
_MANTISSA_BITS = np.int64(52)
#: sqrt(2) - 1: beyond, log(1 + x) is log(2) and the logarithm of (1 + x) / 2.
_ROOT_LESS_1 = 0.41421356237309503


@inlined
def vector_exp(x):
    """Return exp(x) of a float64: 0 below ``SMALLEST_EXPONENT``, never more than 1e308."""
    t = min(max(x, SMALLEST_EXPONENT), LARGEST_EXPONENT)
    whole = np.rint(t * _LOG2_E)
    n = np.int64(whole)
    units = np.int64(np.rint(t * (1.0 / _UNIT))) - n * _LOG_2_UNITS
    r = np.float64(units) * _UNIT - whole * _LOG_2_REST
    r = t if whole == 0.0 else r
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    power = np.int64((n + _BIAS) << _MANTISSA_BITS).view(np.float64)
    return (1.0 + (r + r * r * p)) * power if x >= SMALLEST_EXPONENT else 0.0


@inlined
def vector_log1p(x):
    """Return log(1 + x) of a float64 from 0 to 1, as exactly near 0."""
    is_small = x < _ROOT_LESS_1
    f = (x if is_small else x - 1.0) / (x + (2.0 if is_small else 3.0))
    s = f * f
    p = 1.0 / 21.0
    p = p * s + 1.0 / 19.0
    p = p * s + 1.0 / 17.0
    p = p * s + 1.0 / 15.0
    p = p * s + 1.0 / 13.0
    p = p * s + 1.0 / 11.0
    p = p * s + 1.0 / 9.0
    p = p * s + 1.0 / 7.0
    p = p * s + 1.0 / 5.0
    p = p * s + 1.0 / 3.0
    f += f
    return (0.0 if is_small else _LOG_2) + (f + f * (s * p))
