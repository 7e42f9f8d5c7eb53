"""Sums over dense vectors in float64.

They take numpy's place where its temporaries would cost, and BLAS's, whose bits depend on the
number of its threads.
"""

import numpy as np

from sklearn_xc.kernels._jit import inlined, kernel


@inlined
def inner_product(a, b):
    """Return the inner product, summed in float64."""
    total = np.float64(0.0)
    for j in range(a.shape[0]):
        total += np.float64(a[j]) * np.float64(b[j])
    return total


@kernel
def dot(a, b):
    """Return the inner product of two vectors, summed in float64."""
    return inner_product(a, b)


@kernel
def combination(alpha, a, beta, b):
    """Return ``alpha * a + beta * b``."""
    out = np.empty(a.shape[0])
    for j in range(a.shape[0]):
        out[j] = alpha * a[j] + beta * b[j]
    return out


@kernel
def norm_of_difference(alpha, a, beta, b):
    """Return the norm of ``alpha * a - beta * b``."""
    total = np.float64(0.0)
    for j in range(a.shape[0]):
        x = alpha * a[j] - beta * b[j]
        total += x * x
    return np.sqrt(total)
