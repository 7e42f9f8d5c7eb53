"""The real Wright omega function: the w > 0 with ``w + log(w) = z``.

It is Lambert's W of exp(z), without the overflow of the exponential: implicit updates need it where
z is 700 or 1e6. Relative error below 1e-14 for all finite z (0 where exp(z) underflows).

Source: the iteration of [1]_, section 3, on the real line; the starts are our own.

References
----------
.. [1] P. W. Lawrence, R. M. Corless and D. J. Jeffrey, "Algorithm 917: complex double-precision
   evaluation of the Wright omega function", ACM Transactions on Mathematical Software 38, 2012.
"""

import math

from sklearn_xc._compile.arithmetic.vector_math import vector_exp, vector_log
from sklearn_xc._compile.jit import inlined


@inlined
def wright_omega(z):
    """Return the w with ``w + log(w) = z``, for a float64 z."""
    if z < -20.0:  # further terms of the series in exp(z) are below rounding
        w = math.exp(z)
        return w * (1.0 - w)
    if z > 1e50:  # log(z) is below rounding, and squares of z would overflow
        return z
    if z < 1.0:
        w = math.exp(z)
        w = w / (1.0 + w)
    else:
        w = z - math.log(z)
    for _ in range(2):  # of fourth order: two steps reach rounding from these starts
        residual = z - w - math.log(w)
        w1 = 1.0 + w
        t = w1 * (w1 + residual * (2.0 / 3.0))
        w *= 1.0 + residual / w1 * (t - 0.5 * residual) / (t - residual)
    return w


@inlined
def rough_wright_omega(z):
    """Return the function to within 1 part in 1000; loops over it become vector instructions.

    The step of fourth order is made once; far from 0 even its start is near enough.
    """
    e, log_z = vector_exp(min(z, 1.0)), vector_log(max(z, 1.0))
    w = e / (1.0 + e) if z < 1.0 else z - log_z
    residual = z - w - vector_log(max(w, 1e-300))
    w1 = 1.0 + w
    t = w1 * (w1 + residual * (2.0 / 3.0))
    better = w * (1.0 + residual / w1 * (t - 0.5 * residual) / (t - residual))
    return better if abs(z) < 600.0 else w
